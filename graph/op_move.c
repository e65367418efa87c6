// Operators that pick, join, split, repeat and pad elements.
#include "graph/lower.h"

// ---- Gather ---------------------------------------------------------------------------

// Known indices are checked here; others when the model runs.
static void check_indices(ft_lowering *l, uint32_t index, int64_t extent) {
  const ft_tensor *data = ft_lower_known(l, index);
  if (!data || l->status != FT_OK) return;
  int64_t count = ft_shape_elements(&data->shape);
  for (int64_t i = 0; i < count; i++) {
    int64_t at = ft_tensor_get_i64(data, i);
    if (at >= -extent && at < extent) continue;
    ft_lower_fail(l, FT_REFUSED, "index %lld is outside an axis of %lld", (long long)at,
                  (long long)extent);
    return;
  }
}

static void check_index_dtype(ft_lowering *l, uint32_t indices) {
  ft_dtype dtype = ft_lower_dtype(l, indices);
  if (l->status == FT_OK && dtype != FT_I64 && dtype != FT_I32)
    ft_lower_fail(l, FT_REFUSED, "the indices are %s", ft_dtype_text(dtype));
}

// One known index: a slice without its axis.
static uint32_t pick_one(ft_lowering *l, uint32_t x, int axis, int64_t at, int rank) {
  ft_shape from = ft_lower_shape_of(l, x), to = {0};
  if (at < 0) at += from.dim[axis];
  uint32_t y = ft_emit_slice(l, x, axis, at, 1, 1);
  for (int i = 0; i < from.rank; i++) {
    if (i != axis) to.dim[to.rank++] = from.dim[i];
    for (int k = 0; i == axis && k < rank; k++) to.dim[to.rank++] = 1;
  }
  return ft_emit_view(l, y, &to);
}

ft_status ft_lower_gather(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0), indices = ft_lower_input(l, 1);
  ft_shape from = ft_lower_shape_of(l, x), shape = ft_lower_shape_of(l, indices);
  int axis = ft_lower_axis(l, ft_lower_int(l, "axis", 0), from.rank);
  check_index_dtype(l, indices);
  check_indices(l, 1, from.dim[axis]);
  if (l->status != FT_OK) return l->status;
  if (from.rank + shape.rank - 1 > FT_MAX_RANK)
    return ft_lower_fail(l, FT_UNSUPPORTED, "rank %d is more than %d",
                         from.rank + shape.rank - 1, FT_MAX_RANK);
  const ft_tensor *data = l->graph->value[indices].data;
  if (data && ft_shape_elements(&shape) == 1)
    return ft_lower_return(l,
                           pick_one(l, x, axis, ft_tensor_get_i64(data, 0), shape.rank));
  return ft_lower_return(l, ft_emit(l, FT_OP_GATHER, (uint32_t[]){x, indices}, 2,
                                    &(ft_attr){.axis = (uint8_t)axis}));
}

ft_status ft_lower_gather_elements(ft_lowering *l) {
  uint32_t input[] = {ft_lower_input(l, 0), ft_lower_input(l, 1)};
  ft_shape from = ft_lower_shape_of(l, input[0]), shape = ft_lower_shape_of(l, input[1]);
  int axis = ft_lower_axis(l, ft_lower_int(l, "axis", 0), from.rank);
  check_index_dtype(l, input[1]);
  if (l->status == FT_OK && from.rank != shape.rank)
    return ft_lower_fail(l, FT_REFUSED, "the indices have rank %d, the data %d",
                         shape.rank, from.rank);
  check_indices(l, 1, from.dim[axis]);
  for (int i = 0; i < from.rank && l->status == FT_OK; i++)
    if (i != axis && shape.dim[i] > from.dim[i])
      ft_lower_fail(l, FT_REFUSED, "the indices have %lld along axis %d, the data %lld",
                    (long long)shape.dim[i], i, (long long)from.dim[i]);
  return ft_lower_return(
      l, ft_emit(l, FT_OP_GATHER_ELEMENTS, input, 2, &(ft_attr){.axis = (uint8_t)axis}));
}

