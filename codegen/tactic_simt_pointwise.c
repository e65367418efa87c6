// S1 on a GPU: elementwise work and index remaps, a thread per item.
//
// The space: as many bytes in flight as the widest access and a few items of a thread
// give, since a single 16-byte load is not enough for the fastest memories
// (results/cuda_static); fewer where the group is small, or has many inputs.
#include "codegen/nest.h"
#include "codegen/simt_tactic.h"

// Elements; several waves on any chip; registers that let three quarters of the threads
// fit.
enum { BIG = 1 << 22, MANY_BLOCKS = 132 * 8, CAP = 40 };

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  *reason = ft_simt_refusal(ir->workload, arena);
  if (!*reason)
    *reason =
        ir->reduced ? "simt_pointwise takes no reductions" : ft_nest_refusal(ir, arena);
  return *reason ? -1 : 1;
}

// With and without streaming hints, where they may pay. |registers|: that a thread is
// held to; 0: as the compiler likes.
static void offer(const ft_group_ir *ir, ft_simt_choice nest, uint32_t registers,
                  ft_schedules *out) {
  ft_simt_any_choice choice = {FT_SIMT_NEST, .nest = nest};
  if (registers) choice.min_blocks = ft_simt_min_blocks(nest.threads, registers);
  choice.nest.streams = ft_simt_elements(ir->workload) >= BIG;
  ft_simt_offer(ir, &choice, out);
  choice.nest.streams = false;
  ft_simt_offer(ir, &choice, out);
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  static const uint32_t vectors[] = {4, 2, 1, 8}, threads[] = {256, 128, 512},
                        unrolls[] = {1, 2, 4};
  (void)target;
  for (int v = 0; v < 4; v++)
    for (int u = 0; u < 3; u++) {
      ft_simt_choice nest = {.vector = vectors[v], .unroll = unrolls[u]};
      for (int t = 0; t < 3; t++) {
        nest.threads = threads[t];
        offer(ir, nest, 0, out);
      }
      if (vectors[v] == 4 && unrolls[u] > 1) offer(ir, nest, CAP, out);
    }
  offer(ir,
        (ft_simt_choice){.threads = 256, .vector = 4, .unroll = 2, .blocks = MANY_BLOCKS},
        0, out);
  offer(ir,
        (ft_simt_choice){.threads = 256, .vector = 1, .unroll = 1, .blocks = MANY_BLOCKS},
        0, out);
}

FT_SIMT_TACTIC(simt_pointwise, FT_SIMT_NEST);
