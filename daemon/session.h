// session - one tuning run wired together: the only place that knows every room.
//
// Invariants:
//  1. A trial is written to the store, pending, before it runs; its outcome after. What
//     the store knows is not run again, unless it was interrupted.
//  2. Only this session's runner touches the device while the session is open.
//  3. search sees the builder and this session's runner, never the store.
//  4. A trial that is faster than its bound is kept with the bound, and the ceiling is
//     raised; the run goes on.
//  5. A plan is saved as served only after it ran end to end, was compared with the
//     reference, and beat unfused in the interleaved comparison, and what was served
//     before as well (daemon/contest.h); else that stays, or unfused is served.
//  6. On a target without a device nothing runs: what is served there is predicted, is
//     called so everywhere, and leaves no trial in the store.
#ifndef FT_DAEMON_SESSION_H
#define FT_DAEMON_SESSION_H

#include <jansson.h>

#include "codegen/codegen.h"
#include "cost_model/roofline.h"
#include "daemon/outline_predictor.h"
#include "db/store.h"
#include "graph/import.h"
#include "graph/plan.h"
#include "measure/runner.h"
#include "search/search.h"

typedef struct ft_session_options {
  const char *target;      // "cpu" (NULL), "sm_90", "sim"
  const char *store_path;  // NULL: ft_store_default_path
  const char *
      cache_folder;  // NULL: $FUSETUNE_CACHE, $XDG_CACHE_HOME/fusetune, ~/.cache/fusetune
  const char *const *worker_argv;  // NULL: this executable's hidden verb
  bool test_tactics;
  uint32_t jobs;      // compiler processes; 0: cores
  uint32_t threads;   // of the pool, part of the target; 0: all allowed cpus
  const char *allow;  // "tf32,atomics": what kernels may do beside fp32 sums in a fixed
                      // order; part of the target. NULL: nothing
  uint64_t check_limit_ns;   // wall limit of one checked run of a kernel; 0: 10 s
  uint64_t flush_bytes;      // read before each cold sample; 0: clears all caches
  const volatile int *stop;  // non-zero: save and leave with FT_INTERRUPTED
} ft_session_options;

typedef struct ft_session {
  ft_arena *arena;  // lives as long as the session
  ft_target target;
  ft_store *store;
  int64_t target_id;
  ft_codegen *codegen;
  ft_builder builder;
  ft_cpu_runner *runner;          // NULL on targets without a device
  ft_roofline *roofline;          // NULL until a tuning run opens it (daemon/ceilings.h)
  const ft_chip *chip;            // of a target sm_NN; else NULL
  ft_outline_predictor *outline;  // then; in |arena|
  ft_predictor predictor;         // of |roofline| or |outline|; self NULL: none
  bool is_recalibrated;           // an alarm measured the ceilings anew
  int64_t run_id;                 // of the tuning run; 0: none yet
  const char *store_path, *cache_folder;
  uint64_t check_limit_ns;
  const volatile int *stop;
} ft_session;

// Probes the target, opens the store, starts nothing yet. Close in any case. The session
// stays where it is: parts of it point to others.
// INVALID_ARGUMENT: no such target (the text lists them), more threads than cpus this
// process may use, threads for a target without a device, or an unknown |allow|.
// UNAVAILABLE: no C compiler, or, for sm_NN, no NVRTC; the text says what to install.
FT_MUST_CHECK ft_status ft_session_open(const ft_session_options *options,
                                        ft_session *out, ft_error *error);
void ft_session_close(ft_session *session);

typedef struct ft_model {
  const char *path;
  ft_graph *graph;
  ft_import_report report;
  const ft_constraint_spec *constraints;  // what its plans must keep to; NULL: nothing
} ft_model;
// An ONNX file, or a JSON graph (docs/graph_format.md) when it begins with '{' or is
// called *.json. Errors as ft_import_onnx and ft_import_json have them.
FT_MUST_CHECK ft_status ft_model_load(const char *path, const ft_import_options *options,
                                      ft_arena *arena, ft_model *out, ft_error *error);

