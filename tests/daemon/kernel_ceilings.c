// The bound alarm and the ceilings' way through a session. Compiles kernels, so release
// only.
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <string.h>

#include "core/file.h"
#include "daemon/ceilings.h"
#include "tests/support/command.h"
#include "tests/support/onnx_writer.h"

static const char *const worker[] = {FT_BINARY_DIR "/fusetune", "worker", NULL};

typedef struct fixture {
  ft_arena *arena;
  ft_session session;
  ft_model model;
  const char *phase;  // the first one
} fixture;

// y = relu(x), and unless |is_one| z = exp(y): 4 MiB each.
static void write_model(const char *path, bool is_one, ft_arena *arena) {
  ft_error error;
  onnx_file f = onnx_begin(arena, 13);
  onnx_input(&f, "x", ONNX_FLOAT, "1024,1024");
  onnx_output(&f, "y", ONNX_FLOAT, "1024,1024");
  onnx_node(&f, "Relu", "x", "y", NULL);
  if (!is_one) {
    onnx_output(&f, "z", ONNX_FLOAT, "1024,1024");
    onnx_node(&f, "Exp", "y", "z", NULL);
  }
  ft_strbuf bytes = onnx_end(&f);
  cr_assert_eq(ft_file_write(path, bytes.text, bytes.length, &error), FT_OK, "%s",
               error.text);
}

static fixture open_fixture(const char *store, bool test_tactics) {
  fixture f = {.arena = ft_arena_create(ft_allocator_system())};
  ft_error error;
  const char *path = ft_arena_printf(f.arena, "%s/two.onnx", test_folder());
  write_model(path, test_tactics, f.arena);  // each group hangs once
  ft_import_options import = {0};
  cr_assert_eq(ft_model_load(path, &import, f.arena, &f.model, &error), FT_OK, "%s",
               error.text);
  ft_session_options options = {
      .store_path = ft_arena_printf(f.arena, "%s/%s", test_folder(), store),
      .cache_folder = ft_arena_printf(f.arena, "%s/cache", test_folder()),
      .worker_argv = worker,
      .check_limit_ns = test_tactics ? 2000000000u : 0,  // one hangs
      .test_tactics = test_tactics};
  cr_assert_eq(ft_session_open(&options, &f.session, &error), FT_OK, "%s", error.text);
  return f;
}

static void close_fixture(fixture *f) {
  ft_session_close(&f->session);
  ft_arena_destroy(f->arena);
}

static void note_phase(void *ctx, const ft_search_progress *progress) {
  fixture *f = ctx;
  if (!f->phase) f->phase = progress->phase;
}

static ft_answer tune(fixture *f) {
  ft_answer answer;
  ft_error error;
  ft_tune_options options = {
      .limit_ns = 60000000000u, .progress = note_phase, .progress_ctx = f};
  ft_status status =
      ft_session_tune(&f->session, &f->model, &options, f->arena, &answer, &error);
  cr_assert_eq(status, FT_OK, "%s", error.text);
  return answer;
}

static int64_t number(const fixture *f, const char *sql) {
  sqlite3 *db;
  sqlite3_stmt *row;
  cr_assert_eq(sqlite3_open_v2(f->session.store_path, &db, SQLITE_OPEN_READONLY, NULL),
               SQLITE_OK);
  cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK, "%s", sql);
  cr_assert_eq(sqlite3_step(row), SQLITE_ROW, "%s", sql);
  int64_t value = sqlite3_column_int64(row, 0);
  sqlite3_finalize(row);
  sqlite3_close(db);
  return value;
}

// What the certificate rests on, kept by the alarm whatever the machine does.
static void expect_no_time_below_its_bound(const fixture *f, const ft_answer *answer) {
  for (uint32_t i = 0; i < answer->search->group_count; i++) {
    const ft_searched_group *g = &answer->search->group[i];
    if (!g->is_measured) continue;
    double bound = ft_session_bound_ns(&f->session, &g->workload);
    cr_expect_gt(bound, 0);
    cr_expect_geq((double)g->trial.time.median_ns, 0.97 * bound, "group %u (%s)", i,
                  g->best.tactic);
  }
  int64_t below = number(f,
                         "select count(*) from trial where outcome = 'ok'"
                         " and median_ns < 0.97 * roofline_ns");
  cr_expect_leq(below, number(f, "select count(*) from alarm"), "%lld without an alarm",
                (long long)below);
  cr_expect_eq(number(f,
                      "select count(*) from trial where outcome = 'ok' and"
                      " (roofline_ns is null or predicted_ns is null)"),
               0);
}

Test(daemon_ceilings, are_measured_by_the_first_run_and_fill_the_answer, .timeout = 200) {
  fixture f = open_fixture("first.db", false);
  cr_assert_eq(number(&f, "select count(*) from ceiling"), 0);
  ft_answer answer = tune(&f);
  cr_expect_str_eq(f.phase, "ceilings");
  cr_expect_gt(number(&f, "select count(*) from ceiling"), 20);
  expect_no_time_below_its_bound(&f, &answer);
  for (uint32_t i = 0; i < answer.plan->group_count; i++) {
    cr_expect_gt(answer.plan->group[i].roofline_ns, 0);
    cr_expect_geq(answer.plan->group[i].predicted_ns, answer.plan->group[i].roofline_ns);
  }
  json_t *o = ft_answer_json(&answer);
  json_t *group = json_array_get(json_object_get(o, "groups"), 0);
  cr_expect(json_is_real(json_object_get(group, "roofline_ns")));
  cr_expect(json_is_real(json_object_get(group, "predicted_ns")));
  json_decref(o);
  close_fixture(&f);
}

