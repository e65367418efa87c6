#include "graph/semantics.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/rng.h"
#include "graph/accumulator.h"

// One element through one primitive.
typedef struct element {
  double value, scale;
  int64_t integer;
} element;

static element run(ft_op op, ft_dtype from, ft_dtype to, const element *in,
                   uint32_t count) {
  ft_elementwise *kernel = ft_semantics_find(op, from);
  cr_assert_not_null(kernel);
  element copy[3], out = {0};
  ft_semantics_call call = {.from = from, .to = to, .count = 1};
  for (uint32_t i = 0; i < count; i++) {
    copy[i] = in[i];
    call.in[i] = (ft_cells){&copy[i].value, &copy[i].scale, &copy[i].integer};
  }
  call.out = (ft_cells){&out.value, &out.scale, &out.integer};
  kernel(&call);
  return out;
}

static element f1(ft_op op, double a, double sa) {
  return run(op, FT_F32, FT_F32, &(element){a, sa, 0}, 1);
}
static element f2(ft_op op, double a, double sa, double b, double sb) {
  element in[2] = {{a, sa, 0}, {b, sb, 0}};
  return run(op, FT_F32, FT_F32, in, 2);
}
static element test2(ft_op op, double a, double sa, double b, double sb) {
  element in[2] = {{a, sa, 0}, {b, sb, 0}};
  return run(op, FT_F32, FT_BOOL, in, 2);
}
static int64_t i2(ft_op op, ft_dtype dtype, int64_t x, int64_t y) {
  element in[2] = {{.integer = x}, {.integer = y}};
  return run(op, dtype, dtype, in, 2).integer;
}
static int64_t i1(ft_op op, ft_dtype dtype, int64_t x) {
  return i2(op, dtype, x, 0);
}

static const double specials[] = {
    0.0,  -0.0,     1.0,       -1.0,     0.5,      2.5,  -2.5,  3.5,     1e-40,    -1e-40,
    1e38, -1e38,    FLT_MAX,   -FLT_MAX, FLT_MIN,  88.0, 89.0,  -104.0,  100.0,    -100.0,
    4.0,  INFINITY, -INFINITY, NAN,      0x1p-149, 7.25, -7.25, 1000000, -1000000, 16.0,
};
enum { SPECIALS = sizeof specials / sizeof specials[0] };

static double reference(ft_op op, double a) {
  switch (op) {
    case FT_OP_COPY:
      return a;
    case FT_OP_NEG:
      return -a;
    case FT_OP_ABS:
      return fabs(a);
    case FT_OP_SQRT:
      return sqrt(a);
    case FT_OP_RECIPROCAL:
      return 1 / a;
    case FT_OP_EXP:
      return exp(a);
    case FT_OP_LOG:
      return log(a);
    case FT_OP_ERF:
      return erf(a);
    case FT_OP_TANH:
      return tanh(a);
    case FT_OP_SIGMOID:
      return 1 / (1 + exp(-a));
    case FT_OP_SIN:
      return sin(a);
    case FT_OP_COS:
      return cos(a);
    case FT_OP_FLOOR:
      return floor(a);
    case FT_OP_CEIL:
      return ceil(a);
    case FT_OP_ROUND:
      return nearbyint(a);
    case FT_OP_SIGN:
      return isnan(a) ? a : (a > 0) - (a < 0);
    default:
      return isnan(a) ? a : fmax(a, 0);  // RELU
  }
}

static bool same(double a, double b) {
  return a == b || (isnan(a) && isnan(b));
}

Test(graph_semantics, unary_floats_agree_with_ieee_single_on_special_values) {
  for (ft_op op = FT_OP_COPY; op <= FT_OP_RELU; op++) {
    if (op == FT_OP_CAST) continue;
    for (int i = 0; i < SPECIALS; i++) {
      double a = (double)(float)specials[i];
      element got = f1(op, a, 0);
      double want = reference(op, a), single = (double)(float)want;
      cr_assert(isfinite(got.scale), "%s(%g)", ft_op_describe(op)->name, a);
      cr_assert(same(ft_dtype_round(FT_F32, got.value), single), "%s(%g) = %g, not %g",
                ft_op_describe(op)->name, a, got.value, single);
    }
  }
}

