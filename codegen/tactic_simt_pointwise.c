// S1 on a GPU: elementwise work and index remaps, a thread per item.
//
// The space: as many bytes in flight as the widest access and a few items of a thread
// give, since a single 16-byte load is not enough for the fastest memories
// (results/cuda_static); fewer where the group is small, or has many inputs.
#include "codegen/nest.h"
#include "codegen/simt_tactic.h"

enum { BIG = 1 << 22, MANY_BLOCKS = 132 * 8 };  // elements; several waves on any chip

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  *reason = ft_simt_refusal(ir->workload, arena);
  if (!*reason)
    *reason =
        ir->reduced ? "simt_pointwise takes no reductions" : ft_nest_refusal(ir, arena);
  return *reason ? -1 : 1;
}

static void offer(const ft_group_ir *ir, ft_schedules *out, uint32_t threads,
                  uint32_t vector, uint32_t unroll, uint32_t blocks) {
  bool is_big = ft_simt_elements(ir->workload) >= BIG;
  ft_simt_any_choice choice = {FT_SIMT_NEST, .nest = {.threads = threads,
                                                      .vector = vector,
                                                      .unroll = unroll,
                                                      .blocks = blocks,
                                                      .streams = is_big}};
  ft_simt_offer(ir, &choice, out);
  if (!is_big) return;
  choice.nest.streams = false;
  ft_simt_offer(ir, &choice, out);
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  static const uint32_t vectors[] = {4, 2, 1, 8}, threads[] = {256, 128, 512},
                        unrolls[] = {1, 2, 4};
  (void)target;
  for (int v = 0; v < 4; v++)
    for (int u = 0; u < 3; u++)
      for (int t = 0; t < 3; t++) offer(ir, out, threads[t], vectors[v], unrolls[u], 0);
  offer(ir, out, 256, 4, 2, MANY_BLOCKS);
  offer(ir, out, 256, 1, 1, MANY_BLOCKS);
}

FT_SIMT_TACTIC(simt_pointwise, FT_SIMT_NEST);
