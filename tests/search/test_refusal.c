#include "tests/search/fake.h"

static ft_arena *arena;
static void set_up(void) {
  arena = new_arena();
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(search_refusal, .init = set_up, .fini = tear_down);

static const ft_refusal *find(const ft_search_result *r, uint32_t producer,
                              uint32_t consumer) {
  for (uint32_t i = 0; i < r->refusal_count; i++)
    if (r->refusal[i].producer == producer && r->refusal[i].consumer == consumer)
      return &r->refusal[i];
  cr_assert_fail("no refusal for %u -> %u", producer, consumer);
  return NULL;
}

static void run(fake *f, const ft_graph *graph, const ft_search_options *options,
                ft_search_result *r) {
  search_ok(f, graph, options, arena, r);
}

Test(search_refusal, rule_is_what_stands_before_the_colon_and_detail_the_whole_reason) {
  sketch s = sketch_new(arena);
  uint32_t sum = op1(&s, FT_OP_REDUCE_SUM, input(&s, "x"), 0);
  output(&s, op1(&s, FT_OP_REDUCE_MAX, sum, 0));
  fake f = {.max_reductions = 1};
  ft_search_options options = {0};
  ft_search_result r;
  run(&f, finish(&s), &options, &r);
  cr_assert_eq(r.refusal_count, 1);
  cr_assert_str_eq(find(&r, 0, 1)->rule, "reductions");
  cr_assert_str_eq(find(&r, 0, 1)->detail, "reductions: too many for one row");
}

Test(search_refusal, rule_is_the_first_word_when_there_is_no_colon) {
  fake f = {.exact_size = 9};
  ft_search_options options = {0};
  ft_search_result r;
  run(&f, chain(arena, 2), &options, &r);
  cr_assert_str_eq(find(&r, 0, 1)->rule, "size");
  cr_assert_str_eq(find(&r, 0, 1)->detail, "size is not the one");
}

Test(search_refusal, names_window_and_span_with_their_numbers) {
  fake f = {.is_roofline = true};
  ft_search_options options = {.window = 2};
  ft_search_result r;
  run(&f, chain(arena, 4), &options, &r);
  cr_assert_eq(r.refusal_count, 1);
  cr_assert_str_eq(find(&r, 1, 2)->rule, "window");
  cr_assert_str_eq(find(&r, 1, 2)->detail, "4 primitives together, the window is 2");
  options = (ft_search_options){.span = 2};
  run(&f, chain(arena, 4), &options, &r);
  cr_assert_str_eq(find(&r, 1, 2)->rule, "span");
  cr_assert_str_eq(find(&r, 1, 2)->detail, "they reach over 4 primitives, the span is 2");
}

Test(search_refusal, says_cycle_when_something_must_run_between) {
  sketch s = sketch_new(arena);
  uint32_t a = op1(&s, FT_OP_EXP, input(&s, "x"), 0);
  uint32_t b = op1(&s, FT_OP_REDUCE_SUM, a, 0);
  output(&s, op1(&s, FT_OP_DIV, a, b));
  fake f = {.exact_size = 9};
  ft_search_options options = {0};
  ft_search_result r;
  run(&f, finish(&s), &options, &r);
  cr_assert_str_eq(find(&r, 0, 2)->rule, "cycle");
  cr_assert_str_eq(find(&r, 1, 2)->rule, "size");
}

Test(search_refusal, does_not_blame_a_cycle_that_the_groups_would_close) {
  // 0 -> 1 -> 2 and 0 -> 2: the first is apart because three are too many.
  sketch s = sketch_new(arena);
  uint32_t a = op1(&s, FT_OP_EXP, input(&s, "x"), 0);
  output(&s, op1(&s, FT_OP_MUL, a, op1(&s, FT_OP_TANH, a, 0)));
  const ft_graph *graph = finish(&s);
  for (uint64_t seed = 0; seed < 100; seed++) {
    fake f = {.seed = seed};
    ft_search_options options = {.window = 2};
    ft_search_result r;
    run(&f, graph, &options, &r);
    if (ft_search_find(&r, "ideals")->partition.group_count != 2) continue;
    cr_assert_str_eq(find(&r, 0, 2)->rule, "window");
    return;
  }
  cr_assert_fail("no seed gave two groups");
}

Test(search_refusal, says_slower_with_both_times_when_the_merged_kernel_was_measured) {
  // Find a seed under which two kernels beat one.
  for (uint64_t seed = 0; seed < 100; seed++) {
    fake f = {.seed = seed};
    ft_search_options options = {0};
    ft_search_result r;
    run(&f, chain(arena, 2), &options, &r);
    const ft_searched_partition *best = ft_search_find(&r, "ideals");
    if (best->partition.group_count == 1) continue;
    double one = 0;
    for (uint32_t i = 0; i < r.group_count; i++)
      if (r.group[i].workload.group.primitive_count == 2) one = r.group[i].cost_ns;
    const char *expected = ft_arena_printf(
        arena, "one kernel takes %.0f ns, two %.0f + %.0f ns", one,
        r.group[best->unique[0]].cost_ns, r.group[best->unique[1]].cost_ns);
    cr_assert_str_eq(find(&r, 0, 1)->rule, "slower");
    cr_assert_str_eq(find(&r, 0, 1)->detail, expected);
    return;
  }
  cr_assert_fail("no seed made two kernels faster than one");
}

Test(search_refusal, says_fails_or_unmeasured_when_there_is_no_time_for_the_merged_one) {
  fake f = {.fail_pairs = true};
  ft_search_options options = {.window = 2};
  ft_search_result r;
  run(&f, chain(arena, 2), &options, &r);
  cr_assert_str_eq(find(&r, 0, 1)->rule, "fails");
  cr_assert(strstr(find(&r, 0, 1)->detail, "wrong_result, wrong on purpose"));
  f = (fake){.seed = 1};
  options = (ft_search_options){.max_trials = 2, .batch = 1};
  run(&f, chain(arena, 2), &options, &r);
  cr_assert_eq(ft_search_find(&r, "ideals")->partition.group_count, 2);
  cr_assert_str_eq(find(&r, 0, 1)->rule, "unmeasured");
}

Test(search_refusal, covers_every_edge_between_two_kernels_and_none_inside_one) {
  ft_rng rng = ft_rng_seed(16);
  for (uint32_t i = 0; i < 20; i++) {
    const ft_graph *graph = random_graph(arena, &rng, 10);
    fake f = {.seed = i, .max_reductions = 1};
    ft_search_options options = {.window = 3};
    ft_search_result r;
    run(&f, graph, &options, &r);
    uint32_t owner[64], edges = 0;
    const ft_partition *p = &ft_search_find(&r, "ideals")->partition;
    for (uint32_t g = 0; g < p->group_count; g++)
      for (uint32_t k = 0; k < p->group[g].primitive_count; k++)
        owner[p->group[g].primitive[k]] = g;
    for (uint32_t v = 0; v < graph->value_count; v++) {
      const ft_value *value = &graph->value[v];
      if (value->root != v || value->producer == FT_NONE) continue;
      for (uint32_t k = 0; k < value->consumer_count; k++)
        edges += owner[value->producer] != owner[value->consumer[k]];
    }
    cr_assert_eq(r.refusal_count, edges);
    for (uint32_t k = 0; k < r.refusal_count; k++) {
      cr_assert_neq(owner[r.refusal[k].producer], owner[r.refusal[k].consumer]);
      cr_assert(r.refusal[k].rule[0] && r.refusal[k].detail[0]);
    }
  }
}
