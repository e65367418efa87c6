#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#include "graph/interpreter.h"
#include "graph/semantics.h"

static ft_comparison one(double actual, double value, double scale) {
  ft_comparison c;
  ft_comparison_init(&c);
  ft_compare_float(FT_F32, 7, actual, value, scale, &c);
  return c;
}

Test(graph_compare, starts_with_nothing_compared) {
  ft_comparison c;
  ft_comparison_init(&c);
  cr_assert(c.compared == 0 && c.worst_index == -1 && c.max_ratio == 0);
}

Test(graph_compare, two_nans_are_equal_and_one_is_wrong) {
  cr_assert_eq(one(NAN, NAN, 0).max_ratio, 0);
  cr_assert(isinf(one(NAN, 1, 1e9).max_ratio));
  cr_assert(isinf(one(1, NAN, 0).max_ratio));
  cr_assert_eq(one(NAN, 1, 1e9).worst_index, 7);
}

Test(graph_compare, infinities_must_have_the_same_sign) {
  cr_assert_eq(one(INFINITY, INFINITY, 1).max_ratio, 0);
  cr_assert(isinf(one(-INFINITY, INFINITY, 1).max_ratio));
  cr_assert(isinf(one((double)FLT_MAX, INFINITY, 1).max_ratio));
  cr_assert(isinf(one(INFINITY, (double)FLT_MAX, 1e30).max_ratio));
}

Test(graph_compare, an_infinite_scale_accepts_anything_and_is_never_the_worst) {
  ft_comparison c = one(NAN, 3, INFINITY);
  cr_assert(c.max_ratio == 0 && c.max_abs_error == 0 && c.worst_index == -1);
  cr_assert_eq(c.compared, 1);
}

Test(graph_compare, the_ratio_is_error_over_tolerance) {
  double tolerance = 8 * 0x1p-24 * 2 + (double)FLT_MIN;
  ft_comparison c = one(1 + 0x1p-20, 1, 2);
  cr_assert_float_eq(c.max_ratio, 0x1p-20 / tolerance, 1e-12);
  cr_assert_eq(c.max_abs_error, 0x1p-20);
  cr_assert_eq(one(-0.0, 0.0, 0).max_ratio, 0, "the sign of zero is not compared");
  cr_assert_leq(one((double)FLT_MIN, 0, 0).max_ratio, 1);
  cr_assert_gt(one(2.1 * (double)FLT_MIN, 0, 0).max_ratio, 1);
}

Test(graph_compare, the_value_is_rounded_to_the_dtype_first) {
  cr_assert_eq(one((double)0.1f, 0.1, 0).max_ratio, 0);
  ft_comparison c;
  ft_comparison_init(&c);
  ft_compare_float(FT_BF16, 0, 1, 1 + 0x1p-10, 0, &c);
  cr_assert_eq(c.max_ratio, 0);
}

Test(graph_compare, keeps_the_worst_of_many) {
  ft_comparison c;
  ft_comparison_init(&c);
  ft_compare_float(FT_F32, 0, 1, 1, 1, &c);
  ft_compare_float(FT_F32, 1, 1 + 1e-3, 1, 1, &c);
  ft_compare_float(FT_F32, 2, 1000 + 1e-2, 1000, 1000, &c);
  ft_compare_float(FT_F32, 3, 1, 1, 1, &c);
  cr_assert_eq(c.worst_index, 1);
  cr_assert_float_eq(c.max_abs_error, 1e-2, 1e-9);
  cr_assert(c.worst_value == 1 + 1e-3 && c.worst_expected == 1 && c.compared == 4);
}

Test(graph_compare, integers_are_equal_or_wrong) {
  ft_comparison c;
  ft_comparison_init(&c);
  ft_compare_integer(0, 5, 5, &c);
  cr_assert_eq(c.max_ratio, 0);
  ft_compare_integer(1, INT64_MAX - 1, INT64_MAX, &c);
  cr_assert(isinf(c.max_ratio) && c.worst_index == 1 && c.max_abs_error >= 1);
}

Test(graph_compare, whole_tensors_skip_uncertain_bools) {
  static const uint8_t bytes[3] = {1, 0, 1};
  ft_tensor actual = {FT_BOOL, {1, {3}}, bytes, 3};
  int64_t integer[3] = {1, 1, 1};
  double scale[3] = {0, INFINITY, 0};
  ft_reference reference = {
      .dtype = FT_BOOL, .shape = {1, {3}}, .integer = integer, .scale = scale};
  ft_comparison c;
  ft_comparison_init(&c);
  ft_compare_tensor(&actual, &reference, &c);
  cr_assert(c.compared == 3 && c.max_ratio == 0 && c.worst_index == 0);
  scale[1] = 0;
  ft_comparison_init(&c);
  ft_compare_tensor(&actual, &reference, &c);
  cr_assert(isinf(c.max_ratio) && c.worst_index == 1);
}

Test(graph_compare, unsigned_64_bit_tensors_compare_by_their_bits) {
  static const uint64_t data[2] = {UINT64_MAX, UINT64_MAX - 1};
  ft_tensor actual = {FT_U64, {1, {2}}, data, 16};
  int64_t integer[2] = {-1, -1};
  ft_reference reference = {.dtype = FT_U64, .shape = {1, {2}}, .integer = integer};
  ft_comparison c;
  ft_comparison_init(&c);
  ft_compare_tensor(&actual, &reference, &c);
  cr_assert(isinf(c.max_ratio) && c.worst_index == 1);
}

Test(graph_compare, what_has_no_bound_is_counted_and_held_against_the_rms) {
  ft_comparison c;
  ft_comparison_init(&c);
  for (int i = 0; i < 4; i++) ft_compare_float(FT_F32, i, 2, 2, (double)INFINITY, &c);
  cr_assert_eq(c.uncertain, 4);
  cr_assert_eq(ft_comparison_drift(&c), 0);
  ft_compare_float(FT_F32, 4, 2.5, 2, (double)INFINITY, &c);
  cr_assert_eq(ft_comparison_drift(&c), 0.25);
  cr_assert_eq(c.max_ratio, 0, "an uncertain element is never the worst");
  ft_comparison_init(&c);
  ft_compare_float(FT_F32, 0, 1, 0, (double)INFINITY, &c);
  cr_assert(isinf(ft_comparison_drift(&c)), "anything is far from a reference of zeros");
}
