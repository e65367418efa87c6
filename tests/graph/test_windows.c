// WINDOW_MAX, WINDOW_SUM, MATMUL, CONV: values by hand and what is special.
#include <float.h>

#include "one_primitive.h"
#include "tests/support/graphs.h"

static ft_arena *arena;
static one_primitive o;
static void start(void) {
  arena = ft_arena_create(ft_allocator_system());
  o = one_open(arena);
}
static void stop(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_windows, .init = start, .fini = stop);

#define WANT(...) ((const double[]){__VA_ARGS__})

// ---- windows --------------------------------------------------------------------

Test(graph_windows, the_padding_of_a_window_is_not_there) {
  ft_attr attr = {.window = {3},
                  .stride = {1},
                  .dilation = {1},
                  .start = {1},
                  .shape = SHAPE(1, 1, 4)};
  one_input(&o, FT_F32, SHAPE(1, 1, 4), WANT(-1, -2, -3, -4));
  ft_reference y = one_run(&o, FT_OP_WINDOW_MAX, &attr);
  one_expect(&y, SHAPE(1, 1, 4), WANT(-1, -1, -2, -3));
  o = one_open(arena);
  one_input(&o, FT_F32, SHAPE(1, 1, 4), WANT(-1, -2, -3, -4));
  y = one_run(&o, FT_OP_WINDOW_SUM, &attr);
  one_expect(&y, SHAPE(1, 1, 4), WANT(-3, -6, -9, -7));
}

Test(graph_windows, an_empty_window_gives_minus_infinity_the_lowest_or_zero) {
  ft_attr attr = {.window = {1},
                  .stride = {3},
                  .dilation = {1},
                  .start = {1},
                  .shape = SHAPE(1, 1, 3)};
  one_input(&o, FT_F32, SHAPE(1, 1, 3), WANT(1, 2, 3));
  ft_reference y = one_run(&o, FT_OP_WINDOW_MAX, &attr);
  one_expect(&y, SHAPE(1, 1, 3), WANT(-INFINITY, 3, -INFINITY));
  o = one_open(arena);
  one_input(&o, FT_I32, SHAPE(1, 1, 3), WANT(1, 2, 3));
  y = one_run(&o, FT_OP_WINDOW_MAX, &attr);
  one_expect(&y, SHAPE(1, 1, 3), WANT(INT32_MIN, 3, INT32_MIN));
  o = one_open(arena);
  one_input(&o, FT_F32, SHAPE(1, 1, 3), WANT(1, 2, 3));
  y = one_run(&o, FT_OP_WINDOW_SUM, &attr);
  one_expect(&y, SHAPE(1, 1, 3), WANT(0, 3, 0));
}

Test(graph_windows, a_nan_in_the_window_is_the_maximum) {
  ft_attr attr = {
      .window = {2, 2}, .stride = {2, 1}, .dilation = {1, 2}, .shape = SHAPE(1, 1, 1, 2)};
  one_input(&o, FT_F32, SHAPE(1, 1, 2, 4), WANT(1, 2, 3, 4, 5, NAN, 7, 8));
  ft_reference y = one_run(&o, FT_OP_WINDOW_MAX, &attr);
  one_expect(&y, SHAPE(1, 1, 1, 2), WANT(7, NAN));
}

Test(graph_windows, a_window_without_spatial_axes_is_each_element_itself) {
  one_input(&o, FT_F32, SHAPE(2, 2), WANT(1, 2, 3, 4));
  ft_reference y = one_run(&o, FT_OP_WINDOW_SUM, &(ft_attr){.shape = SHAPE(2, 2)});
  one_expect(&y, SHAPE(2, 2), WANT(1, 2, 3, 4));
}

// ---- matmul ---------------------------------------------------------------------

Test(graph_windows, a_matmul_broadcasts_its_batches) {
  one_input(&o, FT_F32, SHAPE(2, 1, 1, 2), WANT(1, 2, 3, 4));
  one_input(&o, FT_F32, SHAPE(2, 2, 1), WANT(1, 10, 100, 1000));
  ft_reference y = one_run(&o, FT_OP_MATMUL, NULL);
  one_expect(&y, SHAPE(2, 2, 1, 1), WANT(21, 2100, 43, 4300));
}

