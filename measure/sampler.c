#include "measure/sampler.h"

#include <stdatomic.h>

#include "measure/statistics.h"

enum { WARM_UP_MOST = 5, BEATEN_AFTER = 5 };

typedef struct run {
  const ft_sampling *sampling;
  const ft_sample_source *source;
  uint64_t *sample, *room;
  uint8_t *flags;
  _Atomic uint32_t *count;
  uint64_t started_ns, longest_ns;  // longest: one sample with all that goes around it
  uint32_t n;
} run;

const char *ft_stop_text(ft_stop stop) {
  static const char *const texts[] = {
#define X(name, text) text,
      FT_STOP_MAP(X)
#undef X
  };
  return (unsigned)stop < FT_STOP_COUNT ? texts[stop] : "unknown";
}

static uint64_t elapsed(const run *r) {
  return r->source->now_ns(r->source->ctx) - r->started_ns;
}

static bool take(run *r, uint8_t flags) {
  uint64_t before = elapsed(r);
  r->flags[r->n] = flags;
  if (!r->source->take(r->source->ctx, r->n, &r->sample[r->n], r->flags)) return false;
  r->n++;
  atomic_store_explicit(r->count, r->n, memory_order_release);
  uint64_t took = elapsed(r) - before;
  if (took > r->longest_ns) r->longest_ns = took;
  return true;
}

static bool agree(uint64_t a, uint64_t b) {
  uint64_t low = a < b ? a : b, high = a < b ? b : a;
  return high - low <= high / 10;
}

static bool out_of_time(const run *r) {
  return elapsed(r) + r->longest_ns > r->sampling->limit_ns;
}

static bool warm_up(run *r) {
  uint64_t budget = r->sampling->limit_ns / 5;
  while (r->n < WARM_UP_MOST && r->n + 1 < r->sampling->max_samples) {
    if (!take(r, FT_SAMPLE_WARM_UP)) return false;
    if (r->n >= 2 && agree(r->sample[r->n - 1], r->sample[r->n - 2])) break;
    if (elapsed(r) > budget) break;
  }
  if (r->n > 0 && out_of_time(r)) r->flags[r->n - 1] &= (uint8_t)~FT_SAMPLE_WARM_UP;
  return true;
}

static uint32_t usable(const run *r, uint8_t refused) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < r->n; i++) count += !(r->flags[i] & refused);
  return count;
}

static bool is_converged(const run *r, const ft_time *t) {
  return t->samples >= r->sampling->min_samples &&
         (double)t->low_ns >= 0.98 * (double)t->median_ns &&
         (double)t->high_ns <= 1.02 * (double)t->median_ns;
}

static bool is_beaten(const run *r, const ft_time *t) {
  uint64_t limit = r->sampling->beaten_ns;
  uint32_t enough = r->sampling->min_samples;
  if (enough > BEATEN_AFTER) enough = BEATEN_AFTER;
  if (limit == 0) return false;
  if (t->samples >= enough && t->low_ns > limit) return true;
  return t->samples >= 2 && t->low_ns / 2 > limit;
}

ft_stop ft_sample_run(const ft_sampling *sampling, const ft_sample_source *source,
                      uint64_t *sample, uint8_t *flags, uint64_t *room,
                      _Atomic uint32_t *count) {
  run r = {.sampling = sampling,
           .source = source,
           .sample = sample,
           .room = room,
           .flags = flags,
           .count = count,
           .started_ns = source->now_ns(source->ctx)};
  atomic_store(count, 0);
  if (!warm_up(&r)) return FT_STOP_FAILED;
  while (usable(&r, FT_SAMPLE_WARM_UP) == 0 || !out_of_time(&r)) {
    if (r.n >= sampling->max_samples) return FT_STOP_MAX_SAMPLES;
    if (!take(&r, 0)) return FT_STOP_FAILED;
    ft_time t = ft_median_unflagged_in(sample, flags, r.n, room);
    if (is_beaten(&r, &t)) return FT_STOP_BEATEN;
    if (is_converged(&r, &t)) return FT_STOP_CONVERGED;
  }
  return FT_STOP_TIME_LIMIT;
}
