// The exported graphs of issue-sized models, tuned and verified by the tool itself.
#include <criterion/criterion.h>
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/inputs.h"
#include "graph/tensor_file.h"
#include "tests/cli/batch.h"
#include "tests/support/data.h"
#include "tests/support/quick.h"

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
enum { MODEL_COUNT = sizeof tuned_models / sizeof *tuned_models, PASSED_GRAPHS = 80 };

static void tune_and_verify(const char *name) {
  char relative[128], path[512];
  snprintf(relative, sizeof relative, "onnx/fusion/%s.onnx", name);
  cr_assert_eq(test_data_path(relative, path, sizeof path), 0);
  test_command c = fusetune((const char *const[]){"tune", path, "--dim", "*=4", "--time",
                                                  "2s", "--json", NULL});
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

// ---- the whole folder, fused, in process
// ------------------------------------------------

static void add_graph(batch *b, const char *folder, const char *name) {
  static const ft_dim_binding star = {"*", 4};
  ft_import_options options = {.dim_count = 1, .dim = &star};
  batch_case *c = batch_add(b, name);
  ft_error error;
  ft_status status = ft_import_onnx(ft_arena_printf(b->arena, "%s/%s", folder, name),
                                    &options, b->arena, &c->graph, &c->report, &error);
  // A dim of 4 contradicts some models: they say so by name.
  if (status == FT_REFUSED) status = FT_UNSUPPORTED;
  if (!batch_accept(b, c, status, &error)) return;
  c->input = FT_NEW_ARRAY(b->arena, ft_tensor, c->graph->input_count);
  cr_assert_eq(ft_graph_random_inputs(c->graph, 1, b->arena, c->input, &error), FT_OK);
  batch_plan_fused(b, c);
}

static bool names_its_file(const batch_case *c) {
  return strstr(c->refusal, c->name) || strchr(c->refusal, '\'');
}

Test(cli_models, every_graph_runs_right_when_fused_or_is_refused_by_name,
     .timeout = 500) {
  TEST_NEEDS_DATA();
  char folder[512];
  cr_assert_eq(test_data_path("onnx/fusion", folder, sizeof folder), 0);
  batch b = batch_open();
  struct dirent **entry;
  int count = scandir(folder, &entry, NULL, alphasort);
  cr_assert_gt(count, 0);
  for (int i = 0; i < count; i++) {
    if (ends_with_onnx(entry[i]->d_name)) add_graph(&b, folder, entry[i]->d_name);
    free(entry[i]);
  }
  free(entry);
  batch_build(&b);
  batch_run(&b);
  batch_score score = batch_report(&b, getenv("FT_LIST_REFUSED") != NULL);
  for (uint32_t i = 0; i < b.count; i++)
    if (b.item[i].refusal)
      cr_assert(names_its_file(&b.item[i]), "%s: %s", b.item[i].name, b.item[i].refusal);
  cr_assert_eq(score.failed, 0, "%u failed", score.failed);
  cr_assert_geq(score.passed, PASSED_GRAPHS, "only %u passed", score.passed);
  batch_close(&b);
}

// ---- whole models
// -----------------------------------------------------------------------

static void run_and_verify(const char *name, const char *option, const char *value) {
  char relative[128], path[512];
  snprintf(relative, sizeof relative, "onnx/models/%s.onnx", name);
  cr_assert_eq(test_data_path(relative, path, sizeof path), 0);
  test_command c = fusetune(
      (const char *const[]){"run", "--verify", path, option, value, "--json", NULL});
  cr_assert_eq(c.exit_code, 0, "%s: %s%s", name, c.out, c.err);
  cr_assert(strstr(c.out, "\"verified\":true"), "%s: %s", name, c.out);
  test_command_free(&c);
}

Test(cli_models, people_s_models_run_and_verify, .timeout = 500) {
  TEST_NEEDS_DATA();
  compile_quickly();
  static const struct {
    const char *name, *option, *value;
  } models[] = {{"bert_squad_opset11", "--dim", "*=1"},
                {"bert_toy_optimized", "--dim", "*=8"},
                {"blazeface_front_128", "--dim", "*=1"},
                {"gpt2_no_past_opset11", "--dim", "*=4"},
                {"mlsd_320_tiny", "--dim", "*=1"},
                {"mnist", "--dim", "*=1"},
                {"ppocrv2_cls", "--input", "x=1x3x48x192"},
                {"ppocrv4_rec", "--input", "x=1x3x48x320"}};
  for (size_t i = 0; i < sizeof models / sizeof *models; i++)
    run_and_verify(models[i].name, models[i].option, models[i].value);
}

Test(cli_models, two_models_are_refused_with_the_full_list) {
  TEST_NEEDS_DATA();
  static const struct {
    const char *name, *said[4];
  } models[] = {{"silero_vad_v5", {"LSTM", "If_0", NULL}},
                {"fns-candy", {"Affine", "Crop", "ImageScaler", "ConvTranspose"}}};
  for (int i = 0; i < 2; i++) {
    char relative[128], path[512];
    snprintf(relative, sizeof relative, "onnx/models/%s.onnx", models[i].name);
    cr_assert_eq(test_data_path(relative, path, sizeof path), 0);
    test_command c =
        fusetune((const char *const[]){"run", "--verify", path, "--dim", "*=4", NULL});
    cr_assert_eq(c.exit_code, 4, "%s: %d", models[i].name, c.exit_code);
    for (int k = 0; k < 4 && models[i].said[k]; k++)
      cr_assert(strstr(c.err, models[i].said[k]), "%s: no %s in %s", models[i].name,
                models[i].said[k], c.err);
    test_command_free(&c);
  }
}

// ONNX's own input for its light models: 0, 1/n, 2/n, ...
static void write_ramp(const char *path, const ft_shape *shape) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_tensor tensor;
  void *data;
  ft_error error;
  int64_t n = ft_shape_elements(shape);
  cr_assert_eq(ft_tensor_alloc(FT_F32, shape, arena, &tensor, &data, &error), FT_OK);
  for (int64_t i = 0; i < n; i++)
    ft_element_set_f64(FT_F32, data, i, (double)i / (double)n);
  cr_assert_eq(ft_tensor_file_write(path, &tensor, &error), FT_OK, "%s", error.text);
  ft_arena_destroy(arena);
}

