// budget - when to stop.
#ifndef FT_SEARCH_BUDGET_H
#define FT_SEARCH_BUDGET_H

#include "core/status.h"

// Times are from one monotonic clock and passed in, so that tests need not wait.
typedef struct ft_budget {
  uint64_t start_ns;
  uint64_t limit_ns;      // 0: none
  uint32_t max_trials;    // 0: none
  uint32_t trials;        // handed to the runner
  uint64_t measuring_ns;  // spent in the runner
} ft_budget;

// NULL while there is something left, else "time" or "trials" (static).
const char *ft_budget_stop(const ft_budget *budget, uint64_t now_ns);

// How many candidates the runner may get now: at most |batch| and the trials left, and
// no more than the time left is good for at the pace so far (at least 1; the first
// batch under a time limit is small, to learn the pace).
uint32_t ft_budget_room(const ft_budget *budget, uint64_t now_ns, uint32_t batch);

void ft_budget_spend(ft_budget *budget, uint32_t trials, uint64_t took_ns);

#endif
