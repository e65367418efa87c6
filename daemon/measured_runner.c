#include "daemon/measured_runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "daemon/ceilings.h"
#include "daemon/input_cache.h"
#include "measure/check.h"

enum {
  FULL_CHECK_ELEMENTS = 1 << 16,
  FIRST_LOOK_SAMPLES = 7,
  CONFIRMATION_SAMPLES = 50,
  CONFIRMATION_LOOKS = 5,  // times the limit of a first look
  RETRY_PATIENCE = 4,      // times the usual limits, after a timeout in another run
};

// Inputs and references of one workload: made once, used for all its candidates.
struct ft_bench {
  ft_arena *arena;
  ft_workload workload;  // borrowed from the search: only compared, never freed
  ft_input_cache inputs;
  const ft_tensor *input;
  const uint64_t *key;  // of each input
  ft_output_check check;
};

static void bench_clear(struct ft_bench *bench) {
  ft_arena_destroy(bench->arena);
  bench->arena = NULL;
}

static ft_status bench_inputs(struct ft_bench *bench, const ft_group *group,
                              uint64_t seed, ft_error *error) {
  ft_tensor *input = FT_NEW_ARRAY(bench->arena, ft_tensor, group->input_count);
  uint64_t *key = FT_NEW_ARRAY(bench->arena, uint64_t, group->input_count);
  ft_input_recipe *recipe =
      FT_NEW_ARRAY(bench->arena, ft_input_recipe, group->input_count);
  FT_OOM_IF(!input || !key || !recipe, error);
  FT_TRY(ft_group_input_recipes(group, seed, bench->arena, recipe, error));
  ft_input_cache_make_room(&bench->inputs, bench->workload.read_bytes);
  for (uint32_t i = 0; i < group->input_count; i++) {
    uint32_t value = group->input[i];
    if (recipe[i].elements >= 0) {
      FT_TRY(ft_input_cache_get(&bench->inputs, &recipe[i],
                                &group->graph->value[value].shape, &input[i], &key[i],
                                error));
      continue;
    }
    FT_TRY(ft_graph_constant_data(group->graph, value, bench->arena, &input[i], error));
    key[i] = ft_content_key(input[i].data, input[i].bytes);
  }
  bench->input = input;
  bench->key = key;
  return FT_OK;
}

static ft_status bench_open(struct ft_bench *bench, const ft_workload *workload,
                            uint64_t seed, uint64_t reference_limit_ns, ft_error *error) {
  if (bench->arena && ft_workload_equal(&bench->workload, workload)) return FT_OK;
  bench_clear(bench);
  bench->arena = ft_arena_create(ft_allocator_system());
  FT_OOM_IF(!bench->arena, error);
  bench->workload = *workload;
  ft_group_check *check;
  ft_status status = bench_inputs(bench, &workload->group, seed, error);
  if (status == FT_OK)
    status =
        ft_group_check_create(&workload->group, bench->input, seed, FULL_CHECK_ELEMENTS,
                              reference_limit_ns, bench->arena, &check, error);
  if (status == FT_OK)
    bench->check = ft_group_check_outputs(check);
  else
    bench_clear(bench);
  return status;
}

static ft_program_buffer program_buffer(const ft_graph *graph, uint32_t value) {
  const ft_value *v = &graph->value[value];
  return (ft_program_buffer){
      .kind = FT_BUFFER_OUTPUT,
      .dtype = v->dtype,
      .shape = v->shape,
      .bytes = (uint64_t)ft_shape_elements(&v->shape) * ft_dtype_bytes(v->dtype),
      .offset = UINT64_MAX};
}

