// runner_private - what the runner's files share: one conversation with one worker about
// one job.
#ifndef FT_MEASURE_RUNNER_PRIVATE_H
#define FT_MEASURE_RUNNER_PRIVATE_H

#include "measure/runner.h"
#include "measure/wire.h"
#include "measure/worker_process.h"

struct ft_cpu_runner {
  const ft_allocator *allocator;
  ft_runner_options options;  // defaults filled in
  uint64_t first_check_ns;    // options.check_limit_ns as it was given
  ft_worker_settings settings;
  ft_worker_process worker;
  uint64_t cache_bytes, l2_bytes, memory_bytes;  // as the system reports them; 0: unknown
};

// Starts a worker when none runs. Status errors as ft_worker_start.
FT_MUST_CHECK ft_status ft_runner_ready(ft_cpu_runner *runner, ft_error *error);
// ft_worker_ask with the runner's stop flag, until |at_ns|. INTERRUPTED is a status
// here; every other end is in *verdict.
FT_MUST_CHECK ft_status ft_runner_ask(ft_cpu_runner *runner, ft_frame_type type,
                                      const ft_strbuf *payload, int pass_fd,
                                      uint64_t at_ns, ft_arena *arena, ft_frame *reply,
                                      ft_verdict *verdict, ft_error *error);
// LOAD and FILL: afterwards the worker holds the programs with their inputs. *out_at_ns:
// the deadline of the checked run; it counts from the moment a worker is there.
FT_MUST_CHECK ft_status ft_runner_load(ft_cpu_runner *runner,
                                       const ft_program *const *program, uint32_t count,
                                       ft_arena *arena, uint64_t *out_at_ns,
                                       ft_verdict *verdict, ft_error *error);
// Replaces a worker whose memory may be damaged.
void ft_runner_distrust(ft_cpu_runner *runner, const ft_verdict *verdict);
// now + |ns|, saturating.
uint64_t ft_runner_until(uint64_t ns);

#endif
