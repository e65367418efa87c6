// contest - which of several plans is fastest: rounds in which each runs once, and the
// rule that a plan must win by. Knows nothing of plans: contenders are numbers.
//
// Invariants:
//  1. A claim that one contender beats another rests on rounds in which both ran, on
//     more than 1 % between their medians there, and on a paired sign test, p < 0.01.
//  2. The base and the incumbent take part to the end. Another leaves after a stage in
//     which some contender beats it by (1): so the fastest is never among those that
//     left.
//  3. Who is served is decided once, after the last round, not as soon as it looks good.
#ifndef FT_DAEMON_CONTEST_H
#define FT_DAEMON_CONTEST_H

#include "core/arena.h"
#include "graph/trial.h"
#include "measure/runner.h"

enum {
  FT_CONTEST_MOST = 16,    // contenders
  FT_CONTEST_ROUNDS = 60,  // most rounds
  FT_CONTEST_STAGE = 10,   // rounds between two looks at who is beaten
  FT_CONTEST_FEWEST = 8,   // with fewer no sign test reaches p < 0.01
};
#define FT_CONTEST_P 0.01
#define FT_CONTEST_GAIN 0.01

// Who runs the rounds: |count| contenders, |rounds| times, in ft_cpu_runner_compare's
// form, column i is contender[i]. Fewer rounds are fine.
typedef struct ft_contest_runner {
  void *ctx;
  ft_status (*run)(void *ctx, const uint32_t *contender, uint32_t count, uint32_t rounds,
                   ft_arena *arena, ft_compare_result *out, ft_error *error);
  uint64_t (*left_ns)(void *ctx);  // until the budget ends
} ft_contest_runner;

typedef struct ft_contest {
  uint32_t count, base;
  uint32_t incumbent;  // FT_CONTEST_NOBODY: none
  uint32_t rounds;
  uint64_t *time_ns;  // [FT_CONTEST_ROUNDS * count], 0: did not run in that round
  uint8_t *flags;
  bool has_left[FT_CONTEST_MOST];
  const char *ended;  // "rounds", or "time": the budget ended first
} ft_contest;
#define FT_CONTEST_NOBODY UINT32_MAX

// |round_ns|: what a round of all may take, for the first stage; later ones are measured.
// At least one round is run, whatever is left. |base| and |incumbent| < |count| (or
// FT_CONTEST_NOBODY). INTERNAL: a contender died in its round; the text says which.
FT_MUST_CHECK ft_status ft_contest_run(const ft_contest_runner *runner, uint32_t count,
                                       uint32_t base, uint32_t incumbent,
                                       uint64_t round_ns, ft_arena *arena,
                                       ft_contest *out, ft_error *error);

// a's claim over b (invariant 1), from the rounds in which both ran.
typedef struct ft_claim {
  uint32_t rounds;
  double ratio;  // median of a over median of b; 1 without rounds
  double p;      // paired sign test, two-sided; 1 without rounds
  bool beats;
} ft_claim;
FT_MUST_CHECK ft_status ft_contest_claim(const ft_contest *contest, uint32_t a,
                                         uint32_t b, ft_arena *scratch, ft_claim *out,
                                         ft_error *error);
// Over all its rounds; flagged samples leave the median.
FT_MUST_CHECK ft_status ft_contest_time(const ft_contest *contest, uint32_t contender,
                                        ft_arena *scratch, ft_time *out, ft_error *error);

// Who is served. The fastest of those that beat the base challenges; without any, the
// base does. An incumbent stays unless the challenger beats it as well.
typedef struct ft_contest_verdict {
  uint32_t served;
  uint32_t challenger;
  ft_claim over_base;       // of the served one; base against itself: p = 1
  ft_claim over_incumbent;  // of the challenger; p = 1 without an incumbent
  // Faster by more than 1 %, but the rounds were too few to be sure: more time might
  // decide otherwise.
  bool is_open;
} ft_contest_verdict;
FT_MUST_CHECK ft_status ft_contest_decide(const ft_contest *contest, ft_arena *scratch,
                                          ft_contest_verdict *out, ft_error *error);

#endif
