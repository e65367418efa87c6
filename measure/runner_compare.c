// Interleaved comparison and the copy ceiling.
#include <string.h>

#include "measure/runner_private.h"
#include "measure/timing.h"

static const uint64_t copy_limit_ns = 30000000000u;

// What the worker may need beyond |limit_ns|: the rounds that it runs in any case, each
// program as long as a trial of it may take.
static uint64_t compare_deadline(const ft_cpu_runner *runner, uint64_t limit_ns,
                                 uint32_t programs) {
  uint64_t each = runner->options.trial_limit_ns,
           runs = (uint64_t)programs * (FT_FEWEST_ROUNDS + 2);
  uint64_t extra = each < UINT64_MAX / 2 / runs ? each * runs : UINT64_MAX / 2;
  return ft_runner_until(limit_ns < UINT64_MAX / 2 ? limit_ns + extra : UINT64_MAX);
}

static ft_status keep_rounds(const ft_cpu_runner *runner, uint32_t rounds,
                             ft_arena *arena, ft_compare_result *out, ft_error *error) {
  const ft_board *board = runner->worker.board;
  uint64_t n = (uint64_t)rounds * out->programs;
  uint64_t *time = ft_arena_memdup(arena, board->sample_ns, n * sizeof *time);
  uint8_t *flags = ft_arena_memdup(arena, board->sample_flags, n);
  FT_OOM_IF(!time || !flags, error);
  out->rounds = rounds;
  out->time_ns = time;
  out->flags = flags;
  return FT_OK;
}

static ft_status run_rounds(ft_cpu_runner *runner, uint32_t max_rounds, uint64_t limit_ns,
                            uint64_t seed, ft_arena *arena, ft_compare_result *out,
                            ft_verdict *verdict, ft_error *error) {
  ft_strbuf request = ft_strbuf_init(arena);
  ft_frame reply;
  ft_wire_put_u32(&request, max_rounds);
  ft_wire_put_u64(&request, limit_ns);
  ft_wire_put_u64(&request, seed);
  FT_TRY(ft_runner_ask(runner, FT_FRAME_COMPARE, &request, -1,
                       compare_deadline(runner, limit_ns, out->programs), arena, &reply,
                       verdict, error));
  // Rounds that were complete when it died are as good as any.
  uint32_t rounds = runner->worker.board->sample_count / out->programs;
  if (rounds > max_rounds) rounds = 0;
  return keep_rounds(runner, rounds, arena, out, error);
}

ft_status ft_cpu_runner_compare(ft_cpu_runner *runner, const ft_program *const *program,
                                uint32_t count, uint32_t max_rounds, uint64_t limit_ns,
                                uint64_t seed, ft_arena *arena, ft_compare_result *out,
                                ft_error *error) {
  *out = (ft_compare_result){.programs = count, .outcome = FT_OUTCOME_INTERRUPTED};
  if (count == 0 || count > FT_BOARD_SAMPLES)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "a comparison of %u programs", count);
  if (max_rounds > FT_BOARD_SAMPLES / count) max_rounds = FT_BOARD_SAMPLES / count;
  ft_verdict verdict = {.outcome = FT_OUTCOME_OK};
  uint64_t at_ns = 0;
  FT_TRY(ft_runner_load(runner, program, count, arena, &at_ns, &verdict, error));
  if (verdict.outcome == FT_OUTCOME_OK)
    FT_TRY(run_rounds(runner, max_rounds, limit_ns, seed, arena, out, &verdict, error));
  uint32_t culprit = runner->worker.board ? runner->worker.board->program : 0;
  if (verdict.outcome != FT_OUTCOME_OK && culprit < count) out->culprit = culprit;
  ft_runner_distrust(runner, &verdict);
  out->outcome = verdict.outcome;
  return FT_OK;
}

ft_status ft_cpu_runner_copy_ceiling(ft_cpu_runner *runner, uint64_t bytes,
                                     ft_copy_rate out[FT_STORES], ft_error *error) {
  memset(out, 0, FT_STORES * sizeof *out);
  FT_TRY(ft_runner_ready(runner, error));
  ft_arena *arena = ft_arena_create(runner->allocator);
  FT_OOM_IF(!arena, error);
  ft_strbuf request = ft_strbuf_init(arena);
  ft_wire_put_u64(&request, bytes);
  ft_frame reply;
  ft_verdict verdict;
  ft_status status =
      ft_runner_ask(runner, FT_FRAME_COPY, &request, -1, ft_runner_until(copy_limit_ns),
                    arena, &reply, &verdict, error);
  ft_wire_reader in = ft_wire_read(reply.data, reply.bytes);
  for (int k = 0; k < FT_STORES && status == FT_OK && verdict.outcome == FT_OUTCOME_OK;
       k++) {
    out[k].best = ft_wire_u64(&in);
    out[k].median = ft_wire_u64(&in);
  }
  ft_arena_destroy(arena);
  if (status == FT_OK && !out[FT_STORE_ORDINARY].best)
    FT_FAIL(error, FT_UNAVAILABLE, "the worker could not measure copying: %s",
            verdict.text);
  return status;
}
