// The worker process: loads kernels, runs and times them, and may die of it.
//
// Invariants:
//  1. The worker never outlives its runner: it asks for SIGKILL at the runner's death,
//     checks that the runner is still its parent, and leaves when the socket closes.
//  2. Each request gets one reply, or the worker dies; nothing is answered twice.
//  3. Inputs are read-only from the moment they are filled.
//  4. The pool is created here, never inherited.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/log.h"
#include "measure/ceilings.h"
#include "measure/crash.h"
#include "measure/exchange.h"
#include "measure/frame.h"
#include "measure/protocol.h"
#include "measure/runner.h"
#include "measure/timing.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAS_SHADOW_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SHADOW_MEMORY 1
#endif
#endif
#ifndef HAS_SHADOW_MEMORY
#define HAS_SHADOW_MEMORY 0
#endif

typedef struct worker {
  int socket;
  ft_arena *life, *job_arena, *frame_arena;
  bool is_ready;  // HELLO was answered
  ft_board *board;
  ft_pool *pool;
  ft_library *library;
  ft_buffer_store store;
  ft_timing timing;
  ft_job job;
} worker;

// What a handler answers: |payload| goes into DONE; a failure is a status, or, when a
// kernel is to blame, |outcome| with |text|.
typedef struct answer {
  ft_strbuf payload;
  ft_outcome outcome;
  bool is_damaged;
  char text[256];
} answer;

static void blame(answer *out, ft_outcome outcome, const char *text) {
  out->outcome = outcome;
  snprintf(out->text, sizeof out->text, "%.255s", text);  // long ones are cut
}

static void blame_step(const worker *w, const ft_step_failure *f, answer *out) {
  const ft_program *p = &w->job.program[f->program].program;
  out->outcome = FT_OUTCOME_LAUNCH_ERROR;
  snprintf(out->text, sizeof out->text, "step %u (%s) returned %d", f->step,
           p->step[f->step].module->entry, f->code);
}

// ---- starting -------------------------------------------------------------------------

static void limit_memory(uint64_t cap_bytes, uint32_t threads) {
  const struct rlimit no_core = {0, 0};
  (void)setrlimit(RLIMIT_CORE, &no_core);
  // Private writable memory: buffers, and room for flush and copy buffers, stacks, code.
  // Shadow memory of a sanitizer counts too, so there it would leave nothing.
  uint64_t cap = cap_bytes + ((uint64_t)4 << 30) + (uint64_t)threads * (8u << 20);
  const struct rlimit data = {cap, cap};
  if (!HAS_SHADOW_MEMORY) (void)setrlimit(RLIMIT_DATA, &data);
}

// For libraries that bring OpenMP, read when they are loaded: threads that spin would
// take the pool's cores, and thread i is to run where thread i of the pool does.
static void set_environment(const ft_pool *pool, uint32_t threads) {
  enum { CPU_DIGITS = 12, CPUS = 1024 };
  char number[16], cpus[CPUS * CPU_DIGITS] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < threads && used + CPU_DIGITS < sizeof cpus; i++)
    if (ft_pool_cpu(pool, i) >= 0)
      used += (size_t)sprintf(cpus + used, used ? " %d" : "%d", ft_pool_cpu(pool, i));
  unsetenv("OMP_PLACES");
  unsetenv("OMP_PROC_BIND");
  if (used) setenv("GOMP_CPU_AFFINITY", cpus, 1);
  snprintf(number, sizeof number, "%u", threads);
  setenv("OMP_WAIT_POLICY", "passive", 1);
  setenv("OMP_NUM_THREADS", number, 1);
  setenv("GOMP_SPINCOUNT", "0", 1);
}

static ft_status hello(worker *w, ft_wire_reader *in, ft_frame *frame, answer *out,
                       ft_error *error) {
  uint32_t version = ft_wire_u32(in), runner = ft_wire_u32(in);
  uint32_t threads = ft_wire_u32(in);
  uint64_t flush_bytes = ft_wire_u64(in), cap_bytes = ft_wire_u64(in);
  if (!ft_wire_done(in) || frame->fd < 0 || w->is_ready)
    FT_FAIL(error, FT_REFUSED, "a hello that is not one");
  if (version != FT_WORKER_VERSION)
    FT_FAIL(error, FT_UNSUPPORTED, "the runner speaks version %u, the worker %d", version,
            FT_WORKER_VERSION);
  if ((uint32_t)getppid() != runner)
    FT_FAIL(error, FT_REFUSED, "process %u is not this worker's parent", runner);
  FT_TRY(ft_board_map(frame->fd, &w->board, error));
  FT_TRY(ft_pool_create(ft_allocator_system(), threads, &w->pool, error));
  threads = ft_pool_threads(w->pool);
  limit_memory(cap_bytes, threads);
  set_environment(w->pool, threads);
  ft_buffer_store_init(&w->store, ft_allocator_system(), cap_bytes);
  FT_TRY(ft_library_create(ft_allocator_system(), &w->library, error));
  FT_TRY(ft_timing_init(&w->timing, w->pool, flush_bytes, w->life, error));
  FT_TRY(ft_crash_install(w->board, &w->store, w->pool, w->life, error));
  ft_job_init(&w->job, w->job_arena, w->pool, &w->store, w->library, w->board);
  w->is_ready = true;
  ft_wire_put_u32(&out->payload, FT_WORKER_VERSION);
  ft_wire_put_u32(&out->payload, threads);
  return FT_OK;
}

