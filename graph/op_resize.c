// Resize and Upsample. Every axis by itself: output coordinate -> input coordinate, then
// one element (nearest) or a weighted sum of 2 (linear) or 4 (cubic) of them. Which, and
// with which weights, is known here, so an axis becomes gathers by constant indices.
#include <math.h>
#include <string.h>

#include "graph/lower.h"

typedef enum interpolation { NEAREST = 1, LINEAR = 2, CUBIC = 4 } interpolation;  // taps

typedef enum rounding { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL } rounding;

typedef enum coordinates {
  HALF_PIXEL,
  HALF_PIXEL_SYMMETRIC,
  PYTORCH_HALF_PIXEL,
  ALIGN_CORNERS,
  ASYMMETRIC,
  TF_HALF_PIXEL,
  TF_CROP
} coordinates;

static const char *const rounding_names[] = {"round_prefer_floor", "round_prefer_ceil",
                                             "floor", "ceil", NULL};
static const char *const coordinate_names[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};

typedef struct resize {
  interpolation mode;
  rounding rounds;
  coordinates map;
  double cubic_a, extrapolation;
  bool excludes_outside;
  // per axis of the input
  bool is_resized[FT_MAX_RANK];
  int64_t in[FT_MAX_RANK], out[FT_MAX_RANK];
  double scale[FT_MAX_RANK], roi_start[FT_MAX_RANK], roi_end[FT_MAX_RANK];
} resize;

// ---- one axis
// ---------------------------------------------------------------------------

// The length that the scale asks for, a fraction kept (as ONNX's reference has it: of 4
// elements at 0.6 the corners are 1.4 apart, not 1); whole but for rounding, it is whole.
static double resized_length(const resize *r, int axis) {
  double length = r->scale[axis] * (double)r->in[axis], whole = (double)r->out[axis];
  return fabs(length - whole) <= 1e-6 * whole ? whole : length;
}

static double source(const resize *r, int axis, int64_t at) {
  double x = (double)at, in = (double)r->in[axis], whole = (double)r->out[axis];
  double scale = r->scale[axis], start = r->roi_start[axis], end = r->roi_end[axis];
  double out = scale * in;  // ONNX's reference means this, not the extent below it
  switch (r->map) {
    case HALF_PIXEL:
      return (x + 0.5) / scale - 0.5;
    case HALF_PIXEL_SYMMETRIC:
      return in / 2 * (1 - whole / out) + (x + 0.5) / scale - 0.5;
    case PYTORCH_HALF_PIXEL:
      return whole > 1 ? (x + 0.5) / scale - 0.5 : 0;
    case ALIGN_CORNERS:
      return out > 1 ? x * (in - 1) / (resized_length(r, axis) - 1) : 0;
    case ASYMMETRIC:
      return x / scale;
    case TF_HALF_PIXEL:
      return (x + 0.5) / scale;
    default:
      return out > 1 ? start * (in - 1) + x * (end - start) * (in - 1) / (out - 1)
                     : 0.5 * (start + end) * (in - 1);
  }
}

static double round_to(rounding rounds, double x) {
  switch (rounds) {
    case PREFER_FLOOR:
      return ceil(x - 0.5);
    case PREFER_CEIL:
      return floor(x + 0.5);
    case FLOOR:
      return floor(x);
    default:
      return ceil(x);
  }
}

