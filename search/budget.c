#include "search/budget.h"

enum { FIRST_BATCH = 8 };

static uint64_t elapsed(const ft_budget *budget, uint64_t now_ns) {
  return now_ns > budget->start_ns ? now_ns - budget->start_ns : 0;
}

const char *ft_budget_stop(const ft_budget *budget, uint64_t now_ns) {
  if (budget->max_trials && budget->trials >= budget->max_trials) return "trials";
  if (budget->limit_ns && elapsed(budget, now_ns) >= budget->limit_ns) return "time";
  return NULL;
}

uint32_t ft_budget_room(const ft_budget *budget, uint64_t now_ns, uint32_t batch) {
  uint64_t room = batch;
  if (budget->max_trials && budget->max_trials - budget->trials < room)
    room = budget->max_trials - budget->trials;
  if (!budget->limit_ns) return (uint32_t)room;
  uint64_t fits = FIRST_BATCH;
  if (budget->trials) {
    uint64_t spent = elapsed(budget, now_ns);
    uint64_t left = spent < budget->limit_ns ? budget->limit_ns - spent : 0;
    fits = left / (budget->measuring_ns / budget->trials + 1);
    if (!fits) fits = 1;
  }
  return (uint32_t)(fits < room ? fits : room);
}

void ft_budget_spend(ft_budget *budget, uint32_t trials, uint64_t took_ns) {
  budget->trials += trials;
  budget->measuring_ns += took_ns;
}