// ---- one program ----------------------------------------------------------------------

static ft_status load(worker *w, ft_wire_reader *in, ft_frame *frame, answer *out,
                      ft_error *error) {
  (void)frame;
  ft_board_reset(w->board);
  w->board->phase = FT_PHASE_LOADING;
  ft_status status = ft_job_load(&w->job, in, error);
  if (status != FT_OK) w->job.program_count = 0;  // half a job does not run
  if (status == FT_NOT_FOUND || status == FT_OUT_OF_MEMORY) {
    blame(out,
          status == FT_NOT_FOUND ? FT_OUTCOME_LAUNCH_ERROR : FT_OUTCOME_OUT_OF_MEMORY,
          error->text);
    return FT_OK;
  }
  FT_TRY(status);
  ft_wire_put_u32(&out->payload, w->job.need_count);
  for (uint32_t i = 0; i < w->job.need_count; i++) {
    ft_wire_put_u32(&out->payload, w->job.need[i].program);
    ft_wire_put_u32(&out->payload, w->job.need[i].buffer);
  }
  return FT_OK;
}

static bool fits(uint64_t offset, uint64_t bytes, const ft_exchange *e) {
  return offset <= e->bytes && bytes <= e->bytes - offset;
}

static ft_status take_exchange(ft_frame *frame, ft_exchange *out, ft_error *error) {
  *out = (ft_exchange){.fd = -1};
  if (frame->fd < 0) FT_FAIL(error, FT_REFUSED, "no shared memory came");
  int fd = frame->fd;
  frame->fd = -1;
  return ft_exchange_open(fd, 0, out, error);
}

static ft_status fill_from(worker *w, ft_wire_reader *in, const ft_exchange *e,
                           ft_error *error) {
  for (uint32_t i = 0; i < w->job.need_count; i++) {
    const ft_job_need *need = &w->job.need[i];
    uint64_t bytes = w->job.program[need->program].program.buffer[need->buffer].bytes;
    uint64_t offset = ft_wire_u64(in);
    if (in->failed || !fits(offset, bytes, e))
      FT_FAIL(error, FT_REFUSED, "input %u at offset %llu is outside the exchange", i,
              (unsigned long long)offset);
    ft_job_fill(&w->job, i, bytes ? e->data + offset : NULL);
  }
  w->job.need_count = 0;
  return FT_OK;
}

static ft_status fill(worker *w, ft_wire_reader *in, ft_frame *frame, answer *out,
                      ft_error *error) {
  (void)out;
  ft_exchange e;
  FT_TRY(take_exchange(frame, &e, error));
  ft_status status = fill_from(w, in, &e, error);
  ft_exchange_close(&e);
  return status;
}

static ft_status need_job(const worker *w, ft_error *error) {
  if (w->job.program_count == 0 || w->job.need_count > 0)
    FT_FAIL(error, FT_REFUSED, "nothing is loaded, or inputs are missing");
  return FT_OK;
}

static ft_status copy_outputs(worker *w, ft_wire_reader *in, const ft_exchange *e,
                              ft_error *error) {
  const ft_job_program *p = &w->job.program[0];
  for (uint32_t i = 0; i < p->program.buffer_count; i++) {
    const ft_program_buffer *b = &p->program.buffer[i];
    if (b->kind != FT_BUFFER_OUTPUT) continue;
    uint64_t offset = ft_wire_u64(in);
    if (in->failed || !fits(offset, b->bytes, e))
      FT_FAIL(error, FT_REFUSED, "buffer %u at offset %llu is outside the exchange", i,
              (unsigned long long)offset);
    if (b->bytes) memcpy(e->data + offset, p->address[i], b->bytes);
  }
  return FT_OK;
}

static void inspect(worker *w, answer *out) {
  char text[256];
  if (ft_job_inspect(&w->job, text)) return;
  out->is_damaged = true;
  blame(out, FT_OUTCOME_WRONG_RESULT, text);
}

