// Short floats: what kernels that hold single precision between two primitives give, and
// those that round after each, is right to the reference.
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#include "graph/accumulator.h"
#include "graph/interpreter.h"
#include "graph/semantics.h"

typedef struct element {
  double value, scale;
  int64_t integer;
} element;

static element run(ft_op op, ft_dtype from, ft_dtype to, const element *in,
                   uint32_t count) {
  element copy[3], out = {0};
  ft_semantics_call call = {.from = from, .to = to, .count = 1};
  for (uint32_t i = 0; i < count; i++) {
    copy[i] = in[i];
    call.in[i] = (ft_cells){&copy[i].value, &copy[i].scale, &copy[i].integer};
  }
  call.out = (ft_cells){&out.value, &out.scale, &out.integer};
  ft_semantics_find(op, from)(&call);
  return out;
}

static element h1(ft_op op, element a) {
  return run(op, FT_F16, FT_F16, &a, 1);
}
static element h2(ft_op op, element a, element b) {
  element in[2] = {a, b};
  return run(op, FT_F16, FT_F16, in, 2);
}
static element h(double value) {
  return (element){.value = value};
}
static bool is_overflow(element e) {
  return isinf(e.value) && e.scale > 0 && isfinite(e.scale);
}

Test(graph_semantics_half, what_overflows_is_infinite_and_checked_as_that) {
  element e = h2(FT_OP_MUL, h(300), h(300));
  cr_assert(is_overflow(e));
  ft_comparison c;
  ft_comparison_init(&c);
  ft_compare_float(FT_F16, 0, INFINITY, e.value, e.scale, &c);
  cr_assert(c.max_ratio <= 1);
  ft_compare_float(FT_F16, 1, 65504, e.value, e.scale, &c);
  cr_assert(!(c.max_ratio <= 1), "65504 passed for an infinity");
  cr_assert(isinf(h2(FT_OP_ADD, h(65504), h(16)).scale), "the edge of the range");
}

Test(graph_semantics_half, what_passes_an_overflow_on_is_one) {
  element big = h2(FT_OP_MUL, h(300), h(300));
  cr_assert(is_overflow(h1(FT_OP_NEG, big)) && h1(FT_OP_NEG, big).value < 0);
  cr_assert(is_overflow(h1(FT_OP_COPY, big)));
  cr_assert(is_overflow(h1(FT_OP_RELU, big)));
  cr_assert(is_overflow(h1(FT_OP_FLOOR, big)));
  cr_assert(is_overflow(h2(FT_OP_MAX, big, h(1))));
  element least = h2(FT_OP_MIN, big, h(5));
  cr_assert_eq(least.value, 5);
  cr_assert_eq(least.scale, 0);
  cr_assert_eq(h1(FT_OP_TANH, big).value, 1);
  cr_assert(isfinite(h1(FT_OP_TANH, big).scale));
}

Test(graph_semantics_half, what_depends_on_an_overflow_may_be_anything) {
  element big = h2(FT_OP_MUL, h(300), h(300)), infinite = h(INFINITY);
  cr_assert(isinf(h2(FT_OP_MUL, big, h(0.001)).scale));
  cr_assert(isinf(h2(FT_OP_SUB, big, h(60000)).scale));
  cr_assert(isinf(h1(FT_OP_SQRT, big).scale));
  cr_assert(isinf(h1(FT_OP_RECIPROCAL, big).scale));
  cr_assert(isinf(run(FT_OP_CAST, FT_F16, FT_F32, &big, 1).scale));
  cr_assert(isinf(run(FT_OP_CAST, FT_F16, FT_I32, &big, 1).scale));
  element both[2] = {big, infinite};
  cr_assert(isinf(run(FT_OP_LESS, FT_F16, FT_BOOL, both, 2).scale));
  element plain[2] = {h(65504), big};
  cr_assert_eq(run(FT_OP_LESS, FT_F16, FT_BOOL, plain, 2).scale, 0);
  cr_assert_eq(run(FT_OP_LESS, FT_F16, FT_BOOL, plain, 2).integer, 1);
  // An infinity that was there before is one in kernels too.
  cr_assert_eq(h1(FT_OP_RECIPROCAL, infinite).scale, 0);
  cr_assert_eq(h2(FT_OP_MUL, infinite, h(0.001)).scale, 0);
  // bf16 has the range of single precision.
  element in[2] = {h(1e30), h(1e30)};
  element wide[2] = {run(FT_OP_MUL, FT_BF16, FT_BF16, in, 2), h(0.5)};
  cr_assert(is_overflow(wide[0]));
  cr_assert(is_overflow(run(FT_OP_MUL, FT_BF16, FT_BF16, wide, 2)));
}