// From now on this is a model whose plans keep to |spec| (borrowed): tuning it makes such
// a plan, and a query finds only that. INVALID_ARGUMENT names what is not in the model.
FT_MUST_CHECK ft_status ft_model_constrain(ft_model *model,
                                           const ft_constraint_spec *spec,
                                           ft_arena *arena, ft_error *error);

typedef struct ft_tune_options {
  uint64_t limit_ns;    // whole run; 0: one minute
  uint32_t max_trials;  // 0: none
  uint32_t window, span;
  uint64_t seed;
  const ft_builder
      *builder;      // what the search may try; NULL: all that the session builds
  double until_gap;  // stop searching once the gap is at most this; 0: do not
  void (*progress)(void *ctx, const ft_search_progress *progress);
  void *progress_ctx;
} ft_tune_options;

// The plans that are compared end to end, in this order everywhere. The first four are in
// every answer.
typedef enum ft_plan_kind {
  FT_PLAN_TUNED,
  FT_PLAN_UNFUSED,
  FT_PLAN_PRIMITIVE,
  FT_PLAN_GREEDY,
  FT_PLAN_KINDS,
  FT_PLAN_INCUMBENT = FT_PLAN_KINDS,  // what was served before
  FT_PLAN_KBEST,                      // and the following: the next best partitions
  FT_CONTENDERS = FT_PLAN_KBEST + FT_ALTERNATIVES
} ft_plan_kind;
// The store's role ("kbest" for all that follow), or "incumbent".
const char *ft_plan_kind_text(ft_plan_kind kind);
const char *ft_plan_kind_strategy(ft_plan_kind kind);  // of the first four

// One plan in the end-to-end comparison, as the answer tells it.
typedef struct ft_compared {
  ft_plan_kind kind;
  const char *absence;   // why it did not run; NULL: it did
  ft_plan_kind same_as;  // an earlier one with the very plan; its own kind: none
  ft_hash plan;
  double additive_ns;
  ft_time time;
  bool has_left;  // clearly beaten, so it did not run to the end
} ft_compared;

typedef struct ft_comparison_report {
  uint32_t plan_count;
  const ft_compared *plan;
  uint32_t rounds;
  const char *ended;  // "rounds", or "time": the budget ended first
  bool is_open;  // some plan is more than 1 % faster, but not surely: more time might
                 // decide otherwise
  bool has_incumbent;
  double incumbent_p, incumbent_ratio;  // of the fastest other, against the incumbent
  bool is_alone;  // the served kernels were built each in an object of its own
} ft_comparison_report;

// The trial whose time a group of a plan has: what `repro` takes.
typedef struct ft_group_trial {
  int64_t id;      // 0: not in this store
  ft_hash source;  // as stored; zero: none
} ft_group_trial;

// What `tune`, `query` and `explain` answer.
typedef struct ft_answer {
  const char *model;
  const ft_graph *graph;
  const ft_plan *plan;          // the served one
  const ft_group_trial *trial;  // [groups of the plan]
  const char *match;            // "exact"
  uint32_t refusal_count;  // why neighbours do not share a kernel; not after a tuning run
  const ft_refusal_record *refusal;
  // Only after a tuning run:
  bool is_tuned;     // the members below hold
  bool is_replayed;  // nothing was measured, so nothing was compared or served
  // Sums of the groups' predictions, on a target without a device: there nothing was
  // compared. 0: no such partition. All 0 elsewhere.
  double predicted_ns[FT_PLAN_KINDS];
  ft_plan_kind served;  // which plan won: one of the four, or the incumbent
  double sign_p;        // paired sign test, served against unfused; 1 when unfused won
  ft_comparison_report comparison;
  uint32_t trials, new_trials;        // candidates asked for; those really run
  uint32_t failed[FT_OUTCOME_COUNT];  // trials per outcome
  const ft_search_result *search;
} ft_answer;

