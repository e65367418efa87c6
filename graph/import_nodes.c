// One pass over the nodes: each becomes primitives, or an entry in the list of what is
// unsupported; a node that reads an unknown value is stepped over.
#include <stdlib.h>
#include <string.h>

#include "graph/importer.h"
#include "graph/onnx_tensor.h"

bool ft_import_is_native(ft_dtype dtype) {
  return dtype == FT_F32 || dtype == FT_I64 || dtype == FT_I32 || dtype == FT_BOOL;
}

const char *ft_onnx_type_text(int64_t number) {
  static const char *const others[] = {
      [0] = "undefined", [8] = "string",      [14] = "complex64", [15] = "complex128",
      [17] = "f8e4m3fn", [18] = "f8e4m3fnuz", [19] = "f8e5m2",    [20] = "f8e5m2fnuz",
      [21] = "u4",       [22] = "i4",         [23] = "f4e2m1"};
  ft_dtype dtype = ft_dtype_from_onnx(number);
  if (dtype != FT_DTYPE_COUNT) return ft_dtype_text(dtype);
  bool is_known = number >= 0 && number < (int64_t)(sizeof others / sizeof *others);
  return is_known && others[number] ? others[number] : "of an unknown kind";
}

static char *copy(const ft_importer *im, ft_span span) {
  return ft_span_copy(span, im->arena);
}

ft_status ft_import_add_unsupported(ft_importer *im, const char *op, ft_span domain,
                                    int64_t opset, ft_span node, const char *reason,
                                    ft_error *error) {
  ft_import_shared *shared = im->shared;
  FT_OOM_IF(FT_GROW(im->arena, &shared->unsupported, shared->unsupported_count,
                    &shared->unsupported_capacity),
            error);
  ft_unsupported *entry = &shared->unsupported[shared->unsupported_count++];
  *entry = (ft_unsupported){.op = ft_arena_strdup(im->arena, op),
                            .domain = copy(im, domain),
                            .node = copy(im, node),
                            .reason = ft_arena_strdup(im->arena, reason ? reason : "?"),
                            .opset = opset};
  FT_OOM_IF(!entry->op || !entry->domain || !entry->node || !entry->reason, error);
  im->report->unsupported = shared->unsupported;
  im->report->unsupported_count = (uint32_t)shared->unsupported_count;
  return FT_OK;
}

// A node's name, or what it produces first.
static ft_span name_of(const ft_onnx_node *node) {
  for (uint32_t i = 0; node->name.size == 0 && i < node->output_count; i++)
    if (node->output[i].size) return node->output[i];
  return node->name;
}

static ft_status add_node(ft_importer *im, const ft_onnx_node *node, int64_t opset,
                          const char *reason, ft_error *error) {
  const char *op = copy(im, node->op);
  FT_OOM_IF(!op, error);
  return ft_import_add_unsupported(im, op, node->domain, opset, name_of(node), reason,
                                   error);
}

static void mark_unknown(const ft_importer *im, const ft_onnx_node *node) {
  for (uint32_t i = 0; i < node->output_count; i++)
    if (node->output[i].size) ft_import_find(im, node->output[i])->is_unknown = true;
}

// The line of operators.def for the node, or NULL after listing it as unsupported.
static ft_status find_operator(ft_importer *im, const ft_onnx_node *node, int64_t opset,
                               const ft_operator_info **out, ft_error *error) {
  int64_t first;
  *out = ft_operator_find(node->op, node->domain, opset, &first);
  if (*out) return FT_OK;
  const char *reason =
      first ? ft_arena_printf(im->arena, "known from opset %lld on", (long long)first)
            : "unknown operator";
  mark_unknown(im, node);
  return add_node(im, node, opset, reason, error);
}

static ft_status opset_of(const ft_importer *im, const ft_onnx_node *node, int64_t *out,
                          ft_error *error) {
  *out = ft_onnx_opset_of(&im->model, node->domain);
  if (*out == 0 && node->domain.size == 0)
    FT_FAIL(error, FT_REFUSED, "node '%.*s' (%.*s): the model imports no ai.onnx opset",
            FT_SPAN_SHOW(name_of(node)), FT_SPAN_SHOW(node->op));
  return FT_OK;
}

