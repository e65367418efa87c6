#include "daemon/endtoend.h"

#include <math.h>
#include <string.h>

#include "core/file.h"
#include "core/log.h"
#include "daemon/execute.h"
#include "measure/check.h"
#include "measure/statistics.h"

enum { DECIDING_ROUNDS = 60 };

// ---- partitions become plans ------------------------------------------------------

static ft_status fill_groups(ft_plan *plan, const ft_searched_partition *partition,
                             const ft_search_result *search, ft_error *error) {
  for (uint32_t i = 0; i < plan->group_count; i++) {
    const ft_searched_group *g = &search->group[partition->unique[i]];
    if (!g->is_measured)
      FT_FAIL(error, FT_INTERNAL, "group %u of the %s plan was never measured", i,
              partition->strategy);
    plan->group[i].tactic = g->best.tactic;
    plan->group[i].schedule = g->best.schedule;
    plan->group[i].time = g->trial.time;
    plan->group[i].predicted_ns = plan->group[i].roofline_ns = -1;
  }
  return FT_OK;
}

static ft_status candidates_of(const ft_plan *plan, ft_arena *arena, ft_candidate **out,
                               ft_error *error) {
  *out = FT_NEW_ARRAY(arena, ft_candidate, plan->group_count);
  FT_OOM_IF(!*out, error);
  for (uint32_t i = 0; i < plan->group_count; i++)
    (*out)[i] = (ft_candidate){.workload = &plan->group[i].workload,
                               .target = plan->target,
                               .tactic = plan->group[i].tactic,
                               .schedule = plan->group[i].schedule};
  return FT_OK;
}

static ft_status hash_binary(const char *path, ft_arena *arena, ft_hash *out,
                             ft_error *error) {
  ft_bytes bytes;
  FT_TRY(ft_file_read(path, FT_PLAN_OBJECT_BYTES, arena, &bytes, error));
  *out = ft_hash_bytes(bytes.data, bytes.size);
  return FT_OK;
}

ft_status ft_plan_build(ft_session *s, ft_plan *plan, bool alone, ft_arena *arena,
                        const ft_module **out_module, ft_error *error) {
  ft_candidate *candidate;
  FT_TRY(candidates_of(plan, arena, &candidate, error));
  ft_module *module = FT_NEW_ARRAY(arena, ft_module, plan->group_count);
  FT_OOM_IF(!module, error);
  *out_module = module;
  if (plan->group_count == 0) return FT_OK;
  FT_TRY(s->builder.build(s->builder.self, candidate, plan->group_count, alone, arena,
                          module, error));
  for (uint32_t i = 0; i < plan->group_count; i++) {
    if (module[i].outcome != FT_OUTCOME_OK)
      FT_FAIL(error, FT_INTERNAL, "group %u (%s) built before, now: %s: %s", i,
              candidate[i].tactic, ft_outcome_text(module[i].outcome), module[i].log);
    ft_hash binary = {{0}};
    if (alone) FT_TRY(hash_binary(module[i].path, arena, &binary, error));
    ft_plan_group_build(&plan->group[i], &module[i], &binary);
  }
  return FT_OK;
}

static ft_status contender_make(ft_session *s, const ft_search_result *search,
                                const ft_searched_partition *partition,
                                const ft_tensor *input, const char *name, ft_arena *arena,
                                ft_contender *out, ft_error *error) {
  ft_plan *plan = &out->plan;
  FT_TRY(ft_plan_make(&partition->partition, partition->workload, &s->target, arena, plan,
                      error));
  plan->strategy = partition->strategy;
  plan->window = search->window;
  plan->span = search->span;
  plan->window_saturated = search->window_saturated;
  plan->times.additive_ns = partition->additive_ns;
  plan->times.bound_ns = fmin(search->bound_ns, partition->additive_ns);
  plan->times.gap =
      partition->additive_ns > 0
          ? (partition->additive_ns - plan->times.bound_ns) / partition->additive_ns
          : 0;
  FT_TRY(fill_groups(plan, partition, search, error));
  FT_TRY(ft_plan_build(s, plan, false, arena, &out->module, error));
  FT_TRY(ft_plan_seal(plan, arena, error));
  FT_TRY(ft_plan_program(plan, name, out->module, input, arena, &out->program, error));
  out->is_present = true;
  return FT_OK;
}

