#include "graph/graph.h"

#include "tests/support/graphs.h"
#include "tests/support/limited.h"

static ft_arena *arena;
static ft_graph *graph;
static ft_error error;

static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
  cr_assert_eq(ft_graph_create(arena, "g", &graph, &error), FT_OK);
  cr_assert_eq(ft_graph_begin_operator(graph, "node", "Test", "", &error), FT_OK);
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_graph, .init = set_up, .fini = tear_down);

static uint32_t input(const char *name, ft_dtype dtype, ft_shape shape) {
  uint32_t value;
  cr_assert_eq(ft_graph_add_input(graph, name, dtype, &shape, &value, &error), FT_OK,
               "%s", error.text);
  return value;
}
static ft_status try_emit(ft_op op, uint32_t a, uint32_t b, uint32_t c,
                          const ft_attr *attr, uint32_t *out) {
  uint32_t in[3] = {a, b, c};
  return ft_graph_emit(graph, op, in, ft_op_describe(op)->arity, attr, out, &error);
}
static uint32_t emit(ft_op op, uint32_t a, uint32_t b, uint32_t c, const ft_attr *attr) {
  uint32_t out;
  cr_assert_eq(try_emit(op, a, b, c, attr, &out), FT_OK, "%s", error.text);
  return out;
}
static uint32_t unary(ft_op op, uint32_t a) {
  return emit(op, a, 0, 0, NULL);
}
static uint32_t binary(ft_op op, uint32_t a, uint32_t b) {
  return emit(op, a, b, 0, NULL);
}
static uint32_t view(uint32_t value, ft_shape shape) {
  uint32_t out;
  cr_assert_eq(ft_graph_view(graph, value, &shape, &out, &error), FT_OK, "%s",
               error.text);
  return out;
}
static void output(uint32_t value) {
  cr_assert_eq(ft_graph_add_output(graph, "y", value, &error), FT_OK);
}
static void finish(void) {
  cr_assert_eq(ft_graph_finish(graph, &error), FT_OK, "%s", error.text);
  ft_graph_check(graph);
}
static void expect(uint32_t value, ft_dtype dtype, ft_shape shape) {
  cr_assert_eq(graph->value[value].dtype, dtype);
  cr_assert(ft_shape_equal(&graph->value[value].shape, &shape), "got %s",
            ft_shape_text(&graph->value[value].shape, arena));
}

// ---- inference ------------------------------------------------------------------

Test(graph_graph, elementwise_results_broadcast_and_keep_the_dtype) {
  uint32_t x = input("x", FT_F32, SHAPE(4, 1, 8)), y = input("y", FT_F32, SHAPE(3, 1));
  expect(binary(FT_OP_ADD, x, y), FT_F32, SHAPE(4, 3, 8));
  expect(binary(FT_OP_LESS, x, y), FT_BOOL, SHAPE(4, 3, 8));
  uint32_t condition = binary(FT_OP_EQUAL, x, y);
  expect(emit(FT_OP_WHERE, condition, x, y, NULL), FT_F32, SHAPE(4, 3, 8));
  expect(unary(FT_OP_NOT, condition), FT_BOOL, SHAPE(4, 3, 8));
  expect(emit(FT_OP_CAST, x, 0, 0, &(ft_attr){.to = FT_I64}), FT_I64, SHAPE(4, 1, 8));
}

Test(graph_graph, remaps_and_reductions_follow_their_attributes) {
  uint32_t x = input("x", FT_F16, SHAPE(4, 1, 8));
  expect(emit(FT_OP_TRANSPOSE, x, 0, 0, &(ft_attr){.perm = {2, 0, 1}}), FT_F16,
         SHAPE(8, 4, 1));
  expect(emit(FT_OP_BROADCAST, x, 0, 0, &(ft_attr){.shape = SHAPE(2, 4, 5, 8)}), FT_F16,
         SHAPE(2, 4, 5, 8));
  expect(emit(FT_OP_REDUCE_SUM, x, 0, 0, &(ft_attr){.axes = 5}), FT_F16, SHAPE(1, 1, 1));
}

static void refuses(ft_op op, uint32_t a, uint32_t b, uint32_t c, const ft_attr *attr,
                    const char *text) {
  uint32_t out;
  cr_assert_eq(try_emit(op, a, b, c, attr, &out), FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, text), "'%s' does not say '%s'", error.text, text);
}

