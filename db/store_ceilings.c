// Ceilings of targets, and the trials that broke through one.
#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "db/store_internal.h"

static int by_kind(const ft_ceiling *a, const ft_ceiling *b) {
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

// A row that no sane program wrote counts as none.
static bool read_row(sqlite3_stmt *row, ft_ceiling *out) {
  const char *kind = (const char *)sqlite3_column_text(row, 0);
  *out = (ft_ceiling){.bytes = (uint64_t)sqlite3_column_int64(row, 1),
                      .best = sqlite3_column_double(row, 2),
                      .median = sqlite3_column_double(row, 3),
                      .samples = (uint32_t)sqlite3_column_int64(row, 4),
                      .is_raised = sqlite3_column_int(row, 5) != 0,
                      .measured_at = (uint64_t)sqlite3_column_int64(row, 6)};
  return kind && ft_ceiling_find(kind, &out->kind) && isfinite(out->best) &&
         out->best > 0;
}

static void insert_sorted(ft_ceiling *list, uint32_t *count, const ft_ceiling *row) {
  uint32_t at = *count;
  for (; at > 0 && by_kind(row, &list[at - 1]) < 0; at--) list[at] = list[at - 1];
  list[at] = *row;
  ++*count;
}

ft_status ft_store_ceilings(ft_store *store, int64_t target_id, ft_ceiling *out,
                            uint32_t *out_count, ft_error *error) {
  sqlite3_stmt *row;
  bool has_row = false;
  *out_count = 0;
  ft_status status = ft_sql_start(store, FT_SQL_LIST_CEILINGS,
                                  FT_SQL_VALUES(ft_sql_int(target_id)), &row, error);
  if (status == FT_OK) status = ft_sql_step(store, row, &has_row, error);
  while (status == FT_OK && has_row && *out_count < FT_CEILINGS_MOST) {
    ft_ceiling ceiling;
    if (read_row(row, &ceiling)) insert_sorted(out, out_count, &ceiling);
    status = ft_sql_step(store, row, &has_row, error);
  }
  ft_sql_finish(row);
  if (status != FT_OK) *out_count = 0;
  return status;
}

typedef struct saving {
  int64_t target_id;
  const ft_ceiling *ceiling;
  uint32_t count;
  bool replaces;
} saving;

static ft_status save_row(ft_store *store, int64_t target_id, const ft_ceiling *c,
                          ft_error *error) {
  return ft_sql_run(
      store, FT_SQL_SAVE_CEILING,
      FT_SQL_VALUES(ft_sql_int(target_id), ft_sql_text(ft_ceiling_name(c->kind)),
                    ft_sql_int((int64_t)c->bytes), ft_sql_real(c->best),
                    ft_sql_text(ft_ceiling_unit_text(ft_ceiling_unit_of(c->kind))),
                    ft_sql_real(c->median), ft_sql_int(c->samples),
                    ft_sql_int(c->is_raised), ft_sql_int((int64_t)c->measured_at)),
      error);
}

static ft_status save_all(ft_store *store, void *ctx, ft_error *error) {
  const saving *s = ctx;
  if (s->replaces)
    FT_TRY(ft_sql_run(store, FT_SQL_DROP_CEILINGS,
                      FT_SQL_VALUES(ft_sql_int(s->target_id)), error));
  for (uint32_t i = 0; i < s->count; i++)
    FT_TRY(save_row(store, s->target_id, &s->ceiling[i], error));
  return ft_sql_run(
      store, FT_SQL_CALIBRATED,
      FT_SQL_VALUES(ft_sql_int(s->target_id), ft_sql_int((int64_t)ft_clock_unix_ns())),
      error);
}

ft_status ft_store_ceilings_save(ft_store *store, int64_t target_id,
                                 const ft_ceiling *ceiling, uint32_t count, bool replaces,
                                 ft_error *error) {
  for (uint32_t i = 0; i < count; i++) {
    const ft_ceiling *c = &ceiling[i];
    if (!isfinite(c->best) || !isfinite(c->median) || c->best <= 0 || c->median <= 0)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "ceiling %s of %llu bytes is %g, median %g",
              ft_ceiling_name(c->kind), (unsigned long long)c->bytes, c->best, c->median);
  }
  saving s = {target_id, ceiling, count, replaces};
  return ft_sql_transact(store, save_all, &s, error);
}

ft_status ft_store_alarm_save(ft_store *store, const ft_alarm_record *a,
                              ft_error *error) {
  return ft_sql_run(
      store, FT_SQL_ADD_ALARM,
      FT_SQL_VALUES(ft_sql_int(a->run_id), ft_sql_int(a->candidate_id),
                    ft_sql_int((int64_t)a->median_ns), ft_sql_real(a->bound_ns),
                    ft_sql_text(ft_ceiling_name(a->kind)), ft_sql_int((int64_t)a->bytes),
                    ft_sql_real(a->before), ft_sql_real(a->after),
                    ft_sql_int(a->is_remeasured), ft_sql_int(a->is_explained),
                    ft_sql_int((int64_t)ft_clock_unix_ns())),
      error);
}
