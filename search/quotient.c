#include "search/quotient.h"

ft_status ft_quotient_make(const ft_dag *dag, ft_arena *arena, ft_quotient *out,
                           ft_error *error) {
  *out = (ft_quotient){.dag = dag,
                       .owner = FT_NEW_ARRAY(arena, uint32_t, dag->count),
                       .part = FT_NEW_ARRAY(arena, ft_set, dag->count),
                       .at = FT_NEW_ARRAY(arena, uint32_t, dag->count),
                       .order = FT_NEW_ARRAY(arena, uint32_t, dag->count),
                       .stack = FT_NEW_ARRAY(arena, uint32_t, dag->count),
                       .seen = FT_NEW_ARRAY(arena, uint32_t, dag->count)};
  FT_OOM_IF(
      !out->owner || !out->part || !out->at || !out->order || !out->stack || !out->seen,
      error);
  for (uint32_t v = 0; v < dag->count; v++) {
    out->owner[v] = out->at[v] = out->order[v] = v;
    out->part[v] = (ft_set){v, 1};
  }
  return FT_OK;
}

// ---- walking -------------------------------------------------------------------

// Pushes the parts that read from |part| and come before position |end|, but for
// |except|.
static void push_consumers(ft_quotient *q, uint32_t part, uint32_t except, uint32_t end,
                           uint32_t *depth) {
  uint32_t member[FT_SET_SPREAD], count = ft_set_list(q->part[part], member);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t last = q->dag->consumer_at[member[i] + 1];
    for (uint32_t k = q->dag->consumer_at[member[i]]; k < last; k++) {
      uint32_t next = q->owner[q->dag->consumer[k]];
      if (next == part || next == except || q->at[next] >= end) continue;
      if (q->seen[next] == q->visit) continue;
      q->seen[next] = q->visit;
      q->stack[(*depth)++] = next;
    }
  }
}

bool ft_quotient_has_detour(ft_quotient *q, uint32_t from, uint32_t to) {
  if (q->at[from] > q->at[to]) return false;
  uint32_t depth = 0, end = q->at[to] + 1;
  q->visit++;
  push_consumers(q, from, to, end, &depth);
  while (depth) {
    uint32_t part = q->stack[--depth];
    if (part == to) return true;
    push_consumers(q, part, FT_NONE, end, &depth);
  }
  return false;
}

// ---- merging -------------------------------------------------------------------

// |merged| took over parts at positions |low| to |high|. What runs after it there moves
// behind it, the rest before, each in the order it had: nothing of the rest reads from
// what moves. Source: Pearce and Kelly, JEA 11 (2006).
static void restore_order(ft_quotient *q, uint32_t merged, uint32_t low, uint32_t high) {
  uint32_t depth = 0, write = low, moved = 0;
  q->visit++;
  push_consumers(q, merged, FT_NONE, high + 1, &depth);
  while (depth) push_consumers(q, q->stack[--depth], merged, high + 1, &depth);
  for (uint32_t i = low; i <= high; i++) {
    uint32_t part = q->order[i];
    if (part == FT_NONE || q->owner[part] != part || part == merged) continue;
    if (q->seen[part] == q->visit)
      q->stack[moved++] = part;
    else
      q->order[write++] = part;
  }
  q->order[write++] = merged;
  for (uint32_t i = 0; i < moved; i++) q->order[write++] = q->stack[i];
  while (write <= high) q->order[write++] = FT_NONE;
  for (uint32_t i = low; i <= high; i++)
    if (q->order[i] != FT_NONE) q->at[q->order[i]] = i;
}

static void join(ft_quotient *q, uint32_t a, uint32_t b) {
  FT_ASSERT(a < b && q->owner[a] == a && q->owner[b] == b);
  bool fits = ft_set_join(q->part[a], q->part[b], &q->part[a]);
  FT_ASSERT(fits);
  uint32_t member[FT_SET_SPREAD], count = ft_set_list(q->part[b], member);
  for (uint32_t i = 0; i < count; i++) q->owner[member[i]] = a;
}

void ft_quotient_unite(ft_quotient *q, uint32_t a, uint32_t b) {
  bool is_ahead = q->at[a] < q->at[b];
  join(q, a, b);
  restore_order(q, a, q->at[is_ahead ? a : b], q->at[is_ahead ? b : a]);
}

void ft_quotient_gather(ft_quotient *q, ft_set set) {
  uint32_t member[FT_SET_SPREAD], count = ft_set_list(set, member);
  uint32_t low = q->at[set.first], high = low;
  for (uint32_t i = 1; i < count; i++) {
    uint32_t at = q->at[member[i]];
    if (at < low) low = at;
    if (at > high) high = at;
    join(q, set.first, member[i]);
  }
  restore_order(q, set.first, low, high);
}

bool ft_quotient_has_edge(const ft_quotient *q, uint32_t from, uint32_t to) {
  uint32_t member[FT_SET_SPREAD], count = ft_set_list(q->part[from], member);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t end = q->dag->consumer_at[member[i] + 1];
    for (uint32_t k = q->dag->consumer_at[member[i]]; k < end; k++)
      if (q->owner[q->dag->consumer[k]] == to) return true;
  }
  return false;
}