// Searches, compares end to end, stores the plans, serves the winner. On FT_INTERRUPTED
// everything measured is saved; *out is not filled. On a target sm_NN every time is a
// prediction, nothing is compared, and the best of the searched, the unfused and the
// greedy plan by prediction is served, as "predicted". INVALID_ARGUMENT: target sim.
FT_MUST_CHECK ft_status ft_session_tune(ft_session *session, const ft_model *model,
                                        const ft_tune_options *options, ft_arena *arena,
                                        ft_answer *out, ft_error *error);

// The best plan by the times in the store, all of them and no others: measures nothing,
// writes nothing (kernels are built). Candidates that the store does not know count as
// untried. So the same store gives the same plan, and a store that a run has filled gives
// the partition which that run found. NOT_FOUND: the store has no complete partition.
FT_MUST_CHECK ft_status ft_session_replay(ft_session *session, const ft_model *model,
                                          const ft_tune_options *options, ft_arena *arena,
                                          ft_answer *out, ft_error *error);

// The stored plan for this very model, dims and target; NOT_FOUND says what is there
// instead. Measures nothing, writes nothing.
FT_MUST_CHECK ft_status ft_session_query(ft_session *session, const ft_model *model,
                                         ft_arena *arena, ft_answer *out,
                                         ft_error *error);

// The trials of |plan|'s groups, in |arena|; writes nothing.
FT_MUST_CHECK ft_status ft_session_plan_trials(ft_session *session, const ft_plan *plan,
                                               ft_arena *arena,
                                               const ft_group_trial **out,
                                               ft_error *error);

// The answer as `--json` prints it (new reference; NULL: out of memory).
json_t *ft_answer_json(const ft_answer *answer);

// ---- run --------------------------------------------------------------------------
typedef struct ft_input_file {
  const char *name;
  ft_tensor tensor;
} ft_input_file;

// Drawn uniformly from [low, high) in place of the default range.
typedef struct ft_input_range {
  const char *name;
  double low, high;
} ft_input_range;

typedef struct ft_run_options {
  uint64_t seed;  // of the inputs that no file gives
  uint32_t file_count, range_count;
  const ft_input_file *file;
  const ft_input_range *range;
  bool verify;
} ft_run_options;

typedef enum ft_verify_method {
  FT_VERIFY_NONE,
  FT_VERIFY_PER_KERNEL,  // each kernel on what it really read, sampled when large
  FT_VERIFY_DENSE        // and each graph output, whole, with the graph's reference
} ft_verify_method;
const char *ft_verify_method_text(ft_verify_method method);  // "per kernel"

// A graph output, or all outputs of one kernel: "kernel 3 (S1): 'a', 'b'".
typedef struct ft_verified {
  const char *name;
  ft_comparison comparison;
} ft_verified;

typedef struct ft_run_result {
  bool is_plan_tuned;  // false: no stored plan, the unfused default was run
  ft_outcome outcome;
  char failure[256];
  uint32_t output_count;    // graph outputs, in order; 0 when the run failed
  const ft_tensor *output;  // in the arena, or borrowed from inputs and constants
  ft_verify_method method;
  bool is_verified;                    // all that was compared is within tolerance
  uint32_t kernel_count, dense_count;  // compared
  const ft_verified *kernel, *dense;
} ft_run_result;

// Runs the stored plan (or, without one, one kernel per operator with default schedules)
// once. Inputs come from files, else from |seed|. With |verify| each kernel is compared
// with the double-precision reference on the very bytes it read; and, when that takes
// less than about 20 s, the graph outputs with the reference of the whole graph (whose
// tolerance grows with every layer: the kernels' check is the sharp one; where it grew
// beyond use, the elements must be within 1 % of the output's RMS).
// INVALID_ARGUMENT: a file or range for no input, or of another dtype or shape.
FT_MUST_CHECK ft_status ft_session_run(ft_session *session, const ft_model *model,
                                       const ft_run_options *options, ft_arena *arena,
                                       ft_run_result *out, ft_error *error);

#endif
