#include "graph/semantics.h"

#include <float.h>
#include <math.h>

#include "graph/interpreter.h"

// ---- dtypes ---------------------------------------------------------------------

#define LIMITS(unit, tiny, lost, top, speck, least, is_held) \
  { unit, FT_TOLERANCE_ULPS *(unit), tiny, lost, top, speck, least, is_held }

static const ft_limits limits_of[FT_DTYPE_COUNT] = {
    [FT_F32] =
        LIMITS(0x1p-24, 0x1p-126, 0x1p-126, (double)FLT_MAX, 1e-200, 1e-150, false),
    [FT_F64] = LIMITS(0x1p-53, DBL_MIN, DBL_MIN, DBL_MAX, 0x1p-1060, 1e-305, false),
    [FT_F16] = LIMITS(0x1p-11, 0x1p-14, 0x1p-24, 65504, 1e-200, 1e-150, true),
    [FT_BF16] = LIMITS(0x1p-8, 0x1p-126, 0x1p-126, 0x1.fep127, 1e-200, 1e-150, false),
};

const ft_limits *ft_dtype_limits(ft_dtype dtype) {
  return limits_of[dtype].unit > 0 ? &limits_of[dtype] : NULL;
}

const ft_limits *ft_dtype_sum_limits(ft_dtype dtype) {
  return ft_dtype_limits(dtype == FT_F16 || dtype == FT_BF16 ? FT_F32 : dtype);
}

double ft_dtype_round(ft_dtype dtype, double value) {
  if (dtype == FT_F64) return value;
  if (dtype == FT_F32) return (double)(float)value;
  uint16_t code;
  ft_element_set_f64(dtype, &code, 0, value);
  return ft_tensor_get_f64(&(ft_tensor){.dtype = dtype, .data = &code, .bytes = 2}, 0);
}

double ft_dtype_tolerance(ft_dtype dtype, double scale) {
  const ft_limits *limits = ft_dtype_limits(dtype);
  return limits->radius * scale + limits->lost;
}

// ---- settling -------------------------------------------------------------------

static inline void settle(const ft_limits *limits, double v, double s, double added,
                          bool doubt, double mark, double *value, double *scale) {
  *value = v;
  if (!isfinite(v) || doubt) {
    *scale = doubt ? (double)INFINITY : isinf(v) ? mark : 0;
    return;
  }
  if (added > 0) {
    s += added;
    if (fabs(v) < limits->tiny) s += limits->lost / limits->unit;
  }
  *scale = s;
  double reach = limits->radius * s;
  if (fabs(v) + reach <= limits->top) return;
  bool overflows = fabs(v) - reach >= limits->top;
  if (overflows) *value = copysign((double)INFINITY, v);
  *scale = overflows ? 1 : (double)INFINITY;
}

void ft_semantics_settle(const ft_limits *limits, double v, double s, double added,
                         bool doubt, double mark, double *value, double *scale) {
  settle(limits, v, s, added, doubt, mark, value, scale);
}

static inline bool is_representable(ft_dtype dtype, double v) {
  // A double does not tell whether the operation on doubles was exact.
  if (dtype == FT_F64) return false;
  return ft_dtype_round(dtype, v) == v;
}

// ---- error propagation ----------------------------------------------------------

static inline double over(double s, double divisor) {
  return s > 0 ? s / divisor : 0;
}

static inline bool reaches_zero(double a, double sa, double ra) {
  return sa > 0 && fabs(a) <= ra;
}

static inline double radius_of(const ft_limits *limits, double s) {
  return s > limits->least ? limits->radius * s : 0;
}

static inline double sign_doubt(double s, double v, double sa, const ft_limits *limits) {
  return v == 0 && s == 0 && sa > 0 ? limits->speck : s;
}

static inline double stepped(double steps, double v, double a, double sa, double ra,
                             const ft_limits *limits) {
  return sign_doubt(steps / limits->radius, v, fabs(a) <= ra ? sa : 0, limits);
}

static inline double crossed(double a, double sa, double b, double sb, double rb,
                             double v, const ft_limits *limits) {
  return sign_doubt(fabs(a) * sb + sa * (fabs(b) + rb), v, sa + sb, limits);
}

// Infinity times what may be zero.
static inline bool meets_infinity(double a, double sa, double ra, double b, double sb,
                                  double rb) {
  return (isinf(a) && reaches_zero(b, sb, rb)) || (isinf(b) && reaches_zero(a, sa, ra));
}

