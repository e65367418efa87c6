#include "measure/runner.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "measure/exchange.h"
#include "measure/runner_private.h"
#include "measure/sampler.h"
#include "measure/statistics.h"

static const uint64_t default_trial_ns = 2000000000u, default_check_ns = 10000000000u;
enum { DEFAULT_MIN_SAMPLES = 5, DEFAULT_MAX_SAMPLES = 50 };

static const uint64_t mib = 1 << 20;

// ---- making ---------------------------------------------------------------------------

static uint64_t default_flush(uint64_t cache_bytes) {
  uint64_t bytes = 2 * cache_bytes;
  if (bytes < 8 * mib) return 8 * mib;
  return bytes < 128 * mib ? bytes : 128 * mib;
}

static uint64_t memory_cap(const ft_target *target) {
  uint64_t bytes = target ? target->memory_bytes : 0;
  if (bytes == 0)
    bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  return bytes / 4 * 3;
}

static void fill_defaults(ft_runner_options *o, uint64_t cache_bytes) {
  static const char *const self[] = {"/proc/self/exe", "worker", NULL};
  if (!o->worker_argv) o->worker_argv = self;
  if (!o->flush_bytes) o->flush_bytes = default_flush(cache_bytes);
  if (!o->min_samples) o->min_samples = DEFAULT_MIN_SAMPLES;
  if (!o->max_samples) o->max_samples = DEFAULT_MAX_SAMPLES;
  if (o->max_samples < o->min_samples) o->max_samples = o->min_samples;
  if (!o->trial_limit_ns) o->trial_limit_ns = default_trial_ns;
  if (!o->check_limit_ns) o->check_limit_ns = default_check_ns;
}

ft_status ft_cpu_runner_create(const ft_runner_options *options, const ft_target *target,
                               const ft_allocator *allocator, ft_cpu_runner **out,
                               ft_error *error) {
  *out = NULL;
  if (options && (options->min_samples > FT_BOARD_SAMPLES ||
                  options->max_samples > FT_BOARD_SAMPLES))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "more than %d samples", (int)FT_BOARD_SAMPLES);
  ft_cpu_runner *runner = ft_allocate(allocator, sizeof *runner, 0);
  FT_OOM_IF(!runner, error);
  *runner = (ft_cpu_runner){.allocator = allocator, .worker = {.socket = -1}};
  if (options) runner->options = *options;
  if (target) {
    runner->cache_bytes = target->cache_bytes;
    runner->l2_bytes = target->l2_bytes;
    runner->memory_bytes = target->memory_bytes;
  }
  fill_defaults(&runner->options, runner->cache_bytes);
  runner->first_check_ns = runner->options.check_limit_ns;
  runner->settings = (ft_worker_settings){.argv = runner->options.worker_argv,
                                          .threads = target ? target->threads : 0,
                                          .flush_bytes = runner->options.flush_bytes,
                                          .cap_bytes = memory_cap(target)};
  *out = runner;
  return FT_OK;
}

void ft_cpu_runner_limit_checks(ft_cpu_runner *runner, uint64_t check_limit_ns) {
  runner->options.check_limit_ns =
      check_limit_ns ? check_limit_ns : runner->first_check_ns;
}

void ft_cpu_runner_limit_trials(ft_cpu_runner *runner, uint64_t trial_limit_ns,
                                uint32_t max_samples) {
  runner->options.trial_limit_ns = trial_limit_ns ? trial_limit_ns : default_trial_ns;
  runner->options.max_samples = max_samples ? max_samples : DEFAULT_MAX_SAMPLES;
}

void ft_cpu_runner_destroy(ft_cpu_runner *runner) {
  if (!runner) return;
  ft_worker_stop(&runner->worker);
  ft_release(runner->allocator, runner);
}

// ---- the checked run ------------------------------------------------------------------

typedef struct outputs {
  ft_exchange exchange;
  uint32_t count;
  const void **data;
} outputs;

