#include "search/quotient.h"

ft_status ft_quotient_make(const ft_dag *dag, ft_arena *arena, ft_quotient *out,
                           ft_error *error) {
  *out = (ft_quotient){.dag = dag,
                       .owner = FT_NEW_ARRAY(arena, uint32_t, dag->count),
                       .part = FT_NEW_ARRAY(arena, ft_set, dag->count),
                       .stack = FT_NEW_ARRAY(arena, uint32_t, dag->count),
                       .seen = FT_NEW_ARRAY(arena, uint32_t, dag->count)};
  FT_OOM_IF(!out->owner || !out->part || !out->stack || !out->seen, error);
  for (uint32_t v = 0; v < dag->count; v++) {
    out->owner[v] = v;
    out->part[v] = (ft_set){v, 1};
  }
  return FT_OK;
}

void ft_quotient_unite(ft_quotient *q, uint32_t a, uint32_t b) {
  FT_ASSERT(a < b && q->owner[a] == a && q->owner[b] == b);
  bool fits = ft_set_join(q->part[a], q->part[b], &q->part[a]);
  FT_ASSERT(fits);
  uint32_t member[FT_SET_SPREAD], count = ft_set_list(q->part[b], member);
  for (uint32_t i = 0; i < count; i++) q->owner[member[i]] = a;
}

void ft_quotient_gather(ft_quotient *q, ft_set set) {
  uint32_t member[FT_SET_SPREAD], count = ft_set_list(set, member);
  for (uint32_t i = 1; i < count; i++) ft_quotient_unite(q, set.first, member[i]);
}

static void push(ft_quotient *q, uint32_t part, uint32_t *depth) {
  if (q->seen[part] == q->visit) return;
  q->seen[part] = q->visit;
  q->stack[(*depth)++] = part;
}

// Pushes the parts that read from |part|, but for |except|.
static void push_consumers(ft_quotient *q, uint32_t part, uint32_t except,
                           uint32_t *depth) {
  uint32_t member[FT_SET_SPREAD], count = ft_set_list(q->part[part], member);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t end = q->dag->consumer_at[member[i] + 1];
    for (uint32_t k = q->dag->consumer_at[member[i]]; k < end; k++) {
      uint32_t next = q->owner[q->dag->consumer[k]];
      if (next != part && next != except) push(q, next, depth);
    }
  }
}

bool ft_quotient_has_detour(ft_quotient *q, uint32_t from, uint32_t to) {
  uint32_t depth = 0;
  q->visit++;
  push_consumers(q, from, to, &depth);
  while (depth) {
    uint32_t part = q->stack[--depth];
    if (part == to) return true;
    push_consumers(q, part, FT_NONE, &depth);
  }
  return false;
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