// Measured two minutes earlier than they were.
static void make_old(const fixture *f) {
  sqlite3 *db;
  cr_assert_eq(sqlite3_open(f->session.store_path, &db), SQLITE_OK);
  cr_assert_eq(
      sqlite3_exec(db, "UPDATE ceiling SET measured_at = measured_at - 120000000000",
                   NULL, NULL, NULL),
      SQLITE_OK);
  sqlite3_close(db);
}

// What a run with time does about ceilings, in a session of its own.
static fixture look_again(void) {
  fixture f = open_fixture("later.db", false);
  ft_error error;
  cr_assert_eq(ft_session_predictor_open(&f.session, 0, 0, &error), FT_OK, "%s",
               error.text);
  return f;
}

Test(daemon_ceilings, later_runs_add_rounds_and_lower_none, .timeout = 200) {
  fixture f = look_again();
  int64_t samples = number(&f, "select min(samples) from ceiling");
  double best = (double)number(&f,
                               "select cast(sum(value) as integer) from ceiling"
                               " where unit = 'bytes/s'");
  close_fixture(&f);
  f = look_again();
  cr_expect_eq(number(&f, "select min(samples) from ceiling"), samples, "still news");
  make_old(&f);
  close_fixture(&f);
  f = look_again();
  cr_expect_gt(number(&f, "select min(samples) from ceiling"), samples);
  cr_expect_geq((double)number(&f,
                               "select cast(sum(value) as integer) from ceiling"
                               " where unit = 'bytes/s'"),
                best);
  close_fixture(&f);
}

Test(daemon_ceilings, are_measured_once_per_target_and_anew_when_asked, .timeout = 200) {
  fixture f = open_fixture("once.db", false);
  ft_ceiling row[FT_CEILINGS_MOST];
  ft_error error;
  uint32_t count;
  cr_assert_eq(ft_session_ceilings(&f.session, 0, false, row, &count, &error), FT_OK,
               "%s", error.text);
  int64_t first = number(&f, "select max(measured_at) from ceiling");
  cr_assert_eq(ft_session_ceilings(&f.session, 0, false, row, &count, &error), FT_OK);
  cr_expect_eq(number(&f, "select max(measured_at) from ceiling"), first);
  cr_assert_eq(ft_session_ceilings(&f.session, 0, true, row, &count, &error), FT_OK);
  cr_expect_gt(number(&f, "select min(measured_at) from ceiling"), first);
  cr_expect_eq(number(&f, "select count(*) from ceiling"), count);
  close_fixture(&f);
}

Test(daemon_ceilings, a_hasty_measurement_is_repeated_when_there_is_time,
     .timeout = 200) {
  fixture f = open_fixture("hasty.db", false);
  ft_ceiling row[FT_CEILINGS_MOST];
  ft_error error;
  uint32_t count;
  cr_assert_eq(ft_session_ceilings(&f.session, 1, false, row, &count, &error), FT_OK,
               "%s", error.text);
  int64_t first = number(&f, "select max(measured_at) from ceiling");
  int64_t least = number(&f, "select min(samples) from ceiling");
  cr_expect_geq(least, 3);
  cr_assert_eq(ft_session_ceilings(&f.session, 1, false, row, &count, &error), FT_OK);
  cr_expect_eq(number(&f, "select max(measured_at) from ceiling"), first);
  if (least < 8) {
    cr_assert_eq(ft_session_ceilings(&f.session, 0, false, row, &count, &error), FT_OK);
    cr_expect_gt(number(&f, "select min(measured_at) from ceiling"), first);
  }
  close_fixture(&f);
}

Test(daemon_ceilings, a_kernel_too_fast_to_be_true_raises_the_alarm_and_the_run_goes_on,
     .timeout = 400) {
  fixture f = open_fixture("alarm.db", true);
  ft_answer answer = tune(&f);
  cr_expect_gt(number(&f,
                      "select count(*) from trial t join candidate c on c.id ="
                      " t.candidate_id where t.outcome = 'ok' and c.tactic = 'fault'"),
               0, "the lazy kernel was found out before it was timed");
  cr_assert_gt(number(&f, "select count(*) from alarm"), 0);
  cr_expect_gt(number(&f,
                      "select count(*) from alarm a join candidate c on c.id ="
                      " a.candidate_id where c.tactic = 'fault' and a.trial_id is not"
                      " null and a.median_ns < 0.97 * a.bound_ns"),
               0);
  cr_expect_eq(number(&f, "select sum(remeasured) from alarm"), 1, "once per session");
  cr_expect_eq(number(&f, "select count(*) from alarm where run_id is null"), 0);
  cr_expect_gt(number(&f, "select count(*) from ceiling where raised = 1"), 0);
  expect_no_time_below_its_bound(&f, &answer);
  cr_expect_eq(number(&f, "select count(*) from plan where served = 1"), 1);
  cr_expect_gt(answer.plan->group_count, 0);
  // A new measurement forgets it.
  ft_ceiling row[FT_CEILINGS_MOST];
  ft_error error;
  uint32_t count;
  cr_assert_eq(ft_session_ceilings(&f.session, 0, true, row, &count, &error), FT_OK);
  cr_expect_eq(number(&f, "select count(*) from ceiling where raised = 1"), 0);
  close_fixture(&f);
}