ft_status ft_group_program(const ft_group *group, const ft_module *module,
                           const ft_tensor *input, const uint64_t *key, ft_arena *arena,
                           ft_program *out, ft_error *error) {
  uint32_t count = group->input_count + group->output_count;
  ft_program_buffer *buffer = FT_NEW_ARRAY(arena, ft_program_buffer, count);
  ft_program_step *step = FT_NEW(arena, ft_program_step);
  uint32_t *argument = FT_NEW_ARRAY(arena, uint32_t, count);
  FT_OOM_IF(!buffer || !step || !argument, error);
  for (uint32_t i = 0; i < count; i++) {
    bool is_input = i < group->input_count;
    buffer[i] = program_buffer(
        group->graph, is_input ? group->input[i] : group->output[i - group->input_count]);
    if (is_input) {
      buffer[i].kind = FT_BUFFER_INPUT;
      buffer[i].data = input[i].data;
      buffer[i].key = key[i];
    }
    argument[i] = i;
  }
  *step =
      (ft_program_step){.module = module, .argument_count = count, .argument = argument};
  *out = (ft_program){.name = "candidate",
                      .buffer_count = count,
                      .step_count = 1,
                      .buffer = buffer,
                      .step = step};
  return FT_OK;
}

static void count_outcome(ft_measured_runner *r, ft_outcome outcome) {
  r->asked++;
  r->outcome[outcome]++;
}

// Copies what must outlive the batch into |arena|.
static ft_status keep_trial(const ft_trial *from, ft_arena *arena, ft_trial *out,
                            ft_error *error) {
  *out = *from;
  out->worst = ft_arena_strdup(arena, from->worst ? from->worst : "");
  out->error = ft_arena_strdup(arena, from->error ? from->error : "");
  out->env = ft_arena_strdup(arena, from->env ? from->env : "{}");
  out->sample_ns =
      ft_arena_memdup(arena, from->sample_ns, from->sample_count * sizeof(uint64_t));
  out->sample_flags = ft_arena_memdup(arena, from->sample_flags, from->sample_count);
  FT_OOM_IF(
      !out->worst || !out->error || !out->env || !out->sample_ns || !out->sample_flags,
      error);
  return FT_OK;
}

static ft_trial trial_of_failed_build(const ft_module *module) {
  uint64_t now = ft_clock_unix_ns();
  return (ft_trial){.outcome = module->outcome,
                    .max_error_ratio = -1,
                    .worst = "",
                    .error = module->log,
                    .started_at = now,
                    .ended_at = now,
                    .env = "{}"};
}

static uint64_t limit_of(const ft_measured_runner *r, bool is_confirmation) {
  return is_confirmation ? CONFIRMATION_LOOKS * r->trial_limit_ns : r->trial_limit_ns;
}

static void limit_trial(const ft_measured_runner *r, bool is_confirmation,
                        bool is_retry) {
  ft_session *s = r->session;
  ft_cpu_runner_limit_trials(s->runner, limit_of(r, is_confirmation),
                             is_confirmation ? CONFIRMATION_SAMPLES : FIRST_LOOK_SAMPLES);
  ft_cpu_runner_limit_checks(s->runner,
                             is_retry ? RETRY_PATIENCE * s->check_limit_ns : 0);
}

// Any time will do for a first look; a confirmation is answered by a time that was taken
// under as generous a limit.
static bool is_answered(const ft_measured_runner *r, ft_known_trial *known,
                        bool is_confirmation) {
  if (!known->is_quarantined && known->timeout_run == r->run_id) {
    known->trial.outcome = FT_OUTCOME_TIMEOUT;  // once is enough in one run
    return true;
  }
  if (!known->is_known) return false;
  known->trial.is_confirmation = known->trial.limit_ns >= limit_of(r, true);
  return !is_confirmation || known->trial.outcome != FT_OUTCOME_OK ||
         known->trial.is_confirmation;
}

