// S1: elementwise work and index remaps, any number of outputs on one domain.
#include "codegen/nest_tactic.h"

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  *reason = ir->reduced ? "pointwise takes no reductions" : ft_nest_refusal(ir, arena);
  return *reason ? -1 : 1;
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  ft_nest_space(ir, ft_nest_all(ir), target, out);
}

static const char *check(const ft_group_ir *ir, const ft_target *target,
                         const ft_schedule *schedule, ft_arena *arena) {
  return ft_nest_check(ir, ft_nest_all(ir), target, schedule, arena);
}

static ft_status build(const ft_group_ir *ir, const ft_schedule *schedule,
                       ft_arena *arena, ft_kernel *out, ft_error *error) {
  return ft_nest_kernel(ir, ft_nest_all(ir), schedule, arena, out, error);
}

const ft_tactic ft_tactic_pointwise = {
    .name = "pointwise", .match = match, .space = space, .check = check, .build = build};
