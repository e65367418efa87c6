#include "cost_model/roofline.h"

#include <math.h>

#include "tests/cost_model/workloads.h"
#include "tests/support/limited.h"

#define MIB (1ull << 20)

static ft_arena *arena;
static ft_roofline *roofline;
static ft_predictor predictor;
static ft_error error;

static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_roofline_destroy(roofline);
  ft_arena_destroy(arena);
}
TestSuite(cost_model_roofline, .init = set_up, .fini = tear_down);

static void open_with(const ft_ceiling *ceiling, uint32_t count,
                      const ft_roofline_hooks *hooks) {
  ft_roofline_destroy(roofline);
  cr_assert_eq(
      ft_roofline_create(ceiling, count, hooks, ft_allocator_system(), &roofline, &error),
      FT_OK, "%s", error.text);
  predictor = ft_roofline_predictor(roofline);
}
#define OPEN(hooks, ...)                                                                \
  open_with((const ft_ceiling[]){__VA_ARGS__},                                          \
            (uint32_t)(sizeof((const ft_ceiling[]){__VA_ARGS__}) / sizeof(ft_ceiling)), \
            hooks)
#define ROW(name, size, value) \
  { .kind = FT_CEILING_##name, .bytes = size, .best = value, .median = value }

// Bytes and operations per nanosecond that are easy to divide by.
#define EVERYTHING                                                                       \
  ROW(READ, MIB, 50e9), ROW(WRITE, MIB, 25e9), ROW(COPY, MIB, 40e9), ROW(FMA, 0, 100e9), \
      ROW(FMA_ADD, 0, 150e9), ROW(LAUNCH, 0, 204)

static double bound_of(const ft_workload *workload) {
  return predictor.bound_ns(predictor.self, workload);
}
static double predicted(const ft_workload *workload) {
  double ns = -1;
  ft_candidate candidate = {.workload = workload, .tactic = "test"};
  cr_assert_eq(predictor.predict(predictor.self, &candidate, 1, &ns, &error), FT_OK);
  return ns;
}
static ft_workload *exp_of(int64_t elements) {
  return WORKLOAD(arena, INPUT(elements),
                  {.op = FT_OP_EXP, .in = {0}, .is_output = true});
}
static ft_workload *product_of(int64_t m, int64_t n, int64_t k) {
  return WORKLOAD(arena, INPUT(m, k), INPUT(k, n),
                  {.op = FT_OP_MATMUL, .in = {0, 1}, .is_output = true});
}
static bool is_near(double got, double want) {
  return fabs(got - want) <= 1e-6 * fabs(want);
}
// What a rate per second, over the launch that was in its time, gives in ns.
static double at_rate(double amount, double bytes, double rate) {
  double ns = bytes * 1e9 / rate;
  return amount * (ns - 200) / bytes / 1.02;
}

Test(cost_model_roofline, the_slowest_resource_is_the_bound) {
  OPEN(NULL, EVERYTHING);
  double bytes = 4.0 * 4 * MIB;  // read, and as much written: the writes bind
  double want = 204 / 1.02 + at_rate(bytes, MIB, 25e9);
  cr_expect(is_near(bound_of(exp_of(4 * MIB)), want), "%g, not %g",
            bound_of(exp_of(4 * MIB)), want);
  // 2 m n k of multiply-adds at 100 per ns, far above its bytes.
  want = 204 / 1.02 + 2.0 * 512 * 512 * 512 / 100 / 1.02;
  cr_expect(is_near(bound_of(product_of(512, 512, 512)), want), "%g, not %g",
            bound_of(product_of(512, 512, 512)), want);
}

Test(cost_model_roofline, all_bytes_share_the_best_rate_of_any_mix) {
  OPEN(NULL, ROW(READ, MIB, 50e9), ROW(WRITE, MIB, 50e9), ROW(COPY, MIB, 40e9));
  double want = 2 * 4.0 * MIB / 50 / 1.02;
  cr_expect(is_near(bound_of(exp_of(MIB)), want), "%g, not %g", bound_of(exp_of(MIB)),
            want);
}

Test(cost_model_roofline, rates_count_from_the_second_size_below_upwards) {
  // A cache that survives: fast when small.
  OPEN(NULL, ROW(READ, MIB, 400e9), ROW(READ, 4 * MIB, 200e9), ROW(READ, 16 * MIB, 100e9),
       ROW(READ, 64 * MIB, 50e9));
  // exp reads and writes as much: both as moved bytes, at the rate for their sum.
  cr_expect(is_near(bound_of(exp_of(1000)), 8000.0 / 400 / 1.02));
  cr_expect(is_near(bound_of(exp_of(2 * MIB)), 16.0 * MIB / 200 / 1.02));
  cr_expect(is_near(bound_of(exp_of(8 * MIB)), 64.0 * MIB / 100 / 1.02));
  cr_expect(is_near(bound_of(exp_of(100 * MIB)), 800.0 * MIB / 100 / 1.02));
  // A slow small size was a disturbance: the larger one shows more.
  OPEN(NULL, ROW(READ, MIB, 10e9), ROW(READ, 64 * MIB, 50e9));
  cr_expect(is_near(bound_of(exp_of(1000)), 8000.0 / 50 / 1.02));
}

Test(cost_model_roofline, bounds_and_predictions_grow_with_bytes_and_with_flops) {
  OPEN(NULL, EVERYTHING, ROW(READ, 64 * MIB, 20e9), ROW(WRITE, 64 * MIB, 10e9));
  double bound = 0, prediction = 0;
  for (int64_t n = 1; n < 1 << 28; n *= 3) {
    ft_workload *w = exp_of(n);
    cr_expect_gt(bound_of(w), bound, "%lld elements", (long long)n);
    cr_expect_geq(predicted(w), prediction);
    cr_expect_geq(predicted(w), bound_of(w));
    bound = bound_of(w);
    prediction = predicted(w);
  }
  bound = 0;
  for (int64_t k = 1; k <= 4096; k *= 2) {
    cr_expect_geq(bound_of(product_of(64, 64, k)), bound, "k = %lld", (long long)k);
    bound = bound_of(product_of(64, 64, k));
  }
}

Test(cost_model_roofline, nothing_to_do_has_no_bound_and_a_finite_prediction) {
  OPEN(NULL, EVERYTHING);
  ft_workload *empty = exp_of(0);
  cr_expect_eq(bound_of(empty), 0);
  cr_expect(predicted(empty) >= 1 && isfinite(predicted(empty)));
}

Test(cost_model_roofline, sizes_near_the_largest_do_not_overflow) {
  OPEN(NULL, EVERYTHING);
  ft_workload *huge = exp_of(1ll << 58), *product = product_of(1 << 20, 1 << 20, 1 << 20);
  cr_expect(isfinite(bound_of(huge)) && bound_of(huge) > 1e9);
  cr_expect(isfinite(predicted(huge)) && predicted(huge) >= bound_of(huge));
  cr_expect(isfinite(bound_of(product)) && bound_of(product) > 1e9);
}

Test(cost_model_roofline, without_ceilings_there_is_no_bound) {
  open_with(NULL, 0, NULL);
  cr_expect_eq(bound_of(exp_of(MIB)), 0);
  cr_expect(predicted(exp_of(MIB)) >= 1);
}

Test(cost_model_roofline, rows_that_make_no_sense_are_left_out) {
  OPEN(NULL, ROW(READ, MIB, NAN), ROW(READ, MIB, INFINITY), ROW(READ, MIB, 0),
       ROW(READ, MIB, -1), {.kind = (ft_ceiling_kind)999, .best = 1},
       ROW(READ, MIB, 50e9), ROW(READ, MIB, 70e9));
  uint32_t count;
  const ft_ceiling *rows = ft_roofline_ceilings(roofline, &count);
  cr_assert_eq(count, 1);
  cr_expect_eq(rows[0].best, 50e9);
}

Test(cost_model_roofline, running_out_of_memory_is_said_and_leaves_nothing) {
  for (int left = 0;; left++) {
    limited l = {.left = left};
    ft_allocator heap = limited_allocator(&l);
    ft_status status = ft_roofline_create(NULL, 0, NULL, &heap, &roofline, &error);
    if (status == FT_OK) ft_roofline_destroy(roofline);
    roofline = NULL;
    cr_assert_eq(l.live, 0);
    if (status == FT_OK) break;
    cr_assert_eq(status, FT_OUT_OF_MEMORY);
  }
}

// ---- contradictions
// ---------------------------------------------------------------------

typedef struct notebook {
  uint32_t asked, kept, rows;
  ft_roofline_alarm alarm;
  double fresh_read;      // what measuring anew finds; 0: nothing
  ft_status remeasuring;  // how it ends
} notebook;

static ft_status remeasure(void *self, ft_ceiling *out, uint32_t *out_count,
                           ft_error *why) {
  notebook *n = self;
  n->asked++;
  *out_count = 0;
  if (n->remeasuring != FT_OK) FT_FAIL(why, n->remeasuring, "not today");
  if (n->fresh_read > 0) {
    out[0] = (ft_ceiling)ROW(READ, MIB, n->fresh_read);
    // A size that was not there: bounds must not rise for it.
    out[1] = (ft_ceiling)ROW(READ, 2 * MIB, 1e9);
    *out_count = 2;
  }
  return FT_OK;
}

static ft_status keep(void *self, const ft_roofline_alarm *alarm,
                      const ft_ceiling *ceiling, uint32_t count, ft_error *why) {
  (void)ceiling, (void)why;
  notebook *n = self;
  n->kept++;
  n->rows = count;
  n->alarm = *alarm;
  return FT_OK;
}

static ft_status tell(const ft_workload *workload, uint64_t median_ns) {
  ft_candidate candidate = {.workload = workload, .tactic = "test"};
  ft_trial trial = {.outcome = FT_OUTCOME_OK,
                    .time = {median_ns, median_ns, median_ns, 7}};
  return predictor.contradict(predictor.self, &candidate, &trial, bound_of(workload),
                              &error);
}

#define HOOKS(n)          \
  &(ft_roofline_hooks) {  \
    &(n), remeasure, keep \
  }

Test(cost_model_roofline, a_contradiction_is_kept_and_takes_the_bound_to_the_median) {
  notebook n = {0};
  OPEN(HOOKS(n), EVERYTHING);
  ft_workload *w = exp_of(4 * MIB);
  double before = bound_of(w);
  cr_assert_eq(tell(w, 1000), FT_OK, "%s", error.text);
  cr_expect_leq(bound_of(w), 1000);
  cr_expect_gt(bound_of(w), 990, "no more than needed: %g", bound_of(w));
  cr_assert_eq(n.kept, 1);
  cr_expect_eq(n.asked, 1);
  cr_expect_eq(n.rows, 6);
  cr_expect_eq(n.alarm.kind, FT_CEILING_WRITE, "writes bound it");
  cr_expect_eq(n.alarm.bytes, MIB);
  cr_expect_eq(n.alarm.bound_ns, before);
  cr_expect(n.alarm.after > n.alarm.before && n.alarm.before == 25e9);
  cr_expect_not(n.alarm.is_remeasured || n.alarm.is_explained);
  // Known by now: nothing to tell.
  cr_assert_eq(tell(w, 1000), FT_OK);
  cr_assert_eq(tell(w, 2000), FT_OK);
  cr_expect_eq(n.kept, 1);
}

Test(cost_model_roofline, contradictions_lower_bounds_and_raise_none) {
  notebook n = {.fresh_read = 60e9};
  OPEN(HOOKS(n), EVERYTHING, ROW(READ, 64 * MIB, 20e9), ROW(WRITE, 64 * MIB, 10e9));
  ft_workload *w[24];
  double bound[24];
  int count = 0;
  for (int64_t e = 16; count < 16; e *= 3) w[count++] = exp_of(e);
  for (int64_t k = 1; count < 24; k *= 3) w[count++] = product_of(64, 96, k);
  for (int i = 0; i < count; i++) bound[i] = bound_of(w[i]);
  static const uint64_t medians[] = {900000, 20000, 150, 3, 1};
  for (int m = 0; m < 5; m++)
    for (int i = 0; i < count; i += 3) {
      cr_assert_eq(tell(w[i], medians[m]), FT_OK, "%s", error.text);
      cr_expect_leq(bound_of(w[i]), (double)medians[m]);
      for (int k = 0; k < count; k++) {
        double now = bound_of(w[k]);
        cr_expect_leq(now, bound[k], "workload %d rose from %g to %g", k, bound[k], now);
        bound[k] = now;
      }
    }
}

Test(cost_model_roofline, ceilings_measured_anew_may_explain_it) {
  notebook n = {.fresh_read = 500e9};
  OPEN(HOOKS(n), ROW(READ, MIB, 50e9));
  ft_workload *w = exp_of(MIB);
  cr_assert_eq(tell(w, (uint64_t)(bound_of(w) / 5)), FT_OK);
  cr_assert_eq(n.kept, 1);
  cr_expect(n.alarm.is_remeasured && n.alarm.is_explained);
  cr_expect_eq(n.alarm.after, 500e9);
  uint32_t count;
  cr_expect_not(ft_roofline_ceilings(roofline, &count)[0].is_raised);
  cr_expect_eq(count, 1, "no size that was not there");
}

Test(cost_model_roofline, what_measuring_anew_does_not_explain_is_raised_all_the_same) {
  notebook n = {.fresh_read = 51e9};
  OPEN(HOOKS(n), ROW(READ, MIB, 50e9));
  ft_workload *w = exp_of(MIB);
  cr_assert_eq(tell(w, 100), FT_OK);
  cr_expect(n.alarm.is_remeasured && !n.alarm.is_explained);
  cr_expect_leq(bound_of(w), 100);
  uint32_t count;
  cr_expect(ft_roofline_ceilings(roofline, &count)[0].is_raised);
}

Test(cost_model_roofline, less_than_three_percent_is_kept_without_measuring_anew) {
  notebook n = {.fresh_read = 60e9};
  OPEN(HOOKS(n), ROW(READ, MIB, 50e9));
  ft_workload *w = exp_of(MIB);
  uint64_t median = (uint64_t)(bound_of(w) * 0.98);
  cr_assert_eq(tell(w, median), FT_OK);
  cr_expect_eq(n.asked, 0);
  cr_expect_eq(n.kept, 1);
  cr_expect_leq(bound_of(w), (double)median);
}

Test(cost_model_roofline, a_worker_that_is_gone_or_an_interrupt_still_leaves_evidence) {
  notebook n = {.remeasuring = FT_UNAVAILABLE};
  OPEN(HOOKS(n), EVERYTHING);
  ft_workload *w = exp_of(MIB);
  cr_assert_eq(tell(w, 100), FT_OK);
  cr_expect_eq(n.kept, 1);
  cr_expect_leq(bound_of(w), 100);
  n.remeasuring = FT_INTERRUPTED;
  cr_assert_eq(tell(w, 50), FT_INTERRUPTED);
  cr_expect_eq(n.kept, 2);
  cr_expect_leq(bound_of(w), 50);
}

Test(cost_model_roofline, a_trial_that_failed_contradicts_nothing) {
  notebook n = {0};
  OPEN(HOOKS(n), EVERYTHING);
  ft_candidate candidate = {.workload = exp_of(MIB), .tactic = "test"};
  ft_trial trial = {.outcome = FT_OUTCOME_CRASH, .time = {1, 1, 1, 1}};
  cr_assert_eq(predictor.contradict(predictor.self, &candidate, &trial, 1e6, &error),
               FT_INVALID_ARGUMENT);
  cr_expect_eq(n.kept, 0);
}
