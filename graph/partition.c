// Guards what search hands out. Invariants, checked in this order (partition.h):
//  1. Every primitive is in exactly one group.
//  2. The quotient graph is acyclic.
//  3. Groups are in an order in which each runs after its producers.
//  4. A group's outputs hold every value that another group or a graph output needs.
#include "graph/partition.h"

#include <string.h>

// ---- 1: one group each ----------------------------------------------------------

static ft_status find_owners(const ft_partition *p, uint32_t *owner, ft_error *error) {
  uint32_t total = p->graph->primitive_count;
  memset(owner, 0xff, total * sizeof *owner);
  for (uint32_t g = 0; g < p->group_count; g++) {
    const ft_group *group = &p->group[g];
    if (group->primitive_count == 0)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "invariant 1: group %u is empty", g);
    for (uint32_t i = 0; i < group->primitive_count; i++) {
      uint32_t primitive = group->primitive[i];
      if (primitive >= total)
        FT_FAIL(error, FT_INVALID_ARGUMENT,
                "invariant 1: group %u has primitive %u of %u", g, primitive, total);
      if (owner[primitive] != FT_NONE)
        FT_FAIL(error, FT_INVALID_ARGUMENT,
                "invariant 1: primitive %u is in groups %u and %u", primitive,
                owner[primitive], g);
      owner[primitive] = g;
    }
  }
  for (uint32_t i = 0; i < total; i++)
    if (owner[i] == FT_NONE)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "invariant 1: primitive %u is in no group", i);
  return FT_OK;
}

// ---- 2: Kahn over the quotient --------------------------------------------------

typedef struct quotient {
  const ft_graph *graph;
  const ft_group *group;
  uint32_t count;
  const uint32_t *owner;       // [primitives]
  uint32_t *waiting;           // [groups] operands from other groups not yet available
  uint32_t *first;             // [groups] smallest primitive
  uint32_t *heap, heap_count;  // ready groups, smallest |first| on top
} quotient;

static uint32_t producer_group(const quotient *q, uint32_t value) {
  uint32_t producer = q->graph->value[value].producer;
  return producer == FT_NONE ? FT_NONE : q->owner[producer];
}

static void swap(uint32_t *a, uint32_t *b) {
  uint32_t t = *a;
  *a = *b;
  *b = t;
}