ft_status ft_contenders_make(ft_session *s, const ft_search_result *search,
                             const ft_tensor *input, ft_arena *arena,
                             ft_contender out[FT_PLAN_KINDS], ft_error *error) {
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++) {
    ft_contender *c = &out[kind];
    memset(c, 0, sizeof *c);
    c->same_as = (ft_plan_kind)kind;
    const ft_searched_partition *p =
        ft_search_find(search, ft_plan_kind_strategy((ft_plan_kind)kind));
    if (!p || !p->is_complete) {
      c->absence =
          p ? "a group of it was not measured" : "the strategy gave no partition";
      continue;
    }
    FT_TRY(contender_make(s, search, p, input, ft_plan_kind_text((ft_plan_kind)kind),
                          arena, c, error));
    for (int earlier = 0; earlier < kind; earlier++)
      if (out[earlier].is_present && out[earlier].same_as == (ft_plan_kind)earlier &&
          ft_hash_equal(&out[earlier].plan.hash, &c->plan.hash))
        c->same_as = (ft_plan_kind)earlier;
  }
  return FT_OK;
}

// ---- right before fast ----------------------------------------------------------------

// The whole graph as one group: its sampled reference checks any plan's outputs.
static ft_status whole_graph_check(const ft_graph *graph, const ft_tensor *input,
                                   uint64_t seed, ft_arena *arena, ft_group *group,
                                   ft_output_check *out, ft_error *error) {
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
  FT_TRY(
      ft_group_check_create(group, in, seed, 1 << 16, 5000000000u, arena, &check, error));
  *out = ft_group_check_outputs(check);
  return FT_OK;
}

// The plan's outputs in the order of the whole graph's group.
static ft_status outputs_in_order(const ft_contender *c, const ft_group *group,
                                  void *const *data, ft_arena *arena, const void ***out,
                                  ft_error *error) {
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
  FT_TRY(
      ft_cpu_runner_run(s->runner, &c->program, arena, data, &outcome, failure, error));
  const char *absence = NULL;
  if (outcome != FT_OUTCOME_OK) {
    absence = ft_arena_printf(arena, "%s: %s", ft_outcome_text(outcome), failure);
  } else {
    const void **ordered;
    char worst[256] = "";
    ft_comparison comparison;
    FT_TRY(outputs_in_order(c, group, data, arena, &ordered, error));
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

ft_status ft_contenders_check(ft_session *s, const ft_graph *graph,
                              const ft_tensor *input, uint64_t seed, ft_arena *arena,
                              ft_contender contender[FT_PLAN_KINDS], ft_error *error) {
  if (graph->primitive_count == 0) return FT_OK;
  ft_group group;
  ft_output_check check;
  FT_TRY(whole_graph_check(graph, input, seed, arena, &group, &check, error));
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++) {
    ft_contender *c = &contender[kind];
    if (c->is_present && c->same_as == (ft_plan_kind)kind)
      FT_TRY(contender_check(s, c, &group, &check, arena, error));
  }
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++) {
    ft_contender *c = &contender[kind];
    const ft_contender *first = &contender[c->same_as];
    if (c->is_present && !first->is_present) {
      c->is_present = false;
      c->absence = first->absence;
    }
  }
  return FT_OK;
}

// ---- the decision
// -----------------------------------------------------------------------

static ft_status column_time(const ft_compare_result *r, uint32_t column, ft_arena *arena,
                             uint64_t **out_sample, ft_time *out, ft_error *error) {
  uint64_t *sample = FT_NEW_ARRAY(arena, uint64_t, r->rounds);
  uint8_t *flags = FT_NEW_ARRAY(arena, uint8_t, r->rounds);
  FT_OOM_IF(!sample || !flags, error);
  for (uint32_t i = 0; i < r->rounds; i++) {
    sample[i] = r->time_ns[(size_t)i * r->programs + column];
    flags[i] = r->flags[(size_t)i * r->programs + column];
  }
  *out_sample = sample;
  *out = ft_median_unflagged(sample, flags, r->rounds, arena);
  return FT_OK;
}

