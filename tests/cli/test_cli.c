// Exit codes, streams and shapes of the answers. Compiles no kernels.
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "graph/tensor_file.h"
#include "tests/daemon/sessions.h"
#include "tests/support/command.h"
#include "tests/support/onnx_writer.h"

static test_command fusetune(const char *a, const char *b, const char *c, const char *d) {
  const char *argv[] = {FT_BINARY_DIR "/fusetune", a, b, c, d, NULL};
  char store[256], cache[256];
  snprintf(store, sizeof store, "FUSETUNE_STORE=%s/store.db", test_folder());
  snprintf(cache, sizeof cache, "FUSETUNE_CACHE=%s/cache", test_folder());
  const char *environment[] = {store, cache, NULL};
  return test_command_run(argv, environment, 60, 0);
}

// So that doctor need not measure them.
static void borrow_ceilings(void) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  lend_ceilings(ft_arena_printf(arena, "%s/store.db", test_folder()), 0, arena);
  ft_arena_destroy(arena);
}

static const char *model(const char *op, const char *dims) {
  static char path[256];
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  onnx_file f = onnx_begin(arena, 13);
  onnx_input(&f, "x", ONNX_FLOAT, dims);
  onnx_output(&f, "y", ONNX_FLOAT, dims);
  onnx_node(&f, op, "x", "y", NULL);
  ft_strbuf bytes = onnx_end(&f);
  snprintf(path, sizeof path, "%s/m.onnx", test_folder());
  ft_error error;
  cr_assert_eq(ft_file_write(path, bytes.text, bytes.length, &error), FT_OK);
  ft_arena_destroy(arena);
  return path;
}

Test(cli, no_verb_and_a_wrong_verb_are_usage_errors) {
  test_command c = fusetune(NULL, NULL, NULL, NULL);
  cr_assert_eq(c.exit_code, 2);
  cr_assert(strstr(c.err, "usage:"));
  test_command_free(&c);
  c = fusetune("tunee", NULL, NULL, NULL);
  cr_assert_eq(c.exit_code, 2);
  cr_assert(strstr(c.err, "no verb 'tunee'"));
  test_command_free(&c);
}

Test(cli, help_goes_to_stdout_and_names_each_option_of_the_verb) {
  static const char *const verbs[] = {"tune",  "query",  "explain", "run",
                                      "bench", "export", "repro",   "doctor"};
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
    test_command c = fusetune(verbs[i], "--help", NULL, NULL);
    cr_assert_eq(c.exit_code, 0, "%s", verbs[i]);
    cr_assert(strstr(c.out, "--json") && strstr(c.out, "--store"), "%s", verbs[i]);
    cr_assert_str_empty(c.err);
    test_command_free(&c);
  }
}

Test(cli, a_bad_option_value_names_the_option) {
  test_command c = fusetune("tune", "--time", "soon", model("Relu", "4"));
  cr_assert_eq(c.exit_code, 2);
  cr_assert(strstr(c.err, "--time"), "%s", c.err);
  test_command_free(&c);
  c = fusetune("tune", "--dim", "N", model("Relu", "4"));
  cr_assert_eq(c.exit_code, 2);
  cr_assert(strstr(c.err, "--dim"), "%s", c.err);
  test_command_free(&c);
}

Test(cli, a_constraint_that_names_nothing_is_a_usage_error_with_what_is_near) {
  test_command c = fusetune("tune", "--keep", "z", model("Relu", "4"));
  cr_assert_eq(c.exit_code, 2, "%d %s", c.exit_code, c.err);
  cr_assert(strstr(c.err, "keep: no value is called 'z'; near it: "), "%s", c.err);
  cr_assert(strstr(c.err, "'x'") && strstr(c.err, "'y'"), "%s", c.err);
  test_command_free(&c);
  c = fusetune("query", "--fuse", "n_y,n_z", model("Relu", "4"));
  cr_assert_eq(c.exit_code, 2, "%d %s", c.exit_code, c.err);
  cr_assert(strstr(c.err, "is called 'n_z'; near it: 'n_y'"), "%s", c.err);
  test_command_free(&c);
}

