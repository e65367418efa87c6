// promise - what a group may still turn out to cost, and how many schedules it deserves.
//
//  1. Of a group that was not measured, the promise is its bound: no kernel is faster. A
//     guess from what its primitives took may stand above the bound, to order the work;
//     never to prove anything.
//  2. Of a measured group whose schedules are not spent, it is below its median: the
//     first few schedules may be off by a lot, later ones by less and less.
//     Where candidates have floors, it is the next one's.
//  3. A group is spent when its quota of schedules was handed out: as many as its share
//  of
//     the best partition asks for, so that what is left to gain is below half a percent
//     of that. From then on its promise is its median. Where candidates have floors,
//     those that can take off more than that are its quota, and nothing is guessed.
//
// Search ends when the path with the least promise is spent (LazySP): no other can beat
// it, as far as bounds hold and schedules are worth their quota.
#ifndef FT_SEARCH_PROMISE_H
#define FT_SEARCH_PROMISE_H

#include "search/catalog.h"

// How many schedules |group| gets while the best partition takes |best_ns| (infinite:
// none yet): the default of each tactic and two more at least, its whole space at most.
// All of them while none worked.
uint32_t ft_promise_quota(const ft_catalog_group *group, double best_ns);
bool ft_promise_is_spent(const ft_catalog_group *group, double best_ns);

// The time that the next schedules could take off a measured group.
double ft_promise_gain_ns(const ft_catalog_group *group);

// Infinite when no kernel is left to try and none worked. |guess_ns| counts only while
// the group is not measured; 0: none.
double ft_promise_ns(const ft_catalog_group *group, double best_ns, double guess_ns);

// A guess for each group: what its primitives took one by one, less the traffic between
// them at the fastest pace measured, and a fifth off, to be rather too hopeful. 0 where
// nothing is known. In |arena|.
FT_MUST_CHECK ft_status ft_promise_guess(ft_catalog *catalog, ft_arena *arena,
                                         double **out_ns, ft_error *error);

// The fewest ns per byte over all measured groups; 0 before there are any.
double ft_promise_pace(const ft_catalog *catalog);

#endif
