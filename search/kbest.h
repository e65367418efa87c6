// kbest - the k cheapest partitions of a lattice, each once.
//
// Commuting groups give one partition many paths: {a}, {b} and {b}, {a}. So an ideal
// keeps its k cheapest ways by what they are made of, not by the order; that is exact,
// since what is left of a good partition without its last group is among the best of
// the smaller ideal.
#ifndef FT_SEARCH_KBEST_H
#define FT_SEARCH_KBEST_H

#include "search/path.h"

enum { FT_KBEST_MOST = 16 };

// Names the groups of a path whatever their order: equal partitions, equal keys.
// Different ones collide once in 2^64; then one of them is not listed.
uint64_t ft_division_key(const ft_set *set, uint32_t count);

// out_path[0 .. *out_count), cheapest first (path.h's order, of equals the one met
// first), *out_count <= k <= FT_KBEST_MOST; the first costs what ft_path_solve finds.
// Those with groups without a cost come last. Everything in |arena|, O(steps * k) at
// worst.
FT_MUST_CHECK ft_status ft_kbest_solve(const ft_priced_lattice *priced, uint32_t k,
                                       ft_arena *arena, ft_path *out_path,
                                       uint32_t *out_count, ft_error *error);

#endif
