#include "search/strategy.h"

#include "tests/search/fake.h"

static ft_arena *arena;
static void set_up(void) {
  arena = new_arena();
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(search_strategy, .init = set_up, .fini = tear_down);

static const ft_searched_partition *find(const ft_search_result *r, const char *name) {
  const ft_searched_partition *p = ft_search_find(r, name);
  cr_assert_not_null(p);
  return p;
}

static uint32_t group_with(const ft_searched_partition *p, uint32_t primitive) {
  for (uint32_t g = 0; g < p->partition.group_count; g++)
    for (uint32_t i = 0; i < p->partition.group[g].primitive_count; i++)
      if (p->partition.group[g].primitive[i] == primitive) return g;
  cr_assert_fail("primitive %u is in no group", primitive);
  return 0;
}

Test(search_strategy, result_has_one_partition_per_line_of_the_table_by_its_name) {
  fake f = {0};
  ft_search_options options = {0};
  ft_search_result r;
  search_ok(&f, chain(arena, 3), &options, arena, &r);
  cr_assert_eq(r.partition_count, FT_STRATEGY_COUNT);
  for (uint32_t i = 0; i < FT_STRATEGY_COUNT; i++)
    cr_assert_str_eq(r.partition[i].strategy, ft_strategies[i].name);
  cr_assert_null(ft_search_find(&r, "greedy"));
}

// gelu: one operator of three primitives, then a softmax-like one of four.
static const ft_graph *two_operators(void) {
  sketch s = sketch_new(arena);
  uint32_t x = input(&s, "x");
  operator_(&s, "act", "Gelu");
  uint32_t gelu =
      emit(&s, FT_OP_MUL, emit(&s, FT_OP_ERF, emit(&s, FT_OP_NEG, x, 0), 0), x);
  operator_(&s, "soft", "Softmax");
  uint32_t sub = emit(&s, FT_OP_SUB, gelu, emit(&s, FT_OP_REDUCE_MAX, gelu, 0));
  uint32_t e = emit(&s, FT_OP_EXP, sub, 0);
  output(&s, emit(&s, FT_OP_DIV, e, emit(&s, FT_OP_REDUCE_SUM, e, 0)));
  return finish(&s);
}

Test(search_strategy, unfused_is_one_group_per_operator_even_beyond_the_window) {
  const ft_graph *graph = two_operators();
  for (uint32_t window = 1; window <= 8; window++) {
    fake f = {.seed = window};
    ft_search_options options = {.window = window};
    ft_search_result r;
    search_ok(&f, graph, &options, arena, &r);
    const ft_searched_partition *p = find(&r, "unfused");
    cr_assert_eq(p->partition.group_count, 2);
    cr_assert_str_eq(p->note, "");
    for (uint32_t i = 0; i < graph->operator_count; i++) {
      const ft_operator *op = &graph->operator_[i];
      cr_assert_eq(p->partition.group[i].primitive_count, op->count);
      cr_assert_eq(group_with(p, op->first), i);
    }
    cr_assert_leq(find(&r, "ideals")->additive_ns, p->additive_ns);
  }
}

Test(search_strategy, unfused_cuts_an_operator_into_the_fewest_legal_runs_and_says_so) {
  const ft_graph *graph = two_operators();
  fake f = {.max_reductions = 1};
  ft_search_options options = {0};
  ft_search_result r;
  search_ok(&f, graph, &options, arena, &r);
  const ft_searched_partition *p = find(&r, "unfused");
  cr_assert_eq(p->partition.group_count, 3);
  cr_assert_str_eq(p->note, "Softmax soft takes 2 kernels");
  // Of equal cuts the longest first run: max, sub, exp | sum, div.
  cr_assert_eq(group_with(p, 3), group_with(p, 5));
  cr_assert_eq(group_with(p, 6), group_with(p, 7));
  cr_assert_str_eq(find(&r, "ideals")->note, "");
}

Test(search_strategy, unfused_cuts_an_operator_whose_every_kernel_failed) {
  sketch s = sketch_new(arena);
  operator_(&s, "pair", "Pair");
  uint32_t x = input(&s, "x");
  output(&s, emit(&s, FT_OP_EXP, emit(&s, FT_OP_NEG, x, 0), 0));
  fake f = {.fail_pairs = true};
  ft_search_options options = {0};
  ft_search_result r;
  search_ok(&f, finish(&s), &options, arena, &r);
  const ft_searched_partition *p = find(&r, "unfused");
  cr_assert(p->is_complete);
  cr_assert_eq(p->partition.group_count, 2);
  cr_assert_str_eq(p->note, "Pair pair takes 2 kernels");
}

Test(search_strategy, primitive_is_one_group_each) {
  const ft_graph *graph = two_operators();
  fake f = {0};
  ft_search_options options = {0};
  ft_search_result r;
  search_ok(&f, graph, &options, arena, &r);
  const ft_searched_partition *p = find(&r, "primitive");
  cr_assert_eq(p->partition.group_count, graph->primitive_count);
}

Test(search_strategy, greedy_merges_siblings_that_share_an_input) {
  sketch s = sketch_new(arena);
  uint32_t x = input(&s, "x");
  output(&s, op1(&s, FT_OP_EXP, x, 0));
  output(&s, op1(&s, FT_OP_TANH, x, 0));
  output(&s, op1(&s, FT_OP_NEG, input(&s, "y"), 0));
  fake f = {.is_roofline = true};
  ft_search_options options = {0};
  ft_search_result r;
  search_ok(&f, finish(&s), &options, arena, &r);
  const ft_searched_partition *p = find(&r, "horizontal-vertical");
  cr_assert_eq(p->partition.group_count, 2);
  cr_assert_eq(group_with(p, 0), group_with(p, 1));
}

Test(search_strategy, greedy_keeps_to_window_span_and_the_rules) {
  const ft_graph *graph = layers(arena, 4);
  for (uint32_t window = 1; window <= 5; window++) {
    fake f = {.is_roofline = true, .max_reductions = 1};
    ft_search_options options = {.window = window, .span = 4};
    ft_search_result r;
    search_ok(&f, graph, &options, arena, &r);
    const ft_searched_partition *p = find(&r, "horizontal-vertical");
    for (uint32_t g = 0; g < p->partition.group_count; g++) {
      const ft_group *group = &p->partition.group[g];
      cr_assert_leq(group->primitive_count, window);
      cr_assert_leq(count_reductions(group), 1);
      for (uint32_t i = 0; i < group->primitive_count; i++)
        for (uint32_t k = 0; k < group->primitive_count; k++)
          cr_assert_lt((int)group->primitive[i] - (int)group->primitive[k], 4);
    }
  }
}

Test(search_strategy, greedy_undoes_a_merge_that_measuring_shows_to_be_slow) {
  fake f = {.is_roofline = true, .slow_above = 3};
  ft_search_options options = {0};
  ft_search_result r;
  search_ok(&f, chain(arena, 9), &options, arena, &r);
  // By bytes all nine would be one.
  const ft_searched_partition *p = find(&r, "horizontal-vertical");
  for (uint32_t g = 0; g < p->partition.group_count; g++)
    cr_assert_leq(p->partition.group[g].primitive_count, 3);
  cr_assert_leq(p->partition.group_count, 5);
  cr_assert_eq(find(&r, "ideals")->partition.group_count, 3);
}

Test(search_strategy, ideals_cost_at_most_what_each_other_strategy_costs) {
  ft_rng rng = ft_rng_seed(14);
  uint32_t strictly = 0;
  for (uint32_t i = 0; i < 60; i++) {
    fake f = {.seed = i, .max_reductions = i % 3, .fail_percent = i % 2 ? 20 : 0};
    ft_search_options options = {.window = 1 + i % 6, .span = 1 + i % 16};
    ft_search_result r;
    search_ok(&f, random_graph(arena, &rng, 10), &options, arena, &r);
    for (uint32_t k = 1; k < r.partition_count; k++) {
      cr_assert_leq(r.partition[0].additive_ns, r.partition[k].additive_ns);
      strictly += r.partition[0].additive_ns < r.partition[k].additive_ns;
    }
  }
  cr_assert_gt(strictly, 50);
}
