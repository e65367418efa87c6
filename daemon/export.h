// export - the trials of a store as lines of text (docs/export_format.md).
#ifndef FT_DAEMON_EXPORT_H
#define FT_DAEMON_EXPORT_H

#include "core/output.h"
#include "daemon/session.h"
#include "db/trial_log.h"

#define FT_EXPORT_FORMAT "fusetune-trial/1"

typedef enum ft_export_kind { FT_EXPORT_JSONL, FT_EXPORT_CSV } ft_export_kind;

typedef struct ft_export_options {
  ft_export_kind kind;
  bool samples;  // every sample with its flags, too
  ft_trial_filter filter;
  const volatile int *stop;  // non-zero: leave with FT_INTERRUPTED; may be NULL
} ft_export_options;

// Writes the trials to |output|, in order of id; memory does not grow with their number.
// *out_count: how many. Commit or abort |output| after it.
FT_MUST_CHECK ft_status ft_export_trials(ft_store *store,
                                         const ft_export_options *options,
                                         ft_output *output, uint64_t *out_count,
                                         ft_error *error);

// One line's object (new reference; NULL: out of memory).
json_t *ft_trial_row_json(const ft_trial_row *row, bool samples);

#endif
