// A convolution through shared memory on a GPU, with what surrounds it.
//
// The space: large tiles first where they still give a block for each multiprocessor; one
// is enough, as for products (tactic_simt_gemm.c). Last, tiles held to |CAP| registers.
#include "codegen/simt_tactic.h"

enum { ENOUGH_BLOCKS = 96, CAP = 96 };

static const ft_simt_conv_choice tiles[] = {
    {64, 64, 16, 8, 8, 4}, {64, 64, 8, 4, 4, 4},  {32, 64, 16, 4, 4, 4},
    {64, 32, 16, 4, 4, 4}, {32, 32, 16, 4, 4, 4}, {16, 64, 16, 2, 4, 4},
    {64, 64, 16, 4, 4, 1}, {32, 64, 16, 4, 4, 1}, {32, 32, 16, 4, 4, 1},
    {32, 32, 16, 2, 2, 2}, {16, 32, 16, 2, 2, 1}, {16, 16, 8, 1, 2, 1},
    {8, 64, 8, 2, 2, 1},   {8, 16, 4, 2, 2, 1},   {1, 64, 8, 1, 1, 1}};
enum { TILES = sizeof tiles / sizeof *tiles };

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  *reason = ft_simt_refusal(ir->workload, arena);
  if (*reason) return -1;
  for (int i = 0; i < TILES; i++) {
    *reason = ft_simt_conv_refusal(ir->workload, &tiles[i], arena);
    if (!*reason) return 2;
  }
  return -1;
}

static void offer(const ft_group_ir *ir, int tile, uint32_t min_blocks,
                  ft_schedules *out) {
  ft_simt_any_choice choice = {FT_SIMT_CONV, .conv = tiles[tile],
                               .min_blocks = min_blocks};
  ft_simt_offer(ir, &choice, out);
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  int64_t elements = ft_simt_elements(ir->workload);
  (void)target;
  for (int i = 0; i < TILES; i++) {
    int64_t tile = (int64_t)tiles[i].tile_channels * tiles[i].tile_positions;
    if (elements / tile >= ENOUGH_BLOCKS) offer(ir, i, 1, out);
  }
  for (int i = 0; i < TILES; i++) offer(ir, i, 1, out);
  for (int i = 0; i < TILES; i++)
    offer(ir, i, ft_simt_min_blocks(ft_simt_conv_threads(&tiles[i]), CAP), out);
}

FT_SIMT_TACTIC(simt_conv, FT_SIMT_CONV);
