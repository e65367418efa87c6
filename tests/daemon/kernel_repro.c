// `repro` of planted faults: the program is compiled with the one command that it comes
// with, and shows what the trial ended as.
#include "daemon/repro.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/daemon/sessions.h"

static int64_t trial_like(fixture *f, const char *where) {
  const char *sql = ft_arena_printf(f->arena,
                                    "select ifnull(max(t.id), 0) from trial t join"
                                    " candidate c on c.id = t.candidate_id where %s",
                                    where);
  int64_t id = strtoll(fixture_sql(f, sql), NULL, 10);
  cr_assert_gt(id, 0, "no trial where %s", where);
  return id;
}

static int64_t trial_of_fault(fixture *f, const char *fault) {
  return trial_like(f, ft_arena_printf(f->arena, "c.schedule like '%%\"%s\"%%'", fault));
}

static ft_repro_result make(fixture *f, int64_t id, const ft_input_file *file) {
  ft_repro_result result;
  ft_error error;
  ft_repro_options options = {
      .trial = ft_arena_printf(f->arena, "%lld", (long long)id),
      .folder = ft_arena_printf(f->arena, "%s/repro-%lld", test_folder(), (long long)id),
      .file_count = file != NULL,
      .file = file};
  cr_assert_eq(ft_session_repro(&f->session, &options, f->arena, &result, &error), FT_OK,
               "trial %lld: %s", (long long)id, error.text);
  return result;
}

static test_command run(fixture *f, const ft_repro_result *result) {
  const char *argv[] = {
      "sh", "-c",
      ft_arena_printf(f->arena, "cd %s && %s", result->folder, result->command), NULL};
  return test_command_run(argv, NULL, 60, 0);
}

// What a shell says of a program that a signal ended.
enum { SIGNALLED = 128, SEGV = 11, ALRM = 14 };

static const struct {
  const char *fault;
  int exit_code;
  const char *shows[3];
} faults[] = {
    {"segfault", SIGNALLED + SEGV, {"CRASH signal 11", "at 0x8"}},
    {"hang", SIGNALLED + ALRM, {"CRASH signal 14", "hangs"}},
    {"overrun", SIGNALLED + SEGV, {"CRASH signal 11", "bytes past the end of output 0"}},
    {"overrun_few", 1, {"WRONG output 0: written up to 4 bytes past its end"}},
    {"nan", 1, {"WRONG output 0: 1850 of 1850", "at 0: got -nan, expected", "tolerance"}},
    {"error", 1, {"WRONG the kernel returned 7"}},
    {"partial", 1, {"925 of 1850 elements never written, the first at 925", "WRONG"}},
    {"slow", 0, {"right output 0: 1850 of 1850", "time ", "the trial took"}},
};

Test(daemon_repro, each_planted_fault_shows_with_one_command, .timeout = 300) {
  fixture f = fixture_open(relu_model, true);
  (void)fixture_tune(&f);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    ft_repro_result result = make(&f, trial_of_fault(&f, faults[i].fault), NULL);
    cr_assert(!result.is_emitted);
    test_command c = run(&f, &result);
    cr_assert_eq(c.exit_code, faults[i].exit_code, "%s: %d\n%s%s", faults[i].fault,
                 c.exit_code, c.out, c.err);
    for (int k = 0; k < 3 && faults[i].shows[k]; k++)
      cr_assert(strstr(c.out, faults[i].shows[k]), "%s: no '%s' in\n%s", faults[i].fault,
                faults[i].shows[k], c.out);
    test_command_free(&c);
  }
  fixture_close(&f);
}

Test(daemon_repro, what_did_not_compile_does_not_compile_again, .timeout = 120) {
  fixture f = fixture_open(relu_model, true);
  (void)fixture_tune(&f);
  ft_repro_result result = make(&f, trial_of_fault(&f, "no_compile"), NULL);
  cr_assert_str_eq(result.trial.row.outcome, "compile_error");
  test_command c = run(&f, &result);
  cr_assert_eq(c.exit_code, 1, "%d", c.exit_code);
  cr_assert(strstr(c.err, "error:"), "%s", c.err);
  cr_assert_neq(access(ft_arena_printf(f.arena, "%s/repro", result.folder), F_OK), 0);
  ft_bytes readme;
  ft_error error;
  cr_assert_eq(ft_file_read(ft_arena_printf(f.arena, "%s/README.md", result.folder),
                            1 << 20, f.arena, &readme, &error),
               FT_OK);
  cr_assert(strstr(readme.data, "The compiler said"), "%s", (const char *)readme.data);
  test_command_free(&c);
  fixture_close(&f);
}

