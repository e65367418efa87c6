// measured_runner - the runner that search sees: builds, checks, times, and keeps every
// trial in the store. A candidate the store knows is answered from it.
#ifndef FT_DAEMON_MEASURED_RUNNER_H
#define FT_DAEMON_MEASURED_RUNNER_H

#include "daemon/session.h"

typedef struct ft_measured_runner {
  ft_session *session;
  int64_t run_id;
  uint64_t seed;
  uint64_t max_workspace_bytes;  // candidates that need more end as resource_limit, and
                                 // that is not written down; 0: no limit
  uint64_t trial_limit_ns;       // of a first look; a confirmation gets five times it
  uint32_t asked, ran;           // candidates asked for; those that really ran
  uint32_t outcome[FT_OUTCOME_COUNT];  // of those asked for
  ft_arena *scratch;                   // reset per batch
  struct ft_bench *bench;              // inputs and check of the workload in hand
} ft_measured_runner;

FT_MUST_CHECK ft_status ft_measured_runner_init(ft_session *session, int64_t run_id,
                                                uint64_t seed, uint64_t trial_limit_ns,
                                                ft_measured_runner *out, ft_error *error);
void ft_measured_runner_fini(ft_measured_runner *runner);
ft_runner ft_measured_runner_table(ft_measured_runner *runner);

// The one-step program of |group| with |module| over |input|; key[i] is of input i's
// bytes; buffers in |arena|.
FT_MUST_CHECK ft_status ft_group_program(const ft_group *group, const ft_module *module,
                                         const ft_tensor *input, const uint64_t *key,
                                         ft_arena *arena, ft_program *out,
                                         ft_error *error);

#endif
