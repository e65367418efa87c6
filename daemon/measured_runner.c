#include "daemon/measured_runner.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "graph/inputs.h"
#include "measure/check.h"

enum { FULL_CHECK_ELEMENTS = 1 << 16 };
static const uint64_t reference_limit_ns = 2000000000u;

// Inputs and references of one workload: made once, used for all its candidates.
struct ft_bench {
  ft_arena *arena;
  ft_workload workload;  // borrowed from the search: only compared, never freed
  const ft_tensor *input;
  ft_output_check check;
};

static void bench_close(struct ft_bench *bench) {
  if (bench->arena) ft_arena_destroy(bench->arena);
  memset(bench, 0, sizeof *bench);
}

static ft_status bench_open(struct ft_bench *bench, const ft_workload *workload,
                            uint64_t seed, ft_error *error) {
  if (bench->arena && ft_workload_equal(&bench->workload, workload)) return FT_OK;
  bench_close(bench);
  bench->arena = ft_arena_create(ft_allocator_system());
  FT_OOM_IF(!bench->arena, error);
  bench->workload = *workload;
  const ft_group *group = &workload->group;
  ft_tensor *input = FT_NEW_ARRAY(bench->arena, ft_tensor, group->input_count);
  FT_OOM_IF(!input, error);
  FT_TRY(ft_group_random_inputs(group, seed, bench->arena, input, error));
  bench->input = input;
  ft_group_check *check;
  FT_TRY(ft_group_check_create(group, input, seed, FULL_CHECK_ELEMENTS,
                               reference_limit_ns, bench->arena, &check, error));
  bench->check = ft_group_check_outputs(check);
  return FT_OK;
}

uint64_t ft_tensor_key(const ft_tensor *tensor) {
  uint64_t key = ft_hash64(FT_HASH64_SEED, &tensor->dtype, sizeof tensor->dtype);
  key = ft_hash64(key, &tensor->shape, sizeof tensor->shape);
  const unsigned char *p = tensor->data;
  size_t words = tensor->bytes / 8;
  for (size_t i = 0; i < words; i++) {
    uint64_t word;
    memcpy(&word, p + 8 * i, 8);
    key = (key ^ word) * 0x9e3779b97f4a7c15ull;
    key ^= key >> 29;
  }
  return ft_hash64(key, p + 8 * words, tensor->bytes - 8 * words);
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
                           const ft_tensor *input, ft_arena *arena, ft_program *out,
                           ft_error *error) {
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
      buffer[i].key = ft_tensor_key(&input[i]);
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

// One candidate: pending row, run, outcome row. |module| may have failed to build.
static ft_status run_one(ft_measured_runner *r, const ft_measure_request *request,
                         int64_t candidate_id, const ft_module *module, ft_arena *arena,
                         ft_trial *out, ft_error *error) {
  ft_session *s = r->session;
  const ft_workload *workload = request->candidate->workload;
  int64_t trial_id;
  FT_TRY(ft_store_trial_begin(s->store, r->run_id, candidate_id, "cold", 0, &trial_id,
                              error));
  ft_trial trial;
  ft_status status = FT_OK;
  if (module->outcome != FT_OUTCOME_OK) {
    trial = trial_of_failed_build(module);
  } else {
    FT_TRY(bench_open(r->bench, workload, r->seed, error));
    ft_program program;
    FT_TRY(ft_group_program(&workload->group, module, r->bench->input, r->scratch,
                            &program, error));
    status = ft_cpu_runner_trial(s->runner, &program, &r->bench->check,
                                 request->beaten_ns, false, r->scratch, &trial, error);
    if (status == FT_INTERRUPTED) trial.outcome = FT_OUTCOME_INTERRUPTED;
    if (status != FT_OK && status != FT_INTERRUPTED) return status;
    r->ran++;
  }
  ft_error ignored;
  ft_status saved = ft_store_trial_end(s->store, trial_id, &trial, module, -1, -1,
                                       status == FT_OK ? error : &ignored);
  if (status == FT_OK) status = saved;
  ft_status kept = keep_trial(&trial, arena, out, status == FT_OK ? error : &ignored);
  return status == FT_OK ? kept : status;
}

typedef struct pending {
  uint32_t index;  // in the request list
  int64_t candidate_id;
} pending;

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
    if (known.is_known || known.is_quarantined) {
      out[i] = known.trial;
      count_outcome(r, out[i].outcome);
    } else {
      out[i] = (ft_trial){.outcome = FT_OUTCOME_INTERRUPTED, .worst = "", .error = ""};
      todo[(*todo_count)++] = (pending){i, id};
    }
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
    FT_TRY(run_one(r, &request[index], todo[i].candidate_id, &module[i], arena,
                   &out[index], error));
    count_outcome(r, out[index].outcome);
    ft_log(FT_LOG_DEBUG, "trial %s: %s, median %llu ns, %u samples %s",
           request[index].candidate->tactic, ft_outcome_text(out[index].outcome),
           (unsigned long long)out[index].time.median_ns, out[index].time.samples,
           out[index].error);
  }
  return FT_OK;
}

ft_status ft_measured_runner_init(ft_session *session, int64_t run_id, uint64_t seed,
                                  ft_measured_runner *out, ft_error *error) {
  memset(out, 0, sizeof *out);
  out->session = session;
  out->run_id = run_id;
  out->seed = seed;
  out->scratch = ft_arena_create(ft_allocator_system());
  out->bench = FT_NEW(session->arena, struct ft_bench);
  FT_OOM_IF(!out->scratch || !out->bench, error);
  return FT_OK;
}

void ft_measured_runner_fini(ft_measured_runner *runner) {
  if (runner->bench) bench_close(runner->bench);
  ft_arena_destroy(runner->scratch);
  memset(runner, 0, sizeof *runner);
}

ft_runner ft_measured_runner_table(ft_measured_runner *runner) {
  return (ft_runner){.self = runner, .measure = measure};
}
