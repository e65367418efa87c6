// import_run - a model in memory is imported, interpreted and compared with numbers. For
// suites of one static file, graph and error each.
#ifndef FT_TESTS_GRAPH_IMPORT_RUN_H
#define FT_TESTS_GRAPH_IMPORT_RUN_H

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "graph/import.h"
#include "graph/interpreter.h"
#include "tests/support/onnx_writer.h"

static ft_arena *arena;
static ft_graph *graph;
static ft_error error;
static ft_import_report report;
static ft_reference result[4];
static void setup(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void teardown(void) {
  ft_arena_destroy(arena);
}

static ft_status import(const onnx_file *file) {
  ft_strbuf bytes = onnx_end(file);
  error = (ft_error){0};
  return ft_import_onnx_bytes(bytes.text, bytes.length, NULL, NULL, arena, &graph,
                              &report, &error);
}

static inline void must_fail(const onnx_file *file, ft_status status, const char *text) {
  ft_status got = import(file);
  cr_assert_eq(got, status, "%s: %s", ft_status_text(got), error.text);
  cr_assert(strstr(error.text, text), "\"%s\" lacks \"%s\"", error.text, text);
}

// Every graph input is f32 and gets |x|.
static inline void run(const onnx_file *file, const float *x) {
  ft_tensor input[4];
  cr_assert_eq(import(file), FT_OK, "%s", error.text);
  ft_graph_check(graph);
  cr_assert_leq(graph->input_count, 4);
  for (uint32_t i = 0; i < graph->input_count; i++) {
    const ft_value *value = &graph->value[graph->input[i].value];
    size_t elements = (size_t)ft_shape_elements(&value->shape);
    input[i] = (ft_tensor){value->dtype, value->shape, x, elements * sizeof *x};
  }
  cr_assert_eq(ft_interpret_graph(graph, input, arena, result, &error), FT_OK, "%s",
               error.text);
}

static inline void expect(uint32_t output, const char *shape, const double *values) {
  const ft_reference *r = &result[output];
  cr_assert_str_eq(ft_shape_text(&r->shape, arena), shape);
  for (int64_t i = 0; i < ft_shape_elements(&r->shape); i++) {
    double got = r->integer ? (double)r->integer[i] : r->value[i], want = values[i];
    bool same = isnan(want)
                    ? isnan(got)
                    : got == want || fabs(got - want) <= 2e-6 * fmax(1, fabs(want));
    cr_assert(same, "element %lld is %.9g, not %.9g", (long long)i, got, want);
  }
}

// x (f32 |dims|), and f32 y as output; nodes and initializers are to be added.
static inline onnx_file begin(int64_t opset, const char *dims) {
  onnx_file file = onnx_begin(arena, opset);
  onnx_input(&file, "x", ONNX_FLOAT, dims);
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  return file;
}

// No input, and y of |type| as output: everything folds.
static inline onnx_file begin_constant(int64_t opset, int type) {
  onnx_file file = onnx_begin(arena, opset);
  onnx_output(&file, "y", type, NULL);
  return file;
}

static inline void add_ints(onnx_file *file, const char *name, size_t count,
                            const int64_t *values) {
  onnx_ints(file, name, ft_arena_printf(arena, "%zu", count), values, count);
}

#define INTS(file, name, ...)                                              \
  add_ints(file, name, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
           (int64_t[]){__VA_ARGS__})
#define ATTR_INTS(attributes, name, ...)                     \
  onnx_attr_ints(attributes, name, (int64_t[]){__VA_ARGS__}, \
                 sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define EXPECT(output, shape, ...) expect(output, shape, (double[]){__VA_ARGS__})
#define FLOATS(...) ((const float[]){__VA_ARGS__})

#endif