Test(graph_windows, a_matmul_over_nothing_is_zero_for_certain) {
  one_input(&o, FT_F32, SHAPE(2, 0), NULL);
  one_input(&o, FT_F32, SHAPE(0, 3), NULL);
  ft_reference y = one_run(&o, FT_OP_MATMUL, NULL);
  one_expect(&y, SHAPE(2, 3), WANT(0, 0, 0, 0, 0, 0));
  cr_assert_eq(y.scale[5], 0);
}

Test(graph_windows, a_matmul_without_elements_is_empty) {
  one_input(&o, FT_F32, SHAPE(0, 2, 3), NULL);
  one_input(&o, FT_F32, SHAPE(3, 0), NULL);
  ft_reference y = one_run(&o, FT_OP_MATMUL, NULL);
  one_expect(&y, SHAPE(0, 2, 0), NULL);
}

Test(graph_windows, a_matmul_of_integers_wraps_in_its_dtype) {
  one_input(&o, FT_I32, SHAPE(1, 2), WANT(65536, 3));
  one_input(&o, FT_I32, SHAPE(2, 2), WANT(65536, 2, 5, -7));
  ft_reference y = one_run(&o, FT_OP_MATMUL, NULL);
  one_expect(&y, SHAPE(1, 2), WANT(15, 131051));
  o = one_open(arena);
  one_input(&o, FT_I64, SHAPE(1, 2), WANT(4503599627370497, 1));
  one_input(&o, FT_I64, SHAPE(2, 1), WANT(3, 1));
  y = one_run(&o, FT_OP_MATMUL, NULL);
  cr_assert_eq(y.integer[0], INT64_C(13510798882111492));
}

Test(graph_windows, zero_times_infinity_is_nan_in_a_matmul) {
  one_input(&o, FT_F32, SHAPE(1, 3), WANT(0, 1, 2));
  one_input(&o, FT_F32, SHAPE(3, 3),
            WANT(INFINITY, 1, NAN, 1, INFINITY, 1, 1, -INFINITY, 1));
  ft_reference y = one_run(&o, FT_OP_MATMUL, NULL);
  one_expect(&y, SHAPE(1, 3), WANT(NAN, NAN, NAN));
  for (int i = 0; i < 3; i++) cr_assert_eq(y.scale[i], 0, "element %d is certain", i);
}

Test(graph_windows, an_infinite_term_makes_an_infinite_sum) {
  one_input(&o, FT_F32, SHAPE(1, 2), WANT(2, -1));
  one_input(&o, FT_F32, SHAPE(2, 2), WANT(INFINITY, 5, 3, INFINITY));
  ft_reference y = one_run(&o, FT_OP_MATMUL, NULL);
  one_expect(&y, SHAPE(1, 2), WANT(INFINITY, -INFINITY));
  cr_assert_eq(y.scale[0], 0);
}

Test(graph_windows, terms_of_one_sign_overflow_for_certain_and_mixed_ones_perhaps) {
  one_input(&o, FT_F32, SHAPE(1, 3), WANT(3e38, 3e38, 1));
  one_input(&o, FT_F32, SHAPE(3, 2), WANT(1, 1, 1, -1, 0, 2e38));
  ft_reference y = one_run(&o, FT_OP_MATMUL, NULL);
  cr_assert_eq(y.value[0], INFINITY);
  cr_assert(isfinite(y.scale[0]));
  cr_assert(isinf(y.scale[1]), "3e38 + 2e38 comes first in some order");
}

// In double precision the small terms leave no trace beside 9e76: the sum of all terms
// and that of their sizes are equal.
Test(graph_windows, small_terms_of_the_other_sign_still_overflow_in_some_order) {
  one_input(&o, FT_F32, SHAPE(1, 3), WANT(3e38, 3e38, 3e38));
  one_input(&o, FT_F32, SHAPE(3, 2), WANT(3e38, 3e38, -1, 1, -1, 1));
  ft_reference y = one_run(&o, FT_OP_MATMUL, NULL);
  cr_assert(isinf(y.scale[0]), "-6e38 comes first in some order: inf - inf");
  cr_assert_eq(y.value[1], INFINITY);
  cr_assert(isfinite(y.scale[1]));
}

