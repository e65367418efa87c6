// The dtype and shape rules of the primitives (primitives.def says them in words).
#include <string.h>

#include "graph/attr.h"
#include "graph/infer.h"

// ---- dtypes ---------------------------------------------------------------------

typedef enum dtype_rule {
  RULE_NUMERIC,  // one number type in and out: what an unlisted op follows
  RULE_FLOAT,    // one float type in and out
  RULE_ANY,      // one type in and out, bool too
  RULE_LOGIC,    // bool in and out
  RULE_COMPARE,  // one number type in, bool out
  RULE_EQUAL,    // one type in, bool too, bool out
  RULE_CAST,
  RULE_WHERE,
  RULE_GATHER,  // any type in and out, at i32 or i64
} dtype_rule;

static dtype_rule rule_of(ft_op op) {
  static const uint8_t rules[FT_OP_COUNT] = {
      [FT_OP_COPY] = RULE_ANY,           [FT_OP_BROADCAST] = RULE_ANY,
      [FT_OP_TRANSPOSE] = RULE_ANY,      [FT_OP_CAST] = RULE_CAST,
      [FT_OP_WHERE] = RULE_WHERE,        [FT_OP_NOT] = RULE_LOGIC,
      [FT_OP_AND] = RULE_LOGIC,          [FT_OP_OR] = RULE_LOGIC,
      [FT_OP_EQUAL] = RULE_EQUAL,        [FT_OP_LESS] = RULE_COMPARE,
      [FT_OP_LESS_EQUAL] = RULE_COMPARE, [FT_OP_SQRT] = RULE_FLOAT,
      [FT_OP_RECIPROCAL] = RULE_FLOAT,   [FT_OP_EXP] = RULE_FLOAT,
      [FT_OP_LOG] = RULE_FLOAT,          [FT_OP_ERF] = RULE_FLOAT,
      [FT_OP_TANH] = RULE_FLOAT,         [FT_OP_SIGMOID] = RULE_FLOAT,
      [FT_OP_SIN] = RULE_FLOAT,          [FT_OP_COS] = RULE_FLOAT,
      [FT_OP_FLOOR] = RULE_FLOAT,        [FT_OP_CEIL] = RULE_FLOAT,
      [FT_OP_ROUND] = RULE_FLOAT,        [FT_OP_SLICE] = RULE_ANY,
      [FT_OP_CONCAT] = RULE_ANY,         [FT_OP_PAD] = RULE_ANY,
      [FT_OP_GATHER] = RULE_GATHER,      [FT_OP_GATHER_ELEMENTS] = RULE_GATHER,
  };
  return (dtype_rule)rules[op];
}

static bool accepts(dtype_rule rule, ft_dtype dtype) {
  switch (rule) {
    case RULE_NUMERIC:
    case RULE_COMPARE:
      return dtype != FT_BOOL;
    case RULE_FLOAT:
      return ft_dtype_is_float(dtype);
    case RULE_LOGIC:
      return dtype == FT_BOOL;
    default:
      return true;
  }
}

static ft_status check_index(const ft_graph *graph, ft_op op, const uint32_t *input,
                             ft_dtype *out, ft_error *error) {
  ft_dtype index = graph->value[input[1]].dtype;
  if (index != FT_I32 && index != FT_I64)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%s of %s at %s: indices are i32 or i64",
            ft_op_describe(op)->name, ft_value_text(graph, input[0]),
            ft_value_text(graph, input[1]));
  *out = graph->value[input[0]].dtype;
  return FT_OK;
}

static ft_status infer_dtype(const ft_graph *graph, ft_op op, const uint32_t *input,
                             uint32_t count, const ft_attr *attr, ft_dtype *out,
                             ft_error *error) {
  dtype_rule rule = rule_of(op);
  const char *name = ft_op_describe(op)->name;
  uint32_t first = rule == RULE_WHERE;  // the condition has a type of its own
  ft_dtype type = graph->value[input[first]].dtype;
  if (first && graph->value[input[0]].dtype != FT_BOOL)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%s needs a bool condition, not %s", name,
            ft_value_text(graph, input[0]));
  if (rule == RULE_GATHER) return check_index(graph, op, input, out, error);
  for (uint32_t i = first; i < count; i++) {
    if (!accepts(rule, graph->value[input[i]].dtype))
      FT_FAIL(error, FT_INVALID_ARGUMENT, "%s does not take %s", name,
              ft_value_text(graph, input[i]));
    if (graph->value[input[i]].dtype != type)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "%s needs one dtype, not %s and %s", name,
              ft_value_text(graph, input[first]), ft_value_text(graph, input[i]));
  }
  if (rule == RULE_CAST && (unsigned)attr->to >= FT_DTYPE_COUNT)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "cast of %s to no dtype",
            ft_value_text(graph, input[0]));
  *out = rule == RULE_CAST                            ? attr->to
         : rule == RULE_COMPARE || rule == RULE_EQUAL ? FT_BOOL
                                                      : type;
  return FT_OK;
}

