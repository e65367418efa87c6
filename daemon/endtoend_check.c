// Right before fast: whole plans against the reference.
#include <stdio.h>

#include "core/log.h"
#include "daemon/endtoend_private.h"
#include "daemon/execute.h"
#include "measure/check.h"

// ---- the reference
// -------------------------------------------------------------------------

// The whole graph as one group: its reference checks any plan's outputs.
static ft_status whole_graph_check(const ft_graph *graph, const ft_tensor *input,
                                   uint64_t seed, uint64_t limit_ns, ft_arena *arena,
                                   ft_group *group, ft_output_check *out,
                                   ft_error *error) {
  uint32_t *all = FT_NEW_ARRAY(arena, uint32_t, graph->primitive_count);
  FT_OOM_IF(!all, error);
  for (uint32_t i = 0; i < graph->primitive_count; i++) all[i] = i;
  FT_TRY(ft_group_make(graph, all, graph->primitive_count, arena, group, error));
  ft_tensor *in = FT_NEW_ARRAY(arena, ft_tensor, group->input_count);
  FT_OOM_IF(!in, error);
  for (uint32_t i = 0; i < group->input_count; i++) {
    uint32_t value = group->input[i];
    if (graph->value[value].role == FT_ROLE_CONSTANT) {
      FT_TRY(ft_graph_constant_data(graph, value, arena, &in[i], error));
      continue;
    }
    for (uint32_t k = 0; k < graph->input_count; k++)
      if (graph->input[k].value == value) in[i] = input[k];
  }
  ft_group_check *check;
  FT_TRY(ft_group_check_create(group, in, seed, 1 << 16, limit_ns, arena, &check, error));
  *out = ft_group_check_outputs(check);
  return FT_OK;
}

// The plan's outputs in the order of the whole graph's group.
static ft_status outputs_ft_contender_at(const ft_contender *c, const ft_group *group,
                                         void *const *data, ft_arena *arena,
                                         const void ***out, ft_error *error) {
  *out = FT_NEW_ARRAY(arena, const void *, group->output_count);
  FT_OOM_IF(!*out, error);
  uint32_t position = 0;
  for (uint32_t b = 0; b < c->plan.buffer_count; b++) {
    if (c->program.buffer[b].kind != FT_BUFFER_OUTPUT) continue;
    for (uint32_t k = 0; k < group->output_count; k++)
      if (group->output[k] == c->plan.buffer[b].value) (*out)[k] = data[position];
    position++;
  }
  for (uint32_t k = 0; k < group->output_count; k++)
    if (!(*out)[k])
      FT_FAIL(error, FT_INTERNAL, "plan %s lacks output '%s'", c->program.name,
              group->graph->value[group->output[k]].name);
  return FT_OK;
}

static ft_status contender_check(ft_session *s, ft_contender *c, const ft_group *group,
                                 const ft_output_check *check, ft_arena *arena,
                                 ft_error *error) {
  void **data;
  ft_outcome outcome;
  char failure[256];
  data = FT_NEW_ARRAY(arena, void *, c->program.buffer_count);
  FT_OOM_IF(!data, error);
  ft_cpu_runner_limit_checks(s->runner, ft_plan_limit_ns(&c->plan));
  ft_status status =
      ft_cpu_runner_run(s->runner, &c->program, arena, data, &outcome, failure, error);
  ft_cpu_runner_limit_checks(s->runner, 0);
  FT_TRY(status);
  const char *absence = NULL;
  if (outcome != FT_OUTCOME_OK) {
    absence = ft_arena_printf(arena, "%s: %s", ft_outcome_text(outcome), failure);
  } else {
    const void **ordered;
    char worst[256] = "";
    ft_comparison comparison;
    FT_TRY(outputs_ft_contender_at(c, group, data, arena, &ordered, error));
    FT_TRY(check->compare(check->ctx, ordered, &comparison, worst, error));
    double drift = ft_comparison_drift(&comparison);
    if (comparison.max_ratio > 1)
      absence = ft_arena_printf(arena, "wrong result: %s", worst);
    else if (!(drift <= FT_DRIFT_LIMIT))
      absence = ft_arena_printf(arena, "wrong result: off by %.2g of the RMS", drift);
  }
  if (absence) {
    c->is_present = false;
    c->absence = absence;
    ft_log(FT_LOG_WARN, "the %s plan is out: %s", c->program.name, absence);
  }
  return FT_OK;
}

static uint64_t reference_limit_ns(uint64_t left) {
  static const uint64_t most_ns = 5000000000u, least_ns = 100000000u;
  uint64_t limit = left / 10;
  if (limit < least_ns) return least_ns;
  return limit < most_ns ? limit : most_ns;
}

static void share_absence(ft_contender *contender, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    ft_contender *c = &contender[i];
    const ft_contender *first = &contender[c->same_as];
    if (!c->is_present || first->is_present) continue;
    c->is_present = false;
    c->absence = first->absence;
  }
}

ft_status ft_contenders_check(ft_session *s, const ft_graph *graph,
                              const ft_tensor *input, uint64_t seed,
                              const ft_deadlines *deadlines, ft_arena *arena,
                              ft_contender *contender, uint32_t count, ft_error *error) {
  if (graph->primitive_count == 0) return FT_OK;
  ft_group group;
  ft_output_check check;
  uint64_t limit = reference_limit_ns(ft_left_ns(deadlines->budget_ns));
  FT_TRY(whole_graph_check(graph, input, seed, limit, arena, &group, &check, error));
  for (uint32_t place = 0; place < FT_CONTENDERS; place++) {
    uint32_t i = ft_contender_at(place);
    if (i >= count || !contender[i].is_present || contender[i].same_as != i) continue;
    bool is_owed = i == FT_PLAN_UNFUSED || i == FT_PLAN_TUNED;
    if (is_owed || ft_left_ns(deadlines->budget_ns) > 0) {
      FT_TRY(contender_check(s, &contender[i], &group, &check, arena, error));
      continue;
    }
    contender[i].is_present = false;
    contender[i].absence = "the budget ended before it was checked";
  }
  share_absence(contender, count);
  return FT_OK;
}
