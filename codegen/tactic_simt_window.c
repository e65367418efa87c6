// Pools and depthwise convolutions through shared memory on a GPU.
#include "codegen/simt_tactic.h"

static const ft_simt_window_choice tiles[] = {
    {128, 8, 32, 1}, {256, 16, 32, 1}, {128, 8, 16, 2}, {128, 4, 32, 2}, {64, 8, 8, 2},
    {64, 1, 64, 2},  {32, 4, 8, 4},    {64, 1, 1, 32},  {128, 1, 1, 64}, {32, 1, 16, 2}};
enum { TILES = sizeof tiles / sizeof *tiles };

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  *reason = ft_simt_refusal(ir->workload, arena);
  if (*reason) return -1;
  for (int i = 0; i < TILES; i++) {
    *reason = ft_simt_window_refusal(ir->workload, &tiles[i], arena);
    if (!*reason) return 3;
  }
  return -1;
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  (void)target;
  for (int i = 0; i < TILES; i++) {
    ft_simt_any_choice choice = {FT_SIMT_WINDOW, .window = tiles[i]};
    ft_simt_offer(ir, &choice, out);
  }
}

FT_SIMT_TACTIC(simt_window, FT_SIMT_WINDOW);
