// Pools and LRN: windows over the spatial axes, or over the channels.
#include <math.h>

#include "graph/window.h"

static uint32_t raise(ft_lowering *l, uint32_t x, double power) {
  return ft_emit2(l, FT_OP_POW, x, ft_emit_scalar(l, x, power));
}

ft_status ft_lower_max_pool(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  ft_window w;
  ft_window_read(l, x, NULL, true, &w);
  ft_attr attr = ft_window_attr(&w);
  return ft_lower_return(l, ft_emit(l, FT_OP_WINDOW_MAX, &x, 1, &attr));
}

// ---- AveragePool --------------------------------------------------------------------

// Positions that count at |at| along spatial axis |axis|. Padding counts when it is
// declared; what ceil_mode adds past it never does.
static int64_t positions(const ft_window *w, const ft_shape *in, bool counts_padding,
                         int axis, int64_t at) {
  int64_t extent = in->dim[axis + 2];
  int64_t low = counts_padding ? -w->before[axis] : 0;
  int64_t high = counts_padding ? extent + w->after[axis] : extent;
  return ft_window_count(w, axis, at, low, high);
}

static bool is_uniform(const ft_window *w, const ft_shape *in, bool counts_padding) {
  for (int axis = 0; axis < w->rank; axis++) {
    int64_t last = w->shape.dim[axis + 2] - 1;
    if (positions(w, in, counts_padding, axis, 0) != w->size[axis] ||
        positions(w, in, counts_padding, axis, last) != w->size[axis])
      return false;
  }
  return true;
}

// 1 / count for every element of the output, with extents 1 for batch and channel.
static uint32_t shares(ft_lowering *l, const ft_window *w, const ft_shape *in,
                       bool counts_padding) {
  ft_shape shape = w->shape;
  shape.dim[0] = shape.dim[1] = 1;
  ft_tensor tensor;
  float *data = ft_lower_generate(l, FT_F32, &shape, &tensor);
  int64_t elements = ft_shape_elements(&shape);
  for (int64_t i = 0; data && i < elements; i++) {
    double count = 1;
    int64_t rest = i;
    for (int axis = w->rank - 1; axis >= 0; axis--) {
      int64_t at = rest % shape.dim[axis + 2];
      rest /= shape.dim[axis + 2];
      count *= (double)positions(w, in, counts_padding, axis, at);
    }
    data[i] = (float)(1 / count);
  }
  return ft_emit_constant(l, &tensor);
}

static bool is_f32(ft_lowering *l, uint32_t x) {
  if (l->status == FT_OK && ft_lower_dtype(l, x) != FT_F32)
    ft_lower_fail(l, FT_UNSUPPORTED, "dtype %s", ft_dtype_text(ft_lower_dtype(l, x)));
  return l->status == FT_OK;
}

ft_status ft_lower_average_pool(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  ft_window w;
  ft_window_read(l, x, NULL, true, &w);
  bool counts_padding = ft_lower_int(l, "count_include_pad", 0) != 0;
  if (!is_f32(l, x)) return l->status;
  ft_shape in = ft_lower_shape_of(l, x);
  ft_attr attr = ft_window_attr(&w);
  uint32_t sum = ft_emit(l, FT_OP_WINDOW_SUM, &x, 1, &attr), share;
  if (is_uniform(&w, &in, counts_padding)) {
    double count = 1;
    for (int i = 0; i < w.rank; i++) count *= (double)w.size[i];
    share = ft_emit_scalar(l, x, 1 / count);
  } else {
    share = shares(l, &w, &in, counts_padding);
  }
  return ft_lower_return(l, ft_emit2(l, FT_OP_MUL, sum, share));
}

// ---- LpPool and the global pools ------------------------------------------------------

static uint32_t power_terms(ft_lowering *l, uint32_t x, int64_t p) {
  if (p == 2) return ft_emit2(l, FT_OP_MUL, x, x);
  uint32_t size = ft_emit1(l, FT_OP_ABS, x);
  return p == 1 ? size : raise(l, size, (double)p);
}

