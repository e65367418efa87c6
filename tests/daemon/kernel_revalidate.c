// A compiler is upgraded: the stored plan is for another target, its best candidates are
// measured again. The compilers are scripts that tell another version and run gcc.
#include "daemon/revalidate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/narrowed.h"
#include "tests/daemon/sessions.h"

static const char *fake_compiler(const char *version) {
  static char path[300];
  char text[300];
  ft_error error;
  snprintf(path, sizeof path, "%s/gcc-%s", test_folder(), version);
  snprintf(text, sizeof text,
           "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'gcc (Fake %s-1) %s'; exit 0; }\n"
           "exec gcc \"$@\"\n",
           version, version);
  cr_assert_eq(ft_file_write(path, text, strlen(text), &error), FT_OK);
  cr_assert_eq(chmod(path, 0700), 0);
  return path;
}

static fixture open_with(const char *version) {
  setenv("FUSETUNE_CC", fake_compiler(version), 1);
  return fixture_open(chain_model, false);
}

static int64_t number(const fixture *f, const char *sql) {
  sqlite3 *db;
  sqlite3_stmt *row;
  cr_assert_eq(sqlite3_open_v2(f->session.store_path, &db, SQLITE_OPEN_READWRITE, NULL),
               SQLITE_OK);
  cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK, "%s: %s", sql,
               sqlite3_errmsg(db));
  int code = sqlite3_step(row);
  cr_assert(code == SQLITE_ROW || code == SQLITE_DONE, "%s", sqlite3_errmsg(db));
  int64_t value = code == SQLITE_ROW ? sqlite3_column_int64(row, 0) : 0;
  sqlite3_finalize(row);
  sqlite3_close(db);
  return value;
}

// The reason is |because|, and what to do about it is said.
static void expect_no_plan(fixture *f, const char *because) {
  ft_answer answer;
  ft_error error;
  cr_assert_eq(ft_session_query(&f->session, &f->model, f->arena, &answer, &error),
               FT_NOT_FOUND);
  cr_assert(strstr(error.text, because), "%s", error.text);
  cr_assert(strstr(error.text, "fusetune revalidate"), "%s", error.text);
}

static ft_revalidation revalidate(fixture *f, uint32_t top) {
  ft_revalidate_options options = {.top = top, .tune = {.limit_ns = 60000000000u}};
  ft_revalidation out;
  ft_error error;
  cr_assert_eq(
      ft_session_revalidate(&f->session, &f->model, &options, f->arena, &out, &error),
      FT_OK, "%s", error.text);
  return out;
}

static void expect_served(fixture *f, const ft_hash *id) {
  ft_answer answer;
  ft_error error;
  cr_assert_eq(ft_session_query(&f->session, &f->model, f->arena, &answer, &error), FT_OK,
               "%s", error.text);
  cr_assert(ft_hash_equal(&answer.plan->hash, id));
}

Test(daemon_revalidate,
     after_an_upgrade_only_the_best_of_the_old_plans_are_measured_again, .timeout = 300) {
  fixture f = open_with("11.4.0");
  ft_hash first = fixture_tune(&f).plan->hash;
  fixture_close(&f);

  f = open_with("12.2.0");
  expect_no_plan(&f, "compilers");
  ft_revalidation r = revalidate(&f, 3);
  cr_assert(strstr(r.from.differs, "compilers"), "%s", r.from.differs);
  cr_assert_gt(r.answer.new_trials, 0);
  cr_assert_leq(number(&f,
                       "SELECT max(n) FROM (SELECT count(*) AS n FROM candidate"
                       " WHERE target_id = 2 GROUP BY workload_id)"),
                3);
  cr_assert_gt(number(&f,
                      "SELECT count(*) FROM trial t JOIN candidate c ON"
                      " c.id = t.candidate_id WHERE c.target_id = 2"),
               0);
  for (uint32_t i = 0; i < r.answer.plan->group_count; i++)
    cr_assert_str_eq(ft_schedule_get_text(&r.answer.plan->group[i].schedule, "compiler"),
                     "gcc-12");
  expect_served(&f, &r.answer.plan->hash);
  fixture_close(&f);

  f = open_with("11.4.0");  // the old plan is still there, for whoever has that compiler
  expect_served(&f, &first);
  fixture_close(&f);
}

Test(daemon_revalidate, kernels_of_an_older_codegen_are_not_served_and_measured_again,
     .timeout = 300) {
  fixture f = open_with("12.2.0");
  (void)fixture_tune(&f);
  (void)number(&f, "UPDATE candidate SET codegen_version = 0");
  expect_no_plan(&f, "codegen version 0, not");
  ft_revalidation r = revalidate(&f, 0);
  cr_assert_eq(r.top, 8);
  cr_assert(strstr(r.from.differs, "codegen (there 0"), "%s", r.from.differs);
  cr_assert_gt(r.answer.new_trials, 0);
  expect_served(&f, &r.answer.plan->hash);
  cr_assert_gt(number(&f, "SELECT count(*) FROM candidate WHERE codegen_version > 0"), 0);
  fixture_close(&f);
}

Test(daemon_revalidate, without_another_key_there_is_nothing_to_revalidate,
     .timeout = 120) {
  fixture f = open_with("12.2.0");
  ft_revalidate_options options = {0};
  ft_revalidation out;
  ft_error error;
  cr_assert_eq(
      ft_session_revalidate(&f.session, &f.model, &options, f.arena, &out, &error),
      FT_NOT_FOUND);
  cr_assert(strstr(error.text, "nothing to revalidate"), "%s", error.text);
  fixture_close(&f);
}

Test(daemon_revalidate, a_compiler_that_is_gone_becomes_one_of_its_family) {
  ft_target target = {.compiler_count = 2,
                      .compiler = {{.name = "clang-15"}, {.name = "gcc-13"}}};
  static const char *const cases[][2] = {{"clang-14", "clang-15"},
                                         {"gcc-12", "gcc-13"},
                                         {"icx-1", "clang-15"},
                                         {"gcc-13", "gcc-13"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ft_schedule schedule = {0};
    ft_schedule_set_text(&schedule, "compiler", cases[i][0]);
    ft_schedule_set(&schedule, "vector", 8);
    cr_assert_eq(ft_schedule_translate(&schedule, &target),
                 strcmp(cases[i][0], cases[i][1]) != 0);
    cr_assert_str_eq(ft_schedule_get_text(&schedule, "compiler"), cases[i][1]);
  }
}
