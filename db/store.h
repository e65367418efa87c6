// store - trials, plans and their keys in one SQLite file. db/schema.sql is the format.
//
// One writer. Opened with busy_timeout first, then foreign_keys, WAL, synchronous=NORMAL.
// user_version is checked: a newer one is refused, an older one migrated. Every call is
// its own transaction unless said otherwise; after an error the store is as before the
// call. Thread-compatible. Ids are row ids, > 0.
#ifndef FT_DB_STORE_H
#define FT_DB_STORE_H

#include "graph/candidate.h"
#include "graph/ceiling.h"
#include "graph/module.h"
#include "graph/plan.h"
#include "graph/trial.h"

typedef struct ft_store ft_store;

// Creates the file (0600) and its folder when missing; PATH.lock beside it is held while
// opening. Rows left pending by a dead owner become interrupted: a kill of the tuner says
// nothing about the candidate that ran, so nobody is blamed. CORRUPT names the first
// problem; another version is REFUSED ("store.db has version 7, this fusetune knows 1:
// use a newer fusetune"), another program's database too; a read-only file is IO.
FT_MUST_CHECK ft_status ft_store_open(const char *path, const ft_allocator *allocator,
                                      ft_store **out, ft_error *error);
void ft_store_close(ft_store *store);  // NULL is fine
// From now on a served plan is found only when its kernels are of that version; 0: any.
void ft_store_expect_codegen(ft_store *store, uint32_t version);
// $FUSETUNE_STORE, or $XDG_DATA_HOME/fusetune/store.db, or
// ~/.local/share/fusetune/store.db.
const char *ft_store_default_path(ft_arena *arena);
// Runs PRAGMA integrity_check and foreign_key_check; CORRUPT lists the first rows.
FT_MUST_CHECK ft_status ft_store_check(ft_store *store, ft_error *error);

// Each finds the row or adds it. A hash that is there with other bytes is INTERNAL (and
// nothing is written): a broken invariant.
FT_MUST_CHECK ft_status ft_store_target(ft_store *store, const ft_target *target,
                                        int64_t *out_id, ft_error *error);
FT_MUST_CHECK ft_status ft_store_graph(ft_store *store, const ft_graph *graph,
                                       int64_t *out_graph_id, int64_t *out_binding_id,
                                       ft_error *error);
FT_MUST_CHECK ft_status ft_store_candidate(ft_store *store, const ft_candidate *candidate,
                                           int64_t target_id, uint32_t codegen_version,
                                           int64_t *out_id, ft_error *error);

// The row's id, 0 when there is none; writes nothing.
FT_MUST_CHECK ft_status ft_store_find_candidate(ft_store *store,
                                                const ft_candidate *candidate,
                                                int64_t target_id,
                                                uint32_t codegen_version, int64_t *out_id,
                                                ft_error *error);

typedef struct ft_run_record {
  int64_t binding_id, target_id;
  const char *request;  // JSON: model, budget, window, ...
  uint64_t seed;
  const char *version, *host;
} ft_run_record;
FT_MUST_CHECK ft_status ft_store_run_begin(ft_store *store, const ft_run_record *run,
                                           int64_t *out_id, ft_error *error);
// Trials of the run that are still pending become interrupted: they never ran.
FT_MUST_CHECK ft_status ft_store_run_end(ft_store *store, int64_t run_id,
                                         const char *stop_reason, ft_error *error);

// What the store knows of a candidate on this target.
typedef struct ft_known_trial {
  bool is_known;        // do not run it again: it ended by itself (ok, beaten, or a
                        // blaming outcome, of any mode), or it is quarantined. A timeout
                        // is believed only the second time
  bool is_quarantined;  // the reason is trial.error; trial.outcome is never OK
  int64_t timeout_run;  // the run of its last timeout: not in that one, and in another
                        // with more time; 0: it had none
  int64_t trial_id;     // 0: never ended here; trial.outcome is PENDING
  ft_trial trial;  // the OK one with the most generous limit (of equals the latest), else
                   // the last; strings and samples in |arena|
} ft_known_trial;
FT_MUST_CHECK ft_status ft_store_find_trial(ft_store *store, int64_t candidate_id,
                                            const char *mode, ft_arena *arena,
                                            ft_known_trial *out, ft_error *error);