static uint32_t root(ft_lowering *l, uint32_t sum, int64_t p) {
  if (p == 2) return ft_emit1(l, FT_OP_SQRT, sum);
  return p == 1 ? sum : raise(l, sum, 1 / (double)p);
}

static int64_t read_p(ft_lowering *l) {
  int64_t p = ft_lower_int(l, "p", 2);
  if (p < 1) ft_lower_fail(l, FT_REFUSED, "p is %lld", (long long)p);
  return p;
}

ft_status ft_lower_lp_pool(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  int64_t p = read_p(l);
  ft_window w;
  ft_window_read(l, x, NULL, true, &w);
  ft_attr attr = ft_window_attr(&w);
  uint32_t terms = power_terms(l, x, p);
  return ft_lower_return(l, root(l, ft_emit(l, FT_OP_WINDOW_SUM, &terms, 1, &attr), p));
}

// All axes but batch and channel.
static uint32_t spatial_axes(ft_lowering *l, uint32_t x) {
  int rank = ft_lower_shape_of(l, x).rank;
  if (l->status == FT_OK && rank < 2)
    ft_lower_fail(l, FT_REFUSED, "the input has rank %d, less than 2", rank);
  return ((1u << rank) - 1) & ~3u;
}

ft_status ft_lower_global_max_pool(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0), axes = spatial_axes(l, x);
  return ft_lower_return(l, ft_emit_reduce(l, FT_OP_REDUCE_MAX, x, axes));
}

ft_status ft_lower_global_average_pool(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0), axes = spatial_axes(l, x);
  return ft_lower_return(l, ft_emit_mean(l, x, axes));
}

ft_status ft_lower_global_lp_pool(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0), axes = spatial_axes(l, x);
  int64_t p = read_p(l);
  uint32_t sum = ft_emit_reduce(l, FT_OP_REDUCE_SUM, power_terms(l, x, p), axes);
  return ft_lower_return(l, root(l, sum, p));
}

// ---- LRN ------------------------------------------------------------------------------

// The sum of squares over |size| channels around each: the channels become the spatial
// axis of a view [N, 1, C, rest].
static uint32_t square_sum(ft_lowering *l, uint32_t x, int64_t size) {
  ft_shape shape = ft_lower_shape_of(l, x), flat = {.rank = 4, .dim = {0, 1, 0, 1}};
  flat.dim[0] = shape.dim[0];
  flat.dim[2] = shape.dim[1];
  for (int i = 2; i < shape.rank; i++) flat.dim[3] *= shape.dim[i];
  uint32_t squares = ft_emit_view(l, ft_emit2(l, FT_OP_MUL, x, x), &flat);
  ft_attr attr = {.shape = flat,
                  .start = {(size - 1) / 2, 0},
                  .window = {size, 1},
                  .stride = {1, 1},
                  .dilation = {1, 1}};
  uint32_t sum = ft_emit(l, FT_OP_WINDOW_SUM, &squares, 1, &attr);
  return ft_emit_view(l, sum, &shape);
}

ft_status ft_lower_lrn(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  int64_t size = ft_lower_int(l, "size", 0);
  double alpha = (double)ft_lower_float(l, "alpha", 1e-4f);
  double beta = (double)ft_lower_float(l, "beta", 0.75f);
  double bias = (double)ft_lower_float(l, "bias", 1);
  int rank = ft_lower_shape_of(l, x).rank;
  if (!is_f32(l, x)) return l->status;
  if (size < 1 || size > 1 << 20)
    return ft_lower_fail(l, FT_REFUSED, "size is %lld", (long long)size);
  if (rank < 2) return ft_lower_fail(l, FT_REFUSED, "the input has rank %d", rank);
  uint32_t sum = square_sum(l, x, size);
  uint32_t part = ft_emit2(l, FT_OP_MUL, sum, ft_emit_scalar(l, x, alpha / (double)size));
  uint32_t base = ft_emit2(l, FT_OP_ADD, part, ft_emit_scalar(l, x, bias));
  return ft_lower_return(l, ft_emit2(l, FT_OP_MUL, x, raise(l, base, -beta)));
}
