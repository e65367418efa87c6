// Looking at the file itself: integrity and row counts.
#include <string.h>

#include "core/strbuf.h"
#include "db/store_internal.h"

// Appends the rows of |id| to |text|; *bad counts those that are not "ok".
static ft_status list_rows(ft_store *store, ft_sql id, ft_strbuf *text, int *bad,
                           ft_error *error) {
  sqlite3_stmt *row;
  bool has_row = true;
  ft_status status = ft_sql_start(store, id, NULL, 0, &row, error);
  while (status == FT_OK) {
    status = ft_sql_step(store, row, &has_row, error);
    if (status != FT_OK || !has_row) break;
    const char *first = (const char *)sqlite3_column_text(row, 0);
    if (!first || strcmp(first, "ok") == 0) continue;
    if (++*bad > 5) continue;
    ft_strbuf_printf(text, "%s%s", *bad > 1 ? "; " : "", first);
    if (id == FT_SQL_CHECK_KEYS)
      ft_strbuf_printf(text, " row %lld points to a missing row of %s",
                       (long long)sqlite3_column_int64(row, 1),
                       (const char *)sqlite3_column_text(row, 2));
  }
  ft_sql_finish(row);
  return status;
}

static ft_status report(ft_store *store, const ft_strbuf *text, int bad,
                        ft_error *error) {
  FT_OOM_IF(text->failed, error);
  if (bad) FT_FAIL(error, FT_CORRUPT, "store %s: %s", store->path, text->text);
  return FT_OK;
}

ft_status ft_store_quick_check(ft_store *store, ft_error *error) {
  ft_strbuf text = ft_strbuf_init(store->scratch);
  int bad = 0;
  FT_TRY(list_rows(store, FT_SQL_QUICK_CHECK, &text, &bad, error));
  return report(store, &text, bad, error);
}

ft_status ft_store_check(ft_store *store, ft_error *error) {
  ft_arena_reset(store->scratch);
  ft_strbuf text = ft_strbuf_init(store->scratch);
  int bad = 0;
  FT_TRY(list_rows(store, FT_SQL_CHECK, &text, &bad, error));
  FT_TRY(list_rows(store, FT_SQL_CHECK_KEYS, &text, &bad, error));
  return report(store, &text, bad, error);
}

ft_status ft_store_count(ft_store *store, const char *table, int64_t *out,
                         ft_error *error) {
  *out = 0;
  int64_t is_table;
  FT_TRY(ft_sql_get(store, FT_SQL_HAS_TABLE, FT_SQL_VALUES(ft_sql_text(table)), &is_table,
                    error));
  if (!is_table)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "store %s has no table '%s'", store->path, table);
  char *text = sqlite3_mprintf("SELECT count(*) FROM \"%w\"", table);
  FT_OOM_IF(!text, error);
  sqlite3_stmt *statement = NULL;
  int code = sqlite3_prepare_v2(store->db, text, -1, &statement, NULL);
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  if (code == SQLITE_ROW) *out = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_free(text);
  return code == SQLITE_ROW ? FT_OK : ft_sql_failed(store, code, error);
}
