#include "graph/fold.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static ft_arena *arena;
static void start(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void stop(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_fold, .init = start, .fini = stop);

static ft_tensor tensor(ft_dtype dtype, ft_shape shape, const void *data) {
  return (ft_tensor){dtype, shape, data,
                     (size_t)ft_shape_elements(&shape) * ft_dtype_bytes(dtype)};
}

static ft_tensor fold(ft_op op, const ft_attr *attr, const ft_tensor *in, ft_dtype dtype,
                      ft_shape shape) {
  ft_tensor out;
  ft_error error = {0};
  ft_status status = ft_fold_primitive(op, attr, in, ft_op_describe(op)->arity, dtype,
                                       &shape, arena, &out, &error);
  cr_assert_eq(status, FT_OK, "%s", error.text);
  cr_assert_eq(out.dtype, dtype);
  cr_assert(ft_shape_equal(&out.shape, &shape));
  return out;
}

Test(graph_fold, integers_are_exact_past_what_a_double_holds) {
  const int64_t a[2] = {INT64_C(9007199254740993), INT64_MAX}, b[1] = {2};
  ft_tensor in[2] = {tensor(FT_I64, (ft_shape){1, {2}}, a),
                     tensor(FT_I64, (ft_shape){1, {1}}, b)};
  ft_tensor out = fold(FT_OP_SUB, NULL, in, FT_I64, (ft_shape){1, {2}});
  cr_assert_eq(ft_tensor_get_i64(&out, 0), INT64_C(9007199254740991));
  cr_assert_eq(ft_tensor_get_i64(&out, 1), INT64_MAX - 2);
  out = fold(FT_OP_DIV, NULL, in, FT_I64, (ft_shape){1, {2}});
  cr_assert_eq(ft_tensor_get_i64(&out, 1), INT64_MAX / 2);
}

Test(graph_fold, unsigned_64_bit_integers_keep_all_their_bits) {
  const uint64_t a[2] = {UINT64_MAX, 1}, b[2] = {3, 3};
  ft_tensor in[2] = {tensor(FT_U64, (ft_shape){1, {2}}, a),
                     tensor(FT_U64, (ft_shape){1, {2}}, b)};
  ft_tensor out = fold(FT_OP_DIV, NULL, in, FT_U64, (ft_shape){1, {2}});
  uint64_t got[2];
  memcpy(got, out.data, sizeof got);
  cr_assert(got[0] == UINT64_MAX / 3 && got[1] == 0);
  out = fold(FT_OP_MAX, NULL, in, FT_U64, (ft_shape){1, {2}});
  memcpy(got, out.data, sizeof got);
  cr_assert(got[0] == UINT64_MAX && got[1] == 3);
}

Test(graph_fold, floats_are_rounded_once) {
  const float a[3] = {1, 1e38f, NAN}, b[1] = {3};
  ft_tensor in[2] = {tensor(FT_F32, (ft_shape){1, {3}}, a),
                     tensor(FT_F32, (ft_shape){0}, b)};
  ft_tensor out = fold(FT_OP_DIV, NULL, in, FT_F32, (ft_shape){1, {3}});
  cr_assert_eq((float)ft_tensor_get_f64(&out, 0), (float)(1.0 / 3));
  cr_assert(isnan(ft_tensor_get_f64(&out, 2)));
  out = fold(FT_OP_MUL, NULL, (ft_tensor[]){in[0], in[0]}, FT_F32, (ft_shape){1, {3}});
  cr_assert(isinf(ft_tensor_get_f64(&out, 1)));
}

Test(graph_fold, doubles_fold_in_double_precision) {
  const double a[2] = {2, 1e300};
  ft_tensor in = tensor(FT_F64, (ft_shape){1, {2}}, a);
  ft_tensor out = fold(FT_OP_SQRT, NULL, &in, FT_F64, (ft_shape){1, {2}});
  cr_assert_eq(ft_tensor_get_f64(&out, 0), sqrt(2.0));
  cr_assert_eq(ft_tensor_get_f64(&out, 1), 1e150);
}

Test(graph_fold, casts_between_every_pair_of_dtypes) {
  for (ft_dtype from = 0; from < FT_DTYPE_COUNT; from++)
    for (ft_dtype to = 0; to < FT_DTYPE_COUNT; to++) {
      uint8_t bytes[16] = {0};
      ft_element_set_f64(from, bytes, 0, 1);
      ft_tensor in = tensor(from, (ft_shape){1, {2}}, bytes);
      ft_attr attr = {.to = to};
      ft_tensor out = fold(FT_OP_CAST, &attr, &in, to, (ft_shape){1, {2}});
      cr_assert_eq(ft_tensor_get_f64(&out, 0), 1, "%s to %s", ft_dtype_text(from),
                   ft_dtype_text(to));
      cr_assert_eq(ft_tensor_get_f64(&out, 1), 0);
    }
}

Test(graph_fold, remaps_and_reductions) {
  const int32_t a[6] = {1, 2, 3, 4, 5, 6};
  ft_tensor in = tensor(FT_I32, (ft_shape){2, {2, 3}}, a);
  ft_attr attr = {.perm = {1, 0}};
  ft_tensor out = fold(FT_OP_TRANSPOSE, &attr, &in, FT_I32, (ft_shape){2, {3, 2}});
  static const int64_t want[6] = {1, 4, 2, 5, 3, 6};
  for (int i = 0; i < 6; i++) cr_assert_eq(ft_tensor_get_i64(&out, i), want[i]);
  attr = (ft_attr){.axes = 1};
  out = fold(FT_OP_REDUCE_PROD, &attr, &in, FT_I32, (ft_shape){2, {1, 3}});
  cr_assert_eq(ft_tensor_get_i64(&out, 2), 18);
  attr = (ft_attr){.shape = {3, {2, 2, 3}}};
  out = fold(FT_OP_BROADCAST, &attr, &in, FT_I32, (ft_shape){3, {2, 2, 3}});
  cr_assert_eq(ft_tensor_get_i64(&out, 11), 6);
}

Test(graph_fold, tensors_without_elements_fold) {
  ft_tensor in = tensor(FT_F32, (ft_shape){2, {0, 3}}, NULL);
  ft_tensor out = fold(FT_OP_EXP, NULL, &in, FT_F32, (ft_shape){2, {0, 3}});
  cr_assert_eq(out.bytes, 0);
  ft_attr attr = {.axes = 1};
  out = fold(FT_OP_REDUCE_MAX, &attr, &in, FT_F32, (ft_shape){2, {1, 3}});
  cr_assert_eq(ft_tensor_get_f64(&out, 2), -INFINITY);
}

Test(graph_fold, where_picks_by_its_condition) {
  const uint8_t c[2] = {1, 0};
  const float a[2] = {1, 2}, b[2] = {3, 4};
  ft_tensor in[3] = {tensor(FT_BOOL, (ft_shape){1, {2}}, c),
                     tensor(FT_F32, (ft_shape){1, {2}}, a),
                     tensor(FT_F32, (ft_shape){1, {2}}, b)};
  ft_tensor out = fold(FT_OP_WHERE, NULL, in, FT_F32, (ft_shape){1, {2}});
  cr_assert(ft_tensor_get_f64(&out, 0) == 1 && ft_tensor_get_f64(&out, 1) == 4);
}

Test(graph_fold, what_has_no_meaning_is_unsupported) {
  const int32_t a[1] = {1};
  ft_tensor in = tensor(FT_I32, (ft_shape){1, {1}}, a), out;
  ft_error error;
  ft_shape shape = {1, {1}};
  cr_assert_eq(
      ft_fold_primitive(FT_OP_EXP, NULL, &in, 1, FT_I32, &shape, arena, &out, &error),
      FT_UNSUPPORTED);
  cr_assert(strstr(error.text, "exp") && strstr(error.text, "i32"), "%s", error.text);
}

Test(graph_fold, the_builder_keeps_no_primitive_of_known_constants) {
  ft_graph *graph;
  ft_error error;
  ft_shape shape = {1, {2}};
  const float a[2] = {0, 1};
  ft_tensor t = tensor(FT_F32, shape, a);
  uint32_t x, y;
  cr_assert_eq(ft_graph_create(arena, "g", &graph, &error), FT_OK);
  cr_assert_eq(ft_graph_begin_operator(graph, "n", "T", "", &error), FT_OK);
  cr_assert_eq(ft_graph_add_constant(graph, "a", &t, &x, &error), FT_OK);
  cr_assert_eq(ft_graph_emit(graph, FT_OP_EXP, &x, 1, NULL, &y, &error), FT_OK);
  cr_assert_eq(ft_graph_add_output(graph, "y", y, &error), FT_OK);
  cr_assert_eq(ft_graph_finish(graph, &error), FT_OK);
  cr_assert_eq(graph->primitive_count, 0);
  const ft_tensor *folded = graph->value[graph->output[0].value].data;
  cr_assert_not_null(folded);
  cr_assert_eq((float)ft_tensor_get_f64(folded, 1), (float)exp(1.0));
}
