// Softmax and the normalizations, decomposed: the search decides what is fused again.
#include "graph/lower.h"

// Axes [axis, rank) as bits. Before opset 13 softmax sees a matrix [0, axis) x
// [axis, rank), which is the same as reducing all of the latter.
static uint32_t softmax_axes(ft_lowering *l, uint32_t x) {
  int rank = ft_lower_shape_of(l, x).rank;
  int64_t given = ft_lower_int(l, "axis", l->opset < 13 ? 1 : -1);
  int axis = ft_lower_axis(l, given, rank);
  if (l->opset >= 13) return 1u << axis;
  return ((1u << rank) - 1) & ~((1u << axis) - 1);
}

ft_status ft_lower_softmax(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0), axes = softmax_axes(l, x);
  uint32_t largest = ft_emit_reduce(l, FT_OP_REDUCE_MAX, x, axes);
  uint32_t terms = ft_emit1(l, FT_OP_EXP, ft_emit2(l, FT_OP_SUB, x, largest));
  uint32_t sum = ft_emit_reduce(l, FT_OP_REDUCE_SUM, terms, axes);
  return ft_lower_return(l, ft_emit2(l, FT_OP_DIV, terms, sum));
}

ft_status ft_lower_log_softmax(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0), axes = softmax_axes(l, x);
  uint32_t largest = ft_emit_reduce(l, FT_OP_REDUCE_MAX, x, axes);
  uint32_t shifted = ft_emit2(l, FT_OP_SUB, x, largest);
  uint32_t sum =
      ft_emit_reduce(l, FT_OP_REDUCE_SUM, ft_emit1(l, FT_OP_EXP, shifted), axes);
  return ft_lower_return(l, ft_emit2(l, FT_OP_SUB, shifted, ft_emit1(l, FT_OP_LOG, sum)));
}

// The axes from |axis| on, and the checks that both normalizations share.
static uint32_t norm_axes(ft_lowering *l, uint32_t x) {
  int rank = ft_lower_shape_of(l, x).rank;
  int axis = ft_lower_axis(l, ft_lower_int(l, "axis", -1), rank);
  if (ft_lower_int(l, "stash_type", 1) != 1)
    ft_lower_fail(l, FT_UNSUPPORTED, "stash_type %lld",
                  (long long)ft_lower_int(l, "stash_type", 1));
  return ((1u << rank) - 1) & ~((1u << axis) - 1);
}

// 1 / sqrt(mean(d * d) + epsilon)
static uint32_t inverse_deviation(ft_lowering *l, uint32_t d, uint32_t axes) {
  double epsilon = (double)ft_lower_float(l, "epsilon", 1e-5f);
  uint32_t variance = ft_emit_mean(l, ft_emit2(l, FT_OP_MUL, d, d), axes);
  uint32_t safe = ft_emit2(l, FT_OP_ADD, variance, ft_emit_scalar(l, d, epsilon));
  return ft_emit1(l, FT_OP_RECIPROCAL, ft_emit1(l, FT_OP_SQRT, safe));
}

static ft_status finish(ft_lowering *l, uint32_t x, uint32_t y) {
  ft_shape from = ft_lower_shape_of(l, x), to = ft_lower_shape_of(l, y);
  if (!ft_shape_equal(&from, &to))
    return ft_lower_fail(l, FT_REFUSED, "scale or bias does not broadcast to the input");
  return ft_lower_return(l, y);
}

ft_status ft_lower_layer_norm(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0), gamma = ft_lower_input(l, 1);
  uint32_t beta = ft_lower_optional(l, 2), axes = norm_axes(l, x);
  uint32_t mean = ft_emit_mean(l, x, axes);
  uint32_t d = ft_emit2(l, FT_OP_SUB, x, mean);
  uint32_t inverse = inverse_deviation(l, d, axes);
  uint32_t y = ft_emit2(l, FT_OP_MUL, ft_emit2(l, FT_OP_MUL, d, inverse), gamma);
  if (beta != FT_NONE) y = ft_emit2(l, FT_OP_ADD, y, beta);
  ft_lower_set(l, 1, mean);
  ft_lower_set(l, 2, inverse);
  return finish(l, x, y);
}

ft_status ft_lower_rms_norm(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0), gamma = ft_lower_input(l, 1);
  uint32_t inverse = inverse_deviation(l, x, norm_axes(l, x));
  uint32_t y = ft_emit2(l, FT_OP_MUL, ft_emit2(l, FT_OP_MUL, x, inverse), gamma);
  return finish(l, x, y);
}
