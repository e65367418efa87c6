// Lines of an export. Compiles no kernels.
#include "daemon/export.h"

#include <math.h>
#include <sys/stat.h>

#include "core/file.h"
#include "tests/support/stores.h"

static sample s;
static char file[300];
static void set_up(void) {
  store_set_up();
  store_open();
  sample_store(&s);
  snprintf(file, sizeof file, "%s/x.jsonl", folder);
}
TestSuite(daemon_export, .init = set_up, .fini = store_tear_down);

static const char *exported(const ft_export_options *options) {
  ft_output output;
  ft_bytes bytes;
  uint64_t count;
  TEST_OK(ft_output_open(file, arena, &output, &error));
  TEST_OK(ft_export_trials(store, options, &output, &count, &error));
  TEST_OK(ft_output_commit(&output, &error));
  TEST_OK(ft_file_read(file, 1 << 24, arena, &bytes, &error));
  return bytes.data;
}

static int64_t run_with(ft_outcome outcome, const char *text, double ratio) {
  int64_t id = begin(&s, s.candidate_id);
  ft_trial trial = trial_of(outcome, outcome == FT_OUTCOME_OK ? 1234 : 0);
  trial.error = text;
  trial.max_error_ratio = ratio;
  end_as(id, &trial);
  return id;
}

static void expect_integer(const json_t *o, const char *name, json_int_t want) {
  cr_assert_eq(json_integer_value(json_object_get(o, name)), want, "%s", name);
}

Test(daemon_export, a_line_is_one_object_with_the_words_of_the_glossary) {
  int64_t id = run_with(FT_OUTCOME_OK, "", 0.25);
  json_t *o = json_loads(exported(&(ft_export_options){0}), 0, NULL);
  cr_assert_not_null(o);
  cr_assert_str_eq(json_string_value(json_object_get(o, "format")), "fusetune-trial/1");
  expect_integer(o, "trial", id);
  expect_integer(json_object_get(o, "time"), "median_ns", 1234);
  expect_integer(json_object_get(o, "time"), "samples", 2);
  expect_integer(json_object_get(o, "schedule"), "vector", 8);
  expect_integer(json_object_get(o, "dims"), "N", 4);
  char text[FT_HASH_TEXT + 1];
  ft_hash_text(&s.workload.hash, text);
  cr_assert_str_eq(json_string_value(json_object_get(o, "workload")), text);
  cr_assert_str_eq(json_string_value(json_object_get(o, "outcome")), "ok");
  cr_assert_str_eq(json_string_value(json_object_get(o, "tactic")), "S1");
  cr_assert_str_eq(json_string_value(json_object_get(o, "measured_at")),
                   "1970-01-01T00:00:00Z");
  static const char *const unknown[] = {"source", "compiler", "error", "predicted_ns"};
  for (size_t i = 0; i < 4; i++)
    cr_assert(json_is_null(json_object_get(o, unknown[i])), "%s", unknown[i]);
  cr_assert_null(json_object_get(o, "samples"));
  json_decref(o);
}

Test(daemon_export, samples_come_in_order_with_their_flags) {
  run_with(FT_OUTCOME_OK, "", 0.25);
  json_t *o = json_loads(exported(&(ft_export_options){.samples = true}), 0, NULL);
  json_t *list = json_object_get(o, "samples");
  cr_assert_eq(json_array_size(list), 3);
  json_t *last = json_array_get(list, 2);
  cr_assert_eq(json_integer_value(json_array_get(last, 0)), 0x0102030405060708);
  cr_assert_eq(json_integer_value(json_array_get(last, 1)), FT_SAMPLE_DRIFT);
  json_decref(o);
}

Test(daemon_export, two_exports_of_one_store_are_the_same_bytes) {
  for (int i = 0; i < 20; i++) run_trial(&s, sample_candidate(&s, i), FT_OUTCOME_OK, 9);
  const char *one = exported(&(ft_export_options){.samples = true});
  const char *two = exported(&(ft_export_options){.samples = true});
  cr_assert_str_eq(one, two);
  int lines = 0;
  for (const char *p = one; (p = strchr(p, '\n')); p++) lines++;
  cr_assert_eq(lines, 20);
}

Test(daemon_export, text_that_is_not_utf8_and_an_infinite_error_are_valid_json) {
  run_with(FT_OUTCOME_WRONG_RESULT, "caf\xe9 \"x\"\n", (double)INFINITY);
  json_t *o = json_loads(exported(&(ft_export_options){0}), 0, NULL);
  cr_assert_not_null(o);
  cr_assert_str_eq(json_string_value(json_object_get(o, "error")), "caf? \"x\"\n");
  cr_assert_str_eq(json_string_value(json_object_get(o, "max_error_ratio")), "inf");
  cr_assert(json_is_string(json_object_get(o, "quarantined")));
  json_decref(o);
}

Test(daemon_export, csv_quotes_what_holds_commas_quotes_and_newlines) {
  run_with(FT_OUTCOME_CRASH, "one, \"two\"\nthree", -1);
  const char *text = exported(&(ft_export_options){.kind = FT_EXPORT_CSV});
  cr_assert(strncmp(text, "trial,run,", 10) == 0, "%s", text);
  cr_assert(strstr(text, ",\"one, \"\"two\"\"\nthree\","), "%s", text);
  cr_assert(strstr(text, ",\"{\"\"vector\"\":8}\","), "%s", text);
}

Test(daemon_export, a_full_disk_ends_the_export_with_an_error) {
  for (int i = 0; i < 200; i++) run_trial(&s, sample_candidate(&s, i), FT_OUTCOME_OK, 9);
  ft_output output;
  uint64_t count;
  TEST_OK(ft_output_open("/dev/full", arena, &output, &error));
  cr_assert_eq(ft_export_trials(store, &(ft_export_options){0}, &output, &count, &error),
               FT_IO);
  cr_assert(strstr(error.text, "No space left"), "%s", error.text);
  ft_output_abort(&output);
}

Test(daemon_export, a_stop_leaves_no_file) {
  run_with(FT_OUTCOME_OK, "", 0.25);
  volatile int stop = 1;
  ft_output output;
  uint64_t count;
  struct stat info;
  TEST_OK(ft_output_open(file, arena, &output, &error));
  cr_assert_eq(ft_export_trials(store, &(ft_export_options){.stop = &stop}, &output,
                                &count, &error),
               FT_INTERRUPTED);
  ft_output_abort(&output);
  cr_assert_neq(stat(file, &info), 0);
}
