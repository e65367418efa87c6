// The copy ceiling: what memory gives when a kernel does nothing but move.
#include <string.h>

#include "core/clock.h"
#include "measure/timing.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { COPY_RUNS = 6, LINE_BYTES = 64 };

typedef struct copying {
  const ft_pool *pool;
  uint8_t *to;
  const uint8_t *from;
  uint64_t bytes;
  bool is_streaming;
} copying;

#if defined(__SSE2__)
static void copy_streaming(uint8_t *to, const uint8_t *from, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i += sizeof(__m128i))
    _mm_stream_si128((__m128i *)(void *)(to + i),
                     _mm_load_si128((const __m128i *)(const void *)(from + i)));
  _mm_sfence();
}
#else
static void copy_streaming(uint8_t *to, const uint8_t *from, uint64_t bytes) {
  memcpy(to, from, bytes);
}
#endif

static void copy_part(void *ctx, uint32_t thread) {
  const copying *c = ctx;
  uint64_t part = c->bytes / ft_pool_threads(c->pool) / LINE_BYTES * LINE_BYTES;
  uint64_t at = thread * part;
  if (c->is_streaming)
    copy_streaming(c->to + at, c->from + at, part);
  else
    memcpy(c->to + at, c->from + at, part);
}

static uint64_t best_rate(ft_timing *timing, copying *c) {
  uint64_t part = c->bytes / ft_pool_threads(timing->pool) / LINE_BYTES * LINE_BYTES;
  uint64_t moved = 2 * part * ft_pool_threads(timing->pool), best = 0;
  for (int run = 0; run < COPY_RUNS; run++) {
    c->is_streaming = run % 2;
    uint64_t start = ft_clock_ns();
    ft_pool_each(timing->pool, copy_part, c);
    uint64_t ns = ft_clock_ns() - start;
    uint64_t rate = (uint64_t)((double)moved * 1e9 / (double)(ns ? ns : 1));
    if (rate > best) best = rate;
  }
  return best;
}

ft_status ft_timing_copy(ft_timing *timing, uint64_t *out_bytes_per_s, ft_error *error) {
  *out_bytes_per_s = 0;
  ft_guarded to, from;
  uint64_t bytes = 2 * timing->flush_bytes;
  FT_TRY(ft_guarded_create(bytes, &from, error));
  ft_status status = ft_guarded_create(bytes, &to, error);
  if (status == FT_OK) {
    memset(from.data, 1, bytes);
    memset(to.data, 2, bytes);
    copying c = {timing->pool, to.data, from.data, bytes, false};
    *out_bytes_per_s = best_rate(timing, &c);
  }
  ft_guarded_destroy(&to);
  ft_guarded_destroy(&from);
  return status;
}
