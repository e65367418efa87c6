#include "graph/accumulator.h"

#include <math.h>

#include "graph/interpreter.h"

void ft_accumulator_init(ft_op op, ft_dtype dtype, ft_accumulator *accumulator,
                         size_t count) {
  bool is_float = ft_dtype_is_float(dtype);
  ft_accumulator first = {0};
  switch (op) {
    case FT_OP_REDUCE_SUM:
      break;
    case FT_OP_REDUCE_PROD:
      first = (ft_accumulator){.value = 1, .magnitude = 1, .least = 1, .integer = 1};
      break;
    case FT_OP_REDUCE_MAX:
      first.value = -(double)INFINITY;
      if (!is_float) first.integer = ft_integer_lowest(dtype);
      break;
    default:
      first.value = (double)INFINITY;
      if (!is_float) first.integer = ft_integer_highest(dtype);
      break;
  }
  for (size_t i = 0; i < count; i++) accumulator[i] = first;
}

// ---- floats ---------------------------------------------------------------------

// An infinity from overflow carries scale 1, which is no error.
static inline double error_of(double v, double s) {
  return isinf(v) && s == 1 ? 0 : s;
}

enum {
  SEEN_NAN = 1,  // a certain one
  SEEN_INFINITY = 2,
  SEEN_OVERFLOW = 4,  // an infinity that a fused kernel may not see
  SEEN_ZERO = 8,      // what may be zero and is not certain to be
  SEEN_UNSURE = 16,   // what may be anything
};

static inline unsigned kind_of(double v, double s, double radius) {
  unsigned seen = isinf(s) ? SEEN_UNSURE : 0;
  if (isnan(v) && !isinf(s)) seen = SEEN_NAN;
  if (isinf(v)) seen |= s > 0 ? SEEN_INFINITY | SEEN_OVERFLOW : SEEN_INFINITY;
  if (s > 0 && fabs(v) <= radius * s) seen |= SEEN_ZERO;
  return seen;
}

static inline void step_sum(ft_accumulator *a, double v, double s) {
  a->value += v;
  a->scale += error_of(v, s);
  if (isfinite(v))
    a->magnitude += fabs(v);
  else
    a->seen |= kind_of(v, s, 0);
}

static inline void step_max(ft_accumulator *a, double v, double s) {
  if (v > a->value || isnan(v)) a->value = v;
  if (isinf(v) && s > 0) a->seen |= SEEN_OVERFLOW;
  a->scale = fmax(a->scale, error_of(v, s));
}

static inline void step_min(ft_accumulator *a, double v, double s) {
  if (v < a->value || isnan(v)) a->value = v;
  if (isinf(v) && s > 0) a->seen |= SEEN_OVERFLOW;
  a->scale = fmax(a->scale, error_of(v, s));
}

static inline void step_prod(ft_accumulator *a, double v, double s, double radius) {
  double size = fabs(v), error = error_of(v, s);
  a->seen |= kind_of(v, s, radius);
  if (isfinite(v))  // an infinite factor settles the value, not its error
    a->scale = fabs(a->value) * error + a->scale * (size + radius * error);
  a->value *= v;
  if (size > 1 && isfinite(v)) a->magnitude *= size;
  if (size < 1 && size > 0) a->least *= size;
}

double ft_accumulator_drift(ft_dtype dtype, int64_t terms) {
  double n = (double)terms;
  if (terms < 2) return 0;
  return dtype == FT_F64 ? fmax(1, n / FT_TOLERANCE_ULPS) : fmax(1, sqrt(n) / 4);
}

// The scale of an infinite extreme.
static double mark_of(const ft_limits *limits, const ft_accumulator *a) {
  return limits->is_held && (a->seen & SEEN_OVERFLOW) ? 1 : 0;
}

static void finish_sum(ft_dtype dtype, const ft_limits *limits, const ft_accumulator *a,
                       int64_t terms, double *value, double *scale) {
  double drift = ft_accumulator_drift(dtype, terms);
  double added = drift > 0 ? drift * (a->magnitude + limits->radius * a->scale) : 0;
  // Terms of one sign overflow in every order or in none; mixed ones in some.
  bool mixed = isinf(a->value) || fabs(a->value) < a->magnitude;
  double most = a->magnitude + limits->radius * (a->scale + added);
  bool held = limits->is_held && (a->seen & SEEN_OVERFLOW);
  bool doubt = isinf(a->scale) || held ||
               (isnan(a->value) && (a->seen & SEEN_OVERFLOW)) ||
               (!isnan(a->value) && mixed && !(most <= ft_dtype_sum_limits(dtype)->top));
  if (a->seen & SEEN_NAN) doubt = false;
  ft_semantics_settle(limits, a->value, a->scale, added, doubt, 0, value, scale);
}

