// ONNX's own tests (Debian package libonnx-testdata): each model is imported, interpreted
// on its inputs, and compared with the outputs that ONNX expects. Operands that decide a
// shape (axes, pads, scales, ...) are constants in real models and graph inputs in these:
// they are bound to the test's values at import.
//
// FT_ONNX_TESTS=FOLDER takes another release's (.../onnx/backend/test/data of the Python
// package, up to 1.22).
//
// A case passes, is refused (the reasons are printed), or fails; none may fail.
#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "graph/import.h"
#include "graph/interpreter.h"
#include "graph/onnx.h"
#include "graph/onnx_tensor.h"
#include "tests/support/onnx_writer.h"

#define DATA "/usr/share/libonnx-testdata/data"

// The tolerances of ONNX's own runner.
static const double RELATIVE = 1e-3, ABSOLUTE = 1e-7;

enum { MAX_VALUES = 16, MAX_REASONS = 400 };

typedef struct reason {
  char text[160];
  unsigned count;
} reason;

typedef struct tally {
  unsigned passed, refused, failed;
  unsigned scope, scope_passed;  // all in f32, i64, i32, bool, with an f32 among them
  reason reasons[MAX_REASONS];
  unsigned reason_count;
} tally;

typedef struct test_case {
  const char *folder;
  ft_arena *arena;
  ft_onnx_model model;
  ft_graph *graph;
  char failure[256];  // empty: none
} test_case;

static bool fail(test_case *c, const char *format, ...) {
  va_list args;
  if (c->failure[0]) return false;
  va_start(args, format);
  vsnprintf(c->failure, sizeof c->failure, format, args);
  va_end(args);
  return false;
}

// ---- files ----------------------------------------------------------------------------

static ft_span read_whole(const char *path, ft_arena *arena) {
  ft_span out = {0};
  FILE *in = fopen(path, "rb");
  if (!in) return out;
  fseek(in, 0, SEEK_END);
  out.size = (size_t)ftell(in);
  rewind(in);
  void *data = ft_arena_alloc(arena, out.size);
  cr_assert_eq(fread(data, 1, out.size, in), out.size);
  fclose(in);
  out.data = data;
  return out;
}

// FOLDER/test_data_set_0/KIND_INDEX.pb; false when it is absent or no tensor of ours.
static bool read_tensor(const test_case *c, const char *kind, uint32_t index,
                        ft_tensor *out) {
  ft_span proto = read_whole(
      ft_arena_printf(c->arena, "%s/test_data_set_0/%s_%u.pb", c->folder, kind, index),
      c->arena);
  ft_external_files none = ft_external_files_init(NULL, c->arena);
  return proto.data &&
         ft_onnx_load_tensor(proto, proto.data, &none, c->arena, out, NULL) == FT_OK;
}

// ---- constants ------------------------------------------------------------------------

// Operands that decide a shape, or which code runs: |inputs| has a bit for each.
static const struct {
  const char *op;
  unsigned inputs;
} constant_operands[] = {
    {"ConstantOfShape", 1},
    {"CumSum", 2},
    {"Dropout", 6},
    {"Expand", 2},
    {"If", 1},
    {"OneHot", 2},
    {"Pad", 10},
    {"Range", 7},
    {"Reshape", 2},
    {"Resize", 14},
    {"Slice", 30},
    {"Split", 2},
    {"Squeeze", 2},
    {"Tile", 2},
    {"Trilu", 2},
    {"Unsqueeze", 2},
    {"Upsample", 2},
};

static unsigned constant_inputs(const ft_onnx_node *node) {
  if (node->op.size > 6 && memcmp(node->op.data, "Reduce", 6) == 0) return 2;
  for (size_t i = 0; i < sizeof constant_operands / sizeof *constant_operands; i++)
    if (ft_span_is(node->op, constant_operands[i].op)) return constant_operands[i].inputs;
  return 0;
}

static bool is_constant_operand(const ft_onnx_model *model, ft_span name) {
  for (uint32_t i = 0; i < model->node_count; i++) {
    const ft_onnx_node *node = &model->node[i];
    for (uint32_t k = 0; k < node->input_count; k++)
      if (ft_span_equal(node->input[k], name) && constant_inputs(node) >> k & 1)
        return true;
  }
  return false;
}

