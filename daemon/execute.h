// execute - one run of a plan whose kernels are built.
#ifndef FT_DAEMON_EXECUTE_H
#define FT_DAEMON_EXECUTE_H

#include "daemon/session.h"

typedef struct ft_execution {
  ft_outcome outcome;
  char failure[256];  // "" when OK
  ft_program program;
  // [plan buffers] the bytes each held: inputs and constants always, outputs (and
  // intermediates, when asked for) after a run that went well; else NULL.
  const void **bytes;
} ft_execution;

// How long one checked run of |plan| may take before it counts as hung: the default, and
// what its terms take at a slow kernel's pace on a busy machine.
uint64_t ft_plan_limit_ns(const ft_plan *plan);

// Runs |plan| once in the worker, at most ft_plan_limit_ns. module[i] implements group i,
// input[i] is the graph's input i. |keep_intermediates|: what kernels hand to each other
// is kept too (each in a buffer of its own, so it takes the sum of their sizes). *out in
// |arena|.
FT_MUST_CHECK ft_status ft_plan_execute(ft_session *session, const ft_plan *plan,
                                        const ft_module *module, const ft_tensor *input,
                                        bool keep_intermediates, ft_arena *arena,
                                        ft_execution *out, ft_error *error);
// Graph output |k| after a run that went well: an output buffer, an input or a constant.
FT_MUST_CHECK ft_status ft_plan_output(const ft_plan *plan, const ft_execution *execution,
                                       const ft_tensor *input, uint32_t k,
                                       ft_arena *arena, ft_tensor *out, ft_error *error);

#endif
