#include "graph/lower.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const ft_operator_info operators[] = {
#define FT_OPERATOR(name, domain, opset, handler, primitive) \
  {name, domain, opset, handler, FT_OP_##primitive},
#include "graph/operators.def"
#undef FT_OPERATOR
};

const ft_operator_info *ft_operator_find(ft_span op, ft_span domain, int64_t opset,
                                         int64_t *out_first) {
  const ft_operator_info *best = NULL;
  *out_first = 0;
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
    const ft_operator_info *info = &operators[i];
    if (!ft_span_is(op, info->name) || !ft_span_is(domain, info->domain)) continue;
    if (*out_first == 0 || info->first_opset < *out_first) *out_first = info->first_opset;
    bool fits = info->first_opset <= opset;
    if (fits && (!best || info->first_opset > best->first_opset)) best = info;
  }
  return best;
}

// ---- the node ---------------------------------------------------------------------

ft_status ft_lower_fail(ft_lowering *l, ft_status code, const char *format, ...) {
  if (l->status != FT_OK) return l->status;
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return l->status = ft_error_set(l->error, code, "%s", text);
}

uint32_t ft_lower_optional(ft_lowering *l, uint32_t index) {
  if (l->inputs_read <= index) l->inputs_read = index + 1;
  if (l->status != FT_OK || index >= l->input_count) return FT_NONE;
  return l->input[index];
}

uint32_t ft_lower_input(ft_lowering *l, uint32_t index) {
  uint32_t value = ft_lower_optional(l, index);
  if (value == FT_NONE) ft_lower_fail(l, FT_REFUSED, "input %u is missing", index);
  return value;
}

static const ft_onnx_attribute *find(ft_lowering *l, const char *name,
                                     ft_onnx_attribute_type type) {
  if (l->status != FT_OK) return NULL;
  const ft_onnx_attribute *attribute = ft_onnx_find_attribute(l->node, name);
  if (attribute && attribute->type != (int64_t)type) {
    ft_lower_fail(l, FT_REFUSED, "attribute '%s' has type %lld, not %d", name,
                  (long long)attribute->type, (int)type);
    return NULL;
  }
  return attribute;
}

int64_t ft_lower_int(ft_lowering *l, const char *name, int64_t otherwise) {
  const ft_onnx_attribute *attribute = find(l, name, FT_ONNX_INT);
  return attribute ? attribute->i : otherwise;
}

float ft_lower_float(ft_lowering *l, const char *name, float otherwise) {
  const ft_onnx_attribute *attribute = find(l, name, FT_ONNX_FLOAT);
  return attribute ? attribute->f : otherwise;
}

ft_span ft_lower_text(ft_lowering *l, const char *name, const char *otherwise) {
  const ft_onnx_attribute *attribute = find(l, name, FT_ONNX_STRING);
  if (attribute) return attribute->s;
  return (ft_span){(const uint8_t *)otherwise, strlen(otherwise)};
}

const int64_t *ft_lower_ints(ft_lowering *l, const char *name, size_t *out_count,
                             bool *out_given) {
  const ft_onnx_attribute *attribute = find(l, name, FT_ONNX_INTS);
  const int64_t *values = NULL;
  *out_count = 0;
  *out_given = attribute != NULL;
  if (attribute)
    l->status =
        ft_onnx_read_ints(attribute, l->graph->arena, &values, out_count, l->error);
  return values;
}

const float *ft_lower_floats(ft_lowering *l, const char *name, size_t *out_count) {
  const ft_onnx_attribute *attribute = find(l, name, FT_ONNX_FLOATS);
  const float *values = NULL;
  *out_count = 0;
  if (!attribute)
    ft_lower_fail(l, FT_REFUSED, "attribute '%s' is missing", name);
  else
    l->status =
        ft_onnx_read_floats(attribute, l->graph->arena, &values, out_count, l->error);
  return values;
}

const ft_tensor *ft_lower_known(ft_lowering *l, uint32_t index) {
  uint32_t input = ft_lower_optional(l, index);
  if (input == FT_NONE) return NULL;
  const ft_value *value = &l->graph->value[input];
  return value->data || !l->fallback ? value->data : l->fallback[index];
}

const ft_tensor *ft_lower_require(ft_lowering *l, uint32_t index, const char *what) {
  const ft_tensor *tensor = ft_lower_known(l, index);
  if (tensor) return tensor;
  if (ft_lower_input(l, index) != FT_NONE)
    ft_lower_fail(l, FT_UNSUPPORTED, "%s is not a constant", what);
  return NULL;
}

// A known input of rank <= 1 and at most |limit| elements, or NULL.
static const ft_tensor *constant_list(ft_lowering *l, uint32_t index, const char *what,
                                      size_t limit) {
  const ft_tensor *tensor = ft_lower_require(l, index, what);
  if (!tensor) return NULL;
  if (tensor->shape.rank > 1)
    ft_lower_fail(l, FT_REFUSED, "%s has rank %d, not 1", what, tensor->shape.rank);
  else if ((uint64_t)ft_shape_elements(&tensor->shape) > limit)
    ft_lower_fail(l, FT_UNSUPPORTED, "%s has %lld elements, more than %zu", what,
                  (long long)ft_shape_elements(&tensor->shape), limit);
  return l->status == FT_OK ? tensor : NULL;
}

