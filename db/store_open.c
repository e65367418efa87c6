// Opening the store.
//
//  1. busy_timeout is set before any statement, so that no statement fails because
//     another process writes.
//  2. One process at a time creates or migrates: FILE.lock is held by flock from before
//     the file exists until its version is ours. A migration is one transaction.
//  3. The file is 0600 from its first byte; SQLite gives the -wal and -shm the same mode.
//  4. Nothing is written to a file that is not ours: another version, another program's
//     database, something that is no database.
//  5. One writer: whoever writes takes the write lock first (BEGIN IMMEDIATE), and no
//     transaction spans two public calls.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/schema_bytes.h"
#include "db/store_internal.h"

enum { BUSY_MS = 10000 };

static ft_status make_folders(const char *path, ft_arena *scratch, ft_error *error) {
  char *folder = ft_arena_strdup(scratch, path);
  FT_OOM_IF(!folder, error);
  for (char *slash = strchr(folder + 1, '/'); *folder && slash;
       slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(folder, 0700) != 0 && errno != EEXIST && errno != EISDIR)
      FT_FAIL(error, FT_IO, "cannot make folder %s for the store: %s", folder,
              strerror(errno));
    *slash = '/';
  }
  return FT_OK;
}

// The file, empty and private, before SQLite sees it. No connection of this process can
// have it open yet, so closing it drops no lock.
static ft_status make_file(const char *path, ft_error *error) {
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) {
    close(fd);
    return FT_OK;
  }
  if (errno == EEXIST) return FT_OK;
  FT_FAIL(error, FT_IO, "cannot create store %s: %s", path, strerror(errno));
}

static ft_status lock_file(const char *path, ft_arena *scratch, int *out,
                           ft_error *error) {
  const char *name = ft_arena_printf(scratch, "%s.lock", path);
  FT_OOM_IF(!name, error);
  *out = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (*out < 0) FT_FAIL(error, FT_IO, "cannot create %s: %s", name, strerror(errno));
  while (flock(*out, LOCK_EX) != 0)
    if (errno != EINTR)
      FT_FAIL(error, FT_IO, "cannot lock %s: %s", name, strerror(errno));
  return FT_OK;
}

static ft_status read_version(ft_store *store, int *out, ft_error *error) {
  sqlite3_stmt *statement = NULL;
  int code = sqlite3_prepare_v2(store->db, "PRAGMA user_version", -1, &statement, NULL);
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  ft_status status = FT_OK;
  if (code == SQLITE_ROW)
    *out = sqlite3_column_int(statement, 0);
  else
    status = ft_sql_failed(store, code, error);
  sqlite3_finalize(statement);
  return status;
}

static ft_status create_schema(ft_store *store, void *ctx, ft_error *error) {
  (void)ctx;
  FT_TRY(ft_sql_script(store, ft_schema_sql, error));
  char version[48];
  snprintf(version, sizeof version, "PRAGMA user_version = %d", FT_STORE_VERSION);
  return ft_sql_script(store, version, error);
}

// From version 1: frozen as it was when version 2 came.
static const char to_version_2[] =
    "CREATE TABLE ceiling("
    " target_id INTEGER NOT NULL REFERENCES target, kind TEXT NOT NULL,"
    " bytes INTEGER NOT NULL, value REAL NOT NULL CHECK(value > 0),"
    " unit TEXT NOT NULL CHECK(unit IN('bytes/s','flops/s','ns')),"
    " median REAL NOT NULL, samples INTEGER NOT NULL, raised INTEGER NOT NULL,"
    " measured_at INTEGER NOT NULL, PRIMARY KEY(target_id, kind, bytes)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE alarm("
    " id INTEGER PRIMARY KEY, run_id INTEGER REFERENCES run,"
    " candidate_id INTEGER NOT NULL REFERENCES candidate,"
    " trial_id INTEGER REFERENCES trial, median_ns INTEGER NOT NULL,"
    " bound_ns REAL NOT NULL, kind TEXT NOT NULL, bytes INTEGER NOT NULL,"
    " value_before REAL NOT NULL, value_after REAL NOT NULL,"
    " remeasured INTEGER NOT NULL, explained INTEGER NOT NULL,"
    " created_at INTEGER NOT NULL) STRICT;"
    "CREATE INDEX alarm_candidate ON alarm(candidate_id);"
    "PRAGMA user_version = 2";

// [v]: from version v to the next one.
static const char *const steps[FT_STORE_VERSION] = {NULL, to_version_2};

