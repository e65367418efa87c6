// One tuning run without a device: search by predictions, store what promises most.
#include "daemon/predict.h"

#include <math.h>
#include <string.h>

#include "core/file.h"
#include "daemon/ceilings.h"
#include "daemon/endtoend.h"
#include "daemon/predicted_runner.h"
#include "daemon/tuning_record.h"

static const uint64_t default_limit_ns = 60000000000u;

typedef struct predicted_plan {
  bool is_present;
  ft_plan plan;
  const ft_module *module;  // [group_count]
} predicted_plan;

typedef struct prediction {
  ft_session *session;
  const ft_model *model;
  ft_tune_options options;
  ft_arena *arena;
  int64_t binding_id, run_id;
  ft_search_result *search;
  predicted_plan *plan;  // [FT_PLAN_KINDS]
  ft_plan_kind served;
} prediction;

static ft_status search(prediction *p, ft_predicted_runner *runner, ft_error *error) {
  ft_session *s = p->session;
  ft_runner table = ft_predicted_runner_table(runner);
  ft_search_options options = {.window = p->options.window,
                               .span = p->options.span,
                               .limit_ns = p->options.limit_ns,
                               .max_trials = p->options.max_trials,
                               .seed = p->options.seed,
                               .predictor = ft_session_predictor(s),
                               .constraints = p->model->constraints,
                               .until_gap = p->options.until_gap,
                               .progress = p->options.progress,
                               .progress_ctx = p->options.progress_ctx};
  return ft_search_run(p->model->graph, &s->target,
                       p->options.builder ? p->options.builder : &s->builder, &table,
                       &options, p->arena, p->search, error);
}

// ---- partitions become plans
// --------------------------------------------------------------------

static void fill_groups(const prediction *p, const ft_searched_partition *partition,
                        ft_plan *plan) {
  for (uint32_t i = 0; i < plan->group_count; i++) {
    const ft_searched_group *g = &p->search->group[partition->unique[i]];
    ft_plan_group *out = &plan->group[i];
    out->tactic = g->best.tactic;
    out->schedule = g->best.schedule;
    out->predicted_ns = g->trial.predicted_ns;
    out->roofline_ns = ft_session_bound_ns(p->session, &out->workload);
  }
}

static void fill_plan(const ft_search_result *search,
                      const ft_searched_partition *partition, ft_plan *plan) {
  double sum = partition->additive_ns;
  plan->strategy = partition->strategy;
  plan->window = search->window;
  plan->span = search->span;
  plan->window_saturated = search->window_saturated;
  plan->times.additive_ns = sum;
  plan->times.bound_ns = fmin(search->bound_ns, sum);
  plan->times.gap = sum > 0 ? (sum - plan->times.bound_ns) / sum : 0;
}

static ft_status make_plan(prediction *p, ft_plan_kind kind, ft_error *error) {
  predicted_plan *out = &p->plan[kind];
  const ft_searched_partition *partition =
      ft_search_find(p->search, ft_plan_kind_strategy(kind));
  if (!partition || !partition->is_complete) return FT_OK;
  FT_TRY(ft_plan_make(&partition->partition, partition->workload, &p->session->target,
                      p->arena, &out->plan, error));
  fill_plan(p->search, partition, &out->plan);
  fill_groups(p, partition, &out->plan);
  FT_TRY(ft_plan_build(p->session, &out->plan, true, p->arena, &out->module, error));
  FT_TRY(ft_plan_seal(&out->plan, p->arena, error));
  out->is_present = true;
  return FT_OK;
}

// Primitive is shown, and never served. Of equals the first.
static ft_status choose(prediction *p, ft_error *error) {
  static const ft_plan_kind kinds[] = {FT_PLAN_TUNED, FT_PLAN_UNFUSED, FT_PLAN_GREEDY};
  double best_ns = INFINITY;
  for (int i = 0; i < 3; i++) {
    const predicted_plan *it = &p->plan[kinds[i]];
    if (!it->is_present || it->plan.times.additive_ns >= best_ns) continue;
    best_ns = it->plan.times.additive_ns;
    p->served = kinds[i];
  }
  if (isfinite(best_ns)) return FT_OK;
  FT_FAIL(error, FT_NOT_FOUND,
          "%u candidates were built, and no partition of %s has a kernel for each group: "
          "give it more --time or --trials",
          p->search->trials, p->model->path);
}

// ---- the store
// ----------------------------------------------------------------------------------