static ft_status compare_distinct(ft_session *s, const ft_contender *contender,
                                  uint32_t max_rounds, uint64_t limit_ns, uint64_t seed,
                                  ft_arena *arena, ft_decision *out, ft_error *error) {
  const ft_program *program[FT_PLAN_KINDS];
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++)
    if (contender[kind].is_present && contender[kind].same_as == (ft_plan_kind)kind) {
      out->column[out->distinct] = (ft_plan_kind)kind;
      program[out->distinct++] = &contender[kind].program;
    }
  if (out->distinct == 0)
    FT_FAIL(error, FT_INTERNAL, "no plan ran correctly; tuned: %s; unfused: %s",
            contender[FT_PLAN_TUNED].absence, contender[FT_PLAN_UNFUSED].absence);
  FT_TRY(ft_cpu_runner_compare(s->runner, program, out->distinct, max_rounds, limit_ns,
                               seed, arena, &out->comparison, error));
  if (out->comparison.outcome != FT_OUTCOME_OK)
    FT_FAIL(error, FT_INTERNAL, "the %s plan ended as %s in the comparison",
            program[out->comparison.culprit]->name,
            ft_outcome_text(out->comparison.outcome));
  return FT_OK;
}

ft_status ft_contenders_compare(ft_session *s,
                                const ft_contender contender[FT_PLAN_KINDS],
                                uint32_t max_rounds, uint64_t limit_ns, uint64_t seed,
                                ft_arena *arena, ft_decision *out, ft_error *error) {
  memset(out, 0, sizeof *out);
  FT_TRY(compare_distinct(s, contender, max_rounds, limit_ns, seed, arena, out, error));
  for (uint32_t i = 0; i < out->distinct; i++)
    FT_TRY(column_time(&out->comparison, i, arena, &out->sample[out->column[i]],
                       &out->time[out->column[i]], error));
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++)
    if (contender[kind].is_present) {
      out->time[kind] = out->time[contender[kind].same_as];
      out->sample[kind] = out->sample[contender[kind].same_as];
    }
  return FT_OK;
}

ft_status ft_contenders_decide(ft_session *s, const ft_contender contender[FT_PLAN_KINDS],
                               uint64_t limit_ns, uint64_t seed, ft_arena *arena,
                               ft_decision *out, ft_error *error) {
  uint64_t *const *sample = out->sample;
  FT_TRY(ft_contenders_compare(s, contender, DECIDING_ROUNDS, limit_ns, seed, arena, out,
                               error));
  ft_plan_kind best = out->column[0];
  for (uint32_t i = 1; i < out->distinct; i++)
    if (out->time[out->column[i]].median_ns < out->time[best].median_ns)
      best = out->column[i];
  out->served = best;
  out->sign_p = 1;
  const ft_contender *unfused = &contender[FT_PLAN_UNFUSED];
  if (!unfused->is_present || unfused->same_as == best) return FT_OK;
  out->sign_p =
      ft_sign_test(sample[best], sample[FT_PLAN_UNFUSED], out->comparison.rounds);
  bool beats = (double)out->time[best].median_ns <
                   0.99 * (double)out->time[FT_PLAN_UNFUSED].median_ns &&
               out->sign_p < 0.05;
  if (!beats) out->served = FT_PLAN_UNFUSED;
  return FT_OK;
}

ft_status ft_contenders_finish(ft_session *s, ft_plan_kind served,
                               ft_contender contender[FT_PLAN_KINDS], ft_arena *arena,
                               ft_error *error) {
  ft_contender *winner = &contender[served];
  FT_TRY(ft_plan_build(s, &winner->plan, true, arena, &winner->module, error));
  FT_TRY(ft_plan_seal(&winner->plan, arena, error));
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++) {
    ft_contender *c = &contender[kind];
    if (c->is_present && c != winner && c->same_as == winner->same_as) {
      c->plan = winner->plan;
      c->module = winner->module;
    }
  }
  return FT_OK;
}
