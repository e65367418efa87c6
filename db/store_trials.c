// Trials.
//
//  1. Pending before run: ft_store_trial_begin commits the row before the candidate runs.
//     Whatever dies then, the row names the candidate.
//  2. A trial ends once. What is not a time (0, NaN, infinity) does not enter.
//  3. A crash, a wrong result or a launch error counts FT_QUARANTINE_STRIKES at once: the
//     candidate is not tried again. A timeout counts one, and one per run: a starved
//     machine is late with everything. A death or a stop of the tuner counts nothing. A
//     candidate hangs on its target and codegen version, and so do its strikes: a new
//     compiler or driver begins with none.
//  4. `best` holds the fastest OK trial of a candidate that is not quarantined.
#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "db/store_internal.h"

// ---- finding

// The columns of FT_SQL_BEST_TRIAL and FT_SQL_LAST_TRIAL, in order.
enum {
  COLUMN_ID,
  COLUMN_OUTCOME,
  COLUMN_MEDIAN,
  COLUMN_LOW,
  COLUMN_HIGH,
  COLUMN_SAMPLES,
  COLUMN_SAMPLE_NS,
  COLUMN_SAMPLE_FLAGS,
  COLUMN_RATIO,
  COLUMN_WORST,
  COLUMN_ERROR,
  COLUMN_LIMIT,
  COLUMN_STARTED,
  COLUMN_ENDED,
  COLUMN_ENV
};

static ft_status read_samples(ft_store *store, sqlite3_stmt *row, ft_arena *arena,
                              ft_trial *out, ft_error *error) {
  const uint8_t *bytes = sqlite3_column_blob(row, COLUMN_SAMPLE_NS);
  size_t size = (size_t)sqlite3_column_bytes(row, COLUMN_SAMPLE_NS);
  const uint8_t *flags = sqlite3_column_blob(row, COLUMN_SAMPLE_FLAGS);
  size_t count = (size_t)sqlite3_column_bytes(row, COLUMN_SAMPLE_FLAGS);
  if (size != count * 8)
    FT_FAIL(error, FT_CORRUPT,
            "store %s: trial %lld has %zu bytes of samples and %zu flags", store->path,
            (long long)sqlite3_column_int64(row, COLUMN_ID), size, count);
  uint64_t *sample = FT_NEW_ARRAY(arena, uint64_t, count);
  uint8_t *flag = FT_NEW_ARRAY(arena, uint8_t, count);
  FT_OOM_IF(!sample || !flag, error);
  for (size_t i = 0; i < size; i++) sample[i / 8] |= (uint64_t)bytes[i] << (8 * (i % 8));
  if (count) memcpy(flag, flags, count);
  out->sample_count = (uint32_t)count;
  out->sample_ns = sample;
  out->sample_flags = flag;
  return FT_OK;
}

static ft_status read_trial(ft_store *store, sqlite3_stmt *row, ft_arena *arena,
                            ft_known_trial *out, ft_error *error) {
  ft_trial *trial = &out->trial;
  out->trial_id = sqlite3_column_int64(row, COLUMN_ID);
  const char *outcome = ft_sql_column_text(row, COLUMN_OUTCOME, arena);
  trial->worst = ft_sql_column_text(row, COLUMN_WORST, arena);
  trial->error = ft_sql_column_text(row, COLUMN_ERROR, arena);
  trial->env = ft_sql_column_text(row, COLUMN_ENV, arena);
  FT_OOM_IF(!outcome || !trial->worst || !trial->error || !trial->env, error);
  trial->outcome = ft_outcome_parse(outcome);
  trial->time = (ft_time){(uint64_t)sqlite3_column_int64(row, COLUMN_MEDIAN),
                          (uint64_t)sqlite3_column_int64(row, COLUMN_LOW),
                          (uint64_t)sqlite3_column_int64(row, COLUMN_HIGH),
                          (uint32_t)sqlite3_column_int64(row, COLUMN_SAMPLES)};
  trial->max_error_ratio = sqlite3_column_type(row, COLUMN_RATIO) == SQLITE_NULL
                               ? -1
                               : sqlite3_column_double(row, COLUMN_RATIO);
  trial->limit_ns = (uint64_t)sqlite3_column_int64(row, COLUMN_LIMIT);
  trial->started_at = (uint64_t)sqlite3_column_int64(row, COLUMN_STARTED);
  trial->ended_at = (uint64_t)sqlite3_column_int64(row, COLUMN_ENDED);
  return read_samples(store, row, arena, trial, error);
}

