#include "graph/tensor.h"

#include <math.h>

#include "tests/support/graphs.h"

Test(graph_tensor, knows_each_dtype_by_its_onnx_number_and_its_text) {
  cr_assert_eq(ft_dtype_from_onnx(1), FT_F32);
  cr_assert_eq(ft_dtype_from_onnx(9), FT_BOOL);
  cr_assert_eq(ft_dtype_from_onnx(16), FT_BF16);
  cr_assert_eq(ft_dtype_from_onnx(8), FT_DTYPE_COUNT, "strings are no element type");
  cr_assert_eq(ft_dtype_from_onnx(-1), FT_DTYPE_COUNT);
  cr_assert_eq(ft_dtype_from_text("f99"), FT_DTYPE_COUNT);
  for (int i = 0; i < FT_DTYPE_COUNT; i++)
    cr_assert_eq(ft_dtype_from_text(ft_dtype_text((ft_dtype)i)), (ft_dtype)i);
  cr_assert_eq(ft_dtype_bytes(FT_F64), 8);
  cr_assert_eq(ft_dtype_bytes(FT_BOOL), 1);
  cr_assert(ft_dtype_is_float(FT_BF16) && !ft_dtype_is_float(FT_I64));
}

Test(graph_tensor, counts_elements_and_refuses_more_than_2_to_the_62) {
  ft_shape scalar = {0}, empty = SHAPE(3, 0, 5),
           most = SHAPE(INT64_C(1) << 31, INT64_C(1) << 31);
  cr_assert_eq(ft_shape_elements(&scalar), 1);
  cr_assert_eq(ft_shape_elements(&empty), 0);
  cr_assert_eq(ft_shape_elements(&most), INT64_C(1) << 62);
  ft_shape over = SHAPE(INT64_C(1) << 31, INT64_C(1) << 31, 2),
           wraps = SHAPE(INT64_MAX, INT64_MAX);
  cr_assert_eq(ft_shape_elements(&over), -1);
  cr_assert_eq(ft_shape_elements(&wraps), -1);
}

Test(graph_tensor, an_empty_shape_whose_strides_would_overflow_is_refused_too) {
  ft_shape shape = SHAPE(0, INT64_C(1) << 40, INT64_C(1) << 40);
  cr_assert_eq(ft_shape_elements(&shape), -1);
}

Test(graph_tensor, broadcasts_as_numpy_does) {
  ft_error error;
  ft_shape out, a = SHAPE(4, 1, 8), b = SHAPE(3, 1), want = SHAPE(4, 3, 8), scalar = {0};
  cr_assert_eq(ft_shape_broadcast(&a, &b, &out, &error), FT_OK);
  cr_assert(ft_shape_equal(&out, &want));
  cr_assert_eq(ft_shape_broadcast(&scalar, &a, &out, &error), FT_OK);
  cr_assert(ft_shape_equal(&out, &a));
  ft_shape one = SHAPE(1), none = SHAPE(0);
  cr_assert_eq(ft_shape_broadcast(&one, &none, &out, &error), FT_OK);
  cr_assert(ft_shape_equal(&out, &none), "1 stretches to 0");
}

Test(graph_tensor, a_failed_broadcast_names_both_shapes) {
  ft_error error;
  ft_shape out, a = SHAPE(4, 2), b = SHAPE(4, 3);
  cr_assert_eq(ft_shape_broadcast(&a, &b, &out, &error), FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "4x2") && strstr(error.text, "4x3"), "%s", error.text);
}

Test(graph_tensor, strides_are_row_major_and_text_reads_as_dims) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_shape shape = SHAPE(2, 3, 4), scalar = {0};
  int64_t stride[FT_MAX_RANK];
  ft_shape_strides(&shape, stride);
  cr_assert(stride[0] == 12 && stride[1] == 4 && stride[2] == 1);
  cr_assert_str_eq(ft_shape_text(&shape, arena), "2x3x4");
  cr_assert_str_eq(ft_shape_text(&scalar, arena), "scalar");
  ft_arena_destroy(arena);
}

static void round_trip_all_codes(ft_dtype dtype) {
  for (unsigned code = 0; code < 65536; code++) {
    uint16_t in = (uint16_t)code, out;
    ft_tensor tensor = {dtype, {0}, &in, sizeof in};
    double value = ft_tensor_get_f64(&tensor, 0);
    ft_element_set_f64(dtype, &out, 0, value);
    if (isnan(value)) {
      ft_tensor again = {dtype, {0}, &out, sizeof out};
      cr_assert(isnan(ft_tensor_get_f64(&again, 0)), "code %x", code);
    } else {
      cr_assert_eq(out, in, "code %x is %g", code, value);
    }
  }
}

Test(graph_tensor, every_f16_and_bf16_code_survives_a_round_trip) {
  round_trip_all_codes(FT_F16);
  round_trip_all_codes(FT_BF16);
}

