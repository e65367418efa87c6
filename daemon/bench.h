// bench - the stored plans of a model against each other, again: `bench`.
//
// Invariants:
//  1. Measures only: which plan is served, and what any plan row says, stays as it is.
//     The rounds are stored under a run of their own.
//  2. All plans are built in the same way and run in the same rounds, in an order drawn
//     anew for each, after the caches were displaced; a ratio pairs times of one round.
//  3. A plan that is wrong or fails today is out, and says why; the others are timed.
#ifndef FT_DAEMON_BENCH_H
#define FT_DAEMON_BENCH_H

#include "daemon/session.h"

typedef struct ft_bench_options {
  uint64_t limit_ns;  // of the rounds; 0: one minute. At least 9 rounds run in any case
  uint32_t rounds;    // at most; 0: 60
  uint64_t seed;      // of the inputs and the order
} ft_bench_options;

// A plan's time over the served plan's, in the same round: above 1 the served one is
// faster. low, high: 95 % interval of the median of ratios. rounds: those in which
// neither time is flagged (all, when that leaves none).
typedef struct ft_paired_ratio {
  double median, low, high;
  double sign_p;  // two-sided paired sign test that both are equally fast
  uint32_t rounds;
} ft_paired_ratio;

// One of the four stored plans.
typedef struct ft_bench_side {
  bool is_present;
  const char *absence;  // why not; "" when present
  ft_hash plan;         // its id; zero when none is stored
  bool is_served_plan;  // the very plan that is served: then |ratio| is 1
  ft_paired_ratio ratio;
} ft_bench_side;

typedef struct ft_bench_result {
  ft_answer answer;     // the served plan, with the end-to-end times of this run
  ft_plan_kind served;  // the role it is stored under
  uint32_t rounds;
  ft_time
      tuned_time;  // of the plan stored as tuned; the answer's `tuned` is the served's
  ft_bench_side side[FT_PLAN_KINDS];
} ft_bench_result;

// NOT_FOUND when nothing is stored for this very model, dims and target. INTERNAL when
// the served plan no longer builds, is wrong or fails. On FT_INTERRUPTED nothing is
// stored.
FT_MUST_CHECK ft_status ft_session_bench(ft_session *session, const ft_model *model,
                                         const ft_bench_options *options, ft_arena *arena,
                                         ft_bench_result *out, ft_error *error);

// |time| over |base|, paired by round; a flag of either leaves the round out. Ratios are
// taken to a millionth. |rounds| >= 1.
FT_MUST_CHECK ft_status ft_paired_ratio_make(const uint64_t *time, const uint64_t *base,
                                             const bool *is_flagged, uint32_t rounds,
                                             ft_arena *arena, ft_paired_ratio *out,
                                             ft_error *error);

// As `bench --json` prints it (new reference; NULL: out of memory).
json_t *ft_bench_json(const ft_bench_result *result);

#endif