Test(daemon_repro, a_good_kernel_is_right_on_drawn_and_on_given_inputs, .timeout = 120) {
  fixture f = fixture_open(chain_model, false);
  (void)fixture_tune(&f);
  // The whole chain: x and the bias are its inputs.
  int64_t id = trial_like(&f,
                          "t.outcome = 'ok' and c.workload_id = (select id from workload"
                          " order by primitives desc limit 1)");
  ft_repro_result result = make(&f, id, NULL);
  cr_assert_eq(result.checked, 37 * 48);
  test_command c = run(&f, &result);
  cr_assert_eq(c.exit_code, 0, "%s%s", c.out, c.err);
  cr_assert(strstr(c.out, "right output 0: 1776 of 1776"), "%s", c.out);
  test_command_free(&c);
  float data[37 * 48];
  for (int i = 0; i < 37 * 48; i++) data[i] = (float)(i % 5) - 2;
  ft_input_file file = {"input_0", {FT_F32, {2, {37, 48}}, data, sizeof data}};
  ft_repro_options options = {
      .trial = "1", .folder = test_folder(), .file_count = 1, .file = &file};
  ft_error error;
  file.name = "input_9";
  cr_assert_eq(ft_session_repro(&f.session, &options, f.arena, &result, &error),
               FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "input_9"), "%s", error.text);
  bool took = false;
  for (int i = 0; i < 2 && !took; i++) {  // which of the two is x is canonical, not ours
    file.name = i ? "input_1" : "input_0";
    options.trial = ft_arena_printf(f.arena, "%lld", (long long)id);
    took = ft_session_repro(&f.session, &options, f.arena, &result, &error) == FT_OK;
  }
  cr_assert(took, "%s", error.text);
  c = run(&f, &result);
  cr_assert_eq(c.exit_code, 0, "%s%s", c.out, c.err);
  test_command_free(&c);
  fixture_close(&f);
}

// The bias of the chain is a weight: repeated values that no recipe draws.
Test(daemon_repro, constants_of_the_model_are_taken_from_it, .timeout = 120) {
  fixture f = fixture_open(chain_model, false);
  (void)fixture_tune(&f);
  int64_t id = trial_like(&f, "t.outcome = 'ok' and t.env like '%\"constants\"%'");
  ft_repro_result result = make(&f, id, NULL);
  cr_assert_eq(result.drawn_constants, 1);
  ft_error error;
  ft_repro_options options = {
      .trial = ft_arena_printf(f.arena, "%lld", (long long)id),
      .folder = ft_arena_printf(f.arena, "%s/with-model", test_folder()),
      .model = f.model.graph};
  cr_assert_eq(ft_session_repro(&f.session, &options, f.arena, &result, &error), FT_OK,
               "%s", error.text);
  cr_assert_eq(result.drawn_constants, 0);
  ft_bytes bytes;
  uint32_t found = 0;
  for (int i = 0; i < 2; i++) {
    const char *path = ft_arena_printf(f.arena, "%s/input_%d.bin", options.folder, i);
    if (ft_file_read(path, 1 << 20, f.arena, &bytes, &error) != FT_OK) continue;
    found++;
    cr_assert_eq(bytes.size, 48 * sizeof(float));
    cr_assert_eq(((const float *)bytes.data)[8], 1 * 0.1f - 0.3f);
  }
  cr_assert_eq(found, 1);
  test_command c = run(&f, &result);
  cr_assert_eq(c.exit_code, 0, "%s%s", c.out, c.err);
  test_command_free(&c);
  // Another model has other constants.
  ft_model other;
  const char *path = ft_arena_printf(f.arena, "%s/other.onnx", test_folder());
  ft_strbuf model = relu_model(f.arena);
  cr_assert_eq(ft_file_write(path, model.text, model.length, &error), FT_OK);
  ft_dim_binding dim = {"N", 37};
  ft_import_options import = {.dim_count = 1, .dim = &dim};
  cr_assert_eq(ft_model_load(path, &import, f.arena, &other, &error), FT_OK);
  options.model = other.graph;
  cr_assert_eq(ft_session_repro(&f.session, &options, f.arena, &result, &error),
               FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "no constant with the bytes of 'b'"), "%s", error.text);
  fixture_close(&f);
}

