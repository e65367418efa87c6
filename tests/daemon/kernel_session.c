// Whole tuning runs in process, on small models. Compiles kernels, so release only.
#include <string.h>

#include "graph/plan_json.h"
#include "sessions.h"

// bias + GELU (erf form) + residual, [37, 48].
static ft_strbuf bias_gelu(ft_arena *arena) {
  onnx_file f = onnx_begin(arena, 13);
  float bias[48];
  for (int i = 0; i < 48; i++) bias[i] = (float)(i % 7) * 0.1f - 0.3f;
  onnx_input(&f, "x", ONNX_FLOAT, "N,48");
  onnx_input(&f, "r", ONNX_FLOAT, "N,48");
  onnx_output(&f, "y", ONNX_FLOAT, "N,48");
  onnx_floats(&f, "b", "48", bias, 48);
  onnx_scalar(&f, "sqrt2", 1.41421356f);
  onnx_scalar(&f, "one", 1.0f);
  onnx_scalar(&f, "half", 0.5f);
  onnx_node(&f, "Add", "x,b", "a", NULL);
  onnx_node(&f, "Div", "a,sqrt2", "d", NULL);
  onnx_node(&f, "Erf", "d", "e", NULL);
  onnx_node(&f, "Add", "e,one", "p", NULL);
  onnx_node(&f, "Mul", "a,p", "m", NULL);
  onnx_node(&f, "Mul", "m,half", "g", NULL);
  onnx_node(&f, "Add", "g,r", "y", NULL);
  return onnx_end(&f);
}

// A product that is stored with its batch innermost: oneDNN takes the product, and of the
// two together has only a reference implementation.
static ft_strbuf unfit_product(ft_arena *arena) {
  onnx_file f = onnx_begin(arena, 13);
  onnx_input(&f, "x", ONNX_FLOAT, "2,9,N");
  onnx_input(&f, "w", ONNX_FLOAT, "2,N,7");
  onnx_output(&f, "y", ONNX_FLOAT, NULL);
  onnx_node(&f, "MatMul", "x,w", "p", NULL);
  ft_strbuf attributes = ft_strbuf_init(arena);
  onnx_attr_ints(&attributes, "perm", (int64_t[]){1, 2, 0}, 3);
  onnx_node(&f, "Transpose", "p", "y", &attributes);
  return onnx_end(&f);
}

static fixture open_cold(ft_strbuf (*make)(ft_arena *), bool test_tactics) {
  return fixture_open_as(make,
                         (fixture_wish){.test_tactics = test_tactics, .is_cold = true});
}

static ft_answer tune(fixture *f, const ft_tune_options *options) {
  ft_answer answer;
  ft_error error;
  ft_status status =
      ft_session_tune(&f->session, &f->model, options, f->arena, &answer, &error);
  cr_assert_eq(status, FT_OK, "%s", error.text);
  return answer;
}

static int64_t sql_number(const char *path, const char *sql) {
  sqlite3 *db;
  sqlite3_stmt *statement;
  cr_assert_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, "%s", sql);
  cr_assert_eq(sqlite3_step(statement), SQLITE_ROW);
  int64_t value = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return value;
}

static const ft_tune_options short_run = {.limit_ns = 60000000000u};

static char *answer_text(const ft_answer *answer) {
  json_t *o = ft_answer_json(answer);
  char *text = json_dumps(o, JSON_SORT_KEYS | JSON_COMPACT);
  json_decref(o);
  return text;
}