Test(graph_semantics, nan_passes_min_max_and_relu_and_fails_comparisons) {
  cr_assert(isnan(f2(FT_OP_MIN, NAN, 0, 1, 0).value));
  cr_assert(isnan(f2(FT_OP_MIN, 1, 0, NAN, 0).value));
  cr_assert(isnan(f2(FT_OP_MAX, NAN, 0, 1, 0).value));
  cr_assert(isnan(f2(FT_OP_MAX, 1, 0, NAN, 0).value));
  cr_assert(isnan(f1(FT_OP_RELU, NAN, 0).value));
  cr_assert_eq(f2(FT_OP_MAX, NAN, 0, 1, 0).scale, 0);
  for (ft_op op = FT_OP_EQUAL; op <= FT_OP_LESS_EQUAL; op++) {
    cr_assert_eq(test2(op, NAN, 0, 1, 0).integer, 0);
    cr_assert_eq(test2(op, 1, 5, NAN, 0).integer, 0);
    cr_assert_eq(test2(op, 1, 5, NAN, 0).scale, 0);
  }
}

Test(graph_semantics, overflow_is_infinite_and_certain_only_past_the_error) {
  element e = f2(FT_OP_MUL, 1e30, 0, 1e30, 0);
  cr_assert(isinf(e.value) && e.value > 0 && isfinite(e.scale));
  e = f2(FT_OP_MUL, -1e30, 0, 1e30, 0);
  cr_assert(isinf(e.value) && e.value < 0 && isfinite(e.scale));
  e = f2(FT_OP_ADD, (double)FLT_MAX, 0, (double)FLT_MAX * 0x1p-24 * 0.6, 0);
  cr_assert(isinf(e.scale), "a sum on the edge of the range is uncertain");
  cr_assert(isinf(f1(FT_OP_EXP, 89, 0).value));
  cr_assert(isfinite(f1(FT_OP_EXP, 89, 0).scale));
  cr_assert_eq(f1(FT_OP_EXP, -INFINITY, 0).value, 0);
  cr_assert_eq(f1(FT_OP_TANH, INFINITY, 1).value, 1);
}

Test(graph_semantics, an_overflowed_product_may_come_back_in_a_fused_add) {
  element product = f2(FT_OP_MUL, 1e20, 0, 4e18, 0);  // 4e38
  cr_assert(isinf(product.value));
  element sum = f2(FT_OP_ADD, product.value, product.scale, -3e38, 0);
  cr_assert(isinf(sum.scale));
  sum = f2(FT_OP_ADD, product.value, product.scale, -3.0, 0);
  cr_assert(isfinite(sum.scale));
  sum = f2(FT_OP_ADD, INFINITY, 0, -3e38, 0);
  cr_assert(isfinite(sum.scale), "a given infinity stays");
  sum = f2(FT_OP_SUB, INFINITY, 0, INFINITY, 0);
  cr_assert(isnan(sum.value) && sum.scale == 0);
}

Test(graph_semantics, underflow_adds_the_smallest_normal_number) {
  element e = f2(FT_OP_MUL, 1e-30, 0, 1e-30, 0);
  cr_assert_geq(ft_dtype_tolerance(FT_F32, e.scale), 2 * (double)FLT_MIN);
  e = f1(FT_OP_LOG, e.value, e.scale);
  cr_assert(isinf(e.scale), "the log of what may be 0");
  e = f1(FT_OP_NEG, 1e-40, 0);
  cr_assert_eq(e.scale, 0, "a given denormal is exact");
}

Test(graph_semantics, exact_operands_with_representable_results_have_no_error) {
  cr_assert_eq(f2(FT_OP_MUL, 4, 0, 0.5, 0).scale, 0);
  cr_assert_eq(f2(FT_OP_ADD, 16777215, 0, 1, 0).scale, 0);
  cr_assert_gt(f2(FT_OP_ADD, 16777216, 0, 1, 0).scale, 0);
  cr_assert_gt(f2(FT_OP_DIV, 1, 0, 3, 0).scale, 0);
  cr_assert_eq(f1(FT_OP_FLOOR, 2, 0).scale, 0);
  cr_assert_gt(f2(FT_OP_MUL, 4, 1, 0.5, 0).scale, 2, "an inexact operand stays so");
}