// Weights of the taps around floor(x), |t| past it.
static void weigh(const resize *r, double t, double *weight) {
  double a = r->cubic_a, u = 1 - t;
  if (r->mode == LINEAR) {
    weight[0] = u;
    weight[1] = t;
    return;
  }
  weight[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
  weight[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
  weight[2] = ((a + 2) * u - (a + 3)) * u * u + 1;
  weight[3] = ((a * (u + 1) - 5 * a) * (u + 1) + 8 * a) * (u + 1) - 4 * a;
}

// NaN becomes |low|.
static double at_most(double x, double low, double high) {
  return !(x >= low) ? low : x > high ? high : x;
}

// Taps outside lie on the edge, or count nothing and the others more.
static void exclude(double first, int taps, int64_t extent, double *weight) {
  double sum = 0;
  for (int k = 0; k < taps; k++) {
    double at = first + k;
    if (at < 0 || at >= (double)extent) weight[k] = 0;
    sum += weight[k];
  }
  for (int k = 0; k < taps; k++) weight[k] /= sum;
}

static void find_taps(const resize *r, int axis, int64_t at, int64_t *index,
                      double *weight) {
  int taps = (int)r->mode;
  double x = source(r, axis, at), last = (double)(r->in[axis] - 1), first;
  if (r->mode == NEAREST) {
    index[0] = (int64_t)at_most(round_to(r->rounds, x), 0, last);
    return;
  }
  first = floor(x);
  weigh(r, x - first, weight);
  first -= taps / 2 - 1;
  if (r->excludes_outside) exclude(first, taps, r->in[axis], weight);
  for (int k = 0; k < taps; k++) index[k] = (int64_t)at_most(first + k, 0, last);
}

// A constant of |count| numbers that lies on |axis| of a value of |rank|.
static uint32_t weights(ft_lowering *l, const double *values, int64_t count, int axis,
                        int rank) {
  ft_shape shape = {.rank = (uint8_t)rank};
  ft_tensor tensor;
  for (int i = 0; i < rank; i++) shape.dim[i] = i == axis ? count : 1;
  float *data = ft_lower_generate(l, FT_F32, &shape, &tensor);
  for (int64_t i = 0; data && i < count; i++) data[i] = (float)values[i];
  return ft_emit_constant(l, &tensor);
}

typedef struct axis_taps {
  int64_t *index;  // [taps][out]
  double *weight;
} axis_taps;

static bool plan_axis(ft_lowering *l, const resize *r, int axis, axis_taps *out) {
  int64_t count = r->out[axis], taps = (int64_t)r->mode;
  ft_shape shape = {.rank = 2, .dim = {taps, count}};
  ft_tensor indices, weight;
  out->index = ft_lower_generate(l, FT_I64, &shape, &indices);
  out->weight = ft_lower_generate(l, FT_F64, &shape, &weight);
  if (!out->index || !out->weight) return false;
  for (int64_t i = 0; i < count; i++) {
    int64_t index[4] = {0};
    double weight_at[4] = {1};
    find_taps(r, axis, i, index, weight_at);
    for (int64_t k = 0; k < taps; k++) {
      out->index[k * count + i] = index[k];
      out->weight[k * count + i] = weight_at[k];
    }
  }
  return true;
}

static bool is_zero(const double *weight, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (weight[i] != 0) return false;
  return true;
}

static bool is_one(const double *weight, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (weight[i] != 1) return false;
  return true;
}

static uint32_t resize_axis(ft_lowering *l, const resize *r, uint32_t x, int axis) {
  axis_taps taps;
  int64_t count = r->out[axis];
  int rank = ft_lower_shape_of(l, x).rank;
  uint32_t sum = FT_NONE;
  if (l->status != FT_OK || !plan_axis(l, r, axis, &taps)) return FT_NONE;
  for (int64_t k = 0; k < (int64_t)r->mode; k++) {
    const double *weight = taps.weight + k * count;
    if (count && is_zero(weight, count)) continue;
    uint32_t part = ft_emit_pick(l, x, axis, taps.index + k * count, count);
    if (!is_one(weight, count))
      part = ft_emit2(l, FT_OP_MUL, part, weights(l, weight, count, axis, rank));
    sum = sum == FT_NONE ? part : ft_emit2(l, FT_OP_ADD, sum, part);
  }
  return sum;
}

// Where the coordinate leaves the input along |axis|, the result is the extrapolation.
static uint32_t extrapolate(ft_lowering *l, const resize *r, uint32_t y, int axis) {
  int64_t count = r->out[axis];
  int rank = ft_lower_shape_of(l, y).rank;
  ft_shape shape = {.rank = (uint8_t)rank};
  ft_tensor tensor;
  for (int i = 0; i < rank; i++) shape.dim[i] = i == axis ? count : 1;
  uint8_t *outside = ft_lower_generate(l, FT_BOOL, &shape, &tensor);
  for (int64_t i = 0; outside && i < count; i++) {
    double at = source(r, axis, i);
    outside[i] = at < 0 || at > (double)(r->in[axis] - 1);
  }
  uint32_t mask = ft_emit_constant(l, &tensor);
  return ft_emit_where(l, mask, ft_emit_scalar(l, y, r->extrapolation), y);
}

static uint32_t resize_all(ft_lowering *l, const resize *r, uint32_t x) {
  int rank = ft_lower_shape_of(l, x).rank;
  for (int axis = 0; axis < rank && l->status == FT_OK; axis++)
    if (r->is_resized[axis]) x = resize_axis(l, r, x, axis);
  for (int axis = 0; axis < rank && l->status == FT_OK; axis++)
    if (r->is_resized[axis] && r->map == TF_CROP) x = extrapolate(l, r, x, axis);
  return x;
}

// ---- attributes
// -------------------------------------------------------------------------

static int choose(ft_lowering *l, const char *name, const char *otherwise,
                  const char *const *choices) {
  ft_span text = ft_lower_text(l, name, otherwise);
  for (int i = 0; choices[i] && l->status == FT_OK; i++)
    if (ft_span_is(text, choices[i])) return i;
  ft_lower_fail(l, FT_REFUSED, "%s is '%.*s'", name, FT_SPAN_SHOW(text));
  return 0;
}

static interpolation read_mode(ft_lowering *l) {
  static const char *const names[] = {"nearest", "linear", "cubic", NULL};
  static const interpolation modes[] = {NEAREST, LINEAR, CUBIC};
  return modes[choose(l, "mode", "nearest", names)];
}

static void read_attributes(ft_lowering *l, resize *r) {
  r->mode = read_mode(l);
  r->rounds = FLOOR;
  r->map = ASYMMETRIC;
  if (l->opset < 11) return;
  r->rounds = (rounding)choose(l, "nearest_mode", "round_prefer_floor", rounding_names);
  r->map = (coordinates)choose(l, "coordinate_transformation_mode", "half_pixel",
                               coordinate_names);
  r->cubic_a = (double)ft_lower_float(l, "cubic_coeff_a", -0.75f);
  r->extrapolation = (double)ft_lower_float(l, "extrapolation_value", 0);
  r->excludes_outside = ft_lower_int(l, "exclude_outside", 0) != 0;
  if (ft_lower_int(l, "antialias", 0)) ft_lower_fail(l, FT_UNSUPPORTED, "antialias");
}

// ---- extents
// ----------------------------------------------------------------------------

// floor(in * scale), as the operator says; refuses what no shape can have.
static void set_scale(ft_lowering *l, resize *r, int axis, double scale) {
  double out = floor((double)r->in[axis] * scale);
  if (!(scale > 0) || !(out <= (double)INT32_MAX)) {
    ft_lower_fail(l, FT_REFUSED, "scale %g of axis %d", scale, axis);
    return;
  }
  r->scale[axis] = scale;
  r->out[axis] = (int64_t)out;
  r->is_resized[axis] = true;
}

static void set_size(ft_lowering *l, resize *r, int axis, int64_t size) {
  if (size < 0 || size > INT32_MAX || r->in[axis] > INT32_MAX) {
    ft_lower_fail(l, FT_REFUSED, "size %lld of axis %d", (long long)size, axis);
    return;
  }
  r->scale[axis] = (double)size / (double)r->in[axis];
  r->out[axis] = size;
  r->is_resized[axis] = true;
}

// One scale for all axes, the smallest or the largest; extents round half up.
static void keep_aspect_ratio(ft_lowering *l, resize *r, int rank) {
  static const char *const names[] = {"stretch", "not_larger", "not_smaller", NULL};
  int policy = choose(l, "keep_aspect_ratio_policy", "stretch", names);
  double scale = 0;
  bool is_first = true;
  for (int i = 0; i < rank; i++) {
    if (!r->is_resized[i]) continue;
    bool better = policy == 1 ? r->scale[i] < scale : r->scale[i] > scale;
    if (is_first || better) scale = r->scale[i];
    is_first = false;
  }
  for (int i = 0; i < rank && policy && l->status == FT_OK; i++) {
    double out = floor((double)r->in[i] * scale + 0.5);
    if (!r->is_resized[i]) continue;
    if (!(out <= (double)INT32_MAX))
      ft_lower_fail(l, FT_REFUSED, "axis %d becomes %g", i, out);
    r->scale[i] = scale;
    r->out[i] = l->status == FT_OK ? (int64_t)out : 0;
  }
}

// An input that is given and has elements: an empty tensor means absent, as "" does.
static bool is_given(ft_lowering *l, uint32_t index) {
  uint32_t input = ft_lower_optional(l, index);
  if (input == FT_NONE) return false;
  ft_shape shape = ft_lower_shape_of(l, input);
  return ft_shape_elements(&shape) != 0;
}

typedef struct axis_list {
  int axis[FT_MAX_RANK];
  size_t count;
} axis_list;

static void read_axes(ft_lowering *l, int rank, axis_list *out) {
  size_t count = 0;
  bool given = false;
  uint32_t seen = 0;
  const int64_t *axes = l->opset >= 18 ? ft_lower_ints(l, "axes", &count, &given) : NULL;
  *out = (axis_list){.count = given ? count : (size_t)rank};
  if (l->status == FT_OK && out->count > (size_t)rank)
    ft_lower_fail(l, FT_REFUSED, "axes has %zu entries for rank %d", count, rank);
  for (size_t i = 0; i < out->count && l->status == FT_OK; i++) {
    out->axis[i] = given ? ft_lower_axis(l, axes[i], rank) : (int)i;
    if (seen >> out->axis[i] & 1)
      ft_lower_fail(l, FT_REFUSED, "axis %d is named twice", out->axis[i]);
    seen |= 1u << out->axis[i];
  }
}

static bool has_entries(ft_lowering *l, const char *what, size_t count, size_t wanted) {
  if (l->status == FT_OK && count != wanted)
    ft_lower_fail(l, FT_REFUSED, "%s has %zu entries, not %zu", what, count, wanted);
  return l->status == FT_OK;
}

static void read_scales(ft_lowering *l, resize *r, uint32_t index,
                        const axis_list *axes) {
  size_t count;
  const double *scales =
      ft_lower_constant_floats(l, index, "scales", FT_MAX_RANK, &count);
  if (!has_entries(l, "scales", count, axes->count)) return;
  for (size_t i = 0; i < count; i++) set_scale(l, r, axes->axis[i], scales[i]);
}

static void read_sizes(ft_lowering *l, resize *r, int rank, const axis_list *axes) {
  size_t count;
  const int64_t *sizes = ft_lower_constant_ints(l, 3, "sizes", FT_MAX_RANK, &count);
  if (!has_entries(l, "sizes", count, axes->count)) return;
  for (size_t i = 0; i < count; i++) set_size(l, r, axes->axis[i], sizes[i]);
  if (l->opset >= 18) keep_aspect_ratio(l, r, rank);
}

// Starts of the axes, then ends, in parts of the input.
static void read_roi(ft_lowering *l, resize *r, const axis_list *axes) {
  size_t count;
  if (r->map != TF_CROP) {
    ft_lower_optional(l, 1);
    return;
  }
  const double *roi = ft_lower_constant_floats(l, 1, "roi", 2 * FT_MAX_RANK, &count);
  if (!has_entries(l, "roi", count, 2 * axes->count)) return;
  for (size_t i = 0; i < axes->count; i++) {
    r->roi_start[axes->axis[i]] = roi[i];
    r->roi_end[axes->axis[i]] = roi[i + axes->count];
  }
}

// Axes that stay as they are need nothing; the others need something to read.
static void check_axes(ft_lowering *l, resize *r, int rank) {
  for (int i = 0; i < rank && l->status == FT_OK; i++) {
    bool is_same = r->out[i] == r->in[i] && r->scale[i] == 1;
    if (is_same && r->map != TF_CROP && r->map != TF_HALF_PIXEL) r->is_resized[i] = false;
    if (r->is_resized[i] && r->in[i] == 0 && r->out[i])
      ft_lower_fail(l, FT_REFUSED, "axis %d has no elements", i);
    if (r->is_resized[i] && r->in[i] > INT32_MAX)
      ft_lower_fail(l, FT_UNSUPPORTED, "axis %d has %lld elements", i,
                    (long long)r->in[i]);
    if (!(fabs(r->roi_start[i]) <= 1e6) || !(fabs(r->roi_end[i]) <= 1e6))
      ft_lower_fail(l, FT_REFUSED, "roi of axis %d", i);
  }
}

static void begin(ft_lowering *l, uint32_t x, resize *r) {
  ft_shape shape = ft_lower_shape_of(l, x);
  *r = (resize){0};
  memcpy(r->in, shape.dim, sizeof r->in);
  memcpy(r->out, shape.dim, sizeof r->out);
  for (int i = 0; i < shape.rank; i++) r->scale[i] = 1;
  read_attributes(l, r);
  if (l->status == FT_OK && r->mode != NEAREST &&
      !ft_dtype_is_float(ft_lower_dtype(l, x)))
    ft_lower_fail(l, FT_UNSUPPORTED, "interpolation of %s",
                  ft_dtype_text(ft_lower_dtype(l, x)));
}

static ft_status end(ft_lowering *l, uint32_t x, resize *r) {
  check_axes(l, r, ft_lower_shape_of(l, x).rank);
  return ft_lower_return(l, resize_all(l, r, x));
}

ft_status ft_lower_resize(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  int rank = ft_lower_shape_of(l, x).rank;
  resize r;
  axis_list axes;
  begin(l, x, &r);
  read_axes(l, rank, &axes);
  if (l->opset < 11) {
    read_scales(l, &r, 1, &axes);
    return end(l, x, &r);
  }
  read_roi(l, &r, &axes);
  bool has_scales = is_given(l, 2), has_sizes = is_given(l, 3);
  if (l->status == FT_OK && has_scales == has_sizes)
    return ft_lower_fail(l, FT_REFUSED, "%s scales and sizes",
                         has_scales ? "it has both" : "it has neither of");
  if (has_sizes)
    read_sizes(l, &r, rank, &axes);
  else
    read_scales(l, &r, 2, &axes);
  return end(l, x, &r);
}

// Scales are an attribute before opset 9.
ft_status ft_lower_upsample(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  int rank = ft_lower_shape_of(l, x).rank;
  resize r;
  axis_list axes;
  begin(l, x, &r);
  read_axes(l, rank, &axes);
  if (l->opset >= 9) {
    read_scales(l, &r, 1, &axes);
    return end(l, x, &r);
  }
  size_t count;
  const float *scales = ft_lower_floats(l, "scales", &count);
  if (!has_entries(l, "scales", count, axes.count)) return l->status;
  for (size_t i = 0; i < count; i++) set_scale(l, &r, axes.axis[i], (double)scales[i]);
  return end(l, x, &r);
}
