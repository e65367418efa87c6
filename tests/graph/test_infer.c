// The shapes, refusals, identities and common subexpressions of the primitives with
// attributes of their own.
#include "one_primitive.h"
#include "tests/support/graphs.h"

static ft_arena *arena;
static one_primitive o;
static uint32_t y;
static void start(void) {
  arena = ft_arena_create(ft_allocator_system());
  o = one_open(arena);
}
static void stop(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_infer, .init = start, .fini = stop);

static void input(ft_dtype dtype, ft_shape shape) {
  cr_assert_eq(
      ft_graph_add_input(o.graph, "x", dtype, &shape, &o.value[o.count++], &o.error),
      FT_OK);
}
static void floats(ft_shape shape) {
  input(FT_F32, shape);
}

// |op| on all inputs is refused with a text that has |says|; starts anew.
static void refused(ft_op op, ft_attr attr, ft_status status, const char *says) {
  ft_status got = one_emit(&o, op, &attr, &y);
  cr_assert_eq(got, status, "%s: %d", ft_op_describe(op)->name, (int)got);
  cr_assert(strstr(o.error.text, says), "'%s' is not in: %s", says, o.error.text);
}
static void gives(ft_op op, ft_attr attr, ft_shape shape) {
  cr_assert_eq(one_emit(&o, op, &attr, &y), FT_OK, "%s", o.error.text);
  cr_assert(ft_shape_equal(&o.graph->value[y].shape, &shape), "%s",
            ft_shape_text(&o.graph->value[y].shape, arena));
}

// ---- slice ----------------------------------------------------------------------

Test(graph_infer, a_slice_stays_inside) {
  floats(SHAPE(4, 3));
#define SLICE_OF(s0, d0, n0) \
  ((ft_attr){.start = {s0, 0}, .step = {d0, 1}, .shape = SHAPE(n0, 3)})
  gives(FT_OP_SLICE, SLICE_OF(1, 2, 2), SHAPE(2, 3));
  gives(FT_OP_SLICE, SLICE_OF(3, -3, 2), SHAPE(2, 3));
  refused(FT_OP_SLICE, SLICE_OF(1, 2, 3), FT_INVALID_ARGUMENT, "3 elements of axis 0");
  refused(FT_OP_SLICE, SLICE_OF(-1, 1, 2), FT_INVALID_ARGUMENT, "from -1");
  refused(FT_OP_SLICE, SLICE_OF(4, 1, 1), FT_INVALID_ARGUMENT, "from 4");
  refused(FT_OP_SLICE, SLICE_OF(1, -1, 3), FT_INVALID_ARGUMENT, "by -1");
  refused(FT_OP_SLICE, SLICE_OF(1, 0, 1), FT_INVALID_ARGUMENT, "axis 0 is 0");
  refused(FT_OP_SLICE, SLICE_OF(1, INT64_MAX, 3), FT_INVALID_ARGUMENT, "4x3");
  refused(FT_OP_SLICE, SLICE_OF(1, INT64_MIN, 3), FT_INVALID_ARGUMENT, "4x3");
  refused(FT_OP_SLICE, SLICE_OF(0, 1, -1), FT_INVALID_ARGUMENT, "invalid shape");
  refused(FT_OP_SLICE, (ft_attr){.step = {1}, .shape = SHAPE(2)}, FT_INVALID_ARGUMENT,
          "slice of 'x' (f32 4x3) to 2");
}

Test(graph_infer, slices_that_differ_only_in_what_does_not_matter_are_one) {
  floats(SHAPE(4));
  gives(FT_OP_SLICE, (ft_attr){.start = {2}, .step = {7}, .shape = SHAPE(1)}, SHAPE(1));
  uint32_t first = y;
  gives(FT_OP_SLICE, (ft_attr){.start = {2}, .step = {-1, 5}, .shape = SHAPE(1)},
        SHAPE(1));
  cr_assert_eq(y, first);
  gives(FT_OP_SLICE, (ft_attr){.start = {3}, .step = {1}, .shape = SHAPE(1)}, SHAPE(1));
  cr_assert_neq(y, first);
}