static ft_status look_up(ft_store *store, ft_sql id, int64_t candidate_id,
                         const char *mode, ft_arena *arena, ft_known_trial *out,
                         ft_error *error) {
  sqlite3_stmt *row;
  bool has_row = false;
  ft_status status = ft_sql_start(
      store, id, FT_SQL_VALUES(ft_sql_int(candidate_id), ft_sql_text(mode)), &row, error);
  if (status == FT_OK) status = ft_sql_step(store, row, &has_row, error);
  if (status == FT_OK && has_row) status = read_trial(store, row, arena, out, error);
  ft_sql_finish(row);
  return status;
}

// Says whether the candidate need not run again: it ran to an end of its own.
static bool is_final(ft_outcome outcome) {
  if (outcome == FT_OUTCOME_TIMEOUT) return false;
  return outcome == FT_OUTCOME_OK || outcome == FT_OUTCOME_BEATEN ||
         ft_outcome_blames(outcome);
}

ft_status ft_store_find_trial(ft_store *store, int64_t candidate_id, const char *mode,
                              ft_arena *arena, ft_known_trial *out, ft_error *error) {
  *out = (ft_known_trial){.trial = {.outcome = FT_OUTCOME_PENDING,
                                    .max_error_ratio = -1,
                                    .worst = "",
                                    .error = "",
                                    .env = ""}};
  const char *reason;
  FT_TRY(ft_quarantine_find(store, candidate_id, arena, &reason, error));
  if (!reason)
    FT_TRY(look_up(store, FT_SQL_BEST_TRIAL, candidate_id, mode, arena, out, error));
  if (!out->trial_id)
    FT_TRY(look_up(store, FT_SQL_LAST_TRIAL, candidate_id, mode, arena, out, error));
  FT_TRY(ft_sql_get(store, FT_SQL_LAST_TIMEOUT, FT_SQL_VALUES(ft_sql_int(candidate_id)),
                    &out->timeout_run, error));
  out->is_quarantined = reason != NULL;
  if (reason) out->trial.error = reason;
  out->is_known = out->is_quarantined || (out->trial_id && is_final(out->trial.outcome));
  return FT_OK;
}

// ---- beginning

typedef struct trial_begin {
  int64_t run_id, candidate_id, id;
  const char *mode;
  uint64_t limit_ns;
} trial_begin;

static ft_status begin_trial(ft_store *store, void *ctx, ft_error *error) {
  trial_begin *begin = ctx;
  int64_t attempt;
  FT_TRY(
      ft_sql_get(store, FT_SQL_NEXT_ATTEMPT,
                 FT_SQL_VALUES(ft_sql_int(begin->run_id), ft_sql_int(begin->candidate_id),
                               ft_sql_text(begin->mode)),
                 &attempt, error));
  return ft_sql_get(
      store, FT_SQL_ADD_TRIAL,
      FT_SQL_VALUES(ft_sql_int(begin->run_id), ft_sql_int(begin->candidate_id),
                    ft_sql_text(begin->mode), ft_sql_int(attempt),
                    ft_sql_ns(begin->limit_ns), ft_sql_int((int64_t)ft_clock_unix_ns())),
      &begin->id, error);
}

ft_status ft_store_trial_begin(ft_store *store, int64_t run_id, int64_t candidate_id,
                               const char *mode, uint64_t limit_ns, int64_t *out_trial_id,
                               ft_error *error) {
  *out_trial_id = 0;
  if (limit_ns > INT64_MAX)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "limit_ns %llu passes 2^63",
            (unsigned long long)limit_ns);
  trial_begin begin = {run_id, candidate_id, 0, mode, limit_ns};
  FT_TRY(ft_sql_transact(store, begin_trial, &begin, error));
  *out_trial_id = begin.id;
  return FT_OK;
}

// ---- ending

typedef struct trial_end {
  int64_t trial_id;
  const ft_trial *trial;
  const ft_module *module;
  double predicted_ns, roofline_ns;
  // what the pending row says
  int64_t candidate_id, target_id, workload_id, version;
  char mode[16];
} trial_end;

static ft_status check_number(const char *name, double value, ft_error *error) {
  if (isfinite(value)) return FT_OK;
  FT_FAIL(error, FT_INVALID_ARGUMENT, "%s is %g", name, value);
}

