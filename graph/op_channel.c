// Normalizations along channels, and those that are one formula over given axes.
#include "graph/lower.h"

static uint32_t shift(ft_lowering *l, uint32_t x, double term) {
  return ft_emit2(l, FT_OP_ADD, x, ft_emit_scalar(l, x, term));
}

// 1 / sqrt(variance + epsilon)
static uint32_t inverse_of(ft_lowering *l, uint32_t variance) {
  double epsilon = (double)ft_lower_float(l, "epsilon", 1e-5f);
  uint32_t safe = shift(l, variance, epsilon);
  return ft_emit1(l, FT_OP_RECIPROCAL, ft_emit1(l, FT_OP_SQRT, safe));
}

// Input |index|, |count| elements, in the dtype of |x|.
static uint32_t per_channel(ft_lowering *l, uint32_t index, uint32_t x, int64_t count) {
  uint32_t value = ft_lower_input(l, index);
  ft_shape shape = ft_lower_shape_of(l, value);
  if (l->status != FT_OK) return FT_NONE;
  if (shape.rank != 1 || shape.dim[0] != count) {
    ft_lower_fail(l, FT_REFUSED, "input %u is %s, not %lld", index,
                  ft_shape_text(&shape, l->graph->arena), (long long)count);
    return FT_NONE;
  }
  return ft_emit_cast(l, value, ft_lower_dtype(l, x));
}

static ft_shape channeled(ft_lowering *l, uint32_t x, int min_rank) {
  ft_shape shape = ft_lower_shape_of(l, x);
  if (l->status == FT_OK && shape.rank < min_rank)
    ft_lower_fail(l, FT_UNSUPPORTED, "the input has rank %d", shape.rank);
  return shape;
}

// ---- BatchNormalization
// -----------------------------------------------------------------

// Before opset 7 is_test says whether this is inference, from 14 on training_mode; before
// 9 spatial = 0 keeps statistics for every element.
static void refuse_modes(ft_lowering *l) {
  bool trains = l->opset < 7    ? ft_lower_int(l, "is_test", 0) == 0
                : l->opset < 14 ? false
                                : ft_lower_int(l, "training_mode", 0) != 0;
  if (trains) ft_lower_fail(l, FT_UNSUPPORTED, "training mode");
  if (l->opset < 9 && ft_lower_int(l, "spatial", 1) == 0)
    ft_lower_fail(l, FT_UNSUPPORTED, "spatial is 0");
}

// x * a + b, a = scale / sqrt(variance + epsilon), b = bias - mean * a: both constants
// when the statistics are.
ft_status ft_lower_batch_norm(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0), input[5];
  ft_shape shape = channeled(l, x, 2);
  for (uint32_t i = 1; i < 5; i++) input[i] = per_channel(l, i, x, shape.dim[1]);
  refuse_modes(l);
  uint32_t a = ft_emit2(l, FT_OP_MUL, input[1], inverse_of(l, input[4]));
  uint32_t b = ft_emit2(l, FT_OP_SUB, input[2], ft_emit2(l, FT_OP_MUL, input[3], a));
  uint32_t scaled = ft_emit2(l, FT_OP_MUL, x, ft_emit_place(l, a, 1, shape.rank));
  return ft_lower_return(
      l, ft_emit2(l, FT_OP_ADD, scaled, ft_emit_place(l, b, 1, shape.rank)));
}

// ---- Instance- and GroupNormalization
// ---------------------------------------------------

// (x - mean) / sqrt(variance + epsilon) over the axes.
static uint32_t standardize(ft_lowering *l, uint32_t x, uint32_t axes) {
  uint32_t d = ft_emit2(l, FT_OP_SUB, x, ft_emit_mean(l, x, axes));
  uint32_t variance = ft_emit_mean(l, ft_emit2(l, FT_OP_MUL, d, d), axes);
  return ft_emit2(l, FT_OP_MUL, d, inverse_of(l, variance));
}

static uint32_t affine(ft_lowering *l, uint32_t x, uint32_t scale, uint32_t bias,
                       int rank) {
  uint32_t y = ft_emit2(l, FT_OP_MUL, x, ft_emit_place(l, scale, 1, rank));
  return ft_emit2(l, FT_OP_ADD, y, ft_emit_place(l, bias, 1, rank));
}

