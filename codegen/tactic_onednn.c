// A product, a convolution or an average pool with what follows it as one call of oneDNN.
// One block: the library's own threads share the work.
#include <string.h>

#include "codegen/onednn.h"
#include "codegen/tactic.h"

static const char *const knobs[] = {"compiler", "layout", "threads", NULL};
// packed: the library chooses how weights (of convolutions and pools all tensors) lie,
// and they are brought there and back inside the call.
static const char *const layouts[] = {"plain", "packed"};

static const char *call_of(const ft_group_ir *ir, ft_arena *arena, ft_onednn_call *out) {
  ft_onednn onednn;
  const char *reason = ft_onednn_read(&ir->workload->group, arena, &onednn);
  return reason ? reason : ft_onednn_call_of(&onednn, arena, out);
}

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  ft_onednn_call call;
  *reason = call_of(ir, arena, &call);
  return *reason ? -1 : 2;
}

static int layout_of(const ft_schedule *schedule) {
  const char *word = ft_schedule_get_text(schedule, "layout");
  for (int i = 0; word && i < 2; i++)
    if (!strcmp(layouts[i], word)) return i;
  return -1;
}

static bool has_layouts(const ft_group_ir *ir) {
  const ft_group *group = &ir->workload->group;
  for (uint32_t i = 0; i < group->primitive_count; i++)
    if (group->graph->primitive[group->primitive[i]].op == FT_OP_WINDOW_SUM) return false;
  return true;
}

static const char *check(const ft_group_ir *ir, const ft_target *target,
                         const ft_schedule *schedule, ft_arena *arena) {
  const char *wrong = ft_schedule_refusal(schedule, knobs, target, arena);
  if (wrong) return wrong;
  int layout = layout_of(schedule);
  if (layout < 0) return "layout is not plain or packed";
  return layout == 1 && !has_layouts(ir) ? "a pool has no packed layout" : NULL;
}

static void offer(const ft_target *target, int layout, int64_t threads,
                  ft_schedules *out) {
  ft_schedule s = {0};
  ft_schedule_set_text(&s, "compiler", target->compiler[0].name);
  ft_schedule_set_text(&s, "layout", layouts[layout]);
  ft_schedule_set(&s, "threads", threads);
  ft_schedules_add(out, &s);
}

// Work that takes less than waking a thread does.
enum { SMALL_WORK = 1 << 20 };

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  if (!target->compiler_count) return;
  int64_t all = target->threads ? target->threads : 1;
  bool is_small = ir->workload->flops < SMALL_WORK;
  offer(target, 0, is_small ? 1 : all, out);
  if (has_layouts(ir)) offer(target, 1, is_small ? 1 : all, out);
  if (all > 1) offer(target, 0, is_small ? all : 1, out);
}

static ft_status build(const ft_group_ir *ir, const ft_schedule *schedule,
                       ft_arena *arena, ft_kernel *out, ft_error *error) {
  ft_onednn_call call;
  const char *reason = call_of(ir, arena, &call);
  if (reason) FT_FAIL(error, FT_INVALID_ARGUMENT, "%s", reason);
  *out = (ft_kernel){.grid = 1, .link = "dnnl"};
  out->body = ft_onednn_text(&call, ft_schedule_get(schedule, "threads", 1),
                             layout_of(schedule) == 1, arena);
  FT_OOM_IF(!out->body, error);
  return FT_OK;
}

const ft_tactic ft_tactic_onednn = {.name = "onednn",
                                    .library = "onednn",
                                    .match = match,
                                    .space = space,
                                    .check = check,
                                    .build = build};
