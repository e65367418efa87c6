// The CEILINGS request, from the runner's side.
#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "measure/runner_private.h"

static const uint64_t default_limit_ns = 2500000000u;
static const uint64_t grace_ns = 60000000000u;  // the rounds that are run in any case
#define MIB ((uint64_t)1 << 20)
enum { ROW_BYTES = 4 + 8 + 8 + 8 + 4 };

// Four times what is flushed, so that no cache that the flush was made for holds it.
static uint64_t largest_bytes(const ft_cpu_runner *runner) {
  uint64_t wanted = 4 * runner->options.flush_bytes;
  uint64_t room = runner->memory_bytes ? runner->memory_bytes / 8 : 256 * MIB;
  return wanted < room ? wanted : room;
}

static double double_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static bool read_row(ft_wire_reader *in, uint64_t now, ft_ceiling *out) {
  uint32_t kind = ft_wire_u32(in);
  *out = (ft_ceiling){.bytes = ft_wire_u64(in), .measured_at = now};
  out->best = double_of(ft_wire_u64(in));
  out->median = double_of(ft_wire_u64(in));
  out->samples = ft_wire_u32(in);
  if (kind >= FT_CEILING_KINDS) return false;
  out->kind = (ft_ceiling_kind)kind;
  return isfinite(out->best) && isfinite(out->median) && out->best > 0 && out->median > 0;
}

static bool read_rows(const ft_frame *reply, ft_ceiling *out, uint32_t *out_count) {
  ft_wire_reader in = ft_wire_read(reply->data, reply->bytes);
  uint32_t count = ft_wire_count(&in, ROW_BYTES);
  uint64_t now = ft_clock_unix_ns();
  if (count == 0 || count > FT_CEILINGS_MOST) return false;
  for (uint32_t i = 0; i < count; i++)
    if (!read_row(&in, now, &out[i])) return false;
  *out_count = count;
  return ft_wire_done(&in);
}

ft_status ft_cpu_runner_ceilings(ft_cpu_runner *runner, uint64_t limit_ns,
                                 ft_arena *arena, ft_ceiling *out, uint32_t *out_count,
                                 ft_error *error) {
  *out_count = 0;
  if (limit_ns == 0) limit_ns = default_limit_ns;
  FT_TRY(ft_runner_ready(runner, error));
  ft_strbuf request = ft_strbuf_init(arena);
  ft_wire_put_u64(&request, limit_ns);
  ft_wire_put_u64(&request, largest_bytes(runner));
  ft_wire_put_u64(&request, runner->l2_bytes);
  ft_wire_put_u64(&request, runner->cache_bytes);
  uint64_t all_ns = limit_ns < UINT64_MAX - grace_ns ? limit_ns + grace_ns : UINT64_MAX;
  ft_frame reply;
  ft_verdict verdict;
  FT_TRY(ft_runner_ask(runner, FT_FRAME_CEILINGS, &request, -1, ft_runner_until(all_ns),
                       arena, &reply, &verdict, error));
  if (verdict.outcome != FT_OUTCOME_OK)
    FT_FAIL(error, FT_UNAVAILABLE, "the worker could not measure ceilings: %s",
            verdict.text);
  if (read_rows(&reply, out, out_count)) return FT_OK;
  *out_count = 0;
  ft_worker_kill(&runner->worker);
  FT_FAIL(error, FT_UNAVAILABLE, "the worker's ceilings make no sense");
}