Test(daemon_session, reruns_come_to_measure_nothing_and_query_answers_the_same_bytes,
     .timeout = 200) {
  fixture f = open_cold(bias_gelu, false);
  ft_answer first = tune(&f, &short_run);
  cr_assert_str_eq(first.search->stop_reason, "complete");
  cr_assert_gt(first.new_trials, 0);
  cr_assert_eq(first.plan->times.gap, 0);
  cr_assert_eq(first.plan->window, 16, "the plan says a window of %u",
               first.plan->window);
  cr_assert_gt(first.plan->span, 0);
  // A rerun knows the long looks from the beginning, so it may ask for groups that the
  // first run did not; after some runs there is nothing to ask.
  ft_answer again = tune(&f, &short_run);
  for (int i = 0; i < 5 && again.new_trials > 0; i++) again = tune(&f, &short_run);
  cr_assert_eq(again.new_trials, 0, "%u trials ran again", again.new_trials);

  ft_answer one, two;
  ft_error error;
  cr_assert_eq(ft_session_query(&f.session, &f.model, f.arena, &one, &error), FT_OK, "%s",
               error.text);
  cr_assert_eq(ft_session_query(&f.session, &f.model, f.arena, &two, &error), FT_OK);
  char *a = answer_text(&one), *b = answer_text(&two);
  cr_assert_str_eq(a, b);
  cr_assert(ft_hash_equal(&one.plan->hash, &again.plan->hash));
  free(a);
  free(b);
  fixture_close(&f);
}

Test(daemon_session, every_accepted_candidate_was_compared_with_the_reference,
     .timeout = 120) {
  fixture f = open_cold(bias_gelu, false);
  (void)tune(&f, &short_run);
  const char *path = f.session.store_path;
  cr_assert_gt(sql_number(path, "select count(*) from trial where outcome='ok'"), 0);
  cr_assert_eq(sql_number(path,
                          "select count(*) from trial where outcome in ('ok','beaten') "
                          "and (max_error_ratio is null or max_error_ratio > 1)"),
               0);
  cr_assert_eq(sql_number(path, "select count(*) from trial where outcome='pending'"), 0);
  cr_assert_eq(sql_number(path, "select count(*) from plan where served=1"), 1);
  cr_assert_gt(sql_number(path, "select count(*) from comparison"), 0);
  cr_assert_gt(sql_number(path, "select count(*) from artifact where kind='so'"), 0);
  fixture_close(&f);
}

static int64_t timeouts(const char *path) {
  return sql_number(path, "select count(*) from trial where outcome='timeout'");
}

// Of the outcomes only a timeout may be the machine's fault: it is tried once more.
Test(daemon_session, kernels_that_misbehave_are_outcomes_and_only_timeouts_run_again,
     .timeout = 300) {
  fixture f = open_cold(relu_model, true);
  ft_answer first = tune(&f, &short_run);
  const char *path = f.session.store_path;
  static const char *const outcomes[] = {"crash", "timeout", "wrong_result",
                                         "compile_error", "launch_error"};
  for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
    char sql[128];
    snprintf(sql, sizeof sql, "select count(*) from trial where outcome='%s'",
             outcomes[i]);
    cr_assert_gt(sql_number(path, sql), 0, "no %s", outcomes[i]);
  }
  cr_assert_gt(sql_number(path, "select count(*) from quarantine where strikes>1"), 0);
  int64_t late = timeouts(path);
  cr_assert_eq(sql_number(path, "select count(*) from quarantine where strikes=1"), late);
  cr_assert_gt(first.plan->group_count, 0);
  ft_answer again = tune(&f, &short_run);
  cr_assert_eq(again.new_trials, late, "%u trials ran again", again.new_trials);
  cr_assert_eq(timeouts(path), 2 * late);
  cr_assert_eq(sql_number(path, "select count(*) from quarantine where strikes=1"), 0);
  ft_answer third = tune(&f, &short_run);
  cr_assert_eq(third.new_trials, 0, "%u trials ran again", third.new_trials);
  fixture_close(&f);
}

static void stop_early(void *ctx, const ft_search_progress *progress) {
  fixture *f = ctx;
  if (progress->trials >= f->stop_after) f->stop = 1;
}

