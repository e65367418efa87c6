#include "search/strategy.h"
#include "tests/search/fake.h"

static ft_arena *arena;
static void set_up(void) {
  arena = new_arena();
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(search_search, .init = set_up, .fini = tear_down);

static const ft_search_options DEFAULTS = {0}, EXHAUSTIVE = {.is_exhaustive = true};

static double additive(const ft_search_result *r, const char *strategy) {
  const ft_searched_partition *p = ft_search_find(r, strategy);
  cr_assert_not_null(p, "%s", strategy);
  return p->additive_ns;
}

static bool is_same_partition(const ft_partition *a, const ft_partition *b) {
  if (a->group_count != b->group_count) return false;
  // Both are in the one order that ft_partition_make gives.
  for (uint32_t i = 0; i < a->group_count; i++) {
    if (a->group[i].primitive_count != b->group[i].primitive_count) return false;
    uint64_t in_a = 0, in_b = 0;  // the tests that list partitions stay below 64
    for (uint32_t k = 0; k < a->group[i].primitive_count; k++) {
      in_a |= 1ull << (a->group[i].primitive[k] & 63);
      in_b |= 1ull << (b->group[i].primitive[k] & 63);
    }
    if (in_a != in_b) return false;
  }
  return true;
}

static void check_alternatives(const ft_graph *graph, const ft_search_result *r) {
  double before = additive(r, "ideals");
  cr_assert_leq(r->alternative_count, FT_ALTERNATIVES);
  for (uint32_t i = 0; i < r->alternative_count; i++) {
    const ft_searched_partition *p = &r->alternative[i];
    MUST(ft_partition_check(&p->partition, &must_error));
    cr_assert(p->is_complete && isfinite(p->additive_ns));
    cr_assert_geq(p->additive_ns, before);
    before = p->additive_ns;
    uint32_t primitives = 0;
    for (uint32_t k = 0; k < p->partition.group_count; k++)
      primitives += p->partition.group[k].primitive_count;
    cr_assert_eq(primitives, graph->primitive_count);
    for (uint32_t s = 0; s < r->partition_count; s++)
      if (ft_strategies[s].is_tuned)
        cr_assert_not(is_same_partition(&p->partition, &r->partition[s].partition));
    for (uint32_t k = 0; k < i; k++)
      cr_assert_not(is_same_partition(&p->partition, &r->alternative[k].partition));
  }
}

// What every result must hold, whatever the graph.
static void check_result(const ft_graph *graph, const ft_search_result *r) {
  cr_assert_eq(r->partition_count, FT_STRATEGY_COUNT);
  for (uint32_t i = 0; i < r->partition_count; i++) {
    const ft_searched_partition *p = &r->partition[i];
    MUST(ft_partition_check(&p->partition, &must_error));
    uint32_t primitives = 0;
    double sum = 0;
    for (uint32_t k = 0; k < p->partition.group_count; k++) {
      const ft_searched_group *unique = &r->group[p->unique[k]];
      primitives += p->partition.group[k].primitive_count;
      sum += unique->cost_ns;
      cr_assert(ft_workload_equal(&unique->workload, &p->workload[k]));
      cr_assert_eq(p->workload[k].group.primitive, p->partition.group[k].primitive);
    }
    cr_assert_eq(primitives, graph->primitive_count);
    cr_assert_eq(p->is_complete, isfinite(sum) != 0);
    cr_assert_eq(p->additive_ns, sum, "%s", p->strategy);
    cr_assert_leq(additive(r, "ideals"), p->additive_ns, "%s", p->strategy);
  }
  check_alternatives(graph, r);
  cr_assert(r->gap >= 0 && r->gap <= 1);
  cr_assert_leq(r->bound_ns, additive(r, "ideals"));
  for (uint32_t i = 0; i < r->group_count; i++) {
    const ft_searched_group *g = &r->group[i];
    cr_assert_eq(g->is_measured, isfinite(g->cost_ns) != 0);
    if (!g->is_measured) continue;
    cr_assert_eq(g->cost_ns, (double)g->trial.time.median_ns);
    cr_assert(ft_workload_equal(g->best.workload, &g->workload));
    cr_assert_eq(g->trial.outcome, FT_OUTCOME_OK);
  }
}

Test(search_search, exhaustive_measures_everything_and_ends_complete_with_gap_zero) {
  const ft_graph *graph = layers(arena, 3);
  fake f = {.seed = 1, .schedules = 5, .tactics = 2};
  ft_search_result r;
  search_ok(&f, graph, &EXHAUSTIVE, arena, &r);
  check_result(graph, &r);
  cr_assert_str_eq(r.stop_reason, "complete");
  cr_assert_eq(r.gap, 0);
  cr_assert_eq(r.trials, r.group_count * 10);
  cr_assert_eq(r.trials, f.trials);
  for (uint32_t i = 0; i < r.group_count; i++) {
    cr_assert_eq(r.group[i].space, 10);
    cr_assert_eq(r.group[i].cost_ns, fake_best_ns(&f, &r.group[i].workload));
  }
}

Test(search_search, chain_of_eight_that_is_bound_by_memory_becomes_one_kernel) {
  const ft_graph *graph = chain(arena, 8);
  fake f = {.seed = 1, .is_roofline = true};
  ft_search_result r;
  search_ok(&f, graph, &DEFAULTS, arena, &r);
  check_result(graph, &r);
  cr_assert_eq(ft_search_find(&r, "ideals")->partition.group_count, 1);
  cr_assert_eq(ft_search_find(&r, "horizontal-vertical")->partition.group_count, 1);
  cr_assert_eq(ft_search_find(&r, "unfused")->partition.group_count, 8);
  cr_assert_eq(ft_search_find(&r, "primitive")->partition.group_count, 8);
  cr_assert_eq(r.legal_groups, 36);
  cr_assert_eq(r.ideals, 9);
  cr_assert_eq(r.transitions, 36);
  cr_assert_not(r.window_saturated, "nothing is left to fuse");
  cr_assert_eq(r.refusal_count, 0);
}

Test(search_search, identical_layers_cost_the_same_number_of_unique_groups) {
  uint32_t unique = 0;
  for (uint32_t count = 3; count <= 24; count += 7) {
    fake f = {.seed = 2, .max_reductions = 1};
    ft_search_options options = {.window = 6};
    ft_search_result r;
    const ft_graph *graph = layers(arena, count);
    search_ok(&f, graph, &options, arena, &r);
    check_result(graph, &r);
    if (!unique) unique = r.group_count;
    cr_assert_eq(r.group_count, unique, "%u layers: %u unique", count, r.group_count);
    cr_assert_leq(r.trials, unique);
    uint32_t instances = 0;
    for (uint32_t i = 0; i < r.group_count; i++) instances += r.group[i].instances;
    cr_assert_eq(instances, r.legal_groups);
    cr_assert_gt(r.legal_groups, unique);
  }
}

Test(search_search, a_larger_window_or_span_never_costs_more) {
  ft_rng rng = ft_rng_seed(10);
  for (uint32_t i = 0; i < 15; i++) {
    const ft_graph *graph = random_graph(arena, &rng, 12);
    double before = INFINITY;
    for (uint32_t window = 1; window <= 8; window++) {
      fake f = {.seed = i};
      ft_search_options options = {.window = window, .span = 16};
      ft_search_result r;
      search_ok(&f, graph, &options, arena, &r);
      check_result(graph, &r);
      cr_assert_leq(additive(&r, "ideals"), before);
      before = additive(&r, "ideals");
    }
    before = INFINITY;
    for (uint32_t span = 1; span <= 64; span *= 2) {
      fake f = {.seed = i};
      ft_search_options options = {.window = 4, .span = span};
      ft_search_result r;
      search_ok(&f, graph, &options, arena, &r);
      check_result(graph, &r);
      cr_assert_leq(r.bound_ns, before);
      before = r.bound_ns;
    }
  }
}

Test(search_search, says_when_a_larger_window_might_do_better) {
  const ft_graph *graph = chain(arena, 12);
  fake f = {.is_roofline = true};
  ft_search_options options = {.window = 4};
  ft_search_result r;
  search_ok(&f, graph, &options, arena, &r);
  cr_assert(r.window_saturated);
  cr_assert_eq(ft_search_find(&r, "ideals")->partition.group_count, 3);
  options.window = 20;
  search_ok(&f, graph, &options, arena, &r);
  cr_assert_not(r.window_saturated);
}

Test(search_search, lists_the_runners_up_best_first) {
  const ft_graph *graph = chain(arena, 5);
  fake f = {.seed = 4};
  ft_search_result r;
  search_ok(&f, graph, &DEFAULTS, arena, &r);
  check_result(graph, &r);
  cr_assert_eq(r.alternative_count, FT_ALTERNATIVES, "16 partitions, 3 of them shown");
  cr_assert_str_eq(r.alternative[0].strategy, "ideals");
}

// ---- unusual graphs ------------------------------------------------------------

Test(search_search, graph_of_nothing_has_a_complete_empty_partition) {
  sketch s = sketch_new(arena);
  output(&s, input(&s, "x"));
  const ft_graph *graph = finish(&s);
  fake f = {0};
  ft_search_result r;
  search_ok(&f, graph, &DEFAULTS, arena, &r);
  check_result(graph, &r);
  cr_assert_eq(ft_search_find(&r, "ideals")->partition.group_count, 0);
  cr_assert_eq(r.gap, 0);
  cr_assert_eq(r.trials, 0);
  cr_assert_str_eq(r.stop_reason, "complete");
}

Test(search_search, graph_of_one_primitive_has_one_kernel) {
  const ft_graph *graph = chain(arena, 1);
  fake f = {.schedules = 3};
  ft_search_result r;
  search_ok(&f, graph, &DEFAULTS, arena, &r);
  check_result(graph, &r);
  cr_assert_eq(r.group_count, 1);
  cr_assert_eq(r.trials, 3);
}

Test(search_search, graph_in_two_pieces_is_divided_piece_by_piece) {
  sketch s = sketch_new(arena);
  uint32_t x = input(&s, "x"), y = input(&s, "y");
  for (uint32_t i = 0; i < 4; i++) {
    x = op1(&s, i % 2 ? FT_OP_EXP : FT_OP_TANH, x, 0);
    y = op1(&s, i % 2 ? FT_OP_NEG : FT_OP_SQRT, y, 0);
  }
  output(&s, x);
  output(&s, y);
  const ft_graph *graph = finish(&s);
  fake f = {.is_roofline = true};
  ft_search_result r;
  search_ok(&f, graph, &DEFAULTS, arena, &r);
  check_result(graph, &r);
  cr_assert_eq(r.ideals, 25);
  cr_assert_eq(ft_search_find(&r, "ideals")->partition.group_count, 2);
}

Test(search_search, one_input_read_twice_and_dangling_outputs_are_nothing_special) {
  sketch s = sketch_new(arena);
  uint32_t x = input(&s, "x");
  uint32_t twice = op1(&s, FT_OP_MUL, x, x);
  output(&s, twice);
  output(&s, op1(&s, FT_OP_ADD, twice, twice));
  for (uint32_t i = 0; i < 5; i++)
    output(
        &s,
        op1(&s, i % 2 ? FT_OP_SUB : FT_OP_DIV, twice,
            op1(&s, (ft_op[]){FT_OP_EXP, FT_OP_ABS, FT_OP_SIN, FT_OP_COS, FT_OP_ERF}[i],
                x, 0)));
  const ft_graph *graph = finish(&s);
  fake f = {.is_roofline = true};
  ft_search_options options = {.window = 20};
  ft_search_result r;
  search_ok(&f, graph, &options, arena, &r);
  check_result(graph, &r);
  cr_assert_eq(ft_search_find(&r, "ideals")->partition.group_count, 1);
}

Test(search_search, wide_graph_is_cut_but_still_solved_and_says_so) {
  sketch s = sketch_new(arena);
  for (uint32_t i = 0; i < 40; i++) {
    uint32_t x = input(&s, ft_arena_printf(arena, "x%u", i));
    output(&s, op1(&s, FT_OP_EXP, op1(&s, FT_OP_TANH, x, 0), 0));
  }
  const ft_graph *graph = finish(&s);
  fake f = {.is_roofline = true};
  ft_search_result r;
  search_ok(&f, graph, &DEFAULTS, arena, &r);
  check_result(graph, &r);
  cr_assert_eq(ft_search_find(&r, "ideals")->partition.group_count, 40);
  cr_assert(r.is_cut);
  cr_assert_lt(r.span, 64);
  cr_assert_eq(r.group_count, 3);
}

Test(search_search, six_hundred_primitives_in_layers_stay_narrow) {
  const ft_graph *graph = layers(arena, 86);
  cr_assert_eq(graph->primitive_count, 602);
  fake f = {.seed = 3, .is_roofline = true, .max_reductions = 2};
  ft_search_result r;
  search_ok(&f, graph, &DEFAULTS, arena, &r);
  check_result(graph, &r);
  cr_assert_not(r.is_cut);
  cr_assert_leq(r.ideals, 86 * 10);
  cr_assert_leq(r.transitions, 602 * 40);
  cr_assert_leq(r.group_count, 400);
  cr_assert_eq(r.gap, 0);
}

// ---- what cannot be kernels ----------------------------------------------------

Test(search_search, lists_every_primitive_without_a_tactic_by_name_op_and_reason) {
  sketch s = sketch_new(arena);
  uint32_t x = input(&s, "x");
  operator_(&s, "first_norm", "Norm");
  uint32_t a = emit(&s, FT_OP_REDUCE_SUM, x, 0);
  operator_(&s, "second_norm", "Norm");
  uint32_t b = emit(&s, FT_OP_REDUCE_SUM, emit(&s, FT_OP_EXP, x, 0), 0);
  output(&s, op1(&s, FT_OP_ADD, a, b));
  fake f = {.has_forbidden = true, .forbidden = FT_OP_REDUCE_SUM};
  ft_search_result r;
  ft_error error = {0};
  cr_assert_eq(fake_search(&f, finish(&s), &DEFAULTS, arena, &r, &error),
               FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "2 primitives"), "%s", error.text);
  cr_assert(strstr(error.text, "reduce_sum of Norm first_norm: forbidden by the test"));
  cr_assert(strstr(error.text, "reduce_sum of Norm second_norm"));
  cr_assert_not(strstr(error.text, "exp"));
  cr_assert_eq(f.trials, 0);
}

