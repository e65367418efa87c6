// simt_tactic - what the tactics for GPUs share: a schedule holds the knobs of a skeleton
// by name (codegen/simt_choice.h has the names), so one check and one build serve all.
//
// To add a tactic for a skeleton that simt_choice.h knows: tactic_simt_NAME.c with a
// match, a space that offers choices, FT_SIMT_TACTIC; and a line in tactics.def.
#ifndef FT_CODEGEN_SIMT_TACTIC_H
#define FT_CODEGEN_SIMT_TACTIC_H

#include "codegen/simt_choice.h"
#include "codegen/tactic.h"

enum { FT_SIMT_SPACE = 64 };  // most schedules that one tactic offers for a group

// Adds |choice| to the space, unless it is refused, there already, or the space is full.
void ft_simt_offer(const ft_group_ir *ir, const ft_simt_any_choice *choice,
                   ft_schedules *out);
// NULL, or why |schedule| is no choice of |skeleton| that can work.
const char *ft_simt_check(ft_simt_skeleton skeleton, const ft_group_ir *ir,
                          const ft_schedule *schedule, ft_arena *arena);
// |schedule| passed the check.
FT_MUST_CHECK ft_status ft_simt_kernel(ft_simt_skeleton skeleton, const ft_group_ir *ir,
                                       const ft_schedule *schedule, ft_arena *arena,
                                       ft_kernel *out, ft_error *error);

// NULL, or why no GPU kernel can take the group: a dtype without device functions.
const char *ft_simt_refusal(const ft_workload *workload, ft_arena *arena);
// Elements of the largest output.
int64_t ft_simt_elements(const ft_workload *workload);

// Defines ft_tactic_NAME over |skeleton|; |match| and |space| are the file's own.
#define FT_SIMT_TACTIC(tactic, skeleton)                                     \
  static const char *check(const ft_group_ir *ir, const ft_target *target,   \
                           const ft_schedule *schedule, ft_arena *arena) {   \
    (void)target;                                                            \
    return ft_simt_check(skeleton, ir, schedule, arena);                     \
  }                                                                          \
  static ft_status build(const ft_group_ir *ir, const ft_schedule *schedule, \
                         ft_arena *arena, ft_kernel *out, ft_error *error) { \
    return ft_simt_kernel(skeleton, ir, schedule, arena, out, error);        \
  }                                                                          \
  const ft_tactic ft_tactic_##tactic = {.name = #tactic,                     \
                                        .is_gpu = true,                      \
                                        .match = match,                      \
                                        .space = space,                      \
                                        .check = check,                      \
                                        .build = build}

#endif