// Writes a pending row and commits, before the trial runs; |attempt| is chosen.
FT_MUST_CHECK ft_status ft_store_trial_begin(ft_store *store, int64_t run_id,
                                             int64_t candidate_id, const char *mode,
                                             uint64_t limit_ns, int64_t *out_trial_id,
                                             ft_error *error);
// Records how it ended, the build (module may be NULL), all samples; updates `best`.
// crash, wrong_result and launch_error quarantine the candidate at once: it leaves
// `best`, and plans that use it are no longer served. A timeout may be a starved
// machine's fault: it takes two, of two runs. INTERRUPTED counts nothing. predicted_ns,
// roofline_ns < 0: none. INVALID_ARGUMENT: not pending; OK with median 0; NaN or
// infinity; times out of order.
FT_MUST_CHECK ft_status ft_store_trial_end(ft_store *store, int64_t trial_id,
                                           const ft_trial *trial, const ft_module *module,
                                           double predicted_ns, double roofline_ns,
                                           ft_error *error);

typedef struct ft_plan_record {
  int64_t run_id, binding_id, target_id;
  const char *role;  // "tuned", "unfused", "primitive", "greedy", "baseline", "kbest"
  bool is_served;    // at most one per binding and target: it replaces the last
  const int64_t *candidate_id;  // [group_count]
  ft_time time;  // its own, end to end; samples 0: what the plan says for that role
} ft_plan_record;
// Saves the sealed plan with its canonical body; a row with the same binding, target,
// hash and role gets the new times. A plan with a quarantined candidate is never served.
// INVALID_ARGUMENT: a plan to be served that is only predicted, for a target of another
// kind than "arch".
FT_MUST_CHECK ft_status ft_store_plan_save(ft_store *store, const ft_plan *plan,
                                           const ft_plan_record *record, int64_t *out_id,
                                           ft_error *error);
// One row per plan and round, in one transaction; a time of 0: it did not run in that
// round, so there is no row.
FT_MUST_CHECK ft_status ft_store_comparison_save(ft_store *store, int64_t run_id,
                                                 const int64_t *plan_id, uint32_t plans,
                                                 uint32_t rounds, const uint64_t *time_ns,
                                                 const uint8_t *flags, ft_error *error);
FT_MUST_CHECK ft_status ft_store_refusal_save(ft_store *store, int64_t run_id,
                                              uint32_t producer, uint32_t consumer,
                                              const char *rule, const char *detail,
                                              ft_error *error);

// The body of the served plan: an exact lookup by the graph's hashes and the target's
// signature; never writes. NOT_FOUND says what is there instead (other dims, other
// targets, with the key field that differs).
FT_MUST_CHECK ft_status ft_store_served_plan(ft_store *store, const ft_graph *graph,
                                             const ft_target *target, ft_arena *arena,
                                             const char **out_body, ft_error *error);

// ---- after the key has changed: a new compiler, driver or codegen version
typedef struct ft_old_key {
  int64_t target_id, binding_id;
  uint32_t codegen_version;
  const char *target;  // its name
  const char
      *differs;  // "compilers (there ..., here ...), toolkit", or codegen's versions
} ft_old_key;
// The key of the plan of this model and dims that was served last under another key than
// |target| and |codegen_version|; this very device's before others. Strings in |arena|.
// NOT_FOUND when there is none.
FT_MUST_CHECK ft_status ft_store_old_key(ft_store *store, const ft_graph *graph,
                                         const ft_target *target,
                                         uint32_t codegen_version, ft_arena *arena,
                                         ft_old_key *out, ft_error *error);