Test(daemon_repro, other_inputs_than_the_references_are_not_accepted, .timeout = 120) {
  fixture f = fixture_open(chain_model, false);
  (void)fixture_tune(&f);
  ft_repro_result result = make(&f, trial_like(&f, "t.outcome = 'ok'"), NULL);
  // Another seed in the program: it must notice.
  const char *sed = ft_arena_printf(
      f.arena,
      "cd %s && sed -i 's/0x1p+1, 0u, /0x1p+1, 99u, /' repro.c && grep -q 99u repro.c",
      result.folder);
  const char *argv[] = {"sh", "-c", sed, NULL};
  test_command c = test_command_run(argv, NULL, 10, 0);
  cr_assert_eq(c.exit_code, 0, "%s%s", c.out, c.err);
  test_command_free(&c);
  c = run(&f, &result);
  cr_assert_eq(c.exit_code, 2, "%s%s", c.out, c.err);
  cr_assert(strstr(c.err, "is not the input"), "%s", c.err);
  test_command_free(&c);
  fixture_close(&f);
}

Test(daemon_repro, a_trial_without_a_source_is_emitted_again_or_says_why,
     .timeout = 120) {
  fixture f = fixture_open(chain_model, false);
  (void)fixture_tune(&f);
  int64_t id = trial_like(&f, "t.outcome = 'ok'");
  sqlite3 *db;
  cr_assert_eq(sqlite3_open(f.session.store_path, &db), SQLITE_OK);
  cr_assert_eq(sqlite3_exec(db,
                            ft_arena_printf(f.arena,
                                            "update trial set build_id = null where id"
                                            " = %lld",
                                            (long long)id),
                            NULL, NULL, NULL),
               SQLITE_OK);
  ft_repro_result result = make(&f, id, NULL);
  cr_assert(result.is_emitted);
  test_command c = run(&f, &result);
  cr_assert_eq(c.exit_code, 0, "%s%s", c.out, c.err);
  test_command_free(&c);
  cr_assert_eq(
      sqlite3_exec(db, "update candidate set codegen_version = 77", NULL, NULL, NULL),
      SQLITE_OK);
  sqlite3_close(db);
  ft_error error;
  ft_repro_options options = {.trial = ft_arena_printf(f.arena, "%lld", (long long)id),
                              .folder = test_folder()};
  cr_assert_eq(ft_session_repro(&f.session, &options, f.arena, &result, &error),
               FT_NOT_FOUND);
  cr_assert(strstr(error.text, "codegen version 77"), "%s", error.text);
  fixture_close(&f);
}

Test(daemon_repro, explain_names_a_trial_that_repro_takes, .timeout = 120) {
  fixture f = fixture_open(chain_model, false);
  ft_answer tuned = fixture_tune(&f), asked;
  ft_error error;
  cr_assert_eq(ft_session_query(&f.session, &f.model, f.arena, &asked, &error), FT_OK);
  for (uint32_t i = 0; i < asked.plan->group_count; i++) {
    const ft_group_trial *trial = &asked.trial[i];
    cr_assert_eq(trial->id, tuned.trial[i].id);
    ft_repro_result result = make(&f, trial->id, NULL);
    cr_assert_str_eq(result.trial.row.tactic, asked.plan->group[i].tactic);
    cr_assert_eq(result.trial.row.time.median_ns, asked.plan->group[i].time.median_ns);
    char hash[FT_HASH_TEXT + 1];
    ft_hash_text(&trial->source, hash);
    ft_repro_options options = {.trial = hash, .folder = test_folder()};
    cr_assert_eq(ft_session_repro(&f.session, &options, f.arena, &result, &error), FT_OK,
                 "%s", error.text);
  }
  json_t *o = ft_answer_json(&asked);
  json_t *group = json_array_get(json_object_get(o, "groups"), 0);
  cr_assert_eq(json_integer_value(json_object_get(group, "trial")), asked.trial[0].id);
  json_decref(o);
  fixture_close(&f);
}