// v (e^r - 1): how far v e^x may move when x moves by r.
static inline double stretched(double v, double r) {
  if (r == 0) return 0;
  return r < 1e-3 ? v * r * (1 + r) : v * expm1(r);
}

// Infinite in double precision, and yet perhaps not past the range.
static inline bool exp_doubt(double a, double ra, double v, const ft_limits *limits) {
  return isinf(v) && isfinite(a) && exp(a - ra) <= limits->top;
}

// Taylor with the second derivative at most |curvature|; the function cannot move by
// more than |range|, in units of the scale.
static inline double bent(double s, double r, double slope, double curvature,
                          double range) {
  return s > 0 ? fmin(s * (slope + 0.5 * curvature * r), range) : 0;
}

static inline double logistic(double a) {
  return 1 / (1 + exp(-a));
}

// The kernel may contract the product that overflowed with this addition, and then the
// exact product counts: a large addend of the other sign could bring it back.
static inline bool overflow_cancels(double a, double sa, double b, double sb,
                                    const ft_limits *limits) {
  if ((isfinite(a) && isfinite(b)) || isnan(a) || isnan(b)) return false;
  bool from_overflow = (isinf(a) && sa > 0) || (isinf(b) && sb > 0);
  double other = fmin(fabs(a), fabs(b));
  return from_overflow && signbit(a) != signbit(b) && other > limits->top * 0x1p-30;
}

// The larger radius of two operands that could both win, else the winner's scale.
static inline double nearer(double a, double sa, double ra, double b, double sb,
                            double rb, bool a_wins) {
  if (fabs(a - b) > ra + rb) return a_wins ? sa : sb;
  return fmax(sa, sb);
}

static bool is_whole(double b, double rb) {
  return rb == 0 && b == rint(b);
}

// How far b log a may move, for a > 0.
static double pow_shift(double a, double ra, double b, double rb) {
  double relative = ra / (a - ra);
  return fabs(b) * relative + (fabs(log(a)) + relative) * rb;
}

// How far a^b may move. Whole powers are monotonic in |a| and defined around zero.
static double pow_stretched(double a, double ra, double b, double rb, double v) {
  if (ra == 0 && rb == 0) return 0;
  if (is_whole(b, rb) && b >= 0) return pow(fabs(a) + ra, b) - fabs(v);
  if (is_whole(b, rb)) return pow(fabs(a) - ra, b) - fabs(v);
  return stretched(fabs(v), pow_shift(a, ra, b, rb));
}

static bool pow_doubt(double a, double sa, double ra, double b, double rb, double top) {
  if (ra == 0 && rb == 0) return b < 0 && a == 0 && sa > 0;
  if (is_whole(b, rb)) {
    double smallest = pow(b < 0 ? fabs(a) + ra : fmax(0, fabs(a) - ra), b);
    return (b < 0 && fabs(a) <= ra) || (isinf(pow(a, b)) && smallest <= top);
  }
  bool is_nan_for_sure = rb == 0 && a + ra < 0;
  if (!(a - ra > 0)) return !is_nan_for_sure;
  return isfinite(a) && isinf(pow(a, b)) &&
         b * log(a) - pow_shift(a, ra, b, rb) <= log(top);
}

// fmod is a - n b with n = trunc(a / b): while n stays it moves with a and n b, and when
// n may change it can be anything below b.
static double fmod_moved(double a, double sa, double ra, double b, double sb, double rb,
                         double k) {
  double size = fabs(a), by = fabs(b);
  if (!isfinite(a) || isinf(b) || !(by > rb)) return sa;
  double least = trunc(fmax(0, size - ra) / (by + rb));
  double most = trunc((size + ra) / (by - rb));
  if (ra == 0 && rb == 0) return 0;
  return least == most ? sa + most * sb : 2 * (by + rb) / k;
}

// As exp(b log a) in single precision the error grows with the exponent of the result.
static double pow_ulps(double a, double b) {
  double exponent = fabs(b * log(fabs(a)));
  return isfinite(exponent) ? 2 * exponent : 0;
}

// ---- float kernels --------------------------------------------------------------

#define EXACT 0
#define IEEE (s == 0 && is_representable(call->to, v) ? 0 : fabs(v) + k * s)
#define ULPS(n, m) (v == 0 && s == 0 ? 0 : (n) * (fabs(v) + k * s) + (m))
#define OPERAND(name, i)                                              \
  double name = call->in[i].value[j], s##name = call->in[i].scale[j], \
         r##name = radius_of(limits, s##name);                        \
  (void)r##name