typedef struct ft_old_candidate {
  const char *tactic;
  ft_schedule schedule;
  uint64_t median_ns;
} ft_old_candidate;
// The fastest candidates of |workload| under |key|, at most |most|, fastest first; none
// when no stored plan of the model uses the workload. Quarantined ones are not listed.
FT_MUST_CHECK ft_status ft_store_old_candidates(ft_store *store, const ft_old_key *key,
                                                const ft_workload *workload,
                                                uint32_t most, ft_arena *arena,
                                                ft_old_candidate **out,
                                                uint32_t *out_count, ft_error *error);

// The row of that plan; id 0 when there is none (or it may not run any more).
typedef struct ft_served_plan {
  int64_t id;
  const char *role, *body;
} ft_served_plan;
FT_MUST_CHECK ft_status ft_store_incumbent(ft_store *store, const ft_graph *graph,
                                           const ft_target *target, ft_arena *arena,
                                           ft_served_plan *out, ft_error *error);

// The plans that the last run of this very model, dims and target saved; none: count 0.
// Call ft_store_served_plan first: it compares the graph's encoding and explains. Writes
// nothing; strings in |arena|.
typedef struct ft_stored_plan {
  int64_t id;
  const char *role, *body;
  bool is_served;
  const char *quarantined;  // why it must not run; "" when it may
} ft_stored_plan;
FT_MUST_CHECK ft_status ft_store_last_plans(ft_store *store, const ft_graph *graph,
                                            const ft_target *target, ft_arena *arena,
                                            ft_stored_plan **out, uint32_t *out_count,
                                            ft_error *error);

// Why neighbours did not share a kernel, as the run that made the served plan found it;
// ordered, at most 4,096; strings in |arena|. None when there is no served plan.
typedef struct ft_refusal_record {
  uint32_t producer, consumer;  // primitives
  const char *rule, *detail;
} ft_refusal_record;
FT_MUST_CHECK ft_status ft_store_served_refusals(ft_store *store, const ft_graph *graph,
                                                 const ft_target *target, ft_arena *arena,
                                                 ft_refusal_record **out,
                                                 uint32_t *out_count, ft_error *error);

// The ceilings of a target, ordered by kind, then size; none when it was never measured.
// |out| has room for FT_CEILINGS_MOST. Kinds that this program does not know are left
// out.
FT_MUST_CHECK ft_status ft_store_ceilings(ft_store *store, int64_t target_id,
                                          ft_ceiling *out, uint32_t *out_count,
                                          ft_error *error);
// Each row keeps the best value ever saved; |replaces|: what was there goes first.
// INVALID_ARGUMENT: a value or median that is not finite and positive.
FT_MUST_CHECK ft_status ft_store_ceilings_save(ft_store *store, int64_t target_id,
                                               const ft_ceiling *ceiling, uint32_t count,
                                               bool replaces, ft_error *error);

// A trial that was faster than its bound: the ceiling |kind| of |bytes| went from
// |before| to |after|.
typedef struct ft_alarm_record {
  int64_t run_id, candidate_id;  // run 0: none
  uint64_t median_ns;            // of the candidate's OK trial
  double bound_ns;
  ft_ceiling_kind kind;
  uint64_t bytes;
  double before, after;
  bool is_remeasured, is_explained;
} ft_alarm_record;
FT_MUST_CHECK ft_status ft_store_alarm_save(ft_store *store, const ft_alarm_record *alarm,
                                            ft_error *error);

// Adds an artifact (zlib-compressed); kind "source", "cubin", "so", "log"; at most 1 GiB.
// Same bytes: no-op.
FT_MUST_CHECK ft_status ft_store_artifact(ft_store *store, const char *kind,
                                          const void *data, size_t size,
                                          ft_hash *out_hash, ft_error *error);
// Its bytes, in |arena|, followed by a NUL. CORRUPT when they do not have that hash.
FT_MUST_CHECK ft_status ft_store_artifact_read(ft_store *store, const ft_hash *hash,
                                               ft_arena *arena, const void **out,
                                               size_t *out_size, ft_error *error);

// Row counts for doctor and tests: name is a table of the schema.
FT_MUST_CHECK ft_status ft_store_count(ft_store *store, const char *table, int64_t *out,
                                       ft_error *error);

#endif