Test(graph_semantics, roundings_near_a_step_cover_both_answers) {
  const double radius = ft_dtype_limits(FT_F32)->radius;
  element e = f1(FT_OP_FLOOR, 2.9999999, 3);
  cr_assert_eq(e.value, 2);
  cr_assert_geq(e.scale * radius, 1 - 1e-9);
  cr_assert_leq(e.scale * radius, 1 + 1e-9);
  cr_assert_eq(f1(FT_OP_FLOOR, 2.9, 3).scale, 0);
  cr_assert_geq(f1(FT_OP_ROUND, 2.4999999, 3).scale * radius, 1 - 1e-9);
  cr_assert_geq(f1(FT_OP_SIGN, 1e-9, 1).scale * radius, 2 - 1e-9);
  cr_assert_eq(f1(FT_OP_SIGN, 1e-9, 0).scale, 0);
}

Test(graph_semantics, comparisons_are_uncertain_only_within_the_error) {
  cr_assert(isinf(test2(FT_OP_LESS, 1, 1, 1 + 1e-7, 0).scale));
  cr_assert_eq(test2(FT_OP_LESS, 1, 1, 1.001, 0).scale, 0);
  cr_assert_eq(test2(FT_OP_LESS, 1, 0, 1 + 0x1p-23, 0).scale, 0, "exact operands");
  cr_assert_eq(test2(FT_OP_EQUAL, INFINITY, 0, INFINITY, 1).integer, 1);
  cr_assert_eq(test2(FT_OP_EQUAL, INFINITY, 0, INFINITY, 1).scale, 0);
}

Test(graph_semantics, where_covers_both_branches_of_an_uncertain_condition) {
  const double radius = ft_dtype_limits(FT_F32)->radius;
  element in[3] = {{.integer = 1, .scale = INFINITY}, {5, 0, 0}, {2, 0, 0}};
  element e = run(FT_OP_WHERE, FT_F32, FT_F32, in, 3);
  cr_assert_eq(e.value, 5);
  cr_assert_geq(e.scale * radius, 3);
  cr_assert_leq(e.scale * radius, 3.001);
  in[2].value = NAN;
  cr_assert(isinf(run(FT_OP_WHERE, FT_F32, FT_F32, in, 3).scale));
  in[0].scale = 0;
  in[2].scale = INFINITY;
  cr_assert_eq(run(FT_OP_WHERE, FT_F32, FT_F32, in, 3).scale, 0,
               "the other is not taken");
}

Test(graph_semantics, poles_within_the_error_are_uncertain) {
  cr_assert(isinf(f1(FT_OP_RECIPROCAL, 1e-8, 1).scale));
  cr_assert(isfinite(f1(FT_OP_RECIPROCAL, 1e-8, 0).scale));
  cr_assert_eq(f1(FT_OP_RECIPROCAL, 0, 0).value, INFINITY);
  cr_assert_eq(f1(FT_OP_RECIPROCAL, -0.0, 0).value, -INFINITY);
  cr_assert(isinf(f1(FT_OP_SQRT, 1e-8, 1).scale));
  cr_assert(isnan(f1(FT_OP_SQRT, -1, 1).value));
  cr_assert_eq(f1(FT_OP_SQRT, -1, 1).scale, 0);
  cr_assert(isinf(f2(FT_OP_DIV, 1, 0, 1e-8, 1).scale));
  cr_assert(isinf(f2(FT_OP_POW, 1e-8, 1, 0.5, 0).scale));
  cr_assert(isfinite(f2(FT_OP_POW, 1e-8, 1, 2, 0).scale), "squares have no pole");
  cr_assert(isfinite(f2(FT_OP_POW, -3, 1, 2, 0).scale));
}

