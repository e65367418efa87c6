// trial - one measured candidate (or, on a target without a device, one predicted one).
#ifndef FT_GRAPH_TRIAL_H
#define FT_GRAPH_TRIAL_H

#include "core/arena.h"
#include "graph/outcome.h"

// A time comes with its sample count and spread. low, high: 95 % confidence interval
// of the median (order statistics). samples: unflagged ones. All 0 = unknown.
typedef struct ft_time {
  uint64_t median_ns, low_ns, high_ns;
  uint32_t samples;
} ft_time;

enum {  // sample flags; flagged samples are kept and leave the median
  FT_SAMPLE_WARM_UP = 1,
  FT_SAMPLE_PREEMPTED = 2,
  FT_SAMPLE_DRIFT = 4,
  FT_SAMPLE_FOREIGN = 8,
};

typedef struct ft_trial {
  ft_outcome outcome;
  ft_time time;
  double
      predicted_ns;  // > 0: nothing ran, |time| is unknown, and this is a guess; else 0
  uint32_t sample_count;  // flagged ones included
  const uint64_t *sample_ns;
  const uint8_t *sample_flags;
  double max_error_ratio;  // error over tolerance, over all outputs; < 0 = not checked
  const char *worst;       // "output 1 at 4711: got 1.5, expected 1.25"; "" when ok
  const char *error;       // what went wrong: signal, text; "" when ok
  uint64_t limit_ns;       // wall limit it ran under
  bool is_confirmation;    // as many samples as a confirmation takes
  uint64_t started_at, ended_at;  // unix ns
  const char *env;                // JSON: flush bytes, load, thread count
} ft_trial;

// What search compares: the median, or, where nothing was measured, the prediction. 0
// when there is neither.
static inline double ft_trial_ns(const ft_trial *trial) {
  return trial->time.median_ns > 0 ? (double)trial->time.median_ns : trial->predicted_ns;
}

#endif
