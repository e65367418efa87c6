// Activations, decomposed. Comparisons with NaN are false, so every WHERE here hands a
// NaN through.
#include <math.h>

#include "graph/lower.h"

// x < 0 ? negative : x
static uint32_t where_negative(ft_lowering *l, uint32_t x, uint32_t negative) {
  uint32_t is_negative = ft_emit2(l, FT_OP_LESS, x, ft_emit_scalar(l, x, 0));
  return ft_emit_where(l, is_negative, negative, x);
}

static uint32_t scale(ft_lowering *l, uint32_t x, double factor) {
  return ft_emit2(l, FT_OP_MUL, x, ft_emit_scalar(l, x, factor));
}

static uint32_t shift(ft_lowering *l, uint32_t x, double term) {
  return ft_emit2(l, FT_OP_ADD, x, ft_emit_scalar(l, x, term));
}

static uint32_t exp_minus_one(ft_lowering *l, uint32_t x) {
  return shift(l, ft_emit1(l, FT_OP_EXP, x), -1);
}

ft_status ft_lower_leaky_relu(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  double alpha = (double)ft_lower_float(l, "alpha", 0.01f);
  return ft_lower_return(l, where_negative(l, x, scale(l, x, alpha)));
}

// Before opset 7 a slope of rank 1 lies on axis 1 of x; later it broadcasts to x.
static uint32_t place_slope(ft_lowering *l, uint32_t x, uint32_t slope) {
  ft_shape to = ft_lower_shape_of(l, x), shape = ft_lower_shape_of(l, slope);
  if (l->opset >= 7 || shape.rank != 1 || shape.dim[0] == 1) return slope;
  for (int axis = 2; axis < to.rank; axis++) shape.dim[shape.rank++] = 1;
  return ft_emit_view(l, slope, &shape);
}

ft_status ft_lower_prelu(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0), slope = ft_lower_input(l, 1);
  slope = place_slope(l, x, slope);
  uint32_t y = where_negative(l, x, ft_emit2(l, FT_OP_MUL, x, slope));
  ft_shape from = ft_lower_shape_of(l, x), to = ft_lower_shape_of(l, y);
  if (!ft_shape_equal(&from, &to))
    return ft_lower_fail(l, FT_REFUSED, "the slope does not broadcast to the input");
  return ft_lower_return(l, y);
}

ft_status ft_lower_elu(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  double alpha = (double)ft_lower_float(l, "alpha", 1);
  return ft_lower_return(l, where_negative(l, x, scale(l, exp_minus_one(l, x), alpha)));
}

ft_status ft_lower_selu(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  double alpha = (double)ft_lower_float(l, "alpha", 1.67326319217681884765625f);
  double gamma = (double)ft_lower_float(l, "gamma", 1.05070102214813232421875f);
  uint32_t y = where_negative(l, x, scale(l, exp_minus_one(l, x), alpha));
  return ft_lower_return(l, scale(l, y, gamma));
}

ft_status ft_lower_celu(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  double alpha = (double)ft_lower_float(l, "alpha", 1);
  uint32_t curve = exp_minus_one(l, scale(l, x, 1 / alpha));
  return ft_lower_return(l, where_negative(l, x, scale(l, curve, alpha)));
}

ft_status ft_lower_thresholded_relu(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  uint32_t alpha = ft_emit_scalar(l, x, (double)ft_lower_float(l, "alpha", 1));
  uint32_t is_kept = ft_emit2(l, FT_OP_LESS, alpha, x);
  return ft_lower_return(l, ft_emit_where(l, is_kept, x, ft_emit_scalar(l, x, 0)));
}

ft_status ft_lower_shrink(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  double bias = (double)ft_lower_float(l, "bias", 0);
  double edge = (double)ft_lower_float(l, "lambd", 0.5f);
  uint32_t is_low = ft_emit2(l, FT_OP_LESS, x, ft_emit_scalar(l, x, -edge));
  uint32_t is_high = ft_emit2(l, FT_OP_LESS, ft_emit_scalar(l, x, edge), x);
  uint32_t high = ft_emit_where(l, is_high, shift(l, x, -bias), ft_emit_scalar(l, x, 0));
  return ft_lower_return(l, ft_emit_where(l, is_low, shift(l, x, bias), high));
}

