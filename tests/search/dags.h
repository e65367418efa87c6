// dags - dependency graphs without primitives, for what needs no more.
#ifndef FT_TESTS_SEARCH_DAGS_H
#define FT_TESTS_SEARCH_DAGS_H

#include <criterion/criterion.h>

#include "core/rng.h"
#include "search/dag.h"

static inline ft_dag make_dag(ft_arena *arena, uint32_t count, const ft_dag_pair *edge,
                              uint32_t edges, const ft_dag_pair *sibling,
                              uint32_t siblings) {
  ft_dag dag;
  ft_error error = {0};
  ft_status status =
      ft_dag_make(count, edge, edges, sibling, siblings, arena, &dag, &error);
  cr_assert_eq(status, FT_OK, "%s", error.text);
  return dag;
}

static inline ft_dag chain_dag(ft_arena *arena, uint32_t count) {
  ft_dag_pair edge[256];
  for (uint32_t i = 1; i < count; i++) edge[i - 1] = (ft_dag_pair){i - 1, i};
  return make_dag(arena, count, edge, count ? count - 1 : 0, NULL, 0);
}

// 0 -> {1, 2} -> 3
static inline ft_dag diamond_dag(ft_arena *arena) {
  return make_dag(arena, 4, (ft_dag_pair[]){{0, 1}, {0, 2}, {1, 3}, {2, 3}}, 4, NULL, 0);
}

// Each pair an edge with probability |percent|, else a sibling with the same.
static inline ft_dag random_dag(ft_arena *arena, ft_rng *rng, uint32_t count,
                                uint32_t percent) {
  static ft_dag_pair edge[128 * 128], sibling[128 * 128];
  uint32_t edges = 0, siblings = 0;
  cr_assert_leq(count, 128);
  for (uint32_t a = 0; a < count; a++)
    for (uint32_t b = a + 1; b < count; b++)
      if (ft_rng_below(rng, 100) < percent)
        edge[edges++] = (ft_dag_pair){a, b};
      else if (ft_rng_below(rng, 100) < percent)
        sibling[siblings++] = (ft_dag_pair){a, b};
  return make_dag(arena, count, edge, edges, sibling, siblings);
}

static inline bool has_edge(const ft_dag *dag, uint32_t a, uint32_t b) {
  for (uint32_t i = dag->consumer_at[a]; i < dag->consumer_at[a + 1]; i++)
    if (dag->consumer[i] == b) return true;
  return false;
}

// Seen from the lower one, a.
static inline bool are_neighbours(const ft_dag *dag, uint32_t a, uint32_t b) {
  return b - a <= 64 && (dag->neighbour_front[a] >> (b - a - 1) & 1);
}

#endif
