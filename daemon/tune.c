// One tuning run: search, compare end to end, decide, store.
#include <string.h>

#include "core/clock.h"
#include "core/file.h"
#include "daemon/ceilings.h"
#include "daemon/endtoend.h"
#include "daemon/measured_runner.h"
#include "daemon/predict.h"
#include "daemon/session.h"
#include "daemon/tuning_record.h"
#include "graph/inputs.h"

static const uint64_t default_limit_ns = 60000000000u;

typedef struct tuning {
  ft_session *session;
  const ft_model *model;
  ft_tune_options options;
  ft_arena *arena;
  uint64_t started_ns;
  int64_t binding_id, run_id;
  ft_search_result *search;
  ft_contender *contender;
  ft_decision *decision;
  bool is_alone;  // the served plan's kernels were built alone
} tuning;

static uint64_t left_ns(const tuning *t) {
  uint64_t used = ft_clock_ns() - t->started_ns;
  return used < t->options.limit_ns ? t->options.limit_ns - used : 0;
}

// A fifth of the budget, at least a second, is kept for the end-to-end comparison.
static uint64_t search_limit_ns(const tuning *t) {
  uint64_t whole = t->options.limit_ns, keep = whole / 5;
  if (keep < 1000000000u) keep = 1000000000u;
  uint64_t left = left_ns(t);
  return left > keep ? left - keep : 1;
}

// A first look takes at most a four-hundredth of the budget, so that some hundred fit.
static uint64_t trial_limit_ns(const tuning *t) {
  uint64_t limit = t->options.limit_ns / 400;
  if (limit < 10000000u) return 10000000u;
  return limit < 2000000000u ? limit : 2000000000u;
}

static ft_status search(tuning *t, ft_measured_runner *measured, ft_error *error) {
  ft_runner table = ft_measured_runner_table(measured);
  ft_search_options options = {.window = t->options.window,
                               .span = t->options.span,
                               .limit_ns = search_limit_ns(t),
                               .max_trials = t->options.max_trials,
                               .seed = t->options.seed,
                               .confirm = true,
                               .predictor = ft_session_predictor(t->session),
                               .constraints = t->model->constraints,
                               .until_gap = t->options.until_gap,
                               .progress = t->options.progress,
                               .progress_ctx = t->options.progress_ctx};
  ft_status status =
      ft_search_run(t->model->graph, &t->session->target,
                    t->options.builder ? t->options.builder : &t->session->builder,
                    &table, &options, t->arena, t->search, error);
  ft_cpu_runner_limit_trials(t->session->runner, 0, 0);
  return status;
}

// A tenth over the budget (at least a second) is for what a plan needs to be stored.
static ft_deadlines deadlines_of(const tuning *t) {
  uint64_t grace = t->options.limit_ns / 10, end = t->started_ns + t->options.limit_ns;
  if (grace < 1000000000u) grace = 1000000000u;
  return (ft_deadlines){.budget_ns = end, .grace_ns = end + grace};
}

static ft_status compare(tuning *t, ft_error *error) {
  const ft_graph *graph = t->model->graph;
  ft_deadlines deadlines = deadlines_of(t);
  ft_tensor *input = FT_NEW_ARRAY(t->arena, ft_tensor, graph->input_count);
  FT_OOM_IF(!input, error);
  FT_TRY(ft_graph_random_inputs(graph, t->options.seed, t->arena, input, error));
  FT_TRY(ft_contenders_make(t->session, graph, t->search, input, &deadlines, t->arena,
                            t->contender, error));
  FT_TRY(ft_contenders_check(t->session, graph, input, t->options.seed, &deadlines,
                             t->arena, t->contender, FT_CONTENDERS, error));
  FT_TRY(ft_contenders_decide(t->session, t->contender, &deadlines, t->options.seed,
                              t->arena, t->decision, error));
  return ft_contenders_finish(t->session, t->decision->served, &deadlines, t->arena,
                              t->contender, &t->is_alone, error);
}

static void set_times(tuning *t) {
  const ft_time *time = t->decision->time;
  uint64_t now = ft_clock_unix_ns();
  for (uint32_t i = 0; i < FT_CONTENDERS; i++) {
    ft_plan_times *times = &t->contender[i].plan.times;
    times->tuned = time[t->decision->served];
    times->unfused = time[FT_PLAN_UNFUSED];
    times->primitive = time[FT_PLAN_PRIMITIVE];
    times->greedy = time[FT_PLAN_GREEDY];
    times->measured_at = now;
  }
}

