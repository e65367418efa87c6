// endtoend_private - shared by the endtoend*.c files.
#ifndef FT_DAEMON_ENDTOEND_PRIVATE_H
#define FT_DAEMON_ENDTOEND_PRIVATE_H

#include "core/clock.h"
#include "daemon/endtoend.h"

// What displacing the caches before a run may take.
enum { FT_FLUSH_NS = 10000000 };

static inline uint64_t ft_left_ns(uint64_t until_ns) {
  uint64_t now = ft_clock_ns();
  return now < until_ns ? until_ns - now : 0;
}

// Contenders in order of importance: place 0 is unfused, then tuned, ...
static inline uint32_t ft_contender_at(uint32_t place) {
  static const uint32_t first[] = {FT_PLAN_UNFUSED, FT_PLAN_TUNED, FT_PLAN_INCUMBENT,
                                   FT_PLAN_GREEDY, FT_PLAN_PRIMITIVE};
  uint32_t count = sizeof first / sizeof *first;
  return place < count ? first[place] : FT_PLAN_KBEST + place - count;
}

// The sum of the plan's group times.
double ft_plan_additive_ns(const ft_plan *plan);

#endif