Test(daemon_session, an_interrupted_run_blames_nobody_and_a_rerun_resumes,
     .timeout = 120) {
  fixture f = open_cold(bias_gelu, false);
  f.session.stop = &f.stop;
  f.stop_after = 1;
  ft_tune_options options = short_run;
  options.progress = stop_early;
  options.progress_ctx = &f;
  ft_answer answer;
  ft_error error;
  cr_assert_eq(ft_session_tune(&f.session, &f.model, &options, f.arena, &answer, &error),
               FT_INTERRUPTED, "%s", error.text);
  const char *path = f.session.store_path;
  cr_assert_eq(sql_number(path, "select count(*) from trial where outcome='pending'"), 0);
  cr_assert_eq(sql_number(path, "select count(*) from quarantine"), 0);
  int64_t kept = sql_number(path, "select count(*) from trial where outcome='ok'");
  cr_assert_eq(
      sql_number(path, "select count(*) from run where stop_reason='interrupted'"), 1);
  f.stop = 0;
  ft_answer resumed = tune(&f, &short_run);
  cr_assert_geq(resumed.trials - resumed.new_trials, (uint32_t)kept);
  fixture_close(&f);
}

static const ft_compared *compared(const ft_answer *answer, ft_plan_kind kind) {
  for (uint32_t i = 0; i < answer->comparison.plan_count; i++)
    if (answer->comparison.plan[i].kind == kind) return &answer->comparison.plan[i];
  return NULL;
}

Test(daemon_session, a_budget_that_is_over_at_once_names_what_it_left_out,
     .timeout = 120) {
  fixture f = open_cold(bias_gelu, false);
  ft_tune_options options = {.limit_ns = 1};
  ft_answer answer = tune(&f, &options);
  const ft_compared *left = compared(&answer, FT_PLAN_PRIMITIVE);
  cr_assert(left && left->absence);
  cr_assert(strstr(left->absence, "left"), "%s", left->absence);
  cr_assert_null(compared(&answer, FT_PLAN_UNFUSED)->absence);
  cr_assert_null(compared(&answer, FT_PLAN_INCUMBENT));
  cr_assert_eq(sql_number(f.session.store_path, "select count(*) from plan where served"),
               1);
  fixture_close(&f);
}

Test(daemon_session, what_is_served_meets_every_later_run_and_keeps_its_row,
     .timeout = 200) {
  fixture f = open_cold(bias_gelu, false);
  ft_answer first = tune(&f, &short_run);
  cr_assert(!first.comparison.has_incumbent);
  ft_hash id = first.plan->hash;
  const char *path = f.session.store_path;
  for (int i = 0; i < 2; i++) {
    ft_answer again = tune(&f, &short_run);
    cr_assert(again.comparison.has_incumbent);
    const ft_compared *incumbent = compared(&again, FT_PLAN_INCUMBENT);
    cr_assert(incumbent && !incumbent->absence, "%s", incumbent->absence);
    cr_assert(!incumbent->has_left);
    bool is_kept = ft_hash_equal(&again.plan->hash, &id);
    bool is_beaten =
        again.comparison.incumbent_p < 0.01 && again.comparison.incumbent_ratio < 0.99;
    cr_assert(is_kept || is_beaten, "p %g, ratio %g", again.comparison.incumbent_p,
              again.comparison.incumbent_ratio);
    id = again.plan->hash;
    cr_assert_eq(sql_number(path, "select count(*) from plan where served"), 1);
  }
  // All that ran are there, and so are their rounds, each plan once a round.
  cr_assert_gt(sql_number(path, "select count(distinct plan_id) from comparison"), 2);
  cr_assert_eq(sql_number(path, "select count(*) from comparison where time_ns = 0"), 0);
  fixture_close(&f);
}

Test(daemon_session, the_served_plan_verifies_and_so_does_unfused_without_a_plan,
     .timeout = 120) {
  fixture f = open_cold(bias_gelu, false);
  ft_run_result result;
  ft_error error;
  ft_run_options options = {.seed = 1, .verify = true};
  cr_assert_eq(ft_session_run(&f.session, &f.model, &options, f.arena, &result, &error),
               FT_OK, "%s", error.text);
  cr_assert(result.is_verified && !result.is_plan_tuned, "%s", result.failure);
  (void)tune(&f, &short_run);
  options.seed = 2;
  cr_assert_eq(ft_session_run(&f.session, &f.model, &options, f.arena, &result, &error),
               FT_OK, "%s", error.text);
  cr_assert(result.is_verified && result.is_plan_tuned, "%s", result.failure);
  fixture_close(&f);
}

