// Real models (the test data): each imports, or is refused with the whole list of what is
// missing; those with an expected output reproduce it.
#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/import.h"
#include "graph/interpreter.h"
#include "graph/onnx_tensor.h"
#include "tests/support/data.h"

static ft_arena *arena;
static ft_graph *graph;
static ft_error error;
static ft_import_report report;
static void setup(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void teardown(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_models, .init = setup, .fini = teardown);

static ft_status import(const char *name, int64_t dim) {
  char path[4096];
  ft_dim_binding star = {"*", dim};
  ft_import_options options = {.dim_count = 1, .dim = &star};
  cr_assert_eq(test_data_path(name, path, sizeof path), 0);
  error = (ft_error){0};
  return ft_import_onnx(path, &options, arena, &graph, &report, &error);
}

static void must_import(const char *name, int64_t dim) {
  ft_status status = import(name, dim);
  cr_assert_eq(status, FT_OK, "%s: %s", name, error.text);
  ft_graph_check(graph);
  cr_assert_eq(report.unsupported_count, 0);
}

Test(graph_models, import_whole) {
  TEST_NEEDS_DATA();
  // |dim| is what the free dims are bound to: pools need 32, GPT-2 knows 8 positions.
  static const struct {
    const char *name;
    int64_t dim;
  } models[] = {{"bert_squad_opset11", 1},
                {"bert_toy_optimized", 8},
                {"blazeface_front_128", 1},
                {"gpt2_no_past_opset11", 4},
                {"light_bvlc_alexnet", 1},
                {"light_inception_v1", 1},
                {"light_resnet50", 1},
                {"light_shufflenet", 1},
                {"light_squeezenet", 1},
                {"mlsd_320_tiny", 1},
                {"mnist", 1},
                {"ppocrv2_cls", 64},
                {"ppocrv4_rec", 32}};
  for (size_t i = 0; i < sizeof models / sizeof *models; i++)
    must_import(ft_arena_printf(arena, "onnx/models/%s.onnx", models[i].name),
                models[i].dim);
}

static void expect_missing(const char *op, const char *reason) {
  for (uint32_t i = 0; i < report.unsupported_count; i++)
    if (strcmp(report.unsupported[i].op, op) == 0 &&
        strcmp(report.unsupported[i].reason, reason) == 0)
      return;
  cr_assert(false, "%s (%s) is not on the list: %s", op, reason, error.text);
}

Test(graph_models, refused_ones_list_all_that_is_missing) {
  TEST_NEEDS_DATA();
  cr_assert_eq(import("onnx/models/silero_vad_v5.onnx", 4), FT_UNSUPPORTED);
  expect_missing("If", "the condition is not a constant");
  expect_missing("LSTM", "unknown operator");
  cr_assert_eq(import("onnx/models/fns-candy.onnx", 1), FT_UNSUPPORTED);
  expect_missing("ImageScaler", "unknown operator");
  expect_missing("Crop", "unknown operator");
  expect_missing("ConvTranspose", "unknown operator");
  expect_missing("Affine", "unknown operator");
}

Test(graph_models, shapes_fold_away) {
  TEST_NEEDS_DATA();
  must_import("onnx/models/gpt2_no_past_opset11.onnx", 4);
  for (uint32_t i = 0; i < graph->operator_count; i++)
    if (graph->operator_[i].count) cr_assert_str_neq(graph->operator_[i].type, "Shape");
  cr_assert_lt(graph->live_operators, 600);
}

// ---- expected outputs
// -------------------------------------------------------------------

static void *read_whole(const char *path, size_t *size) {
  FILE *in = fopen(path, "rb");
  cr_assert_not_null(in, "%s", path);
  fseek(in, 0, SEEK_END);
  *size = (size_t)ftell(in);
  rewind(in);
  void *data = ft_arena_alloc(arena, *size);
  cr_assert_eq(fread(data, 1, *size, in), *size);
  fclose(in);
  return data;
}

static ft_tensor expected_output(const char *name) {
  char path[4096];
  ft_tensor tensor;
  ft_span proto;
  ft_external_files none = ft_external_files_init(NULL, arena);
  test_data_path(ft_arena_printf(arena, "onnx/models/%s_output_0.pb", name), path,
                 sizeof path);
  proto.data = read_whole(path, &proto.size);
  cr_assert_eq(ft_onnx_load_tensor(proto, proto.data, &none, arena, &tensor, &error),
               FT_OK, "%s", error.text);
  return tensor;
}

// What ONNX's runner feeds: 0, 1/n, 2/n, ... of n elements.
static ft_tensor ramp(void) {
  const ft_value *x = &graph->value[graph->input[0].value];
  int64_t elements = ft_shape_elements(&x->shape);
  float *data = FT_NEW_ARRAY(arena, float, (size_t)elements);
  for (int64_t i = 0; i < elements; i++) data[i] = (float)i / (float)elements;
  return (ft_tensor){FT_F32, x->shape, data, (size_t)elements * sizeof *data};
}

static void reproduces(const char *name) {
  must_import(ft_arena_printf(arena, "onnx/models/%s.onnx", name), 1);
  cr_assert_eq(graph->input_count, 1);
  ft_tensor input = ramp(), want = expected_output(name);
  ft_reference output;
  cr_assert_eq(ft_interpret_graph(graph, &input, arena, &output, &error), FT_OK, "%s",
               error.text);
  cr_assert(ft_shape_equal(&output.shape, &want.shape));
  for (int64_t i = 0; i < ft_shape_elements(&want.shape); i++) {
    double expected = ft_tensor_get_f64(&want, i);
    cr_assert_leq(fabs(output.value[i] - expected), 1e-7 + 1e-3 * fabs(expected),
                  "%s: element %lld is %g, not %g", name, (long long)i, output.value[i],
                  expected);
  }
}

// A quarter of a minute each where nothing is optimised, a second where it is.
#ifdef __OPTIMIZE__
#define TEST_NEEDS_SPEED() (void)0
#else
#define TEST_NEEDS_SPEED() cr_skip_test("only in optimised builds")
#endif

Test(graph_models, squeezenet_gives_its_expected_output) {
  TEST_NEEDS_DATA();
  reproduces("light_squeezenet");
}

Test(graph_models, shufflenet_gives_its_expected_output) {
  TEST_NEEDS_DATA();
  reproduces("light_shufflenet");
}

Test(graph_models, alexnet_gives_its_expected_output) {
  TEST_NEEDS_DATA();
  TEST_NEEDS_SPEED();
  reproduces("light_bvlc_alexnet");
}

Test(graph_models, inception_v1_gives_its_expected_output) {
  TEST_NEEDS_DATA();
  reproduces("light_inception_v1");
}

Test(graph_models, resnet50_gives_its_expected_output) {
  TEST_NEEDS_DATA();
  TEST_NEEDS_SPEED();
  reproduces("light_resnet50");
}
