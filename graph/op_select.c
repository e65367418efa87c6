// Operators that compare positions: ArgMax, Hardmax, OneHot, CumSum, Trilu. Positions are
// constants 0, 1, 2, ...
#include "graph/lower.h"

// ---- ArgMax, ArgMin, Hardmax
// --------------------------------------------------------------

// Where x has its extreme along |axis|: a NaN is more extreme than any number.
static uint32_t extremes(ft_lowering *l, uint32_t x, int axis) {
  uint32_t extreme = ft_emit_reduce(l, l->primitive, x, 1u << axis);
  uint32_t hit = ft_emit2(l, FT_OP_EQUAL, x, extreme);
  if (!ft_dtype_is_float(ft_lower_dtype(l, x))) return hit;
  uint32_t is_nan = ft_emit1(l, FT_OP_NOT, ft_emit2(l, FT_OP_EQUAL, x, x));
  return ft_emit2(l, FT_OP_OR, hit, is_nan);
}

// The first (or last) position of an extreme along |axis|, of extent 1 there.
static uint32_t position(ft_lowering *l, uint32_t x, int axis, ft_dtype dtype,
                         bool is_last) {
  ft_shape shape = ft_lower_shape_of(l, x);
  int64_t extent = shape.dim[axis];
  if (l->status == FT_OK && ft_lower_dtype(l, x) == FT_BOOL)
    ft_lower_fail(l, FT_REFUSED, "of bool");
  if (l->status == FT_OK && extent == 0 && ft_shape_elements(&shape) == 0)
    ft_lower_fail(l, FT_REFUSED, "axis %d has no elements", axis);
  uint32_t iota = ft_emit_iota(l, dtype, extent, axis, shape.rank);
  uint32_t none = ft_emit_scalar(l, iota, is_last ? -1 : (double)extent);
  uint32_t places = ft_emit_where(l, extremes(l, x, axis), iota, none);
  return ft_emit_reduce(l, is_last ? FT_OP_REDUCE_MAX : FT_OP_REDUCE_MIN, places,
                        1u << axis);
}

ft_status ft_lower_arg(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  ft_shape shape = ft_lower_shape_of(l, x), to = {0};
  int axis = ft_lower_axis(l, ft_lower_int(l, "axis", 0), shape.rank);
  bool is_last = l->opset >= 12 && ft_lower_int(l, "select_last_index", 0) != 0;
  uint32_t y = position(l, x, axis, FT_I64, is_last);
  bool keeps_dims = ft_lower_int(l, "keepdims", 1) != 0;
  if (keeps_dims) return ft_lower_return(l, y);
  for (int i = 0; i < shape.rank; i++)
    if (i != axis) to.dim[to.rank++] = shape.dim[i];
  return ft_lower_return(l, ft_emit_view(l, y, &to));
}

// 1 at the first maximum, else 0. Before opset 13 of a matrix [0, axis) x [axis, rank).
ft_status ft_lower_hardmax(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  ft_shape shape = ft_lower_shape_of(l, x), flat = {.rank = 2, .dim = {1, 1}};
  int axis =
      ft_lower_axis(l, ft_lower_int(l, "axis", l->opset < 13 ? 1 : -1), shape.rank);
  ft_dtype dtype = ft_lower_dtype(l, x);
  if (l->status != FT_OK) return l->status;
  if (ft_shape_elements(&shape) == 0) return ft_lower_return(l, x);
  for (int i = 0; i < shape.rank; i++) flat.dim[i >= axis] *= shape.dim[i];
  if (l->opset < 13) {
    x = ft_emit_view(l, x, &flat);
    axis = 1;
  }
  ft_shape seen = ft_lower_shape_of(l, x);
  uint32_t at = position(l, x, axis, FT_I32, false);
  uint32_t iota = ft_emit_iota(l, FT_I32, seen.dim[axis], axis, seen.rank);
  uint32_t y = ft_emit_cast(l, ft_emit2(l, FT_OP_EQUAL, iota, at), dtype);
  return ft_lower_return(l, ft_emit_view(l, y, &shape));
}

// ---- OneHot
// -------------------------------------------------------------------------------

// A one-element slice of |values| as a scalar.
static uint32_t entry(ft_lowering *l, uint32_t values, int64_t at) {
  static const ft_shape scalar = {0};
  return ft_emit_view(l, ft_emit_slice(l, values, 0, at, 1, 1), &scalar);
}

