#include "search/catalog.h"

#include "tests/search/fake.h"

typedef struct fixture {
  ft_arena *result, *work, *scratch;
  ft_catalog catalog;
} fixture;

static const ft_target TARGET = {.name = "fake"};
static ft_builder builder;

static fixture make(fake *f, const ft_graph *graph, ft_arena *arena) {
  fixture x = {arena, new_arena(), new_arena(), {0}};
  builder = (ft_builder){.self = f, .match = fake_match, .space = fake_space};
  MUST(ft_catalog_create(graph, &TARGET, &builder, x.result, x.work, x.scratch,
                         &x.catalog, &must_error));
  return x;
}

static void destroy(fixture *x) {
  ft_arena_destroy(x->scratch);
  ft_arena_destroy(x->work);
  ft_arena_destroy(x->result);
}

static uint32_t judge(fixture *x, ft_set set) {
  uint32_t group;
  MUST(ft_catalog_judge(&x->catalog, set, &group, NULL, &must_error));
  return group;
}

static void record(fixture *x, uint32_t group, ft_outcome outcome, uint64_t ns) {
  ft_trial trial = {.outcome = outcome, .time = {ns, ns, ns, 3}, .error = "why"};
  uint32_t candidate = x->catalog.group[group].next++;
  MUST(ft_catalog_record(&x->catalog, group, candidate, &trial, &must_error));
}

Test(search_catalog, asks_once_for_each_workload_however_many_sets_have_it) {
  ft_arena *arena = new_arena();
  fake f = {0};
  fixture x = make(&f, layers(arena, 5), arena);
  for (int round = 0; round < 3; round++)
    for (uint32_t i = 0; i < 5; i++) cr_assert_eq(judge(&x, (ft_set){i * 7 + 1, 3}), 0);
  cr_assert_eq(f.matches, 1);
  cr_assert_eq(x.catalog.group[0].instances, 5);
  cr_assert_eq(x.catalog.legal_sets, 5);
  destroy(&x);
}

Test(search_catalog, remembers_why_a_set_is_illegal) {
  ft_arena *arena = new_arena();
  fake f = {.max_reductions = 1};
  fixture x = make(&f, layers(arena, 2), arena);
  for (int round = 0; round < 2; round++)
    for (uint32_t i = 0; i < 2; i++) {
      uint32_t group;
      const char *reason;
      MUST(ft_catalog_judge(&x.catalog, (ft_set){i * 7, 0xf}, &group, &reason,
                            &must_error));
      cr_assert_eq(group, FT_NONE);
      cr_assert_str_eq(reason, "reductions: too many for one row");
    }
  cr_assert_eq(f.matches, 1);
  cr_assert_eq(x.catalog.group_count, 0);
  destroy(&x);
}

Test(search_catalog, keeps_thousands_of_sets_apart) {
  ft_arena *arena = new_arena();
  fake f = {0};
  fixture x = make(&f, layers(arena, 60), arena);
  uint32_t group[400];
  for (uint32_t i = 0; i < 400; i++) group[i] = judge(&x, (ft_set){i, 0x1f});
  for (uint32_t i = 0; i < 400; i++) {
    cr_assert_eq(judge(&x, (ft_set){i, 0x1f}), group[i]);
    if (i >= 7) cr_assert_eq(group[i], group[i - 7]);
  }
  cr_assert_eq(x.catalog.legal_sets, 400);
  destroy(&x);
}

Test(search_catalog, lists_the_default_of_each_tactic_before_any_other_schedule) {
  ft_arena *arena = new_arena();
  fake f = {.tactics = 2, .schedules = 3};
  fixture x = make(&f, chain(arena, 2), arena);
  uint32_t group = judge(&x, (ft_set){0, 1});
  MUST(ft_catalog_open(&x.catalog, group, &must_error));
  MUST(ft_catalog_open(&x.catalog, group, &must_error));
  cr_assert_eq(f.spaces, 2, "opened once");
  const ft_catalog_group *g = &x.catalog.group[group];
  cr_assert_eq(g->space, 6);
  const char *tactic[] = {"one", "two", "one", "two", "one", "two"};
  for (uint32_t i = 0; i < 6; i++) {
    cr_assert_str_eq(g->candidate[i].tactic, tactic[i]);
    cr_assert_eq(ft_schedule_get(&g->candidate[i].schedule, "s", -1), i / 2);
  }
  destroy(&x);
}

// 300 - 50 s, whatever the tactic.
static ft_status falling_floors(void *self, const ft_candidate *candidate, uint32_t count,
                                double *out_ns, ft_error *error) {
  (void)self, (void)error;
  for (uint32_t i = 0; i < count; i++)
    out_ns[i] = 300 - 50 * (double)ft_schedule_get(&candidate[i].schedule, "s", 0);
  return FT_OK;
}

static double bound_of_seventy(void *self, const ft_workload *workload) {
  (void)self, (void)workload;
  return 70;
}

