// Candidates that are not to run.
//
// A quarantine reaches further than its row: the candidate's times leave `best`, which is
// filled again from the others, and plans that use it are not served any more. All of
// that happens in the transaction of the strike.
#include "core/clock.h"
#include "db/store_internal.h"

static ft_status isolate(ft_store *store, int64_t candidate_id, const char *reason,
                         ft_error *error) {
  FT_TRY(ft_sql_run(store, FT_SQL_DROP_BEST, FT_SQL_VALUES(ft_sql_int(candidate_id)),
                    error));
  FT_TRY(ft_sql_run(
      store, FT_SQL_REFILL_BEST,
      FT_SQL_VALUES(ft_sql_int(candidate_id), ft_sql_int(FT_QUARANTINE_STRIKES)), error));
  return ft_sql_run(store, FT_SQL_QUARANTINE_PLANS,
                    FT_SQL_VALUES(ft_sql_int(candidate_id), ft_sql_text(reason)), error);
}

ft_status ft_quarantine_strike(ft_store *store, int64_t candidate_id, int64_t strikes,
                               const char *reason, ft_error *error) {
  int64_t total;
  FT_TRY(ft_sql_get(store, FT_SQL_STRIKE,
                    FT_SQL_VALUES(ft_sql_int(candidate_id), ft_sql_text(reason),
                                  ft_sql_int(strikes), ft_sql_text(store->owner)),
                    &total, error));
  if (total < FT_QUARANTINE_STRIKES) return FT_OK;
  if (strikes < FT_QUARANTINE_STRIKES) {
    reason = ft_arena_printf(store->scratch, "%s, twice", reason);
    FT_OOM_IF(!reason, error);
    FT_TRY(ft_sql_run(store, FT_SQL_SET_REASON,
                      FT_SQL_VALUES(ft_sql_int(candidate_id), ft_sql_text(reason)),
                      error));
  }
  return isolate(store, candidate_id, reason, error);
}

ft_status ft_quarantine_clear(ft_store *store, int64_t candidate_id, ft_error *error) {
  return ft_sql_run(
      store, FT_SQL_CLEAR_STRIKES,
      FT_SQL_VALUES(ft_sql_int(candidate_id), ft_sql_int(FT_QUARANTINE_STRIKES)), error);
}

ft_status ft_quarantine_find(ft_store *store, int64_t candidate_id, ft_arena *arena,
                             const char **out_reason, ft_error *error) {
  *out_reason = NULL;
  sqlite3_stmt *row;
  bool has_row = false;
  ft_status status = ft_sql_start(
      store, FT_SQL_FIND_QUARANTINE,
      FT_SQL_VALUES(ft_sql_int(candidate_id), ft_sql_int(FT_QUARANTINE_STRIKES),
                    ft_sql_int((int64_t)ft_clock_unix_ns())),
      &row, error);
  if (status == FT_OK) status = ft_sql_step(store, row, &has_row, error);
  if (status == FT_OK && has_row) {
    *out_reason = ft_sql_column_text(row, 0, arena);
    if (!*out_reason)
      status = ft_error_set(error, FT_OUT_OF_MEMORY, "out of memory in %s", __func__);
  }
  ft_sql_finish(row);
  return status;
}
