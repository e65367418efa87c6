// Operators against numbers: what ONNX's own node tests (test_operators.c) leave out,
// and the traps that other importers fell into.
#include "graph/lower.h"

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
TestSuite(graph_lower, .init = setup, .fini = teardown);

static ft_status import(const onnx_file *file) {
  ft_strbuf bytes = onnx_end(file);
  error = (ft_error){0};
  return ft_import_onnx_bytes(bytes.text, bytes.length, NULL, NULL, arena, &graph,
                              &report, &error);
}

static void must_fail(const onnx_file *file, ft_status status, const char *text) {
  ft_status got = import(file);
  cr_assert_eq(got, status, "%s: %s", ft_status_text(got), error.text);
  cr_assert(strstr(error.text, text), "\"%s\" lacks \"%s\"", error.text, text);
}

// Imports, and interprets on one f32 input (or none).
static void run(const onnx_file *file, const float *x) {
  ft_status status = import(file);
  cr_assert_eq(status, FT_OK, "%s", error.text);
  ft_graph_check(graph);
  ft_tensor input = {.dtype = FT_F32};
  if (graph->input_count) {
    input.shape = graph->value[graph->input[0].value].shape;
    input.data = x;
    input.bytes = (size_t)ft_shape_elements(&input.shape) * sizeof *x;
  }
  cr_assert_eq(ft_interpret_graph(graph, &input, arena, result, &error), FT_OK, "%s",
               error.text);
}

static void expect(uint32_t output, const char *shape, const double *values) {
  const ft_reference *r = &result[output];
  cr_assert_str_eq(ft_shape_text(&r->shape, arena), shape);
  for (int64_t i = 0; i < ft_shape_elements(&r->shape); i++) {
    double got = r->integer ? (double)r->integer[i] : r->value[i];
    bool same = isnan(values[i])
                    ? isnan(got)
                    : got == values[i] ||
                          fabs(got - values[i]) <= 2e-6 * fmax(1, fabs(values[i]));
    cr_assert(same, "element %lld is %.9g, not %.9g", (long long)i, got, values[i]);
  }
}

// x (f32 |dims|) -> op -> y at |opset|.
static onnx_file unary(const char *op, int64_t opset, const char *dims,
                       const ft_strbuf *attributes) {
  onnx_file file = onnx_begin(arena, opset);
  onnx_input(&file, "x", ONNX_FLOAT, dims);
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_node(&file, op, "x", "y", attributes);
  return file;
}

static ft_strbuf no_attributes(void) {
  return ft_strbuf_init(arena);
}

// ---- activations --------------------------------------------------------------------

static const float five[] = {-3, -0.5f, 0, 0.5f, 3};

Test(graph_lower, computes_gelu_exactly_and_by_tanh) {
  double exact[5], approximate[5];
  for (int i = 0; i < 5; i++) {
    double x = (double)five[i];
    exact[i] = x * 0.5 * (1 + erf(x / sqrt(2)));
    approximate[i] = x * 0.5 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  onnx_file file = unary("Gelu", 20, "5", NULL);
  run(&file, five);
  expect(0, "5", exact);
  cr_assert_eq(graph->live_operators, 1);
  ft_strbuf attributes = no_attributes();
  onnx_attr_text(&attributes, "approximate", "tanh");
  file = unary("Gelu", 20, "5", &attributes);
  run(&file, five);
  expect(0, "5", approximate);
  attributes = no_attributes();
  onnx_attr_text(&attributes, "approximate", "sigmoid");
  file = unary("Gelu", 20, "5", &attributes);
  must_fail(&file, FT_REFUSED, "approximate is 'sigmoid'");
  file = unary("Gelu", 19, "5", NULL);
  must_fail(&file, FT_UNSUPPORTED, "known from opset 20 on");
}

Test(graph_lower, computes_mish_and_swish) {
  double mish[5], swish[5];
  for (int i = 0; i < 5; i++) {
    double x = (double)five[i];
    mish[i] = x * tanh(log1p(exp(x)));
    swish[i] = x / (1 + exp(-2 * x));
  }
  onnx_file file = unary("Mish", 18, "5", NULL);
  run(&file, five);
  expect(0, "5", mish);
  ft_strbuf attributes = no_attributes();
  onnx_attr_float(&attributes, "alpha", 2);
  file = unary("Swish", 24, "5", &attributes);
  run(&file, five);
  expect(0, "5", swish);
}

Test(graph_lower, hands_nan_through_every_activation) {
  static const struct {
    const char *op;
    int64_t opset;
  } cases[] = {
      {"Relu", 13},        {"LeakyRelu", 13}, {"Elu", 13},       {"Selu", 13},
      {"HardSigmoid", 13}, {"HardSwish", 14}, {"Softplus", 13},  {"Mish", 18},
      {"Softsign", 13},    {"Celu", 13},      {"Gelu", 20},      {"Sign", 13},
      {"Sigmoid", 13},     {"Tanh", 13},      {"Softmax", 13},   {"ReduceMax", 13},
      {"ReduceMean", 13},  {"ReduceMin", 13}, {"LogSoftmax", 13}};
  float x[] = {NAN};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    onnx_file file = unary(cases[i].op, cases[i].opset, "1", NULL);
    run(&file, x);
    cr_assert(isnan(result[0].value[0]), "%s", cases[i].op);
  }
}

