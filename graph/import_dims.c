// Symbolic dims get numbers; inputs and outputs get their shapes.
#include <string.h>

#include "core/strbuf.h"
#include "graph/importer.h"

static ft_status find_symbol(ft_importer *im, const char *name, uint32_t *out,
                             ft_error *error) {
  for (size_t i = 0; i < im->symbol_count; i++) {
    *out = (uint32_t)i;
    if (strcmp(im->symbol[i].name, name) == 0) return FT_OK;
  }
  if (im->symbol_count == FT_IMPORT_MAX_SYMBOLS)
    FT_FAIL(error, FT_REFUSED, "the inputs have more than %d symbolic dims",
            FT_IMPORT_MAX_SYMBOLS);
  FT_OOM_IF(FT_GROW(im->arena, &im->symbol, im->symbol_count, &im->symbol_capacity),
            error);
  *out = (uint32_t)im->symbol_count;
  im->symbol[im->symbol_count++] = (ft_import_symbol){name, -1};
  return FT_OK;
}

ft_status ft_import_symbol_of(ft_importer *im, ft_span input, const ft_onnx_dim *dim,
                              uint32_t axis, uint32_t *out, ft_error *error) {
  *out = FT_NONE;
  if (dim->kind == FT_DIM_VALUE) return FT_OK;
  const char *name =
      dim->kind == FT_DIM_NAMED
          ? ft_span_copy(dim->name, im->arena)
          : ft_arena_printf(im->arena, "%.*s[%u]", FT_SPAN_SHOW(input), axis);
  FT_OOM_IF(!name, error);
  return find_symbol(im, name, out, error);
}

static bool is_bound_by_caller(const ft_importer *im, uint32_t input) {
  const ft_import_name *name = ft_import_find(im, im->model.input[input].name);
  return name->source == FT_SOURCE_INPUT;
}

static ft_status read_input_type(const ft_importer *im, uint32_t input, ft_onnx_type *out,
                                 ft_error *error) {
  return ft_onnx_read_type(im->model.input[input].message, im->model.file, out, error);
}

static ft_status collect_symbols(ft_importer *im, ft_error *error) {
  for (uint32_t i = 0; i < im->model.input_count; i++) {
    if (!is_bound_by_caller(im, i)) continue;
    ft_onnx_type type;
    FT_TRY(read_input_type(im, i, &type, error));
    for (uint32_t axis = 0; axis < type.rank && axis < FT_MAX_RANK; axis++) {
      uint32_t symbol;
      FT_TRY(ft_import_symbol_of(im, im->model.input[i].name, &type.dim[axis], axis,
                                 &symbol, error));
    }
  }
  return FT_OK;
}

// ---- bindings ---------------------------------------------------------------------

static const char *symbol_list(ft_importer *im, bool only_unbound) {
  ft_strbuf list = ft_strbuf_init(im->arena);
  for (size_t i = 0; i < im->symbol_count; i++)
    if (!only_unbound || im->symbol[i].value < 0)
      ft_strbuf_printf(&list, " %s", im->symbol[i].name);
  return list.length ? list.text : " none";
}

static ft_status bind_symbol(ft_import_symbol *symbol, const ft_dim_binding *binding,
                             ft_error *error) {
  if (symbol->value >= 0 && symbol->value != binding->value)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "dim %s is bound to %lld and to %lld",
            binding->name, (long long)symbol->value, (long long)binding->value);
  symbol->value = binding->value;
  return FT_OK;
}

static ft_status bind_one(ft_importer *im, const ft_dim_binding *binding,
                          ft_error *error) {
  if (binding->value < 0)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "dim %s=%lld is negative", binding->name,
            (long long)binding->value);
  for (size_t i = 0; i < im->symbol_count; i++)
    if (strcmp(im->symbol[i].name, binding->name) == 0)
      return bind_symbol(&im->symbol[i], binding, error);
  if (strcmp(binding->name, "*") == 0) return FT_OK;
  FT_FAIL(error, FT_INVALID_ARGUMENT, "the model has no dim '%s'; it has:%s",
          binding->name, symbol_list(im, false));
}

static void bind_rest(ft_importer *im) {
  for (uint32_t k = 0; k < im->options->dim_count; k++) {
    if (strcmp(im->options->dim[k].name, "*") != 0) continue;
    for (size_t i = 0; i < im->symbol_count; i++)
      if (im->symbol[i].value < 0) im->symbol[i].value = im->options->dim[k].value;
  }
}

