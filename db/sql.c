#include "db/sql.h"

#include <string.h>

#include "db/store_internal.h"

static const char *const sql_text[FT_SQL_COUNT] = {
#define FT_SQL(id, text) text,
#include "db/statements.def"
#undef FT_SQL
};

ft_sql_value ft_sql_null(void) {
  return (ft_sql_value){.kind = FT_SQL_NULL};
}
ft_sql_value ft_sql_int(int64_t value) {
  return (ft_sql_value){.kind = FT_SQL_INTEGER, .integer = value};
}
ft_sql_value ft_sql_unless(int64_t value, int64_t unknown) {
  return value == unknown ? ft_sql_null() : ft_sql_int(value);
}
ft_sql_value ft_sql_ns(uint64_t ns) {
  return ft_sql_unless((int64_t)ns, 0);
}
ft_sql_value ft_sql_real(double value) {
  return (ft_sql_value){.kind = FT_SQL_REAL, .real = value};
}
ft_sql_value ft_sql_text(const char *text) {
  if (!text) text = "";
  return (ft_sql_value){.kind = FT_SQL_TEXT, .data = text, .size = strlen(text)};
}
ft_sql_value ft_sql_note(const char *text) {
  return text && *text ? ft_sql_text(text) : ft_sql_null();
}
ft_sql_value ft_sql_blob(const void *data, size_t size) {
  // SQLite takes a NULL pointer for NULL, and an empty blob is not unknown.
  return (ft_sql_value){.kind = FT_SQL_BLOB, .data = data ? data : "", .size = size};
}
ft_sql_value ft_sql_hash(const ft_hash *hash) {
  return ft_hash_is_zero(hash) ? ft_sql_null() : ft_sql_blob(hash, sizeof *hash);
}

typedef struct reaction {
  int code;  // primary result code
  ft_status status;
  const char *advice;
} reaction;

static const reaction reactions[] = {
    {SQLITE_BUSY, FT_UNAVAILABLE, "another process holds it: try again when it is done"},
    {SQLITE_LOCKED, FT_UNAVAILABLE,
     "another process holds it: try again when it is done"},
    {SQLITE_CORRUPT, FT_CORRUPT, "move the file away, or restore a copy"},
    {SQLITE_NOTADB, FT_CORRUPT, "move the file away, or name another store"},
    {SQLITE_FULL, FT_IO, "make room on the disk; nothing of this step was written"},
    {SQLITE_IOERR, FT_IO, "look at the disk; nothing of this step was written"},
    {SQLITE_CANTOPEN, FT_IO, "is its folder there and writable?"},
    {SQLITE_READONLY, FT_IO, "make it writable, or name another store"},
    {SQLITE_PERM, FT_IO, "make it writable, or name another store"},
    {SQLITE_AUTH, FT_IO, "make it writable, or name another store"},
    {SQLITE_TOOBIG, FT_INVALID_ARGUMENT, "a value passes SQLite's limit of 1 GB"},
    {SQLITE_CONSTRAINT, FT_INVALID_ARGUMENT, "the row breaks a rule of db/schema.sql"},
    {SQLITE_NOMEM, FT_OUT_OF_MEMORY, "out of memory"},
};

ft_status ft_sql_failed(ft_store *store, int code, ft_error *error) {
  reaction found = {code, FT_INTERNAL, "this is a bug of fusetune"};
  for (size_t i = 0; i < sizeof reactions / sizeof *reactions; i++)
    if (reactions[i].code == (code & 0xff)) found = reactions[i];
  const char *text = store->db ? sqlite3_errmsg(store->db) : sqlite3_errstr(code);
  return ft_error_set(error, found.status, "store %s: %s (%s)", store->path, text,
                      found.advice);
}

static int bind(sqlite3_stmt *statement, int place, const ft_sql_value *value) {
  switch (value->kind) {
    case FT_SQL_INTEGER:
      return sqlite3_bind_int64(statement, place, value->integer);
    case FT_SQL_REAL:
      return sqlite3_bind_double(statement, place, value->real);
    case FT_SQL_TEXT:
      return sqlite3_bind_text64(statement, place, value->data, value->size,
                                 SQLITE_STATIC, SQLITE_UTF8);
    case FT_SQL_BLOB:
      return sqlite3_bind_blob64(statement, place, value->data, value->size,
                                 SQLITE_STATIC);
    case FT_SQL_NULL:
      break;
  }
  return sqlite3_bind_null(statement, place);
}