// ---- GatherND -------------------------------------------------------------------------

// i + extent where i < 0
static uint32_t wrap(ft_lowering *l, uint32_t i, int64_t extent) {
  uint32_t is_negative = ft_emit2(l, FT_OP_LESS, i, ft_emit_scalar(l, i, 0));
  uint32_t wrapped = ft_emit2(l, FT_OP_ADD, i, ft_emit_scalar(l, i, (double)extent));
  return ft_emit_where(l, is_negative, wrapped, i);
}

static int64_t product(const ft_shape *shape, int from, int to) {
  int64_t out = 1;
  for (int i = from; i < to; i++) out *= shape->dim[i];
  return out;
}

// The tuples [batch, tuples, depth] as positions [batch, tuples] in the flattened first
// axes of the data.
static uint32_t flat_positions(ft_lowering *l, uint32_t indices, const ft_shape *data,
                               int batch_dims, int depth) {
  uint32_t sum = FT_NONE;
  for (int k = 0; k < depth; k++) {
    int axis = batch_dims + k;
    int64_t stride = product(data, axis + 1, batch_dims + depth);
    uint32_t one = wrap(l, ft_emit_slice(l, indices, 2, k, 1, 1), data->dim[axis]);
    uint32_t part = ft_emit2(l, FT_OP_MUL, one, ft_emit_scalar(l, one, (double)stride));
    sum = k ? ft_emit2(l, FT_OP_ADD, sum, part) : part;
  }
  int64_t batches = product(data, 0, batch_dims);
  int64_t span = product(data, batch_dims, batch_dims + depth);
  if (batches == 1) return sum;
  uint32_t batch = ft_emit_iota(l, ft_lower_dtype(l, indices), batches, 0, 3);
  uint32_t start = ft_emit2(l, FT_OP_MUL, batch, ft_emit_scalar(l, batch, (double)span));
  return ft_emit2(l, FT_OP_ADD, sum, start);
}

static void check_gather_nd(ft_lowering *l, const ft_shape *data, const ft_shape *tuples,
                            int64_t batch_dims) {
  if (l->status != FT_OK) return;
  bool fits = data->rank >= 1 && tuples->rank >= 1 && batch_dims >= 0 &&
              batch_dims < data->rank && batch_dims < tuples->rank;
  int64_t depth = fits ? tuples->dim[tuples->rank - 1] : 0;
  fits = fits && depth >= 1 && depth <= data->rank - batch_dims;
  for (int i = 0; fits && i < batch_dims; i++) fits = data->dim[i] == tuples->dim[i];
  if (!fits)
    ft_lower_fail(l, FT_REFUSED, "indices of %s do not fit data of %s",
                  ft_shape_text(tuples, l->graph->arena),
                  ft_shape_text(data, l->graph->arena));
}

// Every index inside its axis, when they are known: a wrong one would hit another row.
static void check_tuples(ft_lowering *l, const ft_shape *data, int batch_dims,
                         int depth) {
  const ft_tensor *known = ft_lower_known(l, 1);
  if (!known) ft_lower_fail(l, FT_UNSUPPORTED, "indices is not a constant");
  int64_t count = l->status == FT_OK ? ft_shape_elements(&known->shape) : 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t at = ft_tensor_get_i64(known, i), extent = data->dim[batch_dims + i % depth];
    if (at >= -extent && at < extent) continue;
    ft_lower_fail(l, FT_REFUSED, "index %lld is outside an axis of %lld", (long long)at,
                  (long long)extent);
    return;
  }
}

