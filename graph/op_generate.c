// Operators whose result is known when their operands are: Range, NonZero, EyeLike.
#include <math.h>

#include "graph/lower.h"

// ---- Range ----------------------------------------------------------------------------

static const ft_tensor *scalar(ft_lowering *l, uint32_t index, const char *what) {
  const ft_tensor *tensor = ft_lower_require(l, index, what);
  if (tensor && ft_shape_elements(&tensor->shape) != 1)
    ft_lower_fail(l, FT_REFUSED, "%s is not a scalar", what);
  return l->status == FT_OK ? tensor : NULL;
}

// max(ceil((limit - start) / delta), 0)
static int64_t float_count(ft_lowering *l, double start, double limit, double delta) {
  double count = ceil((limit - start) / delta);
  if (count <= 0) return 0;
  if (!(count <= (double)INT32_MAX)) ft_lower_fail(l, FT_REFUSED, "%g elements", count);
  return l->status == FT_OK ? (int64_t)count : 0;
}

static int64_t integer_count(ft_lowering *l, int64_t start, int64_t limit,
                             int64_t delta) {
  int64_t span;
  if (delta == 0 || __builtin_sub_overflow(limit, start, &span)) {
    ft_lower_fail(l, FT_REFUSED, "from %lld to %lld by %lld", (long long)start,
                  (long long)limit, (long long)delta);
    return 0;
  }
  if (span == 0 || (span > 0) != (delta > 0)) return 0;
  return span / delta + (span % delta != 0);
}

ft_status ft_lower_range(ft_lowering *l) {
  const ft_tensor *start = scalar(l, 0, "start"), *limit = scalar(l, 1, "limit");
  const ft_tensor *delta = scalar(l, 2, "delta");
  if (l->status != FT_OK) return l->status;
  if (limit->dtype != start->dtype || delta->dtype != start->dtype)
    return ft_lower_fail(l, FT_REFUSED, "its operands have different dtypes");
  bool is_float = ft_dtype_is_float(start->dtype);
  double from = ft_tensor_get_f64(start, 0), by = ft_tensor_get_f64(delta, 0);
  int64_t first = ft_tensor_get_i64(start, 0), step = ft_tensor_get_i64(delta, 0);
  int64_t count = is_float ? float_count(l, from, ft_tensor_get_f64(limit, 0), by)
                           : integer_count(l, first, ft_tensor_get_i64(limit, 0), step);
  ft_tensor tensor;
  void *data =
      ft_lower_generate(l, start->dtype, &(ft_shape){.rank = 1, .dim = {count}}, &tensor);
  for (int64_t i = 0; data && i < count; i++) {
    if (is_float)
      ft_element_set_f64(start->dtype, data, i, from + (double)i * by);
    else
      ft_element_set_i64(start->dtype, data, i, first + i * step);
  }
  return ft_lower_return(l, ft_emit_constant(l, &tensor));
}

// ---- NonZero --------------------------------------------------------------------------

static bool is_set(const ft_tensor *tensor, int64_t i) {
  return ft_dtype_is_float(tensor->dtype) ? ft_tensor_get_f64(tensor, i) != 0
                                          : ft_tensor_get_i64(tensor, i) != 0;
}

// The coordinates of the elements that are not zero, one row per axis.
ft_status ft_lower_non_zero(ft_lowering *l) {
  const ft_tensor *x = ft_lower_require(l, 0, "the input");
  if (!x) return l->status;
  int64_t elements = ft_shape_elements(&x->shape), count = 0, next = 0;
  if (elements > 1 << 24)
    return ft_lower_fail(l, FT_UNSUPPORTED, "%lld elements", (long long)elements);
  for (int64_t i = 0; i < elements; i++) count += is_set(x, i);
  int rank = x->shape.rank ? x->shape.rank : 1;
  ft_tensor tensor;
  int64_t *data =
      ft_lower_generate(l, FT_I64, &(ft_shape){.rank = 2, .dim = {rank, count}}, &tensor);
  for (int64_t i = 0; data && i < elements; i++) {
    if (!is_set(x, i)) continue;
    int64_t rest = i;
    for (int axis = x->shape.rank - 1; axis >= 0; axis--) {
      data[axis * count + next] = rest % x->shape.dim[axis];
      rest /= x->shape.dim[axis];
    }
    next++;
  }
  return ft_lower_return(l, ft_emit_constant(l, &tensor));
}

// ---- EyeLike --------------------------------------------------------------------------

ft_status ft_lower_eye_like(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  ft_shape shape = ft_lower_shape_of(l, x);
  ft_dtype dtype = ft_lower_dtype(l, x);
  if (ft_onnx_find_attribute(l->node, "dtype"))
    dtype = ft_dtype_from_onnx(ft_lower_int(l, "dtype", 0));
  int64_t k = ft_lower_int(l, "k", 0);
  if (l->status != FT_OK) return l->status;
  if (dtype == FT_DTYPE_COUNT) return ft_lower_fail(l, FT_UNSUPPORTED, "its dtype");
  if (shape.rank != 2)
    return ft_lower_fail(l, FT_REFUSED, "the input has rank %d, not 2", shape.rank);
  ft_tensor tensor;
  void *data = ft_lower_generate(l, dtype, &shape, &tensor);
  for (int64_t i = 0; data && i < shape.dim[0]; i++)
    if (k >= -i && k < shape.dim[1] - i)
      ft_element_set_i64(dtype, data, i * shape.dim[1] + i + k, 1);
  return ft_lower_return(l, ft_emit_constant(l, &tensor));
}
