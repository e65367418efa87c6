#include "measure/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT_LIMIT = 70, SIGN_EXACT_LIMIT = 1000 };

static int ascending(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

// How many samples to leave out at each end so that the rest covers the median with
// probability >= 0.95: the largest k with 2 P(Binomial(n, 1/2) <= k - 1) <= 0.05.
static uint32_t trimmed_exact(uint32_t n) {
  double term = ldexp(1.0, -(int)n), below = 0.0;  // term = C(n, k) / 2^n
  uint32_t k = 0;
  for (;; k++) {
    below += term;
    if (2.0 * below > 0.05) return k;
    term = term * (double)(n - k) / (double)(k + 1);
  }
}

static uint32_t trimmed_normal(uint32_t n) {
  // 1.959964 is the 97.5 % quantile; half a count of continuity.
  double k = ((double)n + 1.0 - 1.959964 * sqrt((double)n)) / 2.0;
  return k > 0.0 ? (uint32_t)k : 0;
}

ft_time ft_median_ns(uint64_t *sample, uint32_t n) {
  ft_time out = {0};
  if (n == 0) return out;
  qsort(sample, n, sizeof *sample, ascending);
  uint64_t low = sample[(n - 1) / 2], high = sample[n / 2];
  uint32_t cut = n < 6 ? 0 : n <= EXACT_LIMIT ? trimmed_exact(n) : trimmed_normal(n);
  // Order statistics k and n + 1 - k, counted from 1; k = 0 has no coverage to give.
  uint32_t first = cut ? cut - 1 : 0;
  out.median_ns = low + (high - low) / 2;
  out.low_ns = sample[first];
  out.high_ns = sample[n - 1 - first];
  out.samples = n;
  return out;
}

static uint32_t gather(const uint64_t *sample, const uint8_t *flags, uint32_t n,
                       uint8_t refused, uint64_t *out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; i++)
    if (!(flags[i] & refused)) out[count++] = sample[i];
  return count;
}

ft_time ft_median_unflagged_in(const uint64_t *sample, const uint8_t *flags, uint32_t n,
                               uint64_t *room) {
  uint32_t count = gather(sample, flags, n, 0xff, room);
  if (count == 0) count = gather(sample, flags, n, FT_SAMPLE_WARM_UP, room);
  return ft_median_ns(room, count);
}

ft_time ft_median_unflagged(const uint64_t *sample, const uint8_t *flags, uint32_t n,
                            ft_arena *scratch) {
  uint64_t *room = FT_NEW_ARRAY(scratch, uint64_t, n);
  return room ? ft_median_unflagged_in(sample, flags, n, room) : (ft_time){0};
}

// P(Binomial(n, 1/2) <= k), k <= n / 2.
static double binomial_tail(uint32_t n, uint32_t k) {
  if (n > SIGN_EXACT_LIMIT) {
    double z = ((double)k + 0.5 - (double)n / 2.0) / (sqrt((double)n) / 2.0);
    return 0.5 * erfc(-z / sqrt(2.0));
  }
  // From the largest term down: nothing is lost, and what underflows is nothing.
  double term = exp(lgamma((double)n + 1) - lgamma((double)k + 1) -
                    lgamma((double)(n - k) + 1) - (double)n * log(2.0));
  double sum = 0.0;
  for (uint32_t i = k;; i--) {
    sum += term;
    if (i == 0) return sum;
    term = term * (double)i / (double)(n - i + 1);
  }
}

double ft_sign_test(const uint64_t *a, const uint64_t *b, uint32_t n) {
  uint32_t less = 0, greater = 0;
  for (uint32_t i = 0; i < n; i++) {
    less += a[i] < b[i];
    greater += a[i] > b[i];
  }
  uint32_t untied = less + greater;
  if (untied == 0) return 1.0;
  double p = 2.0 * binomial_tail(untied, less < greater ? less : greater);
  return p < 1.0 ? p : 1.0;
}