// |f(a + d) - f(a)| <= radius * scale for |d| <= radius * sa, for radii from tiny to 1.
Test(graph_semantics, scales_bound_what_an_error_in_an_operand_does) {
  static const ft_op ops[] = {FT_OP_NEG,  FT_OP_ABS,        FT_OP_EXP,     FT_OP_LOG,
                              FT_OP_ERF,  FT_OP_TANH,       FT_OP_SIGMOID, FT_OP_SIN,
                              FT_OP_COS,  FT_OP_FLOOR,      FT_OP_CEIL,    FT_OP_ROUND,
                              FT_OP_SQRT, FT_OP_RECIPROCAL, FT_OP_SIGN,    FT_OP_RELU};
  const double radius = ft_dtype_limits(FT_F32)->radius;
  ft_rng rng = ft_rng_seed(7);
  for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
    double best = 0;
    for (int i = 0; i < 20000; i++) {
      double a = 8 * ft_rng_f64(&rng) - 4, r = pow(10, -6 + 6 * ft_rng_f64(&rng));
      element e = f1(ops[o], a, r / radius);
      double moved = reference(ops[o], a + r * (2 * ft_rng_f64(&rng) - 1));
      if (isinf(e.scale) || isnan(e.value)) continue;
      double error = fabs(moved - e.value), bound = radius * e.scale * (1 + 1e-9);
      cr_assert(error <= bound, "%s at %g +- %g: moved %g, bound %g",
                ft_op_describe(ops[o])->name, a, r, error, bound);
      best = fmax(best, error / (bound + 1e-300));
    }
    cr_assert_gt(best, 0.5, "%s: the bound is loose, %g", ft_op_describe(ops[o])->name,
                 best);
  }
}

static double reference2(ft_op op, double a, double b) {
  switch (op) {
    case FT_OP_ADD:
      return a + b;
    case FT_OP_SUB:
      return a - b;
    case FT_OP_MUL:
      return a * b;
    case FT_OP_DIV:
      return a / b;
    case FT_OP_POW:
      return pow(a, b);
    case FT_OP_MIN:
      return fmin(a, b);
    default:
      return fmax(a, b);
  }
}

Test(graph_semantics, scales_bound_what_errors_in_two_operands_do) {
  const double radius = ft_dtype_limits(FT_F32)->radius;
  ft_rng rng = ft_rng_seed(8);
  for (ft_op op = FT_OP_ADD; op <= FT_OP_MAX; op++) {
    double best = 0;
    for (int i = 0; i < 20000; i++) {
      double a = 8 * ft_rng_f64(&rng) - 4, b = 8 * ft_rng_f64(&rng) - 4;
      bool whole = op == FT_OP_POW && i % 2;
      if (whole) b = rint(b);
      double ra = pow(10, -6 + 6 * ft_rng_f64(&rng));
      double rb = whole ? 0 : pow(10, -6 + 6 * ft_rng_f64(&rng));
      element e = f2(op, a, ra / radius, b, rb / radius);
      double moved = reference2(op, a + ra * (2 * ft_rng_f64(&rng) - 1),
                                b + rb * (2 * ft_rng_f64(&rng) - 1));
      if (isinf(e.scale) || isnan(e.value)) continue;
      double error = fabs(moved - e.value), bound = radius * e.scale * (1 + 1e-9);
      cr_assert(error <= bound, "%s of %g +- %g, %g +- %g: moved %g, bound %g",
                ft_op_describe(op)->name, a, ra, b, rb, error, bound);
      best = fmax(best, error / (bound + 1e-300));
    }
    cr_assert_gt(best, 0.5, "%s: the bound is loose, %g", ft_op_describe(op)->name, best);
  }
}

// ---- integers -------------------------------------------------------------------

Test(graph_semantics, integers_wrap_to_their_dtype) {
  cr_assert_eq(i2(FT_OP_ADD, FT_I8, 127, 1), -128);
  cr_assert_eq(i2(FT_OP_ADD, FT_U8, 255, 1), 0);
  cr_assert_eq(i2(FT_OP_MUL, FT_I32, 65536, 32768), INT32_MIN);
  cr_assert_eq(i2(FT_OP_SUB, FT_U32, 0, 1), UINT32_MAX);
  cr_assert_eq(i2(FT_OP_ADD, FT_I64, INT64_MAX, 1), INT64_MIN);
  cr_assert_eq(i1(FT_OP_NEG, FT_I64, INT64_MIN), INT64_MIN);
  cr_assert_eq(i1(FT_OP_ABS, FT_I16, -32768), -32768);
  cr_assert_eq(i1(FT_OP_ABS, FT_I16, -5), 5);
}

Test(graph_semantics, integer_division_truncates_and_by_zero_gives_zero) {
  cr_assert_eq(i2(FT_OP_DIV, FT_I32, -7, 2), -3);
  cr_assert_eq(i2(FT_OP_DIV, FT_I32, 7, 0), 0);
  cr_assert_eq(i2(FT_OP_DIV, FT_I64, INT64_MIN, -1), INT64_MIN);
  cr_assert_eq(i2(FT_OP_DIV, FT_I32, INT32_MIN, -1), INT32_MIN);
  cr_assert_eq(i2(FT_OP_DIV, FT_U64, -1, 2), INT64_MAX, "u64 divides unsigned");
}

