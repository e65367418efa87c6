// S5 on a GPU: a matrix product through shared memory, with what surrounds it.
//
// The space: the largest tiles that still give about a block for each multiprocessor of a
// large chip come first: they read least. Tiles in registers pay with occupancy, so one
// block a multiprocessor is enough; not told so, ptxas (CUDA 13.0) holds some of them to
// fewer registers for sm_100, and spills. Last, tiles held to |CAP| registers.

#include "codegen/simt_tactic.h"

enum { ENOUGH_BLOCKS = 96, CAP = 96 };

static const ft_simt_gemm_choice tiles[] = {
    {128, 128, 8, 8, 8, .stages = 2}, {128, 64, 8, 8, 4, .stages = 2},
    {64, 128, 8, 4, 8, .stages = 2},  {64, 64, 16, 4, 4, .stages = 2},
    {64, 32, 16, 4, 4, .stages = 2},  {32, 64, 16, 4, 4, .stages = 2},
    {32, 32, 16, 4, 4, .stages = 2},  {32, 32, 16, 2, 2, .stages = 1},
    {16, 64, 16, 2, 4, .stages = 2},  {64, 16, 16, 4, 2, .stages = 2},
    {16, 32, 32, 1, 4, .stages = 2},  {16, 16, 16, 1, 2, .stages = 1},
    {8, 64, 16, 1, 4, .stages = 1},   {8, 32, 32, 1, 2, .stages = 1},
};
enum { TILES = sizeof tiles / sizeof *tiles, USUAL = 3 };

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  *reason = ft_simt_refusal(ir->workload, arena);
  if (!*reason) *reason = ft_simt_gemm_refusal(ir->workload, &tiles[USUAL], arena);
  return *reason ? -1 : 2;
}

// Blocks of an output of |elements|, about.
static int64_t blocks_of(const ft_simt_gemm_choice *c, int64_t elements) {
  return elements / ((int64_t)c->block_m * c->block_n);
}

// Blocks that share the terms of a tile, so that there are enough of them.
static uint32_t splits_for(const ft_simt_gemm_choice *c, int64_t elements) {
  int64_t blocks = blocks_of(c, elements) + 1, splits = 1;
  while (blocks * splits < ENOUGH_BLOCKS && splits < 16) splits *= 2;
  return (uint32_t)splits;
}

static void offer_blocks(const ft_group_ir *ir, const ft_simt_gemm_choice *tile,
                         uint32_t splits, bool copies, uint32_t min_blocks,
                         ft_schedules *out) {
  ft_simt_any_choice choice = {FT_SIMT_GEMM, .gemm = *tile};
  choice.gemm.splits = splits;
  choice.min_blocks = min_blocks;
  choice.gemm.copies = copies;
  if (copies) choice.gemm.stages = 3;
  ft_simt_offer(ir, &choice, out);
}

static void offer(const ft_group_ir *ir, const ft_simt_gemm_choice *tile, uint32_t splits,
                  bool copies, ft_schedules *out) {
  offer_blocks(ir, tile, splits, copies, 1, out);
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  int64_t elements = ft_simt_elements(ir->workload);
  (void)target;
  for (int i = 0; i < TILES; i++)
    if (blocks_of(&tiles[i], elements) >= ENOUGH_BLOCKS)
      offer(ir, &tiles[i], 1, false, out);
  for (int i = 0; i < TILES; i++) {
    uint32_t splits = splits_for(&tiles[i], elements);
    offer(ir, &tiles[i], splits, false, out);
    offer(ir, &tiles[i], splits, true, out);
  }
  for (int i = 0; i < TILES; i++) offer(ir, &tiles[i], 1, false, out);
  for (int i = 0; i < TILES; i++) {
    uint32_t min_blocks = ft_simt_min_blocks(ft_simt_gemm_threads(&tiles[i]), CAP);
    offer_blocks(ir, &tiles[i], splits_for(&tiles[i], elements), true, min_blocks, out);
  }
}

FT_SIMT_TACTIC(simt_gemm, FT_SIMT_GEMM);