#define OPERANDS_1 OPERAND(a, 0)
#define OPERANDS_2 \
  OPERAND(a, 0);   \
  OPERAND(b, 1)
#define UNSURE_1 isinf(sa)
#define UNSURE_2 (isinf(sa) || isinf(sb))
#define HELD_1 ft_is_held(limits, a, sa)
#define HELD_2 (HELD_1 || ft_is_held(limits, b, sb))
// Of an infinite result: what doubles have no room for, or a pole, a kernel has not
// either.
#define POLE (limits->is_held ? 0 : 1)
#define MARK_1 (isinf(a) ? sa : POLE)
#define MARK_2 \
  (isfinite(a) && isfinite(b) ? POLE : (isinf(a) ? sa : 0) + (isinf(b) ? sb : 0))

#define FT_FLOAT(id, arity, value_, scale_, doubt_, rounding)                  \
  static void float_##id(const ft_semantics_call *call) {                      \
    const ft_limits *limits = &limits_of[call->to];                            \
    const double k = limits->radius;                                           \
    (void)k;                                                                   \
    for (size_t j = 0; j < call->count; j++) {                                 \
      OPERANDS_##arity;                                                        \
      double v = (value_), s = (scale_);                                       \
      settle(limits, v, s, rounding, UNSURE_##arity || (doubt_), MARK_##arity, \
             &call->out.value[j], &call->out.scale[j]);                        \
    }                                                                          \
  }
#define FT_FLOAT_TEST(id, truth)                                     \
  static void float_##id(const ft_semantics_call *call) {            \
    const ft_limits *limits = &limits_of[call->from];                \
    for (size_t j = 0; j < call->count; j++) {                       \
      OPERANDS_2;                                                    \
      bool close = (ra > 0 || rb > 0) && fabs(a - b) <= ra + rb;     \
      close |= HELD_2 && a == b;                                     \
      call->out.integer[j] = (truth);                                \
      call->out.scale[j] = UNSURE_2 || close ? (double)INFINITY : 0; \
    }                                                                \
  }
#include "graph/semantics.def"

// ---- integers -------------------------------------------------------------------

int64_t ft_integer_wrap(ft_dtype dtype, int64_t x) {
  switch (dtype) {
    case FT_BOOL:
      return x != 0;
    case FT_U8:
      return (uint8_t)x;
    case FT_U16:
      return (uint16_t)x;
    case FT_U32:
      return (uint32_t)x;
    case FT_I8:
      return (int8_t)x;
    case FT_I16:
      return (int16_t)x;
    case FT_I32:
      return (int32_t)x;
    default:
      return x;
  }
}

int64_t ft_integer_lowest(ft_dtype dtype) {
  switch (dtype) {
    case FT_I8:
      return INT8_MIN;
    case FT_I16:
      return INT16_MIN;
    case FT_I32:
      return INT32_MIN;
    case FT_I64:
      return INT64_MIN;
    default:
      return 0;
  }
}

int64_t ft_integer_highest(ft_dtype dtype) {
  switch (dtype) {
    case FT_BOOL:
      return 1;
    case FT_U64:
      return -1;  // all bits
    case FT_I64:
      return INT64_MAX;
    default:  // 2^bits - 1 steps above the lowest
      return ft_integer_lowest(dtype) +
             (int64_t)((UINT64_C(1) << (8 * ft_dtype_bytes(dtype))) - 1);
  }
}

static inline bool is_below(ft_dtype d, int64_t x, int64_t y) {
  return d == FT_U64 ? (uint64_t)x < (uint64_t)y : x < y;
}
bool ft_integer_below(ft_dtype dtype, int64_t x, int64_t y) {
  return is_below(dtype, x, y);
}
static inline bool is_negative(ft_dtype d, int64_t x) {
  return d != FT_U64 && x < 0;
}
static inline int64_t plus(int64_t x, int64_t y) {
  return (int64_t)((uint64_t)x + (uint64_t)y);
}
static inline int64_t minus(int64_t x, int64_t y) {
  return (int64_t)((uint64_t)x - (uint64_t)y);
}
static inline int64_t times(int64_t x, int64_t y) {
  return (int64_t)((uint64_t)x * (uint64_t)y);
}
static inline int64_t quotient(ft_dtype d, int64_t x, int64_t y) {
  if (y == 0) return 0;
  if (d == FT_U64) return (int64_t)((uint64_t)x / (uint64_t)y);
  return y == -1 ? minus(0, x) : x / y;  // the lowest by -1 wraps
}