Test(graph_semantics, unsigned_64_bit_values_order_as_unsigned) {
  cr_assert_eq(i2(FT_OP_LESS, FT_U64, 1, -1), 1);
  cr_assert_eq(i2(FT_OP_LESS, FT_I64, 1, -1), 0);
  cr_assert_eq(i2(FT_OP_MAX, FT_U64, 1, -1), -1);
  cr_assert_eq(i1(FT_OP_RELU, FT_U64, -1), -1);
  cr_assert_eq(i1(FT_OP_SIGN, FT_U64, -1), 1);
  element in = {.integer = -1};
  cr_assert_eq(run(FT_OP_CAST, FT_U64, FT_F32, &in, 1).value, 0x1p64);
}

Test(graph_semantics, integer_powers_are_exact_and_negative_ones_truncate) {
  cr_assert_eq(i2(FT_OP_POW, FT_I64, 3, 39), INT64_C(4052555153018976267));
  cr_assert_eq(i2(FT_OP_POW, FT_I32, -2, 31), INT32_MIN);
  cr_assert_eq(i2(FT_OP_POW, FT_I32, 2, -1), 0);
  cr_assert_eq(i2(FT_OP_POW, FT_I32, -1, -3), -1);
  cr_assert_eq(i2(FT_OP_POW, FT_I32, 0, 0), 1);
}

Test(graph_semantics, a_certain_false_settles_an_and_and_a_certain_true_an_or) {
  element in[2] = {{.integer = 1, .scale = INFINITY}, {.integer = 0}};
  cr_assert_eq(run(FT_OP_AND, FT_BOOL, FT_BOOL, in, 2).scale, 0);
  cr_assert(isinf(run(FT_OP_OR, FT_BOOL, FT_BOOL, in, 2).scale));
  in[1].integer = 1;
  cr_assert(isinf(run(FT_OP_AND, FT_BOOL, FT_BOOL, in, 2).scale));
  cr_assert_eq(run(FT_OP_OR, FT_BOOL, FT_BOOL, in, 2).scale, 0);
  cr_assert(isinf(run(FT_OP_NOT, FT_BOOL, FT_BOOL, in, 1).scale));
}

Test(graph_semantics, casts_truncate_saturate_and_carry_uncertainty) {
  element in = {.value = -2.7};
  cr_assert_eq(run(FT_OP_CAST, FT_F32, FT_I32, &in, 1).integer, -2);
  in.value = 3e10;
  cr_assert_eq(run(FT_OP_CAST, FT_F32, FT_I32, &in, 1).integer, INT32_MAX);
  in.value = -1e30;
  cr_assert_eq(run(FT_OP_CAST, FT_F32, FT_I64, &in, 1).integer, INT64_MIN);
  cr_assert_eq(run(FT_OP_CAST, FT_F32, FT_U8, &in, 1).integer, 0);
  in.value = NAN;
  cr_assert_eq(run(FT_OP_CAST, FT_F32, FT_I32, &in, 1).integer, 0);
  cr_assert_eq(run(FT_OP_CAST, FT_F32, FT_BOOL, &in, 1).integer, 1);
  in = (element){.value = 2.9999999, .scale = 3};
  cr_assert(isinf(run(FT_OP_CAST, FT_F32, FT_I32, &in, 1).scale));
  in.value = 2.5;
  cr_assert_eq(run(FT_OP_CAST, FT_F32, FT_I32, &in, 1).scale, 0);
  in = (element){.value = 1e-9, .scale = 1};
  cr_assert(isinf(run(FT_OP_CAST, FT_F32, FT_BOOL, &in, 1).scale));
  in = (element){.integer = 1, .scale = INFINITY};
  element mask = run(FT_OP_CAST, FT_BOOL, FT_F32, &in, 1);
  cr_assert_leq(ft_dtype_tolerance(FT_F32, mask.scale), 1.001, "0 or 1, nothing else");
  cr_assert(isinf(run(FT_OP_CAST, FT_I32, FT_F32, &in, 1).scale));
  in = (element){.integer = 16777217};
  cr_assert_gt(run(FT_OP_CAST, FT_I32, FT_F32, &in, 1).scale, 0);
  in.integer = 300;
  cr_assert_eq(run(FT_OP_CAST, FT_I32, FT_U8, &in, 1).integer, 44);
}

