// What laziness may and may not change: the answer never, the work always downwards.
#include "tests/search/fake.h"
#include "tests/support/sanitized.h"

static ft_arena *arena;
static void set_up(void) {
  arena = new_arena();
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(search_lazy, .init = set_up, .fini = tear_down);

// Bounds of an invented machine: |low| .. |high| percent of each workload's best time, as
// a hash says; |lies| percent of them are three times the best instead. A contradiction
// halves every bound, as a ceiling that is raised would.
typedef struct oracle {
  const fake *truth;
  uint32_t low, high, lies;
  double ceiling;  // bounds are divided by it
  uint32_t contradictions;
} oracle;

static double oracle_bound(void *self, const ft_workload *workload) {
  const oracle *o = self;
  uint64_t hash = ft_hash64(o->truth->seed + 7, workload->hash.byte, 32);
  double percent = o->low + (double)(hash % (o->high - o->low + 1));
  if (hash / 1024 % 100 < o->lies) percent = 300;
  double best_ns = fake_best_ns(o->truth, workload);
  return isfinite(best_ns) ? best_ns * percent / 100 / o->ceiling : 1;
}

static ft_status oracle_contradict(void *self, const ft_candidate *candidate,
                                   const ft_trial *trial, double bound_ns,
                                   ft_error *error) {
  (void)error;
  oracle *o = self;
  cr_assert_lt((double)trial->time.median_ns, bound_ns);
  cr_assert_eq(oracle_bound(o, candidate->workload), bound_ns);
  while (oracle_bound(o, candidate->workload) > (double)trial->time.median_ns)
    o->ceiling *= 2;
  o->contradictions++;
  return FT_OK;
}

static ft_predictor oracle_table(oracle *o) {
  if (o->ceiling == 0) o->ceiling = 1;
  return (ft_predictor){
      .self = o, .bound_ns = oracle_bound, .contradict = oracle_contradict};
}

// |low| .. 100 percent of each candidate's time.
static ft_status oracle_floors(void *self, const ft_candidate *candidate, uint32_t count,
                               double *out_ns, ft_error *error) {
  (void)error;
  const oracle *o = self;
  for (uint32_t i = 0; i < count; i++) {
    const ft_candidate *c = &candidate[i];
    int64_t s = ft_schedule_get(&c->schedule, "s", -1);
    double ns = (double)fake_ns(o->truth, c->workload, c->tactic, s);
    uint64_t hash = ft_hash64((uint64_t)ns, c->tactic, strlen(c->tactic));
    out_ns[i] = ns * (double)(o->low + hash % (101 - o->low)) / 100;
  }
  return FT_OK;
}

static double answer_ns(const ft_search_result *r) {
  return ft_search_find(r, "ideals")->additive_ns;
}

typedef struct pair {
  ft_search_result lazy, full;
} pair;

static void search_both(const fake *rules, const ft_graph *graph, uint32_t window,
                        const ft_predictor *predictor, pair *out) {
  fake f = *rules, g = *rules;
  ft_search_options lazy = {.window = window, .predictor = predictor, .batch = 8};
  ft_search_options full = {.window = window, .is_exhaustive = true};
  search_ok(&f, graph, &lazy, arena, &out->lazy);
  search_ok(&g, graph, &full, arena, &out->full);
}

Test(search_lazy, finds_what_full_measurement_finds_on_200_random_cost_tables) {
  ft_rng rng = ft_rng_seed(31);
  uint32_t lazy = 0, unique = 0;
  for (uint32_t i = 0; i < (IS_SANITIZED ? 50 : 200); i++) {
    const ft_graph *graph = random_graph(arena, &rng, 14);
    fake f = {.seed = i, .max_reductions = i % 3};
    oracle o = {.truth = &f, .low = 55, .high = 95};
    ft_predictor predictor = oracle_table(&o);
    pair p;
    search_both(&f, graph, 1 + i % 6, &predictor, &p);
    cr_assert_eq(answer_ns(&p.lazy), answer_ns(&p.full), "graph %u", i);
    cr_assert_eq(p.lazy.gap, 0);
    cr_assert_str_eq(p.lazy.stop_reason, "complete");
    cr_assert_leq(p.lazy.trials, p.lazy.group_count);
    cr_assert_eq(p.lazy.contradictions, 0);
    lazy += p.lazy.measured_count;
    unique += p.lazy.group_count;
    ft_arena_reset(arena);
  }
  cr_assert_lt(lazy, unique * 3 / 4, "%u of %u measured", lazy, unique);
}

Test(search_lazy, without_a_predictor_it_still_finds_what_full_measurement_finds) {
  ft_rng rng = ft_rng_seed(32);
  for (uint32_t i = 0; i < 100; i++) {
    const ft_graph *graph = random_graph(arena, &rng, 10);
    fake f = {.seed = i, .schedules = 1 + i % 3};
    pair p;
    search_both(&f, graph, 1 + i % 5, NULL, &p);
    cr_assert_eq(answer_ns(&p.lazy), answer_ns(&p.full), "graph %u", i);
    cr_assert_eq(p.lazy.gap, 0);
    ft_arena_reset(arena);
  }
}

// Not even those that a quota of schedules would leave out.
Test(search_lazy, floors_find_what_full_measurement_finds_with_fewer_trials) {
  ft_rng rng = ft_rng_seed(37);
  uint32_t without = 0, with = 0;
  for (uint32_t i = 0; i < (IS_SANITIZED ? 6 : 24); i++) {
    const ft_graph *graph = random_graph(arena, &rng, 12);
    fake f = {.seed = i, .tactics = 2, .schedules = 8, .fail_percent = i % 3 * 10};
    oracle o = {.truth = &f, .low = 70, .high = 70};
    ft_predictor predictor = oracle_table(&o);
    pair bounds, floors;
    search_both(&f, graph, 6, &predictor, &bounds);
    predictor.floors = oracle_floors;
    search_both(&f, graph, 6, &predictor, &floors);
    // Each group may leave half a percent of the whole.
    double best = answer_ns(&floors.full), groups = floors.lazy.group_count;
    cr_assert_leq(answer_ns(&floors.lazy), best * (1 + 0.005 * groups), "table %u", i);
    cr_assert_geq(answer_ns(&floors.lazy), best);
    without += bounds.lazy.trials;
    with += floors.lazy.trials;
  }
  printf("%u trials with floors, %u without\n", with, without);
  cr_assert_lt(with, without / 2);
}

Test(search_lazy, tight_bounds_leave_most_groups_of_deep_models_unmeasured) {
  const ft_graph *graph = layers(arena, 12);
  fake f = {.seed = 5, .is_roofline = true, .max_reductions = 2};
  oracle o = {.truth = &f, .low = 90, .high = 98};
  ft_predictor predictor = oracle_table(&o);
  pair p;
  search_both(&f, graph, 8, &predictor, &p);
  cr_assert_eq(answer_ns(&p.lazy), answer_ns(&p.full));
  cr_assert_lt(p.lazy.measured_count * 2, p.lazy.group_count, "%u of %u",
               p.lazy.measured_count, p.lazy.group_count);
  cr_assert_gt(p.lazy.rounds, 0);
  for (uint32_t i = 0; i < p.lazy.group_count; i++)
    cr_assert_gt(p.lazy.group[i].roofline_ns, 0);
}

// ---- bounds that are wrong ------------------------------------------------------

Test(search_lazy, a_trial_below_its_bound_is_told_and_the_run_goes_on) {
  ft_rng rng = ft_rng_seed(33);
  uint32_t told = 0;
  for (uint32_t i = 0; i < 100; i++) {
    const ft_graph *graph = random_graph(arena, &rng, 12);
    fake f = {.seed = i};
    oracle o = {.truth = &f, .low = 60, .high = 95, .lies = 20};
    ft_predictor predictor = oracle_table(&o);
    pair p;
    search_both(&f, graph, 4, &predictor, &p);
    cr_assert_eq(p.lazy.contradictions, o.contradictions);
    cr_assert_str_eq(p.lazy.stop_reason, "complete");
    cr_assert(p.lazy.gap >= 0 && p.lazy.gap <= 1);
    // One found lie lowers every bound to what is true.
    if (o.contradictions) cr_assert_eq(answer_ns(&p.lazy), answer_ns(&p.full));
    told += o.contradictions;
    ft_arena_reset(arena);
  }
  cr_assert_gt(told, 50);
}

Test(search_lazy, a_trial_a_little_below_its_bound_is_noise) {
  const ft_graph *graph = chain(arena, 5);
  fake f = {.seed = 6};
  oracle o = {.truth = &f, .low = 102, .high = 102};
  ft_predictor predictor = oracle_table(&o);
  pair p;
  search_both(&f, graph, 5, &predictor, &p);
  cr_assert_eq(o.contradictions, 0);
  cr_assert_eq(p.lazy.gap, 0);
}

static double nonsense(void *self, const ft_workload *workload) {
  (void)self;
  return workload->group.primitive_count % 2 ? NAN : -INFINITY;
}

Test(search_lazy, a_bound_that_is_no_time_is_no_bound) {
  const ft_graph *graph = chain(arena, 6);
  fake f = {.seed = 7};
  ft_predictor predictor = {.bound_ns = nonsense};
  pair p;
  search_both(&f, graph, 6, &predictor, &p);
  cr_assert_eq(answer_ns(&p.lazy), answer_ns(&p.full));
  cr_assert_eq(p.lazy.gap, 0);
}

// ---- budgets and the gap ---------------------------------------------------------

Test(search_lazy, the_gap_is_never_negative_and_bounds_make_it_smaller) {
  ft_rng rng = ft_rng_seed(34);
  uint32_t smaller = 0;
  for (uint32_t i = 0; i < (IS_SANITIZED ? 10 : 20); i++) {
    const ft_graph *graph = random_graph(arena, &rng, 14);
    for (uint32_t trials = 1; trials < 120; trials += 17) {
      fake f = {.seed = i, .schedules = 2}, g = f;
      oracle o = {.truth = &f, .low = 70, .high = 95};
      ft_predictor predictor = oracle_table(&o);
      ft_search_options bounded = {
          .window = 5, .max_trials = trials, .predictor = &predictor};
      ft_search_options blind = {.window = 5, .max_trials = trials};
      ft_search_result r, s;
      search_ok(&f, graph, &bounded, arena, &r);
      search_ok(&g, graph, &blind, arena, &s);
      cr_assert(r.gap >= 0 && r.gap <= 1 && s.gap >= 0 && s.gap <= 1);
      smaller += r.gap < s.gap;
    }
    ft_arena_reset(arena);
  }
  cr_assert_gt(smaller, IS_SANITIZED ? 20 : 40);
}

Test(search_lazy, stops_at_the_gap_that_is_asked_for) {
  ft_rng rng = ft_rng_seed(35);
  uint32_t early = 0;
  for (uint32_t i = 0; i < 40; i++) {
    const ft_graph *graph = random_graph(arena, &rng, 14);
    fake f = {.seed = i}, g = f;
    oracle o = {.truth = &f, .low = 60, .high = 90};
    ft_predictor predictor = oracle_table(&o);
    ft_search_options options = {.window = 5, .predictor = &predictor, .batch = 4};
    ft_search_result whole, r;
    search_ok(&f, graph, &options, arena, &whole);
    options.until_gap = 0.1;
    search_ok(&g, graph, &options, arena, &r);
    cr_assert(ft_search_find(&r, "unfused")->is_complete);
    cr_assert_leq(r.gap, 0.1);
    cr_assert_leq(r.trials, whole.trials);
    early += strcmp(r.stop_reason, "gap") == 0 && r.trials < whole.trials;
    ft_arena_reset(arena);
  }
  cr_assert_gt(early, 10);
}

Test(search_lazy, what_takes_longer_gets_more_schedules) {
  const ft_graph *graph = chain(arena, 8);
  fake f = {.is_roofline = true, .schedules = 300, .slow_above = 1};
  ft_search_options options = {0};
  ft_search_result r;
  search_ok(&f, graph, &options, arena, &r);
  cr_assert_str_eq(r.stop_reason, "complete");
  const ft_searched_partition *p = ft_search_find(&r, "ideals");
  cr_assert_eq(p->partition.group_count, 8);
  for (uint32_t i = 0; i < r.group_count; i++) {
    if (r.group[i].workload.group.primitive_count == 1)
      cr_assert(r.group[i].trials > 3 && r.group[i].trials < 300);
    else
      cr_assert_leq(r.group[i].trials, 1, "a million off the path: %u trials",
                    r.group[i].trials);
  }
}

// ---- greedy ----------------------------------------------------------------------

Test(search_lazy, greedy_never_costs_more_than_one_kernel_per_primitive) {
  ft_rng rng = ft_rng_seed(36);
  uint32_t less = 0;
  for (uint32_t i = 0; i < 60; i++) {
    const ft_graph *graph = random_graph(arena, &rng, 12);
    fake f = {.seed = i, .slow_above = 1 + i % 4};
    ft_search_options options = {.max_trials = 14 + i * 3};
    ft_search_result r;
    search_ok(&f, graph, &options, arena, &r);
    double greedy = ft_search_find(&r, "horizontal-vertical")->additive_ns;
    double primitive = ft_search_find(&r, "primitive")->additive_ns;
    cr_assert(greedy <= primitive, "graph %u: %f, %f", i, greedy, primitive);
    less += greedy < primitive;
    ft_arena_reset(arena);
  }
  cr_assert_gt(less, 10);
}

// ---- scale -----------------------------------------------------------------------

typedef struct ledger {
  size_t live, most;
} ledger;

static void *take(void *ctx, size_t size, size_t align) {
  ledger *l = ctx;
  size_t *block = ft_allocate(ft_allocator_system(), size + 64, align > 64 ? align : 64);
  if (!block) return NULL;
  block[0] = size;
  l->live += size;
  if (l->live > l->most) l->most = l->live;
  return (char *)block + 64;
}

static void give_back(void *ctx, void *block) {
  if (!block) return;
  ledger *l = ctx;
  size_t *start = (size_t *)(void *)((char *)block - 64);
  l->live -= start[0];
  ft_release(ft_allocator_system(), start);
}

Test(search_lazy, five_thousand_primitives_take_few_states_and_little_memory) {
  const ft_graph *graph = layers(arena, 715);
  cr_assert_eq(graph->primitive_count, 5005);
  ledger l = {0};
  ft_allocator allocator = {.ctx = &l, .allocate = take, .release = give_back};
  fake f = {.seed = 8, .is_roofline = true, .max_reductions = 2};
  oracle o = {.truth = &f, .low = 80, .high = 95};
  ft_predictor predictor = oracle_table(&o);
  ft_search_options options = {.allocator = &allocator, .predictor = &predictor};
  ft_search_result r;
  search_ok(&f, graph, &options, arena, &r);
  cr_assert_str_eq(r.stop_reason, "complete");
  cr_assert_eq(r.gap, 0);
  cr_assert_leq(r.ideals, 5005 * 2);
  cr_assert_leq(r.transitions, 5005 * 60);
  cr_assert_leq(l.most, 200u << 20, "%zu bytes", l.most);
  cr_assert_eq(l.live, 0);
}

// A mixture of eight experts between a gate and a sum: as wide as it gets.
Test(search_lazy, eight_experts_side_by_side_are_searched_within_the_limits) {
  sketch s = sketch_new(arena);
  uint32_t x = input(&s, "x"), sum = op1(&s, FT_OP_TANH, x, 0), expert[8];
  for (uint32_t i = 0; i < 8; i++) {
    uint32_t w = input(&s, ft_arena_printf(arena, "w%u", i));
    expert[i] = op1(&s, FT_OP_RELU, op1(&s, FT_OP_MUL, sum, w), 0);
    expert[i] = op1(&s, FT_OP_MUL, expert[i], w);
  }
  for (uint32_t i = 0; i < 8; i++) sum = op1(&s, FT_OP_ADD, sum, expert[i]);
  output(&s, sum);
  output(&s, expert[3]);
  fake f = {.is_roofline = true};
  ft_search_options options = {.max_trials = 400};
  ft_search_result r;
  search_ok(&f, finish(&s), &options, arena, &r);
  const ft_searched_partition *p = ft_search_find(&r, "ideals");
  cr_assert(p->is_complete);
  cr_assert_lt(p->partition.group_count, 12, "%u", p->partition.group_count);
  cr_assert(r.gap >= 0 && r.gap < 1);
}