static inline int64_t remainder_of(ft_dtype d, int64_t x, int64_t y) {
  if (y == 0) return 0;
  if (d == FT_U64) return (int64_t)((uint64_t)x % (uint64_t)y);
  return y == -1 ? 0 : x % y;
}

// Negative powers truncate like a division: 0 unless the base is 1 or -1.
static int64_t power(ft_dtype d, int64_t x, int64_t y) {
  if (is_negative(d, y)) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
  int64_t result = 1;
  for (uint64_t left = (uint64_t)y; left; left >>= 1) {
    if (left & 1) result = times(result, x);
    x = times(x, x);
  }
  return result;
}

#define ANY (sx > 0 || sy > 0)
#define INTEGER_1(j)                         \
  int64_t x = call->in[0].integer[j], y = 0; \
  double sx = call->in[0].scale[j], sy = 0
#define INTEGER_2(j)                                              \
  int64_t x = call->in[0].integer[j], y = call->in[1].integer[j]; \
  double sx = call->in[0].scale[j], sy = call->in[1].scale[j]

#define FT_INTEGER(id, arity, value_, doubt_)                     \
  static void integer_##id(const ft_semantics_call *call) {       \
    const ft_dtype d = call->from;                                \
    for (size_t j = 0; j < call->count; j++) {                    \
      INTEGER_##arity(j);                                         \
      (void)y, (void)d;                                           \
      call->out.integer[j] = ft_integer_wrap(call->to, (value_)); \
      call->out.scale[j] = (doubt_) ? (double)INFINITY : 0;       \
    }                                                             \
  }
#include "graph/semantics.def"

// ---- where ----------------------------------------------------------------------

// The scale that covers the branch not taken as well.
static double both(double taken, double s_taken, double other, double s_other, double k) {
  if (taken == other) return fmax(s_taken, s_other);
  if (!isfinite(taken) || !isfinite(other)) return (double)INFINITY;
  return fmax(s_taken, fabs(taken - other) / k * (1 + 1e-9) + s_other);
}

static void float_WHERE(const ft_semantics_call *call) {
  const double k = limits_of[call->to].radius;
  const ft_cells *in = call->in;
  for (size_t j = 0; j < call->count; j++) {
    int taken = in[0].integer[j] ? 1 : 2, other = 3 - taken;
    double v = in[taken].value[j], s = in[taken].scale[j];
    if (in[0].scale[j] > 0) s = both(v, s, in[other].value[j], in[other].scale[j], k);
    call->out.value[j] = v;
    call->out.scale[j] = s;
  }
}

static void integer_WHERE(const ft_semantics_call *call) {
  const ft_cells *in = call->in;
  for (size_t j = 0; j < call->count; j++) {
    int taken = in[0].integer[j] ? 1 : 2, other = 3 - taken;
    bool flips = in[0].scale[j] > 0 &&
                 (in[1].integer[j] != in[2].integer[j] || in[other].scale[j] > 0);
    call->out.integer[j] = in[taken].integer[j];
    call->out.scale[j] = flips ? (double)INFINITY : in[taken].scale[j];
  }
}

// ---- cast -----------------------------------------------------------------------

// Of an overflow that kernels see too.
static inline void be_certain(const ft_limits *to, double v, const ft_cells *out,
                              size_t j) {
  if (isfinite(v) && ft_is_held(to, out->value[j], out->scale[j]) && out->scale[j] == 1)
    out->scale[j] = 0;
}

static void cast_float_to_float(const ft_semantics_call *call) {
  const ft_limits *from = &limits_of[call->from], *to = &limits_of[call->to];
  double units = from->unit / to->unit;
  for (size_t j = 0; j < call->count; j++) {
    double v = call->in[0].value[j], s = call->in[0].scale[j];
    bool doubt = isinf(s) || (call->from != call->to && ft_is_held(from, v, s));
    double mark = isinf(v) ? s : 1;
    bool exact = call->to == FT_F64 || (s == 0 && is_representable(call->to, v));
    s *= units;
    settle(to, v, s, exact ? 0 : fabs(v) + to->radius * s, doubt, mark,
           &call->out.value[j], &call->out.scale[j]);
    be_certain(to, v, &call->out, j);
  }
}

