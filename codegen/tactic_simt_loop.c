// Index remaps, windows and contractions on a GPU, with elementwise work around them: a
// thread per element, or per few that share an operand. Every group that has loops has
// this kernel.
#include "codegen/loop.h"
#include "codegen/nest.h"
#include "codegen/simt_tactic.h"

// Work that no nest has: what the nest refuses for other reasons would be computed again
// and again here. A single primitive must always be a kernel.
static bool is_for_loops(const ft_group *group) {
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &group->graph->primitive[group->primitive[i]];
    ft_op_class class = ft_op_describe(p->op)->class;
    bool has_axes = class == FT_CLASS_E || class == FT_CLASS_R ||
                    p->op == FT_OP_BROADCAST || p->op == FT_OP_TRANSPOSE;
    if (!has_axes) return true;
  }
  return group->primitive_count == 1;
}

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  const char *refusal = ft_nest_refusal(ir, arena);
  *reason = ft_simt_refusal(ir->workload, arena);
  if (!*reason)
    *reason = !refusal                             ? "the group is a nest of loops"
              : is_for_loops(&ir->workload->group) ? ft_loop_refusal(ir->workload, arena)
                                                   : refusal;
  return *reason ? -1 : 1;
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  static const ft_simt_loop_choice choices[] = {{128, 4}, {128, 1}, {256, 4}, {64, 4},
                                                {256, 1}, {128, 8}, {64, 8},  {64, 1},
                                                {128, 2}, {32, 4},  {256, 2}, {512, 1}};
  (void)target;
  for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
    ft_simt_any_choice choice = {FT_SIMT_LOOP, .loop = choices[i]};
    ft_simt_offer(ir, &choice, out);
  }
}

FT_SIMT_TACTIC(simt_loop, FT_SIMT_LOOP);