static ft_status check(worker *w, ft_wire_reader *in, ft_frame *frame, answer *out,
                       ft_error *error) {
  FT_TRY(need_job(w, error));
  ft_exchange e;
  FT_TRY(take_exchange(frame, &e, error));
  ft_step_failure failure = {0};
  w->board->program = 0;
  w->board->phase = FT_PHASE_CHECKING;
  ft_job_poison(&w->job);
  failure.happened = !ft_job_run(&w->job, 0, &failure.step, &failure.code);
  w->board->phase = FT_PHASE_IDLE;
  ft_status status = FT_OK;
  if (failure.happened)
    blame_step(w, &failure, out);
  else
    inspect(w, out);
  if (out->outcome == FT_OUTCOME_OK) status = copy_outputs(w, in, &e, error);
  ft_exchange_close(&e);
  return status;
}

static ft_status settle(worker *w, ft_status status, const ft_step_failure *failure,
                        answer *out, const ft_error *error) {
  w->board->phase = FT_PHASE_IDLE;
  if (status == FT_OUT_OF_MEMORY) {
    blame(out, FT_OUTCOME_OUT_OF_MEMORY, error->text);
    return FT_OK;
  }
  if (status != FT_OK) return status;
  if (failure->happened)
    blame_step(w, failure, out);
  else
    inspect(w, out);
  return FT_OK;
}

static ft_status time(worker *w, ft_wire_reader *in, ft_frame *frame, answer *out,
                      ft_error *error) {
  (void)frame;
  FT_TRY(need_job(w, error));
  bool is_warm = ft_wire_u8(in) != 0;
  ft_sampling s = {.min_samples = ft_wire_u32(in)};
  s.max_samples = ft_wire_u32(in);
  s.limit_ns = ft_wire_u64(in);
  s.beaten_ns = ft_wire_u64(in);
  if (!ft_wire_done(in) || s.max_samples == 0 || s.max_samples > FT_BOARD_SAMPLES)
    FT_FAIL(error, FT_REFUSED, "a time request for %u samples", s.max_samples);
  ft_stop stop = FT_STOP_FAILED;
  ft_step_failure failure;
  w->board->phase = FT_PHASE_TIMING;
  ft_status status =
      ft_timing_sample(&w->timing, &w->job, &s, is_warm, &stop, &failure, error);
  FT_TRY(settle(w, status, &failure, out, error));
  ft_wire_put_u32(&out->payload, (uint32_t)stop);
  ft_wire_put_u32(&out->payload, w->board->sample_count);
  return FT_OK;
}

// ---- many programs --------------------------------------------------------------------

static ft_status compare(worker *w, ft_wire_reader *in, ft_frame *frame, answer *out,
                         ft_error *error) {
  (void)frame;
  FT_TRY(need_job(w, error));
  uint32_t max_rounds = ft_wire_u32(in);
  uint64_t limit_ns = ft_wire_u64(in), seed = ft_wire_u64(in);
  if (!ft_wire_done(in) || max_rounds > FT_BOARD_SAMPLES / w->job.program_count)
    FT_FAIL(error, FT_REFUSED, "a compare request for %u rounds", max_rounds);
  uint32_t rounds = 0;
  ft_step_failure failure;
  w->board->phase = FT_PHASE_TIMING;
  ft_status status = ft_timing_compare(&w->timing, &w->job, max_rounds, limit_ns, seed,
                                       &rounds, &failure, error);
  FT_TRY(settle(w, status, &failure, out, error));
  ft_wire_put_u32(&out->payload, rounds);
  return FT_OK;
}

static ft_status copy(worker *w, ft_wire_reader *in, ft_frame *frame, answer *out,
                      ft_error *error) {
  (void)frame;
  ft_copy_rate rate[FT_STORES];
  uint64_t bytes = ft_wire_u64(in);
  if (!ft_wire_done(in)) FT_FAIL(error, FT_REFUSED, "a copy request without its size");
  ft_board_reset(w->board);
  FT_TRY(ft_timing_copy(&w->timing, bytes, rate, error));
  for (int kind = 0; kind < FT_STORES; kind++) {
    ft_wire_put_u64(&out->payload, rate[kind].best);
    ft_wire_put_u64(&out->payload, rate[kind].median);
  }
  return FT_OK;
}