Test(search_search, finds_a_legal_whole_whose_parts_are_illegal) {
  const ft_graph *graph = chain(arena, 7);
  fake f = {.is_roofline = true, .exact_size = 7};
  ft_search_result r;
  search_ok(&f, graph, &DEFAULTS, arena, &r);
  check_result(graph, &r);
  cr_assert_eq(ft_search_find(&r, "ideals")->partition.group_count, 1);
  cr_assert_eq(ft_search_find(&r, "horizontal-vertical")->partition.group_count, 7,
               "greedy cannot see it");
  cr_assert_eq(r.legal_groups, 8);
}

// ---- what goes wrong while measuring -------------------------------------------

Test(search_search, candidates_that_fail_never_win_and_others_of_the_group_do) {
  const ft_graph *graph = layers(arena, 2);
  fake f = {.seed = 4, .schedules = 4, .fail_defaults = true};
  ft_search_result r;
  search_ok(&f, graph, &EXHAUSTIVE, arena, &r);
  check_result(graph, &r);
  for (uint32_t i = 0; i < r.group_count; i++) {
    cr_assert(r.group[i].is_measured);
    cr_assert_neq(ft_schedule_get(&r.group[i].best.schedule, "s", -1), 0);
  }
  cr_assert_eq(r.gap, 0);
}

