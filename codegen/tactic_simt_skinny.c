// A matrix product with few rows or columns on a GPU: as fast as the weights are read.
#include "codegen/simt_tactic.h"

static const ft_simt_skinny_choice choices[] = {
    {256, 32, 2, false},  {128, 32, 2, false}, {256, 64, 2, false}, {256, 16, 2, false},
    {256, 32, 4, false},  {128, 16, 4, false}, {128, 64, 1, false}, {256, 128, 1, false},
    {128, 128, 1, false}, {256, 8, 4, false},  {128, 8, 2, false},  {64, 32, 1, false},
    {32, 32, 1, false},   {128, 1, 1, false}};
enum { CHOICES = sizeof choices / sizeof *choices };

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  *reason = ft_simt_refusal(ir->workload, arena);
  for (int i = 0; i < CHOICES && !*reason; i++) {
    *reason = ft_simt_skinny_refusal(ir->workload, &choices[i], arena);
    if (!*reason) return 3;
    if (i + 1 < CHOICES) *reason = NULL;
  }
  return -1;
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  (void)target;
  for (int streams = 1; streams >= 0; streams--)
    for (int i = 0; i < CHOICES; i++) {
      ft_simt_any_choice choice = {FT_SIMT_SKINNY, .skinny = choices[i]};
      choice.skinny.streams = streams;
      ft_simt_offer(ir, &choice, out);
    }
}

FT_SIMT_TACTIC(simt_skinny, FT_SIMT_SKINNY);