Test(graph_semantics, narrowing_casts_change_the_unit_and_overflow) {
  element in = {.value = 70000, .scale = 0};
  cr_assert(isinf(run(FT_OP_CAST, FT_F32, FT_F16, &in, 1).value));
  in = (element){.value = 1.0, .scale = 1.0};
  double half = run(FT_OP_CAST, FT_F32, FT_F16, &in, 1).scale;
  cr_assert_float_eq(half, 1 + 0x1p-13, 1e-5);
  in.scale = 1.0;
  double single = run(FT_OP_CAST, FT_F16, FT_F32, &in, 1).scale;
  cr_assert_float_eq(single, 8192 + 1, 0.1);
}

Test(graph_semantics, has_no_meaning_for_the_exp_of_an_integer) {
  cr_assert_null(ft_semantics_find(FT_OP_EXP, FT_I32));
  cr_assert_null(ft_semantics_find(FT_OP_AND, FT_F32));
  cr_assert_null(ft_semantics_find(FT_OP_REDUCE_SUM, FT_F32));
}

// ---- reductions -----------------------------------------------------------------

static element reduce(ft_op op, ft_dtype dtype, const double *v, const double *s,
                      size_t n) {
  ft_accumulator acc;
  int64_t slot[8] = {0}, integer[8];
  double value[8], scale[8];
  for (size_t i = 0; i < n; i++) {
    value[i] = v[i];
    scale[i] = s ? s[i] : 0;
    integer[i] = ft_dtype_is_float(dtype) ? 0 : (int64_t)v[i];
  }
  ft_accumulator_init(op, dtype, &acc, 1);
  ft_accumulator_add(op, dtype, &acc, slot, &(ft_cells){value, scale, integer}, n);
  element out = {0};
  ft_accumulator_finish(op, dtype, &acc, (int64_t)n, 0,
                        &(ft_cells){&out.value, &out.scale, &out.integer});
  return out;
}

Test(graph_semantics, empty_reductions_give_the_neutral_element) {
  cr_assert_eq(reduce(FT_OP_REDUCE_SUM, FT_F32, NULL, NULL, 0).value, 0);
  cr_assert_eq(reduce(FT_OP_REDUCE_PROD, FT_F32, NULL, NULL, 0).value, 1);
  cr_assert_eq(reduce(FT_OP_REDUCE_MAX, FT_F32, NULL, NULL, 0).value, -INFINITY);
  cr_assert_eq(reduce(FT_OP_REDUCE_MIN, FT_F32, NULL, NULL, 0).value, INFINITY);
  cr_assert_eq(reduce(FT_OP_REDUCE_MAX, FT_I32, NULL, NULL, 0).integer, INT32_MIN);
  cr_assert_eq(reduce(FT_OP_REDUCE_MIN, FT_U8, NULL, NULL, 0).integer, 255);
  cr_assert_eq(reduce(FT_OP_REDUCE_MIN, FT_U64, NULL, NULL, 0).integer, -1);
}

Test(graph_semantics, reductions_propagate_nan_and_infinities) {
  double v[3] = {1, NAN, 2};
  for (ft_op op = FT_OP_REDUCE_SUM; op <= FT_OP_REDUCE_PROD; op++) {
    element e = reduce(op, FT_F32, v, NULL, 3);
    cr_assert(isnan(e.value) && e.scale == 0, "%s", ft_op_describe(op)->name);
  }
  double infinite[3] = {1, INFINITY, 2};
  element e = reduce(FT_OP_REDUCE_SUM, FT_F32, infinite, NULL, 3);
  cr_assert(isinf(e.value) && isfinite(e.scale));
  e = reduce(FT_OP_REDUCE_PROD, FT_F32, infinite, NULL, 3);
  cr_assert(isinf(e.value) && isfinite(e.scale));
  double both[2] = {INFINITY, -INFINITY};
  e = reduce(FT_OP_REDUCE_SUM, FT_F32, both, NULL, 2);
  cr_assert(isnan(e.value) && e.scale == 0);
}

