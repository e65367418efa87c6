#include "measure/timing.h"

#include <string.h>

#include "core/clock.h"
#include "core/rng.h"

enum { LINE_BYTES = 64 };

ft_status ft_timing_init(ft_timing *timing, ft_pool *pool, uint64_t flush_bytes,
                         ft_arena *arena, ft_error *error) {
  *timing = (ft_timing){.pool = pool, .flush_bytes = flush_bytes};
  timing->room = FT_NEW_ARRAY(arena, uint64_t, FT_BOARD_SAMPLES);
  FT_OOM_IF(!timing->room, error);
  return ft_noise_create(pool, arena, &timing->noise, error);
}

void ft_timing_fini(ft_timing *timing) {
  ft_noise_destroy(timing->noise);
  ft_guarded_destroy(&timing->flush);
}

// Filled, so that it is made of real pages and not of one shared zero page.
ft_status ft_timing_flush_make(ft_timing *timing, ft_error *error) {
  if (timing->flush.base) return FT_OK;
  FT_TRY(ft_guarded_create(timing->flush_bytes, &timing->flush, error));
  memset(timing->flush.data, 1, timing->flush.bytes);
  ft_guarded_protect(&timing->flush, true);
  return FT_OK;
}

// Reads this thread's part of the clean buffer: what a program left in the caches goes,
// dirty lines are written back, and nothing dirty takes their place.
static void flush_part(const ft_timing *timing, uint32_t thread) {
  uint64_t part = timing->flush.bytes / ft_pool_threads(timing->pool);
  const uint8_t *from = timing->flush.data + thread * part;
  uint64_t sum = 0;
  for (uint64_t i = 0; i + 8 <= part; i += LINE_BYTES) {
    uint64_t word;
    memcpy(&word, from + i, 8);
    sum += word;
  }
  __asm__ volatile("" : : "r"(sum));
}

static void before_cold(void *ctx, uint32_t thread) {
  ft_timing *timing = ctx;
  flush_part(timing, thread);
  ft_noise_before(timing->noise, thread);
}

static void before_warm(void *ctx, uint32_t thread) {
  ft_noise_before(((ft_timing *)ctx)->noise, thread);
}

static void after(void *ctx, uint32_t thread) {
  ft_noise_after(((ft_timing *)ctx)->noise, thread);
}

static void displace(void *ctx, uint32_t thread) {
  flush_part(ctx, thread);
}

void ft_timing_displace(ft_timing *timing) {
  ft_pool_each(timing->pool, displace, timing);
}

typedef struct series {
  ft_timing *timing;
  ft_job *job;
  bool is_warm;
  ft_step_failure *failure;
} series;

// One sample of |program|; the timed region is the two lines between the clocks.
static bool measure(series *s, uint32_t program, uint64_t *out_ns, uint8_t *flags) {
  ft_timing *t = s->timing;
  uint32_t step;
  int32_t code;
  if (ft_noise_is_drifting(t->noise)) *flags |= FT_SAMPLE_DRIFT;
  s->job->board->program = program;
  ft_pool_each(t->pool, s->is_warm ? before_warm : before_cold, t);
  uint64_t start = ft_clock_ns();
  bool is_ok = ft_job_run(s->job, program, &step, &code);
  *out_ns = ft_clock_ns() - start;
  ft_pool_each(t->pool, after, t);
  if (!is_ok) {
    *s->failure = (ft_step_failure){true, program, step, code};
    return false;
  }
  if (ft_noise_was_preempted(t->noise, s->job->program[program].threads))
    *flags |= FT_SAMPLE_PREEMPTED;
  if (*out_ns == 0) *out_ns = 1;  // an empty program is faster than the clock
  return true;
}

static bool take_sample(void *ctx, uint32_t index, uint64_t *out_ns, uint8_t *flags) {
  series *s = ctx;
  if (!measure(s, 0, out_ns, &flags[index])) return false;
  ft_noise_pass(s->timing->noise, index, flags);
  return true;
}

static uint64_t now(void *ctx) {
  (void)ctx;
  return ft_clock_ns();
}

ft_status ft_timing_sample(ft_timing *timing, ft_job *job, const ft_sampling *sampling,
                           bool is_warm, ft_stop *out_stop, ft_step_failure *out_failure,
                           ft_error *error) {
  *out_failure = (ft_step_failure){0};
  if (!is_warm) FT_TRY(ft_timing_flush_make(timing, error));
  ft_job_make_ready(job);
  series s = {timing, job, is_warm, out_failure};
  ft_sample_source source = {&s, take_sample, now};
  ft_board *board = job->board;
  ft_noise_start(timing->noise);
  *out_stop = ft_sample_run(sampling, &source, board->sample_ns, board->sample_flags,
                            timing->room, &board->sample_count);
  ft_noise_close_window(timing->noise, board->sample_count, board->sample_flags);
  return FT_OK;
}

static void shuffle(uint32_t *order, uint32_t count, ft_rng *rng) {
  for (uint32_t i = count; i > 1; i--) {
    uint32_t j = (uint32_t)ft_rng_below(rng, i), swapped = order[i - 1];
    order[i - 1] = order[j];
    order[j] = swapped;
  }
}

static bool run_round(series *s, const uint32_t *order, uint32_t first) {
  ft_board *board = s->job->board;
  uint32_t programs = s->job->program_count;
  for (uint32_t i = 0; i < programs; i++) board->sample_flags[first + i] = 0;
  for (uint32_t i = 0; i < programs; i++) {
    uint32_t at = first + order[i];
    if (!measure(s, order[i], &board->sample_ns[at], &board->sample_flags[at]))
      return false;
  }
  return true;
}

// Once before the rounds: the first run of a program finds cold code and page tables.
static bool run_each_once(series *s) {
  for (uint32_t p = 0; p < s->job->program_count; p++) {
    uint64_t ns;
    uint8_t flags = 0;
    if (!measure(s, p, &ns, &flags)) return false;
  }
  return true;
}

ft_status ft_timing_compare(ft_timing *timing, ft_job *job, uint32_t max_rounds,
                            uint64_t limit_ns, uint64_t seed, uint32_t *out_rounds,
                            ft_step_failure *out_failure, ft_error *error) {
  *out_rounds = 0;
  *out_failure = (ft_step_failure){0};
  FT_TRY(ft_timing_flush_make(timing, error));
  ft_job_make_ready(job);
  uint32_t programs = job->program_count;
  uint32_t *order = FT_NEW_ARRAY(job->arena, uint32_t, programs);
  FT_OOM_IF(!order, error);
  for (uint32_t i = 0; i < programs; i++) order[i] = i;
  series s = {timing, job, false, out_failure};
  ft_rng rng = ft_rng_seed(seed);
  uint64_t start = ft_clock_ns();
  if (!run_each_once(&s)) return FT_OK;
  ft_noise_start(timing->noise);
  uint32_t round = 0;
  while (round < max_rounds &&
         (round < FT_FEWEST_ROUNDS || ft_clock_ns() - start < limit_ns)) {
    shuffle(order, programs, &rng);
    if (!run_round(&s, order, round * programs)) break;
    round++;
    job->board->sample_count = round * programs;
    ft_noise_pass(timing->noise, round * programs - 1, job->board->sample_flags);
  }
  ft_noise_close_window(timing->noise, round * programs, job->board->sample_flags);
  *out_rounds = round;
  return FT_OK;
}
