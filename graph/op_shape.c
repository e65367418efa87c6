// Operators that only move or rename elements, and those that answer with a shape.
#include "graph/lower.h"

ft_status ft_lower_identity(ft_lowering *l) {
  return ft_lower_return(l, ft_lower_input(l, 0));
}

// The shape's dims [start, end), as an i64 constant of rank 1, or their product as a
// scalar.
static uint32_t dims_constant(ft_lowering *l, const int64_t *dims, int count,
                              bool is_scalar) {
  ft_shape shape = {.rank = is_scalar ? 0 : 1, .dim = {is_scalar ? 0 : count}};
  ft_tensor tensor;
  void *data;
  uint32_t out = FT_NONE;
  if (l->status != FT_OK) return FT_NONE;
  l->status = ft_tensor_alloc(FT_I64, &shape, l->graph->arena, &tensor, &data, l->error);
  for (int i = 0; l->status == FT_OK && i < count; i++)
    ft_element_set_i64(FT_I64, data, i, dims[i]);
  if (l->status == FT_OK)
    l->status = ft_graph_add_constant(l->graph, "", &tensor, &out, l->error);
  return l->status == FT_OK ? out : FT_NONE;
}

static int clamp_position(int64_t at, int rank) {
  if (at < 0) at += rank;
  return (int)(at < 0 ? 0 : at > rank ? rank : at);
}

ft_status ft_lower_shape(ft_lowering *l) {
  ft_shape shape = ft_lower_shape_of(l, ft_lower_input(l, 0));
  int start = clamp_position(ft_lower_int(l, "start", 0), shape.rank);
  int end = clamp_position(ft_lower_int(l, "end", shape.rank), shape.rank);
  int count = end > start ? end - start : 0;
  return ft_lower_return(l, dims_constant(l, shape.dim + start, count, false));
}

ft_status ft_lower_size(ft_lowering *l) {
  ft_shape shape = ft_lower_shape_of(l, ft_lower_input(l, 0));
  int64_t elements = ft_shape_elements(&shape);
  return ft_lower_return(l, dims_constant(l, &elements, 1, true));
}

// ---- Reshape ----------------------------------------------------------------------

// Puts the dim that makes |elements| in the place of -1.
static void infer_dim(ft_lowering *l, ft_shape *shape, int unknown, int64_t elements) {
  shape->dim[unknown] = 1;
  int64_t others = ft_shape_elements(shape);
  if (others <= 0 || elements % others != 0)
    ft_lower_fail(l, FT_REFUSED, "no dim in the place of -1 makes %lld elements",
                  (long long)elements);
  else
    shape->dim[unknown] = elements / others;
}

static void read_target(ft_lowering *l, const ft_shape *from, ft_shape *to) {
  size_t count;
  const int64_t *dims = ft_lower_constant_ints(l, 1, "shape", FT_MAX_RANK, &count);
  bool allow_zero = ft_lower_int(l, "allowzero", 0) != 0;
  int unknown = -1;
  *to = (ft_shape){.rank = (uint8_t)count};
  for (int i = 0; i < (int)count && l->status == FT_OK; i++) {
    to->dim[i] = dims[i];
    if (dims[i] == 0 && !allow_zero) {
      if (i >= from->rank)
        ft_lower_fail(l, FT_REFUSED, "shape[%d] is 0 where the input has rank %d", i,
                      from->rank);
      to->dim[i] = from->dim[i];
    }
    if (dims[i] >= 0) continue;
    if (dims[i] < -1 || unknown >= 0)
      ft_lower_fail(l, FT_REFUSED, "shape[%d] is %lld%s", i, (long long)dims[i],
                    unknown >= 0 ? ", a second unknown" : "");
    unknown = i;
  }
  if (unknown >= 0 && l->status == FT_OK)
    infer_dim(l, to, unknown, ft_shape_elements(from));
}

ft_status ft_lower_reshape(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  ft_shape from = ft_lower_shape_of(l, x), to;
  read_target(l, &from, &to);
  return ft_lower_return(l, ft_emit_view(l, x, &to));
}

ft_status ft_lower_flatten(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  ft_shape from = ft_lower_shape_of(l, x);
  int64_t axis = ft_lower_int(l, "axis", 1);
  if (axis < 0) axis += from.rank;
  if (axis < 0 || axis > from.rank)
    return ft_lower_fail(l, FT_REFUSED, "axis %lld of a value of rank %d",
                         (long long)axis, from.rank);
  // The value's dims cannot overflow together, but a zero-size one can in part.
  ft_shape to = {.rank = 2}, left = from, right = {0};
  left.rank = (uint8_t)axis;
  for (int i = (int)axis; i < from.rank; i++) right.dim[right.rank++] = from.dim[i];
  to.dim[0] = ft_shape_elements(&left);
  to.dim[1] = ft_shape_elements(&right);
  return ft_lower_return(l, ft_emit_view(l, x, &to));
}