Test(graph_semantics, reductions_whose_overflow_depends_on_the_order_are_uncertain) {
  double mixed[3] = {3e38, 3e38, -3e38}, same_sign[2] = {3e38, 3e38};
  cr_assert(isinf(reduce(FT_OP_REDUCE_SUM, FT_F32, mixed, NULL, 3).scale));
  element e = reduce(FT_OP_REDUCE_SUM, FT_F32, same_sign, NULL, 2);
  cr_assert(isinf(e.value) && isfinite(e.scale));
  double factors[3] = {1e30, 1e30, 1e-50};
  cr_assert(isinf(reduce(FT_OP_REDUCE_PROD, FT_F32, factors, NULL, 3).scale));
  double large[2] = {1e30, 1e30};
  e = reduce(FT_OP_REDUCE_PROD, FT_F32, large, NULL, 2);
  cr_assert(isinf(e.value) && isfinite(e.scale));
}

Test(graph_semantics, a_sum_carries_the_sum_of_scales_and_of_terms) {
  double v[2] = {3, -2}, s[2] = {0.5, 0.25};
  element e = reduce(FT_OP_REDUCE_SUM, FT_F32, v, s, 2);
  cr_assert_float_eq(e.scale, 0.75 + 5, 1e-5);
  e = reduce(FT_OP_REDUCE_MAX, FT_F32, v, s, 2);
  cr_assert_float_eq(e.scale, 0.5, 1e-12);
  e = reduce(FT_OP_REDUCE_PROD, FT_F32, v, s, 2);
  cr_assert_float_eq(e.scale, 3 * 0.25 + 2 * 0.5 + 6, 1e-5);
}

// All additions round to the same side: such a sum drifts with n, not with its root.
Test(graph_semantics, a_long_sum_of_equal_doubles_is_within_its_tolerance) {
  enum { TERMS = 100000 };
  ft_accumulator acc;
  int64_t slot = 0;
  double term = 0.1, none = 0;
  element e = {0};
  ft_accumulator_init(FT_OP_REDUCE_SUM, FT_F64, &acc, 1);
  for (int i = 0; i < TERMS; i++)
    ft_accumulator_add(FT_OP_REDUCE_SUM, FT_F64, &acc, &slot,
                       &(ft_cells){&term, &none, NULL}, 1);
  ft_accumulator_finish(FT_OP_REDUCE_SUM, FT_F64, &acc, TERMS, 0,
                        &(ft_cells){&e.value, &e.scale, &e.integer});
  double exact = TERMS * 0.1;
  cr_assert_neq(e.value, exact);
  cr_assert_lt(fabs(e.value - exact), ft_dtype_tolerance(FT_F64, e.scale));
  cr_assert_lt(ft_dtype_tolerance(FT_F64, e.scale), 1e-10 * exact);
}

Test(graph_semantics, a_zero_of_uncertain_sign_is_uncertain_only_under_a_division) {
  element zero = f1(FT_OP_ROUND, 1e-9, 1);
  cr_assert_eq(zero.value, 0);
  cr_assert_lt(ft_dtype_tolerance(FT_F32, zero.scale), 1.001 * (double)FLT_MIN);
  cr_assert(isinf(f1(FT_OP_RECIPROCAL, zero.value, zero.scale).scale));
  cr_assert_eq(test2(FT_OP_EQUAL, zero.value, zero.scale, 0, 0).scale, 0);
  cr_assert_eq(run(FT_OP_CAST, FT_F32, FT_BOOL, &zero, 1).scale, 0);
  cr_assert(isfinite(f1(FT_OP_SQRT, zero.value, zero.scale).scale));
  cr_assert_eq(f1(FT_OP_ROUND, 0.3, 1).scale, 0, "0.3 rounds to +0 for sure");
}

Test(graph_semantics, infinity_times_what_may_be_zero_is_uncertain) {
  cr_assert(isinf(f2(FT_OP_MUL, INFINITY, 0, 1e-40, 1e-30).scale));
  cr_assert_eq(f2(FT_OP_MUL, INFINITY, 0, 1e-40, 0).value, INFINITY);
  cr_assert_eq(f2(FT_OP_MUL, INFINITY, 0, 1e-40, 0).scale, 0);
  cr_assert(isinf(f1(FT_OP_EXP, 2e9, 1e18).scale), "may be anything from 0 to infinity");
}