Test(daemon_session, inputs_come_from_ranges_and_files_and_unknown_names_are_refused,
     .timeout = 120) {
  fixture f = open_cold(relu_model, true);  // y = relu x
  float data[37 * 50];
  for (int i = 0; i < 37 * 50; i++) data[i] = (float)i - 900;
  ft_input_range range = {"x", 5, 6};
  ft_input_file file = {"x", {FT_F32, {2, {37, 50}}, data, sizeof data}};
  ft_run_options options = {.range_count = 1, .range = &range};
  ft_run_result result;
  ft_error error;
  cr_assert_eq(ft_session_run(&f.session, &f.model, &options, f.arena, &result, &error),
               FT_OK, "%s", error.text);
  cr_assert_eq(result.method, FT_VERIFY_NONE);
  cr_assert_eq(result.output_count, 1);
  for (int64_t i = 0; i < 37 * 50; i++) {
    double y = ft_tensor_get_f64(&result.output[0], i);
    cr_assert(y >= 5 && y < 6, "element %lld is %g", (long long)i, y);
  }
  options = (ft_run_options){.file_count = 1, .file = &file, .verify = true};
  cr_assert_eq(ft_session_run(&f.session, &f.model, &options, f.arena, &result, &error),
               FT_OK, "%s", error.text);
  cr_assert(result.is_verified && result.kernel_count == 1 && result.dense_count == 1);
  for (int64_t i = 0; i < 37 * 50; i++)
    cr_assert_eq(ft_tensor_get_f64(&result.output[0], i), data[i] > 0 ? data[i] : 0);
  file.tensor.shape.dim[1] = 25;
  cr_assert_eq(ft_session_run(&f.session, &f.model, &options, f.arena, &result, &error),
               FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "'x' is f32 37x50"), "%s", error.text);
  file.name = "z";
  cr_assert_eq(ft_session_run(&f.session, &f.model, &options, f.arena, &result, &error),
               FT_INVALID_ARGUMENT);
  fixture_close(&f);
}

static const char *content_of(const ft_plan *plan, ft_arena *arena) {
  json_t *content = ft_plan_content_json(plan);
  const char *text = ft_json_text(content, arena);
  json_decref(content);
  return text;
}

static const ft_searched_partition *tuned_partition(const ft_answer *answer) {
  return ft_search_find(answer->search, ft_plan_kind_strategy(FT_PLAN_TUNED));
}

Test(daemon_session, the_store_alone_gives_the_plan_of_the_run_that_filled_it,
     .timeout = 180) {
  fixture f = open_cold(bias_gelu, false);
  ft_answer replayed;
  ft_error error;
  ft_tune_options options = {0};
  cr_assert_eq(
      ft_session_replay(&f.session, &f.model, &options, f.arena, &replayed, &error),
      FT_NOT_FOUND);
  cr_assert(strstr(error.text, "times for 0 of the"), "%s", error.text);
  ft_answer recorded = tune(&f, &short_run);
  const char *path = f.session.store_path;
  int64_t trials = sql_number(path, "select count(*) from trial");
  int64_t candidates = sql_number(path, "select count(*) from candidate");
  for (int i = 0; i < 2; i++) {
    cr_assert_eq(
        ft_session_replay(&f.session, &f.model, &options, f.arena, &replayed, &error),
        FT_OK, "%s", error.text);
    const ft_searched_partition *a = tuned_partition(&recorded),
                                *b = tuned_partition(&replayed);
    cr_assert_eq(a->additive_ns, b->additive_ns);
    cr_assert_eq(a->partition.group_count, replayed.plan->group_count);
    for (uint32_t g = 0; g < a->partition.group_count; g++) {
      const ft_candidate *best = &recorded.search->group[a->unique[g]].best;
      const ft_plan_group *group = &replayed.plan->group[g];
      cr_assert(ft_workload_equal(&a->workload[g], &group->workload));
      cr_assert_str_eq(best->tactic, group->tactic);
      cr_assert(ft_schedule_equal(&best->schedule, &group->schedule));
    }
    // One of the next best may have won end to end; it is then called tuned too.
    if (ft_hash_equal(&compared(&recorded, FT_PLAN_TUNED)->plan, &recorded.plan->hash))
      cr_assert(ft_hash_equal(&recorded.plan->hash, &replayed.plan->hash), "%s\n%s",
                content_of(recorded.plan, f.arena), content_of(replayed.plan, f.arena));
    cr_assert_eq(replayed.new_trials, 0);
  }
  cr_assert_eq(sql_number(path, "select count(*) from trial"), trials);
  cr_assert_eq(sql_number(path, "select count(*) from candidate"), candidates);
  cr_assert_eq(sql_number(path, "select count(*) from run"), 1);
  fixture_close(&f);
}