static ft_status make_outputs(const ft_program *program, ft_arena *arena, outputs *out,
                              ft_strbuf *request, ft_error *error) {
  uint64_t bytes = 0;
  out->data = FT_NEW_ARRAY(arena, const void *, program->buffer_count);
  uint64_t *offset = FT_NEW_ARRAY(arena, uint64_t, program->buffer_count);
  FT_OOM_IF(!out->data || !offset, error);
  for (uint32_t i = 0; i < program->buffer_count; i++) {
    if (program->buffer[i].kind != FT_BUFFER_OUTPUT) continue;
    offset[out->count++] = bytes;
    ft_wire_put_u64(request, bytes);
    bytes += (program->buffer[i].bytes + FT_EXCHANGE_ALIGN - 1) &
             ~(uint64_t)(FT_EXCHANGE_ALIGN - 1);
  }
  // One more line, so that an output of no bytes has an address inside.
  FT_TRY(ft_exchange_create("fusetune-outputs", bytes + FT_EXCHANGE_ALIGN, &out->exchange,
                            error));
  for (uint32_t i = 0; i < out->count; i++) out->data[i] = out->exchange.data + offset[i];
  return FT_OK;
}

// Runs the loaded program once. *out must be closed (exchange) whatever is returned.
static ft_status run_checked(ft_cpu_runner *runner, const ft_program *program,
                             uint64_t at_ns, ft_arena *arena, outputs *out,
                             ft_verdict *verdict, ft_error *error) {
  ft_strbuf request = ft_strbuf_init(arena);
  ft_frame reply;
  *out = (outputs){.exchange = {.fd = -1}};
  FT_TRY(make_outputs(program, arena, out, &request, error));
  FT_TRY(ft_runner_ask(runner, FT_FRAME_CHECK, &request, out->exchange.fd, at_ns, arena,
                       &reply, verdict, error));
  ft_runner_distrust(runner, verdict);
  return FT_OK;
}

ft_status ft_cpu_runner_run(ft_cpu_runner *runner, const ft_program *program,
                            ft_arena *arena, void **out_data, ft_outcome *out_outcome,
                            char error_text[256], ft_error *error) {
  uint64_t at_ns = 0;
  ft_verdict verdict = {.outcome = FT_OUTCOME_OK};
  *out_outcome = FT_OUTCOME_INTERRUPTED;
  error_text[0] = '\0';
  FT_TRY(ft_runner_load(runner, &program, 1, arena, &at_ns, &verdict, error));
  outputs o = {.exchange = {.fd = -1}};
  ft_status status = FT_OK;
  if (verdict.outcome == FT_OUTCOME_OK)
    status = run_checked(runner, program, at_ns, arena, &o, &verdict, error);
  for (uint32_t i = 0, n = 0;
       status == FT_OK && verdict.outcome == FT_OUTCOME_OK && i < program->buffer_count;
       i++) {
    if (program->buffer[i].kind != FT_BUFFER_OUTPUT) continue;
    uint64_t bytes = program->buffer[i].bytes;
    out_data[n] = ft_arena_alloc_aligned(arena, bytes, FT_EXCHANGE_ALIGN);
    if (!out_data[n])
      status = ft_error_set(error, FT_OUT_OF_MEMORY, "out of memory for output %u", n);
    else if (bytes)
      memcpy(out_data[n], o.data[n], bytes);
    n++;
  }
  ft_exchange_close(&o.exchange);
  FT_TRY(status);
  *out_outcome = verdict.outcome;
  memcpy(error_text, verdict.text, sizeof verdict.text);
  return FT_OK;
}

// ---- a trial --------------------------------------------------------------------------

