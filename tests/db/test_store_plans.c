#include "tests/support/stores.h"

static sample s;
static int64_t candidates[2];
static ft_plan plan;
static void set_up(void) {
  store_set_up();
  store_open();
  sample_store(&s);
  candidates[0] = s.candidate_id;
  candidates[1] = sample_candidate(&s, 16);
  plan = sample_plan(s.graph, &s.target, arena);
}
TestSuite(db_store_plans, .init = set_up, .fini = store_tear_down);

static int64_t save(const ft_plan *it, const char *role, bool is_served) {
  int64_t id;
  ft_plan_record record = {.run_id = s.run_id,
                           .binding_id = s.binding_id,
                           .target_id = s.target_id,
                           .role = role,
                           .is_served = is_served,
                           .candidate_id = candidates};
  TEST_OK(ft_store_plan_save(store, it, &record, &id, &error));
  return id;
}

static const char *served(const ft_graph *graph, const ft_target *target) {
  const char *body;
  ft_status status = ft_store_served_plan(store, graph, target, arena, &body, &error);
  cr_assert(status == FT_OK || (status == FT_NOT_FOUND && !body), "%s", error.text);
  return body;
}

static void expect_none(const ft_graph *graph, const ft_target *target, const char *why) {
  cr_assert_null(served(graph, target));
  cr_assert(strstr(error.text, why), "'%s' does not say '%s'", error.text, why);
  cr_assert_null(strstr(error.text, "(null)"), "%s", error.text);
}

Test(db_store_plans, the_served_plan_is_the_canonical_body_and_decodes) {
  const char *text;
  save(&plan, "tuned", true);
  TEST_OK(ft_plan_text(&plan, "exact", arena, &text, &error));
  const char *body = served(s.graph, &s.target);
  cr_assert_str_eq(body, text);
  ft_plan back;
  TEST_OK(ft_plan_parse(body, s.graph, &s.target, arena, &back, &error));
  EXPECT_SQL("2000", "SELECT e2e_median_ns FROM plan");
  EXPECT_SQL("measured", "SELECT status FROM plan");
  EXPECT_SQL("ideals", "SELECT strategy FROM plan");
  EXPECT_SQL("1,2",
             "SELECT group_concat(candidate_id) FROM plan_group ORDER BY position");
}

Test(db_store_plans, two_queries_give_the_same_bytes_and_write_nothing) {
  save(&plan, "tuned", true);
  const char *first = served(s.graph, &s.target);
  sqlite3 *db;
  sqlite3_stmt *row;
  cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
  cr_assert_eq(sqlite3_prepare_v2(db, "PRAGMA data_version", -1, &row, NULL), SQLITE_OK);
  cr_assert_eq(sqlite3_step(row), SQLITE_ROW);
  int before = sqlite3_column_int(row, 0);
  sqlite3_reset(row);
  for (int i = 0; i < 3; i++) cr_assert_str_eq(served(s.graph, &s.target), first);
  ft_target other = sample_target(8);
  expect_none(s.graph, &other, "target");
  cr_assert_eq(sqlite3_step(row), SQLITE_ROW);
  cr_assert_eq(sqlite3_column_int(row, 0), before, "a query wrote to the store");
  sqlite3_finalize(row);
  sqlite3_close(db);
  store_reopen();
  cr_assert_str_eq(served(s.graph, &s.target), first);
}

Test(db_store_plans, a_later_served_plan_replaces_the_first) {
  int64_t first = save(&plan, "tuned", true);
  ft_plan other = plan;
  ft_plan_group group[2] = {plan.group[0], plan.group[1]};
  other.group = group;
  group[0].grid = 99;
  TEST_OK(ft_plan_seal(&other, arena, &error));
  int64_t second = save(&other, "unfused", true);
  cr_assert_neq(first, second);
  cr_assert(strstr(served(s.graph, &s.target), "\"grid\":[99,1,1]"));
  EXPECT_SQL("2", "SELECT group_concat(id) FROM plan WHERE served = 1");
  EXPECT_SQL("3000", "SELECT e2e_median_ns FROM plan WHERE role = 'unfused'");
  save(&plan, "tuned", true);
  EXPECT_SQL("1", "SELECT group_concat(id) FROM plan WHERE served = 1");
}

