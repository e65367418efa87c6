// ONNX's own node tests (Debian package libonnx-testdata): each model is imported,
// interpreted on its inputs, and compared with the outputs that ONNX expects. Inputs of
// i64 (axes, shapes) are tried as inputs first, then as the constants they are in real
// models.
#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
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

static const void *read_whole(const char *path, ft_arena *arena, size_t *size) {
  FILE *in = fopen(path, "rb");
  if (!in) return NULL;
  fseek(in, 0, SEEK_END);
  *size = (size_t)ftell(in);
  rewind(in);
  void *data = ft_arena_alloc(arena, *size);
  cr_assert_eq(fread(data, 1, *size, in), *size);
  fclose(in);
  return data;
}

// The bytes of FOLDER/test_data_set_0/KIND_INDEX.pb; empty when it is absent.
static ft_span read_proto(const char *folder, const char *kind, uint32_t index,
                          ft_arena *arena) {
  ft_span out = {0};
  const char *path =
      ft_arena_printf(arena, "%s/test_data_set_0/%s_%u.pb", folder, kind, index);
  out.data = read_whole(path, arena, &out.size);
  return out;
}

static void read_tensor(const char *folder, const char *kind, uint32_t index,
                        ft_arena *arena, ft_tensor *out) {
  ft_span proto = read_proto(folder, kind, index, arena);
  ft_external_files none = ft_external_files_init(NULL, arena);
  ft_error error = {0};
  cr_assert_not_null(proto.data, "%s: no %s %u", folder, kind, index);
  cr_assert_eq(ft_onnx_load_tensor(proto, proto.data, &none, arena, out, &error), FT_OK,
               "%s: %s", folder, error.text);
}

// The i64 inputs as initializers, appended to the graph; in IR 3 those are constants.
static ft_strbuf with_constants(const char *folder, ft_span file,
                                const ft_onnx_model *model, ft_arena *arena) {
  ft_strbuf out = ft_strbuf_init(arena);
  ft_wire wire = ft_wire_open(file, file.data, "ModelProto");
  ft_wire_field field;
  while (ft_wire_next(&wire, &field, NULL) == FT_OK && field.number) {
    if (field.number == 8) pb_bytes(&out, 8, field.bytes.data, field.bytes.size);
    if (field.number != 7) continue;
    ft_strbuf graph = ft_strbuf_init(arena);
    ft_strbuf_addn(&graph, field.bytes.data, field.bytes.size);
    for (uint32_t i = 0; i < model->input_count; i++) {
      ft_onnx_type type;
      ft_strbuf tensor = ft_strbuf_init(arena);
      cr_assert_eq(ft_onnx_read_type(model->input[i].message, file.data, &type, NULL),
                   FT_OK);
      ft_span proto = read_proto(folder, "input", i, arena);
      if (type.element != ONNX_INT64 || !proto.data) continue;
      ft_strbuf_addn(&tensor, proto.data, proto.size);
      pb_bytes(&tensor, 8, model->input[i].name.data, model->input[i].name.size);
      pb_message(&graph, 5, &tensor);
    }
    pb_message(&out, 7, &graph);
  }
  pb_int(&out, 1, 3);
  return out;
}

static bool is_close(double actual, double expected) {
  if (isnan(expected)) return isnan(actual);
  if (isinf(expected)) return actual == expected;
  return fabs(actual - expected) <= ABSOLUTE + RELATIVE * fabs(expected);
}

static void compare(const char *folder, const ft_reference *actual,
                    const ft_tensor *expected) {
  cr_assert_eq(actual->dtype, expected->dtype, "%s", folder);
  cr_assert(ft_shape_equal(&actual->shape, &expected->shape), "%s", folder);
  int64_t elements = ft_shape_elements(&expected->shape);
  for (int64_t i = 0; i < elements; i++) {
    if (actual->integer) {
      int64_t want = ft_tensor_get_i64(expected, i);
      cr_assert_eq(actual->integer[i], want, "%s: element %lld is %lld, not %lld", folder,
                   (long long)i, (long long)actual->integer[i], (long long)want);
    } else {
      double want = ft_tensor_get_f64(expected, i);
      cr_assert(is_close(actual->value[i], want), "%s: element %lld is %g, not %g",
                folder, (long long)i, actual->value[i], want);
    }
  }
}