static ft_status check_outputs(ft_cpu_runner *runner, const ft_program *program,
                               const ft_output_check *check, uint64_t at_ns,
                               ft_arena *arena, ft_trial *out, ft_verdict *verdict,
                               ft_error *error) {
  outputs o;
  ft_status status = run_checked(runner, program, at_ns, arena, &o, verdict, error);
  if (status == FT_OK && verdict->outcome == FT_OUTCOME_OK) {
    ft_comparison found;
    char worst[256] = "";
    status = check->compare(check->ctx, o.data, &found, worst, error);
    if (status == FT_OK) {
      out->max_error_ratio = found.max_ratio;
      // Written so that a NaN is wrong.
      if (!(found.max_ratio <= 1.0)) {
        verdict->outcome = FT_OUTCOME_WRONG_RESULT;
        out->worst = ft_arena_strdup(arena, worst);
        if (!out->worst)
          status = ft_error_set(error, FT_OUT_OF_MEMORY, "out of memory for a trial");
      }
    }
  } else if (status == FT_OK && verdict->outcome == FT_OUTCOME_WRONG_RESULT) {
    out->worst = ft_arena_strdup(arena, verdict->text);
    FT_OOM_IF(!out->worst, error);
  }
  ft_exchange_close(&o.exchange);
  return status;
}

// Copies what is on the board: whole samples, also after the worker died.
static ft_status keep_samples(const ft_cpu_runner *runner, ft_arena *arena, ft_trial *out,
                              ft_error *error) {
  const ft_board *board = runner->worker.board;
  uint32_t n = board ? board->sample_count : 0;
  if (n > runner->options.max_samples) n = 0;
  out->sample_ns = ft_arena_memdup(arena, board ? board->sample_ns : NULL, n * 8);
  out->sample_flags = ft_arena_memdup(arena, board ? board->sample_flags : NULL, n);
  FT_OOM_IF(!out->sample_ns || !out->sample_flags, error);
  out->sample_count = n;
  out->time = ft_median_unflagged(out->sample_ns, out->sample_flags, n, arena);
  return FT_OK;
}

static void judge(const ft_frame *reply, ft_trial *out, ft_stop *stop,
                  ft_verdict *verdict) {
  ft_wire_reader in = ft_wire_read(reply->data, reply->bytes);
  *stop = (ft_stop)ft_wire_u32(&in);
  uint32_t samples = ft_wire_u32(&in);
  if (!ft_wire_done(&in) || samples != out->sample_count ||
      (unsigned)*stop >= FT_STOP_COUNT) {
    *verdict = (ft_verdict){.outcome = FT_OUTCOME_CRASH,
                            .is_damaged = true,
                            .text = "the worker broke the protocol: a malformed reply"};
  } else if (out->time.median_ns == 0) {
    verdict->outcome = FT_OUTCOME_UNSTABLE;
    snprintf(verdict->text, sizeof verdict->text, "no usable median of %u samples",
             samples);
  } else if (*stop == FT_STOP_BEATEN) {
    verdict->outcome = FT_OUTCOME_BEATEN;
  }
}

static ft_status time_program(ft_cpu_runner *runner, uint64_t beaten_ns, bool is_warm,
                              ft_arena *arena, ft_trial *out, ft_stop *stop,
                              ft_verdict *verdict, ft_error *error) {
  ft_strbuf request = ft_strbuf_init(arena);
  ft_frame reply;
  ft_wire_put_u8(&request, is_warm);
  ft_wire_put_u32(&request, runner->options.min_samples);
  ft_wire_put_u32(&request, runner->options.max_samples);
  ft_wire_put_u64(&request, runner->options.trial_limit_ns);
  ft_wire_put_u64(&request, beaten_ns);
  // The worker stops itself at the trial's limit. A kernel that hangs hung in the checked
  // run; one that is late here is starved more often than wrong, so it gets as long again
  // as a checked run before it is blamed.
  uint64_t limit = runner->options.trial_limit_ns,
           grace_ns = runner->options.check_limit_ns;
  uint64_t at_ns =
      ft_runner_until(limit < UINT64_MAX - grace_ns ? limit + grace_ns : UINT64_MAX);
  FT_TRY(ft_runner_ask(runner, FT_FRAME_TIME, &request, -1, at_ns, arena, &reply, verdict,
                       error));
  FT_TRY(keep_samples(runner, arena, out, error));
  if (verdict->outcome == FT_OUTCOME_OK) judge(&reply, out, stop, verdict);
  if (verdict->outcome == FT_OUTCOME_WRONG_RESULT) {
    out->worst = ft_arena_strdup(arena, verdict->text);
    FT_OOM_IF(!out->worst, error);
  }
  ft_runner_distrust(runner, verdict);
  return FT_OK;
}