static uint32_t bind_constants(const test_case *c, ft_input_constant *out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < c->model.input_count && count < MAX_VALUES; i++) {
    ft_span name = c->model.input[i].name;
    if (!is_constant_operand(&c->model, name)) continue;
    out[count].name = ft_span_copy(name, c->arena);
    if (read_tensor(c, "input", i, &out[count].tensor)) count++;
  }
  return count;
}

// ---- one case -------------------------------------------------------------------------

static bool is_close(double actual, double expected) {
  if (isnan(expected)) return isnan(actual);
  if (isinf(expected)) return actual == expected;
  return fabs(actual - expected) <= ABSOLUTE + RELATIVE * fabs(expected);
}

static bool compare(test_case *c, const ft_reference *actual, const ft_tensor *expected) {
  if (actual->dtype != expected->dtype ||
      !ft_shape_equal(&actual->shape, &expected->shape))
    return fail(c, "is %s %s, not %s %s", ft_dtype_text(actual->dtype),
                ft_shape_text(&actual->shape, c->arena), ft_dtype_text(expected->dtype),
                ft_shape_text(&expected->shape, c->arena));
  int64_t elements = ft_shape_elements(&expected->shape);
  for (int64_t i = 0; i < elements; i++) {
    double want = ft_tensor_get_f64(expected, i);
    double got = actual->integer ? (double)actual->integer[i] : actual->value[i];
    bool same = actual->integer ? actual->integer[i] == ft_tensor_get_i64(expected, i)
                                : is_close(got, want);
    if (!same) return fail(c, "element %lld is %g, not %g", (long long)i, got, want);
  }
  return true;
}

// Which of the model's inputs |name| is: the number of its .pb file.
static uint32_t position(const ft_onnx_model *model, const char *name) {
  for (uint32_t i = 0; i < model->input_count; i++)
    if (ft_span_is(model->input[i].name, name)) return i;
  cr_assert(false, "no input %s", name);
  return 0;
}

static bool interpret(test_case *c) {
  ft_tensor input[MAX_VALUES], expected;
  ft_reference output[MAX_VALUES];
  ft_error error = {0};
  cr_assert(c->graph->input_count <= MAX_VALUES && c->graph->output_count <= MAX_VALUES);
  for (uint32_t i = 0; i < c->graph->input_count; i++)
    if (!read_tensor(c, "input", position(&c->model, c->graph->input[i].name), &input[i]))
      return fail(c, "input %u cannot be read", i);
  if (ft_interpret_graph(c->graph, input, c->arena, output, &error) != FT_OK)
    return fail(c, "%s", error.text);
  for (uint32_t i = 0; i < c->graph->output_count; i++) {
    if (!read_tensor(c, "output", i, &expected))
      return fail(c, "output %u cannot be read", i);
    if (!compare(c, &output[i], &expected)) return false;
  }
  return true;
}

static bool is_plain(const test_case *c, const ft_onnx_entry *entry, bool *has_float) {
  ft_onnx_type type;
  cr_assert_eq(ft_onnx_read_type(entry->message, c->model.file, &type, NULL), FT_OK);
  if (type.element == ONNX_FLOAT) *has_float = true;
  return type.is_tensor && (type.element == ONNX_FLOAT || type.element == ONNX_INT64 ||
                            type.element == ONNX_INT32 || type.element == ONNX_BOOL);
}

static bool is_in_scope(const test_case *c) {
  bool has_float = false, fits = true;
  for (uint32_t i = 0; i < c->model.input_count; i++)
    fits = is_plain(c, &c->model.input[i], &has_float) && fits;
  for (uint32_t i = 0; i < c->model.output_count; i++)
    fits = is_plain(c, &c->model.output[i], &has_float) && fits;
  return fits && has_float;
}

