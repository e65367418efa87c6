// stored_runner - the runner that measures nothing: it answers from the store, and leaves
// what the store does not know PENDING.
#ifndef FT_DAEMON_STORED_RUNNER_H
#define FT_DAEMON_STORED_RUNNER_H

#include "daemon/session.h"

typedef struct ft_stored_runner {
  ft_session *session;
  int64_t target_id;
  uint64_t max_workspace_bytes;  // as of ft_measured_runner
  uint32_t asked, answered;
  uint32_t outcome[FT_OUTCOME_COUNT];  // of those answered
} ft_stored_runner;

// Reads the store, never writes it. |runner| must stay where it is.
ft_runner ft_stored_runner_table(ft_stored_runner *runner);

#endif