static ft_status take_steps(ft_store *store, void *ctx, ft_error *error) {
  for (int version = *(const int *)ctx; version < FT_STORE_VERSION; version++)
    FT_TRY(ft_sql_script(store, steps[version], error));
  return FT_OK;
}

// Version 0 is a new file.
static ft_status migrate(ft_store *store, ft_error *error) {
  int version = 0;
  FT_TRY(read_version(store, &version, error));
  if (version > FT_STORE_VERSION || version < 0)
    FT_FAIL(error, FT_REFUSED,
            "store %s has version %d, this fusetune knows %d: use a newer fusetune",
            store->path, version, FT_STORE_VERSION);
  if (version == FT_STORE_VERSION) return FT_OK;
  if (version > 0) return ft_sql_transact(store, take_steps, &version, error);
  int64_t tables;
  FT_TRY(ft_sql_get(store, FT_SQL_ANY_TABLE, NULL, 0, &tables, error));
  if (tables > 0)
    FT_FAIL(
        error, FT_REFUSED,
        "%s is another program's database (version 0 with tables): name another store",
        store->path);
  FT_TRY(ft_sql_script(store, "PRAGMA journal_mode = WAL", error));
  return ft_sql_transact(store, create_schema, NULL, error);
}

static ft_status refuse_read_only(ft_store *store, ft_error *error) {
  if (!sqlite3_db_readonly(store->db, "main")) return FT_OK;
  FT_FAIL(error, FT_IO, "store %s is read-only: make it writable, or name another store",
          store->path);
}

static ft_status connect_locked(ft_store *store, ft_error *error) {
  FT_TRY(make_file(store->path, error));
  int code = sqlite3_open_v2(store->path, &store->db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
  if (code == SQLITE_OK) code = sqlite3_busy_timeout(store->db, BUSY_MS);
  if (code == SQLITE_OK) code = sqlite3_extended_result_codes(store->db, 1);
  if (code != SQLITE_OK) return ft_sql_failed(store, code, error);
  FT_TRY(refuse_read_only(store, error));
  FT_TRY(migrate(store, error));
  return ft_sql_script(store,
                       "PRAGMA foreign_keys = ON; PRAGMA journal_mode = WAL;"
                       "PRAGMA synchronous = NORMAL",
                       error);
}

ft_status ft_store_connect(ft_store *store, ft_error *error) {
  FT_TRY(make_folders(store->path, store->scratch, error));
  int lock = -1;
  ft_status status = lock_file(store->path, store->scratch, &lock, error);
  if (status == FT_OK) status = connect_locked(store, error);
  if (lock >= 0) close(lock);
  return status;
}

static ft_status open_all(ft_store *store, const char *path, ft_error *error) {
  store->arena = ft_arena_create(store->allocator);
  store->scratch = ft_arena_create(store->allocator);
  FT_OOM_IF(!store->arena || !store->scratch, error);
  store->path = ft_arena_strdup(store->arena, path);
  FT_OOM_IF(!store->path, error);
  FT_TRY(ft_owner_self(store->owner, error));
  FT_TRY(ft_store_connect(store, error));
  return ft_store_recover(store, error);
}

ft_status ft_store_open(const char *path, const ft_allocator *allocator, ft_store **out,
                        ft_error *error) {
  *out = NULL;
  if (!path || !*path) FT_FAIL(error, FT_INVALID_ARGUMENT, "the store's path is empty");
  ft_store *store = ft_allocate(allocator, sizeof *store, 0);
  FT_OOM_IF(!store, error);
  memset(store, 0, sizeof *store);
  store->allocator = allocator;
  ft_status status = open_all(store, path, error);
  if (status == FT_OK)
    *out = store;
  else
    ft_store_close(store);
  return status;
}

void ft_store_expect_codegen(ft_store *store, uint32_t version) {
  store->codegen_version = version;
}

void ft_store_close(ft_store *store) {
  if (!store) return;
  for (size_t i = 0; i < FT_SQL_COUNT; i++) sqlite3_finalize(store->statement[i]);
  (void)sqlite3_close(store->db);
  ft_arena_destroy(store->scratch);
  ft_arena_destroy(store->arena);
  ft_release(store->allocator, store);
}

const char *ft_store_default_path(ft_arena *arena) {
  const char *store = getenv("FUSETUNE_STORE");
  if (store && *store) return ft_arena_strdup(arena, store);
  const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
  // The XDG specification: a relative path is to be ignored.
  if (data && *data == '/') return ft_arena_printf(arena, "%s/fusetune/store.db", data);
  return ft_arena_printf(arena, "%s/.local/share/fusetune/store.db",
                         home && *home ? home : ".");
}