ft_status ft_lower_gather_nd(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0), indices = ft_lower_input(l, 1);
  ft_shape data = ft_lower_shape_of(l, x), tuples = ft_lower_shape_of(l, indices);
  int64_t batch_dims = ft_lower_int(l, "batch_dims", 0);
  check_index_dtype(l, indices);
  check_gather_nd(l, &data, &tuples, batch_dims);
  if (l->status != FT_OK) return l->status;
  int batch = (int)batch_dims, depth = (int)tuples.dim[tuples.rank - 1];
  if (tuples.rank - 1 + data.rank - batch - depth > FT_MAX_RANK)
    return ft_lower_fail(l, FT_UNSUPPORTED, "the rank is more than %d", FT_MAX_RANK);
  check_tuples(l, &data, batch, depth);
  ft_shape list = {.rank = 3}, rows = {.rank = 2}, to = {0};
  list.dim[0] = product(&tuples, 0, batch);
  list.dim[1] = product(&tuples, batch, tuples.rank - 1);
  list.dim[2] = depth;
  rows.dim[0] = product(&data, 0, batch + depth);
  rows.dim[1] = product(&data, batch + depth, data.rank);
  for (int i = 0; i < tuples.rank - 1; i++) to.dim[to.rank++] = tuples.dim[i];
  for (int i = batch + depth; i < data.rank; i++) to.dim[to.rank++] = data.dim[i];
  uint32_t at = flat_positions(l, ft_emit_view(l, indices, &list), &data, batch, depth);
  ft_shape flat = {.rank = 1, .dim = {list.dim[0] * list.dim[1]}};
  uint32_t input[] = {ft_emit_view(l, x, &rows), ft_emit_view(l, at, &flat)};
  uint32_t y = ft_emit(l, FT_OP_GATHER, input, 2, &(ft_attr){.axis = 0});
  return ft_lower_return(l, ft_emit_view(l, y, &to));
}

// ---- Slice ----------------------------------------------------------------------------

typedef struct slice_lists {
  const int64_t *start, *end, *axis, *step;  // axis, step: NULL when not given
  size_t count;
} slice_lists;

// Lists of inputs 1 to 4, or of attributes before opset 10.
static const int64_t *slice_list(ft_lowering *l, uint32_t index, const char *name,
                                 size_t *count) {
  bool given;
  if (l->opset < 10) return ft_lower_ints(l, name, count, &given);
  return ft_lower_constant_ints(l, index, name, FT_MAX_RANK, count);
}

static bool has_list(ft_lowering *l, uint32_t index, const char *name) {
  if (l->opset < 10) return ft_onnx_find_attribute(l->node, name) != NULL;
  return ft_lower_optional(l, index) != FT_NONE;
}

static void read_slice(ft_lowering *l, slice_lists *out) {
  size_t counts[4] = {0};
  *out = (slice_lists){0};
  out->start = slice_list(l, 1, "starts", &counts[0]);
  out->end = slice_list(l, 2, "ends", &counts[1]);
  counts[2] = counts[3] = counts[0];
  if (has_list(l, 3, "axes")) out->axis = slice_list(l, 3, "axes", &counts[2]);
  if (l->opset >= 10 && has_list(l, 4, "steps"))
    out->step = slice_list(l, 4, "steps", &counts[3]);
  out->count = counts[0];
  for (int i = 1; i < 4; i++)
    if (counts[i] != counts[0])
      ft_lower_fail(l, FT_REFUSED, "starts has %zu entries, another list %zu", counts[0],
                    counts[i]);
}

// Ends past the axis, INT64_MIN and INT64_MAX among them, are cut to it; -1 then means
// "before the first element" and no longer counts from the end.
static int64_t clamp(int64_t at, int64_t extent, int64_t low, int64_t high) {
  if (at < 0) at += extent;
  return at < low ? low : at > high ? high : at;
}