Test(cli, a_bad_constraint_or_gap_names_the_option) {
  static const char *const bad[][2] = {
      {"--no-fuse", "a"},       {"--fuse", ",b"},
      {"--subgraph", "a:"},     {"--keep", ""},
      {"--max-workspace", "0"}, {"--max-workspace", "1Q"},
      {"--until-gap", "0"},     {"--until-gap", "100%"},
      {"--until-gap", "x"},     {"--max-workspace", "99999999999G"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    test_command c = fusetune("tune", bad[i][0], bad[i][1], model("Relu", "4"));
    cr_assert_eq(c.exit_code, 2, "%s %s: %d", bad[i][0], bad[i][1], c.exit_code);
    cr_assert(strstr(c.err, bad[i][0]), "%s", c.err);
    test_command_free(&c);
  }
}

Test(cli, from_an_empty_store_there_is_no_plan) {
  test_command c = fusetune("tune", "--from-store", model("Relu", "4"), NULL);
  cr_assert_eq(c.exit_code, 3, "%d %s", c.exit_code, c.err);
  cr_assert(strstr(c.err, "has times for 0 of the 1 groups"), "%s", c.err);
  test_command_free(&c);
}

Test(cli, a_missing_file_and_a_missing_plan_are_not_found) {
  test_command c = fusetune("query", "/nonexistent/m.onnx", NULL, NULL);
  cr_assert_eq(c.exit_code, 3, "%d %s", c.exit_code, c.err);
  cr_assert(strstr(c.err, "/nonexistent/m.onnx"));
  test_command_free(&c);
  c = fusetune("query", model("Relu", "4"), NULL, NULL);
  cr_assert_eq(c.exit_code, 3, "%s", c.err);
  test_command_free(&c);
  c = fusetune("bench", model("Relu", "4"), NULL, NULL);
  cr_assert_eq(c.exit_code, 3, "%s", c.err);
  cr_assert(strstr(c.err, "hint: fusetune tune"), "%s", c.err);
  test_command_free(&c);
}

Test(cli, an_unsupported_operator_is_refused_with_the_list_as_json) {
  test_command c = fusetune("tune", "--json", model("NonMaxSuppression", "4"), NULL);
  cr_assert_eq(c.exit_code, 4, "%s", c.err);
  json_t *o = json_loads(c.out, 0, NULL);
  cr_assert_not_null(o, "%s", c.out);
  json_t *error = json_object_get(o, "error");
  json_t *list = json_object_get(error, "unsupported");
  cr_assert_eq(json_array_size(list), 1);
  json_t *first = json_array_get(list, 0);
  cr_assert_str_eq(json_string_value(json_object_get(first, "op")), "NonMaxSuppression");
  cr_assert_str_eq(json_string_value(json_object_get(first, "node")), "n_y");
  cr_assert_eq(json_integer_value(json_object_get(first, "opset")), 13);
  json_decref(o);
  test_command_free(&c);
}

Test(cli, unbound_dims_are_listed_by_name) {
  test_command c = fusetune("tune", model("Relu", "batch,seq,8"), NULL, NULL);
  cr_assert_eq(c.exit_code, 2, "%d %s", c.exit_code, c.err);
  cr_assert(strstr(c.err, "batch") && strstr(c.err, "seq") && strstr(c.err, "--dim"),
            "%s", c.err);
  test_command_free(&c);
}

Test(cli, version_prints_every_field_of_the_key) {
  static const char *const fields[] = {"fusetune ", "codegen ",  "abi ",   "device ",
                                       "isa ",      "threads ",  "cache ", "compiler ",
                                       "driver ",   "numerics ", "power ", "signature "};
  test_command c = fusetune("--version", NULL, NULL, NULL);
  cr_assert_eq(c.exit_code, 0, "%s", c.err);
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    cr_assert(strstr(c.out, fields[i]), "no '%s' in:\n%s", fields[i], c.out);
  test_command_free(&c);
}

Test(cli, a_file_that_is_not_onnx_is_refused_by_name) {
  test_command c = fusetune("tune", "/bin/sh", NULL, NULL);
  cr_assert_eq(c.exit_code, 4, "%d %s", c.exit_code, c.err);
  cr_assert(strstr(c.err, "/bin/sh"), "%s", c.err);
  test_command_free(&c);
}

// ---- run and explain, where no kernel is needed
// -----------------------------------------

Test(cli, an_input_file_of_another_dtype_or_name_is_refused_by_name) {
  char file[300], option[320];
  snprintf(file, sizeof file, "%s/x.npy", test_folder());
  int64_t data[4] = {1, 2, 3, 4};
  ft_tensor tensor = {FT_I64, {1, {4}}, data, sizeof data};
  ft_error error;
  cr_assert_eq(ft_tensor_file_write(file, &tensor, &error), FT_OK, "%s", error.text);
  snprintf(option, sizeof option, "x=%s", file);
  test_command c = fusetune("run", model("Relu", "4"), "--input-file", option);
  cr_assert_eq(c.exit_code, 2, "%d %s", c.exit_code, c.err);
  cr_assert(strstr(c.err, "'x' is f32 4, the file has i64 4"), "%s", c.err);
  test_command_free(&c);
  snprintf(option, sizeof option, "z=%s", file);
  c = fusetune("run", model("Relu", "4"), "--input-file", option);
  cr_assert_eq(c.exit_code, 2, "%d %s", c.exit_code, c.err);
  cr_assert(strstr(c.err, "no graph input 'z'"), "%s", c.err);
  test_command_free(&c);
  c = fusetune("run", model("Relu", "4"), "--input-file", "x=/nonexistent.npy");
  cr_assert_eq(c.exit_code, 3, "%d %s", c.exit_code, c.err);
  test_command_free(&c);
}

Test(cli, a_bad_input_range_names_the_option) {
  static const char *const ranges[] = {"x", "x=1", "x=2:1", "x=1:1", "x=a:b", "=1:2"};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    test_command c = fusetune("run", model("Relu", "4"), "--input-range", ranges[i]);
    cr_assert_eq(c.exit_code, 2, "%s: %d", ranges[i], c.exit_code);
    cr_assert(strstr(c.err, "--input-range"), "%s", c.err);
    test_command_free(&c);
  }
}