// One of the next best that won is the tuned plan, and what the search put first one of
// the next best. An incumbent keeps its role.
static const char *role_of(const tuning *t, uint32_t kind) {
  uint32_t served = t->decision->served;
  bool has_overtaken = served >= FT_PLAN_KBEST;
  if (kind == FT_PLAN_INCUMBENT) return t->contender[kind].role;
  if (has_overtaken && kind == served)
    kind = FT_PLAN_TUNED;
  else if (has_overtaken && kind == FT_PLAN_TUNED)
    kind = FT_PLAN_KBEST;
  return ft_plan_kind_text((ft_plan_kind)kind);
}

// The incumbent has its row; it is written again only when it stays, for its new times.
static bool is_to_save(const tuning *t, uint32_t kind) {
  const ft_contender *c = &t->contender[kind];
  if (!c->is_present) return false;
  if (kind < FT_PLAN_KINDS) return true;
  return c->same_as == kind && (kind != FT_PLAN_INCUMBENT || kind == t->decision->served);
}

static ft_status save_plan(tuning *t, uint32_t kind, ft_error *error) {
  ft_contender *c = &t->contender[kind];
  int64_t *ids;
  FT_TRY(ft_tuning_candidates(t->session, &c->plan, t->arena, &ids, error));
  ft_plan_record record = {.run_id = t->run_id,
                           .binding_id = t->binding_id,
                           .target_id = t->session->target_id,
                           .role = role_of(t, kind),
                           .is_served = kind == t->decision->served,
                           .candidate_id = ids,
                           .time = t->decision->time[kind]};
  return ft_store_plan_save(t->session->store, &c->plan, &record, &c->plan_id, error);
}

static ft_status save_plans(tuning *t, ft_error *error) {
  const ft_contest *contest = &t->decision->contest;
  int64_t column_id[FT_CONTENDERS];
  for (uint32_t kind = 0; kind < FT_CONTENDERS; kind++)
    if (is_to_save(t, kind)) FT_TRY(save_plan(t, kind, error));
  for (uint32_t i = 0; i < contest->count; i++)
    column_id[i] = t->contender[t->decision->column[i]].plan_id;
  return ft_store_comparison_save(t->session->store, t->run_id, column_id, contest->count,
                                  contest->rounds, contest->time_ns, contest->flags,
                                  error);
}

// Sources are stored with their trials; whoever runs the plan needs the objects too.
static ft_status save_binaries(tuning *t, ft_error *error) {
  const ft_contender *served = &t->contender[t->decision->served];
  for (uint32_t i = 0; i < served->plan.group_count; i++) {
    ft_bytes object;
    ft_hash hash;
    FT_TRY(ft_file_read(served->module[i].path, FT_PLAN_OBJECT_BYTES, t->arena, &object,
                        error));
    FT_TRY(ft_store_artifact(t->session->store, "so", object.data, object.size, &hash,
                             error));
  }
  return FT_OK;
}

// At most a tenth of the budget, 2.5 s; but three rounds always.
static ft_status open_predictor(tuning *t, ft_error *error) {
  uint64_t limit_ns = t->options.limit_ns / 10;
  ft_search_progress progress = {.phase = "ceilings", .limit_ns = t->options.limit_ns};
  if (t->options.progress) t->options.progress(t->options.progress_ctx, &progress);
  if (limit_ns > 2500000000u) limit_ns = 0;
  return ft_session_predictor_open(t->session, t->run_id, limit_ns, error);
}

static ft_status run(tuning *t, ft_measured_runner *measured, ft_error *error) {
  FT_TRY(open_predictor(t, error));
  FT_TRY(search(t, measured, error));
  FT_TRY(compare(t, error));
  set_times(t);
  if (t->is_alone) FT_TRY(save_binaries(t, error));
  FT_TRY(save_plans(t, error));
  return ft_tuning_refusals(t->session, t->run_id, t->search, error);
}

static bool has_left(const ft_decision *d, uint32_t contender) {
  for (uint32_t i = 0; i < d->contest.count; i++)
    if (d->column[i] == contender) return d->contest.has_left[i];
  return false;
}

