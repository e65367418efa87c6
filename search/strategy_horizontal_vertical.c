// Greedy: first siblings that share an input, in order of value; then, as XLA's
// priority fusion does, always the producer and consumer whose merge gains most, until
// no merge gains. A merge is dropped when it would close a cycle, so the quotient stays
// acyclic. Gain is the measured time saved: both parts and the merge were measured. When
// hopeful, a merge of measured parts that was never tried is taken for the bytes it
// saves, at the fastest pace measured (the launch counts as one byte), unless its bound
// says that it cannot gain; then it is measured, and nothing is built on it before.
// Source: search_and_codegen 2.1 and 4; xla priority_fusion.cc.
#include <math.h>

#include "search/forced.h"
#include "search/promise.h"
#include "search/quotient.h"
#include "search/strategy.h"

typedef struct merge {
  double gain_ns;
  uint32_t a, b;              // parts, a < b
  uint32_t stamp_a, stamp_b;  // stale when a part has changed since
} merge;

typedef struct greedy {
  const ft_landscape *land;
  ft_arena *arena;
  ft_quotient quotient;
  uint32_t *stamp;  // [primitives] rises with each change of the part
  double ns_per_byte;
  merge *heap;
  size_t heap_count, heap_capacity;
} greedy;

// ---- gains ---------------------------------------------------------------------

static double gain_of(const greedy *g, uint32_t a, uint32_t b, uint32_t both) {
  const ft_catalog_group *group = g->land->catalog->group;
  const ft_catalog_group *x = &group[a], *y = &group[b], *xy = &group[both];
  if (!x->is_measured || !y->is_measured) return -INFINITY;
  double apart_ns = x->cost_ns + y->cost_ns;
  if (xy->is_measured) return apart_ns - xy->cost_ns;
  bool is_untried = xy->next == 0 && !(xy->is_open && xy->space == 0);
  if (!g->land->is_hopeful || !is_untried || xy->bound_ns >= apart_ns) return -INFINITY;
  double bytes = ft_catalog_bytes(x) + ft_catalog_bytes(y) - ft_catalog_bytes(xy);
  return fmin((bytes + 1) * g->ns_per_byte, apart_ns);
}

// -infinity when they must stay apart.
static ft_status weigh(greedy *g, uint32_t a, uint32_t b, double *out_ns,
                       ft_error *error) {
  const ft_landscape *land = g->land;
  ft_set joined;
  uint32_t group[3];
  *out_ns = -INFINITY;
  if (!ft_set_join(g->quotient.part[a], g->quotient.part[b], &joined)) return FT_OK;
  if (ft_set_spread(joined) > land->span || ft_set_count(joined) > land->window)
    return FT_OK;
  if (ft_quotient_has_detour(&g->quotient, a, b) ||
      ft_quotient_has_detour(&g->quotient, b, a))
    return FT_OK;
  FT_TRY(ft_catalog_judge(land->catalog, joined, &group[2], NULL, error));
  if (group[2] == FT_NONE) return FT_OK;
  FT_TRY(ft_catalog_judge(land->catalog, g->quotient.part[a], &group[0], NULL, error));
  FT_TRY(ft_catalog_judge(land->catalog, g->quotient.part[b], &group[1], NULL, error));
  *out_ns = gain_of(g, group[0], group[1], group[2]);
  return FT_OK;
}

// The merged part is a; b is empty from now on.
static void unite(greedy *g, uint32_t a, uint32_t b) {
  ft_quotient_unite(&g->quotient, a, b);
  g->stamp[a]++;
  g->stamp[b]++;
}

// ---- horizontal ----------------------------------------------------------------

static ft_status merge_siblings(greedy *g, uint32_t first, uint32_t second,
                                ft_error *error) {
  uint32_t a = g->quotient.owner[first], b = g->quotient.owner[second];
  if (a == b || ft_quotient_has_edge(&g->quotient, a, b) ||
      ft_quotient_has_edge(&g->quotient, b, a))
    return FT_OK;
  double gain_ns;
  FT_TRY(weigh(g, a < b ? a : b, a < b ? b : a, &gain_ns, error));
  if (gain_ns > 0) unite(g, a < b ? a : b, a < b ? b : a);
  return FT_OK;
}

static ft_status merge_horizontally(greedy *g, ft_error *error) {
  const ft_graph *graph = g->land->graph;
  for (uint32_t r = 0; r < graph->value_count; r++) {
    const ft_value *root = &graph->value[r];
    if (root->root != r || ft_value_is_immediate(graph, r)) continue;
    for (uint32_t i = 0; i < root->consumer_count; i++)
      for (uint32_t k = i + 1; k < root->consumer_count; k++) {
        if (root->consumer[k] - root->consumer[i] >= g->land->span) break;
        FT_TRY(merge_siblings(g, root->consumer[i], root->consumer[k], error));
      }
  }
  return FT_OK;
}