Test(search_search, a_group_that_never_works_is_left_out_and_keeps_its_failure) {
  const ft_graph *graph = chain(arena, 6);
  fake f = {.is_roofline = true, .fail_pairs = true, .schedules = 2};
  ft_search_options options = {.window = 2, .is_exhaustive = true};
  ft_search_result r;
  search_ok(&f, graph, &options, arena, &r);
  check_result(graph, &r);
  cr_assert_eq(ft_search_find(&r, "ideals")->partition.group_count, 6);
  cr_assert_eq(r.gap, 0);
  for (uint32_t i = 0; i < r.group_count; i++) {
    if (r.group[i].workload.group.primitive_count != 2) continue;
    cr_assert_eq(r.group[i].trial.outcome, FT_OUTCOME_WRONG_RESULT);
    cr_assert_str_eq(r.group[i].trial.error, "wrong on purpose");
    cr_assert_eq(r.group[i].trials, 2);
  }
}

Test(search_search, when_nothing_works_there_is_a_partition_but_it_is_not_complete) {
  const ft_graph *graph = chain(arena, 3);
  fake f = {.fail_percent = 100};
  ft_search_result r;
  search_ok(&f, graph, &DEFAULTS, arena, &r);
  check_result(graph, &r);
  cr_assert_not(ft_search_find(&r, "ideals")->is_complete);
  cr_assert_eq(r.gap, 1);
  cr_assert_str_eq(r.stop_reason, "complete");
}

