#include "search/strategy.h"
#include "tests/search/fake.h"

static ft_arena *arena;
static void set_up(void) {
  arena = new_arena();
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(search_confirm, .init = set_up, .fini = tear_down);

static const ft_search_options CONFIRMED = {.confirm = true}, PLAIN = {0};

static const ft_searched_partition *answer(const ft_search_result *r) {
  return ft_search_find(r, "ideals");
}

Test(search_confirm, an_honest_first_look_is_kept_and_costs_no_trials) {
  const ft_graph *graph = layers(arena, 2);
  fake f = {.seed = 3, .schedules = 3}, g = f;
  ft_search_result plain, confirmed;
  search_ok(&f, graph, &PLAIN, arena, &plain);
  search_ok(&g, graph, &CONFIRMED, arena, &confirmed);
  cr_assert_eq(f.confirmations, 0);
  cr_assert_gt(g.confirmations, 0);
  cr_assert_eq(confirmed.trials, plain.trials);
  cr_assert_eq(answer(&confirmed)->additive_ns, answer(&plain)->additive_ns);
}

Test(search_confirm, a_lucky_first_look_does_not_win) {
  const ft_graph *graph = layers(arena, 2);
  fake f = {.seed = 3, .luck_ns = 1000000};
  ft_search_result r;
  search_ok(&f, graph, &CONFIRMED, arena, &r);
  // Every fused group is a million slower than it looked: one kernel per primitive wins.
  cr_assert_eq(answer(&r)->partition.group_count, graph->primitive_count);
  cr_assert_lt(answer(&r)->additive_ns, 1000000);
}

Test(search_confirm, every_group_of_the_answer_was_looked_at_twice) {
  const ft_graph *graph = layers(arena, 3);
  fake f = {.seed = 9, .schedules = 2, .luck_ns = 100};
  ft_search_result r;
  search_ok(&f, graph, &CONFIRMED, arena, &r);
  const ft_searched_partition *p = answer(&r);
  for (uint32_t i = 0; i < p->partition.group_count; i++)
    cr_assert_eq(r.group[p->unique[i]].trial.time.samples, 30, "group %u", i);
}

Test(search_confirm, a_group_that_crashes_the_second_time_is_out) {
  const ft_graph *graph = layers(arena, 2);
  fake f = {.seed = 3, .fail_confirmations = true};
  ft_search_result r;
  search_ok(&f, graph, &CONFIRMED, arena, &r);
  cr_assert(answer(&r)->is_complete);
  cr_assert_eq(answer(&r)->partition.group_count, graph->primitive_count);
}

Test(search_confirm, an_unlucky_first_look_does_not_lose) {
  const ft_graph *graph = layers(arena, 2);
  fake f = {.seed = 3, .bad_luck_ns = 1000000}, honest = {.seed = 3};
  ft_search_result unlucky, right;
  search_ok(&f, graph, &CONFIRMED, arena, &unlucky);
  search_ok(&honest, graph, &CONFIRMED, arena, &right);
  cr_assert_eq(answer(&unlucky)->additive_ns, answer(&right)->additive_ns);
  cr_assert_lt(answer(&unlucky)->partition.group_count, graph->primitive_count);
}