Test(graph_lower, clips_by_attributes_before_opset_11_and_by_inputs_after) {
  ft_strbuf attributes = no_attributes();
  onnx_attr_float(&attributes, "min", -1);
  onnx_attr_float(&attributes, "max", 2);
  onnx_file file = unary("Clip", 10, "5", &attributes);
  run(&file, five);
  expect(0, "5", (double[]){-1, -0.5, 0, 0.5, 2});
  file = onnx_begin(arena, 13);
  onnx_input(&file, "x", ONNX_FLOAT, "5");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_scalar(&file, "hi", 2);
  onnx_node(&file, "Clip", "x,,hi", "y", NULL);
  run(&file, five);
  expect(0, "5", (double[]){-3, -0.5, 0, 0.5, 2});
}

Test(graph_lower, clips_to_the_upper_bound_where_the_bounds_cross_and_keeps_nan) {
  const float bounds[][2] = {{2, 1}, {NAN, 1}};
  const double expected[][5] = {{1, 1, 1, 1, 1}, {NAN, NAN, NAN, NAN, NAN}};
  for (int i = 0; i < 2; i++) {
    onnx_file file = onnx_begin(arena, 13);
    onnx_input(&file, "x", ONNX_FLOAT, "5");
    onnx_output(&file, "y", ONNX_FLOAT, NULL);
    onnx_scalar(&file, "lo", bounds[i][0]);
    onnx_scalar(&file, "hi", bounds[i][1]);
    onnx_node(&file, "Clip", "x,lo,hi", "y", NULL);
    run(&file, five);
    expect(0, "5", expected[i]);
  }
}

// ---- arithmetic ---------------------------------------------------------------------

static onnx_file power(const char *exponent_dims, float exponent) {
  onnx_file file = onnx_begin(arena, 13);
  onnx_input(&file, "x", ONNX_FLOAT, "2");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_floats(&file, "e", exponent_dims, &exponent, 1);
  onnx_node(&file, "Pow", "x,e", "y", NULL);
  return file;
}

Test(graph_lower, turns_known_powers_into_cheaper_primitives) {
  static const struct {
    float exponent;
    ft_op op;
    uint32_t primitives;
  } cases[] = {{2, FT_OP_MUL, 1},         {3, FT_OP_MUL, 2},      {0.5f, FT_OP_SQRT, 1},
               {-1, FT_OP_RECIPROCAL, 1}, {-0.5f, FT_OP_SQRT, 2}, {2.5f, FT_OP_POW, 1}};
  const float x[] = {4, 9};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    onnx_file file = power("", cases[i].exponent);
    run(&file, x);
    cr_assert_eq(graph->primitive_count, cases[i].primitives, "%zu", i);
    cr_assert_eq(graph->primitive[0].op, cases[i].op, "%zu", i);
    double e = (double)cases[i].exponent;
    expect(0, "2", (double[]){pow(4, e), pow(9, e)});
  }
}