Test(search_search, groups_with_an_empty_space_are_never_used) {
  const ft_graph *graph = chain(arena, 4);
  fake f = {.is_roofline = true, .empty_spaces = true};
  ft_search_result r;
  search_ok(&f, graph, &DEFAULTS, arena, &r);
  check_result(graph, &r);
  cr_assert_eq(ft_search_find(&r, "ideals")->partition.group_count, 4);
  cr_assert_eq(r.gap, 0);
}

Test(search_search, an_interruption_returns_what_was_learnt) {
  const ft_graph *graph = layers(arena, 2);
  for (uint32_t after = 1; after < 60; after += 13) {
    fake f = {.seed = 5, .interrupt_after = after};
    ft_search_options options = {.batch = 7, .is_exhaustive = true};
    ft_search_result r;
    ft_error error = {0};
    cr_assert_eq(fake_search(&f, graph, &options, arena, &r, &error), FT_INTERRUPTED);
    check_result(graph, &r);
    cr_assert_str_eq(r.stop_reason, "interrupted");
    cr_assert_eq(r.trials, after);
    cr_assert_gt(r.gap, 0);
  }
}

static ft_status broken(void *self, const ft_measure_request *request, uint32_t count,
                        ft_arena *into, ft_trial *out, ft_error *error) {
  (void)self, (void)request, (void)count, (void)into, (void)out;
  FT_FAIL(error, FT_UNAVAILABLE, "no device");
}