Test(graph_graph, refuses_wrong_dtypes_by_name) {
  uint32_t f = input("floats", FT_F32, SHAPE(4)), i = input("ints", FT_I32, SHAPE(4));
  uint32_t b = input("flags", FT_BOOL, SHAPE(4));
  refuses(FT_OP_ADD, f, i, 0, NULL, "'floats' (f32 4) and 'ints' (i32 4)");
  refuses(FT_OP_ADD, b, b, 0, NULL, "'flags' (bool 4)");
  refuses(FT_OP_EXP, i, 0, 0, NULL, "'ints' (i32 4)");
  refuses(FT_OP_AND, f, f, 0, NULL, "'floats'");
  refuses(FT_OP_LESS, b, b, 0, NULL, "'flags'");
  refuses(FT_OP_WHERE, f, f, f, NULL, "bool condition");
  refuses(FT_OP_WHERE, b, f, i, NULL, "one dtype");
  refuses(FT_OP_REDUCE_MAX, b, 0, 0, &(ft_attr){.axes = 1}, "'flags'");
  refuses(FT_OP_CAST, f, 0, 0, &(ft_attr){.to = FT_DTYPE_COUNT}, "no dtype");
}

Test(graph_graph, refuses_wrong_shapes_and_attributes_by_name) {
  uint32_t x = input("x", FT_F32, SHAPE(4, 2)), y = input("y", FT_F32, SHAPE(4, 3));
  refuses(FT_OP_ADD, x, y, 0, NULL,
          "'y' (f32 4x3) does not broadcast with 'x' (f32 4x2)");
  refuses(FT_OP_BROADCAST, x, 0, 0, &(ft_attr){.shape = SHAPE(4, 1)}, "4x1");
  refuses(FT_OP_BROADCAST, x, 0, 0, &(ft_attr){.shape = SHAPE(-1, 4, 2)},
          "invalid shape");
  refuses(FT_OP_TRANSPOSE, x, 0, 0, &(ft_attr){.perm = {1, 1}}, "perm[1] = 1");
  refuses(FT_OP_TRANSPOSE, x, 0, 0, &(ft_attr){.perm = {0, 2}}, "perm[1] = 2");
  refuses(FT_OP_REDUCE_SUM, x, 0, 0, &(ft_attr){.axes = 4}, "axes 0x4");
  refuses(FT_OP_NEG, 99, 0, 0, NULL, "no value 99");
}

Test(graph_graph, refuses_shapes_past_2_to_the_62_bytes_and_takes_empty_ones) {
  uint32_t value;
  ft_shape huge = SHAPE(INT64_C(1) << 61), rank9 = {.rank = 9}, negative = SHAPE(4, -1);
  cr_assert_eq(ft_graph_add_input(graph, "x", FT_F64, &huge, &value, &error), FT_REFUSED);
  cr_assert(strstr(error.text, "'x'") && strstr(error.text, "2305843009213693952"), "%s",
            error.text);
  cr_assert_eq(ft_graph_add_input(graph, "x", FT_U8, &rank9, &value, &error), FT_REFUSED);
  cr_assert_eq(ft_graph_add_input(graph, "x", FT_U8, &negative, &value, &error),
               FT_REFUSED);
  uint32_t a = input("a", FT_F32, SHAPE(INT64_C(1) << 40, 1));
  uint32_t b = input("b", FT_F32, SHAPE(INT64_C(1) << 40));
  cr_assert_eq(try_emit(FT_OP_ADD, a, b, 0, NULL, &value), FT_REFUSED, "2^80 elements");
  expect(unary(FT_OP_EXP, input("e", FT_F32, SHAPE(0, 3))), FT_F32, SHAPE(0, 3));
}

// ---- what is not emitted --------------------------------------------------------

Test(graph_graph, identities_return_their_input) {
  uint32_t x = input("x", FT_F32, SHAPE(4, 8));
  cr_assert_eq(unary(FT_OP_COPY, x), x);
  cr_assert_eq(emit(FT_OP_CAST, x, 0, 0, &(ft_attr){.to = FT_F32}), x);
  cr_assert_eq(emit(FT_OP_TRANSPOSE, x, 0, 0, &(ft_attr){.perm = {0, 1}}), x);
  cr_assert_eq(emit(FT_OP_BROADCAST, x, 0, 0, &(ft_attr){.shape = SHAPE(4, 8)}), x);
  cr_assert_eq(emit(FT_OP_REDUCE_MAX, x, 0, 0, NULL), x, "no axes");
}