static ft_status prepared(ft_store *store, ft_sql id, ft_error *error) {
  if (store->statement[id]) return FT_OK;
  int code = sqlite3_prepare_v3(store->db, sql_text[id], -1, SQLITE_PREPARE_PERSISTENT,
                                &store->statement[id], NULL);
  return code == SQLITE_OK ? FT_OK : ft_sql_failed(store, code, error);
}

ft_status ft_sql_start(ft_store *store, ft_sql id, const ft_sql_value *value,
                       size_t count, sqlite3_stmt **out, ft_error *error) {
  *out = NULL;
  FT_TRY(prepared(store, id, error));
  sqlite3_stmt *statement = store->statement[id];
  FT_ASSERT(!sqlite3_stmt_busy(statement));
  FT_ASSERT(sqlite3_bind_parameter_count(statement) == (int)count);
  *out = statement;
  for (size_t i = 0; i < count; i++) {
    int code = bind(statement, (int)i + 1, &value[i]);
    if (code != SQLITE_OK) return ft_sql_failed(store, code, error);
  }
  return FT_OK;
}

ft_status ft_sql_step(ft_store *store, sqlite3_stmt *statement, bool *has_row,
                      ft_error *error) {
  int code = sqlite3_step(statement);
  *has_row = code == SQLITE_ROW;
  if (code == SQLITE_ROW || code == SQLITE_DONE) return FT_OK;
  return ft_sql_failed(store, code, error);
}

void ft_sql_finish(sqlite3_stmt *statement) {
  if (!statement) return;
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
}

// Runs to the end; *out is the first column of the first row.
static ft_status run(ft_store *store, ft_sql id, const ft_sql_value *value, size_t count,
                     int64_t *out, ft_error *error) {
  *out = 0;
  sqlite3_stmt *statement;
  ft_status status = ft_sql_start(store, id, value, count, &statement, error);
  bool has_row = true;
  for (bool is_first = true; status == FT_OK && has_row; is_first = false) {
    status = ft_sql_step(store, statement, &has_row, error);
    if (status == FT_OK && has_row && is_first) *out = sqlite3_column_int64(statement, 0);
  }
  ft_sql_finish(statement);
  return status;
}

ft_status ft_sql_run(ft_store *store, ft_sql id, const ft_sql_value *value, size_t count,
                     ft_error *error) {
  int64_t ignored;
  return run(store, id, value, count, &ignored, error);
}

ft_status ft_sql_get(ft_store *store, ft_sql id, const ft_sql_value *value, size_t count,
                     int64_t *out, ft_error *error) {
  return run(store, id, value, count, out, error);
}

const char *ft_sql_column_text(sqlite3_stmt *statement, int column, ft_arena *arena) {
  if (sqlite3_column_type(statement, column) == SQLITE_NULL) return "";
  const unsigned char *text = sqlite3_column_text(statement, column);
  return text ? ft_arena_strdup(arena, (const char *)text) : NULL;
}

ft_status ft_sql_script(ft_store *store, const char *text, ft_error *error) {
  int code = sqlite3_exec(store->db, text, NULL, NULL, NULL);
  return code == SQLITE_OK ? FT_OK : ft_sql_failed(store, code, error);
}

ft_status ft_sql_transact(ft_store *store, ft_sql_body body, void *ctx, ft_error *error) {
  FT_ASSERT(sqlite3_get_autocommit(store->db));
  FT_TRY(ft_sql_script(store, "BEGIN IMMEDIATE", error));
  ft_status status = body(store, ctx, error);
  if (status == FT_OK) status = ft_sql_script(store, "COMMIT", error);
  // A full disk or no memory rolls back by itself.
  if (status != FT_OK && !sqlite3_get_autocommit(store->db))
    (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
  return status;
}