Test(graph_semantics_half, a_cast_that_overflows_is_certain) {
  element e = {.value = 70000};
  element narrow = run(FT_OP_CAST, FT_F32, FT_F16, &e, 1);
  cr_assert(isinf(narrow.value));
  cr_assert_eq(narrow.scale, 0);
  cr_assert_eq(h1(FT_OP_RECIPROCAL, narrow).scale, 0);
  e.integer = 70000;
  cr_assert_eq(run(FT_OP_CAST, FT_I32, FT_F16, &e, 1).scale, 0);
}

static element reduce(ft_op op, const double *v, const double *s, size_t n) {
  ft_accumulator acc;
  int64_t slot[8] = {0};
  double value[8], scale[8];
  for (size_t i = 0; i < n; i++) value[i] = v[i], scale[i] = s ? s[i] : 0;
  ft_accumulator_init(op, FT_F16, &acc, 1);
  ft_accumulator_add(op, FT_F16, &acc, slot, &(ft_cells){value, scale, NULL}, n);
  element out = {0};
  ft_accumulator_finish(op, FT_F16, &acc, (int64_t)n, 0,
                        &(ft_cells){&out.value, &out.scale, &out.integer});
  return out;
}

Test(graph_semantics_half, reductions_pass_the_range_only_in_their_result) {
  double mixed[3] = {60000, 60000, -60000}, factors[3] = {60000, 60000, 1e-6};
  element e = reduce(FT_OP_REDUCE_SUM, mixed, NULL, 3);
  cr_assert_eq(e.value, 60000);
  cr_assert(isfinite(e.scale));
  e = reduce(FT_OP_REDUCE_PROD, factors, NULL, 3);
  cr_assert(isfinite(e.value) && isfinite(e.scale));
  cr_assert(is_overflow(reduce(FT_OP_REDUCE_SUM, mixed, NULL, 2)));
  double some[2] = {INFINITY, 3}, scale[2] = {1, 0};
  cr_assert(isinf(reduce(FT_OP_REDUCE_SUM, some, scale, 2).scale));
  cr_assert(isinf(reduce(FT_OP_REDUCE_PROD, some, scale, 2).scale));
  cr_assert(is_overflow(reduce(FT_OP_REDUCE_MAX, some, scale, 2)));
  cr_assert_eq(reduce(FT_OP_REDUCE_MIN, some, scale, 2).value, 3);
  cr_assert_eq(reduce(FT_OP_REDUCE_MAX, some, NULL, 2).scale, 0);
}

Test(graph_semantics_half, denormals_are_numbers_like_others) {
  double step = 0x1p-24;  // the smallest f16
  element e = h2(FT_OP_MUL, h(0x1p-12), h(3 * 0x1p-12));
  cr_assert_eq(e.value, 3 * step);
  cr_assert_eq(e.scale, 0);
  cr_assert_eq(ft_dtype_tolerance(FT_F16, 0), step);
  e = h2(FT_OP_MUL, h(0x1p-13), h(1.0009765625 * 0x1p-4));
  cr_assert(e.scale > 0 && ft_dtype_tolerance(FT_F16, e.scale) < 20 * step);
}

// ---- two primitives in a row --------------------------------------------------------