const double *ft_lower_constant_floats(ft_lowering *l, uint32_t index, const char *what,
                                       size_t limit, size_t *out_count) {
  *out_count = 0;
  const ft_tensor *tensor = constant_list(l, index, what, limit);
  if (!tensor) return NULL;
  size_t count = (size_t)ft_shape_elements(&tensor->shape);
  double *out = FT_NEW_ARRAY(l->graph->arena, double, count);
  if (!out) ft_lower_fail(l, FT_OUT_OF_MEMORY, "out of memory in %s", __func__);
  for (size_t i = 0; out && i < count; i++)
    out[i] = ft_tensor_get_f64(tensor, (int64_t)i);
  *out_count = out ? count : 0;
  return out;
}

const int64_t *ft_lower_constant_ints(ft_lowering *l, uint32_t index, const char *what,
                                      size_t limit, size_t *out_count) {
  *out_count = 0;
  ft_dtype dtype = ft_lower_dtype(l, ft_lower_input(l, index));
  if (l->status == FT_OK && dtype != FT_I64 && dtype != FT_I32)
    ft_lower_fail(l, FT_REFUSED, "%s is %s, not i64", what, ft_dtype_text(dtype));
  const ft_tensor *tensor = constant_list(l, index, what, limit);
  if (!tensor) return NULL;
  size_t count = (size_t)ft_shape_elements(&tensor->shape);
  int64_t *out = FT_NEW_ARRAY(l->graph->arena, int64_t, count);
  if (!out) ft_lower_fail(l, FT_OUT_OF_MEMORY, "out of memory in %s", __func__);
  for (size_t i = 0; out && i < count; i++)
    out[i] = ft_tensor_get_i64(tensor, (int64_t)i);
  *out_count = out ? count : 0;
  return out;
}

int ft_lower_axis(ft_lowering *l, int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return (int)(axis < 0 ? axis + rank : axis);
  ft_lower_fail(l, FT_REFUSED, "axis %lld of a value of rank %d", (long long)axis, rank);
  return 0;
}

ft_dtype ft_lower_dtype(const ft_lowering *l, uint32_t value) {
  return l->status == FT_OK ? l->graph->value[value].dtype : FT_F32;
}

ft_shape ft_lower_shape_of(const ft_lowering *l, uint32_t value) {
  return l->status == FT_OK ? l->graph->value[value].shape : (ft_shape){0};
}

// ---- emitting ---------------------------------------------------------------------

uint32_t ft_emit(ft_lowering *l, ft_op op, const uint32_t *input, uint32_t count,
                 const ft_attr *attr) {
  uint32_t out = FT_NONE;
  if (l->status != FT_OK) return FT_NONE;
  l->status = ft_graph_emit(l->graph, op, input, count, attr, &out, l->error);
  return l->status == FT_OK ? out : FT_NONE;
}

uint32_t ft_emit1(ft_lowering *l, ft_op op, uint32_t a) {
  return ft_emit(l, op, &a, 1, NULL);
}

uint32_t ft_emit2(ft_lowering *l, ft_op op, uint32_t a, uint32_t b) {
  return ft_emit(l, op, (uint32_t[]){a, b}, 2, NULL);
}

uint32_t ft_emit_where(ft_lowering *l, uint32_t condition, uint32_t a, uint32_t b) {
  return ft_emit(l, FT_OP_WHERE, (uint32_t[]){condition, a, b}, 3, NULL);
}

uint32_t ft_emit_scalar(ft_lowering *l, uint32_t like, double value) {
  uint32_t out = FT_NONE;
  if (l->status != FT_OK) return FT_NONE;
  ft_dtype dtype = l->graph->value[like].dtype;
  l->status = ft_graph_add_scalar(l->graph, dtype, value, &out, l->error);
  return l->status == FT_OK ? out : FT_NONE;
}

uint32_t ft_emit_cast(ft_lowering *l, uint32_t a, ft_dtype to) {
  return ft_emit(l, FT_OP_CAST, &a, 1, &(ft_attr){.to = to});
}

uint32_t ft_emit_view(ft_lowering *l, uint32_t a, const ft_shape *shape) {
  uint32_t out = FT_NONE;
  if (l->status != FT_OK) return FT_NONE;
  l->status = ft_graph_view(l->graph, a, shape, &out, l->error);
  return l->status == FT_OK ? out : FT_NONE;
}

uint32_t ft_emit_broadcast(ft_lowering *l, uint32_t a, const ft_shape *shape) {
  return ft_emit(l, FT_OP_BROADCAST, &a, 1, &(ft_attr){.shape = *shape});
}

uint32_t ft_emit_reduce(ft_lowering *l, ft_op op, uint32_t a, uint32_t axes) {
  return ft_emit(l, op, &a, 1, &(ft_attr){.axes = axes});
}