Test(search_search, passes_on_what_the_runner_says_of_itself) {
  fake f = {0};
  ft_builder builder = {.self = &f, .match = fake_match, .space = fake_space};
  ft_runner runner = {.measure = broken};
  ft_target target = {.name = "none"};
  ft_search_result r;
  ft_error error = {0};
  cr_assert_eq(ft_search_run(chain(arena, 2), &target, &builder, &runner, &DEFAULTS,
                             arena, &r, &error),
               FT_UNAVAILABLE);
  cr_assert_str_eq(error.text, "no device");
}

static ft_status stop_at_once(void *self, const ft_measure_request *request,
                              uint32_t count, ft_arena *into, ft_trial *out,
                              ft_error *error) {
  (void)self, (void)request, (void)count, (void)into, (void)out;
  FT_FAIL(error, FT_INTERRUPTED, "stopped");
}

Test(search_search, trials_that_an_interrupted_runner_did_not_fill_count_for_nothing) {
  fake f = {0};
  ft_builder builder = {.self = &f, .match = fake_match, .space = fake_space};
  ft_runner runner = {.measure = stop_at_once};
  ft_target target = {.name = "none"};
  ft_search_result r;
  ft_error error = {0};
  const ft_graph *graph = chain(arena, 2);
  cr_assert_eq(
      ft_search_run(graph, &target, &builder, &runner, &DEFAULTS, arena, &r, &error),
      FT_INTERRUPTED);
  check_result(graph, &r);
  cr_assert_eq(r.trials, 0);
  cr_assert_eq(r.group[0].trial.outcome, FT_OUTCOME_PENDING);
}