static void heap_push(quotient *q, uint32_t group) {
  uint32_t at = q->heap_count++;
  q->heap[at] = group;
  while (at && q->first[q->heap[at]] < q->first[q->heap[(at - 1) / 2]]) {
    swap(&q->heap[at], &q->heap[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
}

static uint32_t heap_pop(quotient *q) {
  uint32_t top = q->heap[0];
  q->heap[0] = q->heap[--q->heap_count];
  for (uint32_t at = 0, child; (child = 2 * at + 1) < q->heap_count; at = child) {
    if (child + 1 < q->heap_count &&
        q->first[q->heap[child + 1]] < q->first[q->heap[child]])
      child++;
    if (q->first[q->heap[at]] <= q->first[q->heap[child]]) break;
    swap(&q->heap[at], &q->heap[child]);
  }
  return top;
}

// One unit of waiting per operand that another group produces.
static void count_waiting(quotient *q) {
  for (uint32_t i = 0; i < q->graph->primitive_count; i++) {
    const ft_primitive *p = &q->graph->primitive[i];
    uint32_t g = q->owner[i];
    if (i < q->first[g]) q->first[g] = i;
    for (uint32_t k = 0; k < p->input_count; k++) {
      uint32_t from = producer_group(q, p->input[k]);
      q->waiting[g] += from != FT_NONE && from != g;
    }
  }
}

static void release_readers(quotient *q, uint32_t g) {
  for (uint32_t i = 0; i < q->group[g].primitive_count; i++) {
    uint32_t root = q->graph->primitive[q->group[g].primitive[i]].output;
    const ft_value *v = &q->graph->value[root];
    for (uint32_t c = 0; c < v->consumer_count; c++) {
      uint32_t to = q->owner[v->consumer[c]];
      if (to == g) continue;
      const ft_primitive *reader = &q->graph->primitive[v->consumer[c]];
      for (uint32_t k = 0; k < reader->input_count; k++)
        q->waiting[to] -= q->graph->value[reader->input[k]].root == root;
      if (q->waiting[to] == 0) heap_push(q, to);
    }
  }
}

static ft_status refuse_cycle(const quotient *q, ft_error *error) {
  for (uint32_t i = 0; i < q->graph->primitive_count; i++) {
    const ft_primitive *p = &q->graph->primitive[i];
    if (!q->waiting[q->owner[i]]) continue;
    for (uint32_t k = 0; k < p->input_count; k++) {
      uint32_t from = producer_group(q, p->input[k]);
      if (from != FT_NONE && from != q->owner[i] && q->waiting[from])
        FT_FAIL(error, FT_INVALID_ARGUMENT,
                "invariant 2: groups wait for each other: primitive %u (group of "
                "primitive %u) reads primitive %u (group of primitive %u)",
                i, q->first[q->owner[i]], q->graph->value[p->input[k]].producer,
                q->first[from]);
    }
  }
  FT_FAIL(error, FT_INTERNAL, "a cycle of groups without an edge");
}

// order[count]: group positions, each after its producers, ties by smallest primitive.
static ft_status sort_groups(const ft_partition *p, const uint32_t *owner,
                             ft_arena *arena, uint32_t *order, ft_error *error) {
  quotient q = {.graph = p->graph,
                .group = p->group,
                .count = p->group_count,
                .owner = owner,
                .waiting = FT_NEW_ARRAY(arena, uint32_t, p->group_count),
                .first = FT_NEW_ARRAY(arena, uint32_t, p->group_count),
                .heap = FT_NEW_ARRAY(arena, uint32_t, p->group_count)};
  FT_OOM_IF(!q.waiting || !q.first || !q.heap, error);
  for (uint32_t g = 0; g < q.count; g++) q.first[g] = FT_NONE;
  count_waiting(&q);
  for (uint32_t g = 0; g < q.count; g++)
    if (q.waiting[g] == 0) heap_push(&q, g);
  uint32_t done = 0;
  while (q.heap_count) {
    order[done] = heap_pop(&q);
    release_readers(&q, order[done++]);
  }
  return done == q.count ? FT_OK : refuse_cycle(&q, error);
}

// ---- 3, 4 -----------------------------------------------------------------------

static ft_status check_order(const ft_partition *p, const uint32_t *owner,
                             ft_error *error) {
  for (uint32_t i = 0; i < p->graph->primitive_count; i++) {
    const ft_primitive *primitive = &p->graph->primitive[i];
    for (uint32_t k = 0; k < primitive->input_count; k++) {
      uint32_t producer = p->graph->value[primitive->input[k]].producer;
      if (producer != FT_NONE && owner[producer] > owner[i])
        FT_FAIL(error, FT_INVALID_ARGUMENT,
                "invariant 3: primitive %u in group %u reads primitive %u of group %u", i,
                owner[i], producer, owner[producer]);
    }
  }
  return FT_OK;
}

static bool lists(const ft_group *group, uint32_t root) {
  for (uint32_t i = 0; i < group->output_count; i++)
    if (group->output[i] == root) return true;
  return false;
}

static ft_status check_outputs(const ft_partition *p, const uint32_t *owner,
                               ft_error *error) {
  for (uint32_t i = 0; i < p->graph->primitive_count; i++) {
    uint32_t root = p->graph->primitive[i].output;
    const ft_value *v = &p->graph->value[root];
    bool needed = v->is_output;
    for (uint32_t c = 0; c < v->consumer_count; c++)
      needed |= owner[v->consumer[c]] != owner[i];
    if (needed && !lists(&p->group[owner[i]], root))
      FT_FAIL(error, FT_INVALID_ARGUMENT,
              "invariant 4: primitive %u ('%s') is needed outside group %u, which does "
              "not put it out",
              i, v->name, owner[i]);
  }
  return FT_OK;
}

static ft_status check_all(const ft_partition *p, ft_arena *arena, ft_error *error) {
  uint32_t *owner = FT_NEW_ARRAY(arena, uint32_t, p->graph->primitive_count);
  uint32_t *order = FT_NEW_ARRAY(arena, uint32_t, p->group_count);
  FT_OOM_IF(!owner || !order, error);
  FT_TRY(find_owners(p, owner, error));
  FT_TRY(sort_groups(p, owner, arena, order, error));
  FT_TRY(check_order(p, owner, error));
  return check_outputs(p, owner, error);
}

ft_status ft_partition_check(const ft_partition *partition, ft_error *error) {
  ft_arena *scratch = ft_arena_create(ft_allocator_system());
  FT_OOM_IF(!scratch, error);
  ft_status status = check_all(partition, scratch, error);
  ft_arena_destroy(scratch);
  return status;
}

ft_status ft_partition_make(const ft_graph *graph, const ft_group *group, uint32_t count,
                            ft_arena *arena, ft_partition *out, ft_error *error) {
  ft_partition given = {graph, count, group};
  uint32_t *owner = FT_NEW_ARRAY(arena, uint32_t, graph->primitive_count);
  uint32_t *order = FT_NEW_ARRAY(arena, uint32_t, count);
  ft_group *sorted = FT_NEW_ARRAY(arena, ft_group, count);
  FT_OOM_IF(!owner || !order || !sorted, error);
  FT_TRY(find_owners(&given, owner, error));
  FT_TRY(sort_groups(&given, owner, arena, order, error));
  for (uint32_t i = 0; i < count; i++) sorted[i] = group[order[i]];
  *out = (ft_partition){graph, count, sorted};
  return ft_partition_check(out, error);
}
