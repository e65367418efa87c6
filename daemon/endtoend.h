// endtoend - whole plans, run against each other: partitions become plans, plans become
// programs, and paired rounds decide which one is served (daemon/contest.h has the rule).
#ifndef FT_DAEMON_ENDTOEND_H
#define FT_DAEMON_ENDTOEND_H

#include "daemon/contest.h"
#include "daemon/session.h"

// One of the plans, ready to run. Several may be one plan (same hash): then |same_as|
// names the first of them, and only that one is run.
typedef struct ft_contender {
  bool is_present;  // false: |absence| says why
  uint32_t same_as;
  ft_plan plan;
  const ft_module *module;  // [group_count]
  ft_program program;
  const char *absence;
  int64_t plan_id;   // its row in the store; 0: none yet
  const char *role;  // of that row
} ft_contender;

// The largest shared object of one kernel that is read.
enum { FT_PLAN_OBJECT_BYTES = 64 << 20 };

// Builds the groups of |plan| and fills entry, hashes, launch shape and facts. |alone|:
// each in a shared object of its own, as plans are stored; else packed as trials are
// (found in the cache then), and binary_hash stays zero.
// A kernel that does not build is INTERNAL: it was built before.
FT_MUST_CHECK ft_status ft_plan_build(ft_session *session, ft_plan *plan, bool alone,
                                      ft_arena *arena, const ft_module **out_module,
                                      ft_error *error);

// When things end: times of ft_clock_ns. UINT64_MAX: never.
typedef struct ft_deadlines {
  uint64_t budget_ns;  // nothing begins that does not fit before it, but what must be
  uint64_t grace_ns;   // when also the rest is left out
} ft_deadlines;

// The contenders, from a search's partitions and from the store's served plan (the
// incumbent), with programs over |input|; kernels as trials built them. In order of
// importance (unfused, tuned, incumbent, greedy, primitive, the next best): those whose
// rounds do not fit into the budget any more are left out, saying so; unfused and tuned
// never are.
FT_MUST_CHECK ft_status ft_contenders_make(ft_session *session, const ft_graph *graph,
                                           const ft_search_result *search,
                                           const ft_tensor *input,
                                           const ft_deadlines *deadlines, ft_arena *arena,
                                           ft_contender out[FT_CONTENDERS],
                                           ft_error *error);

// Runs each distinct contender once and compares it with the reference; one that is
// wrong, fails, or whose turn comes after the budget's end, is taken out. The reference
// takes at most 5 s, and a tenth of what is left of the budget.
FT_MUST_CHECK ft_status ft_contenders_check(ft_session *session, const ft_graph *graph,
                                            const ft_tensor *input, uint64_t seed,
                                            const ft_deadlines *deadlines,
                                            ft_arena *arena, ft_contender *contender,
                                            uint32_t count, ft_error *error);

// Rounds of all: nobody leaves, nothing is decided.
typedef struct ft_rounds {
  ft_time time[FT_CONTENDERS];   // samples 0: not run
  ft_compare_result comparison;  // of the distinct contenders, in order
  uint32_t distinct;
  uint32_t column[FT_CONTENDERS];   // which contender each column of comparison is
  uint64_t *sample[FT_CONTENDERS];  // [comparison.rounds]; NULL: not run
} ft_rounds;
FT_MUST_CHECK ft_status ft_contenders_compare(ft_session *session,
                                              const ft_contender *contender,
                                              uint32_t count, uint32_t max_rounds,
                                              uint64_t limit_ns, uint64_t seed,
                                              ft_arena *arena, ft_rounds *out,
                                              ft_error *error);

typedef struct ft_decision {
  uint32_t served;              // contender, never one that is the same as an earlier one
  ft_time time[FT_CONTENDERS];  // samples 0: not run
  ft_contest contest;           // of the distinct contenders, in order
  ft_contest_verdict verdict;   // in columns of |contest|
  uint32_t column[FT_CONTENDERS];  // which contender each column is
} ft_decision;

// Rounds until the budget ends (as many as a claim needs, until the grace does), and the
// contest's verdict. Base: unfused, or, when that
// did not run, the first that did.
FT_MUST_CHECK ft_status ft_contenders_decide(ft_session *session,
                                             const ft_contender contender[FT_CONTENDERS],
                                             const ft_deadlines *deadlines, uint64_t seed,
                                             ft_arena *arena, ft_decision *out,
                                             ft_error *error);

// Builds the served plan's kernels alone and seals it; those that are the same plan
// become it. *out_is_alone false: the grace ended first, and the plan stays as it is.
FT_MUST_CHECK ft_status ft_contenders_finish(ft_session *session, uint32_t served,
                                             const ft_deadlines *deadlines,
                                             ft_arena *arena,
                                             ft_contender contender[FT_CONTENDERS],
                                             bool *out_is_alone, ft_error *error);

#endif