Test(graph_graph, remaps_that_keep_the_order_of_elements_are_views) {
  uint32_t x = input("x", FT_F32, SHAPE(4, 1, 8));
  uint32_t t = emit(FT_OP_TRANSPOSE, x, 0, 0, &(ft_attr){.perm = {1, 0, 2}});
  expect(t, FT_F32, SHAPE(1, 4, 8));
  cr_assert_eq(graph->value[t].root, x);
  uint32_t b = emit(FT_OP_BROADCAST, x, 0, 0, &(ft_attr){.shape = SHAPE(1, 4, 1, 8)});
  cr_assert_eq(graph->value[b].root, x);
  uint32_t r = emit(FT_OP_REDUCE_SUM, x, 0, 0, &(ft_attr){.axes = 2});
  cr_assert_eq(r, x, "a sum over extent 1 is its term");
  cr_assert_eq(graph->primitive_count, 0);
}

Test(graph_graph, an_equal_primitive_is_emitted_once) {
  uint32_t x = input("x", FT_F32, SHAPE(4, 8)), y = input("y", FT_F32, SHAPE(4, 8));
  uint32_t sum = binary(FT_OP_ADD, x, y);
  cr_assert_eq(binary(FT_OP_ADD, x, y), sum);
  cr_assert_neq(binary(FT_OP_ADD, y, x), sum);
  cr_assert_neq(binary(FT_OP_SUB, x, y), sum);
  uint32_t rows = emit(FT_OP_REDUCE_SUM, x, 0, 0, &(ft_attr){.axes = 2});
  cr_assert_neq(emit(FT_OP_REDUCE_SUM, x, 0, 0, &(ft_attr){.axes = 1}), rows);
  cr_assert_eq(emit(FT_OP_REDUCE_SUM, x, 0, 0, &(ft_attr){.axes = 2, .to = FT_I8}), rows,
               "members that the op does not use do not count");
  for (int i = 0; i < 500; i++) x = unary(i % 2 ? FT_OP_NEG : FT_OP_TANH, x);
  cr_assert_eq(binary(FT_OP_ADD, 0, 1), sum, "still found after the table grew");
}

Test(graph_graph, the_result_may_be_stored_where_the_input_was_read) {
  uint32_t x = input("x", FT_F32, SHAPE(4)), at = x;
  cr_assert_eq(ft_graph_emit(graph, FT_OP_EXP, &at, 1, NULL, &at, &error), FT_OK);
  cr_assert_eq(graph->primitive[0].input[0], x);
  cr_assert_eq(graph->primitive[0].output, at);
  cr_assert_eq(unary(FT_OP_EXP, x), at);
}

Test(graph_graph, small_equal_constants_are_one_value_and_large_ones_are_not_compared) {
  uint32_t half = 0, other, third;
  cr_assert_eq(ft_graph_add_scalar(graph, FT_F32, 0.5, &half, &error), FT_OK);
  cr_assert_eq(ft_graph_add_scalar(graph, FT_F32, 0.5, &other, &error), FT_OK);
  cr_assert_eq(ft_graph_add_scalar(graph, FT_F64, 0.5, &third, &error), FT_OK);
  cr_assert_eq(half, other);
  cr_assert_neq(half, third);
  cr_assert(ft_value_is_immediate(graph, half));
  float data[65] = {0};
  ft_tensor tensor = {FT_F32, SHAPE(65), data, sizeof data};
  cr_assert_eq(ft_graph_add_constant(graph, "w", &tensor, &half, &error), FT_OK);
  cr_assert_eq(ft_graph_add_constant(graph, "v", &tensor, &other, &error), FT_OK);
  cr_assert_neq(half, other);
  cr_assert(!ft_value_is_immediate(graph, half));
  tensor.bytes--;
  cr_assert_eq(ft_graph_add_constant(graph, "w", &tensor, &half, &error),
               FT_INVALID_ARGUMENT);
}

// ---- views ----------------------------------------------------------------------