static ft_status list_node(ft_importer *im, const ft_onnx_node *node, ft_error *error) {
  int64_t opset;
  const ft_operator_info *info;
  FT_TRY(opset_of(im, node, &opset, error));
  FT_TRY(find_operator(im, node, opset, &info, error));
  for (uint32_t i = 0; i < node->attribute_count; i++) {
    if (node->attribute[i].type != FT_ONNX_GRAPH) continue;
    ft_importer scope;
    FT_TRY(ft_import_enter(im, &node->attribute[i], &scope, error));
    FT_TRY(ft_import_resolve(&scope, error));
    FT_TRY(ft_import_list_unsupported(&scope, error));
  }
  return FT_OK;
}

ft_status ft_import_list_unsupported(ft_importer *im, ft_error *error) {
  for (uint32_t i = 0; i < im->model.node_count; i++)
    if (im->node_is_live[im->order[i]])
      FT_TRY(list_node(im, &im->model.node[im->order[i]], error));
  return FT_OK;
}

// ---- values -----------------------------------------------------------------------

static ft_status load_weight(ft_importer *im, const ft_import_weight *weight,
                             ft_import_name *name, ft_error *error) {
  const char *text = copy(im, name->name);
  FT_OOM_IF(!text, error);
  return ft_graph_add_weight(im->graph, text, weight->dtype, &weight->shape, weight->seed,
                             &name->value, error);
}

ft_status ft_import_load(ft_importer *im, ft_import_name *name, ft_error *error) {
  if (name->source != FT_SOURCE_INITIALIZER || name->value != FT_NONE || name->is_unknown)
    return FT_OK;
  if (im->weight && im->weight[name->index].is_drawn)
    return load_weight(im, &im->weight[name->index], name, error);
  ft_tensor tensor;
  ft_error inner = {0};
  ft_status status =
      ft_onnx_load_tensor(im->model.initializer[name->index].message, im->model.file,
                          im->files, im->arena, &tensor, &inner);
  if (status == FT_UNSUPPORTED) {
    name->is_unknown = true;
    return ft_import_add_unsupported(im, "initializer", (ft_span){0}, 0, name->name,
                                     inner.text, error);
  }
  if (status != FT_OK) FT_FAIL(error, status, "%s", inner.text);
  const char *text = copy(im, name->name);
  FT_OOM_IF(!text, error);
  return ft_graph_add_constant(im->graph, text, &tensor, &name->value, error);
}

// The default of an input that is an initializer too; NULL when it has none or we cannot
// read it.
static ft_status find_fallback(ft_importer *im, ft_import_name *name,
                               const ft_tensor **out, ft_error *error) {
  *out = name->fallback_data;
  if (name->fallback == FT_NONE || name->fallback_data) return FT_OK;
  ft_tensor *tensor = FT_NEW(im->arena, ft_tensor);
  FT_OOM_IF(!tensor, error);
  ft_status status =
      ft_onnx_load_tensor(im->model.initializer[name->fallback].message, im->model.file,
                          im->files, im->arena, tensor, error);
  if (status == FT_OK) *out = name->fallback_data = tensor;
  return status == FT_UNSUPPORTED ? FT_OK : status;
}

typedef struct operands {
  uint32_t *value;
  const ft_tensor **fallback;
  bool are_known;
} operands;

static ft_status load_operand(ft_importer *im, ft_span span, uint32_t *value,
                              const ft_tensor **fallback, operands *out,
                              ft_error *error) {
  if (span.size == 0) return FT_OK;
  ft_import_name *name = ft_import_find(im, span);
  FT_TRY(ft_import_load(im, name, error));
  *value = name->value;
  if (name->is_unknown) out->are_known = false;
  return im->outer ? FT_OK : find_fallback(im, name, fallback, error);
}

static ft_status load_operands(ft_importer *im, const ft_onnx_node *node, operands *out,
                               ft_error *error) {
  const ft_import_captures *captures = &im->capture[node - im->model.node];
  *out = (operands){FT_NEW_ARRAY(im->arena, uint32_t, node->input_count),
                    FT_NEW_ARRAY(im->arena, const ft_tensor *, node->input_count), true};
  FT_OOM_IF(!out->value || !out->fallback, error);
  for (uint32_t i = 0; i < node->input_count; i++) {
    out->value[i] = FT_NONE;
    FT_TRY(
        load_operand(im, node->input[i], &out->value[i], &out->fallback[i], out, error));
  }
  for (size_t i = 0; i < captures->count; i++) {
    uint32_t value;
    const ft_tensor *fallback;
    FT_TRY(load_operand(im, captures->name[i], &value, &fallback, out, error));
  }
  return FT_OK;
}

// ---- nodes ------------------------------------------------------------------------

