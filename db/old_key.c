// What was measured under another key: where a revalidation begins.
#include <string.h>

#include "db/store_internal.h"

static ft_status describe(ft_store *store, const ft_old_key *key, const char *there,
                          const ft_target *target, uint32_t version, ft_arena *arena,
                          const char **out, ft_error *error) {
  const char *here = ft_target_json(target, store->scratch);
  ft_strbuf text = ft_strbuf_init(arena);
  FT_OOM_IF(!here, error);
  if (key->codegen_version != version)
    ft_strbuf_printf(&text, "codegen (there %u, here %u)%s", key->codegen_version,
                     version, strcmp(there, here) == 0 ? "" : ", ");
  if (strcmp(there, here) != 0) ft_match_differences(&text, there, here, store->scratch);
  FT_OOM_IF(text.failed, error);
  *out = text.text;
  return FT_OK;
}

static ft_status read_key(ft_store *store, sqlite3_stmt *row, const ft_target *target,
                          uint32_t version, ft_arena *arena, ft_old_key *out,
                          ft_error *error) {
  *out = (ft_old_key){.target_id = sqlite3_column_int64(row, 0),
                      .binding_id = sqlite3_column_int64(row, 1),
                      .codegen_version = (uint32_t)sqlite3_column_int64(row, 2),
                      .target = ft_sql_column_text(row, 3, arena)};
  const char *there = ft_sql_column_text(row, 4, store->scratch);
  FT_OOM_IF(!out->target || !there, error);
  return describe(store, out, there, target, version, arena, &out->differs, error);
}

ft_status ft_store_old_key(ft_store *store, const ft_graph *graph,
                           const ft_target *target, uint32_t codegen_version,
                           ft_arena *arena, ft_old_key *out, ft_error *error) {
  ft_arena_reset(store->scratch);
  sqlite3_stmt *row;
  bool has_row = false;
  ft_status status = ft_sql_start(
      store, FT_SQL_OLD_KEY,
      FT_SQL_VALUES(ft_sql_hash(&graph->symbolic_hash), ft_sql_text(ft_store_dims(graph)),
                    ft_sql_hash(&graph->bound_hash), ft_sql_hash(&target->signature),
                    ft_sql_int(codegen_version), ft_sql_text(target->device),
                    ft_sql_text(target->name), ft_sql_text(target->kind)),
      &row, error);
  if (status == FT_OK) status = ft_sql_step(store, row, &has_row, error);
  if (status == FT_OK && has_row)
    status = read_key(store, row, target, codegen_version, arena, out, error);
  ft_sql_finish(row);
  FT_TRY(status);
  if (has_row) return FT_OK;
  FT_FAIL(error, FT_NOT_FOUND,
          "no plan for graph '%s' with dims %s in %s was served under another key:"
          " nothing to revalidate",
          graph->name ? graph->name : "", ft_store_dims(graph), store->path);
}

static ft_status read_candidate(sqlite3_stmt *row, ft_arena *arena, ft_old_candidate *out,
                                ft_error *error) {
  const char *schedule = ft_sql_column_text(row, 1, arena);
  out->tactic = ft_sql_column_text(row, 0, arena);
  out->median_ns = (uint64_t)sqlite3_column_int64(row, 2);
  FT_OOM_IF(!schedule || !out->tactic, error);
  return ft_schedule_parse(schedule, arena, &out->schedule, error);
}

static ft_status read_candidates(ft_store *store, sqlite3_stmt *row, uint32_t most,
                                 ft_arena *arena, ft_old_candidate *list,
                                 uint32_t *out_count, ft_error *error) {
  bool has_row;
  for (;;) {
    FT_TRY(ft_sql_step(store, row, &has_row, error));
    if (!has_row || *out_count == most) return FT_OK;
    FT_TRY(read_candidate(row, arena, &list[*out_count], error));
    (*out_count)++;
  }
}

ft_status ft_store_old_candidates(ft_store *store, const ft_old_key *key,
                                  const ft_workload *workload, uint32_t most,
                                  ft_arena *arena, ft_old_candidate **out,
                                  uint32_t *out_count, ft_error *error) {
  int64_t id, is_planned = 0;
  *out_count = 0;
  *out = FT_NEW_ARRAY(arena, ft_old_candidate, most);
  FT_OOM_IF(!*out, error);
  FT_TRY(ft_workload_find(store, workload, &id, error));
  if (!id) return FT_OK;
  FT_TRY(ft_sql_get(
      store, FT_SQL_OLD_WORKLOAD,
      FT_SQL_VALUES(ft_sql_int(id), ft_sql_int(key->target_id),
                    ft_sql_int(key->codegen_version), ft_sql_int(key->binding_id)),
      &is_planned, error));
  if (!is_planned) return FT_OK;
  sqlite3_stmt *row;
  ft_status status =
      ft_sql_start(store, FT_SQL_OLD_CANDIDATES,
                   FT_SQL_VALUES(ft_sql_int(id), ft_sql_int(key->target_id),
                                 ft_sql_int(key->codegen_version),
                                 ft_sql_int(FT_QUARANTINE_STRIKES), ft_sql_int(most)),
                   &row, error);
  if (status == FT_OK)
    status = read_candidates(store, row, most, arena, *out, out_count, error);
  ft_sql_finish(row);
  return status;
}