Test(graph_lower, keeps_the_rank_that_a_known_exponent_brings) {
  onnx_file file = power("1,1,1", 2);
  run(&file, (float[]){4, 9});
  expect(0, "1x1x2", (double[]){16, 81});
}

Test(graph_lower, places_the_second_operand_by_axis_before_opset_7) {
  const float w[] = {10, 20};
  ft_strbuf attributes = no_attributes();
  onnx_attr_int(&attributes, "broadcast", 1);
  onnx_attr_int(&attributes, "axis", 0);
  onnx_file file = onnx_begin(arena, 6);
  onnx_input(&file, "x", ONNX_FLOAT, "2,3");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_floats(&file, "w", "2", w, 2);
  onnx_node(&file, "Add", "x,w", "y", &attributes);
  run(&file, (float[]){0, 1, 2, 3, 4, 5});
  expect(0, "2x3", (double[]){10, 11, 12, 23, 24, 25});
  file = onnx_begin(arena, 6);
  onnx_input(&file, "x", ONNX_FLOAT, "2,3");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_floats(&file, "w", "1", w, 1);
  onnx_node(&file, "Add", "x,w", "y", NULL);
  must_fail(&file, FT_REFUSED, "broadcast is 0");
}

// ---- reductions and norms -----------------------------------------------------------

static onnx_file reduce_by_input(const char *op, int64_t opset, const int64_t *axes,
                                 size_t count, const ft_strbuf *attributes) {
  onnx_file file = onnx_begin(arena, opset);
  onnx_input(&file, "x", ONNX_FLOAT, "2,3");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_ints(&file, "axes", ft_arena_printf(arena, "%zu", count), axes, count);
  onnx_node(&file, op, "x,axes", "y", attributes);
  return file;
}

Test(graph_lower, takes_axes_as_an_input_from_opset_18_on) {
  const float x[] = {1, 2, 3, 4, 5, 9};
  const int64_t axis = -1;
  ft_strbuf attributes = no_attributes();
  onnx_attr_int(&attributes, "keepdims", 0);
  onnx_file file = reduce_by_input("ReduceMean", 18, &axis, 1, &attributes);
  run(&file, x);
  expect(0, "2", (double[]){2, 6});
  file = reduce_by_input("ReduceMean", 17, &axis, 1, &attributes);
  must_fail(&file, FT_REFUSED, "has 2 inputs, but takes 1");
}

Test(graph_lower, reduces_all_over_no_axes_unless_told_to_do_nothing) {
  const float x[] = {1, 2, 3, 4, 5, 9};
  onnx_file file = reduce_by_input("ReduceMax", 18, NULL, 0, NULL);
  run(&file, x);
  expect(0, "1x1", (double[]){9});
  ft_strbuf noop = no_attributes();
  onnx_attr_int(&noop, "noop_with_empty_axes", 1);
  file = reduce_by_input("ReduceMax", 18, NULL, 0, &noop);
  run(&file, x);
  expect(0, "2x3", (double[]){1, 2, 3, 4, 5, 9});
}

Test(graph_lower, refuses_an_axis_outside_the_rank) {
  const int64_t axis = 2;
  onnx_file file = reduce_by_input("ReduceSum", 13, &axis, 1, NULL);
  must_fail(&file, FT_REFUSED, "node 'n_y' (ReduceSum): axis 2 of a value of rank 2");
}

Test(graph_lower, gives_the_mean_of_nothing_as_nan_and_its_sum_as_zero) {
  onnx_file file = unary("ReduceMean", 13, "0", NULL);
  run(&file, (float[]){0});
  expect(0, "1", (double[]){NAN});
  file = unary("ReduceSum", 13, "0", NULL);
  run(&file, (float[]){0});
  expect(0, "1", (double[]){0});
}

Test(graph_lower, takes_softmax_over_a_matrix_before_opset_13) {
  const float x[] = {0, 0, 0, 0, 0, 0, 0, 0};
  onnx_file file = unary("Softmax", 11, "2,2,2", NULL);
  run(&file, x);
  expect(0, "2x2x2", (double[]){.25, .25, .25, .25, .25, .25, .25, .25});
  file = unary("Softmax", 13, "2,2,2", NULL);
  run(&file, x);
  expect(0, "2x2x2", (double[]){.5, .5, .5, .5, .5, .5, .5, .5});
}

