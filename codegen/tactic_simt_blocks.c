// S9 on a GPU: parts of a group that do not need each other, in one launch. Each part has
// its usual choice for blocks of |threads| (ft_simt_any_choose); what is tuned is their
// size, whether the parts take turns or ranges, and whether the compiler is told that one
// block a multiprocessor is enough. Not told so, it may keep in memory what a part alone
// keeps in registers; told so, it may take so many registers that fewer blocks fit.
#include "codegen/simt_blocks.h"
#include "codegen/simt_tactic.h"

static const uint32_t sizes[] = {128, 256, 64, 32, 512};
enum { SIZES = sizeof sizes / sizeof *sizes };

static ft_schedule schedule_of(uint32_t threads, ft_kir_order order,
                               uint32_t min_blocks) {
  ft_schedule schedule = {0};
  ft_schedule_set(&schedule, "interleaves", order == FT_KIR_INTERLEAVE);
  ft_schedule_set(&schedule, "min_blocks", min_blocks);
  ft_schedule_set(&schedule, "threads", threads);
  return schedule;
}

// NULL, and the choice; or which knob is wrong.
static const char *read_choice(const ft_workload *workload, const ft_schedule *schedule,
                               ft_arena *arena, ft_simt_blocks_choice *out) {
  int64_t interleaves = ft_schedule_get(schedule, "interleaves", -1);
  int64_t min_blocks = ft_schedule_get(schedule, "min_blocks", -1);
  int64_t threads = ft_schedule_get(schedule, "threads", -1);
  if (schedule->count != 3)
    return "the knobs are not interleaves, min_blocks and threads";
  if (interleaves != 0 && interleaves != 1) return "interleaves is not 0 or 1";
  if (threads < 32 || threads > 1024 || threads % 32)
    return "threads is not a multiple of 32 up to 1024";
  if (min_blocks < 0 || min_blocks > FT_KIR_MOST_BLOCKS)
    return "min_blocks is not 0 to 32";
  const char *wrong =
      ft_simt_blocks_choose(workload, (uint32_t)threads,
                            interleaves ? FT_KIR_INTERLEAVE : FT_KIR_CONCAT, arena, out);
  out->min_blocks = (uint32_t)min_blocks;
  return wrong;
}

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  ft_simt_blocks_choice choice;
  *reason = ft_simt_refusal(ir->workload, arena);
  if (!*reason)
    *reason =
        ft_simt_blocks_choose(ir->workload, sizes[0], FT_KIR_CONCAT, arena, &choice);
  if (!*reason) *reason = ft_simt_blocks_refusal(ir->workload, &choice, arena);
  return *reason ? -1 : 1.5;
}

static const char *check(const ft_group_ir *ir, const ft_target *target,
                         const ft_schedule *schedule, ft_arena *arena) {
  ft_simt_blocks_choice choice;
  (void)target;
  const char *wrong = read_choice(ir->workload, schedule, arena, &choice);
  return wrong ? wrong : ft_simt_blocks_refusal(ir->workload, &choice, arena);
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  static const ft_kir_order orders[] = {FT_KIR_CONCAT, FT_KIR_INTERLEAVE};
  for (int i = 0; i < SIZES; i++)
    for (uint32_t min_blocks = 0; min_blocks < 2; min_blocks++)
      for (int k = 0; k < 2; k++) {
        ft_schedule schedule = schedule_of(sizes[i], orders[k], min_blocks);
        if (!check(ir, target, &schedule, out->arena)) ft_schedules_add(out, &schedule);
      }
}

static ft_status build(const ft_group_ir *ir, const ft_schedule *schedule,
                       ft_arena *arena, ft_kernel *out, ft_error *error) {
  ft_simt_blocks_choice choice;
  const char *wrong = read_choice(ir->workload, schedule, arena, &choice);
  if (wrong) FT_FAIL(error, FT_INVALID_ARGUMENT, "schedule: %s", wrong);
  FT_TRY(ft_simt_blocks_build(ir->workload, &choice, arena, &out->kir, error));
  out->workspace_bytes = out->kir->workspace_bytes;
  return FT_OK;
}

const ft_tactic ft_tactic_simt_blocks = {.name = "simt_blocks",
                                         .is_gpu = true,
                                         .match = match,
                                         .space = space,
                                         .check = check,
                                         .build = build};