Test(db_store_plans, a_plan_that_is_not_to_be_served_does_not_disturb_the_served_one) {
  save(&plan, "tuned", true);
  save(&plan, "tuned", false);
  save(&plan, "greedy", false);
  EXPECT_SQL("1", "SELECT group_concat(id) FROM plan WHERE served = 1");
  EXPECT_SQL("(null)", "SELECT e2e_median_ns FROM plan WHERE role = 'greedy'");
}

Test(db_store_plans, the_same_plan_again_gets_the_new_times) {
  int64_t first = save(&plan, "tuned", true);
  plan.times.tuned.median_ns = 1995;
  plan.times.additive_ns = 1.5;
  TEST_OK(ft_plan_seal(&plan, arena, &error));
  cr_assert_eq(save(&plan, "tuned", true), first);
  cr_assert_eq(count_of("plan"), 1);
  cr_assert_eq(count_of("plan_group"), 2);
  EXPECT_SQL("1995", "SELECT e2e_median_ns FROM plan");
  EXPECT_SQL("1.5", "SELECT additive_ns FROM plan");
  cr_assert(strstr(served(s.graph, &s.target), "\"median_ns\":1995"));
}

Test(db_store_plans, what_cannot_be_saved_leaves_the_store_as_it_was) {
  int64_t id, missing[2] = {s.candidate_id, 99};
  save(&plan, "tuned", true);
  ft_plan_record record = {.run_id = s.run_id,
                           .binding_id = s.binding_id,
                           .target_id = s.target_id,
                           .role = "unfused",
                           .is_served = true,
                           .candidate_id = missing};
  cr_assert_eq(ft_store_plan_save(store, &plan, &record, &id, &error),
               FT_INVALID_ARGUMENT);
  cr_assert_eq(id, 0);
  record.candidate_id = candidates;
  record.role = "fastest";
  cr_assert_eq(ft_store_plan_save(store, &plan, &record, &id, &error),
               FT_INVALID_ARGUMENT);
  record.role = "unfused";
  plan.hash = (ft_hash){0};
  cr_assert_eq(ft_store_plan_save(store, &plan, &record, &id, &error),
               FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "not sealed"), "%s", error.text);
  cr_assert_eq(count_of("plan"), 1);
  EXPECT_SQL("1", "SELECT group_concat(id) FROM plan WHERE served = 1");
}

// ---- quarantine

Test(db_store_plans, a_plan_with_a_quarantined_candidate_is_not_served_any_more) {
  save(&plan, "tuned", true);
  ft_trial trial = trial_of(FT_OUTCOME_CRASH, 0);
  trial.error = "signal 11";
  end_as(begin(&s, candidates[1]), &trial);
  expect_none(s.graph, &s.target, "its plan is quarantined (crash: signal 11)");
  // Saving it anew does not help,
  save(&plan, "tuned", true);
  expect_none(s.graph, &s.target, "quarantined");
  // other candidates do.
  candidates[1] = candidates[0];
  save(&plan, "tuned", true);
  cr_assert_not_null(served(s.graph, &s.target));
}

// ---- why there is none

Test(db_store_plans, a_graph_that_was_never_tuned_is_said) {
  ft_graph *other = sample_graph(4, "", arena);
  sample_key(other, "another", 4);
  expect_none(other, &s.target, "graph 'sample'");
  expect_none(other, &s.target, "never tuned");
  expect_none(s.graph, &s.target, "none of its plans was served");
}

Test(db_store_plans, other_dims_on_this_target_are_listed) {
  save(&plan, "tuned", true);
  ft_graph *longer = sample_graph(8, "", arena);
  expect_none(longer, &s.target, "with dims {\"N\":8} on target 'cpu'");
  expect_none(longer, &s.target, "there is one for dims {\"N\":4} on this target");
}

Test(db_store_plans, another_target_is_named_with_the_first_field_that_differs) {
  save(&plan, "tuned", true);
  ft_target other = sample_target(8);
  expect_none(s.graph, &other, "differs in threads (there 4, here 8)");
  other.compiler[0].version = "15.0.0";
  TEST_OK(ft_target_seal(&other, &error));
  expect_none(s.graph, &other, "differs in compilers (there [{\"name\":\"clang-14\"");
  expect_none(s.graph, &other, "}]), threads");
}

