// The example models run and verify with the kernels of no tuning at all.
#include <criterion/criterion.h>
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/command.h"

#define EXAMPLES FT_SOURCE_DIR "/examples"

enum { EXAMPLE_COUNT = 10, LIMIT_S = 120 };

static test_command fusetune(const char *verb, const char *option, const char *name) {
  char path[512], store[256], cache[256];
  snprintf(path, sizeof path, EXAMPLES "/%s", name);
  snprintf(store, sizeof store, "FUSETUNE_STORE=%s/store.db", test_folder());
  snprintf(cache, sizeof cache, "FUSETUNE_CACHE=%s/cache", test_folder());
  const char *argv[] = {FT_BINARY_DIR "/fusetune", verb, option, path, "--json", NULL};
  const char *environment[] = {store, cache, NULL};
  return test_command_run(argv, environment, LIMIT_S, 0);
}

static json_t *answer_of(const char *verb, const char *option, const char *name) {
  test_command c = fusetune(verb, option, name);
  cr_assert_eq(c.exit_code, 0, "%s: %d: %s%s", name, c.exit_code, c.out, c.err);
  json_t *answer = json_loads(c.out, 0, NULL);
  cr_assert_not_null(answer, "%s: %s", name, c.out);
  test_command_free(&c);
  return answer;
}

static int is_model(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  return length > 5 && strcmp(entry->d_name + length - 5, ".onnx") == 0;
}

static void run_and_verify(const char *name) {
  json_t *answer = answer_of("run", "--verify", name);
  cr_assert(json_is_true(json_object_get(answer, "verified")), "%s", name);
  cr_assert(json_is_false(json_object_get(answer, "tuned")), "%s", name);
  cr_assert_gt(json_array_size(json_object_get(answer, "kernels")), 0, "%s", name);
  json_decref(answer);
}

Test(cli_examples, each_runs_untuned_and_verifies, .timeout = 500) {
  struct dirent **entry;
  int count = scandir(EXAMPLES, &entry, is_model, alphasort);
  cr_assert_eq(count, EXAMPLE_COUNT, "%d examples in " EXAMPLES, count);
  for (int i = 0; i < count; i++) {
    run_and_verify(entry[i]->d_name);
    free(entry[i]);
  }
  free(entry);
}

// Stretched weights, masks and angles are constants after import: what is left runs each
// time, and would be measured as the layer's own work.
static void assert_left(const char *name, const char *op, bool is_left) {
  json_t *answer = answer_of("explain", "--graph", name);
  size_t i, seen = 0;
  json_t *node;
  json_array_foreach(json_object_get(answer, "nodes"), i, node) {
    if (strcmp(json_string_value(json_object_get(node, "op")), op) != 0) continue;
    seen++;
    cr_assert_eq(json_is_false(json_object_get(node, "folded")), is_left, "%s: %s '%s'",
                 name, op, json_string_value(json_object_get(node, "name")));
  }
  cr_assert_gt(seen, 0, "%s has no %s", name, op);
  json_decref(answer);
}

Test(cli_examples, what_makes_weights_masks_and_angles_folds_away) {
  static const struct {
    const char *name, *op;
    bool is_left;
  } expected[] = {
      {"bert_layer.onnx", "Tile", false},
      {"bert_layer.onnx", "Slice", false},
      {"llama_layer.onnx", "Tile", false},
      {"llama_layer.onnx", "Trilu", false},
      {"llama_layer.onnx", "Cos", false},
      {"llama_layer.onnx", "Expand", true},  // of keys and values: grouped heads
      {"mlp_residual.onnx", "Tile", false},
      {"mlp_residual.onnx", "Gemm", true},
      {"resnet_bottleneck.onnx", "Tile", false},
      {"resnet_bottleneck.onnx", "Conv", true},
      {"rms_norm.onnx", "Tile", false},
  };
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
    assert_left(expected[i].name, expected[i].op, expected[i].is_left);
}