static void add_reason(tally *t, const ft_import_report *report, const char *otherwise) {
  char text[sizeof t->reasons[0].text];
  const ft_unsupported *first = report->unsupported;
  if (report->unsupported_count)
    snprintf(text, sizeof text, "%s: %s", first->op, first->reason);
  else
    snprintf(text, sizeof text, "%s", otherwise);
  unsigned i = 0;
  while (i < t->reason_count && strcmp(t->reasons[i].text, text) != 0) i++;
  if (i == MAX_REASONS) return;
  if (i == t->reason_count) strcpy(t->reasons[t->reason_count++].text, text);
  t->reasons[i].count++;
}

static void run_case(const char *folder, ft_arena *arena, tally *t) {
  test_case c = {.folder = folder, .arena = arena};
  ft_input_constant constants[MAX_VALUES];
  ft_import_report report;
  ft_error error = {0};
  ft_dim_binding star = {"*", 3};
  ft_span file = read_whole(ft_arena_printf(arena, "%s/model.onnx", folder), arena);
  if (!file.data) return;  // "real": a URL, no model
  cr_assert_eq(ft_onnx_open(file, arena, &c.model, &error), FT_OK, "%s", error.text);
  bool in_scope = is_in_scope(&c);
  t->scope += in_scope;
  ft_import_options options = {.dim_count = 1, .dim = &star, .constant = constants};
  options.constant_count = bind_constants(&c, constants);
  ft_status status = ft_import_onnx_bytes(file.data, file.size, NULL, &options, arena,
                                          &c.graph, &report, &error);
  if (status == FT_UNSUPPORTED) {
    t->refused++;
    add_reason(t, &report, error.text);
    if (getenv("FT_TEST_VERBOSE")) fprintf(stderr, "%s: %s\n", folder, error.text);
    return;
  }
  if (status == FT_OK) {
    ft_graph_check(c.graph);
    interpret(&c);
  } else {
    fail(&c, "%s", error.text);
  }
  if (c.failure[0]) {
    t->failed++;
    fprintf(stderr, "FAILED %s: %s\n", folder, c.failure);
    return;
  }
  t->passed++;
  t->scope_passed += in_scope;
}

// ---- all of them
// ------------------------------------------------------------------------

static int by_count(const void *left, const void *right) {
  const reason *a = left, *b = right;
  return (a->count < b->count) - (a->count > b->count);
}

static tally run_all(const char *group) {
  tally t = {0};
  char root[512];
  const char *other = getenv("FT_ONNX_TESTS");
  snprintf(root, sizeof root, "%s/%s", other ? other : DATA, group);
  DIR *dir = opendir(root);
  if (!dir) cr_skip_test("no %s (Debian package libonnx-testdata)", root);
  for (struct dirent *entry; (entry = readdir(dir));) {
    if (strncmp(entry->d_name, "test_", 5) != 0) continue;
    ft_arena *arena = ft_arena_create(ft_allocator_system());
    run_case(ft_arena_printf(arena, "%s/%s", root, entry->d_name), arena, &t);
    ft_arena_destroy(arena);
  }
  closedir(dir);
  qsort(t.reasons, t.reason_count, sizeof *t.reasons, by_count);
  fprintf(stderr, "%s: %u passed, %u refused, %u failed; of %u in scope %u passed\n",
          group, t.passed, t.refused, t.failed, t.scope, t.scope_passed);
  for (unsigned i = 0; i < t.reason_count; i++)
    fprintf(stderr, "  refused %u: %s\n", t.reasons[i].count, t.reasons[i].text);
  return t;
}

Test(graph_operators, agree_with_the_node_tests_of_onnx) {
  tally t = run_all("node");
  cr_assert_eq(t.failed, 0);
  cr_assert_geq(t.scope_passed, 490u);
}

Test(graph_operators, agree_with_the_operators_that_pytorch_exported) {
  tally t = run_all("pytorch-operator");
  cr_assert_eq(t.failed, 0);
  cr_assert_geq(t.passed, 29u);
}

Test(graph_operators, agree_with_the_modules_that_pytorch_exported) {
  tally t = run_all("pytorch-converted");
  cr_assert_eq(t.failed, 0);
  cr_assert_geq(t.passed, 80u);
}

Test(graph_operators, agree_with_the_simple_models_of_onnx) {
  tally t = run_all("simple");
  cr_assert_eq(t.failed, 0);
  cr_assert_geq(t.passed, 7u);
}