Test(cli, explain_graph_lists_operators_classes_bytes_and_flops) {
  test_command c = fusetune("explain", "--graph", "--json", model("Softmax", "8,16"));
  cr_assert_eq(c.exit_code, 0, "%s", c.err);
  json_t *o = json_loads(c.out, 0, NULL);
  cr_assert_not_null(o, "%s", c.out);
  cr_assert_eq(json_integer_value(json_object_get(o, "operators")), 1);
  json_t *node = json_array_get(json_object_get(o, "nodes"), 0);
  cr_assert_str_eq(json_string_value(json_object_get(node, "op")), "Softmax");
  cr_assert(json_is_false(json_object_get(node, "folded")));
  json_t *primitives = json_object_get(node, "primitives");
  cr_assert_eq(json_array_size(primitives),
               (size_t)json_integer_value(json_object_get(o, "primitives")));
  json_t *first = json_array_get(primitives, 0);
  cr_assert_str_eq(json_string_value(json_object_get(first, "op")), "reduce_max");
  cr_assert_str_eq(json_string_value(json_object_get(first, "class")), "reduction");
  cr_assert_eq(json_integer_value(json_object_get(first, "read_bytes")), 8 * 16 * 4);
  cr_assert_eq(json_integer_value(json_object_get(first, "write_bytes")), 8 * 4);
  cr_assert_eq(json_real_value(json_object_get(first, "flops")), 8.0 * 16.0);
  json_decref(o);
  test_command_free(&c);
}

Test(cli, a_json_graph_is_a_model_by_its_first_byte) {
  char path[300];
  snprintf(path, sizeof path, "%s/graph", test_folder());
  const char *text =
      "  {\"format\":\"fusetune-graph/1\",\"opset\":17,\"inputs\":[{\"name\":\"x\","
      "\"dtype\":\"f32\",\"shape\":[4]}],\"outputs\":[\"y\"],\"nodes\":[{\"op\":\"Relu\","
      "\"inputs\":[\"x\"],\"outputs\":[\"y\"]}]}";
  ft_error error;
  cr_assert_eq(ft_file_write(path, text, strlen(text), &error), FT_OK);
  test_command c = fusetune("explain", "--graph", path, NULL);
  cr_assert_eq(c.exit_code, 0, "%s", c.err);
  cr_assert(strstr(c.out, "1 operators of 1") && strstr(c.out, "relu"), "%s", c.out);
  test_command_free(&c);
}

Test(cli, an_unknown_relaxation_is_a_usage_error) {
  test_command c =
      fusetune("query", FT_SOURCE_DIR "/examples/chain.onnx", "--allow", "tf32,tf16");
  cr_expect_eq(c.exit_code, 2);
  cr_expect(strstr(c.err, "atomics, fp16-acc and tf32, not 'tf16'"), "%s", c.err);
  test_command_free(&c);
}

