// Pad: a constant around, or elements of the input (edge, reflect, wrap) by index.
#include "graph/lower.h"

typedef struct padding {
  int64_t before[FT_MAX_RANK], after[FT_MAX_RANK];
} padding;

// Begins of all axes, then ends. Attributes before opset 11, inputs after; which axes,
// from 18 on.
static void read_padding(ft_lowering *l, int rank, padding *out) {
  size_t count, axis_count = (size_t)rank;
  bool given = true;
  const int64_t *axes = NULL, *pads;
  uint32_t seen = 0;
  *out = (padding){0};
  pads = l->opset < 11 ? ft_lower_ints(l, "pads", &count, &given)
                       : ft_lower_constant_ints(l, 1, "pads", 2 * FT_MAX_RANK, &count);
  if (l->opset >= 18 && ft_lower_optional(l, 3) != FT_NONE)
    axes = ft_lower_constant_ints(l, 3, "axes", FT_MAX_RANK, &axis_count);
  if (l->status == FT_OK && count != 2 * axis_count)
    ft_lower_fail(l, FT_REFUSED, "pads has %zu entries for %zu axes", count, axis_count);
  for (size_t i = 0; i < axis_count && l->status == FT_OK; i++) {
    int axis = ft_lower_axis(l, axes ? axes[i] : (int64_t)i, rank);
    if (seen >> axis & 1) ft_lower_fail(l, FT_REFUSED, "axis %d is named twice", axis);
    seen |= 1u << axis;
    out->before[axis] = pads[i];
    out->after[axis] = pads[i + axis_count];
  }
}

// Negative pads cut elements off; they are 0 after this.
static uint32_t crop(ft_lowering *l, uint32_t x, padding *pads) {
  int rank = ft_lower_shape_of(l, x).rank;
  for (int axis = 0; axis < rank && l->status == FT_OK; axis++) {
    int64_t extent = ft_lower_shape_of(l, x).dim[axis];
    int64_t first = pads->before[axis] < 0 ? pads->before[axis] : 0;
    int64_t last = pads->after[axis] < 0 ? pads->after[axis] : 0;
    if (first < -extent || last < -extent || first + last < -extent) {
      ft_lower_fail(l, FT_REFUSED, "pads %lld and %lld cut more than axis %d has: %lld",
                    (long long)first, (long long)last, axis, (long long)extent);
      return x;
    }
    x = ft_emit_slice(l, x, axis, -first, 1, extent + first + last);
    if (pads->before[axis] < 0) pads->before[axis] = 0;
    if (pads->after[axis] < 0) pads->after[axis] = 0;
  }
  return x;
}

static bool is_nothing(const padding *pads, int rank) {
  for (int i = 0; i < rank; i++)
    if (pads->before[i] || pads->after[i]) return false;
  return true;
}

// ---- constant -------------------------------------------------------------------------

static uint32_t fill_value(ft_lowering *l, uint32_t x) {
  static const ft_shape scalar = {0};
  if (l->opset < 11) return ft_emit_scalar(l, x, (double)ft_lower_float(l, "value", 0));
  uint32_t value = ft_lower_optional(l, 2);
  if (value == FT_NONE)
    return ft_emit_cast(l, ft_emit_scalar(l, x, 0), ft_lower_dtype(l, x));
  ft_shape shape = ft_lower_shape_of(l, value);
  if (l->status == FT_OK && ft_shape_elements(&shape) != 1)
    ft_lower_fail(l, FT_REFUSED, "the value is %s",
                  ft_shape_text(&shape, l->graph->arena));
  return ft_emit_view(l, value, &scalar);
}

static uint32_t surround(ft_lowering *l, uint32_t x, const padding *pads) {
  ft_attr attr = {.shape = ft_lower_shape_of(l, x)};
  for (int i = 0; i < attr.shape.rank; i++) {
    attr.start[i] = pads->before[i];
    if (__builtin_add_overflow(attr.shape.dim[i], pads->before[i], &attr.shape.dim[i]) ||
        __builtin_add_overflow(attr.shape.dim[i], pads->after[i], &attr.shape.dim[i]))
      ft_lower_fail(l, FT_REFUSED, "pads of axis %d overflow", i);
  }
  uint32_t input[] = {x, fill_value(l, x)};
  if (is_nothing(pads, attr.shape.rank)) return x;
  return ft_emit(l, FT_OP_PAD, input, 2, &attr);
}

// ---- edge, reflect, wrap
// ----------------------------------------------------------------

typedef enum pad_mode { EDGE, REFLECT, WRAP } pad_mode;

static int64_t modulo(int64_t at, int64_t period) {
  int64_t rest = at % period;
  return rest < 0 ? rest + period : rest;
}

// Which element lies at |at|, inside [0, extent) or out of it.
static int64_t source(pad_mode mode, int64_t at, int64_t extent) {
  if (mode == EDGE) return at < 0 ? 0 : at >= extent ? extent - 1 : at;
  if (mode == WRAP) return modulo(at, extent);
  if (extent == 1) return 0;
  int64_t rest = modulo(at, 2 * (extent - 1));
  return rest < extent ? rest : 2 * (extent - 1) - rest;
}

static uint32_t extend_axis(ft_lowering *l, uint32_t x, int axis, pad_mode mode,
                            int64_t before, int64_t after) {
  int64_t extent = ft_lower_shape_of(l, x).dim[axis];
  if (before == 0 && after == 0) return x;
  if (extent == 0) ft_lower_fail(l, FT_REFUSED, "axis %d has no element to repeat", axis);
  if (extent > INT32_MAX || before > INT32_MAX || after > INT32_MAX)
    ft_lower_fail(l, FT_UNSUPPORTED, "axis %d becomes too long", axis);
  if (l->status != FT_OK) return FT_NONE;
  ft_shape shape = {.rank = 1, .dim = {extent + before + after}};
  ft_tensor tensor;
  int64_t *index = ft_lower_generate(l, FT_I64, &shape, &tensor);
  for (int64_t i = 0; index && i < shape.dim[0]; i++)
    index[i] = source(mode, i - before, extent);
  return ft_emit_pick(l, x, axis, index, shape.dim[0]);
}

ft_status ft_lower_pad(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  ft_span mode = ft_lower_text(l, "mode", "constant");
  int rank = ft_lower_shape_of(l, x).rank;
  padding pads;
  read_padding(l, rank, &pads);
  x = crop(l, x, &pads);
  if (l->status != FT_OK) return l->status;
  if (ft_span_is(mode, "constant")) return ft_lower_return(l, surround(l, x, &pads));
  pad_mode by_index = ft_span_is(mode, "edge")      ? EDGE
                      : ft_span_is(mode, "reflect") ? REFLECT
                                                    : WRAP;
  if (by_index == WRAP && !(ft_span_is(mode, "wrap") && l->opset >= 19))
    return ft_lower_fail(l, FT_REFUSED, "mode is '%.*s'", FT_SPAN_SHOW(mode));
  if (l->opset >= 11) ft_lower_optional(l, 2);  // the value is not used
  for (int axis = 0; axis < rank; axis++)
    x = extend_axis(l, x, axis, by_index, pads.before[axis], pads.after[axis]);
  return ft_lower_return(l, x);
}