Test(graph_infer, a_slice_of_everything_is_the_value_itself_but_not_backwards) {
  floats(SHAPE(4, 1));
  gives(FT_OP_SLICE, (ft_attr){.start = {0, 0}, .step = {1, 1}, .shape = SHAPE(4, 1)},
        SHAPE(4, 1));
  cr_assert_eq(y, o.value[0]);
  gives(FT_OP_SLICE, (ft_attr){.start = {0, 0}, .step = {1, -1}, .shape = SHAPE(4, 1)},
        SHAPE(4, 1));
  cr_assert_eq(y, o.value[0]);
  gives(FT_OP_SLICE, (ft_attr){.start = {3, 0}, .step = {-1, 1}, .shape = SHAPE(4, 1)},
        SHAPE(4, 1));
  cr_assert_neq(y, o.value[0]);
}

// ---- concat ---------------------------------------------------------------------

Test(graph_infer, concat_adds_up_its_axis) {
  floats(SHAPE(2, 3)), floats(SHAPE(2, 0)), floats(SHAPE(2, 4)), floats(SHAPE(2, 1));
  gives(FT_OP_CONCAT, (ft_attr){.axis = 1}, SHAPE(2, 8));
  cr_assert_eq(o.graph->primitive[0].input_count, 4);
  refused(FT_OP_CONCAT, (ft_attr){.axis = 0}, FT_INVALID_ARGUMENT, "f32 2x0");
  refused(FT_OP_CONCAT, (ft_attr){.axis = 2}, FT_INVALID_ARGUMENT, "axis 2");
  o.count = 1;
  gives(FT_OP_CONCAT, (ft_attr){.axis = 1}, SHAPE(2, 3));
  cr_assert_eq(y, o.value[0]);
  o.count = 0;
  refused(FT_OP_CONCAT, (ft_attr){.axis = 1}, FT_INVALID_ARGUMENT, "not 0");
}

Test(graph_infer, concats_of_more_values_are_not_those_of_fewer) {
  floats(SHAPE(2)), floats(SHAPE(2)), floats(SHAPE(2));
  gives(FT_OP_CONCAT, (ft_attr){0}, SHAPE(6));
  uint32_t three = y;
  o.count = 2;
  gives(FT_OP_CONCAT, (ft_attr){0}, SHAPE(4));
  cr_assert_neq(y, three);
  o.count = 3;
  gives(FT_OP_CONCAT, (ft_attr){0}, SHAPE(6));
  cr_assert_eq(y, three);
}

Test(graph_infer, concat_refuses_mixed_dtypes_and_lengths_that_overflow) {
  floats(SHAPE(2)), input(FT_I32, SHAPE(2));
  refused(FT_OP_CONCAT, (ft_attr){0}, FT_INVALID_ARGUMENT, "one dtype");
  o = one_open(arena);
  floats(SHAPE(INT64_C(1) << 60));
  for (int i = 1; i < 8; i++) o.value[o.count++] = o.value[0];
  refused(FT_OP_CONCAT, (ft_attr){0}, FT_REFUSED, "2^63");
}

// ---- pad ------------------------------------------------------------------------