static ft_status begin(ft_importer *im, const ft_onnx_node *node, ft_error *error) {
  char *name = copy(im, name_of(node)), *op = copy(im, node->op);
  char *domain = copy(im, node->domain);
  FT_OOM_IF(!name || !op || !domain, error);
  return ft_graph_begin_operator(im->graph, name, op, domain, error);
}

// An operand that the handler did not ask for is none of the operator's.
static ft_status check_operands_read(ft_lowering *l) {
  for (uint32_t i = l->inputs_read; i < l->input_count; i++)
    if (l->input[i] != FT_NONE)
      return ft_lower_fail(l, FT_REFUSED, "has %u inputs, but takes %u (opset %lld)",
                           l->input_count, l->inputs_read, (long long)l->opset);
  return l->status;
}

static ft_status set_outputs(ft_importer *im, ft_lowering *l) {
  for (uint32_t i = 0; i < l->output_count && l->status == FT_OK; i++) {
    if (l->node->output[i].size == 0) continue;
    ft_import_name *name = ft_import_find(im, l->node->output[i]);
    if (l->output[i] == FT_NONE)
      return ft_lower_fail(l, FT_UNSUPPORTED, "output %u is used", i);
    const ft_value *value = &im->graph->value[l->output[i]];
    if (!ft_import_is_native(value->dtype) && value->role != FT_ROLE_CONSTANT)
      return ft_lower_fail(l, FT_UNSUPPORTED, "the result is %s",
                           ft_dtype_text(value->dtype));
    name->value = l->output[i];
    const char *text = copy(im, l->node->output[i]);
    if (!text) return ft_lower_fail(l, FT_OUT_OF_MEMORY, "out of memory in %s", __func__);
    l->status = ft_graph_name_value(im->graph, l->output[i], text, l->error);
  }
  return l->status;
}

// What a handler could not do is listed; what is wrong with the file ends the import.
static ft_status judge(ft_importer *im, const ft_lowering *l, ft_error *error) {
  if (l->is_listed) mark_unknown(im, l->node);
  if (l->status == FT_OK) return FT_OK;
  if (l->status == FT_UNSUPPORTED) {
    mark_unknown(im, l->node);
    return add_node(im, l->node, l->opset, l->error->text, error);
  }
  ft_status code = l->status == FT_INVALID_ARGUMENT ? FT_REFUSED : l->status;
  FT_FAIL(error, code, "node '%.*s' (%.*s): %s", FT_SPAN_SHOW(name_of(l->node)),
          FT_SPAN_SHOW(l->node->op), l->error->text);
}

static ft_status lower(ft_importer *im, const ft_operator_info *info, ft_lowering *l,
                       ft_error *error) {
  uint32_t *output = FT_NEW_ARRAY(im->arena, uint32_t, l->node->output_count);
  FT_OOM_IF(!output, error);
  for (uint32_t i = 0; i < l->node->output_count; i++) output[i] = FT_NONE;
  l->output = output;
  l->output_count = l->node->output_count;
  FT_TRY(begin(im, l->node, error));
  if (info->handler(l) == FT_OK && check_operands_read(l) == FT_OK && !l->is_listed)
    set_outputs(im, l);
  return judge(im, l, error);
}

static ft_status import_node(ft_importer *im, const ft_onnx_node *node, ft_error *error) {
  int64_t opset;
  const ft_operator_info *info;
  operands given;
  FT_TRY(opset_of(im, node, &opset, error));
  FT_TRY(find_operator(im, node, opset, &info, error));
  FT_TRY(load_operands(im, node, &given, error));
  if (!info) return FT_OK;
  if (!given.are_known) {
    mark_unknown(im, node);
    return FT_OK;
  }
  ft_error inner = {0};
  ft_lowering l = {.graph = im->graph,
                   .node = node,
                   .file = im->model.file,
                   .files = im->files,
                   .opset = opset,
                   .primitive = info->primitive,
                   .input_count = node->input_count,
                   .input = given.value,
                   .fallback = given.fallback,
                   .importer = im,
                   .generated_bytes = &im->shared->generated_bytes,
                   .error = &inner};
  return lower(im, info, &l, error);
}

ft_status ft_import_nodes(ft_importer *im, ft_error *error) {
  for (uint32_t i = 0; i < im->model.node_count; i++)
    if (im->node_is_live[im->order[i]])
      FT_TRY(import_node(im, &im->model.node[im->order[i]], error));
  return FT_OK;
}