uint32_t ft_emit_mean(ft_lowering *l, uint32_t a, uint32_t axes) {
  ft_shape shape = ft_lower_shape_of(l, a);
  double count = 1;
  for (int i = 0; i < shape.rank; i++)
    if (axes >> i & 1) count *= (double)shape.dim[i];
  uint32_t sum = ft_emit_reduce(l, FT_OP_REDUCE_SUM, a, axes);
  if (!ft_dtype_is_float(ft_lower_dtype(l, a)))
    return ft_emit2(l, FT_OP_DIV, sum, ft_emit_scalar(l, a, count));
  return ft_emit2(l, FT_OP_MUL, sum, ft_emit_scalar(l, a, 1 / count));
}

// ---- generated constants ----------------------------------------------------------

enum { MAX_GENERATED = 16 << 20, MAX_GENERATED_TOTAL = 64 << 20 };

void *ft_lower_generate(ft_lowering *l, ft_dtype dtype, const ft_shape *shape,
                        ft_tensor *out) {
  void *data = NULL;
  *out = (ft_tensor){.dtype = dtype};
  if (l->status != FT_OK) return NULL;
  int64_t elements = ft_shape_elements(shape), size = (int64_t)ft_dtype_bytes(dtype);
  if (elements < 0 || elements > MAX_GENERATED / size ||
      *l->generated_bytes + (size_t)(elements * size) > MAX_GENERATED_TOTAL) {
    ft_lower_fail(l, FT_UNSUPPORTED, "it needs a constant of %s, which is too large",
                  ft_shape_text(shape, l->graph->arena));
    return NULL;
  }
  *l->generated_bytes += (size_t)(elements * size);
  l->status = ft_tensor_alloc(dtype, shape, l->graph->arena, out, &data, l->error);
  return l->status == FT_OK ? data : NULL;
}

uint32_t ft_emit_constant(ft_lowering *l, const ft_tensor *tensor) {
  uint32_t out = FT_NONE;
  if (l->status == FT_OK)
    l->status = ft_graph_add_constant(l->graph, "", tensor, &out, l->error);
  return l->status == FT_OK ? out : FT_NONE;
}

uint32_t ft_emit_iota(ft_lowering *l, ft_dtype dtype, int64_t count, int axis, int rank) {
  ft_shape shape = {.rank = (uint8_t)rank};
  for (int i = 0; i < rank; i++) shape.dim[i] = i == axis ? count : 1;
  ft_tensor tensor;
  void *data = ft_lower_generate(l, dtype, &shape, &tensor);
  for (int64_t i = 0; data && i < count; i++) ft_element_set_i64(dtype, data, i, i);
  return ft_emit_constant(l, &tensor);
}

uint32_t ft_emit_slice(ft_lowering *l, uint32_t a, int axis, int64_t start, int64_t step,
                       int64_t count) {
  ft_attr attr = {.shape = ft_lower_shape_of(l, a)};
  if (l->status != FT_OK) return FT_NONE;
  for (int i = 0; i < attr.shape.rank; i++) attr.step[i] = 1;
  if (start == 0 && step == 1 && count == attr.shape.dim[axis]) return a;
  attr.shape.dim[axis] = count;
  attr.start[axis] = count ? start : 0;
  attr.step[axis] = count > 1 ? step : 1;
  return ft_emit(l, FT_OP_SLICE, &a, 1, &attr);
}

static bool is_run(const int64_t *index, int64_t count) {
  for (int64_t i = 1; i < count; i++)
    if (index[i] - index[i - 1] != index[1] - index[0]) return false;
  return count < 2 || index[1] != index[0];
}

uint32_t ft_emit_pick(ft_lowering *l, uint32_t a, int axis, const int64_t *index,
                      int64_t count) {
  if (l->status != FT_OK) return FT_NONE;
  if (is_run(index, count))
    return ft_emit_slice(l, a, axis, count ? index[0] : 0,
                         count > 1 ? index[1] - index[0] : 1, count);
  ft_shape shape = {.rank = 1, .dim = {count}};
  ft_tensor tensor;
  int32_t *data = ft_lower_generate(l, FT_I32, &shape, &tensor);
  for (int64_t i = 0; data && i < count; i++) data[i] = (int32_t)index[i];
  uint32_t input[] = {a, ft_emit_constant(l, &tensor)};
  return ft_emit(l, FT_OP_GATHER, input, 2, &(ft_attr){.axis = (uint8_t)axis});
}

uint32_t ft_emit_place(ft_lowering *l, uint32_t vector, int axis, int rank) {
  ft_shape from = ft_lower_shape_of(l, vector), to = {.rank = (uint8_t)rank};
  for (int i = 0; i < rank; i++) to.dim[i] = i == axis ? ft_shape_elements(&from) : 1;
  return ft_emit_view(l, vector, &to);
}

void ft_lower_set(ft_lowering *l, uint32_t index, uint32_t value) {
  if (l->status == FT_OK && index < l->output_count) l->output[index] = value;
}

ft_status ft_lower_return(ft_lowering *l, uint32_t value) {
  ft_lower_set(l, 0, value);
  return l->status;
}