Test(cli, doctor_says_when_there_are_no_libraries_and_is_content, .timeout = 120) {
  setenv("FUSETUNE_LIBRARIES", "none", 1);
  borrow_ceilings();
  test_command c = fusetune("doctor", NULL, NULL, NULL);
  cr_expect_eq(c.exit_code, 0, "%s", c.err);
  cr_expect(strstr(c.out, "none: FUSETUNE_LIBRARIES is none; the tactic onednn"), "%s",
            c.out);
  test_command_free(&c);
  unsetenv("FUSETUNE_LIBRARIES");
}

// The rows of `doctor --json`, and when the first was measured.
static size_t ceilings_of(const char *option, json_int_t *out_at) {
  test_command c = fusetune("doctor", "--json", option, NULL);
  cr_assert_eq(c.exit_code, 0, "%s%s", c.out, c.err);
  json_t *o = json_loads(c.out, 0, NULL), *row;
  json_t *list = json_object_get(o, "ceilings");
  size_t i, count = json_array_size(list);
  json_array_foreach(list, i, row) {
    cr_expect(json_is_string(json_object_get(row, "kind")), "%s", c.out);
    cr_expect(json_is_string(json_object_get(row, "unit")), "%s", c.out);
    cr_expect_gt(json_real_value(json_object_get(row, "best")), 0, "%s", c.out);
    cr_expect_gt(json_integer_value(json_object_get(row, "samples")), 0, "%s", c.out);
    if (i == 0) *out_at = json_integer_value(json_object_get(row, "measured_at"));
  }
  json_decref(o);
  test_command_free(&c);
  return count;
}

Test(cli, doctor_shows_stored_ceilings_and_measures_anew_when_asked, .timeout = 240) {
#ifndef __OPTIMIZE__
  cr_skip_test("only in optimised builds");
#endif
  json_int_t first = 0, second = 0, third = 0;
  size_t count = ceilings_of("--recalibrate", &first);
  cr_assert_gt(count, 10);
  cr_assert_eq(ceilings_of(NULL, &second), count);
  cr_expect_geq(second, first);
  cr_assert_eq(ceilings_of("--recalibrate", &third), count);
  cr_expect_gt(third, second);
}

Test(cli, doctor_says_the_copy_rate_as_a_number, .timeout = 120) {
  borrow_ceilings();
  test_command c = fusetune("doctor", "--json", "--bytes", "1000000");
  cr_assert_eq(c.exit_code, 0, "%s%s", c.out, c.err);
  json_t *o = json_loads(c.out, 0, NULL), *finding;
  size_t i, seen = 0;
  json_array_foreach(json_object_get(o, "findings"), i, finding) {
    json_t *rate = json_object_get(finding, "copy_bytes_per_s");
    bool is_worker =
        strcmp(json_string_value(json_object_get(finding, "name")), "worker") == 0;
    cr_assert_eq(rate != NULL, is_worker, "%s", c.out);
    if (is_worker) cr_assert_gt(json_real_value(rate), 0, "%s", c.out);
    static const char *const kinds[] = {"copy_ordinary", "copy_streamed"};
    for (int k = 0; k < 2 && is_worker; k++) {
      json_t *both = json_object_get(finding, kinds[k]);
      double median = json_real_value(json_object_get(both, "median"));
      cr_assert_gt(median, 0, "%s", c.out);
      cr_assert_leq(median, json_real_value(rate), "%s", c.out);
    }
    seen += is_worker;
  }
  cr_assert_eq(seen, 1, "%s", c.out);
  json_decref(o);
  test_command_free(&c);
}

// ---- export, of a store without trials

Test(cli, export_writes_whole_files_and_says_what_it_cannot_write) {
  char file[300];
  snprintf(file, sizeof file, "%s/x.csv", test_folder());
  test_command c = fusetune("export", "--format=csv", "--output", file);
  cr_assert_eq(c.exit_code, 0, "%s", c.err);
  cr_assert_str_empty(c.out);
  test_command_free(&c);
  FILE *csv = fopen(file, "r");
  char line[16] = "";
  cr_assert(csv && fgets(line, sizeof line, csv));
  cr_assert_str_eq(line, "trial,run,attem");
  fclose(csv);
  c = fusetune("export", "--format=csv", "--output", "/dev/full");
  cr_assert_eq(c.exit_code, 1, "%s", c.err);
  cr_assert(strstr(c.err, "/dev/full: No space left"), "%s", c.err);
  test_command_free(&c);
}