Test(graph_infer, pad_refuses_negative_pads_and_what_is_no_scalar) {
  floats(SHAPE(2, 3)), floats((ft_shape){0});
  gives(FT_OP_PAD, (ft_attr){.start = {1, 0}, .shape = SHAPE(4, 3)}, SHAPE(4, 3));
  refused(FT_OP_PAD, (ft_attr){.start = {-1, 0}, .shape = SHAPE(4, 3)},
          FT_INVALID_ARGUMENT, "-1 before axis 0");
  refused(FT_OP_PAD, (ft_attr){.start = {0, 1}, .shape = SHAPE(2, 3)},
          FT_INVALID_ARGUMENT, "axis 1 of 3");
  refused(FT_OP_PAD, (ft_attr){.start = {0, INT64_MAX}, .shape = SHAPE(2, 9)},
          FT_INVALID_ARGUMENT, "axis 1");
  refused(FT_OP_PAD, (ft_attr){.shape = SHAPE(2)}, FT_INVALID_ARGUMENT, "2x3");
  gives(FT_OP_PAD, (ft_attr){.shape = SHAPE(2, 3)}, SHAPE(2, 3));
  cr_assert_eq(y, o.value[0]);
  o = one_open(arena);
  floats(SHAPE(2)), floats(SHAPE(1));
  refused(FT_OP_PAD, (ft_attr){.shape = SHAPE(3)}, FT_INVALID_ARGUMENT, "no scalar");
}

// ---- gather ---------------------------------------------------------------------

Test(graph_infer, gather_replaces_its_axis_by_the_indices) {
  floats(SHAPE(4, 5, 6)), input(FT_I32, SHAPE(2, 3));
  gives(FT_OP_GATHER, (ft_attr){.axis = 1}, SHAPE(4, 2, 3, 6));
  refused(FT_OP_GATHER, (ft_attr){.axis = 3}, FT_INVALID_ARGUMENT, "axis 3");
  o = one_open(arena);
  floats(SHAPE(4)), floats(SHAPE(2));
  refused(FT_OP_GATHER, (ft_attr){0}, FT_INVALID_ARGUMENT, "i32 or i64");
  o = one_open(arena);
  floats((ft_shape){0}), input(FT_I64, SHAPE(2));
  refused(FT_OP_GATHER, (ft_attr){0}, FT_INVALID_ARGUMENT, "axis 0");
  o = one_open(arena);
  floats(SHAPE(1, 1, 1, 1, 1)), input(FT_I64, SHAPE(1, 1, 1, 1, 1));
  refused(FT_OP_GATHER, (ft_attr){0}, FT_REFUSED, "rank 9");
}

Test(graph_infer, gather_elements_has_the_shape_of_its_indices) {
  floats(SHAPE(4, 5)), input(FT_I64, SHAPE(9, 2));
  gives(FT_OP_GATHER_ELEMENTS, (ft_attr){.axis = 0}, SHAPE(9, 2));
  refused(FT_OP_GATHER_ELEMENTS, (ft_attr){.axis = 1}, FT_INVALID_ARGUMENT, "i64 9x2");
}

// ---- windows and contractions ---------------------------------------------------

Test(graph_infer, a_window_refuses_zero_strides_and_what_overflows) {
  floats(SHAPE(1, 2, 9));
  const ft_attr good = {.window = {3},
                        .stride = {2},
                        .dilation = {1},
                        .start = {1},
                        .shape = SHAPE(1, 2, 5)};
  gives(FT_OP_WINDOW_MAX, good, SHAPE(1, 2, 5));
  ft_attr bad = good;
  bad.stride[0] = 0;
  refused(FT_OP_WINDOW_MAX, bad, FT_INVALID_ARGUMENT, "stride 0");
  bad = good, bad.dilation[0] = -1;
  refused(FT_OP_WINDOW_SUM, bad, FT_INVALID_ARGUMENT, "dilation -1");
  bad = good, bad.start[0] = -1;
  refused(FT_OP_WINDOW_SUM, bad, FT_INVALID_ARGUMENT, "-1 before");
  bad = good, bad.stride[0] = INT64_MAX / 2;
  refused(FT_OP_WINDOW_SUM, bad, FT_REFUSED, "2^60");
  bad = good, bad.window[0] = INT64_MAX, bad.dilation[0] = 2;
  refused(FT_OP_WINDOW_SUM, bad, FT_REFUSED, "2^60");
  bad = good, bad.start[0] = INT64_MAX;
  refused(FT_OP_WINDOW_SUM, bad, FT_REFUSED, "2^60");
  bad = good, bad.shape.dim[1] = 3;
  refused(FT_OP_WINDOW_SUM, bad, FT_INVALID_ARGUMENT, "2 channels");
  bad = good, bad.shape.dim[2] = -2;  // a window larger than the padded input
  refused(FT_OP_WINDOW_SUM, bad, FT_INVALID_ARGUMENT, "invalid shape");
  o = one_open(arena);
  input(FT_BOOL, SHAPE(1, 2, 9));
  refused(FT_OP_WINDOW_MAX, good, FT_INVALID_ARGUMENT, "bool");
}

