// If: the branch that is taken becomes part of the graph, its names in a scope of their
// own. The other branch is never lowered.
#include "graph/importer.h"

static const ft_onnx_attribute *branch_of(ft_lowering *l, const char *name) {
  const ft_onnx_attribute *attribute = ft_onnx_find_attribute(l->node, name);
  if (attribute && attribute->type == FT_ONNX_GRAPH) return attribute;
  ft_lower_fail(l, FT_REFUSED, "attribute '%s' is not a graph", name);
  return NULL;
}

static ft_status resolve(ft_importer *im, const ft_onnx_attribute *branch,
                         ft_importer *out, ft_error *error) {
  FT_TRY(ft_import_enter(im, branch, out, error));
  if (out->model.input_count)
    FT_FAIL(error, FT_REFUSED, "a branch has %u inputs", out->model.input_count);
  if (out->model.sparse_count)
    FT_FAIL(error, FT_UNSUPPORTED, "a branch has sparse initializers");
  return ft_import_resolve(out, error);
}

// What both branches lack, so that the list is complete.
static ft_status list_both(ft_lowering *l, const ft_onnx_attribute *const *branches) {
  for (int i = 0; i < 2 && l->status == FT_OK; i++) {
    ft_importer scope;
    l->status = resolve(l->importer, branches[i], &scope, l->error);
    if (l->status == FT_OK) l->status = ft_import_list_unsupported(&scope, l->error);
  }
  return ft_lower_fail(l, FT_UNSUPPORTED, "the condition is not a constant");
}

// The lowering fails for what is wrong; what is unsupported is on the list already.
static ft_status take(ft_lowering *l, const ft_onnx_attribute *branch) {
  ft_importer scope;
  l->status = resolve(l->importer, branch, &scope, l->error);
  if (l->status == FT_OK) l->status = ft_import_nodes(&scope, l->error);
  if (l->status != FT_OK) return l->status;
  if (scope.model.output_count != l->output_count)
    return ft_lower_fail(l, FT_REFUSED, "the branch has %u outputs, the node %u",
                         scope.model.output_count, l->output_count);
  for (uint32_t i = 0; i < l->output_count && l->status == FT_OK; i++) {
    ft_import_name *name = ft_import_find(&scope, scope.model.output[i].name);
    l->status = ft_import_load(&scope, name, l->error);
    if (name->is_unknown) l->is_listed = true;
    ft_lower_set(l, i, name->value);
  }
  return l->status;
}

ft_status ft_lower_if(ft_lowering *l) {
  const ft_onnx_attribute *branches[] = {branch_of(l, "else_branch"),
                                         branch_of(l, "then_branch")};
  uint32_t condition = ft_lower_input(l, 0);
  if (l->status != FT_OK) return l->status;
  if (ft_lower_dtype(l, condition) != FT_BOOL)
    return ft_lower_fail(l, FT_REFUSED, "the condition is %s",
                         ft_dtype_text(ft_lower_dtype(l, condition)));
  const ft_tensor *known = ft_lower_known(l, 0);
  if (!known) return list_both(l, branches);
  if (ft_shape_elements(&known->shape) != 1)
    return ft_lower_fail(l, FT_REFUSED, "the condition is not one bool");
  return take(l, branches[ft_tensor_get_i64(known, 0) != 0]);
}
