// Builds, and the sources, objects and logs that they leave: bytes by content,
// compressed.
#include <zlib.h>

#include "db/store_internal.h"

// What a stored artifact may unpack to: a hostile store must not choose our memory.
enum { ARTIFACT_MAX_BYTES = 1 << 30 };

static ft_status compress_bytes(const void *data, size_t size, ft_arena *scratch,
                                void **out, size_t *out_size, ft_error *error) {
  uLongf length = compressBound((uLong)size);
  *out = ft_arena_alloc(scratch, length);
  FT_OOM_IF(!*out, error);
  int code = compress2(*out, &length, data ? data : (const void *)"", (uLong)size, 6);
  FT_OOM_IF(code == Z_MEM_ERROR, error);
  FT_ASSERT(code == Z_OK);
  *out_size = length;
  return FT_OK;
}

static ft_status find_artifact(ft_store *store, const ft_hash *hash, size_t size,
                               bool *out_is_there, ft_error *error) {
  sqlite3_stmt *row;
  bool is_same = true;
  ft_status status = ft_sql_start(store, FT_SQL_FIND_ARTIFACT,
                                  FT_SQL_VALUES(ft_sql_hash(hash)), &row, error);
  *out_is_there = false;
  if (status == FT_OK) status = ft_sql_step(store, row, out_is_there, error);
  if (status == FT_OK && *out_is_there)
    is_same = sqlite3_column_int64(row, 0) == (int64_t)size;
  ft_sql_finish(row);
  if (status != FT_OK || is_same) return status;
  char text[FT_HASH_TEXT + 1];
  ft_hash_text(hash, text);
  FT_FAIL(error, FT_INTERNAL, "store %s: artifact %s is there with other bytes",
          store->path, text);
}

ft_status ft_artifact_add(ft_store *store, const char *kind, const void *data,
                          size_t size, ft_hash *out_hash, ft_error *error) {
  *out_hash = ft_hash_bytes(data ? data : "", size);
  bool is_there;
  FT_TRY(find_artifact(store, out_hash, size, &is_there, error));
  if (is_there) return FT_OK;
  void *packed;
  size_t packed_bytes;
  FT_TRY(compress_bytes(data, size, store->scratch, &packed, &packed_bytes, error));
  return ft_sql_run(
      store, FT_SQL_ADD_ARTIFACT,
      FT_SQL_VALUES(ft_sql_hash(out_hash), ft_sql_text(kind), ft_sql_int((int64_t)size),
                    ft_sql_blob(packed, packed_bytes)),
      error);
}

typedef struct artifact {
  const char *kind;
  const void *data;
  size_t size;
  ft_hash *hash;
} artifact;

static ft_status add_artifact(ft_store *store, void *ctx, ft_error *error) {
  const artifact *it = ctx;
  return ft_artifact_add(store, it->kind, it->data, it->size, it->hash, error);
}

ft_status ft_store_artifact(ft_store *store, const char *kind, const void *data,
                            size_t size, ft_hash *out_hash, ft_error *error) {
  ft_arena_reset(store->scratch);
  if (size > ARTIFACT_MAX_BYTES)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "an artifact of %zu bytes: at most %d", size,
            ARTIFACT_MAX_BYTES);
  artifact it = {kind, data, size, out_hash};
  return ft_sql_transact(store, add_artifact, &it, error);
}

static ft_status unpack(ft_store *store, sqlite3_stmt *row, const ft_hash *hash,
                        ft_arena *arena, const void **out, size_t *out_size,
                        ft_error *error) {
  int64_t size = sqlite3_column_int64(row, 0);
  char text[FT_HASH_TEXT + 1];
  ft_hash_text(hash, text);
  if (size < 0 || size > ARTIFACT_MAX_BYTES)
    FT_FAIL(error, FT_CORRUPT, "store %s: artifact %s has a size of %lld bytes",
            store->path, text, (long long)size);
  void *data = ft_arena_alloc(arena, (size_t)size + 1);
  FT_OOM_IF(!data, error);
  uLongf length = (uLongf)size + 1;
  int code = uncompress(data, &length, sqlite3_column_blob(row, 1),
                        (uLong)sqlite3_column_bytes(row, 1));
  FT_OOM_IF(code == Z_MEM_ERROR, error);
  ft_hash found = ft_hash_bytes(data, code == Z_OK ? length : 0);
  if (code != Z_OK || (int64_t)length != size || !ft_hash_equal(&found, hash))
    FT_FAIL(error, FT_CORRUPT, "store %s: artifact %s does not unpack to its bytes",
            store->path, text);
  *out = data;
  *out_size = length;
  return FT_OK;
}

ft_status ft_store_artifact_read(ft_store *store, const ft_hash *hash, ft_arena *arena,
                                 const void **out, size_t *out_size, ft_error *error) {
  *out = NULL;
  *out_size = 0;
  sqlite3_stmt *row;
  bool has_row = false;
  ft_status status = ft_sql_start(store, FT_SQL_READ_ARTIFACT,
                                  FT_SQL_VALUES(ft_sql_hash(hash)), &row, error);
  if (status == FT_OK) status = ft_sql_step(store, row, &has_row, error);
  if (status == FT_OK && has_row)
    status = unpack(store, row, hash, arena, out, out_size, error);
  ft_sql_finish(row);
  if (status != FT_OK || has_row) return status;
  char text[FT_HASH_TEXT + 1];
  ft_hash_text(hash, text);
  FT_FAIL(error, FT_NOT_FOUND, "store %s has no artifact %s", store->path, text);
}

static ft_status add_text(ft_store *store, const char *kind, const char *text,
                          ft_hash *out, ft_error *error) {
  *out = (ft_hash){0};
  if (!text || !*text) return FT_OK;
  return ft_artifact_add(store, kind, text, __builtin_strlen(text), out, error);
}

ft_status ft_build_save(ft_store *store, const ft_module *module, int64_t target_id,
                        int64_t *out_id, ft_error *error) {
  *out_id = 0;
  if (ft_hash_is_zero(&module->body_hash)) return FT_OK;
  FT_TRY(
      ft_sql_get(store, FT_SQL_FIND_BUILD,
                 FT_SQL_VALUES(ft_sql_hash(&module->body_hash), ft_sql_int(target_id),
                               ft_sql_text(module->compiler), ft_sql_text(module->flags)),
                 out_id, error));
  if (*out_id) return FT_OK;
  ft_hash source, log;
  FT_TRY(add_text(store, "source", module->source, &source, error));
  FT_TRY(add_text(store, "log", module->log, &log, error));
  const ft_static_facts *f = &module->facts;
  return ft_sql_get(
      store, FT_SQL_ADD_BUILD,
      FT_SQL_VALUES(ft_sql_hash(&module->body_hash), ft_sql_int(target_id),
                    ft_sql_text(module->compiler), ft_sql_text(module->flags),
                    ft_sql_text(ft_outcome_text(module->outcome)), ft_sql_hash(&source),
                    ft_sql_hash(&log), ft_sql_unless(f->registers, -1),
                    ft_sql_unless(f->spill_store_bytes, -1),
                    ft_sql_unless(f->spill_load_bytes, -1),
                    ft_sql_unless(f->stack_bytes, -1), ft_sql_unless(f->shared_bytes, -1),
                    ft_sql_unless(f->max_threads, -1),
                    f->occupancy < 0 ? ft_sql_null() : ft_sql_real(f->occupancy),
                    ft_sql_int((int64_t)module->build_ns)),
      out_id, error);
}