Test(db_store_plans, other_dims_on_another_target_are_said_when_there_is_nothing_nearer) {
  save(&plan, "tuned", true);
  ft_graph *longer = sample_graph(8, "", arena);
  ft_target other = sample_target(8);
  expect_none(longer, &other, "one for dims {\"N\":4} on another target");
}

Test(db_store_plans, constants_that_differ_are_said) {
  save(&plan, "tuned", true);
  s.graph->bound_hash.byte[0] ^= 1;
  expect_none(s.graph, &s.target, "a model whose constants differ");
}

Test(db_store_plans, each_part_of_the_key_decides) {
  save(&plan, "tuned", true);
  cr_assert_not_null(served(s.graph, &s.target));
  s.graph->dims_json = "{\"M\":4}";
  cr_assert_null(served(s.graph, &s.target));
  s.graph->dims_json = "{\"N\":4}";
  s.target.signature.byte[31] ^= 1;
  cr_assert_null(served(s.graph, &s.target));
  s.target.signature.byte[31] ^= 1;
  s.graph->bound_hash.byte[31] ^= 1;
  cr_assert_null(served(s.graph, &s.target));
  s.graph->bound_hash.byte[31] ^= 1;
  cr_assert_not_null(served(s.graph, &s.target));
}

Test(db_store_plans, a_long_list_of_dims_is_cut) {
  for (int n = 5; n < 25; n++) {
    ft_graph *graph = sample_graph(n, "", arena);
    int64_t graph_id, id;
    TEST_OK(ft_store_graph(store, graph, &graph_id, &s.binding_id, &error));
    ft_plan it = sample_plan(graph, &s.target, arena);
    ft_plan_record record = {.run_id = s.run_id,
                             .binding_id = s.binding_id,
                             .target_id = s.target_id,
                             .role = "tuned",
                             .is_served = true,
                             .candidate_id = candidates};
    TEST_OK(ft_store_plan_save(store, &it, &record, &id, &error));
  }
  expect_none(s.graph, &s.target, "{\"N\":10}, ... on this target");
  cr_assert_null(strstr(error.text, "{\"N\":11}"), "%s", error.text);
}

Test(db_store_plans, the_incumbent_is_the_served_row_with_its_role_and_nothing_is_none) {
  ft_served_plan row;
  TEST_OK(ft_store_incumbent(store, s.graph, &s.target, arena, &row, &error));
  cr_assert_eq(row.id, 0);
  save(&plan, "unfused", false);
  int64_t id = save(&plan, "greedy", true);
  TEST_OK(ft_store_incumbent(store, s.graph, &s.target, arena, &row, &error));
  cr_assert_eq(row.id, id);
  cr_assert_str_eq(row.role, "greedy");
  cr_assert_str_eq(row.body, served(s.graph, &s.target));
}

Test(db_store_plans, the_same_graph_hash_with_another_encoding_is_internal) {
  const char *body;
  save(&plan, "tuned", true);
  s.graph->symbolic_encoding = "sample grapH";
  cr_assert_eq(ft_store_served_plan(store, s.graph, &s.target, arena, &body, &error),
               FT_INTERNAL);
  cr_assert_null(body);
}

// ---- comparisons and refusals

Test(db_store_plans, comparisons_are_one_row_per_round_and_plan_or_none) {
  int64_t id[2] = {save(&plan, "tuned", true), save(&plan, "unfused", false)};
  uint64_t time_ns[6] = {10, 20, 11, 21, 12, 22};
  uint8_t flags[6] = {0, 0, 2, 0, 0, 0};
  TEST_OK(ft_store_comparison_save(store, s.run_id, id, 2, 3, time_ns, flags, &error));
  EXPECT_SQL("10,20,11,21,12,22",
             "SELECT group_concat(time_ns) FROM (SELECT time_ns FROM comparison"
             " ORDER BY round, plan_id)");
  EXPECT_SQL("11", "SELECT time_ns FROM comparison WHERE flags = 2");
  run_sql("DELETE FROM comparison");
  time_ns[5] = UINT64_MAX;
  cr_assert_eq(
      ft_store_comparison_save(store, s.run_id, id, 2, 3, time_ns, flags, &error),
      FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "round 2 of plan 2 has a time of 18"), "%s", error.text);
  cr_assert_eq(count_of("comparison"), 0);
  time_ns[5] = 0;  // the plan had left by then
  TEST_OK(ft_store_comparison_save(store, s.run_id, id, 2, 3, time_ns, flags, &error));
  cr_assert_eq(count_of("comparison"), 5);
}

