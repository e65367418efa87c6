// What ft_graph_emit folds and what it leaves; the values are the semantics' tests.
#include "tests/support/graphs.h"

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
TestSuite(graph_folding, .init = set_up, .fini = tear_down);

static uint32_t scalar(ft_dtype dtype, double value) {
  uint32_t out;
  cr_assert_eq(ft_graph_add_scalar(graph, dtype, value, &out, &error), FT_OK);
  return out;
}
static uint32_t emit(ft_op op, uint32_t a, uint32_t b, const ft_attr *attr) {
  uint32_t in[2] = {a, b}, out;
  cr_assert_eq(
      ft_graph_emit(graph, op, in, ft_op_describe(op)->arity, attr, &out, &error), FT_OK,
      "%s", error.text);
  return out;
}
static double element(uint32_t value, int64_t index) {
  cr_assert(graph->value[value].role == FT_ROLE_CONSTANT && graph->value[value].data);
  return ft_tensor_get_f64(graph->value[value].data, index);
}

Test(graph_folding, a_chain_of_known_scalars_becomes_one_constant) {
  uint32_t sum = emit(FT_OP_ADD, scalar(FT_F32, 1), scalar(FT_F32, 2), NULL);
  uint32_t root = emit(FT_OP_SQRT, emit(FT_OP_MUL, sum, sum, NULL), 0, NULL);
  cr_assert_eq(element(root, 0), 3);
  cr_assert(ft_value_is_immediate(graph, root));
  cr_assert_eq(root, scalar(FT_F32, 3), "a folded constant is found like any other");
  cr_assert_eq(graph->primitive_count, 0);
}

Test(graph_folding, folds_through_views_remaps_and_reductions) {
  int64_t data[6] = {1, 2, 3, 4, 5, 6};
  ft_tensor tensor = {FT_I64, SHAPE(6), data, sizeof data};
  ft_shape matrix = SHAPE(2, 3);
  uint32_t w, v;
  cr_assert_eq(ft_graph_add_constant(graph, "w", &tensor, &w, &error), FT_OK);
  cr_assert_eq(ft_graph_view(graph, w, &matrix, &v, &error), FT_OK);
  uint32_t t = emit(FT_OP_TRANSPOSE, v, 0, &(ft_attr){.perm = {1, 0}});
  cr_assert(element(t, 0) == 1 && element(t, 1) == 4 && element(t, 5) == 6);
  uint32_t rows = emit(FT_OP_REDUCE_SUM, v, 0, &(ft_attr){.axes = 2});
  cr_assert(element(rows, 0) == 6 && element(rows, 1) == 15);
  uint32_t wide = emit(FT_OP_BROADCAST, rows, 0, &(ft_attr){.shape = SHAPE(2, 4)});
  cr_assert(element(wide, 3) == 6 && element(wide, 4) == 15);
  uint32_t f = emit(FT_OP_CAST, wide, 0, &(ft_attr){.to = FT_F16});
  cr_assert(graph->value[f].dtype == FT_F16 && element(f, 7) == 15);
  cr_assert_eq(graph->primitive_count, 0);
}

Test(graph_folding, a_weight_known_by_its_shape_only_is_not_folded) {
  ft_shape shape = SHAPE(4);
  uint32_t w;
  cr_assert_eq(ft_graph_add_weight(graph, "w", FT_F32, &shape, 1, &w, &error), FT_OK);
  uint32_t out = emit(FT_OP_NEG, w, 0, NULL);
  cr_assert_eq(graph->value[out].role, FT_ROLE_COMPUTED);
}

Test(graph_folding, results_past_one_megabyte_stay_primitives) {
  uint32_t one = scalar(FT_F32, 1);
  uint32_t fits = emit(FT_OP_BROADCAST, one, 0, &(ft_attr){.shape = SHAPE(1 << 18)});
  uint32_t over =
      emit(FT_OP_BROADCAST, one, 0, &(ft_attr){.shape = SHAPE((1 << 18) + 1)});
  cr_assert_eq(graph->value[fits].role, FT_ROLE_CONSTANT);
  cr_assert_eq(graph->value[over].role, FT_ROLE_COMPUTED);
}

Test(graph_folding, all_foldings_together_move_at_most_64_megabytes) {
  for (int i = 0; i < 80; i++) {
    uint32_t out =
        emit(FT_OP_BROADCAST, scalar(FT_F32, i), 0, &(ft_attr){.shape = SHAPE(1 << 18)});
    cr_assert_eq(graph->value[out].role, i < 63 ? FT_ROLE_CONSTANT : FT_ROLE_COMPUTED,
                 "%d", i);
  }
  cr_assert_lt(ft_arena_bytes(arena), (size_t)70 << 20);
}