static void finish_prod(ft_dtype dtype, const ft_limits *limits, const ft_accumulator *a,
                        int64_t terms, double *value, double *scale) {
  const ft_limits *run = ft_dtype_sum_limits(dtype);
  bool infinite = (a->seen & SEEN_INFINITY) || a->magnitude > run->top;
  bool vanishing = (a->seen & SEEN_ZERO) || a->least < run->tiny;
  bool overflows = a->magnitude > run->top && (a->least < 1 || a->value == 0);
  bool underflows = a->least < run->tiny && a->magnitude > 1;
  bool held = limits->is_held && (a->seen & SEEN_OVERFLOW);
  bool doubt = (a->seen & SEEN_UNSURE) || held || (infinite && vanishing) || overflows ||
               underflows;
  if (a->seen & SEEN_NAN) doubt = false;
  double added =
      terms > 1 ? (double)(terms - 1) * (fabs(a->value) + limits->radius * a->scale) : 0;
  ft_semantics_settle(limits, a->value, a->scale, added, doubt, 0, value, scale);
}

static void add_floats(ft_op op, const ft_limits *limits, ft_accumulator *accumulator,
                       const int64_t *slot, const ft_cells *cells, size_t count) {
#define EACH(step) \
  for (size_t j = 0; j < count; j++) step
  const double *v = cells->value, *s = cells->scale;
  switch (op) {
    case FT_OP_REDUCE_SUM:
      EACH(step_sum(&accumulator[slot[j]], v[j], s[j]));
      break;
    case FT_OP_REDUCE_MAX:
      EACH(step_max(&accumulator[slot[j]], v[j], s[j]));
      break;
    case FT_OP_REDUCE_MIN:
      EACH(step_min(&accumulator[slot[j]], v[j], s[j]));
      break;
    default:
      EACH(step_prod(&accumulator[slot[j]], v[j], s[j], limits->radius));
      break;
  }
#undef EACH
}

// ---- integers -------------------------------------------------------------------

static inline int64_t step_integer(ft_op op, ft_dtype dtype, int64_t sum, int64_t x) {
  switch (op) {
    case FT_OP_REDUCE_SUM:
      return (int64_t)((uint64_t)sum + (uint64_t)x);
    case FT_OP_REDUCE_PROD:
      return (int64_t)((uint64_t)sum * (uint64_t)x);
    case FT_OP_REDUCE_MAX:
      return ft_integer_below(dtype, sum, x) ? x : sum;
    default:
      return ft_integer_below(dtype, x, sum) ? x : sum;
  }
}

// ---- both -----------------------------------------------------------------------

void ft_accumulator_add(ft_op op, ft_dtype dtype, ft_accumulator *accumulator,
                        const int64_t *slot, const ft_cells *cells, size_t count) {
  const ft_limits *limits = ft_dtype_limits(dtype);
  if (limits) {
    add_floats(op, limits, accumulator, slot, cells, count);
    return;
  }
  for (size_t j = 0; j < count; j++) {
    ft_accumulator *a = &accumulator[slot[j]];
    a->integer = step_integer(op, dtype, a->integer, cells->integer[j]);
    a->scale = fmax(a->scale, cells->scale[j]);
  }
}

void ft_accumulator_finish(ft_op op, ft_dtype dtype, const ft_accumulator *a,
                           int64_t terms, size_t index, ft_cells *out) {
  const ft_limits *limits = ft_dtype_limits(dtype);
  double *scale = &out->scale[index];
  if (!limits) {
    out->integer[index] = ft_integer_wrap(dtype, a->integer);
    *scale = a->scale;
    return;
  }
  double *value = &out->value[index];
  if (op == FT_OP_REDUCE_SUM)
    finish_sum(dtype, limits, a, terms, value, scale);
  else if (op == FT_OP_REDUCE_PROD)
    finish_prod(dtype, limits, a, terms, value, scale);
  else
    ft_semantics_settle(limits, a->value, a->scale, 0, isinf(a->scale),
                        mark_of(limits, a), value, scale);
  // The sign of a zero depends on the order, and on where the kernel starts.
  if (*value == 0 && *scale == 0 && terms > 0) *scale = limits->speck;
}
