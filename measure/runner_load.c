// From programs to a worker that holds them: the LOAD and FILL requests.
#include <string.h>

#include "core/clock.h"
#include "measure/exchange.h"
#include "measure/program_wire.h"
#include "measure/runner_private.h"

uint64_t ft_runner_until(uint64_t ns) {
  uint64_t now = ft_clock_ns();
  return ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
}

ft_status ft_runner_ready(ft_cpu_runner *runner, ft_error *error) {
  if (runner->options.stop && *runner->options.stop)
    FT_FAIL(error, FT_INTERRUPTED, "stopped");
  // One that died while nobody asked it anything must not be blamed on the next program.
  if (ft_worker_is_alive(&runner->worker)) return FT_OK;
  ft_worker_kill(&runner->worker);
  return ft_worker_start(&runner->settings, runner->options.stop, &runner->worker, error);
}

ft_status ft_runner_ask(ft_cpu_runner *runner, ft_frame_type type,
                        const ft_strbuf *payload, int pass_fd, uint64_t at_ns,
                        ft_arena *arena, ft_frame *reply, ft_verdict *verdict,
                        ft_error *error) {
  FT_OOM_IF(payload->failed, error);
  if (payload->length > FT_FRAME_MAX_BYTES)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "a request of %zu bytes is over the cap of %d",
            payload->length, (int)FT_FRAME_MAX_BYTES);
  ft_deadline deadline = {at_ns, runner->options.stop};
  ft_frame_result r = ft_worker_ask(&runner->worker, type, payload, pass_fd, &deadline,
                                    arena, reply, verdict);
  if (r == FT_FRAME_INTERRUPTED) FT_FAIL(error, FT_INTERRUPTED, "stopped during a trial");
  FT_OOM_IF(r == FT_FRAME_NO_MEMORY, error);
  return FT_OK;
}

void ft_runner_distrust(ft_cpu_runner *runner, const ft_verdict *verdict) {
  if (verdict->is_damaged) ft_worker_kill(&runner->worker);
}

// A reply that makes no sense: the worker goes, and the program with it.
static ft_status nonsense(ft_cpu_runner *runner, ft_verdict *verdict) {
  ft_worker_kill(&runner->worker);
  *verdict = (ft_verdict){.outcome = FT_OUTCOME_CRASH,
                          .text = "the worker broke the protocol: a malformed reply"};
  return FT_OK;
}

typedef struct needs {
  uint32_t count;
  const ft_program_buffer **buffer;
  uint64_t *offset;
  uint64_t bytes;
} needs;

static bool read_need(ft_wire_reader *in, const ft_program *const *program,
                      uint32_t count, const ft_program_buffer **out) {
  uint32_t p = ft_wire_u32(in), b = ft_wire_u32(in);
  if (p >= count || b >= program[p]->buffer_count) return false;
  *out = &program[p]->buffer[b];
  return (*out)->kind == FT_BUFFER_INPUT;
}

static ft_status read_needs(const ft_frame *reply, const ft_program *const *program,
                            uint32_t count, ft_arena *arena, needs *out,
                            bool *out_is_sane, ft_error *error) {
  ft_wire_reader in = ft_wire_read(reply->data, reply->bytes);
  *out = (needs){.count = ft_wire_count(&in, 8)};
  out->buffer = FT_NEW_ARRAY(arena, const ft_program_buffer *, out->count);
  out->offset = FT_NEW_ARRAY(arena, uint64_t, out->count);
  FT_OOM_IF(!out->buffer || !out->offset, error);
  *out_is_sane = false;
  for (uint32_t i = 0; i < out->count; i++) {
    if (!read_need(&in, program, count, &out->buffer[i])) return FT_OK;
    out->offset[i] = out->bytes;
    out->bytes += (out->buffer[i]->bytes + FT_EXCHANGE_ALIGN - 1) &
                  ~(uint64_t)(FT_EXCHANGE_ALIGN - 1);
  }
  *out_is_sane = ft_wire_done(&in);
  return FT_OK;
}

static ft_status fill(ft_cpu_runner *runner, const needs *n, uint64_t at_ns,
                      ft_arena *arena, ft_verdict *verdict, ft_error *error) {
  ft_exchange e;
  ft_strbuf request = ft_strbuf_init(arena);
  ft_frame reply;
  FT_TRY(ft_exchange_create("fusetune-inputs", n->bytes, &e, error));
  for (uint32_t i = 0; i < n->count; i++) {
    ft_wire_put_u64(&request, n->offset[i]);
    if (n->buffer[i]->bytes)
      memcpy(e.data + n->offset[i], n->buffer[i]->data, n->buffer[i]->bytes);
  }
  ft_status status = ft_runner_ask(runner, FT_FRAME_FILL, &request, e.fd, at_ns, arena,
                                   &reply, verdict, error);
  ft_exchange_close(&e);
  return status;
}

static ft_status validate(const ft_program *program, ft_error *error) {
  FT_TRY(ft_program_validate(program, error));
  for (uint32_t i = 0; i < program->buffer_count; i++) {
    const ft_program_buffer *b = &program->buffer[i];
    if (b->kind == FT_BUFFER_INPUT && b->bytes > 0 && !b->data)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "program '%s': input buffer %u has no data",
              program->name, i);
  }
  return FT_OK;
}

ft_status ft_runner_load(ft_cpu_runner *runner, const ft_program *const *program,
                         uint32_t count, ft_arena *arena, uint64_t *out_at_ns,
                         ft_verdict *verdict, ft_error *error) {
  for (uint32_t i = 0; i < count; i++) FT_TRY(validate(program[i], error));
  FT_TRY(ft_runner_ready(runner, error));
  uint64_t at_ns = *out_at_ns = ft_runner_until(runner->options.check_limit_ns);
  ft_strbuf request = ft_strbuf_init(arena);
  ft_wire_put_u32(&request, count);
  for (uint32_t i = 0; i < count; i++) ft_program_encode(program[i], &request);
  ft_frame reply;
  FT_TRY(ft_runner_ask(runner, FT_FRAME_LOAD, &request, -1, at_ns, arena, &reply, verdict,
                       error));
  if (verdict->outcome != FT_OUTCOME_OK) return FT_OK;
  needs n;
  bool is_sane;
  FT_TRY(read_needs(&reply, program, count, arena, &n, &is_sane, error));
  if (!is_sane) return nonsense(runner, verdict);
  return n.count ? fill(runner, &n, at_ns, arena, verdict, error) : FT_OK;
}