Test(graph_folding, a_reduction_of_a_huge_constant_stays_a_primitive) {
  ft_shape shape = SHAPE((16 << 20) + 1);
  ft_tensor tensor;
  void *data;
  uint32_t w;
  cr_assert_eq(ft_tensor_alloc(FT_U8, &shape, arena, &tensor, &data, &error), FT_OK);
  cr_assert_eq(ft_graph_add_constant(graph, "w", &tensor, &w, &error), FT_OK);
  uint32_t out = emit(FT_OP_REDUCE_MAX, w, 0, &(ft_attr){.axes = 1});
  cr_assert_eq(graph->value[out].role, FT_ROLE_COMPUTED);
}

Test(graph_folding, a_folded_operator_owns_no_primitives) {
  ft_shape shape = SHAPE(4);
  uint32_t x, two = emit(FT_OP_ADD, scalar(FT_F32, 1), scalar(FT_F32, 1), NULL);
  cr_assert_eq(ft_graph_add_input(graph, "x", FT_F32, &shape, &x, &error), FT_OK);
  cr_assert_eq(ft_graph_begin_operator(graph, "live", "Mul", "", &error), FT_OK);
  cr_assert_eq(ft_graph_add_output(graph, "y", emit(FT_OP_MUL, x, two, NULL), &error),
               FT_OK);
  cr_assert_eq(ft_graph_finish(graph, &error), FT_OK);
  ft_graph_check(graph);
  cr_assert_eq(graph->live_operators, 1);
  cr_assert_eq(graph->operator_[0].count, 0);
}

// ---- windows, contractions, gathers ---------------------------------------------

static uint32_t constant(ft_dtype dtype, ft_shape shape, const double *data) {
  ft_tensor tensor;
  void *bytes;
  uint32_t out;
  cr_assert_eq(ft_tensor_alloc(dtype, &shape, arena, &tensor, &bytes, &error), FT_OK);
  for (int64_t i = 0; i < ft_shape_elements(&shape); i++)
    ft_element_set_f64(dtype, bytes, i, data ? data[i] : (double)(i % 5));
  cr_assert_eq(ft_graph_add_constant(graph, "c", &tensor, &out, &error), FT_OK);
  return out;
}

Test(graph_folding, shapes_are_gathered_sliced_and_put_together) {
  uint32_t shape = constant(FT_I64, SHAPE(4), (const double[]){1, 3, 224, 225});
  ft_attr tail = {.start = {2}, .step = {1}, .shape = SHAPE(2)};
  uint32_t last = constant(FT_I64, SHAPE(1), (const double[]){-1});
  uint32_t part[3] = {emit(FT_OP_GATHER, shape, last, &(ft_attr){0}),
                      emit(FT_OP_SLICE, shape, 0, &tail), last},
           all;
  cr_assert_eq(ft_graph_emit(graph, FT_OP_CONCAT, part, 3, NULL, &all, &error), FT_OK);
  static const double want[4] = {225, 224, 225, -1};
  for (int i = 0; i < 4; i++) cr_assert_eq(element(all, i), want[i]);
  cr_assert_eq(graph->primitive_count, 0);
}

Test(graph_folding, small_contractions_fold_and_large_ones_stay) {
  uint32_t a = constant(FT_F32, SHAPE(2, 3), (const double[]){1, 2, 3, 4, 5, 6});
  uint32_t b = constant(FT_F32, SHAPE(3, 1), (const double[]){1, 0.5, 2});
  cr_assert_eq(element(emit(FT_OP_MATMUL, a, b, NULL), 1), 18.5);
  cr_assert_eq(graph->primitive_count, 0);
  // 512 kB in, 256 kB out, but 128 million products
  a = constant(FT_F32, SHAPE(256, 1000), NULL);
  b = constant(FT_F32, SHAPE(1000, 256), NULL);
  emit(FT_OP_MATMUL, a, b, NULL);
  cr_assert_eq(graph->primitive_count, 1);
}

Test(graph_folding, a_window_too_large_to_count_is_left_alone) {
  ft_attr attr = {.window = {INT64_C(1) << 35},
                  .stride = {1},
                  .dilation = {1},
                  .shape = SHAPE(1, 1, 2)};
  emit(FT_OP_WINDOW_SUM, constant(FT_F32, SHAPE(1, 1, 2), NULL), 0, &attr);
  cr_assert_eq(graph->primitive_count, 1);
}

Test(graph_folding, a_known_index_out_of_range_is_refused_at_once) {
  uint32_t in[2] = {constant(FT_F32, SHAPE(3), NULL),
                    constant(FT_I64, SHAPE(2), (const double[]){0, 3})},
           out;
  cr_assert_eq(ft_graph_emit(graph, FT_OP_GATHER, in, 2, NULL, &out, &error),
               FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "index 3 at element 1"), "%s", error.text);
}
