#include "daemon/tuning_record.h"

#include <unistd.h>

static const char *request_json(const ft_model *model, const ft_tune_options *options,
                                ft_arena *arena) {
  json_t *o = json_pack("{s:s, s:s, s:I, s:I, s:i, s:i}", "model", model->path, "dims",
                        model->graph->dims_json, "limit_ns",
                        (json_int_t)options->limit_ns, "seed", (json_int_t)options->seed,
                        "window", (int)options->window, "span", (int)options->span);
  const char *text = ft_json_text(o, arena);
  json_decref(o);
  return text;
}

ft_status ft_tuning_begin(ft_session *s, const ft_model *model,
                          const ft_tune_options *options, ft_arena *arena,
                          int64_t *out_binding_id, int64_t *out_run_id, ft_error *error) {
  int64_t graph_id;
  FT_TRY(ft_store_target(s->store, &s->target, &s->target_id, error));
  FT_TRY(ft_store_graph(s->store, model->graph, &graph_id, out_binding_id, error));
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const char *request = request_json(model, options, arena);
  FT_OOM_IF(!request, error);
  ft_run_record run = {.binding_id = *out_binding_id,
                       .target_id = s->target_id,
                       .request = request,
                       .seed = options->seed,
                       .version = FT_VERSION,
                       .host = host};
  return ft_store_run_begin(s->store, &run, out_run_id, error);
}

ft_status ft_tuning_candidates(ft_session *s, const ft_plan *plan, ft_arena *arena,
                               int64_t **out, ft_error *error) {
  *out = FT_NEW_ARRAY(arena, int64_t, plan->group_count);
  FT_OOM_IF(!*out, error);
  for (uint32_t i = 0; i < plan->group_count; i++) {
    ft_candidate c = {.workload = &plan->group[i].workload,
                      .target = &s->target,
                      .tactic = plan->group[i].tactic,
                      .schedule = plan->group[i].schedule};
    FT_TRY(ft_store_candidate(s->store, &c, s->target_id, FT_CODEGEN_VERSION, &(*out)[i],
                              error));
  }
  return FT_OK;
}

ft_status ft_tuning_refusals(ft_session *s, int64_t run_id,
                             const ft_search_result *search, ft_error *error) {
  for (uint32_t i = 0; i < search->refusal_count; i++) {
    const ft_refusal *r = &search->refusal[i];
    FT_TRY(ft_store_refusal_save(s->store, run_id, r->producer, r->consumer, r->rule,
                                 r->detail, error));
  }
  return FT_OK;
}