Test(graph_graph, views_of_views_collapse_to_one_root) {
  uint32_t x = input("x", FT_F32, SHAPE(4, 8));
  uint32_t a = view(x, SHAPE(32)), b = view(a, SHAPE(2, 16));
  cr_assert_eq(graph->value[b].root, x);
  cr_assert_eq(view(b, SHAPE(4, 8)), x, "back to the root's shape is the root");
  cr_assert_eq(view(x, SHAPE(2, 16)), b, "an equal view is made once");
  ft_shape wrong = SHAPE(31), negative = SHAPE(-4, -8);
  uint32_t out;
  cr_assert_eq(ft_graph_view(graph, a, &wrong, &out, &error), FT_INVALID_ARGUMENT);
  cr_assert_eq(ft_graph_view(graph, a, &negative, &out, &error), FT_INVALID_ARGUMENT);
}

Test(graph_graph, a_view_of_a_constant_has_data_of_its_own_shape) {
  float data[4] = {1, 2, 3, 4};
  ft_tensor tensor = {FT_F32, SHAPE(4), data, sizeof data}, got;
  uint32_t w;
  cr_assert_eq(ft_graph_add_constant(graph, "w", &tensor, &w, &error), FT_OK);
  uint32_t v = view(w, SHAPE(2, 2));
  ft_shape want = SHAPE(2, 2);
  cr_assert_eq(ft_graph_constant_data(graph, v, arena, &got, &error), FT_OK);
  cr_assert(ft_shape_equal(&got.shape, &want) && got.data == data);
}

