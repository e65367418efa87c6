// statistics - medians with their confidence, and paired comparisons.
#ifndef FT_MEASURE_STATISTICS_H
#define FT_MEASURE_STATISTICS_H

#include "core/arena.h"
#include "graph/trial.h"

// Median and its 95 % confidence interval from order statistics (binomial, exact for
// n <= 70, normal approximation above; n < 6: the whole range). |sample| is sorted in
// place. n = 0 gives zeros.
ft_time ft_median_ns(uint64_t *sample, uint32_t n);
// The same over unflagged samples (order kept); all when every one is flagged other
// than by warm-up.
ft_time ft_median_unflagged(const uint64_t *sample, const uint8_t *flags, uint32_t n,
                            ft_arena *scratch);
// As above with the caller's |room| for n samples: allocates nothing.
ft_time ft_median_unflagged_in(const uint64_t *sample, const uint8_t *flags, uint32_t n,
                               uint64_t *room);
// Paired sign test, two-sided p-value that a and b are equally fast (ties dropped).
// Exact up to 1,000 untied pairs, normal approximation above. 1 when all are ties.
double ft_sign_test(const uint64_t *a, const uint64_t *b, uint32_t n);

#endif
