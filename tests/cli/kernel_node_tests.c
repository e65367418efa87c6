// ONNX's own operator tests through import, codegen, compiler and worker. The data is
// Debian's libonnx-testdata; FT_ONNX_TESTS names another folder of the same form.
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/file.h"
#include "graph/onnx.h"
#include "graph/onnx_tensor.h"
#include "graph/tensor_file.h"
#include "tests/cli/batch.h"

static const char *tests_folder(const char *suite, char out[512]) {
  const char *base = getenv("FT_ONNX_TESTS");
  if (!base) base = "/usr/lib/python3/dist-packages/onnx/backend/test/data";
  snprintf(out, 512, "%s/%s", base, suite);
  struct stat st;
  if (stat(out, &st) == 0 && S_ISDIR(st.st_mode)) return out;
  const char *require = getenv("FT_REQUIRE_DATA");
  cr_assert(!require || strcmp(require, "1") != 0, "FT_REQUIRE_DATA=1 but no %s", out);
  return NULL;
}

// ---- which tests are ours ---------------------------------------------------------

static bool read_element(const ft_onnx_model *model, const ft_onnx_entry *entry,
                         int64_t *out) {
  ft_onnx_type type;
  ft_error error;
  if (ft_onnx_read_type(entry->message, model->file, &type, &error) != FT_OK)
    return false;
  *out = type.element;
  return type.is_tensor;
}

static bool is_eligible(const ft_onnx_model *model) {
  bool has_float = false;
  for (uint32_t i = 0; i < model->input_count + model->output_count; i++) {
    int64_t element;
    const ft_onnx_entry *entry = i < model->input_count
                                     ? &model->input[i]
                                     : &model->output[i - model->input_count];
    if (!read_element(model, entry, &element)) return false;
    ft_dtype dtype = ft_dtype_from_onnx(element);
    if (dtype != FT_F32 && dtype != FT_I64 && dtype != FT_I32 && dtype != FT_BOOL)
      return false;
    if (dtype == FT_F32) has_float = true;
  }
  return has_float;
}

// ---- inputs that are attributes in all but name -----------------------------------

// Bit i: input i says how to compute, not what on; it is bound to the test's value.
static const struct {
  const char *op;
  uint32_t inputs;
} parameters[] = {{"Reshape", 2},
                  {"Expand", 2},
                  {"Tile", 2},
                  {"Pad", 2 | 4 | 8},
                  {"Slice", 30},
                  {"Squeeze", 2},
                  {"Unsqueeze", 2},
                  {"Resize", 14},
                  {"Upsample", 2},
                  {"Split", 2},
                  {"ConstantOfShape", 1},
                  {"TopK", 2},
                  {"CumSum", 2},
                  {"Trilu", 2},
                  {"OneHot", 2 | 4},
                  {"Range", 7},
                  {"ReduceSum", 2},
                  {"ReduceMean", 2},
                  {"ReduceMax", 2},
                  {"ReduceMin", 2},
                  {"ReduceProd", 2},
                  {"ReduceL1", 2},
                  {"ReduceL2", 2},
                  {"ReduceLogSum", 2},
                  {"ReduceLogSumExp", 2},
                  {"ReduceSumSquare", 2},
                  {"CenterCropPad", 2},
                  {"If", 1},
                  {"Dropout", 2 | 4},
                  {"EyeLike", 0}};

static uint32_t parameters_of(const ft_onnx_node *node) {
  for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
    if (ft_span_is(node->op, parameters[i].op)) return parameters[i].inputs;
  return 0;
}

static bool is_parameter(const ft_onnx_model *model, ft_span name) {
  for (uint32_t n = 0; n < model->node_count; n++) {
    const ft_onnx_node *node = &model->node[n];
    uint32_t mask = parameters_of(node);
    for (uint32_t i = 0; i < node->input_count && i < 32; i++)
      if ((mask >> i & 1) && ft_span_equal(node->input[i], name)) return true;
  }
  return false;
}

// ---- one test -----------------------------------------------------------------------

static bool read_tensor(batch *b, const char *folder, const char *kind, uint32_t index,
                        ft_tensor *out) {
  ft_error error;
  const char *path =
      ft_arena_printf(b->arena, "%s/test_data_set_0/%s_%u.pb", folder, kind, index);
  return ft_tensor_file_read(path, b->arena, out, &error) == FT_OK;
}

// Old models list their weights as inputs too; the tests give only the others.
static bool read_initializer(batch *b, const ft_onnx_model *model, ft_span name,
                             ft_tensor *out) {
  ft_external_files none = ft_external_files_init(NULL, b->arena);
  ft_error error;
  for (uint32_t i = 0; i < model->initializer_count; i++)
    if (ft_span_equal(model->initializer[i].name, name))
      return ft_onnx_load_tensor(model->initializer[i].message, model->file, &none,
                                 b->arena, out, &error) == FT_OK;
  return false;
}