static double stored(ft_dtype dtype, double value) {
  uint64_t room = 0;
  ft_element_set_f64(dtype, &room, 0, value);
  ft_tensor tensor = {dtype, {0}, &room, ft_dtype_bytes(dtype)};
  return ft_tensor_get_f64(&tensor, 0);
}

Test(graph_tensor, narrow_floats_round_once_half_to_even) {
  cr_assert_eq(stored(FT_F16, 65519.999), 65504.0);
  cr_assert_eq(stored(FT_F16, 65520.0), (double)INFINITY);
  cr_assert_eq(stored(FT_F16, -1e300), (double)-INFINITY);
  cr_assert_eq(stored(FT_F16, 1 + 0x1p-11), 1.0);
  cr_assert_eq(stored(FT_F16, 1 + 3 * 0x1p-11), 1 + 0x1p-9);
  // Through float this would be a tie and round down: double rounding.
  cr_assert_eq(stored(FT_F16, 1 + 0x1p-11 + 0x1p-40), 1 + 0x1p-10);
  cr_assert_eq(stored(FT_F16, 0x1p-24), 0x1p-24);
  cr_assert_eq(stored(FT_F16, 0x1p-25), 0.0);
  cr_assert_eq(stored(FT_F16, 0x1.8p-25), 0x1p-24);
  cr_assert(signbit(stored(FT_F16, -1e-320)), "a sign survives underflow");
  cr_assert_eq(stored(FT_BF16, 1 + 0x1p-8), 1.0);
  cr_assert_eq(stored(FT_BF16, 1 + 0x1p-8 + 0x1p-50), 1 + 0x1p-7);
  cr_assert_eq(stored(FT_BF16, 3.4e38), (double)INFINITY);
  cr_assert(isnan(stored(FT_BF16, (double)NAN)));
}

Test(graph_tensor, integers_saturate_and_nan_gives_zero) {
  cr_assert_eq(stored(FT_I8, 1000), 127);
  cr_assert_eq(stored(FT_I8, -1000), -128);
  cr_assert_eq(stored(FT_U8, -1), 0);
  cr_assert_eq(stored(FT_U64, 1e30), 0x1p64);
  cr_assert_eq(stored(FT_I64, (double)NAN), 0);
  cr_assert_eq(stored(FT_U64, (double)NAN), 0);
  cr_assert_eq(stored(FT_I32, 2.5), 2);
  cr_assert_eq(stored(FT_I32, 3.5), 4);
  cr_assert_eq(stored(FT_BOOL, 0.25), 1);
  uint64_t big = UINT64_MAX;
  ft_tensor tensor = {FT_U64, {0}, &big, 8};
  cr_assert_eq(ft_tensor_get_i64(&tensor, 0), INT64_MAX);
  double values[3] = {(double)NAN, 1e300, -2.9};
  tensor = (ft_tensor){FT_F64, SHAPE(3), values, sizeof values};
  cr_assert_eq(ft_tensor_get_i64(&tensor, 0), 0);
  cr_assert_eq(ft_tensor_get_i64(&tensor, 1), INT64_MAX);
  cr_assert_eq(ft_tensor_get_i64(&tensor, 2), -2);
}

Test(graph_tensor, an_int64_becomes_the_nearest_float_in_one_rounding) {
  float out;
  ft_element_set_i64(FT_F32, &out, 0, (INT64_C(1) << 60) + (INT64_C(1) << 36) + 1);
  cr_assert_eq(out, 0x1p60f + 0x1p37f, "a double between would round to even first");
}

Test(graph_tensor, reads_elements_at_any_address) {
  unsigned char raw[9] = {0};
  float value = 1.5f;
  memcpy(raw + 1, &value, sizeof value);
  ft_tensor tensor = {FT_F32, SHAPE(2), raw + 1, 8};
  cr_assert_eq(ft_tensor_get_f64(&tensor, 0), 1.5);
  cr_assert_eq(ft_tensor_get_f64(&tensor, 1), 0.0);
}

Test(graph_tensor, alloc_gives_zeroed_aligned_data_and_refuses_what_cannot_be) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_error error;
  ft_tensor tensor;
  void *data;
  ft_shape shape = SHAPE(3, 5), huge = SHAPE(INT64_C(1) << 62), empty = SHAPE(0);
  cr_assert_eq(ft_tensor_alloc(FT_F32, &shape, arena, &tensor, &data, &error), FT_OK);
  cr_assert_eq(tensor.bytes, 60);
  cr_assert_eq((uintptr_t)data % 64, 0);
  cr_assert_eq(ft_tensor_get_f64(&tensor, 14), 0);
  cr_assert_eq(ft_tensor_alloc(FT_F64, &huge, arena, &tensor, &data, &error),
               FT_OUT_OF_MEMORY);
  cr_assert_eq(ft_tensor_alloc(FT_F64, &empty, arena, &tensor, &data, &error), FT_OK);
  cr_assert(tensor.bytes == 0 && tensor.data);
  ft_arena_destroy(arena);
}