// Adds to |env| which inputs were constants of the model, and the key of their bytes:
// with the model at hand, `repro` gives a kernel the very inputs that it was measured on.
static const char *note_constants(const ft_measured_runner *r, const ft_group *group,
                                  const char *env) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < group->input_count; i++) {
    const ft_value *v = &group->graph->value[group->input[i]];
    char key[17];
    if (v->role != FT_ROLE_CONSTANT) continue;
    snprintf(key, sizeof key, "%016llx", (unsigned long long)r->bench->key[i]);
    json_array_append_new(list, json_pack("{s:I, s:s%, s:s}", "input", (json_int_t)i,
                                          "name", v->name, strlen(v->name), "key", key));
  }
  json_t *all = json_array_size(list) ? json_loads(env, 0, NULL) : NULL;
  json_object_set(all, "constants", list);
  const char *text = ft_json_text(all, r->scratch);
  json_decref(all);
  json_decref(list);
  return text ? text : env;
}
typedef struct pending {
  uint32_t index;  // in the request list
  int64_t candidate_id;
  bool is_retry;     // it timed out in another run
  bool is_answered;  // but whether it may be used is known when it is built
} pending;

// One candidate: pending row, run, outcome row. |module| may have failed to build.
static ft_status run_one(ft_measured_runner *r, const ft_measure_request *request,
                         const pending *todo, const ft_module *module, ft_arena *arena,
                         ft_trial *out, ft_error *error) {
  ft_session *s = r->session;
  const ft_workload *workload = request->candidate->workload;
  int64_t trial_id;
  FT_TRY(ft_store_trial_begin(s->store, r->run_id, todo->candidate_id, "cold",
                              limit_of(r, request->is_confirmation), &trial_id, error));
  ft_trial trial;
  ft_status status = FT_OK;
  if (module->outcome != FT_OUTCOME_OK) {
    trial = trial_of_failed_build(module);
  } else {
    FT_TRY(bench_open(r->bench, workload, r->seed, r->trial_limit_ns, error));
    limit_trial(r, request->is_confirmation, todo->is_retry);
    ft_program program;
    FT_TRY(ft_group_program(&workload->group, module, r->bench->input, r->bench->key,
                            r->scratch, &program, error));
    status = ft_cpu_runner_trial(s->runner, &program, &r->bench->check,
                                 request->beaten_ns, false, r->scratch, &trial, error);
    ft_cpu_runner_limit_checks(s->runner, 0);
    if (status == FT_INTERRUPTED) trial.outcome = FT_OUTCOME_INTERRUPTED;
    if (status != FT_OK && status != FT_INTERRUPTED) return status;
    trial.env = note_constants(r, &workload->group, trial.env);
    r->ran++;
  }
  ft_error ignored;
  ft_status saved = ft_store_trial_end(
      s->store, trial_id, &trial, module, ft_session_predicted_ns(s, request->candidate),
      ft_session_bound_ns(s, request->candidate->workload),
      status == FT_OK ? error : &ignored);
  if (status == FT_OK) status = saved;
  ft_status kept = keep_trial(&trial, arena, out, status == FT_OK ? error : &ignored);
  return status == FT_OK ? kept : status;
}

static bool is_too_large(const ft_measured_runner *r, const ft_module *module) {
  return r->max_workspace_bytes && module->outcome == FT_OUTCOME_OK &&
         module->workspace_bytes > r->max_workspace_bytes;
}

static ft_trial trial_of_refused(const ft_measured_runner *r, const ft_module *module,
                                 ft_arena *arena) {
  const char *text =
      ft_arena_printf(arena, "needs %llu bytes of workspace, the limit is %llu",
                      (unsigned long long)module->workspace_bytes,
                      (unsigned long long)r->max_workspace_bytes);
  return (ft_trial){.outcome = FT_OUTCOME_RESOURCE_LIMIT,
                    .max_error_ratio = -1,
                    .worst = "",
                    .error = text ? text : "needs too much workspace",
                    .env = "{}"};
}