Test(search_catalog, floors_order_candidates_and_end_the_looking) {
  ft_arena *arena = new_arena();
  fake f = {.tactics = 2, .schedules = 4};
  fixture x = make(&f, layers(arena, 1), arena);
  ft_predictor predictor = {.bound_ns = bound_of_seventy, .floors = falling_floors};
  x.catalog.predictor = &predictor;
  uint32_t group = judge(&x, (ft_set){0, 1});
  const ft_catalog_group *g = &x.catalog.group[group];
  cr_assert_eq(g->bound_ns, 70);
  MUST(ft_catalog_open(&x.catalog, group, &must_error));
  static const char *const tactic[] = {"one", "two"};
  for (int i = 0; i < 8; i++) {
    cr_assert_eq(ft_schedule_get(&g->candidate[i].schedule, "s", -1), 3 - i / 2);
    cr_assert_str_eq(g->candidate[i].tactic, tactic[i % 2], "equals keep their order");
    cr_assert_eq(g->floor_ns[i], 150 + 50 * (i / 2));
  }
  cr_assert_eq(g->bound_ns, 150, "no candidate is faster than the first floor");
  cr_assert_eq(ft_catalog_worth(g), 8);
  record(&x, group, FT_OUTCOME_WRONG_RESULT, 0);
  cr_assert_eq(ft_catalog_worth(g), 8);
  record(&x, group, FT_OUTCOME_OK, 240);
  cr_assert_eq(ft_catalog_worth(g), 4);
  cr_assert_eq(ft_catalog_bound_ns(g), 200, "of the third, which may be faster");
  record(&x, group, FT_OUTCOME_OK, 200);
  cr_assert_eq(ft_catalog_worth(g), 2);
  cr_assert_eq(ft_catalog_bound_ns(g), 200);
  cr_assert_not(ft_catalog_is_spent(g));
  destroy(&x);
}

Test(search_catalog, only_an_ok_trial_with_a_median_can_be_the_best) {
  ft_arena *arena = new_arena();
  fake f = {.schedules = 8};
  fixture x = make(&f, chain(arena, 2), arena);
  uint32_t group = judge(&x, (ft_set){0, 1});
  MUST(ft_catalog_open(&x.catalog, group, &must_error));
  const ft_catalog_group *g = &x.catalog.group[group];
  record(&x, group, FT_OUTCOME_CRASH, 1);
  cr_assert_not(g->is_measured);
  cr_assert_eq(g->trial.outcome, FT_OUTCOME_CRASH);
  cr_assert_str_eq(g->trial.error, "why");
  cr_assert_eq(ft_catalog_bound_ns(g), 0, "others may work");
  record(&x, group, FT_OUTCOME_OK, 0);
  cr_assert_not(g->is_measured);
  record(&x, group, FT_OUTCOME_OK, 50);
  cr_assert(g->is_measured && g->best == 2);
  record(&x, group, FT_OUTCOME_BEATEN, 10);
  record(&x, group, FT_OUTCOME_UNSTABLE, 10);
  record(&x, group, FT_OUTCOME_OK, 50);
  cr_assert_eq(g->best, 2, "of equals the first stays");
  record(&x, group, FT_OUTCOME_OK, 40);
  cr_assert(g->best == 6 && g->cost_ns == 40);
  cr_assert_not(ft_catalog_is_spent(g));
  record(&x, group, FT_OUTCOME_TIMEOUT, 0);
  cr_assert(ft_catalog_is_spent(g));
  cr_assert_eq(ft_catalog_bound_ns(g), 40);
  destroy(&x);
}

Test(search_catalog, copies_the_best_trial_out_of_the_batch) {
  ft_arena *arena = new_arena();
  fake f = {0};
  fixture x = make(&f, chain(arena, 1), arena);
  uint32_t group = judge(&x, (ft_set){0, 1});
  MUST(ft_catalog_open(&x.catalog, group, &must_error));
  uint64_t sample[3] = {7, 8, 9};
  uint8_t flags[3] = {FT_SAMPLE_WARM_UP, 0, 0};
  char text[] = "env";
  ft_trial trial = {.time = {8, 8, 9, 2},
                    .sample_count = 3,
                    .sample_ns = sample,
                    .sample_flags = flags,
                    .env = text};
  x.catalog.group[group].next = 1;
  MUST(ft_catalog_record(&x.catalog, group, 0, &trial, &must_error));
  memset(sample, 0, sizeof sample);
  memset(text, 0, sizeof text);
  const ft_trial *kept = &x.catalog.group[group].trial;
  cr_assert(kept->sample_ns[0] == 7 && kept->sample_ns[2] == 9);
  cr_assert_eq(kept->sample_flags[0], FT_SAMPLE_WARM_UP);
  cr_assert_str_eq(kept->env, "env");
  cr_assert_str_eq(kept->worst, "");
  destroy(&x);
}

Test(search_catalog, a_prediction_is_a_cost_but_contradicts_no_bound) {
  ft_arena *arena = new_arena();
  fake f = {.schedules = 2};
  fixture x = make(&f, layers(arena, 5), arena);
  uint32_t group = judge(&x, (ft_set){1, 3});
  MUST(ft_catalog_open(&x.catalog, group, &must_error));
  cr_assert_geq(x.catalog.group[group].space, 2);
  x.catalog.group[group].bound_ns = 1000;  // above both; there is no predictor to tell
  for (int i = 0; i < 2; i++) {
    ft_trial trial = {.outcome = FT_OUTCOME_OK, .predicted_ns = 30.5 - 10.25 * i};
    uint32_t candidate = x.catalog.group[group].next++;
    MUST(ft_catalog_record(&x.catalog, group, candidate, &trial, &must_error));
  }
  const ft_catalog_group *g = &x.catalog.group[group];
  cr_assert(g->is_measured);
  cr_assert_eq(g->best, 1);
  cr_assert_eq(g->cost_ns, 20.25);
  cr_assert_eq(g->trial.time.samples, 0);
  cr_assert_eq(x.catalog.contradictions, 0);
  destroy(&x);
}
