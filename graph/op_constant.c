// Constants, and Dropout, which is one at inference.
#include "graph/lower.h"
#include "graph/onnx_tensor.h"

static uint32_t add_tensor(ft_lowering *l, const ft_tensor *tensor) {
  uint32_t out = FT_NONE;
  if (l->status == FT_OK)
    l->status = ft_graph_add_constant(l->graph, "", tensor, &out, l->error);
  return l->status == FT_OK ? out : FT_NONE;
}

static void load(ft_lowering *l, const ft_onnx_attribute *attribute, ft_tensor *out) {
  if (attribute->type != FT_ONNX_TENSOR)
    ft_lower_fail(l, FT_REFUSED, "attribute 'value' is not a tensor");
  if (l->status == FT_OK)
    l->status = ft_onnx_load_tensor(attribute->t, l->file, l->files, l->graph->arena, out,
                                    l->error);
}

// value_int, value_ints, value_float, value_floats.
static uint32_t from_numbers(ft_lowering *l, const ft_onnx_attribute *a) {
  bool is_float = a->type == FT_ONNX_FLOAT || a->type == FT_ONNX_FLOATS;
  bool is_list = a->type == FT_ONNX_INTS || a->type == FT_ONNX_FLOATS;
  const int64_t *ints = &a->i;
  const float *floats = &a->f;
  size_t count = 1;
  if (a->type == FT_ONNX_INTS)
    l->status = ft_onnx_read_ints(a, l->graph->arena, &ints, &count, l->error);
  if (a->type == FT_ONNX_FLOATS)
    l->status = ft_onnx_read_floats(a, l->graph->arena, &floats, &count, l->error);
  ft_tensor tensor = {.dtype = is_float ? FT_F32 : FT_I64,
                      .shape = {.rank = is_list, .dim = {is_list ? (int64_t)count : 0}},
                      .data = is_float ? (const void *)floats : (const void *)ints,
                      .bytes = count * (is_float ? sizeof *floats : sizeof *ints)};
  return add_tensor(l, &tensor);
}

ft_status ft_lower_constant(ft_lowering *l) {
  if (l->node->attribute_count != 1)
    return ft_lower_fail(l, FT_REFUSED, "%u attributes, not 1", l->node->attribute_count);
  const ft_onnx_attribute *attribute = &l->node->attribute[0];
  if (ft_span_is(attribute->name, "value")) {
    ft_tensor tensor;
    load(l, attribute, &tensor);
    return ft_lower_return(l, add_tensor(l, &tensor));
  }
  static const struct {
    const char *name;
    ft_onnx_attribute_type type;
  } forms[] = {{"value_int", FT_ONNX_INT},
               {"value_ints", FT_ONNX_INTS},
               {"value_float", FT_ONNX_FLOAT},
               {"value_floats", FT_ONNX_FLOATS}};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (ft_span_is(attribute->name, forms[i].name) && attribute->type == forms[i].type)
      return ft_lower_return(l, from_numbers(l, attribute));
  return ft_lower_fail(l, FT_UNSUPPORTED, "attribute '%.*s' of type %lld",
                       FT_SPAN_SHOW(attribute->name), (long long)attribute->type);
}

// A broadcast of one element: folded when small, a primitive otherwise, so that a
// hostile shape costs nothing here.
ft_status ft_lower_constant_of_shape(ft_lowering *l) {
  static const float zero = 0;
  static const ft_shape scalar = {0};
  ft_tensor tensor = {.dtype = FT_F32, .data = &zero, .bytes = sizeof zero};
  const ft_onnx_attribute *value = ft_onnx_find_attribute(l->node, "value");
  if (value) load(l, value, &tensor);
  if (l->status == FT_OK && ft_shape_elements(&tensor.shape) != 1)
    return ft_lower_fail(l, FT_REFUSED, "attribute 'value' has more than one element");
  tensor.shape = scalar;
  size_t count;
  const int64_t *dims = ft_lower_constant_ints(l, 0, "shape", FT_MAX_RANK, &count);
  ft_shape shape = {.rank = (uint8_t)count};
  for (size_t i = 0; i < count; i++) {
    if (dims[i] < 0)
      return ft_lower_fail(l, FT_REFUSED, "shape[%zu] is %lld", i, (long long)dims[i]);
    shape.dim[i] = dims[i];
  }
  return ft_lower_return(l, ft_emit_broadcast(l, add_tensor(l, &tensor), &shape));
}

// Before opset 7 is_test says whether this is inference, from 12 on an input does.
static void refuse_training(ft_lowering *l) {
  bool is_training = l->opset < 7 && ft_lower_int(l, "is_test", 0) == 0;
  if (l->opset >= 12 && ft_lower_optional(l, 2) != FT_NONE) {
    const ft_tensor *data = ft_lower_known(l, 2);
    is_training =
        !data || ft_shape_elements(&data->shape) != 1 || ft_tensor_get_f64(data, 0) != 0;
  }
  if (is_training) ft_lower_fail(l, FT_UNSUPPORTED, "training mode");
}

ft_status ft_lower_dropout(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  refuse_training(l);
  if (l->output_count > 1 && l->node->output[1].size && l->status == FT_OK) {
    ft_dtype dtype = l->opset < 10 ? ft_lower_dtype(l, x) : FT_BOOL;
    ft_shape shape = ft_lower_shape_of(l, x);
    uint32_t one = ft_emit_cast(l, ft_emit_scalar(l, x, 1), dtype);
    ft_lower_set(l, 1, ft_emit_broadcast(l, one, &shape));
  }
  return ft_lower_return(l, x);
}
