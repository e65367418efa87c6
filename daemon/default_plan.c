#include "daemon/default_plan.h"

enum { MOST_TACTICS = 16 };

// The best guess among our own tactics: what nobody has measured must run all the same,
// and a library may have nothing for a layout.
static const char *own_tactic(ft_session *s, const ft_workload *workload, ft_arena *arena,
                              const char **reason) {
  const char *tactic[MOST_TACTICS];
  uint32_t count =
      s->builder.match(s->builder.self, workload, arena, tactic, MOST_TACTICS, reason);
  for (uint32_t i = 0; i < count; i++)
    if (!ft_codegen_calls_library(tactic[i])) return tactic[i];
  if (count) *reason = "only a library takes it";
  return NULL;
}

static ft_status default_group(ft_session *s, const ft_graph *graph,
                               const uint32_t *primitive, uint32_t count, ft_arena *arena,
                               ft_group *group, bool *out_legal, ft_error *error) {
  FT_TRY(ft_group_make(graph, primitive, count, arena, group, error));
  ft_workload workload;
  FT_TRY(ft_workload_make(group, arena, &workload, error));
  const char *reason = "";
  *out_legal = own_tactic(s, &workload, arena, &reason) != NULL;
  if (!*out_legal && count == 1)
    FT_FAIL(error, FT_UNSUPPORTED, "no tactic for primitive %u (%s): %s", primitive[0],
            ft_op_describe(graph->primitive[primitive[0]].op)->name, reason);
  return FT_OK;
}

static ft_status default_partition(ft_session *s, const ft_graph *graph, ft_arena *arena,
                                   ft_partition *out, ft_error *error) {
  ft_group *group = FT_NEW_ARRAY(arena, ft_group, graph->primitive_count);
  uint32_t *index = FT_NEW_ARRAY(arena, uint32_t, graph->primitive_count);
  FT_OOM_IF(!group || !index, error);
  for (uint32_t i = 0; i < graph->primitive_count; i++) index[i] = i;
  uint32_t count = 0;
  for (uint32_t o = 0; o < graph->operator_count; o++) {
    const ft_operator *op = &graph->operator_[o];
    if (op->count == 0) continue;
    bool legal;
    FT_TRY(default_group(s, graph, index + op->first, op->count, arena, &group[count],
                         &legal, error));
    if (legal) {
      count++;
      continue;
    }
    for (uint32_t i = 0; i < op->count; i++)
      FT_TRY(default_group(s, graph, index + op->first + i, 1, arena, &group[count++],
                           &legal, error));
  }
  return ft_partition_make(graph, group, count, arena, out, error);
}

static ft_status default_schedules(ft_session *s, ft_plan *plan, ft_arena *arena,
                                   ft_error *error) {
  const ft_builder *b = &s->builder;
  for (uint32_t i = 0; i < plan->group_count; i++) {
    ft_plan_group *g = &plan->group[i];
    const char *reason;
    ft_schedule *space;
    uint32_t count;
    g->tactic = own_tactic(s, &g->workload, arena, &reason);
    if (!g->tactic)
      FT_FAIL(error, FT_INTERNAL, "group %u lost its tactic: %s", i, reason);
    FT_TRY(b->space(b->self, &g->workload, g->tactic, &s->target, arena, &space, &count,
                    error));
    if (count == 0)
      FT_FAIL(error, FT_INTERNAL, "tactic %s has no schedule for group %u", g->tactic, i);
    g->schedule = space[0];
  }
  return FT_OK;
}

ft_status ft_plan_default(ft_session *s, const ft_graph *graph, ft_arena *arena,
                          ft_plan *out, ft_error *error) {
  ft_partition partition;
  FT_TRY(default_partition(s, graph, arena, &partition, error));
  ft_workload *workload = FT_NEW_ARRAY(arena, ft_workload, partition.group_count);
  FT_OOM_IF(!workload, error);
  for (uint32_t i = 0; i < partition.group_count; i++)
    FT_TRY(ft_workload_make(&partition.group[i], arena, &workload[i], error));
  FT_TRY(ft_plan_make(&partition, workload, &s->target, arena, out, error));
  out->strategy = "unfused";
  return default_schedules(s, out, arena, error);
}
