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

const int64_t *ft_lower_constant_ints(ft_lowering *l, uint32_t index, const char *what,
                                      size_t limit, size_t *out_count) {
  *out_count = 0;
  uint32_t input = ft_lower_input(l, index);
  if (input == FT_NONE) return NULL;
  const ft_value *value = &l->graph->value[input];
  if (value->dtype != FT_I64 && value->dtype != FT_I32)
    ft_lower_fail(l, FT_REFUSED, "%s is %s, not i64", what, ft_dtype_text(value->dtype));
  else if (!value->data)
    ft_lower_fail(l, FT_UNSUPPORTED, "%s is not a constant", what);
  else if (value->shape.rank > 1)
    ft_lower_fail(l, FT_REFUSED, "%s has rank %d, not 1", what, value->shape.rank);
  else if ((uint64_t)ft_shape_elements(&value->shape) > limit)
    ft_lower_fail(l, FT_UNSUPPORTED, "%s has %lld elements, more than %zu", what,
                  (long long)ft_shape_elements(&value->shape), limit);
  if (l->status != FT_OK) return NULL;
  size_t count = (size_t)ft_shape_elements(&value->shape);
  int64_t *out = FT_NEW_ARRAY(l->graph->arena, int64_t, count);
  if (!out) ft_lower_fail(l, FT_OUT_OF_MEMORY, "out of memory in %s", __func__);
  for (size_t i = 0; out && i < count; i++)
    out[i] = ft_tensor_get_i64(value->data, (int64_t)i);
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

void ft_lower_set(ft_lowering *l, uint32_t index, uint32_t value) {
  if (l->status == FT_OK && index < l->output_count) l->output[index] = value;
}

ft_status ft_lower_return(ft_lowering *l, uint32_t value) {
  ft_lower_set(l, 0, value);
  return l->status;
}