// NaN-safe on the way: doubles travel as their bits.
static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static ft_status ceilings(worker *w, ft_wire_reader *in, ft_frame *frame, answer *out,
                          ft_error *error) {
  (void)frame;
  ft_ceiling_plan plan = {.limit_ns = ft_wire_u64(in)};
  plan.largest_bytes = ft_wire_u64(in);
  plan.l2_bytes = ft_wire_u64(in);
  plan.cache_bytes = ft_wire_u64(in);
  if (!ft_wire_done(in)) FT_FAIL(error, FT_REFUSED, "a ceilings request that is not one");
  ft_ceiling row[FT_CEILINGS_MOST];
  uint32_t count;
  ft_board_reset(w->board);
  ft_status status =
      ft_ceilings_measure(&w->timing, &plan, w->frame_arena, row, &count, error);
  if (status == FT_OUT_OF_MEMORY) {
    blame(out, FT_OUTCOME_OUT_OF_MEMORY, error->text);
    return FT_OK;
  }
  FT_TRY(status);
  ft_wire_put_u32(&out->payload, count);
  for (uint32_t i = 0; i < count; i++) {
    ft_wire_put_u32(&out->payload, (uint32_t)row[i].kind);
    ft_wire_put_u64(&out->payload, row[i].bytes);
    ft_wire_put_u64(&out->payload, bits_of(row[i].best));
    ft_wire_put_u64(&out->payload, bits_of(row[i].median));
    ft_wire_put_u32(&out->payload, row[i].samples);
  }
  return FT_OK;
}

// ---- serving --------------------------------------------------------------------------

typedef ft_status (*handler)(worker *, ft_wire_reader *, ft_frame *, answer *,
                             ft_error *);

static const handler handlers[] = {
#define X(name, call) [FT_FRAME_##name] = call,
    FT_REQUEST_MAP(X)
#undef X
};

static ft_status dispatch(worker *w, ft_frame *frame, answer *out, ft_error *error) {
  if (frame->type >= sizeof handlers / sizeof *handlers || !handlers[frame->type])
    FT_FAIL(error, FT_REFUSED, "unknown request %u", frame->type);
  if (!w->is_ready && frame->type != FT_FRAME_HELLO)
    FT_FAIL(error, FT_REFUSED, "request %u before hello", frame->type);
  ft_wire_reader in = ft_wire_read(frame->data, frame->bytes);
  return handlers[frame->type](w, &in, frame, out, error);
}

static const ft_deadline never = {UINT64_MAX, NULL};

static ft_frame_result reply(worker *w, const answer *out, char text[128]) {
  const ft_strbuf *payload = &out->payload;
  ft_strbuf failure = ft_strbuf_init(w->frame_arena);
  uint32_t type = FT_FRAME_DONE;
  if (out->outcome != FT_OUTCOME_OK) {
    ft_wire_put_u32(&failure, (uint32_t)out->outcome);
    ft_wire_put_u8(&failure, out->is_damaged);
    ft_wire_put_text(&failure, out->text);
    payload = &failure;
    type = FT_FRAME_FAILED;
  }
  if (payload->failed) {
    snprintf(text, 128, "out of memory for a reply");
    return FT_FRAME_BROKEN;
  }
  return ft_frame_send(w->socket, type, payload->text, payload->length, -1, &never, text);
}

// One request; false: the conversation is over, *out_exit says how.
static bool serve_one(worker *w, int *out_exit) {
  char text[128];
  ft_frame frame;
  ft_arena_reset(w->frame_arena);
  ft_frame_result r = ft_frame_receive(w->socket, &never, w->frame_arena, &frame, text);
  *out_exit = r == FT_FRAME_CLOSED ? 0 : 1;
  if (r == FT_FRAME_BROKEN) ft_log(FT_LOG_ERROR, "worker: %s", text);
  if (r != FT_FRAME_OK) return false;
  answer out = {.payload = ft_strbuf_init(w->frame_arena), .outcome = FT_OUTCOME_OK};
  ft_error error = {0};
  ft_status status = dispatch(w, &frame, &out, &error);
  if (frame.fd >= 0) close(frame.fd);
  *out_exit = 1;
  if (status != FT_OK) {
    ft_log(FT_LOG_ERROR, "worker: %s", error.text);
    return false;
  }
  r = reply(w, &out, text);
  if (r == FT_FRAME_CLOSED) *out_exit = 0;
  return r == FT_FRAME_OK;
}

static void close_worker(worker *w) {
  if (w->is_ready) ft_crash_uninstall(w->pool);
  ft_timing_fini(&w->timing);
  ft_buffer_store_fini(&w->store);
  ft_library_destroy(w->library);
  ft_pool_destroy(w->pool);
  ft_board_unmap(w->board);
  ft_arena_destroy(w->frame_arena);
  ft_arena_destroy(w->job_arena);
  ft_arena_destroy(w->life);
  close(w->socket);
}

int ft_worker_main(int fd) {
  // Before anything else: from here on the runner's death is ours. That it died earlier
  // shows as a closed socket, or as another parent at hello.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0) return 1;
  if (null > 1) close(null);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  worker w = {.socket = fd, .timing = {0}};
  w.life = ft_arena_create(ft_allocator_system());
  w.job_arena = ft_arena_create(ft_allocator_system());
  w.frame_arena = ft_arena_create(ft_allocator_system());
  int code = 1;
  if (w.life && w.job_arena && w.frame_arena)
    while (serve_one(&w, &code)) continue;
  close_worker(&w);
  return code;
}
