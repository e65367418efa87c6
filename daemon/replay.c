// A search over what the store knows: no device, no comparison, nothing written.
#include <string.h>

#include "daemon/endtoend.h"
#include "daemon/stored_runner.h"
#include "graph/inputs.h"

// The tuned contender's plan, its kernels built alone, as a served plan has them.
static ft_status make_plan(ft_session *session, const ft_model *model,
                           const ft_search_result *search, uint64_t seed, ft_arena *arena,
                           const ft_plan **out, ft_error *error) {
  const ft_graph *graph = model->graph;
  // Only the plans that are never left out: nothing is compared here.
  static const ft_deadlines deadlines = {.budget_ns = 0, .grace_ns = UINT64_MAX};
  ft_contender *contender = FT_NEW_ARRAY(arena, ft_contender, FT_CONTENDERS);
  bool is_alone;
  ft_tensor *input = FT_NEW_ARRAY(arena, ft_tensor, graph->input_count);
  FT_OOM_IF(!contender || !input, error);
  FT_TRY(ft_graph_random_inputs(graph, seed, arena, input, error));
  FT_TRY(ft_contenders_make(session, graph, search, input, &deadlines, arena, contender,
                            error));
  FT_TRY(ft_contenders_finish(session, FT_PLAN_TUNED, &deadlines, arena, contender,
                              &is_alone, error));
  *out = &contender[FT_PLAN_TUNED].plan;
  return FT_OK;
}

static ft_status check_complete(const ft_session *session, const ft_model *model,
                                const ft_search_result *search, ft_error *error) {
  const ft_searched_partition *best =
      ft_search_find(search, ft_plan_kind_strategy(FT_PLAN_TUNED));
  if (best && best->is_complete) return FT_OK;
  FT_FAIL(error, FT_NOT_FOUND,
          "%s has times for %u of the %u groups of %s, and they divide no whole graph",
          session->store_path, search->measured_count, search->group_count, model->path);
}

static void fill_answer(const ft_model *model, const ft_stored_runner *runner,
                        const ft_search_result *search, const ft_plan *plan,
                        ft_answer *out) {
  *out = (ft_answer){.model = model->path,
                     .graph = model->graph,
                     .plan = plan,
                     .match = "exact",
                     .is_tuned = true,
                     .is_replayed = true,
                     .served = FT_PLAN_TUNED,
                     .sign_p = 1,
                     .trials = runner->answered,
                     .search = search};
  memcpy(out->failed, runner->outcome, sizeof out->failed);
}

ft_status ft_session_replay(ft_session *session, const ft_model *model,
                            const ft_tune_options *options, ft_arena *arena,
                            ft_answer *out, ft_error *error) {
  memset(out, 0, sizeof *out);
  if (ft_target_is_gpu(&session->target))
    FT_FAIL(error, FT_INVALID_ARGUMENT,
            "the store has no times of target %s: tune predicts", session->target.name);
  ft_stored_runner runner = {.session = session};
  if (model->constraints)
    runner.max_workspace_bytes = model->constraints->max_workspace_bytes;
  FT_TRY(ft_store_target(session->store, &session->target, &runner.target_id, error));
  ft_runner table = ft_stored_runner_table(&runner);
  ft_search_options search_options = {.window = options->window,
                                      .span = options->span,
                                      .seed = options->seed,
                                      .batch = 256,
                                      .is_exhaustive = true,
                                      .constraints = model->constraints,
                                      .progress = options->progress,
                                      .progress_ctx = options->progress_ctx};
  ft_search_result *search = FT_NEW(arena, ft_search_result);
  FT_OOM_IF(!search, error);
  FT_TRY(ft_search_run(model->graph, &session->target, &session->builder, &table,
                       &search_options, arena, search, error));
  FT_TRY(check_complete(session, model, search, error));
  const ft_plan *plan;
  FT_TRY(make_plan(session, model, search, options->seed, arena, &plan, error));
  fill_answer(model, &runner, search, plan, out);
  return ft_session_plan_trials(session, plan, arena, &out->trial, error);
}