Test(db_store_plans, the_served_plan_s_refusals_come_back_in_order_and_no_others) {
  ft_refusal_record *list;
  uint32_t count;
  TEST_OK(ft_store_refusal_save(store, s.run_id, 1, 2, "slower", "by a third", &error));
  TEST_OK(ft_store_refusal_save(store, s.run_id, 0, 2, "axes", "0 of 2", &error));
  TEST_OK(
      ft_store_served_refusals(store, s.graph, &s.target, arena, &list, &count, &error));
  cr_assert_eq(count, 0, "%u refusals without a served plan", count);
  save(&plan, "tuned", true);
  TEST_OK(
      ft_store_served_refusals(store, s.graph, &s.target, arena, &list, &count, &error));
  cr_assert_eq(count, 2);
  cr_assert(list[0].producer == 0 && list[0].consumer == 2 && list[1].producer == 1);
  cr_assert_str_eq(list[0].rule, "axes");
  cr_assert_str_eq(list[1].detail, "by a third");
}

Test(db_store_plans, a_refusal_is_kept_once_per_pair) {
  TEST_OK(
      ft_store_refusal_save(store, s.run_id, 0, 2, "two reductions", "axes 0", &error));
  TEST_OK(
      ft_store_refusal_save(store, s.run_id, 0, 2, "two reductions", "axes 1", &error));
  cr_assert_eq(count_of("refusal"), 1);
  EXPECT_SQL("axes 1", "SELECT detail FROM refusal");
  cr_assert_eq(ft_store_refusal_save(store, 99, 0, 2, "r", "d", &error),
               FT_INVALID_ARGUMENT);
}

// The same plan, as it would be without a measurement.
static ft_plan unmeasured(const ft_target *target) {
  ft_plan it = sample_plan(s.graph, target, arena);
  for (uint32_t i = 0; i < it.group_count; i++) it.group[i].time = (ft_time){0};
  TEST_OK(ft_plan_seal(&it, arena, &error));
  return it;
}

Test(db_store_plans, a_predicted_plan_is_never_served_where_there_is_a_device) {
  int64_t id;
  ft_plan it = unmeasured(&s.target);
  ft_plan_record record = {.run_id = s.run_id,
                           .binding_id = s.binding_id,
                           .target_id = s.target_id,
                           .role = "tuned",
                           .is_served = true,
                           .candidate_id = candidates};
  cr_assert_eq(ft_store_plan_save(store, &it, &record, &id, &error), FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "only predicted"), "%s", error.text);
  EXPECT_SQL("0", "SELECT count(*) FROM plan");
  record.is_served = false;
  TEST_OK(ft_store_plan_save(store, &it, &record, &id, &error));
  cr_assert_null(served(s.graph, &s.target));
}

Test(db_store_plans, a_predicted_plan_is_served_for_its_architecture_alone) {
  ft_target arch = s.target;
  arch.name = "sm_90";
  arch.kind = "arch";
  TEST_OK(ft_target_seal(&arch, &error));
  int64_t target_id, id;
  TEST_OK(ft_store_target(store, &arch, &target_id, &error));
  ft_plan it = unmeasured(&arch);
  ft_plan_record record = {.run_id = s.run_id,
                           .binding_id = s.binding_id,
                           .target_id = target_id,
                           .role = "tuned",
                           .is_served = true,
                           .candidate_id = candidates};
  TEST_OK(ft_store_plan_save(store, &it, &record, &id, &error));
  EXPECT_SQL("predicted", "SELECT status FROM plan WHERE served");
  cr_assert_not_null(served(s.graph, &arch));
  expect_none(s.graph, &s.target, "there is one for target 'sm_90' (--target sm_90)");
  cr_assert_null(strstr(error.text, "revalidate"), "%s", error.text);
  ft_old_key key;
  cr_assert_eq(ft_store_old_key(store, s.graph, &s.target, 1, arena, &key, &error),
               FT_NOT_FOUND);
}
