// S2 and S3 on a GPU across the threads: each thread reduces a row of its own. For
// reductions over outer or short axes.
#include "codegen/nest.h"
#include "codegen/simt_tactic.h"

enum { SHORT_ROW = 32 };

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  uint64_t all = ir->axis_count == 64 ? UINT64_MAX : ((uint64_t)1 << ir->axis_count) - 1;
  uint64_t kept = all & ~ir->reduced;
  *reason = ft_simt_refusal(ir->workload, arena);
  if (!*reason)
    *reason = ir->refusal    ? ir->refusal
              : !ir->reduced ? "simt_column needs a reduction"
              : !kept        ? "simt_column needs an axis that stays"
                             : ft_nest_refusal(ir, arena);
  if (*reason) return -1;
  uint32_t best = ft_nest_best_axis(ir, all);
  if (kept >> best & 1) return 2;
  if (ir->extent[best] < SHORT_ROW) return 0;
  *reason = "simt_column is for short or strided reductions";
  return -1;
}

static void offer(const ft_group_ir *ir, ft_schedules *out, uint32_t threads,
                  uint32_t vector, uint32_t column_threads, uint32_t splits) {
  ft_simt_any_choice choice = {FT_SIMT_NEST, .nest = {.threads = threads,
                                                      .vector = vector,
                                                      .unroll = 1,
                                                      .column_threads = column_threads,
                                                      .splits = splits}};
  ft_simt_offer(ir, &choice, out);
}

// First with threads that share a column, which fills the chip where columns are few.
static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  static const uint32_t vectors[] = {1, 4, 2}, threads[] = {256, 128, 32},
                        sharing[] = {8, 4, 16, 0};
  (void)target;
  for (int c = 0; c < 4; c++)
    for (int v = 0; v < 3; v++)
      for (int t = 0; t < 3; t++) offer(ir, out, threads[t], vectors[v], sharing[c], 0);
  for (uint32_t splits = 4; splits <= 64; splits *= 4) offer(ir, out, 256, 1, 8, splits);
}

FT_SIMT_TACTIC(simt_column, FT_SIMT_NEST);