static uint32_t most_threads(const ft_cpu_runner *runner, const ft_program *program) {
  uint32_t threads = 1;
  for (uint32_t i = 0; i < program->step_count; i++)
    if (program->step[i].module->threads > threads)
      threads = program->step[i].module->threads;
  if (runner->worker.threads && threads > runner->worker.threads)
    threads = runner->worker.threads;
  return threads;
}

static double load_average(void) {
  double load = 0.0;
  FILE *file = fopen("/proc/loadavg", "re");
  if (!file) return 0.0;
  if (fscanf(file, "%lf", &load) != 1) load = 0.0;
  fclose(file);
  return load;
}

static const char *env_json(const ft_cpu_runner *runner, const ft_program *program,
                            bool is_warm, ft_stop stop, ft_arena *arena) {
  return ft_arena_printf(
      arena,
      "{\"cache_bytes\":%llu,\"flush_bytes\":%llu,\"load\":%.2f,\"pool\":%u,"
      "\"stop\":\"%s\",\"threads\":%u}",
      (unsigned long long)runner->cache_bytes,
      (unsigned long long)(is_warm ? 0 : runner->options.flush_bytes), load_average(),
      runner->worker.threads, stop < FT_STOP_COUNT ? ft_stop_text(stop) : "",
      most_threads(runner, program));
}

static ft_status run_trial(ft_cpu_runner *runner, const ft_program *program,
                           const ft_output_check *check, uint64_t beaten_ns, bool is_warm,
                           ft_arena *arena, ft_trial *out, ft_stop *stop,
                           ft_verdict *verdict, ft_error *error) {
  uint64_t at_ns = 0;
  FT_TRY(ft_runner_load(runner, &program, 1, arena, &at_ns, verdict, error));
  if (verdict->outcome == FT_OUTCOME_OK && check)
    FT_TRY(check_outputs(runner, program, check, at_ns, arena, out, verdict, error));
  if (verdict->outcome == FT_OUTCOME_OK)
    FT_TRY(time_program(runner, beaten_ns, is_warm, arena, out, stop, verdict, error));
  return FT_OK;
}

ft_status ft_cpu_runner_trial(ft_cpu_runner *runner, const ft_program *program,
                              const ft_output_check *check, uint64_t beaten_ns,
                              bool is_warm, ft_arena *arena, ft_trial *out,
                              ft_error *error) {
  *out = (ft_trial){.outcome = FT_OUTCOME_INTERRUPTED,
                    .max_error_ratio = -1.0,
                    .worst = "",
                    .error = "",
                    .env = "{}",
                    .limit_ns = runner->options.trial_limit_ns,
                    .started_at = ft_clock_unix_ns()};
  ft_stop stop = FT_STOP_COUNT;
  ft_verdict verdict = {.outcome = FT_OUTCOME_OK};
  ft_status status = run_trial(runner, program, check, beaten_ns, is_warm, arena, out,
                               &stop, &verdict, error);
  out->ended_at = ft_clock_unix_ns();
  FT_TRY(status);
  const char *env = env_json(runner, program, is_warm, stop, arena);
  const char *text = ft_arena_strdup(arena, verdict.text);
  FT_OOM_IF(!env || !text, error);
  out->outcome = verdict.outcome;
  out->env = env;
  out->error = text;
  return FT_OK;
}
