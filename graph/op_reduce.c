// Reductions. Axes are an attribute before opset 13 (ReduceSum) or 18 (the others), an
// input after; no axes mean all of them, unless noop_with_empty_axes is set.
#include <math.h>

#include "graph/lower.h"

typedef struct reduction {
  uint32_t x;
  uint32_t axes;  // bit per axis
  bool keeps_dims;
  bool is_noop;
} reduction;

static const int64_t *given_axes(ft_lowering *l, size_t *count, bool *given) {
  int64_t since = ft_span_is(l->node->op, "ReduceSum") ? 13 : 18;
  if (l->opset < since) return ft_lower_ints(l, "axes", count, given);
  *count = 0;
  *given = ft_lower_optional(l, 1) != FT_NONE;
  return *given ? ft_lower_constant_ints(l, 1, "axes", FT_MAX_RANK, count) : NULL;
}

static void read_reduction(ft_lowering *l, reduction *out) {
  size_t count = 0;
  bool given;
  *out = (reduction){.x = ft_lower_input(l, 0)};
  int rank = ft_lower_shape_of(l, out->x).rank;
  const int64_t *axes = given_axes(l, &count, &given);
  for (size_t i = 0; i < count && l->status == FT_OK; i++)
    out->axes |= 1u << ft_lower_axis(l, axes[i], rank);
  if (count == 0) {
    out->is_noop = ft_lower_int(l, "noop_with_empty_axes", 0) != 0;
    out->axes = (1u << rank) - 1;
  }
  out->keeps_dims = ft_lower_int(l, "keepdims", 1) != 0;
  if (ft_lower_dtype(l, out->x) == FT_BOOL)
    ft_lower_fail(l, FT_UNSUPPORTED, "reduction of bool");
}

static ft_status finish(ft_lowering *l, const reduction *r, uint32_t reduced) {
  if (r->keeps_dims || r->is_noop || l->status != FT_OK)
    return ft_lower_return(l, reduced);
  ft_shape from = ft_lower_shape_of(l, reduced), to = {0};
  for (int i = 0; i < from.rank; i++)
    if (!(r->axes >> i & 1)) to.dim[to.rank++] = from.dim[i];
  return ft_lower_return(l, ft_emit_view(l, reduced, &to));
}

ft_status ft_lower_reduce(ft_lowering *l) {
  reduction r;
  read_reduction(l, &r);
  if (r.is_noop) return finish(l, &r, r.x);
  return finish(l, &r, ft_emit_reduce(l, l->primitive, r.x, r.axes));
}

ft_status ft_lower_reduce_mean(ft_lowering *l) {
  reduction r;
  read_reduction(l, &r);
  if (r.is_noop) return finish(l, &r, r.x);
  return finish(l, &r, ft_emit_mean(l, r.x, r.axes));
}

// Versions of ONNX differ on whether the pointwise part of these still applies.
static void refuse_noop(ft_lowering *l, const reduction *r) {
  if (r->is_noop) ft_lower_fail(l, FT_UNSUPPORTED, "noop_with_empty_axes");
}

ft_status ft_lower_reduce_l1(ft_lowering *l) {
  reduction r;
  read_reduction(l, &r);
  refuse_noop(l, &r);
  uint32_t terms = ft_emit1(l, FT_OP_ABS, r.x);
  return finish(l, &r, ft_emit_reduce(l, FT_OP_REDUCE_SUM, terms, r.axes));
}

static uint32_t sum_square(ft_lowering *l, reduction *r) {
  read_reduction(l, r);
  refuse_noop(l, r);
  uint32_t terms = ft_emit2(l, FT_OP_MUL, r->x, r->x);
  return ft_emit_reduce(l, FT_OP_REDUCE_SUM, terms, r->axes);
}

ft_status ft_lower_reduce_sum_square(ft_lowering *l) {
  reduction r;
  uint32_t sum = sum_square(l, &r);
  return finish(l, &r, sum);
}

ft_status ft_lower_reduce_l2(ft_lowering *l) {
  reduction r;
  uint32_t sum = sum_square(l, &r);
  return finish(l, &r, ft_emit1(l, FT_OP_SQRT, sum));
}

ft_status ft_lower_reduce_log_sum(ft_lowering *l) {
  reduction r;
  read_reduction(l, &r);
  refuse_noop(l, &r);
  uint32_t sum = ft_emit_reduce(l, FT_OP_REDUCE_SUM, r.x, r.axes);
  return finish(l, &r, ft_emit1(l, FT_OP_LOG, sum));
}

// m + log(sum(exp(x - m))) with m the largest; an infinite m would make inf - inf.
ft_status ft_lower_reduce_log_sum_exp(ft_lowering *l) {
  reduction r;
  read_reduction(l, &r);
  refuse_noop(l, &r);
  uint32_t largest = ft_emit_reduce(l, FT_OP_REDUCE_MAX, r.x, r.axes);
  uint32_t infinite = ft_emit2(l, FT_OP_EQUAL, ft_emit1(l, FT_OP_ABS, largest),
                               ft_emit_scalar(l, r.x, INFINITY));
  uint32_t m = ft_emit_where(l, infinite, ft_emit_scalar(l, r.x, 0), largest);
  uint32_t terms = ft_emit1(l, FT_OP_EXP, ft_emit2(l, FT_OP_SUB, r.x, m));
  uint32_t sum = ft_emit_reduce(l, FT_OP_REDUCE_SUM, terms, r.axes);
  return finish(l, &r, ft_emit2(l, FT_OP_ADD, m, ft_emit1(l, FT_OP_LOG, sum)));
}