static bool is_name(const char *name, ft_span span) {
  return ft_span_is(span, name);
}

static void import_case(batch *b, batch_case *c, const ft_onnx_model *model,
                        ft_bytes file, const char *folder) {
  uint32_t count = model->input_count;
  ft_tensor *given = FT_NEW_ARRAY(b->arena, ft_tensor, count);
  ft_input_shape *shape = FT_NEW_ARRAY(b->arena, ft_input_shape, count);
  ft_input_constant *constant = FT_NEW_ARRAY(b->arena, ft_input_constant, count);
  ft_import_options options = {.input = shape, .constant = constant};
  for (uint32_t i = 0; i < count; i++) {
    if (!read_tensor(b, folder, "input", i, &given[i])) {
      if (read_initializer(b, model, model->input[i].name, &given[i])) continue;
      c->refusal = "the test has no value for an input";
      return;
    }
    const char *name = ft_span_copy(model->input[i].name, b->arena);
    if (is_parameter(model, model->input[i].name))
      constant[options.constant_count++] = (ft_input_constant){name, given[i]};
    else
      shape[options.input_count++] = (ft_input_shape){name, given[i].shape};
  }
  ft_error error;
  ft_status status = ft_import_onnx_bytes(file.data, file.size, folder, &options,
                                          b->arena, &c->graph, &c->report, &error);
  if (!batch_accept(b, c, status, &error)) return;
  c->input = FT_NEW_ARRAY(b->arena, ft_tensor, c->graph->input_count);
  c->expected = FT_NEW_ARRAY(b->arena, ft_tensor, c->graph->output_count);
  for (uint32_t k = 0; k < c->graph->input_count; k++)
    for (uint32_t i = 0; i < count; i++)
      if (is_name(c->graph->input[k].name, model->input[i].name)) c->input[k] = given[i];
  for (uint32_t k = 0; k < c->graph->output_count; k++)
    if (!read_tensor(b, folder, "output", k, &c->expected[k]))
      c->refusal = "the test has no value for an output";
}

static void add_test(batch *b, const char *suite_folder, const char *name, bool fuse) {
  const char *folder = ft_arena_printf(b->arena, "%s/%s", suite_folder, name);
  ft_bytes file;
  ft_onnx_model model;
  ft_error error;
  if (ft_file_read(ft_arena_printf(b->arena, "%s/model.onnx", folder), 1 << 28, b->arena,
                   &file, &error) != FT_OK)
    return;
  cr_assert_eq(ft_onnx_open((ft_span){file.data, file.size}, b->arena, &model, &error),
               FT_OK, "%s: %s", name, error.text);
  if (!is_eligible(&model)) return;
  batch_case *c = batch_add(b, name);
  import_case(b, c, &model, file, folder);
  if (c->refusal || c->failure) return;
  if (fuse)
    batch_plan_fused(b, c);
  else
    batch_plan(b, c);
}

static void add_suite(batch *b, const char *suite, bool fuse) {
  char folder[512];
  if (!tests_folder(suite, folder)) cr_skip_test("no ONNX test data (libonnx-testdata)");
  struct dirent **entry;
  int count = scandir(folder, &entry, NULL, alphasort);
  cr_assert_gt(count, 0, "%s", folder);
  for (int i = 0; i < count; i++) {
    if (entry[i]->d_name[0] != '.') add_test(b, folder, entry[i]->d_name, fuse);
    free(entry[i]);
  }
  free(entry);
}

static batch_score run_suites(const char *const *suite, bool fuse) {
  batch b = batch_open();
  for (; *suite; suite++) add_suite(&b, *suite, fuse);
  batch_build(&b);
  batch_run(&b);
  batch_score score = batch_report(&b, getenv("FT_LIST_REFUSED") != NULL);
  batch_close(&b);
  return score;
}

static const char *const onnx_suites[] = {"node", "simple", NULL};
static const char *const pytorch_suites[] = {"pytorch-converted", "pytorch-operator",
                                             NULL};

static void assert_score(batch_score score, uint32_t floor) {
  cr_assert_eq(score.failed, 0, "%u failed", score.failed);
  cr_assert_geq(score.passed, floor, "only %u passed", score.passed);
}

Test(cli_node_tests, operators_match_the_outputs_that_onnx_expects, .timeout = 500) {
  assert_score(run_suites(onnx_suites, false), 490);
}

Test(cli_node_tests, exported_pytorch_operators_match, .timeout = 500) {
  assert_score(run_suites(pytorch_suites, false), 105);
}

// The "expanded" tests are whole functions: what fuses is more than one operator.
Test(cli_node_tests, both_match_when_everything_fuses_that_may, .timeout = 500) {
  assert_score(run_suites(onnx_suites, true), 490);
  assert_score(run_suites(pytorch_suites, true), 105);
}
