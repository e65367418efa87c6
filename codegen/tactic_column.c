// S2 and S3 across the vectors: each lane reduces a row of its own. For reductions over
// outer or short axes.
#include "codegen/nest_tactic.h"

enum { SHORT_ROW = 32 };

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  *reason = ir->refusal         ? ir->refusal
            : !ir->reduced      ? "column needs a reduction"
            : !ft_nest_kept(ir) ? "column needs an axis that stays"
                                : ft_nest_refusal(ir, arena);
  if (*reason) return -1;
  uint32_t best = ft_nest_best_axis(ir, ft_nest_all(ir));
  if (ft_nest_kept(ir) >> best & 1) return 2;
  if (ir->extent[best] < SHORT_ROW) return 0;
  *reason = "column is for short or strided reductions";
  return -1;
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  ft_nest_space(ir, ft_nest_kept(ir), target, out);
}

static const char *check(const ft_group_ir *ir, const ft_target *target,
                         const ft_schedule *schedule, ft_arena *arena) {
  return ft_nest_check(ir, ft_nest_kept(ir), target, schedule, arena);
}

static ft_status build(const ft_group_ir *ir, const ft_schedule *schedule,
                       ft_arena *arena, ft_kernel *out, ft_error *error) {
  return ft_nest_kernel(ir, ft_nest_kept(ir), schedule, arena, out, error);
}

const ft_tactic ft_tactic_column = {
    .name = "column", .match = match, .space = space, .check = check, .build = build};
