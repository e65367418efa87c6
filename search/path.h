// path - shortest paths over the lattice, forwards and backwards.
//
// Costs are compared first by how many groups have none (infinite), then by the sum of
// the others, then by the number of groups; of equals the one met first wins. So a
// partition that can run always beats one that cannot, and one input has one answer.
#ifndef FT_SEARCH_PATH_H
#define FT_SEARCH_PATH_H

#include "search/lattice.h"

typedef struct ft_path_cost {
  uint32_t missing;  // groups without a finite cost
  double ns;         // sum of the finite ones
  uint32_t groups;
} ft_path_cost;

static inline bool ft_path_is_less(ft_path_cost a, ft_path_cost b) {
  if (a.missing != b.missing) return a.missing < b.missing;
  if (a.ns < b.ns || b.ns < a.ns) return a.ns < b.ns;
  return a.groups < b.groups;
}
ft_path_cost ft_path_add(ft_path_cost a, double cost_ns);

// A lattice whose steps know their groups.
typedef struct ft_priced_lattice {
  const ft_lattice *lattice;
  const uint32_t *group_of_set;  // [lattice->set_count] FT_NONE: not legal
  const double *cost_ns;         // [groups] >= 0 or infinite
} ft_priced_lattice;

typedef struct ft_path {
  ft_path_cost cost;
  uint32_t set_count;
  const ft_set *set;  // in an order in which they can run
} ft_path;

// The cheapest way from nothing to everything, in |arena|. Asserts that there is one
// (every singleton is legal). O(steps).
FT_MUST_CHECK ft_status ft_path_solve(const ft_priced_lattice *priced, ft_arena *arena,
                                      ft_path *out, ft_error *error);

// out_ns[group]: the cheapest path that uses it; infinite when every one of them has a
// group without a cost. O(steps).
FT_MUST_CHECK ft_status ft_path_through(const ft_priced_lattice *priced,
                                        uint32_t group_count, ft_arena *arena,
                                        double *out_ns, ft_error *error);

#endif
