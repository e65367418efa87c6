// The examples for targets without a device, through the command line. Those for sm_NN
// skip without NVRTC.
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/command.h"

static const char *const examples[] = {"softmax", "softmax_decomposed",
                                       "bias_gelu_residual", "layer_norm_residual",
                                       "rms_norm"};
enum { EXAMPLES = sizeof examples / sizeof *examples };

// |run|: which store and cache.
static test_command fusetune(int run, const char *verb, const char *example,
                             const char *const *more) {
  char store[256], cache[256], model[512];
  const char *argv[16] = {FT_BINARY_DIR "/fusetune", verb, model};
  int count = 3;
  while (*more) argv[count++] = *more++;
  argv[count] = NULL;
  snprintf(store, sizeof store, "FUSETUNE_STORE=%s/store%d.db", test_folder(), run);
  snprintf(cache, sizeof cache, "FUSETUNE_CACHE=%s/cache%d", test_folder(), run);
  snprintf(model, sizeof model, FT_SOURCE_DIR "/examples/%s.onnx", example);
  const char *environment[] = {store, cache, NULL};
  return test_command_run(argv, environment, 300, 0);
}
#define WITH(...) ((const char *const[]){__VA_ARGS__, NULL})

static bool has_nvrtc(void) {
  test_command c = fusetune(0, "query", "softmax", WITH("--target", "sm_90"));
  bool has = !strstr(c.err, "needs NVRTC");
  if (!has) fprintf(stderr, "skipped: %s", c.err);
  test_command_free(&c);
  return has;
}

static test_command tune(int run, const char *example) {
  test_command c =
      fusetune(run, "tune", example,
               WITH("--target", "sm_90", "--trials", "12", "--time", "10m", "--json"));
  cr_assert_eq(c.exit_code, 0, "%s: %s%s", example, c.out, c.err);
  return c;
}

static void check_groups(const char *text, const char *example) {
  json_t *answer = json_loads(text, 0, NULL), *group;
  size_t index;
  cr_assert(answer, "%s: %s", example, text);
  cr_assert_str_eq(json_string_value(json_object_get(answer, "status")), "predicted");
  cr_assert_str_eq(json_string_value(json_object_get(answer, "match")), "exact");
  cr_assert_str_eq(json_string_value(json_object_get(answer, "target")), "sm_90");
  json_array_foreach(json_object_get(answer, "groups"), index, group) {
    json_t *resources = json_object_get(group, "resources");
    cr_assert_gt(json_integer_value(json_object_get(resources, "registers")), 0);
    cr_assert_gt(json_real_value(json_object_get(resources, "occupancy")), 0);
    cr_assert_eq(json_object_size(json_object_get(group, "time")), 0);
  }
  cr_assert_gt(index, 0, "%s", example);
  json_decref(answer);
}

Test(kernel_targets, the_small_examples_are_predicted_and_the_same_twice,
     .timeout = 600) {
  if (!has_nvrtc()) cr_skip_test("no NVRTC");
  for (int i = 0; i < EXAMPLES; i++) {
    test_command one = tune(1, examples[i]), two = tune(2, examples[i]);
    check_groups(one.out, examples[i]);
    cr_assert_str_eq(one.out, two.out, "%s", examples[i]);
    test_command query =
        fusetune(1, "query", examples[i], WITH("--target", "sm_90", "--json"));
    cr_assert_eq(query.exit_code, 0, "%s", query.err);
    check_groups(query.out, examples[i]);
    test_command_free(&one);
    test_command_free(&two);
    test_command_free(&query);
  }
}

Test(kernel_targets, people_are_told_that_it_is_a_prediction) {
  if (!has_nvrtc()) cr_skip_test("no NVRTC");
  test_command c = tune(1, "rms_norm");
  test_command_free(&c);
  static const char *const words[] = {"only a measurement tells", "registers",
                                      "occupancy", "never run", "H100 SXM"};
  c = fusetune(1, "explain", "rms_norm", WITH("--target", "sm_90"));
  cr_assert_eq(c.exit_code, 0, "%s", c.err);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    cr_assert(strstr(c.out, words[i]), "no '%s' in %s", words[i], c.out);
  cr_assert_null(strstr(c.out, "samples"), "%s", c.out);
  test_command_free(&c);
  c = fusetune(1, "run", "rms_norm", WITH("--target", "sm_90", "--verify"));
  cr_assert_eq(c.exit_code, 0, "%s%s", c.out, c.err);
  cr_assert(strstr(c.out, "in SIM") && strstr(c.out, "verified"), "%s", c.out);
  test_command_free(&c);
}

Test(kernel_targets, every_small_example_is_right_in_sim, .timeout = 600) {
  for (int i = 0; i < EXAMPLES; i++) {
    test_command c =
        fusetune(1, "run", examples[i], WITH("--target", "sim", "--verify", "--json"));
    cr_assert_eq(c.exit_code, 0, "%s: %s%s", examples[i], c.out, c.err);
    json_t *answer = json_loads(c.out, 0, NULL), *kernel;
    size_t index;
    cr_assert(json_is_true(json_object_get(answer, "verified")));
    json_array_foreach(json_object_get(answer, "kernels"), index, kernel) {
      cr_assert(json_is_null(json_object_get(kernel, "fault")));
      cr_assert_gt(json_integer_value(json_object_get(kernel, "compared")), 0);
    }
    json_decref(answer);
    test_command_free(&c);
  }
}