static uint32_t hard_sigmoid(ft_lowering *l, uint32_t x, double alpha, double beta) {
  uint32_t line = shift(l, scale(l, x, alpha), beta);
  uint32_t below = ft_emit2(l, FT_OP_MIN, line, ft_emit_scalar(l, x, 1));
  return ft_emit2(l, FT_OP_MAX, below, ft_emit_scalar(l, x, 0));
}

ft_status ft_lower_hard_sigmoid(ft_lowering *l) {
  double alpha = (double)ft_lower_float(l, "alpha", 0.2f);
  double beta = (double)ft_lower_float(l, "beta", 0.5f);
  return ft_lower_return(l, hard_sigmoid(l, ft_lower_input(l, 0), alpha, beta));
}

ft_status ft_lower_hard_swish(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  return ft_lower_return(l, ft_emit2(l, FT_OP_MUL, x, hard_sigmoid(l, x, 1.0 / 6, 0.5)));
}

// max(x, 0) + log(1 + exp(-|x|)): never overflows.
static uint32_t softplus(ft_lowering *l, uint32_t x) {
  uint32_t small =
      ft_emit1(l, FT_OP_EXP, ft_emit1(l, FT_OP_NEG, ft_emit1(l, FT_OP_ABS, x)));
  uint32_t curve = ft_emit1(l, FT_OP_LOG, shift(l, small, 1));
  return ft_emit2(l, FT_OP_ADD, ft_emit1(l, FT_OP_RELU, x), curve);
}

ft_status ft_lower_softplus(ft_lowering *l) {
  return ft_lower_return(l, softplus(l, ft_lower_input(l, 0)));
}

ft_status ft_lower_mish(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  uint32_t gate = ft_emit1(l, FT_OP_TANH, softplus(l, x));
  return ft_lower_return(l, ft_emit2(l, FT_OP_MUL, x, gate));
}

ft_status ft_lower_swish(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  double alpha = (double)ft_lower_float(l, "alpha", 1);
  uint32_t gate = ft_emit1(l, FT_OP_SIGMOID, alpha == 1 ? x : scale(l, x, alpha));
  return ft_lower_return(l, ft_emit2(l, FT_OP_MUL, x, gate));
}

ft_status ft_lower_softsign(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  return ft_lower_return(
      l, ft_emit2(l, FT_OP_DIV, x, shift(l, ft_emit1(l, FT_OP_ABS, x), 1)));
}

// erf(x / sqrt(2))
static uint32_t gelu_inner(ft_lowering *l, uint32_t x) {
  return ft_emit1(l, FT_OP_ERF, scale(l, x, M_SQRT1_2));
}

// tanh(sqrt(2 / pi) (x + 0.044715 x^3))
static uint32_t gelu_inner_tanh(ft_lowering *l, uint32_t x) {
  uint32_t cube = ft_emit2(l, FT_OP_MUL, ft_emit2(l, FT_OP_MUL, x, x), x);
  uint32_t sum = ft_emit2(l, FT_OP_ADD, x, scale(l, cube, 0.044715));
  return ft_emit1(l, FT_OP_TANH, scale(l, sum, sqrt(M_2_PI)));
}

ft_status ft_lower_gelu(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  ft_span approximate = ft_lower_text(l, "approximate", "none");
  bool is_tanh = ft_span_is(approximate, "tanh");
  if (!is_tanh && !ft_span_is(approximate, "none"))
    return ft_lower_fail(l, FT_REFUSED, "approximate is '%.*s'",
                         FT_SPAN_SHOW(approximate));
  uint32_t inner = is_tanh ? gelu_inner_tanh(l, x) : gelu_inner(l, x);
  uint32_t half = scale(l, x, 0.5);
  return ft_lower_return(l, ft_emit2(l, FT_OP_MUL, half, shift(l, inner, 1)));
}
