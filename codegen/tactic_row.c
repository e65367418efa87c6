// S2 and S3: reductions along the vectors, any number of dependent ones over one row
// (softmax, norms), with a prologue, an epilogue per row, and results over the row.
#include "codegen/nest_tactic.h"

static bool is_contiguous(const ft_group_ir *ir, uint32_t axis) {
  for (uint32_t i = 0; i < ir->node_count; i++) {
    const ft_node *n = &ir->node[i];
    if (n->kind == FT_NODE_LOAD && n->access.stride[axis] == 1) return true;
  }
  return false;
}

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  *reason =
      ir->reduced || ir->refusal ? ft_nest_refusal(ir, arena) : "row needs a reduction";
  if (*reason) return -1;
  // Sure when the axis most bytes lie along is a reduced one.
  if (ir->reduced >> ft_nest_best_axis(ir, ft_nest_all(ir)) & 1) return 2;
  if (is_contiguous(ir, ft_nest_best_axis(ir, ir->reduced))) return 0;
  *reason = "row needs a contiguous reduced axis";
  return -1;
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  ft_nest_space(ir, ir->reduced, target, out);
}

static const char *check(const ft_group_ir *ir, const ft_target *target,
                         const ft_schedule *schedule, ft_arena *arena) {
  return ft_nest_check(ir, ir->reduced, target, schedule, arena);
}

static ft_status build(const ft_group_ir *ir, const ft_schedule *schedule,
                       ft_arena *arena, ft_kernel *out, ft_error *error) {
  return ft_nest_kernel(ir, ir->reduced, schedule, arena, out, error);
}

const ft_tactic ft_tactic_row = {
    .name = "row", .match = match, .space = space, .check = check, .build = build};
