// The exported graphs of issue-sized models, tuned and verified by the tool itself.
#include <criterion/criterion.h>
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/command.h"
#include "tests/support/data.h"

static test_command fusetune(const char *const *arguments) {
  const char *argv[16] = {FT_BINARY_DIR "/fusetune"};
  int count = 1;
  while (*arguments) argv[count++] = *arguments++;
  char store[256], cache[256];
  snprintf(store, sizeof store, "FUSETUNE_STORE=%s/store.db", test_folder());
  snprintf(cache, sizeof cache, "FUSETUNE_CACHE=%s/cache", test_folder());
  const char *environment[] = {store, cache, NULL};
  return test_command_run(argv, environment, 120, 0);
}

static const char *const tuned_models[] = {
    "gelu",
    "gelu_opset20",
    "gelu_format2_0",
    "gelu_format2_1",
    "gelu_format2_1_use_graph_input",
    "bias_gelu_fusion_format_2",
    "layer_norm_shared_input",
    "layer_norm_sub_dup",
    "layer_norm_with_cast",
};
enum { MODEL_COUNT = sizeof tuned_models / sizeof *tuned_models };

static void tune_and_verify(const char *name) {
  char relative[128], path[512];
  snprintf(relative, sizeof relative, "onnx/fusion/%s.onnx", name);
  cr_assert_eq(test_data_path(relative, path, sizeof path), 0);
  test_command c = fusetune((const char *const[]){"tune", path, "--dim", "*=4", "--time",
                                                  "20s", "--json", NULL});
  cr_assert_eq(c.exit_code, 0, "%s: %s%s", name, c.out, c.err);
  json_t *o = json_loads(c.out, 0, NULL);
  cr_assert_not_null(o, "%s", c.out);
  json_t *tuned = json_object_get(o, "tuned");
  cr_assert_gt(json_integer_value(json_object_get(tuned, "median_ns")), 0, "%s", name);
  cr_assert_leq(json_integer_value(json_object_get(o, "kernels")),
                json_integer_value(json_object_get(o, "operators")), "%s", name);
  json_decref(o);
  test_command_free(&c);
  c = fusetune(
      (const char *const[]){"run", "--verify", path, "--dim", "*=4", "--json", NULL});
  cr_assert_eq(c.exit_code, 0, "%s: %s%s", name, c.out, c.err);
  cr_assert(strstr(c.out, "\"verified\":true") && strstr(c.out, "\"tuned\":true"),
            "%s: %s", name, c.out);
  test_command_free(&c);
}

Test(cli_models, exported_gelu_and_layer_norm_graphs_tune_and_verify, .timeout = 500) {
  TEST_NEEDS_DATA();
  for (int i = 0; i < MODEL_COUNT; i++) tune_and_verify(tuned_models[i]);
}

static bool ends_with_onnx(const char *name) {
  size_t length = strlen(name);
  return length > 5 && strcmp(name + length - 5, ".onnx") == 0;
}

Test(cli_models, the_other_graphs_verify_or_are_refused_by_name, .timeout = 500) {
  TEST_NEEDS_DATA();
  char folder[512], path[1024];
  cr_assert_eq(test_data_path("onnx/fusion", folder, sizeof folder), 0);
  DIR *listing = opendir(folder);
  cr_assert_not_null(listing);
  int verified = 0, refused = 0;
  for (struct dirent *entry; (entry = readdir(listing));) {
    if (!ends_with_onnx(entry->d_name)) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    test_command c =
        fusetune((const char *const[]){"run", "--verify", path, "--dim", "*=4", NULL});
    if (c.exit_code == 0) {
      verified++;
    } else {
      refused++;
      cr_assert_eq(c.exit_code == 4 || c.exit_code == 2, 1, "%s: exit %d, %s%s",
                   entry->d_name, c.exit_code, c.out, c.err);
      cr_assert(strstr(c.err, entry->d_name) || strchr(c.err, '\''), "%s: %s",
                entry->d_name, c.err);
    }
    test_command_free(&c);
  }
  closedir(listing);
  fprintf(stderr, "%d graphs verified, %d refused by name\n", verified, refused);
  cr_assert_geq(verified, MODEL_COUNT);
}