Test(cli, export_refuses_a_bad_format_a_bad_date_and_an_unknown_model) {
  test_command c = fusetune("export", "--format", "xml", NULL);
  cr_assert_eq(c.exit_code, 2);
  cr_assert(strstr(c.err, "--format"), "%s", c.err);
  test_command_free(&c);
  c = fusetune("export", "--since", "soon", NULL);
  cr_assert_eq(c.exit_code, 2);
  cr_assert(strstr(c.err, "--since"), "%s", c.err);
  test_command_free(&c);
  c = fusetune("export", "--model", model("Relu", "4"), NULL);
  cr_assert_eq(c.exit_code, 3, "%d %s", c.exit_code, c.err);
  test_command_free(&c);
}

Test(cli, repro_of_no_trial_is_not_found_and_of_no_name_is_usage) {
  test_command c = fusetune("repro", "4711", NULL, NULL);
  cr_assert_eq(c.exit_code, 3, "%d %s", c.exit_code, c.err);
  cr_assert(strstr(c.err, "no trial 4711") && strstr(c.err, "hint: fusetune explain"),
            "%s", c.err);
  test_command_free(&c);
  c = fusetune("repro", "best", NULL, NULL);
  cr_assert_eq(c.exit_code, 2, "%d %s", c.exit_code, c.err);
  cr_assert(strstr(c.err, "'best' is no trial"), "%s", c.err);
  test_command_free(&c);
  c = fusetune("repro", NULL, NULL, NULL);
  cr_assert_eq(c.exit_code, 2, "%d %s", c.exit_code, c.err);
  cr_assert(strstr(c.err, "takes one TRIAL"), "%s", c.err);
  test_command_free(&c);
}

// A pipe whose reader is gone (it is, after a second): a reason, not a death by signal.
Test(cli, export_into_a_closed_pipe_fails_and_says_so) {
  char command[700];
  snprintf(command, sizeof command,
           "{ sleep 1; FUSETUNE_STORE=%s/store.db " FT_BINARY_DIR
           "/fusetune export --format=csv; echo code $? >&2; } | true",
           test_folder());
  const char *argv[] = {"sh", "-c", command, NULL};
  test_command c = test_command_run(argv, NULL, 60, 0);
  cr_assert(strstr(c.err, "code 1"), "%s", c.err);
  cr_assert(strstr(c.err, "Broken pipe"), "%s", c.err);
  test_command_free(&c);
}

Test(cli, an_unknown_target_is_a_usage_error_that_lists_the_targets) {
  test_command c = fusetune("tune", "--target=sm_91", model("Relu", "4"), NULL);
  cr_assert_eq(c.exit_code, 2);
  cr_assert(strstr(c.err, "no target 'sm_91'") && strstr(c.err, "cpu sim sm_80"), "%s",
            c.err);
  test_command_free(&c);
}

Test(cli, without_nvrtc_an_architecture_is_refused_and_all_else_works) {
  setenv("FUSETUNE_NVRTC", "none", 1);
  test_command c = fusetune("query", "--target=sm_90", model("Relu", "4"), NULL);
  cr_assert_eq(c.exit_code, 1);
  cr_assert(strstr(c.err, "install NVRTC") && strstr(c.err, "works without it"), "%s",
            c.err);
  test_command_free(&c);
  c = fusetune("query", "--target=cpu", model("Relu", "4"), NULL);
  cr_assert_eq(c.exit_code, 3);  // no plan, as without --target
  test_command_free(&c);
}

Test(cli, what_sim_cannot_do_is_a_usage_error) {
  test_command c = fusetune("run", "--target=sim", model("Relu", "4"), NULL);
  cr_assert_eq(c.exit_code, 2);
  cr_assert(strstr(c.err, "needs --verify"), "%s", c.err);
  test_command_free(&c);
  c = fusetune("tune", "--target=sim", model("Relu", "4"), NULL);
  cr_assert_eq(c.exit_code, 2);
  cr_assert(strstr(c.err, "never timed"), "%s", c.err);
  test_command_free(&c);
  c = fusetune("export", "--target=sim", NULL, NULL);
  cr_assert_eq(c.exit_code, 2);
  cr_assert(strstr(c.err, "--target is for --plan"), "%s", c.err);
  test_command_free(&c);
}
