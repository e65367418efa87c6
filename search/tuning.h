// tuning - which candidates are measured next.
//
//  1. The default schedule of every group of the baseline partitions, in their order.
//  2. Groups without a trial on the PATHS partitions with the least promise
//     (search/promise.h), the best of them first: their default schedule.
//  3. More schedules for groups of that best one, and of the partitions that are to be
//     tuned well, by what they may still gain there: a quarter of the room at least.
//  4. More schedules for the groups on the other paths.
//
// First the promise of a group that was not measured is a guess; when nothing is left to
// do for the best path by those, it is the bound, and when nothing is left then, the
// search is complete: groups off the path were measured or not, they cannot win.
#ifndef FT_SEARCH_TUNING_H
#define FT_SEARCH_TUNING_H

#include "search/budget.h"
#include "search/strategy.h"

typedef struct ft_pick {
  uint32_t group, candidate;
} ft_pick;

// What the partitions so far say about the groups.
typedef struct ft_tuning_hints {
  const uint8_t *rank;   // [groups] its first baseline, smaller first; UINT8_MAX: none
  const uint32_t *uses;  // [groups] instances in a partition that is to be tuned well
  double best_ns;        // of the best partition; infinite: none yet
  bool is_exhaustive;    // every candidate of every group, whatever it promises
} ft_tuning_hints;

// Writes up to |room| picks and marks them handed out. *out_is_done: there is nothing
// left that could change the answer; else *out_count may still be 0, when the groups
// opened have no candidates.
FT_MUST_CHECK ft_status ft_tuning_pick(const ft_landscape *land,
                                       const ft_tuning_hints *hints, uint32_t room,
                                       ft_arena *arena, ft_pick *out, uint32_t *out_count,
                                       bool *out_is_done, ft_error *error);

// Hands the picks to the runner and records what it says; a trial that is PENDING still
// means that the runner has no answer, and the candidate is skipped. FT_INTERRUPTED after
// recording what came; interrupted trials are nobody's and count as not measured.
FT_MUST_CHECK ft_status ft_tuning_measure(ft_catalog *catalog, const ft_runner *runner,
                                          const ft_pick *pick, uint32_t count,
                                          ft_arena *arena, ft_budget *budget,
                                          ft_error *error);

#endif