static ft_status report_unbound(ft_importer *im, ft_error *error) {
  const char **names = FT_NEW_ARRAY(im->arena, const char *, im->symbol_count);
  FT_OOM_IF(!names, error);
  im->report->unbound = names;
  for (size_t i = 0; i < im->symbol_count; i++)
    if (im->symbol[i].value < 0) names[im->report->unbound_count++] = im->symbol[i].name;
  if (im->report->unbound_count == 0) return FT_OK;
  FT_TRY(ft_import_list_unsupported(im, error));
  FT_FAIL(error, FT_INVALID_ARGUMENT, "%u dims are not bound:%s",
          im->report->unbound_count, symbol_list(im, true));
}

// ---- whole shapes -----------------------------------------------------------------

static ft_status find_shaped_input(const ft_importer *im, const ft_input_shape *given,
                                   uint32_t *out, ft_error *error) {
  size_t length = strlen(given->name);
  for (uint32_t i = 0; i < im->model.input_count; i++) {
    ft_span name = im->model.input[i].name;
    if (name.size != length || memcmp(name.data, given->name, length) != 0) continue;
    *out = i;
    if (is_bound_by_caller(im, i)) return FT_OK;
  }
  FT_FAIL(error, FT_INVALID_ARGUMENT, "the model has no graph input '%s'", given->name);
}

static ft_status bind_axis(ft_importer *im, uint32_t input, const ft_onnx_dim *dim,
                           const ft_input_shape *given, uint32_t axis, ft_error *error) {
  uint32_t symbol;
  FT_TRY(ft_import_symbol_of(im, im->model.input[input].name, dim, axis, &symbol, error));
  int64_t value = given->shape.dim[axis];
  if (symbol == FT_NONE && dim->value != value)
    FT_FAIL(error, FT_INVALID_ARGUMENT,
            "input '%s': dim %u is %lld in the model, %lld was given", given->name, axis,
            (long long)dim->value, (long long)value);
  if (symbol == FT_NONE) return FT_OK;
  ft_dim_binding binding = {im->symbol[symbol].name, value};
  return bind_symbol(&im->symbol[symbol], &binding, error);
}

static ft_status bind_shape(ft_importer *im, const ft_input_shape *given,
                            ft_error *error) {
  uint32_t input;
  FT_TRY(find_shaped_input(im, given, &input, error));
  ft_onnx_type type;
  FT_TRY(read_input_type(im, input, &type, error));
  if (!type.has_shape || type.rank != given->shape.rank)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "input '%s' has %u dims, %u were given",
            given->name, type.rank, given->shape.rank);
  for (uint32_t axis = 0; axis < type.rank; axis++)
    FT_TRY(bind_axis(im, input, &type.dim[axis], given, axis, error));
  return FT_OK;
}

// ---- constants --------------------------------------------------------------------

// Checks the tensor as if its shape were given, then takes the input out of the list.
static ft_status bind_constant(ft_importer *im, const ft_input_constant *given,
                               ft_error *error) {
  const ft_input_shape shape = {given->name, given->tensor.shape};
  ft_onnx_type type;
  uint32_t input;
  FT_TRY(find_shaped_input(im, &shape, &input, error));
  FT_TRY(read_input_type(im, input, &type, error));
  if (!type.is_tensor || ft_dtype_from_onnx(type.element) != given->tensor.dtype)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "input '%s' is %s, the constant for it %s",
            given->name, ft_onnx_type_text(type.element),
            ft_dtype_text(given->tensor.dtype));
  if (type.has_shape) FT_TRY(bind_shape(im, &shape, error));
  ft_import_name *name = ft_import_find(im, im->model.input[input].name);
  name->source = FT_SOURCE_BOUND;
  return ft_graph_add_constant(im->graph, given->name, &given->tensor, &name->value,
                               error);
}

static ft_status bind(ft_importer *im, ft_error *error) {
  for (uint32_t k = 0; k < im->options->input_count; k++)
    FT_TRY(bind_shape(im, &im->options->input[k], error));
  for (uint32_t k = 0; k < im->options->constant_count; k++)
    FT_TRY(bind_constant(im, &im->options->constant[k], error));
  for (uint32_t k = 0; k < im->options->dim_count; k++)
    FT_TRY(bind_one(im, &im->options->dim[k], error));
  bind_rest(im);
  return report_unbound(im, error);
}

// ---- inputs -----------------------------------------------------------------------