static ft_status report_comparison(const tuning *t, ft_comparison_report *out,
                                   ft_error *error) {
  const ft_decision *d = t->decision;
  ft_compared *plan = FT_NEW_ARRAY(t->arena, ft_compared, FT_CONTENDERS);
  FT_OOM_IF(!plan, error);
  *out =
      (ft_comparison_report){.plan = plan,
                             .rounds = d->contest.rounds,
                             .ended = d->contest.ended,
                             .is_open = d->verdict.is_open,
                             .has_incumbent = t->contender[FT_PLAN_INCUMBENT].is_present,
                             .incumbent_p = d->verdict.over_incumbent.p,
                             .incumbent_ratio = d->verdict.over_incumbent.ratio,
                             .is_alone = t->is_alone};
  for (uint32_t i = 0; i < FT_CONTENDERS; i++) {
    const ft_contender *c = &t->contender[i];
    bool is_listed =
        i < FT_PLAN_INCUMBENT || (i == FT_PLAN_INCUMBENT && c->plan_id) ||
        (i >= FT_PLAN_KBEST && i - FT_PLAN_KBEST < t->search->alternative_count);
    if (!is_listed) continue;
    plan[out->plan_count++] =
        (ft_compared){.kind = (ft_plan_kind)i,
                      .absence = c->is_present ? NULL : c->absence,
                      .same_as = (ft_plan_kind)c->same_as,
                      .plan = c->is_present ? c->plan.hash : (ft_hash){{0}},
                      .additive_ns = c->is_present ? c->plan.times.additive_ns : 0,
                      .time = d->time[i],
                      .has_left = c->is_present && has_left(d, c->same_as)};
  }
  return FT_OK;
}

static ft_status fill_answer(const tuning *t, const ft_measured_runner *measured,
                             ft_answer *out, ft_error *error) {
  uint32_t served = t->decision->served;
  *out =
      (ft_answer){.model = t->model->path,
                  .graph = t->model->graph,
                  .plan = &t->contender[served].plan,
                  .match = "exact",
                  .is_tuned = true,
                  .served = served < FT_PLAN_KBEST ? (ft_plan_kind)served : FT_PLAN_TUNED,
                  .sign_p = t->decision->verdict.over_base.p,
                  .trials = measured->asked,
                  .new_trials = measured->ran,
                  .search = t->search};
  memcpy(out->failed, measured->outcome, sizeof out->failed);
  return report_comparison(t, &out->comparison, error);
}

ft_status ft_session_tune(ft_session *session, const ft_model *model,
                          const ft_tune_options *options, ft_arena *arena, ft_answer *out,
                          ft_error *error) {
  memset(out, 0, sizeof *out);
  if (ft_target_is_gpu(&session->target))
    return ft_session_predict(session, model, options, arena, out, error);
  tuning t = {.session = session,
              .model = model,
              .options = *options,
              .arena = arena,
              .started_ns = ft_clock_ns(),
              .search = FT_NEW(arena, ft_search_result),
              .contender = FT_NEW_ARRAY(arena, ft_contender, FT_CONTENDERS),
              .decision = FT_NEW(arena, ft_decision)};
  FT_OOM_IF(!t.search || !t.contender || !t.decision, error);
  if (t.options.limit_ns == 0) t.options.limit_ns = default_limit_ns;
  FT_TRY(ft_tuning_begin(session, model, &t.options, arena, &t.binding_id, &t.run_id,
                         error));
  ft_measured_runner measured;
  ft_status status = ft_measured_runner_init(session, t.run_id, t.options.seed,
                                             trial_limit_ns(&t), &measured, error);
  if (status == FT_OK && model->constraints)
    measured.max_workspace_bytes = model->constraints->max_workspace_bytes;
  if (status == FT_OK) status = run(&t, &measured, error);
  const char *reason = status == FT_OK            ? t.search->stop_reason
                       : status == FT_INTERRUPTED ? "interrupted"
                                                  : "failed";
  ft_error end_error;
  ft_status ended = ft_store_run_end(session->store, t.run_id, reason, &end_error);
  if (status == FT_OK && ended != FT_OK && error) *error = end_error;
  if (status == FT_OK && ended == FT_OK) ended = fill_answer(&t, &measured, out, error);
  if (status == FT_OK && ended == FT_OK)
    ended = ft_session_plan_trials(session, out->plan, arena, &out->trial, error);
  ft_measured_runner_fini(&measured);
  return status == FT_OK ? ended : status;
}