// ---- shapes ---------------------------------------------------------------------

static ft_status infer_elementwise(const ft_inference *in, ft_error *error) {
  const ft_graph *graph = in->graph;
  *in->out = graph->value[in->input[0]].shape;
  for (uint32_t i = 1; i < in->count; i++) {
    ft_error inner;
    if (ft_shape_broadcast(in->out, &graph->value[in->input[i]].shape, in->out, &inner) !=
        FT_OK)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "%s: %s does not broadcast with %s",
              ft_op_describe(in->op)->name, ft_value_text(graph, in->input[i]),
              ft_value_text(graph, in->input[0]));
  }
  return FT_OK;
}

static ft_status infer_broadcast(const ft_inference *in, ft_error *error) {
  const ft_graph *graph = in->graph;
  ft_shape *to = &in->attr->shape;
  if (!ft_infer_is_shape(to))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "broadcast of %s to an invalid shape",
            ft_value_text(graph, in->input[0]));
  for (int i = to->rank; i < FT_MAX_RANK; i++) to->dim[i] = 0;
  if (ft_shape_broadcast(&graph->value[in->input[0]].shape, to, in->out, NULL) != FT_OK ||
      !ft_shape_equal(in->out, to))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%s does not broadcast to %s",
            ft_value_text(graph, in->input[0]), ft_shape_text(to, graph->arena));
  return FT_OK;
}

static ft_status infer_transpose(const ft_inference *in, ft_error *error) {
  const ft_shape *from = &in->graph->value[in->input[0]].shape;
  uint8_t *perm = in->attr->perm;
  unsigned seen = 0;
  *in->out = (ft_shape){.rank = from->rank};
  for (int i = 0; i < from->rank; i++) {
    if (perm[i] >= from->rank || seen >> perm[i] & 1)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "transpose of %s: perm[%d] = %u",
              ft_value_text(in->graph, in->input[0]), i, perm[i]);
    seen |= 1u << perm[i];
    in->out->dim[i] = from->dim[perm[i]];
  }
  memset(perm + from->rank, 0, (size_t)(FT_MAX_RANK - from->rank));
  return FT_OK;
}

static ft_status infer_reduce(const ft_inference *in, ft_error *error) {
  ft_shape *out = in->out;
  *out = in->graph->value[in->input[0]].shape;
  if (in->attr->axes >> out->rank)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%s of %s over axes 0x%x",
            ft_op_describe(in->op)->name, ft_value_text(in->graph, in->input[0]),
            in->attr->axes);
  for (int i = 0; i < out->rank; i++) {
    if (!(in->attr->axes >> i & 1)) continue;
    if (out->dim[i] == 1) in->attr->axes &= ~(1u << i);
    out->dim[i] = 1;
  }
  return FT_OK;
}

static ft_infer_shape *rule_for(ft_op op) {
  static ft_infer_shape *const rules[FT_OP_COUNT] = {
      [FT_OP_BROADCAST] = infer_broadcast,
      [FT_OP_TRANSPOSE] = infer_transpose,
      [FT_OP_SLICE] = ft_infer_slice,
      [FT_OP_CONCAT] = ft_infer_concat,
      [FT_OP_PAD] = ft_infer_pad,
      [FT_OP_GATHER] = ft_infer_gather,
      [FT_OP_GATHER_ELEMENTS] = ft_infer_gather_elements,
      [FT_OP_WINDOW_MAX] = ft_infer_window,
      [FT_OP_WINDOW_SUM] = ft_infer_window,
      [FT_OP_MATMUL] = ft_infer_matmul,
      [FT_OP_CONV] = ft_infer_conv,
  };
  ft_op_class class = ft_op_describe(op)->class;
  if (class == FT_CLASS_E) return infer_elementwise;
  return class == FT_CLASS_R ? infer_reduce : rules[op];
}

ft_status ft_primitive_infer(const ft_graph *graph, ft_op op, const uint32_t *input,
                             uint32_t count, const ft_attr *attr, ft_attr *out_attr,
                             ft_dtype *out_dtype, ft_shape *out_shape, ft_error *error) {
  const ft_op_info *info = ft_op_describe(op);
  if (info->arity ? count != info->arity : count == 0)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%s takes %u inputs, not %u", info->name,
            info->arity ? info->arity : 1, count);
  for (uint32_t i = 0; i < count; i++) FT_TRY(ft_graph_require(graph, input[i], error));
  *out_attr = ft_attr_used(op, attr);
  FT_TRY(infer_dtype(graph, op, input, count, out_attr, out_dtype, error));
  ft_inference in = {graph, op, input, count, out_attr, out_shape};
  return rule_for(op)(&in, error);
}
