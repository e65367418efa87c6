// The dtype and shape rules of the primitives (primitives.def says them in words).
#include <string.h>

#include "graph/builder.h"

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
      [FT_OP_ROUND] = RULE_FLOAT,
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

static ft_status infer_elementwise(const ft_graph *graph, ft_op op, const uint32_t *input,
                                   uint32_t count, ft_shape *out, ft_error *error) {
  *out = graph->value[input[0]].shape;
  for (uint32_t i = 1; i < count; i++) {
    ft_error inner;
    if (ft_shape_broadcast(out, &graph->value[input[i]].shape, out, &inner) != FT_OK)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "%s: %s does not broadcast with %s",
              ft_op_describe(op)->name, ft_value_text(graph, input[i]),
              ft_value_text(graph, input[0]));
  }
  return FT_OK;
}

static ft_status infer_broadcast(const ft_graph *graph, uint32_t input, ft_attr *attr,
                                 ft_shape *out, ft_error *error) {
  bool fits = attr->shape.rank <= FT_MAX_RANK;
  for (int i = 0; fits && i < attr->shape.rank; i++) fits = attr->shape.dim[i] >= 0;
  if (!fits)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "broadcast of %s to an invalid shape",
            ft_value_text(graph, input));
  for (int i = attr->shape.rank; i < FT_MAX_RANK; i++) attr->shape.dim[i] = 0;
  if (ft_shape_broadcast(&graph->value[input].shape, &attr->shape, out, NULL) != FT_OK ||
      !ft_shape_equal(out, &attr->shape))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%s does not broadcast to %s",
            ft_value_text(graph, input), ft_shape_text(&attr->shape, graph->arena));
  return FT_OK;
}

static ft_status infer_transpose(const ft_graph *graph, uint32_t input, ft_attr *attr,
                                 ft_shape *out, ft_error *error) {
  const ft_shape *in = &graph->value[input].shape;
  unsigned seen = 0;
  *out = (ft_shape){.rank = in->rank};
  for (int i = 0; i < in->rank; i++) {
    if (attr->perm[i] >= in->rank || seen >> attr->perm[i] & 1)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "transpose of %s: perm[%d] = %u",
              ft_value_text(graph, input), i, attr->perm[i]);
    seen |= 1u << attr->perm[i];
    out->dim[i] = in->dim[attr->perm[i]];
  }
  memset(attr->perm + in->rank, 0, (size_t)(FT_MAX_RANK - in->rank));
  return FT_OK;
}

static ft_status infer_reduce(const ft_graph *graph, ft_op op, uint32_t input,
                              ft_attr *attr, ft_shape *out, ft_error *error) {
  *out = graph->value[input].shape;
  if (attr->axes >> out->rank)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%s of %s over axes 0x%x",
            ft_op_describe(op)->name, ft_value_text(graph, input), attr->axes);
  for (int i = 0; i < out->rank; i++) {
    if (!(attr->axes >> i & 1)) continue;
    if (out->dim[i] == 1) attr->axes &= ~(1u << i);
    out->dim[i] = 1;
  }
  return FT_OK;
}

static ft_attr used_members(ft_op op, const ft_attr *attr) {
  ft_attr used = {0};
  if (!attr) return used;
  if (op == FT_OP_CAST) used.to = attr->to;
  if (op == FT_OP_BROADCAST) used.shape = attr->shape;
  if (op == FT_OP_TRANSPOSE) memcpy(used.perm, attr->perm, sizeof used.perm);
  if (ft_op_describe(op)->class == FT_CLASS_R) used.axes = attr->axes;
  return used;
}

ft_status ft_primitive_infer(const ft_graph *graph, ft_op op, const uint32_t *input,
                             uint32_t count, const ft_attr *attr, ft_attr *out_attr,
                             ft_dtype *out_dtype, ft_shape *out_shape, ft_error *error) {
  const ft_op_info *info = ft_op_describe(op);
  if (count != info->arity)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%s takes %u inputs, not %u", info->name,
            info->arity, count);
  for (uint32_t i = 0; i < count; i++) FT_TRY(ft_graph_require(graph, input[i], error));
  *out_attr = used_members(op, attr);
  FT_TRY(infer_dtype(graph, op, input, count, out_attr, out_dtype, error));
  if (info->class == FT_CLASS_E)
    return infer_elementwise(graph, op, input, count, out_shape, error);
  if (info->class == FT_CLASS_R)
    return infer_reduce(graph, op, input[0], out_attr, out_shape, error);
  return op == FT_OP_BROADCAST
             ? infer_broadcast(graph, input[0], out_attr, out_shape, error)
             : infer_transpose(graph, input[0], out_attr, out_shape, error);
}
