// predicted_runner - the runner of targets without a device: a candidate is built, and
// its time is a prediction (cost_model/gpu_roofline.h). Nothing runs, nothing is timed,
// nothing is written to the store.
//
// A trial of it has no time and no samples, only predicted_ns; so it can be compared with
// its like, and never passes for a measurement.
#ifndef FT_DAEMON_PREDICTED_RUNNER_H
#define FT_DAEMON_PREDICTED_RUNNER_H

#include "cost_model/gpu_roofline.h"
#include "graph/evaluator.h"

typedef struct ft_predicted_runner {
  ft_builder builder;
  const ft_chip *chip;
  uint64_t
      max_workspace_bytes;   // candidates that need more end as resource_limit; 0: any
  const volatile int *stop;  // NULL: never
  uint32_t asked;
  uint32_t outcome[FT_OUTCOME_COUNT];
  ft_arena *scratch;  // reset per batch
} ft_predicted_runner;

FT_MUST_CHECK ft_status ft_predicted_runner_init(const ft_builder *builder,
                                                 const ft_chip *chip,
                                                 ft_predicted_runner *out,
                                                 ft_error *error);
void ft_predicted_runner_fini(ft_predicted_runner *runner);
// |runner| must stay where it is.
ft_runner ft_predicted_runner_table(ft_predicted_runner *runner);

#endif