// Negative indices count from the depth; those outside hit nothing.
ft_status ft_lower_one_hot(ft_lowering *l) {
  uint32_t indices = ft_lower_input(l, 0), values = ft_lower_input(l, 2);
  const ft_tensor *known = ft_lower_require(l, 1, "depth");
  ft_shape shape = ft_lower_shape_of(l, indices), pair = ft_lower_shape_of(l, values),
           to = {0};
  int rank = shape.rank + 1;
  int axis = ft_lower_axis(l, ft_lower_int(l, "axis", -1), rank);
  if (l->status != FT_OK) return l->status;
  if (pair.rank != 1 || pair.dim[0] != 2 || ft_shape_elements(&known->shape) != 1)
    return ft_lower_fail(l, FT_REFUSED, "depth is not one number, or values not two");
  if (rank > FT_MAX_RANK)
    return ft_lower_fail(l, FT_UNSUPPORTED, "rank %d is more than %d", rank, FT_MAX_RANK);
  int64_t depth = ft_tensor_get_i64(known, 0);
  if (depth < 1) return ft_lower_fail(l, FT_REFUSED, "depth is %lld", (long long)depth);
  for (int i = 0; i < shape.rank; i++) {
    if (i == axis) to.dim[to.rank++] = 1;
    to.dim[to.rank++] = shape.dim[i];
  }
  if (axis == shape.rank) to.dim[to.rank++] = 1;
  uint32_t at = ft_emit_view(l, ft_emit_cast(l, indices, FT_I64), &to);
  uint32_t is_negative = ft_emit2(l, FT_OP_LESS, at, ft_emit_scalar(l, at, 0));
  uint32_t wrapped = ft_emit2(l, FT_OP_ADD, at, ft_emit_scalar(l, at, (double)depth));
  at = ft_emit_where(l, is_negative, wrapped, at);
  uint32_t hit = ft_emit2(l, FT_OP_EQUAL, at, ft_emit_iota(l, FT_I64, depth, axis, rank));
  return ft_lower_return(l,
                         ft_emit_where(l, hit, entry(l, values, 1), entry(l, values, 0)));
}

// ---- CumSum and Trilu
// -----------------------------------------------------------------------

// |count| x |count| bools: element j counts for result i.
static uint32_t triangle(ft_lowering *l, int64_t count, bool is_exclusive,
                         bool is_reverse) {
  ft_shape shape = {.rank = 4, .dim = {1, count, count, 1}};
  ft_tensor tensor;
  uint8_t *data = ft_lower_generate(l, FT_BOOL, &shape, &tensor);
  for (int64_t i = 0; data && i < count; i++)
    for (int64_t j = 0; j < count; j++)
      data[i * count + j] = is_reverse ? j >= i + is_exclusive : j + is_exclusive <= i;
  return ft_emit_constant(l, &tensor);
}

// x [pre, 1, n, post], where the triangle [n, n] says so else 0, summed over n.
ft_status ft_lower_cum_sum(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  ft_shape shape = ft_lower_shape_of(l, x), wide = {.rank = 4, .dim = {1, 1, 1, 1}};
  size_t count;
  const int64_t *given = ft_lower_constant_ints(l, 1, "axis", 1, &count);
  if (l->status == FT_OK && count != 1) ft_lower_fail(l, FT_REFUSED, "axis is empty");
  int axis = ft_lower_axis(l, l->status == FT_OK ? given[0] : 0, shape.rank);
  bool is_exclusive = ft_lower_int(l, "exclusive", 0) != 0;
  bool is_reverse = ft_lower_int(l, "reverse", 0) != 0;
  if (l->status != FT_OK) return l->status;
  for (int i = 0; i < shape.rank; i++)
    wide.dim[i < axis ? 0 : i == axis ? 2 : 3] *= shape.dim[i];
  uint32_t mask = triangle(l, wide.dim[2], is_exclusive, is_reverse);
  uint32_t terms =
      ft_emit_where(l, mask, ft_emit_view(l, x, &wide), ft_emit_scalar(l, x, 0));
  uint32_t y = ft_emit_reduce(l, FT_OP_REDUCE_SUM, terms, 1u << 2);
  return ft_lower_return(l, ft_emit_view(l, y, &shape));
}

static int64_t read_diagonal(ft_lowering *l) {
  size_t count = 0;
  if (ft_lower_optional(l, 1) == FT_NONE) return 0;
  const int64_t *k = ft_lower_constant_ints(l, 1, "k", 1, &count);
  if (l->status == FT_OK && count != 1) ft_lower_fail(l, FT_REFUSED, "k is empty");
  if (l->status != FT_OK) return 0;
  int64_t most = INT32_MAX;
  return k[0] > most ? most : k[0] < -most ? -most : k[0];
}

ft_status ft_lower_trilu(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  ft_shape shape = ft_lower_shape_of(l, x), plane = {.rank = 2};
  bool is_upper = ft_lower_int(l, "upper", 1) != 0;
  int64_t k = read_diagonal(l);
  if (l->status == FT_OK && shape.rank < 2)
    return ft_lower_fail(l, FT_REFUSED, "the input has rank %d", shape.rank);
  if (l->status != FT_OK) return l->status;
  plane.dim[0] = shape.dim[shape.rank - 2];
  plane.dim[1] = shape.dim[shape.rank - 1];
  ft_tensor tensor;
  uint8_t *keeps = ft_lower_generate(l, FT_BOOL, &plane, &tensor);
  for (int64_t i = 0; keeps && i < plane.dim[0]; i++)
    for (int64_t j = 0; j < plane.dim[1]; j++)
      keeps[i * plane.dim[1] + j] = is_upper ? j - i >= k : j - i <= k;
  uint32_t zero = ft_emit_scalar(l, x, 0);
  return ft_lower_return(l, ft_emit_where(l, ft_emit_constant(l, &tensor), x, zero));
}