ft_status ft_lower_instance_norm(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  ft_shape shape = channeled(l, x, 3);
  uint32_t scale = per_channel(l, 1, x, shape.dim[1]);
  uint32_t bias = per_channel(l, 2, x, shape.dim[1]);
  uint32_t axes = ((1u << shape.rank) - 1) & ~3u;
  return ft_lower_return(l, affine(l, standardize(l, x, axes), scale, bias, shape.rank));
}

// Scale and bias are per group at opset 18, per channel from 21 on.
ft_status ft_lower_group_norm(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  ft_shape shape = channeled(l, x, 2), grouped = {.rank = 3, .dim = {0, 0, 1}};
  int64_t groups = ft_lower_int(l, "num_groups", 0);
  if (l->status == FT_OK && (groups < 1 || shape.dim[1] % groups))
    return ft_lower_fail(l, FT_REFUSED, "%lld channels do not make %lld groups",
                         (long long)shape.dim[1], (long long)groups);
  if (ft_lower_int(l, "stash_type", 1) != 1)
    return ft_lower_fail(l, FT_UNSUPPORTED, "stash_type");
  if (l->status != FT_OK) return l->status;
  grouped.dim[0] = shape.dim[0];
  grouped.dim[1] = groups;
  grouped.dim[2] = shape.dim[1] / groups;
  for (int i = 2; i < shape.rank; i++) grouped.dim[2] *= shape.dim[i];
  bool by_group = l->opset < 21;
  int64_t count = by_group ? groups : shape.dim[1];
  uint32_t scale = per_channel(l, 1, x, count), bias = per_channel(l, 2, x, count);
  uint32_t y = standardize(l, ft_emit_view(l, x, &grouped), 4);
  if (by_group)
    return ft_lower_return(l, ft_emit_view(l, affine(l, y, scale, bias, 3), &shape));
  return ft_lower_return(l,
                         affine(l, ft_emit_view(l, y, &shape), scale, bias, shape.rank));
}

// ---- over given axes
// ----------------------------------------------------------------------

// Of zeros: zeros.
ft_status ft_lower_lp_norm(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  int axis = ft_lower_axis(l, ft_lower_int(l, "axis", -1), ft_lower_shape_of(l, x).rank);
  int64_t p = ft_lower_int(l, "p", 2);
  if (p != 1 && p != 2) return ft_lower_fail(l, FT_REFUSED, "p is %lld", (long long)p);
  uint32_t terms = p == 1 ? ft_emit1(l, FT_OP_ABS, x) : ft_emit2(l, FT_OP_MUL, x, x);
  uint32_t norm = ft_emit_reduce(l, FT_OP_REDUCE_SUM, terms, 1u << axis);
  if (p == 2) norm = ft_emit1(l, FT_OP_SQRT, norm);
  uint32_t is_zero = ft_emit2(l, FT_OP_EQUAL, norm, ft_emit_scalar(l, x, 0));
  uint32_t divisor = ft_emit_where(l, is_zero, ft_emit_scalar(l, x, 1), norm);
  return ft_lower_return(l, ft_emit2(l, FT_OP_DIV, x, divisor));
}

// (x - mean) / (deviation + 1e-9), as the operator's function body has it.
ft_status ft_lower_mean_variance_norm(ft_lowering *l) {
  static const int64_t usual[] = {0, 2, 3};
  uint32_t x = ft_lower_input(l, 0), axes = 0;
  int rank = ft_lower_shape_of(l, x).rank;
  size_t count;
  bool given;
  const int64_t *list = ft_lower_ints(l, "axes", &count, &given);
  if (!given) {
    list = usual;
    count = 3;
  }
  for (size_t i = 0; i < count && l->status == FT_OK; i++)
    axes |= 1u << ft_lower_axis(l, list[i], rank);
  uint32_t d = ft_emit2(l, FT_OP_SUB, x, ft_emit_mean(l, x, axes));
  uint32_t variance = ft_emit_mean(l, ft_emit2(l, FT_OP_MUL, d, d), axes);
  uint32_t deviation = shift(l, ft_emit1(l, FT_OP_SQRT, variance), 1e-9);
  return ft_lower_return(l, ft_emit2(l, FT_OP_DIV, d, deviation));
}
