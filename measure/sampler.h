// sampler - how many samples are enough (rules 3 and 6 of runner.h). Knows no clock and
// no kernel: it asks a source.
#ifndef FT_MEASURE_SAMPLER_H
#define FT_MEASURE_SAMPLER_H

#include "core/status.h"
#include "graph/trial.h"

#define FT_STOP_MAP(X)                                         \
  X(CONVERGED, "converged") /* the interval is within +-2 % */ \
  X(MAX_SAMPLES, "max_samples")                                \
  X(TIME_LIMIT, "time_limit")                                  \
  X(BEATEN, "beaten")                                          \
  X(FAILED, "failed") /* the source said so */

typedef enum ft_stop {
#define X(name, text) FT_STOP_##name,
  FT_STOP_MAP(X)
#undef X
      FT_STOP_COUNT
} ft_stop;

const char *ft_stop_text(ft_stop stop);

typedef struct ft_sampling {
  uint32_t min_samples, max_samples;  // warm-up excluded from min, included in max
  uint64_t limit_ns;                  // of the whole sampling
  uint64_t beaten_ns;                 // 0: nothing to beat
} ft_sampling;

typedef struct ft_sample_source {
  void *ctx;
  // One sample; false: the run failed. |index| is its place in the arrays. It may add
  // flags to earlier samples of |flags|.
  bool (*take)(void *ctx, uint32_t index, uint64_t *out_ns, uint8_t *flags);
  uint64_t (*now_ns)(void *ctx);
} ft_sample_source;

// Fills |sample| and |flags| [max_samples], and *count after each sample (so that a
// reader elsewhere always sees whole ones). |room| [max_samples] is scratch. Allocates
// nothing.
//
// Warm-up: until two in a row agree within 10 %, at most 5 or 20 % of the limit. When
// the limit leaves no time for another sample, the last warm-up counts as a sample.
// BEATEN: after min_samples (at most 5) when the low end is above |beaten_ns|; after two
// when both took more than twice |beaten_ns|.
ft_stop ft_sample_run(const ft_sampling *sampling, const ft_sample_source *source,
                      uint64_t *sample, uint8_t *flags, uint64_t *room,
                      _Atomic uint32_t *count);

#endif
