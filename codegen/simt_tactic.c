#include "codegen/simt_tactic.h"

#include <string.h>

#include "codegen/simt_prelude.h"

// ---- choices and schedules
// --------------------------------------------------------------------

static ft_schedule schedule_of(const ft_simt_any_choice *choice) {
  ft_schedule schedule = {0};
  const char *name;
  for (uint32_t i = 0; (name = ft_simt_knob_name(choice->skeleton, i)); i++)
    ft_schedule_set(&schedule, name, ft_simt_knob_get(choice, i));
  return schedule;
}

static const ft_knob *find_knob(const ft_schedule *schedule, const char *name) {
  for (uint32_t i = 0; i < schedule->count; i++)
    if (!strcmp(schedule->knob[i].name, name)) return &schedule->knob[i];
  return NULL;
}

// NULL, and the choice; or which knob is wrong. A schedule that is another choice's, say
// with a flag of 2, would be one kernel under two names.
static const char *read_choice(ft_simt_skeleton skeleton, const ft_schedule *schedule,
                               ft_arena *arena, ft_simt_any_choice *out) {
  memset(out, 0, sizeof *out);
  out->skeleton = skeleton;
  const char *name;
  uint32_t count = 0;
  for (; (name = ft_simt_knob_name(skeleton, count)); count++) {
    const ft_knob *given = find_knob(schedule, name);
    if (!given) return ft_arena_printf(arena, "knob %s is missing", name);
    if (given->text || given->value < 0 || given->value > INT32_MAX)
      return ft_arena_printf(arena, "knob %s is no number from 0 on", name);
    ft_simt_knob_set(out, count, (uint32_t)given->value);
    if (ft_simt_knob_get(out, count) != (uint32_t)given->value)
      return ft_arena_printf(arena, "knob %s is not 0 or 1", name);
  }
  if (count != schedule->count)
    return ft_arena_printf(arena, "%u knobs, %s has %u", schedule->count,
                           ft_simt_skeleton_name(skeleton), count);
  return NULL;
}

static bool is_offered(const ft_schedules *list, const ft_schedule *s) {
  for (uint32_t i = 0; i < list->count; i++)
    if (ft_schedule_equal(&list->item[i], s)) return true;
  return false;
}

void ft_simt_offer(const ft_group_ir *ir, const ft_simt_any_choice *choice,
                   ft_schedules *out) {
  if (out->count >= FT_SIMT_SPACE) return;
  ft_schedule schedule = schedule_of(choice);
  if (is_offered(out, &schedule)) return;
  if (!ft_simt_any_refusal(ir->workload, choice, out->arena))
    ft_schedules_add(out, &schedule);
}

const char *ft_simt_check(ft_simt_skeleton skeleton, const ft_group_ir *ir,
                          const ft_schedule *schedule, ft_arena *arena) {
  ft_simt_any_choice choice;
  const char *wrong = read_choice(skeleton, schedule, arena, &choice);
  return wrong ? wrong : ft_simt_any_refusal(ir->workload, &choice, arena);
}

ft_status ft_simt_kernel(ft_simt_skeleton skeleton, const ft_group_ir *ir,
                         const ft_schedule *schedule, ft_arena *arena, ft_kernel *out,
                         ft_error *error) {
  ft_simt_any_choice choice;
  const char *wrong = read_choice(skeleton, schedule, arena, &choice);
  if (wrong) FT_FAIL(error, FT_INVALID_ARGUMENT, "schedule: %s", wrong);
  FT_TRY(ft_simt_any_build(ir->workload, &choice, arena, &out->kir, error));
  out->workspace_bytes = out->kir->workspace_bytes;
  return FT_OK;
}

// ---- groups
// -----------------------------------------------------------------------------------

static const char *value_refusal(const ft_value *value, ft_arena *arena) {
  if (ft_simt_c_type(ft_kir_math_dtype(value->dtype))) return NULL;
  return ft_arena_printf(arena, "no GPU kernels for %s", ft_dtype_text(value->dtype));
}

const char *ft_simt_refusal(const ft_workload *workload, ft_arena *arena) {
  const ft_group *g = &workload->group;
  const ft_graph *graph = g->graph;
  const char *wrong = NULL;
  for (uint32_t i = 0; i < g->input_count && !wrong; i++)
    wrong = value_refusal(&graph->value[g->input[i]], arena);
  for (uint32_t i = 0; i < g->primitive_count && !wrong; i++)
    wrong = value_refusal(&graph->value[graph->primitive[g->primitive[i]].output], arena);
  return wrong;
}

int64_t ft_simt_elements(const ft_workload *workload) {
  int64_t most = 0;
  for (uint32_t i = 0; i < workload->group.output_count; i++) {
    const ft_value *v = &workload->group.graph->value[workload->group.output[i]];
    int64_t elements = ft_shape_elements(&v->shape);
    if (elements > most) most = elements;
  }
  return most;
}
