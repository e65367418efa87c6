// What is measured when, seen from the runner.
#include "tests/search/fake.h"

static ft_arena *arena;
static void set_up(void) {
  arena = new_arena();
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(search_tuning, .init = set_up, .fini = tear_down);

static uint32_t trials_in(const ft_search_result *r, const char *strategy) {
  const ft_searched_partition *p = ft_search_find(r, strategy);
  uint32_t trials = 0;
  for (uint32_t i = 0; i < p->partition.group_count; i++)
    trials += r->group[p->unique[i]].trials;
  return trials;
}

Test(search_tuning, measures_operators_first_then_primitives_then_what_promises_most) {
  sketch s = sketch_new(arena);
  uint32_t x = input(&s, "x");
  for (uint32_t i = 0; i < 3; i++) {
    operator_(&s, ft_arena_printf(arena, "n%u", i), "Pair");
    x = emit(&s, (ft_op[]){FT_OP_EXP, FT_OP_ABS, FT_OP_SIN}[i], x, 0);
    x = emit(&s, (ft_op[]){FT_OP_TANH, FT_OP_NEG, FT_OP_COS}[i], x, 0);
  }
  output(&s, x);
  fake f = {.is_roofline = true};
  ft_search_options options = {0};
  ft_search_result r;
  search_ok(&f, finish(&s), &options, arena, &r);
  // 3 operators of 2 and 6 primitives; then whatever may win, but not all 21 groups: one
  // kernel for all saves all the traffic between them.
  uint32_t expected[9] = {2, 2, 2, 1, 1, 1, 1, 1, 1};
  for (uint32_t i = 0; i < 9; i++)
    cr_assert_eq(f.asked[i], expected[i], "trial %u asks for %u primitives, not %u", i,
                 f.asked[i], expected[i]);
  bool has_whole = false;
  for (uint32_t i = 9; i < r.trials; i++) has_whole |= f.asked[i] == 6;
  cr_assert(has_whole);
  cr_assert_eq(ft_search_find(&r, "ideals")->partition.group_count, 1);
}

Test(search_tuning, groups_on_the_best_paths_get_more_schedules_than_the_others) {
  fake f = {.seed = 3, .is_roofline = true, .schedules = 200};
  ft_search_options options = {.window = 4, .max_trials = 400};
  ft_search_result r;
  search_ok(&f, chain(arena, 10), &options, arena, &r);
  uint32_t all = 0;
  for (uint32_t i = 0; i < r.group_count; i++) all += r.group[i].trials;
  double mean = (double)all / r.group_count;
  const ft_searched_partition *best = ft_search_find(&r, "ideals");
  cr_assert_gt((double)trials_in(&r, "ideals") / best->partition.group_count, mean);
  cr_assert_gt((double)trials_in(&r, "unfused") / 10, mean,
               "a baseline that is not tuned is no baseline");
}

Test(search_tuning, a_long_list_of_schedules_leaves_some_trials_for_near_misses) {
  fake f = {.seed = 4, .schedules = 2000};
  ft_search_options options = {.max_trials = 1000};
  ft_search_result r;
  search_ok(&f, chain(arena, 6), &options, arena, &r);
  bool is_used[64] = {0};
  for (uint32_t p = 0; p < r.partition_count; p++)
    for (uint32_t i = 0; i < r.partition[p].partition.group_count; i++)
      is_used[r.partition[p].unique[i]] = true;
  uint32_t near_misses = 0;
  for (uint32_t i = 0; i < r.group_count; i++)
    near_misses += !is_used[i] && r.group[i].trials > 1;
  cr_assert_gt(near_misses, 0);
}

Test(search_tuning, hands_out_no_more_than_a_batch_at_a_time) {
  fake f = {.schedules = 10};
  ft_search_options options = {.batch = 5, .is_exhaustive = true};
  ft_search_result r;
  search_ok(&f, chain(arena, 4), &options, arena, &r);
  cr_assert_eq(f.trials, 100);
  cr_assert_eq(f.calls, 20);
}

Test(search_tuning, a_default_that_fails_is_followed_by_another_schedule) {
  fake f = {.seed = 5, .schedules = 30, .fail_defaults = true};
  ft_search_options options = {.max_trials = 60};
  ft_search_result r;
  search_ok(&f, chain(arena, 4), &options, arena, &r);
  cr_assert(ft_search_find(&r, "ideals")->is_complete);
  cr_assert(ft_search_find(&r, "unfused")->is_complete);
}