Test(daemon_session, a_plan_under_constraints_is_another_plan, .timeout = 180) {
  fixture f = open_cold(bias_gelu, false), free = open_cold(bias_gelu, false);
  ft_constraint_spec spec = {.keep_count = 1, .keep = {"e"}};
  ft_error error;
  cr_assert_eq(ft_model_constrain(&f.model, &spec, f.arena, &error), FT_OK, "%s",
               error.text);
  ft_tune_options options = {.limit_ns = 20000000000u};
  ft_answer tuned = tune(&f, &options), found;
  cr_assert_geq(tuned.plan->group_count, 2, "'e' is materialised");
  cr_assert_eq(ft_session_query(&free.session, &free.model, free.arena, &found, &error),
               FT_NOT_FOUND);
  cr_assert(strstr(error.text, "#constraints") && strstr(error.text, "keep"), "%s",
            error.text);
  cr_assert_eq(ft_session_query(&f.session, &f.model, f.arena, &found, &error), FT_OK,
               "%s", error.text);
  cr_assert(ft_hash_equal(&found.plan->hash, &tuned.plan->hash));
  json_t *plan = ft_plan_json(found.plan, "exact");
  const json_t *keep = json_object_get(json_object_get(plan, "constraints"), "keep");
  cr_assert_str_eq(json_string_value(json_array_get(keep, 0)), "e");
  cr_assert_eq(json_object_size(json_object_get(plan, "dims")), 1);
  json_decref(plan);
  ft_answer other = tune(&free, &options);
  cr_assert_not(ft_hash_equal(&other.plan->hash, &tuned.plan->hash));
  fixture_close(&free);
  fixture_close(&f);
}

Test(daemon_session, query_before_tune_says_that_nothing_is_there) {
  fixture f = open_cold(bias_gelu, false);
  ft_answer answer;
  ft_error error;
  cr_assert_eq(ft_session_query(&f.session, &f.model, f.arena, &answer, &error),
               FT_NOT_FOUND);
  cr_assert_gt(strlen(error.text), 0);
  fixture_close(&f);
}

Test(daemon_session, what_a_library_cannot_do_is_an_outcome_and_the_rest_is_measured,
     .timeout = 120) {
  fixture f = open_cold(unfit_product, false);
  if (!*f.session.target.libraries) {
    fixture_close(&f);
    cr_skip_test("no library here");
  }
  ft_answer answer = tune(&f, &short_run);
  cr_expect_gt(answer.plan->group_count, 0);
  // Both in one kernel, whatever else promises more.
  ft_constraint_spec spec = {.fuse_count = 1, .fuse = {{"n_p", "n_y"}}};
  ft_error error;
  cr_assert_eq(ft_model_constrain(&f.model, &spec, f.arena, &error), FT_OK, "%s",
               error.text);
  answer = tune(&f, &short_run);
  cr_expect_eq(answer.plan->group_count, 1);
  const char *path = f.session.store_path;
  cr_expect_gt(sql_number(path,
                          "SELECT count(*) FROM trial t JOIN candidate c ON "
                          "c.id = t.candidate_id WHERE c.tactic = 'onednn' AND "
                          "t.outcome = 'launch_error' AND t.error LIKE "
                          "'%returned 103'"),
               0);
  cr_expect_gt(sql_number(path,
                          "SELECT count(*) FROM trial t JOIN candidate c ON "
                          "c.id = t.candidate_id WHERE c.tactic = 'onednn' AND "
                          "t.outcome IN ('ok', 'beaten')"),
               0);
  fixture_close(&f);
}
