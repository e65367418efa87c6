// tuning - which candidates are measured next.
//
//  1. The default schedule of every group: those of the baseline partitions first, then
//     by what measuring can win: instances x bytes the group keeps out of memory.
//  2. All other schedules by promise: how much a group would have to gain to be on the
//     best path, as a share of its own time (0 on the best paths), plus a little for
//     each schedule tried, so that a long list does not starve a near miss.
#ifndef FT_SEARCH_TUNING_H
#define FT_SEARCH_TUNING_H

#include "search/budget.h"
#include "search/strategy.h"

typedef struct ft_pick {
  uint32_t group, candidate;
} ft_pick;

// What the partitions so far say about the groups.
typedef struct ft_tuning_hints {
  const uint8_t *rank;     // [groups] its first baseline, smaller first; UINT8_MAX: none
  const bool *is_on_path;  // [groups] in a partition that is to be tuned well
  double best_ns;          // of the best partition; infinite: none yet
} ft_tuning_hints;

// Some candidate is not handed out yet, or a group not opened.
bool ft_tuning_has_work(const ft_catalog *catalog);

// Writes up to |room| picks and marks them handed out; *out_count may be 0 when the
// groups opened have no candidates. While a group is without a trial, only defaults
// are picked.
FT_MUST_CHECK ft_status ft_tuning_pick(const ft_landscape *land,
                                       const ft_tuning_hints *hints, uint32_t room,
                                       ft_arena *arena, ft_pick *out, uint32_t *out_count,
                                       ft_error *error);

// Hands the picks to the runner and records what it says. FT_INTERRUPTED after recording
// what came; interrupted trials are nobody's and count as not measured.
FT_MUST_CHECK ft_status ft_tuning_measure(ft_catalog *catalog, const ft_runner *runner,
                                          const ft_pick *pick, uint32_t count,
                                          ft_arena *arena, ft_budget *budget,
                                          ft_error *error);

#endif