static uint32_t slice_axis(ft_lowering *l, uint32_t x, int axis, int64_t start,
                           int64_t end, int64_t step) {
  static const int64_t most = (int64_t)1 << 62;
  int64_t extent = ft_lower_shape_of(l, x).dim[axis], count;
  if (step == 0) ft_lower_fail(l, FT_REFUSED, "step 0 along axis %d", axis);
  if (l->status != FT_OK) return FT_NONE;
  if (step > most) step = most;
  if (step < -most) step = -most;
  if (step > 0) {
    start = clamp(start, extent, 0, extent);
    end = clamp(end, extent, 0, extent);
    count = end > start ? (end - start - 1) / step + 1 : 0;
  } else {
    start = clamp(start, extent, -1, extent - 1);
    end = clamp(end, extent, -1, extent - 1);
    count = start > end ? (start - end - 1) / -step + 1 : 0;
  }
  return ft_emit_slice(l, x, axis, start, step, count);
}

ft_status ft_lower_slice(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0), seen = 0;
  int rank = ft_lower_shape_of(l, x).rank;
  slice_lists lists;
  read_slice(l, &lists);
  for (size_t i = 0; i < lists.count && l->status == FT_OK; i++) {
    int axis = ft_lower_axis(l, lists.axis ? lists.axis[i] : (int64_t)i, rank);
    if (seen >> axis & 1)
      return ft_lower_fail(l, FT_REFUSED, "axis %d is named twice", axis);
    seen |= 1u << axis;
    x = slice_axis(l, x, axis, lists.start[i], lists.end[i],
                   lists.step ? lists.step[i] : 1);
  }
  return ft_lower_return(l, x);
}

// ---- Concat and Split
// -------------------------------------------------------------------

static int highest_rank(ft_lowering *l) {
  int highest = 0;
  for (uint32_t i = 0; i < l->input_count; i++) {
    int rank = ft_lower_shape_of(l, ft_lower_input(l, i)).rank;
    if (rank > highest) highest = rank;
  }
  return highest;
}

// Input |index|; a scalar among vectors is a vector of one, as some exporters write.
static uint32_t part_of(ft_lowering *l, uint32_t index, int rank) {
  uint32_t part = ft_lower_input(l, index);
  int own = ft_lower_shape_of(l, part).rank;
  if (own == 0 && rank == 1) return ft_emit_place(l, part, 0, 1);
  if (own != rank)
    ft_lower_fail(l, FT_REFUSED, "input %u has rank %d, not %d", index, own, rank);
  return part;
}

// Inputs without elements along the axis add nothing.
ft_status ft_lower_concat(ft_lowering *l) {
  uint32_t count = 0, part = ft_lower_input(l, 0);
  int rank = highest_rank(l);
  if (l->opset >= 4 && !ft_onnx_find_attribute(l->node, "axis"))
    return ft_lower_fail(l, FT_REFUSED, "attribute 'axis' is missing");
  int axis = ft_lower_axis(l, ft_lower_int(l, "axis", 1), rank);
  uint32_t *parts = FT_NEW_ARRAY(l->graph->arena, uint32_t, l->input_count);
  if (!parts) return ft_lower_fail(l, FT_OUT_OF_MEMORY, "out of memory in %s", __func__);
  for (uint32_t i = 0; i < l->input_count && l->status == FT_OK; i++) {
    part = part_of(l, i, rank);
    if (ft_lower_shape_of(l, part).dim[axis]) parts[count++] = part;
  }
  if (count == 0) return ft_lower_return(l, part);
  if (count == 1) return ft_lower_return(l, parts[0]);
  return ft_lower_return(
      l, ft_emit(l, FT_OP_CONCAT, parts, count, &(ft_attr){.axis = (uint8_t)axis}));
}