static void assert_close(const char *model, const char *actual, const char *expected) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_tensor a, e;
  ft_error error;
  cr_assert_eq(ft_tensor_file_read(actual, arena, &a, &error), FT_OK, "%s", error.text);
  cr_assert_eq(ft_tensor_file_read(expected, arena, &e, &error), FT_OK, "%s", error.text);
  cr_assert(ft_shape_equal(&a.shape, &e.shape), "%s", model);
  for (int64_t i = 0; i < ft_shape_elements(&a.shape); i++)
    cr_assert(batch_close_enough(ft_tensor_get_f64(&a, i), ft_tensor_get_f64(&e, i), 0),
              "%s: element %lld is %g, expected %g", model, (long long)i,
              ft_tensor_get_f64(&a, i), ft_tensor_get_f64(&e, i));
  ft_arena_destroy(arena);
}

static void check_light(const char *name, const char *input) {
  static const ft_shape image = {4, {1, 3, 224, 224}};
  char relative[128], path[512], expected[512];
  char ramp[300], file[400], out[300], actual[320];
  snprintf(relative, sizeof relative, "onnx/models/%s.onnx", name);
  cr_assert_eq(test_data_path(relative, path, sizeof path), 0);
  snprintf(relative, sizeof relative, "onnx/models/%s_output_0.pb", name);
  cr_assert_eq(test_data_path(relative, expected, sizeof expected), 0);
  snprintf(ramp, sizeof ramp, "%s/ramp.npy", test_folder());
  write_ramp(ramp, &image);
  snprintf(file, sizeof file, "%s=%s", input, ramp);
  snprintf(out, sizeof out, "%s/out", test_folder());
  test_command c = fusetune((const char *const[]){"run", path, "--input-file", file,
                                                  "--outputs", out, "--verify", NULL});
  cr_assert_eq(c.exit_code, 0, "%s: %s%s", name, c.out, c.err);
  test_command_free(&c);
  snprintf(actual, sizeof actual, "%s/out_00.npy", out);
  assert_close(name, actual, expected);
}

#define LIGHT(name, input)                                              \
  Test(cli_models, light_##name##_reproduces_its_outputs_through_files, \
       .timeout = 500) {                                                \
    TEST_NEEDS_DATA();                                                  \
    compile_quickly();                                                  \
    check_light("light_" #name, input);                                 \
  }
LIGHT(bvlc_alexnet, "data_0")
LIGHT(inception_v1, "data_0")
LIGHT(resnet50, "gpu_0/data_0")
LIGHT(shufflenet, "gpu_0/data_0")
LIGHT(squeezenet, "data_0")