// 2^24 windows of 2^24 over 8 numbers: 2^48 terms, nearly all of them padding.
Test(graph_infer, windows_of_more_terms_than_any_model_has_are_refused_by_name) {
  floats(SHAPE(1, 1, 8));
  const int64_t many = 1 << 24;
  ft_attr attr = {.window = {many},
                  .stride = {1},
                  .dilation = {1},
                  .start = {many},
                  .shape = SHAPE(1, 1, many)};
  refused(FT_OP_WINDOW_MAX, attr, FT_REFUSED, "window_max");
  refused(FT_OP_WINDOW_SUM, attr, FT_REFUSED, "2^36 terms");
  attr.window[0] = 1 << 12;
  gives(FT_OP_WINDOW_MAX, attr, SHAPE(1, 1, many));
}

Test(graph_infer, a_matmul_needs_matrices_that_fit) {
  floats(SHAPE(2, 1, 3, 4)), floats(SHAPE(5, 4, 6));
  gives(FT_OP_MATMUL, (ft_attr){0}, SHAPE(2, 5, 3, 6));
  o = one_open(arena);
  floats(SHAPE(3, 4)), floats(SHAPE(5, 6));
  refused(FT_OP_MATMUL, (ft_attr){0}, FT_INVALID_ARGUMENT, "f32 5x6");
  o = one_open(arena);
  floats(SHAPE(4)), floats(SHAPE(4, 6));
  refused(FT_OP_MATMUL, (ft_attr){0}, FT_INVALID_ARGUMENT, "matmul of");
  o = one_open(arena);
  floats(SHAPE(2, 3, 4)), floats(SHAPE(3, 4, 6));
  refused(FT_OP_MATMUL, (ft_attr){0}, FT_INVALID_ARGUMENT, "2x3x4");
  o = one_open(arena);
  floats(SHAPE(2, 3)), input(FT_F64, SHAPE(3, 2));
  refused(FT_OP_MATMUL, (ft_attr){0}, FT_INVALID_ARGUMENT, "one dtype");
}

Test(graph_infer, a_conv_needs_channels_that_fit_its_groups) {
  floats(SHAPE(1, 4, 5)), floats(SHAPE(6, 2, 3));
  const ft_attr good = {
      .groups = 2, .stride = {1}, .dilation = {1}, .shape = SHAPE(1, 6, 3)};
  gives(FT_OP_CONV, good, SHAPE(1, 6, 3));
  ft_attr bad = good;
  bad.groups = 1;
  refused(FT_OP_CONV, bad, FT_INVALID_ARGUMENT, "1 groups");
  bad.groups = 0;
  refused(FT_OP_CONV, bad, FT_INVALID_ARGUMENT, "0 groups");
  bad.groups = INT64_MAX;
  refused(FT_OP_CONV, bad, FT_INVALID_ARGUMENT, "groups");
  bad = good, bad.shape.dim[1] = 5;
  refused(FT_OP_CONV, bad, FT_INVALID_ARGUMENT, "6 channels");
  bad = good, bad.stride[0] = 0;
  refused(FT_OP_CONV, bad, FT_INVALID_ARGUMENT, "stride 0");
  o = one_open(arena);
  floats(SHAPE(1, 4, 5)), floats(SHAPE(6, 4));
  refused(FT_OP_CONV, good, FT_INVALID_ARGUMENT, "conv of");
}