static ft_status save_plan(prediction *p, ft_plan_kind kind, ft_error *error) {
  if (!p->plan[kind].is_present) return FT_OK;
  int64_t *ids, id;
  FT_TRY(ft_tuning_candidates(p->session, &p->plan[kind].plan, p->arena, &ids, error));
  ft_plan_record record = {.run_id = p->run_id,
                           .binding_id = p->binding_id,
                           .target_id = p->session->target_id,
                           .role = ft_plan_kind_text(kind),
                           .is_served = kind == p->served,
                           .candidate_id = ids};
  return ft_store_plan_save(p->session->store, &p->plan[kind].plan, &record, &id, error);
}

// There are no trials that would hold the sources.
static ft_status save_artifacts(prediction *p, ft_error *error) {
  const predicted_plan *served = &p->plan[p->served];
  ft_store *store = p->session->store;
  for (uint32_t i = 0; i < served->plan.group_count; i++) {
    const ft_module *m = &served->module[i];
    ft_bytes cubin;
    ft_hash hash;
    FT_TRY(
        ft_store_artifact(store, "source", m->source, strlen(m->source), &hash, error));
    FT_TRY(ft_file_read(m->path, FT_PLAN_OBJECT_BYTES, p->arena, &cubin, error));
    FT_TRY(ft_store_artifact(store, "cubin", cubin.data, cubin.size, &hash, error));
  }
  return FT_OK;
}

static ft_status run(prediction *p, ft_predicted_runner *runner, ft_error *error) {
  FT_TRY(search(p, runner, error));
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++)
    FT_TRY(make_plan(p, (ft_plan_kind)kind, error));
  FT_TRY(choose(p, error));
  FT_TRY(save_artifacts(p, error));
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++)
    FT_TRY(save_plan(p, (ft_plan_kind)kind, error));
  return ft_tuning_refusals(p->session, p->run_id, p->search, error);
}

static ft_status fill_answer(const prediction *p, const ft_predicted_runner *runner,
                             ft_answer *out, ft_error *error) {
  *out = (ft_answer){.model = p->model->path,
                     .graph = p->model->graph,
                     .plan = &p->plan[p->served].plan,
                     .match = "exact",
                     .is_tuned = true,
                     .served = p->served,
                     .sign_p = 1,
                     .trials = runner->asked,
                     .search = p->search};
  memcpy(out->failed, runner->outcome, sizeof out->failed);
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++)
    if (p->plan[kind].is_present)
      out->predicted_ns[kind] = p->plan[kind].plan.times.additive_ns;
  return ft_session_plan_trials(p->session, out->plan, p->arena, &out->trial, error);
}

ft_status ft_session_predict(ft_session *session, const ft_model *model,
                             const ft_tune_options *options, ft_arena *arena,
                             ft_answer *out, ft_error *error) {
  if (!session->chip)
    FT_FAIL(error, FT_INVALID_ARGUMENT,
            "target %s is never timed: run --verify checks kernels in it",
            session->target.name);
  prediction p = {.session = session,
                  .model = model,
                  .options = *options,
                  .arena = arena,
                  .search = FT_NEW(arena, ft_search_result),
                  .plan = FT_NEW_ARRAY(arena, predicted_plan, FT_PLAN_KINDS)};
  FT_OOM_IF(!p.search || !p.plan, error);
  if (p.options.limit_ns == 0) p.options.limit_ns = default_limit_ns;
  FT_TRY(ft_tuning_begin(session, model, &p.options, arena, &p.binding_id, &p.run_id,
                         error));
  ft_predicted_runner runner;
  ft_status status =
      ft_predicted_runner_init(&session->builder, session->chip, &runner, error);
  runner.stop = session->stop;
  if (model->constraints)
    runner.max_workspace_bytes = model->constraints->max_workspace_bytes;
  if (status == FT_OK) status = run(&p, &runner, error);
  const char *reason = status == FT_OK            ? p.search->stop_reason
                       : status == FT_INTERRUPTED ? "interrupted"
                                                  : "failed";
  ft_error end_error;
  ft_status ended = ft_store_run_end(session->store, p.run_id, reason, &end_error);
  if (status == FT_OK && ended != FT_OK && error) *error = end_error;
  if (status == FT_OK) status = ended;
  if (status == FT_OK) status = fill_answer(&p, &runner, out, error);
  ft_predicted_runner_fini(&runner);
  return status;
}
