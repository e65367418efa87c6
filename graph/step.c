#include "graph/step.h"

ft_status ft_step_of(const ft_graph *graph, const ft_primitive *primitive,
                     ft_arena *arena, ft_step *out, ft_error *error) {
  const ft_value *result = &graph->value[primitive->output];
  ft_operand *operand = FT_NEW_ARRAY(arena, ft_operand, primitive->input_count);
  FT_OOM_IF(!operand, error);
  for (uint32_t i = 0; i < primitive->input_count; i++) {
    const ft_value *v = &graph->value[primitive->input[i]];
    operand[i] = (ft_operand){v->dtype, v->shape};
  }
  *out = (ft_step){.op = primitive->op,
                   .name = result->name,
                   .attr = &primitive->attr,
                   .count = primitive->input_count,
                   .operand = operand,
                   .dtype = result->dtype,
                   .shape = result->shape};
  return FT_OK;
}

ft_step_kind ft_step_kind_of(ft_op op) {
  switch (op) {
    case FT_OP_PAD:
    case FT_OP_CONCAT:
      return FT_STEP_SELECT;
    case FT_OP_GATHER:
    case FT_OP_GATHER_ELEMENTS:
      return FT_STEP_GATHER;
    default:
      break;
  }
  ft_op_class class = ft_op_describe(op)->class;
  return class == FT_CLASS_E || class == FT_CLASS_I ? FT_STEP_POINTWISE : FT_STEP_ROWS;
}

ft_dtype ft_step_operand_dtype(const ft_step *step) {
  return step->operand[step->count - 1].dtype;
}

ft_remap ft_step_remap(const ft_step *step, uint32_t i) {
  const ft_shape *from = &step->operand[i].shape;
  if (step->op == FT_OP_TRANSPOSE) return ft_remap_transpose(from, step->attr->perm);
  if (step->op == FT_OP_SLICE)
    return ft_remap_slice(from, &step->shape, step->attr->start, step->attr->step);
  return ft_remap_broadcast(from, &step->shape);
}
