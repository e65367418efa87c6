// Runs, and what a dead run leaves.
//
//  1. A pending row belongs to its run's owner: only when that process is surely dead
//     does another turn it into 'interrupted'. Who cannot be seen is not dead.
//  2. An interruption is no strike: kernels run in the worker, so what killed the tuner
//     was not the kernel.
//  3. A death is an unclean close: the file's pages are checked before anything is
//  written.
//  4. A run that ends interrupts what it left pending: those never ran, so no strike.
#include "core/clock.h"
#include "core/log.h"
#include "db/store_internal.h"

// ---- runs

ft_status ft_store_run_begin(ft_store *store, const ft_run_record *run, int64_t *out_id,
                             ft_error *error) {
  *out_id = 0;
  return ft_sql_get(
      store, FT_SQL_ADD_RUN,
      FT_SQL_VALUES(ft_sql_int(run->binding_id), ft_sql_int(run->target_id),
                    ft_sql_text(run->request), ft_sql_int((int64_t)run->seed),
                    ft_sql_text(run->version), ft_sql_text(run->host),
                    ft_sql_text(store->owner), ft_sql_int((int64_t)ft_clock_unix_ns())),
      out_id, error);
}

typedef struct run_end {
  int64_t run_id;
  const char *reason;
} run_end;

static ft_status end_run(ft_store *store, void *ctx, ft_error *error) {
  const run_end *end = ctx;
  int64_t found;
  FT_TRY(ft_sql_get(
      store, FT_SQL_END_RUN,
      FT_SQL_VALUES(ft_sql_int(end->run_id), ft_sql_int((int64_t)ft_clock_unix_ns()),
                    ft_sql_text(end->reason)),
      &found, error));
  if (!found)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "store %s has no run %lld", store->path,
            (long long)end->run_id);
  return ft_sql_run(store, FT_SQL_STOP_TRIALS, FT_SQL_VALUES(ft_sql_int(end->run_id)),
                    error);
}

ft_status ft_store_run_end(ft_store *store, int64_t run_id, const char *stop_reason,
                           ft_error *error) {
  run_end end = {run_id, stop_reason};
  return ft_sql_transact(store, end_run, &end, error);
}

// ---- recovery

typedef struct owner_list {
  const char **item;
  size_t count, capacity;
} owner_list;

static ft_status list_owners(ft_store *store, owner_list *list, ft_error *error) {
  sqlite3_stmt *row;
  bool has_row = true;
  ft_status status = ft_sql_start(store, FT_SQL_PENDING_OWNERS, NULL, 0, &row, error);
  while (status == FT_OK) {
    status = ft_sql_step(store, row, &has_row, error);
    if (status != FT_OK || !has_row) break;
    const char *owner = ft_sql_column_text(row, 0, store->scratch);
    if (!owner || FT_GROW(store->scratch, &list->item, list->count, &list->capacity)) {
      status = ft_error_set(error, FT_OUT_OF_MEMORY, "out of memory in %s", __func__);
      break;
    }
    list->item[list->count++] = owner;
  }
  ft_sql_finish(row);
  return status;
}

static ft_status bury(ft_store *store, const char *owner, ft_error *error) {
  FT_TRY(ft_store_quick_check(store, error));
  ft_log(FT_LOG_INFO, "store %s: what %s left pending is interrupted", store->path,
         owner);
  return ft_sql_run(store, FT_SQL_INTERRUPT_TRIALS, FT_SQL_VALUES(ft_sql_text(owner)),
                    error);
}

ft_status ft_store_recover(ft_store *store, ft_error *error) {
  ft_arena_reset(store->scratch);
  owner_list owners = {0};
  FT_TRY(list_owners(store, &owners, error));
  for (size_t i = 0; i < owners.count; i++)
    if (ft_owner_look(owners.item[i], store->owner) == FT_OWNER_DEAD)
      FT_TRY(bury(store, owners.item[i], error));
  return FT_OK;
}