Test(graph_lower, normalizes_by_mean_square_in_opset_23) {
  const float scale[] = {1, 2};
  ft_strbuf attributes = no_attributes();
  onnx_attr_float(&attributes, "epsilon", 0);
  onnx_file file = onnx_begin(arena, 23);
  onnx_input(&file, "x", ONNX_FLOAT, "1,2");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_floats(&file, "s", "2", scale, 2);
  onnx_node(&file, "RMSNormalization", "x,s", "y", &attributes);
  run(&file, (float[]){1, 7});
  expect(0, "1x2", (double[]){0.2, 2.8});
}

// ---- shapes -------------------------------------------------------------------------

static onnx_file reshape(const char *dims, const int64_t *shape, size_t count,
                         bool allow_zero) {
  ft_strbuf attributes = no_attributes();
  if (allow_zero) onnx_attr_int(&attributes, "allowzero", 1);
  onnx_file file = onnx_begin(arena, 14);
  onnx_input(&file, "x", ONNX_FLOAT, dims);
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_ints(&file, "s", ft_arena_printf(arena, "%zu", count), shape, count);
  onnx_node(&file, "Reshape", "x,s", "y", &attributes);
  return file;
}

static void expect_reshape(const char *dims, const int64_t *shape, size_t count,
                           bool allow_zero, const char *text) {
  onnx_file file = reshape(dims, shape, count, allow_zero);
  cr_assert_eq(import(&file), FT_OK, "%s", error.text);
  cr_assert_str_eq(ft_shape_text(&graph->value[graph->output[0].value].shape, arena),
                   text);
}

Test(graph_lower, copies_a_dim_for_zero_and_infers_one) {
  expect_reshape("2,3,4", (int64_t[]){0, -1}, 2, false, "2x12");
  expect_reshape("2,3,4", (int64_t[]){24}, 1, false, "24");
  expect_reshape("1", NULL, 0, false, "scalar");
  expect_reshape("0,3", (int64_t[]){3, 0}, 2, true, "3x0");
  expect_reshape("0,3", (int64_t[]){-1, 3}, 2, false, "0x3");
}

Test(graph_lower, refuses_reshapes_that_lose_elements_or_have_no_answer) {
  onnx_file file = reshape("2,3", (int64_t[]){4, -1}, 2, false);
  must_fail(&file, FT_REFUSED, "no dim in the place of -1 makes 6 elements");
  file = reshape("2,3", (int64_t[]){-1, -1}, 2, false);
  must_fail(&file, FT_REFUSED, "a second unknown");
  file = reshape("2,3", (int64_t[]){-2, 3}, 2, false);
  must_fail(&file, FT_REFUSED, "shape[0] is -2");
  file = reshape("2,3", (int64_t[]){6, 1, 0}, 3, false);
  must_fail(&file, FT_REFUSED, "shape[2] is 0 where the input has rank 2");
  file = reshape("0,3", (int64_t[]){0, -1}, 2, true);
  must_fail(&file, FT_REFUSED, "no dim in the place of -1");
  file = reshape("2,3", (int64_t[]){7}, 1, false);
  must_fail(&file, FT_REFUSED, "node 'n_y' (Reshape)");
}

Test(graph_lower, squeezes_only_extents_of_one) {
  ft_strbuf attributes = no_attributes();
  const int64_t axes[] = {-1, 0};
  onnx_attr_ints(&attributes, "axes", axes, 2);
  onnx_file file = unary("Squeeze", 11, "1,3,1", &attributes);
  run(&file, (float[]){1, 2, 3});
  expect(0, "3", (double[]){1, 2, 3});
  file = unary("Squeeze", 11, "1,3,2", &attributes);
  must_fail(&file, FT_REFUSED, "axis 2 has extent 2, not 1");
}