typedef struct counts {
  unsigned compared, unsupported;
} counts;

// Which of the model's inputs the graph's input is: the number of its .pb file.
static uint32_t position(const ft_onnx_model *model, const char *name) {
  for (uint32_t i = 0; i < model->input_count; i++)
    if (ft_span_is(model->input[i].name, name)) return i;
  cr_assert(false, "no input %s", name);
  return 0;
}

static ft_status import_case(const char *folder, ft_arena *arena, ft_onnx_model *model,
                             ft_graph **graph) {
  ft_import_report report;
  ft_error error = {0};
  ft_dim_binding star = {"*", 3};
  ft_import_options options = {.dim_count = 1, .dim = &star};
  ft_span file;
  file.data =
      read_whole(ft_arena_printf(arena, "%s/model.onnx", folder), arena, &file.size);
  cr_assert_not_null(file.data, "%s", folder);
  cr_assert_eq(ft_onnx_open(file, arena, model, &error), FT_OK, "%s", error.text);
  ft_status status = ft_import_onnx_bytes(file.data, file.size, NULL, &options, arena,
                                          graph, &report, &error);
  if (status == FT_UNSUPPORTED && strstr(error.text, "is not a constant")) {
    ft_strbuf bytes = with_constants(folder, file, model, arena);
    status = ft_import_onnx_bytes(bytes.text, bytes.length, NULL, &options, arena, graph,
                                  &report, &error);
  }
  cr_assert(status == FT_OK || status == FT_UNSUPPORTED, "%s: %s", folder, error.text);
  if (status != FT_OK && getenv("FT_TEST_VERBOSE"))
    fprintf(stderr, "%s: %s\n", folder, error.text);
  return status;
}

static void run_case(const char *folder, ft_arena *arena, counts *tally) {
  ft_graph *graph;
  ft_onnx_model model;
  ft_error error = {0};
  if (import_case(folder, arena, &model, &graph) != FT_OK) {
    tally->unsupported++;
    return;
  }
  ft_graph_check(graph);
  ft_tensor input[16], expected;
  ft_reference output[16];
  cr_assert(graph->input_count <= 16 && graph->output_count <= 16);
  for (uint32_t i = 0; i < graph->input_count; i++)
    read_tensor(folder, "input", position(&model, graph->input[i].name), arena,
                &input[i]);
  cr_assert_eq(ft_interpret_graph(graph, input, arena, output, &error), FT_OK, "%s: %s",
               folder, error.text);
  for (uint32_t i = 0; i < graph->output_count; i++) {
    read_tensor(folder, "output", i, arena, &expected);
    compare(folder, &output[i], &expected);
  }
  tally->compared++;
}

static counts run_all(const char *group) {
  counts tally = {0};
  char root[512];
  snprintf(root, sizeof root, DATA "/%s", group);
  DIR *dir = opendir(root);
  if (!dir) cr_skip_test("no " DATA " (Debian package libonnx-testdata)");
  for (struct dirent *entry; (entry = readdir(dir));) {
    if (strncmp(entry->d_name, "test_", 5) != 0) continue;
    ft_arena *arena = ft_arena_create(ft_allocator_system());
    run_case(ft_arena_printf(arena, "%s/%s", root, entry->d_name), arena, &tally);
    ft_arena_destroy(arena);
  }
  closedir(dir);
  fprintf(stderr, "%s: %u compared, %u unsupported\n", group, tally.compared,
          tally.unsupported);
  return tally;
}

Test(graph_operators, agree_with_the_node_tests_of_onnx) {
  cr_assert_geq(run_all("node").compared, 320u);
}

Test(graph_operators, agree_with_the_operators_that_pytorch_exported) {
  cr_assert_geq(run_all("pytorch-operator").compared, 18u);
}

Test(graph_operators, agree_with_the_modules_that_pytorch_exported) {
  cr_assert_geq(run_all("pytorch-converted").compared, 24u);
}

Test(graph_operators, agree_with_the_simple_models_of_onnx) {
  cr_assert_geq(run_all("simple").compared, 7u);
}