static const double numbers[] = {0.0,    -0.0,     1,     -1,       0.5,      -2.5,
                                 3.75,   11,       -11.5, 0x1p-24,  -0x1p-20, 0x1p-14,
                                 100,    -300,     1000,  60000,    -60000,   65504,
                                 -65504, INFINITY, NAN,   -INFINITY};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static double exact(ft_op op, double a, double b) {
  switch (op) {
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
      return a > 0 ? 1 : a < 0 ? -1 : a;
    case FT_OP_RELU:
      return a < 0 ? 0 : a;
    case FT_OP_ADD:
      return a + b;
    case FT_OP_SUB:
      return a - b;
    case FT_OP_MUL:
      return a * b;
    case FT_OP_DIV:
      return a / b;
    case FT_OP_MIN:
      return a < b || isnan(a) ? a : b;
    case FT_OP_MAX:
      return a > b || isnan(a) ? a : b;
    case FT_OP_FMOD:
      return fmod(a, b);
    default:
      return pow(a, b);
  }
}

static const ft_op ops[] = {
    FT_OP_NEG,  FT_OP_ABS,   FT_OP_SQRT,    FT_OP_RECIPROCAL, FT_OP_EXP,  FT_OP_LOG,
    FT_OP_ERF,  FT_OP_TANH,  FT_OP_SIGMOID, FT_OP_SIN,        FT_OP_COS,  FT_OP_FLOOR,
    FT_OP_CEIL, FT_OP_ROUND, FT_OP_SIGN,    FT_OP_RELU,       FT_OP_ADD,  FT_OP_SUB,
    FT_OP_MUL,  FT_OP_DIV,   FT_OP_MIN,     FT_OP_MAX,        FT_OP_FMOD, FT_OP_POW,
};
enum { OPS = sizeof ops / sizeof *ops };

typedef struct tally {
  uint32_t compared, uncertain;
} tally;

static void compare(ft_dtype dtype, double got, element e, tally *n, const char *what,
                    const ft_op pair[2], double a, double b, double c) {
  ft_comparison cmp;
  ft_comparison_init(&cmp);
  ft_compare_float(dtype, 0, ft_dtype_round(dtype, got), e.value, e.scale, &cmp);
  n->compared++;
  n->uncertain += isinf(e.scale) ? 1 : 0;
  cr_assert(cmp.max_ratio <= 1, "%s, %s: %s(%s(%g, %g), %g) = %g, the reference %g (%g)",
            ft_dtype_text(dtype), what, ft_op_describe(pair[1])->name,
            ft_op_describe(pair[0])->name, a, b, c, got, e.value, e.scale);
}

static void try_pair(ft_dtype dtype, const ft_op pair[2], double a, double b, double c,
                     tally *n) {
  element in[2] = {h(a), h(b)};
  element mid[2] = {run(pair[0], dtype, dtype, in, 2), h(c)};
  element out = run(pair[1], dtype, dtype, mid, 2);
  float held = (float)exact(pair[0], a, b);
  compare(dtype, (double)(float)exact(pair[1], (double)held, c), out, n, "held", pair, a,
          b, c);
  double stored = ft_dtype_round(dtype, (double)held);
  compare(dtype, (double)(float)exact(pair[1], stored, c), out, n, "rounded", pair, a, b,
          c);
}

static void try_pairs(ft_dtype dtype, tally *n) {
  for (int i = 0; i < OPS * OPS; i++) {
    const ft_op pair[2] = {ops[i / OPS], ops[i % OPS]};
    for (int k = 0; k < NUMBERS * NUMBERS; k++)
      for (int j = 0; j < NUMBERS; j += 3)
        try_pair(dtype, pair, ft_dtype_round(dtype, numbers[k / NUMBERS]),
                 ft_dtype_round(dtype, numbers[k % NUMBERS]),
                 ft_dtype_round(dtype, numbers[j]), n);
  }
}

Test(graph_semantics_half, held_and_rounded_intermediates_are_both_right) {
  tally half = {0}, bfloat = {0};
  try_pairs(FT_F16, &half);
  try_pairs(FT_BF16, &bfloat);
  cr_assert_gt(half.compared, 1000000);
  cr_assert_lt(half.uncertain, half.compared / 3);
  cr_assert_lt(bfloat.uncertain, bfloat.compared / 3);
}