// ---- vertical: a heap of merges ------------------------------------------------

static bool comes_first(const merge *x, const merge *y) {
  if (x->gain_ns > y->gain_ns || x->gain_ns < y->gain_ns) return x->gain_ns > y->gain_ns;
  return x->a != y->a ? x->a < y->a : x->b < y->b;
}

static ft_status heap_push(greedy *g, merge item, ft_error *error) {
  FT_OOM_IF(FT_GROW(g->arena, &g->heap, g->heap_count, &g->heap_capacity), error);
  size_t at = g->heap_count++;
  for (; at && comes_first(&item, &g->heap[(at - 1) / 2]); at = (at - 1) / 2)
    g->heap[at] = g->heap[(at - 1) / 2];
  g->heap[at] = item;
  return FT_OK;
}

static merge heap_pop(greedy *g) {
  merge top = g->heap[0], item = g->heap[--g->heap_count];
  size_t at = 0;
  for (size_t child; (child = at * 2 + 1) < g->heap_count; at = child) {
    if (child + 1 < g->heap_count && comes_first(&g->heap[child + 1], &g->heap[child]))
      child++;
    if (!comes_first(&g->heap[child], &item)) break;
    g->heap[at] = g->heap[child];
  }
  g->heap[at] = item;
  return top;
}

static ft_status consider(greedy *g, uint32_t a, uint32_t b, ft_error *error) {
  if (a > b) return consider(g, b, a, error);
  double gain_ns;
  FT_TRY(weigh(g, a, b, &gain_ns, error));
  if (!(gain_ns > 0)) return FT_OK;
  return heap_push(g, (merge){gain_ns, a, b, g->stamp[a], g->stamp[b]}, error);
}

// Every edge in or out of the part; when |is_first_pass| only those out of it.
static ft_status consider_part(greedy *g, uint32_t part, bool is_first_pass,
                               ft_error *error) {
  const ft_dag *dag = g->land->dag;
  uint32_t member[FT_SET_SPREAD], count = ft_set_list(g->quotient.part[part], member);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t v = member[i];
    for (uint32_t k = dag->consumer_at[v]; k < dag->consumer_at[v + 1]; k++)
      if (g->quotient.owner[dag->consumer[k]] != part)
        FT_TRY(consider(g, part, g->quotient.owner[dag->consumer[k]], error));
    for (uint32_t k = dag->producer_at[v]; !is_first_pass && k < dag->producer_at[v + 1];
         k++)
      if (g->quotient.owner[dag->producer[k]] != part)
        FT_TRY(consider(g, part, g->quotient.owner[dag->producer[k]], error));
  }
  return FT_OK;
}

static ft_status merge_vertically(greedy *g, ft_error *error) {
  for (uint32_t v = 0; v < g->land->dag->count; v++)
    if (g->quotient.owner[v] == v) FT_TRY(consider_part(g, v, true, error));
  while (g->heap_count) {
    merge best = heap_pop(g);
    if (best.stamp_a != g->stamp[best.a] || best.stamp_b != g->stamp[best.b]) continue;
    // Other merges since may have led a way around.
    if (ft_quotient_has_detour(&g->quotient, best.a, best.b) ||
        ft_quotient_has_detour(&g->quotient, best.b, best.a))
      continue;
    unite(g, best.a, best.b);
    FT_TRY(consider_part(g, best.a, false, error));
  }
  return FT_OK;
}

// ---- the strategy --------------------------------------------------------------

// What must share a kernel is joined from the start.
static ft_status join_forced(greedy *g, ft_error *error) {
  if (!ft_forced_is_needed(g->land)) return FT_OK;
  ft_division least;
  FT_TRY(ft_forced_divide(g->land, false, g->arena, &least, error));
  for (uint32_t i = 0; i < least.count; i++)
    if (ft_set_count(least.set[i]) > 1) ft_quotient_gather(&g->quotient, least.set[i]);
  return FT_OK;
}

ft_status ft_strategy_horizontal_vertical_divide(const ft_landscape *land,
                                                 ft_arena *arena, ft_division *out,
                                                 ft_error *error) {
  greedy g = {
      .land = land, .arena = arena, .ns_per_byte = ft_promise_pace(land->catalog)};
  FT_TRY(ft_quotient_make(land->dag, arena, &g.quotient, error));
  g.stamp = FT_NEW_ARRAY(arena, uint32_t, land->dag->count);
  FT_OOM_IF(!g.stamp, error);
  FT_TRY(join_forced(&g, error));
  FT_TRY(merge_horizontally(&g, error));
  FT_TRY(merge_vertically(&g, error));
  uint32_t count = 0;
  for (uint32_t v = 0; v < land->dag->count; v++)
    if (g.quotient.owner[v] == v) g.quotient.part[count++] = g.quotient.part[v];
  *out = (ft_division){count, g.quotient.part, ""};
  return FT_OK;
}
