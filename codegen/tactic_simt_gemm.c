// S5 on a GPU: a matrix product through shared memory, with what surrounds it.
//
// The space: the largest tiles that still give about a block for each multiprocessor of a
// large chip come first: they read least.

#include "codegen/simt_tactic.h"

enum { ENOUGH_BLOCKS = 96 };

static const ft_simt_gemm_choice tiles[] = {
    {128, 128, 8, 8, 8}, {128, 64, 8, 8, 4}, {64, 128, 8, 4, 8}, {64, 64, 16, 4, 4},
    {64, 64, 8, 4, 4},   {64, 32, 16, 4, 2}, {32, 64, 16, 2, 4}, {32, 32, 32, 2, 2},
    {32, 32, 16, 2, 2},  {16, 64, 16, 1, 4}, {16, 32, 32, 1, 2}, {16, 16, 16, 1, 1},
    {8, 64, 16, 1, 4},   {8, 32, 32, 1, 2},  {8, 128, 8, 1, 8},  {128, 128, 16, 8, 8},
};
enum { TILES = sizeof tiles / sizeof *tiles };

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  *reason = ft_simt_refusal(ir->workload, arena);
  if (!*reason) *reason = ft_simt_gemm_refusal(ir->workload, &tiles[3], arena);
  return *reason ? -1 : 2;
}

// Blocks of an output of |elements|, about.
static int64_t blocks_of(const ft_simt_gemm_choice *c, int64_t elements) {
  return elements / ((int64_t)c->block_m * c->block_n);
}

static void offer(const ft_group_ir *ir, const ft_simt_gemm_choice *tile,
                  ft_schedules *out) {
  ft_simt_any_choice choice = {FT_SIMT_GEMM, .gemm = *tile};
  ft_simt_offer(ir, &choice, out);
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  int64_t elements = ft_simt_elements(ir->workload);
  (void)target;
  for (int i = 0; i < TILES; i++)
    if (blocks_of(&tiles[i], elements) >= ENOUGH_BLOCKS) offer(ir, &tiles[i], out);
  for (int i = TILES; i-- > 0;) offer(ir, &tiles[i], out);
}

FT_SIMT_TACTIC(simt_gemm, FT_SIMT_GEMM);
