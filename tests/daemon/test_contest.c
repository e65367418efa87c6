// Invented times: who beats whom, who leaves, who is served.
#include "daemon/contest.h"

#include <criterion/criterion.h>
#include <string.h>

#include "core/rng.h"

typedef struct fake {
  uint32_t count, noise;  // +- ns
  uint64_t typical_ns[FT_CONTEST_MOST];
  uint64_t left_ns;  // falls as rounds run
  bool is_busy;      // every third round is three times as slow, for all
  uint32_t dies;     // contender + 1; 0: nobody
  uint32_t room;     // most at a time; 0: any number
  ft_rng rng;
  uint32_t calls, runs[FT_CONTEST_MOST];
} fake;

static ft_arena *arena;
static ft_error error;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(daemon_contest, .init = set_up, .fini = tear_down);

static uint64_t sample(fake *f, uint32_t contender, uint32_t round) {
  uint64_t ns =
      f->typical_ns[contender] + ft_rng_below(&f->rng, 2 * f->noise + 1) - f->noise;
  return f->is_busy && round % 3 == 0 ? 3 * ns : ns;
}

static ft_status run(void *ctx, const uint32_t *contender, uint32_t count,
                     uint32_t rounds, ft_arena *where, ft_compare_result *out,
                     ft_error *why) {
  fake *f = ctx;
  (void)why;
  uint64_t *time = FT_NEW_ARRAY(where, uint64_t, (size_t)rounds * count);
  uint8_t *flags = FT_NEW_ARRAY(where, uint8_t, (size_t)rounds * count);
  f->calls++;
  *out = (ft_compare_result){.rounds = rounds,
                             .programs = count,
                             .time_ns = time,
                             .flags = flags,
                             .outcome = FT_OUTCOME_OK};
  if (f->room && count > f->room) {
    *out = (ft_compare_result){.programs = count, .outcome = FT_OUTCOME_OUT_OF_MEMORY};
    return FT_OK;
  }
  for (uint32_t r = 0; r < rounds; r++)
    for (uint32_t i = 0; i < count; i++) {
      uint64_t ns = sample(f, contender[i], r);
      time[(size_t)r * count + i] = ns;
      f->runs[contender[i]]++;
      f->left_ns = ns < f->left_ns ? f->left_ns - ns : 0;
      if (f->dies == contender[i] + 1) {
        out->outcome = FT_OUTCOME_CRASH;
        out->culprit = i;
      }
    }
  return FT_OK;
}

static uint64_t left_ns(void *ctx) {
  return ((fake *)ctx)->left_ns;
}

static ft_contest contest_of(fake *f, uint32_t base, uint32_t incumbent) {
  ft_contest_runner runner = {f, run, left_ns};
  ft_contest out;
  uint64_t round_ns = 0;
  if (!f->left_ns) f->left_ns = UINT64_MAX / 2;
  f->rng = ft_rng_seed(7);
  for (uint32_t i = 0; i < f->count; i++) round_ns += f->typical_ns[i];
  cr_assert_eq(
      ft_contest_run(&runner, f->count, base, incumbent, round_ns, arena, &out, &error),
      FT_OK, "%s", error.text);
  return out;
}

static ft_contest_verdict decide(const ft_contest *c) {
  ft_contest_verdict out;
  cr_assert_eq(ft_contest_decide(c, arena, &out, &error), FT_OK);
  return out;
}

Test(daemon_contest, the_fastest_that_beats_the_base_is_served_and_all_rounds_are_run) {
  fake f = {.count = 3, .noise = 20, .typical_ns = {1000, 800, 700}};
  ft_contest c = contest_of(&f, 0, FT_CONTEST_NOBODY);
  ft_contest_verdict v = decide(&c);
  cr_assert_eq(v.served, 2);
  cr_assert_lt(v.over_base.p, 1e-6);
  cr_assert_float_eq(v.over_base.ratio, 0.7, 0.02);
  cr_assert_eq(c.rounds, FT_CONTEST_ROUNDS);
  cr_assert_str_eq(c.ended, "rounds");
  cr_assert(!v.is_open);
}

Test(daemon_contest, less_than_one_percent_is_not_enough_however_sure) {
  fake f = {.count = 2, .noise = 0, .typical_ns = {10000, 9950}};
  ft_contest c = contest_of(&f, 0, FT_CONTEST_NOBODY);
  ft_contest_verdict v = decide(&c);
  cr_assert_eq(v.served, 0);
  ft_claim claim;
  cr_assert_eq(ft_contest_claim(&c, 1, 0, arena, &claim, &error), FT_OK);
  cr_assert(claim.p < 1e-9 && !claim.beats);
  cr_assert(!v.is_open, "one per cent is wanted, not more time");
}

Test(daemon_contest, a_coin_that_wins_by_luck_is_not_served) {
  // The same plan twice, with noise of 30 %: over many seeds nobody may win often.
  uint32_t wins = 0;
  for (uint64_t seed = 0; seed < 400; seed++) {
    fake f = {.count = 2, .noise = 300, .typical_ns = {1000, 1000}};
    ft_contest_runner runner = {&f, run, left_ns};
    ft_contest c;
    f.left_ns = UINT64_MAX / 2;
    f.rng = ft_rng_seed(seed);
    cr_assert_eq(
        ft_contest_run(&runner, 2, 0, FT_CONTEST_NOBODY, 2000, arena, &c, &error), FT_OK);
    wins += decide(&c).served == 1;
  }
  cr_assert_leq(wins, 8, "%u of 400", wins);  // half of one per cent is 2
}

