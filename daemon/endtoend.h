// endtoend - whole plans, run against each other: partitions become plans, plans become
// programs, an interleaved comparison decides which one is served.
#ifndef FT_DAEMON_ENDTOEND_H
#define FT_DAEMON_ENDTOEND_H

#include "daemon/session.h"

// One of the four plans, ready to run. Two kinds may share one plan (same hash): then
// |same_as| names the first of them, and only that one is run.
typedef struct ft_contender {
  bool is_present;  // false: the strategy found no complete partition, see |absence|
  ft_plan_kind same_as;
  ft_plan plan;
  const ft_module *module;  // [group_count]
  ft_program program;
  const char *absence;
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

// The contenders from a search's partitions, with programs over |input|; kernels packed.
FT_MUST_CHECK ft_status ft_contenders_make(ft_session *session,
                                           const ft_search_result *search,
                                           const ft_tensor *input, ft_arena *arena,
                                           ft_contender out[FT_PLAN_KINDS],
                                           ft_error *error);

// Runs each distinct contender once and compares it with the reference; one that is
// wrong or fails is taken out (is_present = false, |absence| says why).
FT_MUST_CHECK ft_status ft_contenders_check(ft_session *session, const ft_graph *graph,
                                            const ft_tensor *input, uint64_t seed,
                                            ft_arena *arena,
                                            ft_contender contender[FT_PLAN_KINDS],
                                            ft_error *error);

typedef struct ft_decision {
  ft_plan_kind served;
  double sign_p;                 // served against unfused
  ft_time time[FT_PLAN_KINDS];   // samples 0: not run
  ft_compare_result comparison;  // of the distinct contenders, in order of kind
  uint32_t distinct;
  ft_plan_kind column[FT_PLAN_KINDS];  // which contender each column of comparison is
  uint64_t *sample[FT_PLAN_KINDS];     // [comparison.rounds]; NULL: not run
} ft_decision;

// Interleaved rounds, at most |max_rounds| and |limit_ns|; fills all of *out but |served|
// and |sign_p|.
FT_MUST_CHECK ft_status ft_contenders_compare(ft_session *session,
                                              const ft_contender contender[FT_PLAN_KINDS],
                                              uint32_t max_rounds, uint64_t limit_ns,
                                              uint64_t seed, ft_arena *arena,
                                              ft_decision *out, ft_error *error);

// Interleaved rounds for at most |limit_ns|. The fastest median is served when it beats
// unfused by more than 1 % with p < 0.05; else unfused is.
FT_MUST_CHECK ft_status ft_contenders_decide(ft_session *session,
                                             const ft_contender contender[FT_PLAN_KINDS],
                                             uint64_t limit_ns, uint64_t seed,
                                             ft_arena *arena, ft_decision *out,
                                             ft_error *error);

// Builds the served plan's kernels alone and seals it; those that are the same plan
// become it.
FT_MUST_CHECK ft_status ft_contenders_finish(ft_session *session, ft_plan_kind served,
                                             ft_contender contender[FT_PLAN_KINDS],
                                             ft_arena *arena, ft_error *error);

#endif
