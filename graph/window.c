#include "graph/window.h"

// Past these nothing is a model any more, and sums of them cannot overflow.
enum { MAX_PARAMETER = 1 << 24 };

static void check_range(ft_lowering *l, const char *name, int64_t value, int64_t low) {
  if (value < low || value > MAX_PARAMETER)
    ft_lower_fail(l, FT_REFUSED, "%s has %lld", name, (long long)value);
}

// A list attribute of |count| numbers, at least |low| each; |otherwise| when absent.
static void read_list(ft_lowering *l, const char *name, size_t count, int64_t low,
                      int64_t otherwise, int64_t *out) {
  size_t given_count;
  bool given;
  const int64_t *values = ft_lower_ints(l, name, &given_count, &given);
  if (given && given_count != count)
    ft_lower_fail(l, FT_REFUSED, "%s has %zu entries, not %zu", name, given_count, count);
  for (size_t i = 0; i < count && l->status == FT_OK; i++) {
    out[i] = given ? values[i] : otherwise;
    check_range(l, name, out[i], low);
  }
}

static void read_size(ft_lowering *l, const ft_shape *weight, ft_window *w) {
  if (!weight && !ft_onnx_find_attribute(l->node, "kernel_shape"))
    ft_lower_fail(l, FT_REFUSED, "kernel_shape is missing");
  read_list(l, "kernel_shape", (size_t)w->rank, 1, 1, w->size);
  if (!weight || l->status != FT_OK) return;
  bool given = ft_onnx_find_attribute(l->node, "kernel_shape") != NULL;
  for (int i = 0; i < w->rank; i++) {
    int64_t extent = weight->dim[i + 2];
    if (given && w->size[i] != extent)
      ft_lower_fail(l, FT_REFUSED, "kernel_shape[%d] is %lld, the weight's is %lld", i,
                    (long long)w->size[i], (long long)extent);
    w->size[i] = extent;
    check_range(l, "the weight's shape", extent, 1);
  }
}

static int64_t span_of(const ft_window *w, int i) {
  return (w->size[i] - 1) * w->dilation[i] + 1;
}

static int64_t divide_up(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

static void pad_to_same(const ft_shape *in, bool is_upper, ft_window *w) {
  for (int i = 0; i < w->rank; i++) {
    int64_t extent = in->dim[i + 2], count = divide_up(extent, w->stride[i]);
    int64_t total = count ? (count - 1) * w->stride[i] + span_of(w, i) - extent : 0;
    if (total < 0) total = 0;
    w->before[i] = is_upper ? total / 2 : total - total / 2;
    w->after[i] = total - w->before[i];
  }
}

static void read_pads(ft_lowering *l, const ft_shape *in, ft_window *w) {
  ft_span mode = ft_lower_text(l, "auto_pad", "NOTSET");
  if (l->status != FT_OK) return;
  if (ft_span_is(mode, "NOTSET")) {
    int64_t pads[2 * FT_MAX_RANK];
    read_list(l, "pads", 2 * (size_t)w->rank, 0, 0, pads);
    for (int i = 0; i < w->rank && l->status == FT_OK; i++) {
      w->before[i] = pads[i];
      w->after[i] = pads[i + w->rank];
    }
  } else if (ft_span_is(mode, "SAME_UPPER") || ft_span_is(mode, "SAME_LOWER")) {
    pad_to_same(in, ft_span_is(mode, "SAME_UPPER"), w);
  } else if (!ft_span_is(mode, "VALID")) {
    ft_lower_fail(l, FT_REFUSED, "auto_pad is '%.*s'", FT_SPAN_SHOW(mode));
  }
}

static void find_shape(ft_lowering *l, const ft_shape *in, bool is_ceil, ft_window *w) {
  w->shape = *in;
  for (int i = 0; i < w->rank && l->status == FT_OK; i++) {
    int64_t extent = in->dim[i + 2];
    int64_t room = extent + w->before[i] + w->after[i] - span_of(w, i);
    if (room < 0) {
      ft_lower_fail(
          l, FT_REFUSED, "the window spans %lld of spatial axis %d, which has %lld",
          (long long)span_of(w, i), i, (long long)(extent + w->before[i] + w->after[i]));
      return;
    }
    int64_t last = is_ceil ? divide_up(room, w->stride[i]) : room / w->stride[i];
    if (is_ceil && last * w->stride[i] >= extent + w->before[i]) last--;
    w->shape.dim[i + 2] = last + 1;
  }
}

void ft_window_read(ft_lowering *l, uint32_t x, const ft_shape *weight, bool may_ceil,
                    ft_window *out) {
  ft_shape in = ft_lower_shape_of(l, x);
  *out = (ft_window){0};
  if (l->status == FT_OK && in.rank < 3)
    ft_lower_fail(l, FT_REFUSED, "the input has rank %d, less than 3", in.rank);
  if (weight && l->status == FT_OK && weight->rank != in.rank)
    ft_lower_fail(l, FT_REFUSED, "the weight has rank %d, the input %d", weight->rank,
                  in.rank);
  if (l->status != FT_OK) return;
  ft_window w = {.rank = in.rank - 2};
  read_size(l, weight, &w);
  read_list(l, "strides", (size_t)w.rank, 1, 1, w.stride);
  read_list(l, "dilations", (size_t)w.rank, 1, 1, w.dilation);
  read_pads(l, &in, &w);
  find_shape(l, &in, may_ceil && ft_lower_int(l, "ceil_mode", 0) != 0, &w);
  if (l->status == FT_OK) *out = w;
}

ft_attr ft_window_attr(const ft_window *window) {
  ft_attr attr = {.shape = window->shape};
  for (int i = 0; i < window->rank; i++) {
    attr.window[i] = window->size[i];
    attr.stride[i] = window->stride[i];
    attr.dilation[i] = window->dilation[i];
    attr.start[i] = window->before[i];
  }
  return attr;
}

int64_t ft_window_count(const ft_window *window, int axis, int64_t at, int64_t low,
                        int64_t high) {
  int64_t first = at * window->stride[axis] - window->before[axis], step;
  step = window->dilation[axis];
  int64_t skipped = first < low ? divide_up(low - first, step) : 0;
  int64_t end = high > first ? divide_up(high - first, step) : 0;
  if (end > window->size[axis]) end = window->size[axis];
  return end > skipped ? end - skipped : 0;
}
