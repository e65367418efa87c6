// sql - cached prepared statements, typed values, transactions, and SQLite's result codes
// as statuses. Inside db/ only.
#ifndef FT_DB_SQL_H
#define FT_DB_SQL_H

#include <sqlite3.h>

#include "core/hash.h"
#include "core/status.h"
#include "db/store.h"

typedef enum ft_sql {
#define FT_SQL(id, text) FT_SQL_##id,
#include "db/statements.def"
#undef FT_SQL
  FT_SQL_COUNT
} ft_sql;

typedef struct ft_sql_value {
  enum { FT_SQL_NULL, FT_SQL_INTEGER, FT_SQL_REAL, FT_SQL_TEXT, FT_SQL_BLOB } kind;
  int64_t integer;
  double real;
  const void *data;  // borrowed for the call
  size_t size;
} ft_sql_value;

ft_sql_value ft_sql_null(void);
ft_sql_value ft_sql_int(int64_t value);
ft_sql_value ft_sql_unless(int64_t value, int64_t unknown);  // NULL when they are equal
ft_sql_value ft_sql_ns(uint64_t ns);                         // 0 is NULL
ft_sql_value ft_sql_real(double value);
ft_sql_value ft_sql_text(const char *text);  // NULL pointer is ""
ft_sql_value ft_sql_note(const char *text);  // NULL pointer and "" are NULL
ft_sql_value ft_sql_blob(const void *data, size_t size);
ft_sql_value ft_sql_hash(const ft_hash *hash);  // zero is NULL

// The values of a statement's ?1, ?2, ... in order: two arguments of the calls below.
#define FT_SQL_VALUES(...)             \
  (const ft_sql_value[]){__VA_ARGS__}, \
      sizeof((const ft_sql_value[]){__VA_ARGS__}) / sizeof(ft_sql_value)

// Rows: start, step until *has_row is false, finish (always, even after an error). A
// statement is one at a time: it must not be started again before finish.
FT_MUST_CHECK ft_status ft_sql_start(ft_store *store, ft_sql id,
                                     const ft_sql_value *value, size_t count,
                                     sqlite3_stmt **out, ft_error *error);
FT_MUST_CHECK ft_status ft_sql_step(ft_store *store, sqlite3_stmt *statement,
                                    bool *has_row, ft_error *error);
void ft_sql_finish(sqlite3_stmt *statement);  // NULL is fine

// Runs to the end, rows ignored.
FT_MUST_CHECK ft_status ft_sql_run(ft_store *store, ft_sql id, const ft_sql_value *value,
                                   size_t count, ft_error *error);
// First column of the first row as an integer; 0 when there is no row.
FT_MUST_CHECK ft_status ft_sql_get(ft_store *store, ft_sql id, const ft_sql_value *value,
                                   size_t count, int64_t *out, ft_error *error);

// Column as text in |arena|; "" when NULL; NULL pointer when out of memory.
const char *ft_sql_column_text(sqlite3_stmt *statement, int column, ft_arena *arena);

// BEGIN IMMEDIATE, |body|, COMMIT; whatever fails is rolled back.
typedef ft_status (*ft_sql_body)(ft_store *store, void *ctx, ft_error *error);
FT_MUST_CHECK ft_status ft_sql_transact(ft_store *store, ft_sql_body body, void *ctx,
                                        ft_error *error);

// Text that is not cached: pragmas, the schema.
FT_MUST_CHECK ft_status ft_sql_script(ft_store *store, const char *text, ft_error *error);
// Fills |error| from the connection's last result |code|: says which file, and what to
// do.
ft_status ft_sql_failed(ft_store *store, int code, ft_error *error);

#endif