static ft_status concrete_shape(ft_importer *im, uint32_t input, const ft_onnx_type *type,
                                ft_shape *out, ft_error *error) {
  ft_span name = im->model.input[input].name;
  *out = (ft_shape){.rank = (uint8_t)type->rank};
  for (uint32_t axis = 0; axis < type->rank; axis++) {
    uint32_t symbol;
    FT_TRY(ft_import_symbol_of(im, name, &type->dim[axis], axis, &symbol, error));
    out->dim[axis] = symbol == FT_NONE ? type->dim[axis].value : im->symbol[symbol].value;
    if (out->dim[axis] < 0)
      FT_FAIL(error, FT_REFUSED, "graph input '%.*s': dim %u is %lld", FT_SPAN_SHOW(name),
              axis, (long long)out->dim[axis]);
  }
  return FT_OK;
}

// Why we cannot take the input; NULL when we can.
static const char *refusal(ft_importer *im, const ft_onnx_type *type) {
  if (!type->is_tensor) return "not a tensor";
  ft_dtype dtype = ft_dtype_from_onnx(type->element);
  if (dtype == FT_DTYPE_COUNT || !ft_import_is_native(dtype))
    return ft_arena_printf(im->arena, "dtype %s", ft_onnx_type_text(type->element));
  if (!type->has_shape) return "no shape is declared";
  if (type->rank > FT_MAX_RANK)
    return ft_arena_printf(im->arena, "rank %u is more than %d", type->rank, FT_MAX_RANK);
  return NULL;
}

static ft_status add_input(ft_importer *im, uint32_t input, ft_error *error) {
  ft_span span = im->model.input[input].name;
  ft_import_name *name = ft_import_find(im, span);
  ft_onnx_type type;
  FT_TRY(read_input_type(im, input, &type, error));
  const char *reason = refusal(im, &type);
  if (reason) {
    name->is_unknown = true;
    return ft_import_add_unsupported(im, "input", (ft_span){0}, 0, span, reason, error);
  }
  ft_shape shape;
  FT_TRY(concrete_shape(im, input, &type, &shape, error));
  const char *text = ft_span_copy(span, im->arena);
  FT_OOM_IF(!text, error);
  return ft_graph_add_input(im->graph, text, ft_dtype_from_onnx(type.element), &shape,
                            &name->value, error);
}

ft_status ft_import_inputs(ft_importer *im, ft_error *error) {
  FT_TRY(collect_symbols(im, error));
  FT_TRY(bind(im, error));
  for (uint32_t i = 0; i < im->model.input_count; i++)
    if (is_bound_by_caller(im, i)) FT_TRY(add_input(im, i, error));
  return FT_OK;
}

// ---- outputs ----------------------------------------------------------------------

// The dims that are declared are hearsay: models whose weights were exchanged keep old
// ones, and no runtime minds. A wrong dtype or rank is another model.
static ft_status check_declared(ft_importer *im, ft_span name, const ft_onnx_type *type,
                                uint32_t value, ft_error *error) {
  const ft_value *v = &im->graph->value[value];
  if (type->element && ft_dtype_from_onnx(type->element) != v->dtype)
    FT_FAIL(error, FT_REFUSED, "graph output '%.*s' is declared %s, but is %s",
            FT_SPAN_SHOW(name), ft_onnx_type_text(type->element),
            ft_dtype_text(v->dtype));
  if (!type->has_shape) return FT_OK;
  if (type->rank != v->shape.rank)
    FT_FAIL(error, FT_REFUSED, "graph output '%.*s' is declared with rank %u, but is %s",
            FT_SPAN_SHOW(name), type->rank, ft_shape_text(&v->shape, im->arena));
  return FT_OK;
}

static ft_status add_output(ft_importer *im, uint32_t output, ft_error *error) {
  ft_span span = im->model.output[output].name;
  ft_import_name *name = ft_import_find(im, span);
  FT_TRY(ft_import_load(im, name, error));
  if (name->is_unknown) return FT_OK;
  ft_onnx_type type;
  FT_TRY(
      ft_onnx_read_type(im->model.output[output].message, im->model.file, &type, error));
  if (type.is_tensor) FT_TRY(check_declared(im, span, &type, name->value, error));
  ft_dtype dtype = im->graph->value[name->value].dtype;
  if (!ft_import_is_native(dtype))
    return ft_import_add_unsupported(
        im, "output", (ft_span){0}, 0, span,
        ft_arena_printf(im->arena, "dtype %s", ft_dtype_text(dtype)), error);
  const char *text = ft_span_copy(span, im->arena);
  FT_OOM_IF(!text, error);
  FT_TRY(ft_graph_name_value(im->graph, name->value, text, error));
  return ft_graph_add_output(im->graph, text, name->value, error);
}

ft_status ft_import_outputs(ft_importer *im, ft_error *error) {
  for (uint32_t i = 0; i < im->model.output_count; i++) FT_TRY(add_output(im, i, error));
  return FT_OK;
}