Test(graph_lower, folds_the_shape_arithmetic_that_exporters_write) {
  const int64_t rest = -1;
  onnx_file file = onnx_begin(arena, 15);
  onnx_input(&file, "x", ONNX_FLOAT, "2,3,4");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_ints(&file, "one", "1", (int64_t[]){1}, 1);
  onnx_ints(&file, "rest", "1", &rest, 1);
  ft_strbuf first = no_attributes();
  onnx_attr_int(&first, "end", 1);
  onnx_node(&file, "Shape", "x", "n", &first);
  onnx_node(&file, "Size", "x", "all", NULL);
  onnx_node(&file, "Div", "all,n", "per", NULL);
  onnx_node(&file, "Reshape", "x,per", "y", NULL);
  must_fail(&file, FT_REFUSED, "cannot be viewed as 12");
  file = onnx_begin(arena, 15);
  onnx_input(&file, "x", ONNX_FLOAT, "2,3,4");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_node(&file, "Size", "x", "all", NULL);
  onnx_node(&file, "Reshape", "x,all", "y", NULL);
  cr_assert_eq(import(&file), FT_OK, "%s", error.text);
  cr_assert_eq(graph->live_operators, 0, "all of it is a view");
}

Test(graph_lower, makes_no_memory_of_a_huge_constant_of_shape) {
  const int64_t shape = INT64_C(1) << 40;
  onnx_file file = onnx_begin(arena, 13);
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_ints(&file, "s", "1", &shape, 1);
  onnx_node(&file, "ConstantOfShape", "s", "y", NULL);
  size_t before = ft_arena_bytes(arena);
  cr_assert_eq(import(&file), FT_OK, "%s", error.text);
  cr_assert_lt(ft_arena_bytes(arena) - before, 1u << 20);
  cr_assert_eq(graph->primitive_count, 1);
  cr_assert_eq(graph->primitive[0].op, FT_OP_BROADCAST);
}

Test(graph_lower, takes_dropout_as_identity_and_refuses_training) {
  onnx_file file = onnx_begin(arena, 13);
  onnx_input(&file, "x", ONNX_FLOAT, "2");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_output(&file, "mask", ONNX_BOOL, NULL);
  onnx_node(&file, "Dropout", "x", "y,mask", NULL);
  run(&file, (float[]){1, 2});
  expect(0, "2", (double[]){1, 2});
  expect(1, "2", (double[]){1, 1});
  uint8_t yes = 1;
  ft_strbuf training = onnx_tensor(arena, "training", ONNX_BOOL, "", &yes, 1);
  file = onnx_begin(arena, 13);
  onnx_input(&file, "x", ONNX_FLOAT, "2");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_scalar(&file, "ratio", 0.5f);
  onnx_initializer(&file, &training);
  onnx_node(&file, "Dropout", "x,ratio,training", "y", NULL);
  must_fail(&file, FT_UNSUPPORTED, "Dropout (opset 13) 'n_y': training mode");
}

Test(graph_lower, refuses_an_attribute_of_another_type) {
  ft_strbuf attributes = no_attributes();
  onnx_attr_float(&attributes, "axis", 1);
  onnx_file file = unary("Flatten", 13, "2,3", &attributes);
  must_fail(&file, FT_REFUSED, "attribute 'axis' has type 1, not 2");
}

Test(graph_lower, has_each_operator_once_per_opset) {
  static const struct {
    const char *name, *domain;
    int64_t opset;
  } lines[] = {
#define FT_OPERATOR(name, domain, opset, handler, primitive) {name, domain, opset},
#include "graph/operators.def"
#undef FT_OPERATOR
  };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    ft_span name = {(const uint8_t *)lines[i].name, strlen(lines[i].name)};
    ft_span domain = {(const uint8_t *)lines[i].domain, strlen(lines[i].domain)};
    int64_t first;
    const ft_operator_info *info = ft_operator_find(name, domain, 24, &first);
    cr_assert_not_null(info, "%s", lines[i].name);
    for (size_t k = 0; k < i; k++)
      cr_assert(
          strcmp(lines[i].name, lines[k].name) != 0 || lines[i].opset != lines[k].opset,
          "%s", lines[i].name);
  }
}