Test(daemon_contest, seven_rounds_are_too_few_and_eight_are_enough) {
  for (uint32_t rounds = 7; rounds <= 8; rounds++) {
    fake f = {.count = 2, .noise = 1, .typical_ns = {1000, 500}};
    f.left_ns = rounds * 1500 + 700;
    ft_contest c = contest_of(&f, 0, FT_CONTEST_NOBODY);
    cr_assert_eq(c.rounds, rounds);
    cr_assert_str_eq(c.ended, "time");
    ft_contest_verdict v = decide(&c);
    cr_assert_eq(v.served, rounds == 8);
    cr_assert_eq(v.is_open, rounds == 7, "the budget ended first, and that is said");
  }
}

Test(daemon_contest, one_round_is_run_when_nothing_is_left) {
  fake f = {.count = 3, .typical_ns = {1000, 500, 400}, .left_ns = 1};
  ft_contest c = contest_of(&f, 0, FT_CONTEST_NOBODY);
  cr_assert_eq(c.rounds, 1);
  cr_assert_eq(decide(&c).served, 0);
  cr_assert(decide(&c).is_open);
}

Test(daemon_contest, the_clearly_beaten_leave_and_base_and_incumbent_stay) {
  fake f = {.count = 5, .noise = 10, .typical_ns = {2000, 1000, 1500, 1005, 1800}};
  ft_contest c = contest_of(&f, 0, 4);
  cr_assert(c.has_left[2] && !c.has_left[0] && !c.has_left[4] && !c.has_left[1]);
  cr_assert(!c.has_left[3], "half a per cent is not clearly beaten");
  cr_assert_eq(f.runs[2], FT_CONTEST_STAGE);
  cr_assert_eq(f.runs[0], FT_CONTEST_ROUNDS);
  cr_assert_eq(f.runs[4], FT_CONTEST_ROUNDS);
  // Those that left keep the time they had.
  ft_time time;
  cr_assert_eq(ft_contest_time(&c, 2, arena, &time, &error), FT_OK);
  cr_assert_eq(time.samples, FT_CONTEST_STAGE);
  cr_assert_eq(c.time_ns[(size_t)FT_CONTEST_STAGE * 5 + 2], 0);
}

Test(daemon_contest, an_incumbent_stays_unless_the_challenger_beats_it_too) {
  fake equal = {.count = 3, .noise = 40, .typical_ns = {1000, 700, 703}};
  ft_contest c = contest_of(&equal, 0, 2);
  ft_contest_verdict v = decide(&c);
  cr_assert_eq(v.challenger, 1);
  cr_assert_eq(v.served, 2, "0.4 %% faster is no reason to change");
  cr_assert(!v.over_incumbent.beats);
  cr_assert_lt(v.over_base.p, FT_CONTEST_P);

  fake better = {.count = 3, .noise = 10, .typical_ns = {1000, 600, 700}};
  c = contest_of(&better, 0, 2);
  v = decide(&c);
  cr_assert_eq(v.served, 1);
  cr_assert(v.over_incumbent.beats && v.over_incumbent.p < FT_CONTEST_P);
}

Test(daemon_contest, an_incumbent_that_the_base_beats_is_replaced_by_the_base) {
  fake f = {.count = 2, .noise = 10, .typical_ns = {1000, 1300}};
  ft_contest c = contest_of(&f, 0, 1);
  ft_contest_verdict v = decide(&c);
  cr_assert_eq(v.served, 0);
  cr_assert_eq(v.over_base.p, 1);
  cr_assert(v.over_incumbent.beats);
}

Test(daemon_contest, a_base_that_is_the_incumbent_is_served_until_it_is_beaten) {
  fake f = {.count = 2, .noise = 10, .typical_ns = {1000, 1000}};
  ft_contest c = contest_of(&f, 0, 0);
  cr_assert_eq(decide(&c).served, 0);
  fake g = {.count = 2, .noise = 10, .typical_ns = {1000, 900}};
  c = contest_of(&g, 0, 0);
  cr_assert_eq(decide(&c).served, 1);
}

Test(daemon_contest, a_busy_machine_slows_all_and_changes_nothing) {
  fake f = {.count = 2, .noise = 20, .typical_ns = {1000, 900}, .is_busy = true};
  ft_contest c = contest_of(&f, 0, FT_CONTEST_NOBODY);
  cr_assert_eq(decide(&c).served, 1);
}

Test(daemon_contest,
     what_does_not_fit_together_goes_from_the_end_but_not_those_that_stay) {
  fake f = {.count = 5, .noise = 5, .typical_ns = {1000, 900, 980, 970, 995}, .room = 3};
  ft_contest c = contest_of(&f, 0, 4);
  cr_assert(c.has_left[3] && c.has_left[2] && !c.has_left[4] && !c.has_left[0]);
  cr_assert_eq(f.runs[2] + f.runs[3], 0);
  cr_assert_eq(decide(&c).served, 1);
}

Test(daemon_contest, who_dies_in_a_round_is_named) {
  fake f = {.count = 3, .typical_ns = {1000, 900, 800}, .dies = 2};
  ft_contest_runner runner = {&f, run, left_ns};
  ft_contest c;
  f.left_ns = 1000000;
  cr_assert_eq(ft_contest_run(&runner, 3, 0, FT_CONTEST_NOBODY, 2700, arena, &c, &error),
               FT_INTERNAL);
  cr_assert(strstr(error.text, "contender 1 ended as crash"), "%s", error.text);
}
