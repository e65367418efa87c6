#include "daemon/stored_runner.h"

// Whether it needs too much workspace is known once it is built (or found in the cache).
static ft_status check_workspace(ft_stored_runner *r, const ft_candidate *candidate,
                                 ft_arena *arena, ft_trial *trial, ft_error *error) {
  if (!r->max_workspace_bytes || trial->outcome != FT_OUTCOME_OK) return FT_OK;
  const ft_builder *b = &r->session->builder;
  ft_module module;
  FT_TRY(b->build(b->self, candidate, 1, false, arena, &module, error));
  if (module.workspace_bytes > r->max_workspace_bytes)
    *trial = (ft_trial){.outcome = FT_OUTCOME_RESOURCE_LIMIT,
                        .worst = "",
                        .error = "needs more workspace than the limit",
                        .env = "{}"};
  return FT_OK;
}

static ft_status answer(ft_stored_runner *r, const ft_candidate *candidate,
                        ft_arena *arena, ft_trial *out, ft_error *error) {
  int64_t id;
  ft_known_trial known;
  *out = (ft_trial){.outcome = FT_OUTCOME_PENDING};
  FT_TRY(ft_store_find_candidate(r->session->store, candidate, r->target_id,
                                 FT_CODEGEN_VERSION, &id, error));
  if (!id) return FT_OK;
  FT_TRY(ft_store_find_trial(r->session->store, id, "cold", arena, &known, error));
  if (!known.is_known) return FT_OK;
  *out = known.trial;
  return check_workspace(r, candidate, arena, out, error);
}

static ft_status measure(void *self, const ft_measure_request *request, uint32_t count,
                         ft_arena *arena, ft_trial *out, ft_error *error) {
  ft_stored_runner *r = self;
  for (uint32_t i = 0; i < count; i++) {
    if (r->session->stop && *r->session->stop)
      FT_FAIL(error, FT_INTERRUPTED, "interrupted; nothing was measured");
    FT_TRY(answer(r, request[i].candidate, arena, &out[i], error));
    r->asked++;
    if (out[i].outcome == FT_OUTCOME_PENDING) continue;
    r->answered++;
    r->outcome[out[i].outcome]++;
  }
  return FT_OK;
}

ft_runner ft_stored_runner_table(ft_stored_runner *runner) {
  return (ft_runner){.self = runner, .measure = measure};
}