static bool truncates_into(ft_dtype to, double a) {
  if (to == FT_U64) return a > -1 && a < 0x1p64;
  if (to == FT_I64) return a >= -0x1p63 && a < 0x1p63;
  return trunc(a) >= (double)ft_integer_lowest(to) &&
         trunc(a) <= (double)ft_integer_highest(to);
}

// Past the range it saturates, NaN gives 0: what a GPU does; kernels in C must see to it.
static int64_t truncated(ft_dtype to, double a) {
  if (isnan(a)) return 0;
  if (!truncates_into(to, a))
    return a < 0 ? ft_integer_lowest(to) : ft_integer_highest(to);
  return to == FT_U64 ? (int64_t)(uint64_t)trunc(a) : (int64_t)a;
}

static void cast_float_to_integer(const ft_semantics_call *call) {
  const ft_limits *limits = &limits_of[call->from];
  for (size_t j = 0; j < call->count; j++) {
    OPERAND(a, 0);
    int64_t x = truncated(call->to, a);
    bool flips = isinf(sa) || HELD_1 ||
                 (ra > 0 &&
                  (truncated(call->to, a - ra) != x || truncated(call->to, a + ra) != x));
    call->out.integer[j] = x;
    call->out.scale[j] = flips ? (double)INFINITY : 0;
  }
}

static void cast_float_to_bool(const ft_semantics_call *call) {
  const ft_limits *limits = &limits_of[call->from];
  for (size_t j = 0; j < call->count; j++) {
    OPERAND(a, 0);
    call->out.integer[j] = a != 0;
    call->out.scale[j] = isinf(sa) || (ra > 0 && fabs(a) <= ra) ? (double)INFINITY : 0;
  }
}

// An uncertain bool is 0 or 1, an uncertain integer may be anything.
static void cast_integer_to_float(const ft_semantics_call *call) {
  const ft_limits *to = &limits_of[call->to];
  for (size_t j = 0; j < call->count; j++) {
    int64_t x = call->in[0].integer[j];
    double v = call->from == FT_U64 ? (double)(uint64_t)x : (double)x;
    bool unsure = call->in[0].scale[j] > 0, is_bool = call->from == FT_BOOL;
    double s = unsure ? 1 / to->radius * (1 + 1e-9) : 0;
    bool exact = call->to == FT_F64 ? fabs(v) <= 0x1p53 : is_representable(call->to, v);
    settle(to, v, s, exact ? 0 : fabs(v), unsure && !is_bool, 1, &call->out.value[j],
           &call->out.scale[j]);
    be_certain(to, v, &call->out, j);
  }
}

// ---- the table ------------------------------------------------------------------

static void float_CAST(const ft_semantics_call *call) {
  if (ft_dtype_is_float(call->to))
    cast_float_to_float(call);
  else if (call->to == FT_BOOL)
    cast_float_to_bool(call);
  else
    cast_float_to_integer(call);
}

static void integer_CAST(const ft_semantics_call *call) {
  if (ft_dtype_is_float(call->to))
    cast_integer_to_float(call);
  else
    integer_COPY(call);
}

static ft_elementwise *const float_kernel[FT_OP_COUNT] = {
#define FT_FLOAT(id, arity, value, scale, doubt, rounding) [FT_OP_##id] = float_##id,
#define FT_FLOAT_TEST(id, truth) [FT_OP_##id] = float_##id,
#include "graph/semantics.def"
    [FT_OP_CAST] = float_CAST,      [FT_OP_WHERE] = float_WHERE,
    [FT_OP_BROADCAST] = float_COPY, [FT_OP_TRANSPOSE] = float_COPY,
    [FT_OP_SLICE] = float_COPY,
};

static ft_elementwise *const integer_kernel[FT_OP_COUNT] = {
#define FT_INTEGER(id, arity, value, doubt) [FT_OP_##id] = integer_##id,
#include "graph/semantics.def"
    [FT_OP_CAST] = integer_CAST,      [FT_OP_WHERE] = integer_WHERE,
    [FT_OP_BROADCAST] = integer_COPY, [FT_OP_TRANSPOSE] = integer_COPY,
    [FT_OP_SLICE] = integer_COPY,
};

ft_elementwise *ft_semantics_find(ft_op op, ft_dtype from) {
  FT_ASSERT((unsigned)op < FT_OP_COUNT);
  return ft_dtype_is_float(from) ? float_kernel[op] : integer_kernel[op];
}
