#include "daemon/ceilings.h"

#include <string.h>

#include "core/clock.h"
#include "core/log.h"

// With no more than the rounds that are run in any case a measurement was hasty; from a
// second on there is time for more.
enum { HASTY_SAMPLES = 3 };
static const uint64_t proper_limit_ns = 1000000000u, news_ns = 60000000000u;
// Medians are that steady: what is less below its bound is noise.
static const double TOLERANCE = 0.97;

static bool is_hasty(const ft_ceiling *ceiling, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (ceiling[i].samples <= HASTY_SAMPLES) return true;
  return count == 0;
}

static ft_status measure(ft_session *s, uint64_t limit_ns, ft_ceiling *out,
                         uint32_t *out_count, ft_error *error) {
  *out_count = 0;
  ft_arena *scratch = ft_arena_create(ft_allocator_system());
  FT_OOM_IF(!scratch, error);
  ft_status status =
      ft_cpu_runner_ceilings(s->runner, limit_ns, scratch, out, out_count, error);
  ft_arena_destroy(scratch);
  return status;
}

// However slow the machine: measured twice is not hasty.
static void add_samples(ft_ceiling *fresh, uint32_t count, const ft_ceiling *old,
                        uint32_t olds) {
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < olds; k++)
      if (fresh[i].kind == old[k].kind && fresh[i].bytes == old[k].bytes)
        fresh[i].samples += old[k].samples;
}

ft_status ft_session_ceilings(ft_session *s, uint64_t limit_ns, bool anew,
                              ft_ceiling *out, uint32_t *out_count, ft_error *error) {
  *out_count = 0;
  FT_TRY(ft_store_target(s->store, &s->target, &s->target_id, error));
  FT_TRY(ft_store_ceilings(s->store, s->target_id, out, out_count, error));
  bool has_time = limit_ns == 0 || limit_ns >= proper_limit_ns;
  bool is_needed = anew || *out_count == 0 || (is_hasty(out, *out_count) && has_time);
  if (!is_needed) return FT_OK;
  ft_ceiling old[FT_CEILINGS_MOST];
  uint32_t olds = anew ? 0 : *out_count;
  memcpy(old, out, olds * sizeof *old);
  FT_TRY(measure(s, limit_ns, out, out_count, error));
  add_samples(out, *out_count, old, olds);
  FT_TRY(ft_store_ceilings_save(s->store, s->target_id, out, *out_count, anew, error));
  return ft_store_ceilings(s->store, s->target_id, out, out_count, error);
}

// ---- contradictions -----------------------------------------------------------------

static ft_status remeasure(void *self, ft_ceiling *out, uint32_t *out_count,
                           ft_error *error) {
  ft_session *s = self;
  *out_count = 0;
  if (s->is_recalibrated) return FT_OK;
  s->is_recalibrated = true;
  return measure(s, 0, out, out_count, error);
}

static ft_status keep(void *self, const ft_roofline_alarm *alarm,
                      const ft_ceiling *ceiling, uint32_t count, ft_error *error) {
  ft_session *s = self;
  ft_alarm_record record = {.run_id = s->run_id,
                            .median_ns = alarm->trial->time.median_ns,
                            .bound_ns = alarm->bound_ns,
                            .kind = alarm->kind,
                            .bytes = alarm->bytes,
                            .before = alarm->before,
                            .after = alarm->after,
                            .is_remeasured = alarm->is_remeasured,
                            .is_explained = alarm->is_explained};
  FT_TRY(ft_store_candidate(s->store, alarm->candidate, s->target_id, FT_CODEGEN_VERSION,
                            &record.candidate_id, error));
  FT_TRY(ft_store_alarm_save(s->store, &record, error));
  return ft_store_ceilings_save(s->store, s->target_id, ceiling, count, false, error);
}

ft_status ft_session_watch_bound(ft_session *s, const ft_candidate *candidate,
                                 const ft_trial *trial, ft_error *error) {
  const ft_predictor *p = ft_session_predictor(s);
  if (!p || trial->outcome != FT_OUTCOME_OK || trial->time.median_ns == 0) return FT_OK;
  double bound = p->bound_ns(p->self, candidate->workload);
  if ((double)trial->time.median_ns >= TOLERANCE * bound) return FT_OK;
  return p->contradict(p->self, candidate, trial, bound, error);
}

// ---- the predictor ------------------------------------------------------------------

// A machine that shares its memory with others is fast at some minutes and slow at
// others: a run that has time for it adds a few rounds to what is no longer news, and the
// best ever counts.
static ft_status add_rounds(ft_session *s, uint64_t limit_ns, ft_ceiling *ceiling,
                            uint32_t *count, ft_error *error) {
  if (limit_ns != 0 && limit_ns < 2 * proper_limit_ns) return FT_OK;
  ft_ceiling fresh[FT_CEILINGS_MOST];
  uint32_t fresh_count;
  FT_TRY(measure(s, 1, fresh, &fresh_count, error));
  add_samples(fresh, fresh_count, ceiling, *count);
  FT_TRY(
      ft_store_ceilings_save(s->store, s->target_id, fresh, fresh_count, false, error));
  return ft_store_ceilings(s->store, s->target_id, ceiling, count, error);
}

static bool is_news(const ft_ceiling *ceiling, uint32_t count, uint64_t now) {
  uint64_t newest = 0;
  for (uint32_t i = 0; i < count; i++)
    if (ceiling[i].measured_at > newest) newest = ceiling[i].measured_at;
  return now < newest + news_ns;
}

// *out: stored ones, refreshed; or measured now.
static ft_status fresh_ceilings(ft_session *s, uint64_t limit_ns, ft_ceiling *out,
                                uint32_t *out_count, ft_error *error) {
  uint64_t start = ft_clock_unix_ns();
  FT_TRY(ft_session_ceilings(s, limit_ns, false, out, out_count, error));
  if (*out_count == 0 || is_news(out, *out_count, start)) return FT_OK;
  return add_rounds(s, limit_ns, out, out_count, error);
}

ft_status ft_session_predictor_open(ft_session *s, int64_t run_id, uint64_t limit_ns,
                                    ft_error *error) {
  s->run_id = run_id;
  if (s->roofline) return FT_OK;
  ft_ceiling ceiling[FT_CEILINGS_MOST];
  uint32_t count;
  ft_status status = fresh_ceilings(s, limit_ns, ceiling, &count, error);
  if (status == FT_UNAVAILABLE) {
    ft_log(FT_LOG_WARN, "no bounds in this run: %s", error->text);
    return FT_OK;
  }
  FT_TRY(status);
  ft_roofline_hooks hooks = {.self = s, .remeasure = remeasure, .keep = keep};
  FT_TRY(ft_roofline_create(ceiling, count, &hooks, ft_allocator_system(), &s->roofline,
                            error));
  s->predictor = ft_roofline_predictor(s->roofline);
  return FT_OK;
}

const ft_predictor *ft_session_predictor(const ft_session *s) {
  return s->predictor.self ? &s->predictor : NULL;
}

double ft_session_bound_ns(const ft_session *s, const ft_workload *workload) {
  const ft_predictor *p = ft_session_predictor(s);
  double ns = p ? p->bound_ns(p->self, workload) : 0;
  return ns > 0 ? ns : -1;
}

double ft_session_predicted_ns(const ft_session *s, const ft_candidate *candidate) {
  const ft_predictor *p = ft_session_predictor(s);
  double ns;
  ft_error ignored;
  if (!p || p->predict(p->self, candidate, 1, &ns, &ignored) != FT_OK) return -1;
  return ns;
}