// Answers what the store knows; lists the rest in |todo|.
static ft_status split_known(ft_measured_runner *r, const ft_measure_request *request,
                             uint32_t count, ft_arena *arena, ft_trial *out,
                             pending *todo, uint32_t *todo_count, ft_error *error) {
  ft_session *s = r->session;
  *todo_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    int64_t id;
    FT_TRY(ft_store_candidate(s->store, request[i].candidate, s->target_id,
                              FT_CODEGEN_VERSION, &id, error));
    ft_known_trial known;
    FT_TRY(ft_store_find_trial(s->store, id, "cold", arena, &known, error));
    bool is_known = is_answered(r, &known, request[i].is_confirmation);
    if (is_known && !r->max_workspace_bytes) {
      out[i] = known.trial;
      count_outcome(r, out[i].outcome);
      FT_TRY(ft_session_watch_bound(s, request[i].candidate, &out[i], error));
      continue;
    }
    out[i] = (ft_trial){.outcome = FT_OUTCOME_INTERRUPTED, .worst = "", .error = ""};
    if (is_known) out[i] = known.trial;
    todo[(*todo_count)++] = (pending){i, id, known.timeout_run != 0, is_known};
  }
  return FT_OK;
}

static ft_status build_all(ft_measured_runner *r, const ft_measure_request *request,
                           const pending *todo, uint32_t count, ft_module *module,
                           ft_error *error) {
  ft_candidate *candidate = FT_NEW_ARRAY(r->scratch, ft_candidate, count);
  FT_OOM_IF(!candidate, error);
  for (uint32_t i = 0; i < count; i++) candidate[i] = *request[todo[i].index].candidate;
  const ft_builder *b = &r->session->builder;
  return b->build(b->self, candidate, count, false, r->scratch, module, error);
}

static ft_status measure(void *self, const ft_measure_request *request, uint32_t count,
                         ft_arena *arena, ft_trial *out, ft_error *error) {
  ft_measured_runner *r = self;
  ft_arena_reset(r->scratch);
  pending *todo = FT_NEW_ARRAY(r->scratch, pending, count);
  ft_module *module = FT_NEW_ARRAY(r->scratch, ft_module, count);
  FT_OOM_IF(!todo || !module, error);
  uint32_t todo_count;
  FT_TRY(split_known(r, request, count, arena, out, todo, &todo_count, error));
  if (todo_count == 0) return FT_OK;
  FT_TRY(build_all(r, request, todo, todo_count, module, error));
  for (uint32_t i = 0; i < todo_count; i++) {
    if (r->session->stop && *r->session->stop)
      FT_FAIL(error, FT_INTERRUPTED, "interrupted; everything measured is saved");
    uint32_t index = todo[i].index;
    if (is_too_large(r, &module[i])) {
      out[index] = trial_of_refused(r, &module[i], arena);
    } else if (!todo[i].is_answered) {
      FT_TRY(
          run_one(r, &request[index], &todo[i], &module[i], arena, &out[index], error));
    }
    count_outcome(r, out[index].outcome);
    FT_TRY(
        ft_session_watch_bound(r->session, request[index].candidate, &out[index], error));
    ft_log(FT_LOG_DEBUG, "trial %s: %s, median %llu ns, %u samples %s",
           request[index].candidate->tactic, ft_outcome_text(out[index].outcome),
           (unsigned long long)out[index].time.median_ns, out[index].time.samples,
           out[index].error);
  }
  return FT_OK;
}

ft_status ft_measured_runner_init(ft_session *session, int64_t run_id, uint64_t seed,
                                  uint64_t trial_limit_ns, ft_measured_runner *out,
                                  ft_error *error) {
  memset(out, 0, sizeof *out);
  out->trial_limit_ns = trial_limit_ns;
  out->session = session;
  out->run_id = run_id;
  out->seed = seed;
  out->scratch = ft_arena_create(ft_allocator_system());
  out->bench = FT_NEW(session->arena, struct ft_bench);
  FT_OOM_IF(!out->scratch || !out->bench, error);
  ft_input_cache_init(&out->bench->inputs, session->target.memory_bytes / 8);
  return FT_OK;
}

void ft_measured_runner_fini(ft_measured_runner *runner) {
  if (runner->bench) {
    bench_clear(runner->bench);
    ft_input_cache_fini(&runner->bench->inputs);
  }
  ft_arena_destroy(runner->scratch);
  memset(runner, 0, sizeof *runner);
}

ft_runner ft_measured_runner_table(ft_measured_runner *runner) {
  return (ft_runner){.self = runner, .measure = measure};
}
