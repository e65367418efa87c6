// forced - what follows when some operators must share a kernel (--fuse).
//
// Then one kernel per primitive, or per operator, is no partition: the baselines are the
// ones nearest to it, found over the same lattice.
#ifndef FT_SEARCH_FORCED_H
#define FT_SEARCH_FORCED_H

#include "search/strategy.h"

// Something must share a kernel.
bool ft_forced_is_needed(const ft_landscape *land);

// INVALID_ARGUMENT says which operators can share no kernel and why, or that the
// constraints leave no partition at all.
FT_MUST_CHECK ft_status ft_forced_check(const ft_landscape *land, ft_arena *arena,
                                        ft_error *error);

// The partition that joins the fewest primitives, or (|by_operator|) the fewest of
// different operators, and then has the fewest kernels.
FT_MUST_CHECK ft_status ft_forced_divide(const ft_landscape *land, bool by_operator,
                                         ft_arena *arena, ft_division *out,
                                         ft_error *error);

#endif
