// The copy ceiling: what memory gives when a kernel does nothing but move, with the kind
// of store that the kernel uses and over as many bytes.
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "measure/timing.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { COPY_RUNS = 11, LINE_BYTES = 64 };

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

static int by_size(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

// From memory, as a cold kernel reads.
static uint64_t timed(ft_timing *timing, copying *c) {
  ft_timing_displace(timing);
  uint64_t start = ft_clock_ns();
  ft_pool_each(timing->pool, copy_part, c);
  uint64_t ns = ft_clock_ns() - start;
  return ns ? ns : 1;
}

// The two kinds in turn, so that both see the same machine.
static void measure(ft_timing *timing, copying *c, ft_copy_rate out[FT_STORES]) {
  uint64_t threads = ft_pool_threads(timing->pool), ns[FT_STORES][COPY_RUNS];
  double moved = 2.0 * (double)(c->bytes / threads / LINE_BYTES * LINE_BYTES * threads);
  for (int run = 0; run < COPY_RUNS; run++) {
    for (int kind = 0; kind < FT_STORES; kind++) {
      c->is_streaming = kind == FT_STORE_STREAMED;
      ns[kind][run] = timed(timing, c);
    }
  }
  for (int kind = 0; kind < FT_STORES; kind++) {
    qsort(ns[kind], COPY_RUNS, sizeof **ns, by_size);
    out[kind].best = (uint64_t)(moved * 1e9 / (double)ns[kind][0]);
    out[kind].median = (uint64_t)(moved * 1e9 / (double)ns[kind][COPY_RUNS / 2]);
  }
}

ft_status ft_timing_copy(ft_timing *timing, uint64_t bytes, ft_copy_rate out[FT_STORES],
                         ft_error *error) {
  ft_guarded to, from;
  uint64_t least = LINE_BYTES * (uint64_t)ft_pool_threads(timing->pool);
  bytes = bytes ? bytes / 2 : 2 * timing->flush_bytes;
  if (bytes < least) bytes = least;
  memset(out, 0, FT_STORES * sizeof *out);
  FT_TRY(ft_timing_flush_make(timing, error));
  FT_TRY(ft_guarded_create(bytes, &from, error));
  ft_status status = ft_guarded_create(bytes, &to, error);
  if (status == FT_OK) {
    memset(from.data, 1, bytes);
    memset(to.data, 2, bytes);
    copying c = {timing->pool, to.data, from.data, bytes, false};
    measure(timing, &c, out);
  }
  ft_guarded_destroy(&to);
  ft_guarded_destroy(&from);
  return status;
}
