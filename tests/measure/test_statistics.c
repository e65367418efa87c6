#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/rng.h"
#include "measure/statistics.h"

// C(n, k) / 2^n by Pascal's triangle: slow and plain.
static double pmf(uint32_t n, uint32_t k) {
  double row[128] = {1.0};
  for (uint32_t i = 1; i <= n; i++)
    for (uint32_t j = i; j > 0; j--) row[j] += row[j - 1];
  return row[k] * pow(0.5, n);
}

Test(measure_statistics, the_median_of_an_even_count_is_between_the_middle_two) {
  uint64_t s[] = {40, 10, 30, 20};
  ft_time t = ft_median_ns(s, 4);
  cr_expect_eq(t.median_ns, 25);
  cr_expect_eq(t.samples, 4);
  uint64_t high[] = {UINT64_MAX, UINT64_MAX - 2};
  cr_expect_eq(ft_median_ns(high, 2).median_ns, UINT64_MAX - 1);
}

Test(measure_statistics, no_samples_give_zeros) {
  ft_time t = ft_median_ns(NULL, 0);
  cr_expect(t.median_ns == 0 && t.low_ns == 0 && t.high_ns == 0 && t.samples == 0);
}

Test(measure_statistics, fewer_than_six_samples_give_the_whole_range) {
  for (uint32_t n = 1; n < 6; n++) {
    uint64_t s[] = {5, 4, 3, 2, 1};
    ft_time t = ft_median_ns(s, n);
    cr_expect(t.low_ns == 6 - n && t.high_ns == 5, "n = %u", n);
  }
}

// Samples are their own ranks, so low and high tell which order statistics were taken.
Test(measure_statistics, the_interval_is_the_narrowest_that_covers_95_percent_up_to_70) {
  for (uint32_t n = 6; n <= 70; n++) {
    uint64_t s[70];
    for (uint32_t i = 0; i < n; i++) s[i] = n - i;
    ft_time t = ft_median_ns(s, n);
    cr_assert_eq(t.low_ns + t.high_ns, n + 1, "n = %u is symmetric", n);
    double tail = 0.0;  // P(fewer than low of n are below the median)
    for (uint32_t k = 0; k < t.low_ns; k++) tail += pmf(n, k);
    cr_expect_leq(2 * tail, 0.05, "n = %u, low %u", n, (unsigned)t.low_ns);
    cr_expect_gt(2 * (tail + pmf(n, (uint32_t)t.low_ns)), 0.05, "n = %u, low %u", n,
                 (unsigned)t.low_ns);
  }
}

Test(measure_statistics, the_normal_approximation_joins_the_exact_one) {
  for (uint32_t n = 71; n <= 100; n++) {
    uint64_t s[100];
    for (uint32_t i = 0; i < n; i++) s[i] = i + 1;
    ft_time t = ft_median_ns(s, n);
    double tail = 0.0;
    for (uint32_t k = 0; k < t.low_ns; k++) tail += pmf(n, k);
    cr_expect(2 * tail < 0.07 && 2 * (tail + pmf(n, (uint32_t)t.low_ns)) > 0.035,
              "n = %u: low %u covers %g", n, (unsigned)t.low_ns, 1 - 2 * tail);
  }
}

Test(measure_statistics, flagged_samples_leave_the_median) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  const uint64_t s[] = {900, 10, 800, 12, 11};
  const uint8_t f[] = {FT_SAMPLE_WARM_UP, 0, FT_SAMPLE_PREEMPTED, 0, 0};
  ft_time t = ft_median_unflagged(s, f, 5, arena);
  cr_expect(t.median_ns == 11 && t.samples == 3 && t.high_ns == 12);
  cr_expect_eq(s[0], 900, "the order is kept");
  ft_arena_destroy(arena);
}

Test(measure_statistics, when_all_are_flagged_all_but_warm_up_count) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  const uint64_t s[] = {900, 10, 20};
  const uint8_t f[] = {FT_SAMPLE_WARM_UP, FT_SAMPLE_FOREIGN,
                       FT_SAMPLE_PREEMPTED | FT_SAMPLE_DRIFT};
  ft_time t = ft_median_unflagged(s, f, 3, arena);
  cr_expect(t.median_ns == 15 && t.samples == 2);
  cr_expect_eq(ft_median_unflagged(s, f, 1, arena).samples, 0);
  ft_arena_destroy(arena);
}

Test(measure_statistics, the_sign_test_is_the_binomial_sum) {
  for (uint32_t n = 1; n <= 60; n++)
    for (uint32_t wins = 0; wins <= n; wins++) {
      uint64_t a[60], b[60];
      for (uint32_t i = 0; i < n; i++) a[i] = 10, b[i] = i < wins ? 11 : 9;
      uint32_t k = wins < n - wins ? wins : n - wins;
      double tail = 0.0;
      for (uint32_t i = 0; i <= k; i++) tail += pmf(n, i);
      double expected = 2 * tail < 1 ? 2 * tail : 1;
      cr_assert_float_eq(ft_sign_test(a, b, n), expected, 1e-9 * (1 + expected),
                         "n = %u, wins = %u", n, wins);
    }
}

Test(measure_statistics, ties_are_dropped_and_nothing_but_ties_proves_nothing) {
  const uint64_t a[] = {1, 5, 5, 5, 5, 5, 5}, b[] = {1, 6, 6, 6, 6, 6, 6};
  cr_expect_float_eq(ft_sign_test(a, b, 7), 2.0 / 64, 1e-12);
  cr_expect_eq(ft_sign_test(a, a, 7), 1.0);
  cr_expect_eq(ft_sign_test(a, a, 0), 1.0);
}

Test(measure_statistics, thousands_of_pairs_are_judged_by_the_normal_approximation) {
  enum { N = 4000 };
  static uint64_t a[N], b[N];
  for (uint32_t i = 0; i < N; i++) a[i] = 10, b[i] = i < N / 2 + 62 ? 11 : 9;
  // z = 61.5 / 31.62 = 1.945: two-sided 0.0518.
  cr_expect_float_eq(ft_sign_test(a, b, N), 0.0518, 0.0005);
  cr_expect_lt(ft_sign_test(a, b, 1100), 1e-200);
}
