#include <criterion/criterion.h>
#include <stdatomic.h>
#include <string.h>

#include "measure/sampler.h"

enum { ROOM = 200 };

// A source that knows its times and whose clock they move.
typedef struct fake {
  const uint64_t *time;
  uint32_t times, taken, fails_at;
  uint64_t clock, around;  // around: what each sample costs beside itself
  uint8_t flag;
} fake;

static bool take(void *ctx, uint32_t index, uint64_t *out_ns, uint8_t *flags) {
  fake *f = ctx;
  if (f->fails_at && f->taken + 1 == f->fails_at) return false;
  *out_ns = f->time[f->taken < f->times ? f->taken : f->times - 1];
  f->taken++;
  f->clock += *out_ns + f->around;
  flags[index] |= f->flag;
  return true;
}
static uint64_t now(void *ctx) {
  return ((fake *)ctx)->clock;
}

static uint64_t sample[ROOM], room[ROOM];
static uint8_t flags[ROOM];
static _Atomic uint32_t count;

static ft_stop run(fake *f, ft_sampling sampling) {
  ft_sample_source source = {f, take, now};
  return ft_sample_run(&sampling, &source, sample, flags, room, &count);
}

static const ft_sampling usual = {5, 50, 1000000000, 0};

Test(measure_sampler, equal_samples_converge_at_the_minimum) {
  const uint64_t t[] = {100};
  fake f = {.time = t, .times = 1};
  cr_expect_eq(run(&f, usual), FT_STOP_CONVERGED);
  cr_expect_eq(count, 2 + 5, "two of warm-up, five that count: %u", count);
}

Test(measure_sampler, warm_up_ends_when_two_in_a_row_agree_and_is_kept_flagged) {
  const uint64_t t[] = {1000, 500, 460, 100};
  fake f = {.time = t, .times = 4};
  run(&f, usual);
  for (uint32_t i = 0; i < count; i++)
    cr_expect_eq(flags[i], i < 3 ? FT_SAMPLE_WARM_UP : 0, "sample %u", i);
  cr_expect_eq(sample[0], 1000);
}

Test(measure_sampler, warm_up_takes_at_most_five) {
  const uint64_t t[] = {1000, 100, 1000, 100, 1000, 100, 1000, 100, 1000, 100, 1000};
  fake f = {.time = t, .times = 11};
  run(&f, usual);
  cr_expect(flags[4] == FT_SAMPLE_WARM_UP && flags[5] == 0);
}

Test(measure_sampler, warm_up_takes_at_most_a_fifth_of_the_limit) {
  const uint64_t t[] = {150, 50, 150, 50, 150};
  fake f = {.time = t, .times = 5};
  ft_sampling s = usual;
  s.limit_ns = 1000;
  run(&f, s);
  cr_expect(flags[1] == FT_SAMPLE_WARM_UP && flags[2] == FT_SAMPLE_WARM_UP);
  cr_expect_eq(flags[3], 0);
}

Test(measure_sampler, a_program_as_long_as_the_limit_has_one_sample_that_counts) {
  const uint64_t t[] = {800};
  fake f = {.time = t, .times = 1};
  ft_sampling s = usual;
  s.limit_ns = 1000;
  cr_expect_eq(run(&f, s), FT_STOP_TIME_LIMIT);
  cr_expect(count == 1 && flags[0] == 0);
}

Test(measure_sampler, no_sample_is_started_that_would_pass_the_limit) {
  const uint64_t t[] = {100, 100, 90, 110, 130, 70, 100};
  fake f = {.time = t, .times = 7, .around = 20};
  ft_sampling s = {50, 50, 1000, 0};
  cr_expect_eq(run(&f, s), FT_STOP_TIME_LIMIT);
  cr_expect_leq(f.clock, 1000);
  cr_expect_eq(count, 8);
}

Test(measure_sampler, noise_is_sampled_to_the_maximum) {
  uint64_t t[ROOM];
  for (uint32_t i = 0; i < ROOM; i++) t[i] = 100 + 37 * i % 50;
  fake f = {.time = t, .times = ROOM};
  cr_expect_eq(run(&f, usual), FT_STOP_MAX_SAMPLES);
  cr_expect_eq(count, 50);
}

Test(measure_sampler, a_low_end_above_the_best_is_beaten_early) {
  uint64_t t[ROOM];
  for (uint32_t i = 0; i < ROOM; i++) t[i] = 150 + 37 * i % 50;
  fake f = {.time = t, .times = ROOM};
  ft_sampling s = usual;
  s.beaten_ns = 140;
  cr_expect_eq(run(&f, s), FT_STOP_BEATEN);
  uint32_t counted = 0;
  for (uint32_t i = 0; i < count; i++) counted += flags[i] == 0;
  cr_expect_eq(counted, 5);
  f = (fake){.time = t, .times = ROOM};
  s.beaten_ns = 70;
  cr_expect_eq(run(&f, s), FT_STOP_BEATEN);
  counted = 0;
  for (uint32_t i = 0; i < count; i++) counted += flags[i] == 0;
  cr_expect_eq(counted, 2, "twice as slow is seen after two");
  f = (fake){.time = t, .times = ROOM};
  s.beaten_ns = 175;
  cr_expect_neq(run(&f, s), FT_STOP_BEATEN);
}

Test(measure_sampler, a_failed_run_ends_it_and_keeps_what_was_taken) {
  const uint64_t t[] = {100};
  fake f = {.time = t, .times = 1, .fails_at = 4};
  cr_expect_eq(run(&f, usual), FT_STOP_FAILED);
  cr_expect_eq(count, 3);
}

Test(measure_sampler, flagged_samples_do_not_converge_before_the_minimum) {
  const uint64_t t[] = {100};
  fake f = {.time = t, .times = 1, .flag = FT_SAMPLE_PREEMPTED};
  // All flagged: all count.
  cr_expect_eq(run(&f, usual), FT_STOP_CONVERGED);
  cr_expect(flags[count - 1] == FT_SAMPLE_PREEMPTED);
}

Test(measure_sampler, one_sample_is_possible) {
  const uint64_t t[] = {100};
  fake f = {.time = t, .times = 1};
  ft_sampling s = {1, 1, 1000, 0};
  cr_expect_eq(run(&f, s), FT_STOP_CONVERGED);
  cr_expect(count == 1 && flags[0] == 0);
}

Test(measure_sampler, every_stop_has_a_name) {
  for (int i = 0; i < FT_STOP_COUNT; i++) cr_expect(strlen(ft_stop_text((ft_stop)i)) > 0);
  cr_expect_str_eq(ft_stop_text(FT_STOP_BEATEN), "beaten");
  cr_expect_str_eq(ft_stop_text(FT_STOP_COUNT), "unknown");
}