// The extents of the parts: a list, or equal ones; from opset 18 the last may be smaller.
static const int64_t *split_extents(ft_lowering *l, int64_t extent) {
  size_t count = 0;
  bool given;
  const int64_t *list = NULL;
  if (l->opset < 13) {
    list = ft_lower_ints(l, "split", &count, &given);
  } else {
    given = ft_lower_optional(l, 1) != FT_NONE;
    if (given) list = ft_lower_constant_ints(l, 1, "split", 1 << 16, &count);
  }
  if (given && count != l->output_count)
    ft_lower_fail(l, FT_REFUSED, "split has %zu entries for %u outputs", count,
                  l->output_count);
  if (given || l->status != FT_OK) return list;
  int64_t parts = l->output_count;
  if (l->opset >= 18 && ft_lower_int(l, "num_outputs", parts) != parts)
    ft_lower_fail(l, FT_REFUSED, "num_outputs is %lld for %lld outputs",
                  (long long)ft_lower_int(l, "num_outputs", parts), (long long)parts);
  int64_t chunk = (extent + parts - 1) / parts, left = extent;
  if (l->opset < 18 && extent % parts)
    ft_lower_fail(l, FT_REFUSED, "%lld elements do not make %lld equal parts",
                  (long long)extent, (long long)parts);
  int64_t *out = FT_NEW_ARRAY(l->graph->arena, int64_t, (size_t)parts);
  if (!out) ft_lower_fail(l, FT_OUT_OF_MEMORY, "out of memory in %s", __func__);
  for (int64_t i = 0; out && i < parts; i++) {
    out[i] = left < chunk ? left : chunk;
    left -= out[i];
  }
  return out;
}

ft_status ft_lower_split(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  ft_shape shape = ft_lower_shape_of(l, x);
  int axis = ft_lower_axis(l, ft_lower_int(l, "axis", 0), shape.rank);
  if (l->output_count == 0) return ft_lower_fail(l, FT_REFUSED, "it has no outputs");
  const int64_t *extents = split_extents(l, shape.dim[axis]);
  int64_t start = 0;
  for (uint32_t i = 0; i < l->output_count && l->status == FT_OK; i++) {
    if (extents[i] < 0 || extents[i] > shape.dim[axis] - start)
      return ft_lower_fail(l, FT_REFUSED, "split[%u] is %lld of %lld that are left", i,
                           (long long)extents[i], (long long)(shape.dim[axis] - start));
    ft_lower_set(l, i, ft_emit_slice(l, x, axis, start, 1, extents[i]));
    start += extents[i];
  }
  if (l->status == FT_OK && start != shape.dim[axis])
    return ft_lower_fail(l, FT_REFUSED, "split makes %lld of %lld elements",
                         (long long)start, (long long)shape.dim[axis]);
  return l->status;
}

// ---- Tile -----------------------------------------------------------------------------

// [a, b] repeated [m, n] times: viewed as [1, a, 1, b], broadcast to [m, a, n, b], viewed
// as [ma, nb]. Axes that are not repeated, or have one element, need no axis of their
// own.
ft_status ft_lower_tile(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  size_t count;
  const int64_t *repeats = ft_lower_constant_ints(l, 1, "repeats", FT_MAX_RANK, &count);
  ft_shape from = ft_lower_shape_of(l, x), split = {0}, wide = {0}, to = from;
  if (l->status == FT_OK && count != from.rank)
    return ft_lower_fail(l, FT_REFUSED, "repeats has %zu entries for rank %d", count,
                         from.rank);
  for (int i = 0; i < from.rank && l->status == FT_OK; i++) {
    bool is_split = repeats[i] != 1 && from.dim[i] != 1;
    if (repeats[i] < 0 || __builtin_mul_overflow(from.dim[i], repeats[i], &to.dim[i]))
      return ft_lower_fail(l, FT_REFUSED, "repeats[%d] is %lld", i,
                           (long long)repeats[i]);
    if (split.rank + is_split >= FT_MAX_RANK)
      return ft_lower_fail(l, FT_UNSUPPORTED, "it needs a rank of more than %d",
                           FT_MAX_RANK);
    if (is_split) {
      split.dim[split.rank++] = 1;
      wide.dim[wide.rank++] = repeats[i];
    }
    split.dim[split.rank++] = from.dim[i];
    wide.dim[wide.rank++] = from.dim[i] == 1 ? repeats[i] : from.dim[i];
  }
  uint32_t y = ft_emit_broadcast(l, ft_emit_view(l, x, &split), &wide);
  return ft_lower_return(l, ft_emit_view(l, y, &to));
}
