#include "daemon/predicted_runner.h"

#include <string.h>

#include "core/log.h"

static ft_trial trial_of(ft_outcome outcome, const char *text) {
  return (ft_trial){
      .outcome = outcome, .max_error_ratio = -1, .worst = "", .error = text, .env = "{}"};
}

static ft_status refuse_workspace(const ft_predicted_runner *r, const ft_module *module,
                                  ft_arena *arena, ft_trial *out, ft_error *error) {
  const char *text =
      ft_arena_printf(arena, "needs %llu bytes of workspace, the limit is %llu",
                      (unsigned long long)module->workspace_bytes,
                      (unsigned long long)r->max_workspace_bytes);
  FT_OOM_IF(!text, error);
  *out = trial_of(FT_OUTCOME_RESOURCE_LIMIT, text);
  return FT_OK;
}

static ft_status judge(ft_predicted_runner *r, const ft_candidate *candidate,
                       const ft_module *module, ft_arena *arena, ft_trial *out,
                       ft_error *error) {
  if (module->outcome != FT_OUTCOME_OK) {
    const char *text = ft_arena_strdup(arena, module->log);
    FT_OOM_IF(!text, error);
    *out = trial_of(module->outcome, text);
    return FT_OK;
  }
  if (r->max_workspace_bytes && module->workspace_bytes > r->max_workspace_bytes)
    return refuse_workspace(r, module, arena, out, error);
  ft_gpu_prediction p = ft_gpu_predict(r->chip, candidate->workload, module, r->scratch);
  *out = trial_of(FT_OUTCOME_OK, "");
  out->predicted_ns = p.ns;
  ft_log(FT_LOG_DEBUG, "predicted %s: %.0f ns by %s, %lld registers, occupancy %.2f",
         candidate->tactic, p.ns, ft_gpu_roof_text(p.binding),
         (long long)module->facts.registers, module->facts.occupancy);
  return FT_OK;
}

static ft_status measure(void *self, const ft_measure_request *request, uint32_t count,
                         ft_arena *arena, ft_trial *out, ft_error *error) {
  ft_predicted_runner *r = self;
  ft_arena_reset(r->scratch);
  for (uint32_t i = 0; i < count; i++) out[i] = trial_of(FT_OUTCOME_INTERRUPTED, "");
  if (r->stop && *r->stop) FT_FAIL(error, FT_INTERRUPTED, "interrupted");
  ft_candidate *candidate = FT_NEW_ARRAY(r->scratch, ft_candidate, count);
  ft_module *module = FT_NEW_ARRAY(r->scratch, ft_module, count);
  FT_OOM_IF(!candidate || !module, error);
  for (uint32_t i = 0; i < count; i++) candidate[i] = *request[i].candidate;
  FT_TRY(r->builder.build(r->builder.self, candidate, count, true, r->scratch, module,
                          error));
  for (uint32_t i = 0; i < count; i++) {
    FT_TRY(judge(r, &candidate[i], &module[i], arena, &out[i], error));
    r->asked++;
    r->outcome[out[i].outcome]++;
  }
  return FT_OK;
}

ft_status ft_predicted_runner_init(const ft_builder *builder, const ft_chip *chip,
                                   ft_predicted_runner *out, ft_error *error) {
  memset(out, 0, sizeof *out);
  out->builder = *builder;
  out->chip = chip;
  out->scratch = ft_arena_create(ft_allocator_system());
  FT_OOM_IF(!out->scratch, error);
  return FT_OK;
}

void ft_predicted_runner_fini(ft_predicted_runner *runner) {
  ft_arena_destroy(runner->scratch);
  memset(runner, 0, sizeof *runner);
}

ft_runner ft_predicted_runner_table(ft_predicted_runner *runner) {
  return (ft_runner){.self = runner, .measure = measure};
}