static ft_status check_time(const ft_trial *trial, ft_error *error) {
  const ft_time *t = &trial->time;
  if (trial->outcome == FT_OUTCOME_OK && t->median_ns == 0)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "a trial that is ok with a median of 0 ns");
  if (t->high_ns > INT64_MAX || t->low_ns > t->median_ns || t->median_ns > t->high_ns)
    FT_FAIL(error, FT_INVALID_ARGUMENT,
            "the times low %llu, median %llu, high %llu ns are not in order",
            (unsigned long long)t->low_ns, (unsigned long long)t->median_ns,
            (unsigned long long)t->high_ns);
  if (t->samples > trial->sample_count)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%u samples counted of %u", t->samples,
            trial->sample_count);
  return FT_OK;
}

static ft_status check_trial(const trial_end *end, ft_error *error) {
  const ft_trial *trial = end->trial;
  if ((unsigned)trial->outcome >= FT_OUTCOME_COUNT ||
      trial->outcome == FT_OUTCOME_PENDING)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "outcome %d is no end of a trial",
            (int)trial->outcome);
  FT_TRY(check_number("predicted_ns", end->predicted_ns, error));
  FT_TRY(check_number("roofline_ns", end->roofline_ns, error));
  // A wrong result may be infinitely wrong; what passed its check is within tolerance.
  if (isnan(trial->max_error_ratio) ||
      (trial->outcome == FT_OUTCOME_OK && isinf(trial->max_error_ratio)))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "max_error_ratio is %g", trial->max_error_ratio);
  if (trial->limit_ns > INT64_MAX || trial->started_at > INT64_MAX ||
      trial->ended_at > INT64_MAX)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "a time of the trial passes 2^63 ns");
  return check_time(trial, error);
}

static ft_status find_pending(ft_store *store, trial_end *end, ft_error *error) {
  sqlite3_stmt *row;
  bool has_row = false;
  char outcome[24] = "";
  ft_status status = ft_sql_start(store, FT_SQL_FIND_PENDING,
                                  FT_SQL_VALUES(ft_sql_int(end->trial_id)), &row, error);
  if (status == FT_OK) status = ft_sql_step(store, row, &has_row, error);
  if (status == FT_OK && has_row) {
    strncpy(outcome, (const char *)sqlite3_column_text(row, 0), sizeof outcome - 1);
    end->candidate_id = sqlite3_column_int64(row, 1);
    strncpy(end->mode, (const char *)sqlite3_column_text(row, 2), sizeof end->mode - 1);
    end->target_id = sqlite3_column_int64(row, 3);
    end->workload_id = sqlite3_column_int64(row, 4);
    end->version = sqlite3_column_int64(row, 5);
  }
  ft_sql_finish(row);
  if (status != FT_OK || strcmp(outcome, "pending") == 0) return status;
  FT_FAIL(
      error, FT_INVALID_ARGUMENT,
      has_row ? "store %s: trial %lld has ended as %s" : "store %s has no trial %lld%s",
      store->path, (long long)end->trial_id, outcome);
}

static ft_status write_trial(ft_store *store, const trial_end *end, int64_t build_id,
                             ft_error *error) {
  const ft_trial *t = end->trial;
  uint8_t *samples = ft_arena_array(store->scratch, t->sample_count, 8);
  FT_OOM_IF(!samples, error);
  for (size_t i = 0; i < (size_t)t->sample_count * 8; i++)
    samples[i] = (uint8_t)(t->sample_ns[i / 8] >> (8 * (i % 8)));
  uint64_t ended_at = t->ended_at ? t->ended_at : ft_clock_unix_ns();
  return ft_sql_run(
      store, FT_SQL_END_TRIAL,
      FT_SQL_VALUES(
          ft_sql_int(end->trial_id), ft_sql_text(ft_outcome_text(t->outcome)),
          ft_sql_ns(t->time.median_ns), ft_sql_ns(t->time.low_ns),
          ft_sql_ns(t->time.high_ns), ft_sql_int(t->time.samples),
          ft_sql_blob(samples, (size_t)t->sample_count * 8),
          ft_sql_blob(t->sample_flags, t->sample_count),
          end->predicted_ns < 0 ? ft_sql_null() : ft_sql_real(end->predicted_ns),
          end->roofline_ns < 0 ? ft_sql_null() : ft_sql_real(end->roofline_ns),
          ft_sql_note(t->error),
          t->max_error_ratio < 0 ? ft_sql_null() : ft_sql_real(t->max_error_ratio),
          ft_sql_note(t->worst), ft_sql_ns(t->limit_ns), ft_sql_note(t->env),
          ft_sql_ns(t->started_at), ft_sql_int((int64_t)ended_at),
          ft_sql_unless(build_id, 0)),
      error);
}