Test(graph_graph, a_weight_is_drawn_from_its_seed_alike_each_time) {
  uint32_t w;
  ft_shape shape = SHAPE(1000);
  ft_tensor a, b;
  cr_assert_eq(ft_graph_add_weight(graph, "w", FT_F32, &shape, 42, &w, &error), FT_OK);
  cr_assert_eq(ft_graph_constant_data(graph, w, arena, &a, &error), FT_OK);
  cr_assert_eq(ft_graph_constant_data(graph, view(w, SHAPE(10, 100)), arena, &b, &error),
               FT_OK);
  cr_assert_arr_eq(a.data, b.data, a.bytes);
  double low = 1, high = -1;
  for (int i = 0; i < 1000; i++) {
    double x = ft_tensor_get_f64(&a, i);
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
  cr_assert(low >= -0.5 && low < -0.45 && high < 0.5 && high > 0.45, "%g %g", low, high);
  cr_assert_eq(
      ft_graph_constant_data(graph, input("x", FT_F32, shape), arena, &a, &error),
      FT_INVALID_ARGUMENT);
}

// ---- finish ---------------------------------------------------------------------

Test(graph_graph, dead_primitives_and_values_go_and_operator_runs_stay) {
  uint32_t x = input("x", FT_F32, SHAPE(4)), unused = input("unused", FT_F32, SHAPE(9));
  unary(FT_OP_EXP, x);
  cr_assert_eq(ft_graph_begin_operator(graph, "live", "Gelu", "com.microsoft", &error),
               FT_OK);
  uint32_t t = unary(FT_OP_TANH, x);
  unary(FT_OP_SIN, t);
  uint32_t y = binary(FT_OP_MUL, t, x);
  cr_assert_eq(ft_graph_begin_operator(graph, "folded", "Identity", "", &error), FT_OK);
  output(y);
  (void)unused;
  finish();
  cr_assert_eq(graph->primitive_count, 2);
  cr_assert_eq(graph->operator_count, 3);
  cr_assert_eq(graph->live_operators, 1);
  cr_assert(graph->operator_[0].count == 0 && graph->operator_[2].count == 0);
  cr_assert(graph->operator_[1].first == 0 && graph->operator_[1].count == 2);
  cr_assert_eq(graph->value_count, 4, "x, unused, t, y");
  cr_assert_eq(graph->input_count, 2, "an unused input stays an input");
}

Test(graph_graph, consumers_list_each_reader_once_through_views_and_repeats) {
  uint32_t x = input("x", FT_F32, SHAPE(4, 8));
  uint32_t square = binary(FT_OP_MUL, x, x);
  uint32_t flat = unary(FT_OP_NEG, view(x, SHAPE(32)));
  output(square), output(flat);
  finish();
  const ft_value *v = &graph->value[graph->input[0].value];
  cr_assert_eq(v->consumer_count, 2);
  cr_assert(v->consumer[0] == 0 && v->consumer[1] == 1);
}

Test(graph_graph, outputs_may_be_inputs_constants_and_views) {
  uint32_t x = input("x", FT_F32, SHAPE(4, 8)), c;
  cr_assert_eq(ft_graph_add_scalar(graph, FT_F32, 3, &c, &error), FT_OK);
  output(x), output(c), output(view(unary(FT_OP_EXP, x), SHAPE(32)));
  finish();
  cr_assert_eq(graph->output_count, 3);
  cr_assert_eq(graph->primitive_count, 1);
  uint32_t root = graph->value[graph->output[2].value].root;
  cr_assert(graph->value[root].is_output);
  cr_assert_eq(graph->value[root].producer, 0);
  cr_assert_neq(root, graph->output[2].value);
}

Test(graph_graph, every_value_and_operator_ends_with_a_name_and_the_first_name_stays) {
  uint32_t x = input("x", FT_F32, SHAPE(4)), y = unary(FT_OP_EXP, x),
           z = unary(FT_OP_NEG, y);
  cr_assert_eq(ft_graph_name_value(graph, z, "first", &error), FT_OK);
  cr_assert_eq(ft_graph_name_value(graph, z, "second", &error), FT_OK);
  output(z);
  finish();
  cr_assert_str_eq(graph->value[graph->output[0].value].name, "first");
  for (uint32_t i = 0; i < graph->value_count; i++) cr_assert(graph->value[i].name[0]);
}

Test(graph_graph, nothing_can_be_added_after_finish) {
  uint32_t x = input("x", FT_F32, SHAPE(4)), out;
  output(unary(FT_OP_EXP, x));
  finish();
  cr_assert_eq(try_emit(FT_OP_EXP, 0, 0, 0, NULL, &out), FT_INVALID_ARGUMENT);
  cr_assert_eq(ft_graph_add_output(graph, "z", 0, &error), FT_INVALID_ARGUMENT);
  cr_assert_eq(ft_graph_add_scalar(graph, FT_F32, 1, &out, &error), FT_INVALID_ARGUMENT);
  cr_assert_eq(ft_graph_finish(graph, &error), FT_INVALID_ARGUMENT);
}

Test(graph_graph, a_graph_of_nothing_finishes) {
  finish();
  cr_assert_eq(graph->value_count, 0);
}

// ---- bound hash -----------------------------------------------------------------

typedef struct variant {
  const char *name;
  ft_dtype dtype;
  int64_t rows;
  double scalar;
  float weight;
  uint32_t axes;
  bool swapped, view_out, second_output;
} variant;

static ft_hash bound_hash(variant v) {
  ft_graph *g;
  uint32_t x, c, w, y, z;
  ft_shape shape = SHAPE(v.rows, 100), wide = SHAPE(100), flat = SHAPE(v.rows, 1, 100);
  float *weights = FT_NEW_ARRAY(arena, float, 100);
  weights[3] = v.weight;
  ft_tensor tensor = {FT_F32, wide, weights, 400};
  cr_assert_eq(ft_graph_create(arena, v.name, &g, &error), FT_OK);
  cr_assert_eq(ft_graph_begin_operator(g, v.name, "T", "", &error), FT_OK);
  cr_assert_eq(ft_graph_add_input(g, v.name, v.dtype, &shape, &x, &error), FT_OK);
  cr_assert_eq(ft_graph_add_scalar(g, v.dtype, v.scalar, &c, &error), FT_OK);
  cr_assert_eq(ft_graph_add_constant(g, v.name, &tensor, &w, &error), FT_OK);
  uint32_t in[2] = {v.swapped ? c : x, v.swapped ? x : c};
  cr_assert_eq(ft_graph_emit(g, FT_OP_SUB, in, 2, NULL, &y, &error), FT_OK);
  ft_attr attr = {.axes = v.axes};
  cr_assert_eq(ft_graph_emit(g, FT_OP_REDUCE_SUM, &y, 1, &attr, &z, &error), FT_OK);
  if (v.second_output) cr_assert_eq(ft_graph_add_output(g, v.name, y, &error), FT_OK);
  if (v.view_out) cr_assert_eq(ft_graph_view(g, y, &flat, &z, &error), FT_OK);
  cr_assert_eq(ft_graph_add_output(g, v.name, z, &error), FT_OK);
  cr_assert_eq(ft_graph_add_output(g, v.name, w, &error), FT_OK);
  cr_assert_eq(ft_graph_finish(g, &error), FT_OK);
  ft_graph_check(g);
  return g->bound_hash;
}

Test(graph_graph, the_bound_hash_ignores_names_and_weights_and_nothing_else) {
  const variant base = {.name = "a", .rows = 4, .scalar = 2, .axes = 2};
  ft_hash hash = bound_hash(base), other;
  variant same = base;
  same.name = "another";
  same.weight = 7;
  other = bound_hash(same);
  cr_assert(ft_hash_equal(&hash, &other));
  variant changed[8];
  for (int i = 0; i < 8; i++) changed[i] = base;
  changed[0].dtype = FT_F64, changed[1].rows = 5, changed[2].scalar = 3;
  changed[3].axes = 1, changed[4].swapped = true, changed[5].view_out = true;
  changed[6].second_output = true, changed[7].axes = 3;
  for (int i = 0; i < 8; i++) {
    other = bound_hash(changed[i]);
    cr_assert(!ft_hash_equal(&hash, &other), "change %d", i);
  }
}

Test(graph_graph, the_bound_hash_holds_the_bytes_of_large_integer_constants) {
  ft_hash hash[2];
  for (int i = 0; i < 2; i++) {
    ft_graph *g;
    uint32_t w;
    int64_t *data = FT_NEW_ARRAY(arena, int64_t, 100);
    data[50] = i;
    ft_tensor tensor = {FT_I64, SHAPE(100), data, 800};
    cr_assert_eq(ft_graph_create(arena, "g", &g, &error), FT_OK);
    cr_assert_eq(ft_graph_add_constant(g, "w", &tensor, &w, &error), FT_OK);
    cr_assert_eq(ft_graph_add_output(g, "w", w, &error), FT_OK);
    cr_assert_eq(ft_graph_finish(g, &error), FT_OK);
    hash[i] = g->bound_hash;
  }
  cr_assert(!ft_hash_equal(&hash[0], &hash[1]));
}

// ---- random graphs, faults ------------------------------------------------------

Test(graph_graph, random_graphs_keep_every_invariant) {
  ft_rng rng = ft_rng_seed(1);
  spec table[SPEC_MAX];
  for (int i = 0; i < 300; i++) {
    ft_arena *own = ft_arena_create(ft_allocator_system());
    int count = spec_random(table, 1 + (int)ft_rng_below(&rng, 40), &rng);
    spec_build(table, count, &rng, own);
    ft_arena_destroy(own);
  }
}

// Enough of everything that the arena asks for several blocks.
static ft_status build_small(ft_arena *own) {
  ft_graph *g;
  uint32_t x, c, v;
  ft_shape shape = SHAPE(8, 64), flat = SHAPE(512);
  FT_TRY(ft_graph_create(own, "g", &g, &error));
  FT_TRY(ft_graph_add_input(g, "x", FT_F32, &shape, &x, &error));
  FT_TRY(ft_graph_add_weight(g, "w", FT_F32, &shape, 1, &c, &error));
  for (int i = 0; i < 300; i++) {
    FT_TRY(ft_graph_begin_operator(g, "node with a name", "Add", "", &error));
    uint32_t in[2] = {x, c};
    FT_TRY(ft_graph_emit(g, i % 2 ? FT_OP_ADD : FT_OP_SUB, in, 2, NULL, &x, &error));
    FT_TRY(ft_graph_name_value(g, x, "a value with a name", &error));
    FT_TRY(ft_graph_add_scalar(g, FT_F32, i, &v, &error));
    FT_TRY(ft_graph_emit(g, FT_OP_NEG, &v, 1, NULL, &v, &error));
  }
  FT_TRY(ft_graph_view(g, x, &flat, &v, &error));
  FT_TRY(ft_graph_add_output(g, "y", v, &error));
  FT_TRY(ft_graph_finish(g, &error));
  ft_graph_check(g);
  return FT_OK;
}

Test(graph_graph, every_failed_allocation_is_a_clean_out_of_memory) {
  int n = 1, failures = 0;
  for (ft_status status = FT_OUT_OF_MEMORY; status != FT_OK; n++) {
    limited l = {.left = n};
    ft_allocator allocator = limited_allocator(&l);
    ft_arena *own = ft_arena_create(&allocator);
    cr_assert(own);
    status = build_small(own);
    cr_assert(status == FT_OK || status == FT_OUT_OF_MEMORY, "%s", error.text);
    failures += status != FT_OK;
    ft_arena_destroy(own);
    cr_assert_eq(l.live, 0, "with %d allocations allowed", n);
    cr_assert_lt(n, 1000);
  }
  cr_assert_gt(failures, 5);
}
