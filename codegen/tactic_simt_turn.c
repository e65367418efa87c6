// S4 on a GPU: pointwise work over tensors that lie along two axes, turned in shared
// memory.
//
// The space: square tiles of 32 and 64 with the widest vectors first.
#include "codegen/simt_tactic.h"

static const ft_simt_turn_choice tiles[] = {
    {.threads = 256, .tile_near = 64, .tile_far = 64, .vector_near = 4, .vector_far = 4},
    {.threads = 256, .tile_near = 32, .tile_far = 32, .vector_near = 4, .vector_far = 4},
    {.threads = 256, .tile_near = 32, .tile_far = 32, .vector_near = 1, .vector_far = 1},
    {.threads = 128, .tile_near = 32, .tile_far = 32, .vector_near = 2, .vector_far = 2},
    {.threads = 128, .tile_near = 64, .tile_far = 32, .vector_near = 4, .vector_far = 4},
    {.threads = 128, .tile_near = 32, .tile_far = 64, .vector_near = 4, .vector_far = 4},
    {.threads = 64, .tile_near = 16, .tile_far = 16, .vector_near = 1, .vector_far = 1},
    {.threads = 64, .tile_near = 8, .tile_far = 8, .vector_near = 1, .vector_far = 1},
};
enum { TILES = sizeof tiles / sizeof *tiles };

static void offer(const ft_group_ir *ir, int tile, bool swizzles, bool streams,
                  ft_schedules *out) {
  ft_simt_any_choice choice = {FT_SIMT_TURN, .turn = tiles[tile]};
  choice.turn.swizzles = swizzles;
  choice.turn.streams = streams;
  ft_simt_offer(ir, &choice, out);
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  (void)target;
  for (int swizzles = 0; swizzles < 2; swizzles++)
    for (int streams = 0; streams < 2; streams++)
      for (int i = 0; i < TILES; i++) offer(ir, i, swizzles, streams, out);
}

// Some tile must fit: which does depends on extents and dtypes.
static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  *reason = ft_simt_refusal(ir->workload, arena);
  if (!*reason) *reason = ir->refusal;
  if (*reason) return -1;
  for (int i = 0; i < TILES; i++) {
    *reason = ft_simt_turn_refusal(ir, &tiles[i], arena);
    if (!*reason) return 2;
  }
  return -1;
}

FT_SIMT_TACTIC(simt_turn, FT_SIMT_TURN);
