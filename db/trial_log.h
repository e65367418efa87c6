// trial_log - the trials as rows with everything their keys say, one at a time: what an
// export writes, and how `repro` finds a trial.
#ifndef FT_DB_TRIAL_LOG_H
#define FT_DB_TRIAL_LOG_H

#include "db/store.h"

typedef struct ft_trial_row {
  int64_t trial_id, run_id;
  const char *outcome;  // "pending" included: it is running, or waits
  ft_time time;         // all 0: none
  const char *mode;     // "cold"
  int64_t attempt;
  const char *tactic, *schedule;  // canonical JSON
  uint32_t codegen_version;
  ft_hash workload;
  uint32_t primitives;
  uint64_t read_bytes, write_bytes;
  double flops;
  ft_hash target;  // its signature
  const char *target_name, *device;
  ft_hash graph, source, body;  // zero: unknown
  const char *dims;
  const char *compiler, *flags, *build_outcome;  // "" when nothing was built
  uint64_t build_ns;
  double predicted_ns, roofline_ns, max_error_ratio;  // < 0: none
  const char *worst, *error, *env, *quarantined;      // "" when NULL
  uint64_t limit_ns, started_at, ended_at;            // 0: unknown
  uint64_t seed;                                      // of the run: of the inputs
  uint32_t sample_count;
  const uint8_t *sample_ns;     // little-endian u64 each
  const uint8_t *sample_flags;  // FT_SAMPLE_*
} ft_trial_row;

typedef struct ft_trial_filter {
  uint64_t since_ns;      // ended (when not known: started) at or after; 0: all
  uint32_t top_k;         // > 0: only the k fastest candidates per workload, target,
                          // codegen version and mode, each by the trial that is believed
  const ft_graph *graph;  // only workloads that a run of this very model and dims tried,
                          // or that one of its plans has; NULL: all
} ft_trial_filter;

// Calls |visit| for each trial, in order of id, from one snapshot of the store: what a
// tuner writes meanwhile is not seen, and does not wait. The row's pointers die with the
// call. Memory: one row; with |top_k| also SQLite's sorter. |visit| must not use the
// store; its error ends the walk. NOT_FOUND: the store has no run of |graph|.
typedef ft_status (*ft_trial_visit)(void *ctx, const ft_trial_row *row, ft_error *error);
FT_MUST_CHECK ft_status ft_store_each_trial(ft_store *store,
                                            const ft_trial_filter *filter,
                                            ft_trial_visit visit, void *ctx,
                                            ft_error *error);

// A trial to build again: its row in |arena|, and what the row only names.
typedef struct ft_found_trial {
  ft_trial_row row;
  const uint8_t *encoding;  // of the workload
  size_t encoding_bytes;
  const char *source;  // "" when none was stored
  const char *log;     // of the compiler, ""
} ft_found_trial;

// |name|: a trial's id, or the first 6 or more hex digits (with or without "sha256:") of
// a source's or body's hash; of several trials with that source the one that `explain`
// would name. NOT_FOUND; INVALID_ARGUMENT when the name is neither, or when it fits two
// sources (the text lists them).
FT_MUST_CHECK ft_status ft_store_trial_named(ft_store *store, const char *name,
                                             ft_arena *arena, ft_found_trial *out,
                                             ft_error *error);

// The trial whose time counts for this candidate (or, failing that, its last), 0: none.
// Unlike ft_store_candidate it adds nothing. *out_source may be zero.
FT_MUST_CHECK ft_status ft_store_trial_of(ft_store *store, const ft_candidate *candidate,
                                          uint32_t codegen_version, int64_t *out_trial_id,
                                          ft_hash *out_source, ft_error *error);

#endif