static ft_status update_best(ft_store *store, const trial_end *end, ft_error *error) {
  int64_t median;
  FT_TRY(
      ft_sql_get(store, FT_SQL_FIND_BEST,
                 FT_SQL_VALUES(ft_sql_int(end->workload_id), ft_sql_int(end->target_id),
                               ft_sql_int(end->version), ft_sql_text(end->mode)),
                 &median, error));
  if (median && (uint64_t)median <= end->trial->time.median_ns) return FT_OK;
  return ft_sql_run(store, FT_SQL_SET_BEST,
                    FT_SQL_VALUES(ft_sql_int(end->workload_id),
                                  ft_sql_int(end->target_id), ft_sql_int(end->version),
                                  ft_sql_text(end->mode), ft_sql_int(end->trial_id)),
                    error);
}

// The outcomes that may bring the process or the machine down, or that lie: not again.
static bool is_dangerous(ft_outcome outcome) {
  return outcome == FT_OUTCOME_CRASH || outcome == FT_OUTCOME_WRONG_RESULT ||
         outcome == FT_OUTCOME_LAUNCH_ERROR;
}

static ft_status strikes_of(ft_store *store, const trial_end *end, int64_t *out,
                            ft_error *error) {
  *out = is_dangerous(end->trial->outcome) ? FT_QUARANTINE_STRIKES : 0;
  if (end->trial->outcome != FT_OUTCOME_TIMEOUT) return FT_OK;
  int64_t others;
  FT_TRY(ft_sql_get(store, FT_SQL_OTHER_TIMEOUTS,
                    FT_SQL_VALUES(ft_sql_int(end->trial_id)), &others, error));
  *out = others == 0;
  return FT_OK;
}

static ft_status judge(ft_store *store, const trial_end *end, ft_error *error) {
  const ft_trial *t = end->trial;
  int64_t strikes;
  FT_TRY(strikes_of(store, end, &strikes, error));
  if (t->outcome == FT_OUTCOME_INTERRUPTED) return FT_OK;
  if (!strikes && t->outcome == FT_OUTCOME_TIMEOUT) return FT_OK;
  if (!strikes) return ft_quarantine_clear(store, end->candidate_id, error);
  const char *detail = t->error && *t->error ? t->error : t->worst;
  const char *reason = ft_outcome_text(t->outcome);
  if (detail && *detail)
    reason = ft_arena_printf(store->scratch, "%s: %s", reason, detail);
  FT_OOM_IF(!reason, error);
  return ft_quarantine_strike(store, end->candidate_id, strikes, reason, error);
}

static ft_status end_trial(ft_store *store, void *ctx, ft_error *error) {
  trial_end *end = ctx;
  FT_TRY(find_pending(store, end, error));
  int64_t build_id = 0;
  if (end->module)
    FT_TRY(ft_build_save(store, end->module, end->target_id, &build_id, error));
  if (build_id)
    FT_TRY(ft_sql_run(store, FT_SQL_SET_BODY,
                      FT_SQL_VALUES(ft_sql_int(end->candidate_id),
                                    ft_sql_hash(&end->module->body_hash)),
                      error));
  FT_TRY(write_trial(store, end, build_id, error));
  FT_TRY(judge(store, end, error));
  const char *reason;
  FT_TRY(ft_quarantine_find(store, end->candidate_id, store->scratch, &reason, error));
  if (end->trial->outcome != FT_OUTCOME_OK || reason) return FT_OK;
  return update_best(store, end, error);
}

ft_status ft_store_trial_end(ft_store *store, int64_t trial_id, const ft_trial *trial,
                             const ft_module *module, double predicted_ns,
                             double roofline_ns, ft_error *error) {
  trial_end end = {.trial_id = trial_id,
                   .trial = trial,
                   .module = module,
                   .predicted_ns = predicted_ns,
                   .roofline_ns = roofline_ns};
  ft_arena_reset(store->scratch);
  ft_status status = check_trial(&end, error);
  if (status != FT_OK) {
    ft_error_prefix(error, "trial %lld", (long long)trial_id);
    return status;
  }
  return ft_sql_transact(store, end_trial, &end, error);
}