// ---- budgets -------------------------------------------------------------------

Test(search_search, a_budget_of_n_trials_is_n_trials) {
  const ft_graph *graph = layers(arena, 2);
  uint32_t before = 0;
  for (uint32_t n = 1; n < 400; n += 37) {
    fake f = {.seed = 6, .schedules = 10};
    ft_search_options options = {.max_trials = n, .batch = 16, .is_exhaustive = true};
    ft_search_result r;
    search_ok(&f, graph, &options, arena, &r);
    check_result(graph, &r);
    cr_assert_eq(f.trials, n);
    cr_assert_eq(r.trials, n);
    cr_assert_str_eq(r.stop_reason, "trials");
    cr_assert_leq(before, n);
    before = n;
  }
}

Test(search_search, baselines_are_complete_as_soon_as_their_groups_are_measured) {
  const ft_graph *graph = chain(arena, 12);
  fake f = {.seed = 7, .schedules = 3};
  ft_search_result r;
  ft_search_options options = {.max_trials = 20, .batch = 4};
  search_ok(&f, graph, &options, arena, &r);
  check_result(graph, &r);
  cr_assert_gt(r.group_count, 60, "else nothing is left out");
  cr_assert(ft_search_find(&r, "unfused")->is_complete);
  cr_assert(ft_search_find(&r, "primitive")->is_complete);
  cr_assert(ft_search_find(&r, "horizontal-vertical")->is_complete);
  cr_assert(ft_search_find(&r, "ideals")->is_complete);
  cr_assert_gt(r.gap, 0);
}

Test(search_search, the_bound_rises_and_the_gap_closes_as_more_is_measured) {
  const ft_graph *graph = layers(arena, 2);
  double bound = 0;
  for (uint32_t n = 20; n < 2000; n *= 2) {
    fake f = {.seed = 8, .is_roofline = true};
    ft_search_options options = {.max_trials = n, .batch = 1};
    ft_search_result r;
    search_ok(&f, graph, &options, arena, &r);
    check_result(graph, &r);
    cr_assert_geq(r.bound_ns, bound);
    bound = r.bound_ns;
    if (r.trials < n) {
      cr_assert_str_eq(r.stop_reason, "complete");
      cr_assert_eq(r.gap, 0);
    }
  }
}

Test(search_search, clearly_slower_schedules_are_stopped_early_and_never_win) {
  const ft_graph *graph = layers(arena, 2);
  fake f = {.seed = 10, .schedules = 20};
  ft_search_result r;
  search_ok(&f, graph, &EXHAUSTIVE, arena, &r);
  check_result(graph, &r);
  cr_assert_gt(f.beaten, 0);
  for (uint32_t i = 0; i < r.group_count; i++)
    cr_assert_eq(r.group[i].cost_ns, fake_best_ns(&f, &r.group[i].workload));
}

static void count_calls(void *ctx, const ft_search_progress *p) {
  uint32_t *calls = ctx;
  cr_assert_leq(p->measured, p->unique);
  cr_assert_eq(p->limit_ns, 1);
  (*calls)++;
}