// ---- Squeeze and Unsqueeze --------------------------------------------------------

// Axes as bits of a value of |rank|; *out_given is false when the node names none.
static uint32_t read_axes(ft_lowering *l, int rank, bool *out_given) {
  size_t count = 0;
  const int64_t *axes = NULL;
  if (l->opset < 13) {
    axes = ft_lower_ints(l, "axes", &count, out_given);
  } else {
    *out_given = ft_lower_optional(l, 1) != FT_NONE;
    if (*out_given) axes = ft_lower_constant_ints(l, 1, "axes", FT_MAX_RANK, &count);
  }
  uint32_t bits = 0;
  for (size_t i = 0; i < count && l->status == FT_OK; i++)
    bits |= 1u << ft_lower_axis(l, axes[i], rank);
  return bits;
}

ft_status ft_lower_squeeze(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  ft_shape from = ft_lower_shape_of(l, x), to = {0};
  bool given;
  uint32_t axes = read_axes(l, from.rank, &given);
  for (int i = 0; i < from.rank && l->status == FT_OK; i++) {
    bool dropped = given ? axes >> i & 1 : from.dim[i] == 1;
    if (dropped && from.dim[i] != 1)
      ft_lower_fail(l, FT_REFUSED, "axis %d has extent %lld, not 1", i,
                    (long long)from.dim[i]);
    if (!dropped) to.dim[to.rank++] = from.dim[i];
  }
  return ft_lower_return(l, ft_emit_view(l, x, &to));
}

static size_t axes_named(ft_lowering *l) {
  size_t count = 0;
  bool given;
  if (l->opset < 13)
    ft_lower_ints(l, "axes", &count, &given);
  else
    ft_lower_constant_ints(l, 1, "axes", FT_MAX_RANK, &count);
  return count;
}

ft_status ft_lower_unsqueeze(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  ft_shape from = ft_lower_shape_of(l, x), to = {0};
  size_t count = axes_named(l), rank = from.rank + count;
  if (rank > FT_MAX_RANK)
    return ft_lower_fail(l, FT_UNSUPPORTED, "rank %zu is more than %d", rank,
                         FT_MAX_RANK);
  bool given;
  uint32_t axes = read_axes(l, (int)rank, &given);
  if ((size_t)__builtin_popcount(axes) != count)
    return ft_lower_fail(l, FT_REFUSED, "an axis is named twice");
  to.rank = (uint8_t)rank;
  for (int i = 0, next = 0; i < to.rank; i++)
    to.dim[i] = axes >> i & 1 ? 1 : from.dim[next++];
  return ft_lower_return(l, ft_emit_view(l, x, &to));
}

// ---- Transpose and Expand ---------------------------------------------------------

ft_status ft_lower_transpose(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  int rank = ft_lower_shape_of(l, x).rank;
  size_t count;
  bool given;
  const int64_t *perm = ft_lower_ints(l, "perm", &count, &given);
  ft_attr attr = {0};
  if (given && count != (size_t)rank)
    return ft_lower_fail(l, FT_REFUSED, "perm has %zu entries for rank %d", count, rank);
  for (int i = 0; i < rank; i++)
    attr.perm[i] = (uint8_t)(given ? ft_lower_axis(l, perm[i], rank) : rank - 1 - i);
  return ft_lower_return(l, ft_emit(l, FT_OP_TRANSPOSE, &x, 1, &attr));
}

ft_status ft_lower_expand(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  size_t count;
  const int64_t *dims = ft_lower_constant_ints(l, 1, "shape", FT_MAX_RANK, &count);
  ft_shape from = ft_lower_shape_of(l, x), with = {.rank = (uint8_t)count}, to;
  for (size_t i = 0; i < count; i++) {
    if (dims[i] < 0)
      return ft_lower_fail(l, FT_REFUSED, "shape[%zu] is %lld", i, (long long)dims[i]);
    with.dim[i] = dims[i];
  }
  if (l->status == FT_OK) l->status = ft_shape_broadcast(&from, &with, &to, l->error);
  if (l->status != FT_OK) return l->status;
  return ft_lower_return(l, ft_emit_broadcast(l, x, &to));
}