// ---- conv -----------------------------------------------------------------------

Test(graph_windows, a_conv_reads_zeros_that_are_not_there_around_its_input) {
  one_input(&o, FT_F32, SHAPE(1, 1, 3), WANT(1, 2, 3));
  one_input(&o, FT_F32, SHAPE(2, 1, 3), WANT(1, 10, 100, 0, 0, 1));
  ft_attr attr = {
      .groups = 1, .stride = {1}, .dilation = {1}, .start = {1}, .shape = SHAPE(1, 2, 4)};
  ft_reference y = one_run(&o, FT_OP_CONV, &attr);
  one_expect(&y, SHAPE(1, 2, 4), WANT(210, 321, 32, 3, 2, 3, 0, 0));
}

Test(graph_windows, an_infinite_weight_over_the_padding_adds_nothing) {
  one_input(&o, FT_F32, SHAPE(1, 1, 2), WANT(1, 2));
  one_input(&o, FT_F32, SHAPE(1, 1, 2), WANT(INFINITY, 1));
  ft_attr attr = {
      .groups = 1, .stride = {1}, .dilation = {1}, .start = {1}, .shape = SHAPE(1, 1, 3)};
  ft_reference y = one_run(&o, FT_OP_CONV, &attr);
  one_expect(&y, SHAPE(1, 1, 3), WANT(1, INFINITY, INFINITY));
  cr_assert_gt(y.scale[0], 0);
}

Test(graph_windows, a_grouped_dilated_conv_with_uneven_pads) {
  one_input(&o, FT_F32, SHAPE(1, 4, 2, 3), NULL);
  one_input(&o, FT_F32, SHAPE(2, 2, 1, 2), WANT(1, 1, 2, 2, 1, -1, 0, 3));
  ft_attr attr = {.groups = 2,
                  .stride = {1, 2},
                  .dilation = {1, 2},
                  .start = {0, 1},
                  .shape = SHAPE(1, 2, 2, 2)};
  ft_reference y = one_run(&o, FT_OP_CONV, &attr);
  // x positions -1, 1 and 1, 3: only 1 is inside.
  one_expect(&y, SHAPE(1, 2, 2, 2), WANT(15, 15, 24, 24, 44, 13, 50, 16));
}

Test(graph_windows, a_conv_of_points_is_a_matmul) {
  one_input(&o, FT_F32, SHAPE(2, 3), WANT(1, 2, 3, 4, 5, 6));
  one_input(&o, FT_F32, SHAPE(2, 3), WANT(1, 1, 1, 1, 0, -1));
  ft_reference y = one_run(&o, FT_OP_CONV, &(ft_attr){.groups = 1, .shape = SHAPE(2, 2)});
  one_expect(&y, SHAPE(2, 2), WANT(6, -2, 15, -2));
}

Test(graph_windows, a_conv_without_channels_is_zero) {
  one_input(&o, FT_F32, SHAPE(1, 0, 2), NULL);
  one_input(&o, FT_F32, SHAPE(1, 0, 1), NULL);
  ft_attr attr = {.groups = 1, .stride = {1}, .dilation = {1}, .shape = SHAPE(1, 1, 2)};
  ft_reference y = one_run(&o, FT_OP_CONV, &attr);
  one_expect(&y, SHAPE(1, 1, 2), WANT(0, 0));
}

Test(graph_windows, a_conv_of_integers_is_exact) {
  one_input(&o, FT_I64, SHAPE(1, 1, 3), WANT(4503599627370497, 2, 3));
  one_input(&o, FT_I64, SHAPE(1, 1, 2), WANT(3, 1));
  ft_attr attr = {
      .groups = 1, .stride = {1}, .dilation = {1}, .start = {1}, .shape = SHAPE(1, 1, 3)};
  ft_reference y = one_run(&o, FT_OP_CONV, &attr);
  cr_assert_eq(y.integer[0], INT64_C(4503599627370497));
  cr_assert_eq(y.integer[1], INT64_C(13510798882111493));
  cr_assert_eq(y.integer[2], 9);
}