Test(search_search, the_unfused_partition_is_measured_whatever_the_time) {
  uint32_t calls = 0;
  fake f = {0};
  ft_search_options options = {
      .limit_ns = 1, .progress = count_calls, .progress_ctx = &calls};
  ft_search_result r;
  const ft_graph *graph = chain(arena, 4);
  search_ok(&f, graph, &options, arena, &r);
  check_result(graph, &r);
  cr_assert_str_eq(r.stop_reason, "time");
  cr_assert_gt(r.trials, 0);
  cr_assert_gt(calls, 1);
  cr_assert(ft_search_find(&r, "unfused")->is_complete);
  cr_assert(ft_search_find(&r, "ideals")->is_complete);
}

// ---- the same again ------------------------------------------------------------

Test(search_search, same_graph_and_answers_give_the_same_result_twice) {
  ft_rng rng = ft_rng_seed(11);
  for (uint32_t i = 0; i < 20; i++) {
    const ft_graph *graph = random_graph(arena, &rng, 14);
    ft_search_options options = {.window = 5, .max_trials = i % 2 ? 40 : 0};
    ft_search_result r[2];
    fake f[2];
    for (int k = 0; k < 2; k++) {
      f[k] = (fake){.seed = i, .schedules = 3, .fail_percent = 10};
      search_ok(&f[k], graph, &options, arena, &r[k]);
    }
    cr_assert_arr_eq(f[0].asked, f[1].asked, sizeof f[0].asked);
    cr_assert_eq(r[0].trials, r[1].trials);
    for (uint32_t p = 0; p < r[0].partition_count; p++) {
      const ft_searched_partition *a = &r[0].partition[p], *b = &r[1].partition[p];
      cr_assert_eq(a->partition.group_count, b->partition.group_count);
      cr_assert_arr_eq(a->unique, b->unique,
                       a->partition.group_count * sizeof *a->unique);
    }
  }
}

Test(search_search, result_does_not_lean_on_memory_that_died_with_the_search) {
  const ft_graph *graph = layers(arena, 1);
  fake f = {.seed = 12, .schedules = 2};
  ft_search_result r;
  search_ok(&f, graph, &EXHAUSTIVE, arena, &r);
  ft_search_result again;
  search_ok(&f, graph, &EXHAUSTIVE, arena, &again);
  check_result(graph, &r);  // under ASan this reads every pointer
  for (uint32_t i = 0; i < r.group_count; i++)
    cr_assert_str_eq(r.group[i].best.tactic, again.group[i].best.tactic);
}

typedef struct short_supply {
  uint32_t left, live;
} short_supply;

static void *take(void *ctx, size_t size, size_t align) {
  short_supply *s = ctx;
  if (!s->left) return NULL;
  s->left--;
  s->live++;
  return ft_allocate(ft_allocator_system(), size, align);
}

static void give_back(void *ctx, void *block) {
  short_supply *s = ctx;
  if (block) s->live--;
  ft_release(ft_allocator_system(), block);
}

Test(search_search, running_out_of_memory_anywhere_is_an_error_and_leaks_nothing) {
  const ft_graph *graph = layers(arena, 3);
  ft_status status = FT_OUT_OF_MEMORY;
  uint32_t tries = 0;
  for (; status == FT_OUT_OF_MEMORY; tries++) {
    short_supply supply = {.left = tries};
    ft_allocator allocator = {.ctx = &supply, .allocate = take, .release = give_back};
    fake f = {.seed = 13, .schedules = 2, .max_reductions = 1};
    ft_search_options options = {.allocator = &allocator, .window = 5};
    ft_search_result r;
    ft_error error = {0};
    status = fake_search(&f, graph, &options, arena, &r, &error);
    cr_assert_eq(supply.live, 0);
    if (status != FT_OK) cr_assert(strstr(error.text, "out of memory"), "%s", error.text);
  }
  cr_assert_eq(status, FT_OK);
  cr_assert_gt(tries, 10);
}
