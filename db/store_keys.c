// Targets, graphs, candidates: the keys that trials and plans hang on.
//
//  1. A key is found by its hash and then compared byte for byte. The same hash with
//  other
//     bytes is a broken invariant: INTERNAL, and nothing is written.
//  2. A row is added in a transaction that looks again first, so two processes that meet
//     the same key get the same id.
#include <jansson.h>
#include <string.h>

#include "db/store_internal.h"

// A row found by hash: |id| 0 = none; else its bytes must equal |bytes|.
static ft_status find_exact(ft_store *store, ft_sql id, const char *noun,
                            const ft_hash *hash, const void *bytes, size_t size,
                            int64_t *out_id, ft_error *error) {
  *out_id = 0;
  sqlite3_stmt *row;
  bool has_row = false, is_same = true;
  ft_status status =
      ft_sql_start(store, id, FT_SQL_VALUES(ft_sql_hash(hash)), &row, error);
  if (status == FT_OK) status = ft_sql_step(store, row, &has_row, error);
  if (status == FT_OK && has_row) {
    *out_id = sqlite3_column_int64(row, 0);
    const void *there = sqlite3_column_blob(row, 1);
    is_same = (size_t)sqlite3_column_bytes(row, 1) == size &&
              (size == 0 || (there && memcmp(there, bytes, size) == 0));
  }
  ft_sql_finish(row);
  if (status != FT_OK || is_same) return status;
  char text[FT_HASH_TEXT + 1];
  ft_hash_text(hash, text);
  FT_FAIL(error, FT_INTERNAL, "store %s: %s %s (row %lld) is there with other bytes",
          store->path, noun, text, (long long)*out_id);
}

// ---- targets

typedef struct target_key {
  const ft_target *target;
  const char *json;
  int64_t id;
} target_key;

static ft_status find_target(ft_store *store, target_key *key, ft_error *error) {
  return find_exact(store, FT_SQL_FIND_TARGET, "target", &key->target->signature,
                    key->json, strlen(key->json), &key->id, error);
}

// {"clang-14":"14.0.6"}
static const char *compilers_json(const ft_target *target, ft_arena *arena) {
  json_t *all = json_object();
  for (uint32_t i = 0; i < target->compiler_count; i++)
    if (json_object_set_new(all, target->compiler[i].name,
                            json_string(target->compiler[i].version)) != 0) {
      json_decref(all);
      return NULL;
    }
  const char *text = ft_json_text(all, arena);
  json_decref(all);
  return text;
}

static ft_status add_target(ft_store *store, void *ctx, ft_error *error) {
  target_key *key = ctx;
  FT_TRY(find_target(store, key, error));
  if (key->id) return FT_OK;
  const ft_target *t = key->target;
  const char *compilers = compilers_json(t, store->scratch);
  FT_OOM_IF(!compilers, error);
  return ft_sql_get(
      store, FT_SQL_ADD_TARGET,
      FT_SQL_VALUES(
          ft_sql_hash(&t->signature), ft_sql_text(key->json), ft_sql_text(t->name),
          ft_sql_text(t->kind), ft_sql_text(t->device), ft_sql_text(t->isa),
          ft_sql_unless(t->units, 0), ft_sql_unless(t->threads, 0),
          ft_sql_unless((int64_t)t->memory_bytes, 0),
          ft_sql_unless((int64_t)t->cache_bytes, 0), ft_sql_note(t->power_class),
          ft_sql_note(t->driver), ft_sql_note(t->toolkit), ft_sql_text(compilers),
          ft_sql_text(t->libraries), ft_sql_text(t->numerics)),
      &key->id, error);
}

ft_status ft_store_target(ft_store *store, const ft_target *target, int64_t *out_id,
                          ft_error *error) {
  *out_id = 0;
  ft_arena_reset(store->scratch);
  if (ft_hash_is_zero(&target->signature))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "target '%s' has no signature: seal it first",
            target->name);
  target_key key = {.target = target, .json = ft_target_json(target, store->scratch)};
  FT_OOM_IF(!key.json, error);
  FT_TRY(find_target(store, &key, error));
  if (!key.id) FT_TRY(ft_sql_transact(store, add_target, &key, error));
  *out_id = key.id;
  return FT_OK;
}

// ---- graphs

typedef struct graph_key {
  const ft_graph *graph;
  int64_t graph_id, binding_id;
} graph_key;

const char *ft_store_dims(const ft_graph *graph) {
  return graph->dims_json && *graph->dims_json ? graph->dims_json : "{}";
}

static ft_status find_graph(ft_store *store, graph_key *key, ft_error *error) {
  const ft_graph *g = key->graph;
  key->binding_id = 0;
  FT_TRY(find_exact(store, FT_SQL_FIND_GRAPH, "graph", &g->symbolic_hash,
                    g->symbolic_encoding, g->symbolic_encoding_bytes, &key->graph_id,
                    error));
  if (!key->graph_id) return FT_OK;
  return ft_sql_get(
      store, FT_SQL_FIND_BINDING,
      FT_SQL_VALUES(ft_sql_int(key->graph_id), ft_sql_text(ft_store_dims(g)),
                    ft_sql_hash(&g->bound_hash)),
      &key->binding_id, error);
}

static ft_status add_graph(ft_store *store, void *ctx, ft_error *error) {
  graph_key *key = ctx;
  const ft_graph *g = key->graph;
  FT_TRY(find_graph(store, key, error));
  if (!key->graph_id)
    FT_TRY(ft_sql_get(
        store, FT_SQL_ADD_GRAPH,
        FT_SQL_VALUES(ft_sql_hash(&g->symbolic_hash),
                      ft_sql_blob(g->symbolic_encoding, g->symbolic_encoding_bytes),
                      ft_sql_note(g->name), ft_sql_int(g->live_operators),
                      ft_sql_int(g->primitive_count)),
        &key->graph_id, error));
  if (key->binding_id) return FT_OK;
  return ft_sql_get(
      store, FT_SQL_ADD_BINDING,
      FT_SQL_VALUES(ft_sql_int(key->graph_id), ft_sql_text(ft_store_dims(g)),
                    ft_sql_hash(&g->bound_hash)),
      &key->binding_id, error);
}

ft_status ft_store_graph(ft_store *store, const ft_graph *graph, int64_t *out_graph_id,
                         int64_t *out_binding_id, ft_error *error) {
  *out_graph_id = *out_binding_id = 0;
  if (ft_hash_is_zero(&graph->symbolic_hash) || ft_hash_is_zero(&graph->bound_hash))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "graph '%s' has no hash: finish it first",
            graph->name ? graph->name : "");
  graph_key key = {.graph = graph};
  FT_TRY(find_graph(store, &key, error));
  if (!key.binding_id) FT_TRY(ft_sql_transact(store, add_graph, &key, error));
  *out_graph_id = key.graph_id;
  *out_binding_id = key.binding_id;
  return FT_OK;
}

// ---- candidates

typedef struct candidate_key {
  const ft_candidate *candidate;
  const char *schedule;
  int64_t target_id, version, workload_id, id;
} candidate_key;

ft_status ft_workload_find(ft_store *store, const ft_workload *w, int64_t *out_id,
                           ft_error *error) {
  return find_exact(store, FT_SQL_FIND_WORKLOAD, "workload", &w->hash, w->encoding,
                    w->encoding_bytes, out_id, error);
}

static ft_status find_candidate(ft_store *store, candidate_key *key, ft_error *error) {
  FT_TRY(ft_workload_find(store, key->candidate->workload, &key->workload_id, error));
  if (!key->workload_id) return FT_OK;
  return ft_sql_get(
      store, FT_SQL_FIND_CANDIDATE,
      FT_SQL_VALUES(ft_sql_int(key->workload_id), ft_sql_int(key->target_id),
                    ft_sql_int(key->version), ft_sql_text(key->candidate->tactic),
                    ft_sql_text(key->schedule)),
      &key->id, error);
}

static ft_status add_workload(ft_store *store, candidate_key *key, ft_error *error) {
  const ft_workload *w = key->candidate->workload;
  return ft_sql_get(
      store, FT_SQL_ADD_WORKLOAD,
      FT_SQL_VALUES(ft_sql_hash(&w->hash), ft_sql_blob(w->encoding, w->encoding_bytes),
                    ft_sql_int(w->group.primitive_count),
                    ft_sql_int((int64_t)w->read_bytes),
                    ft_sql_int((int64_t)w->write_bytes), ft_sql_real(w->flops)),
      &key->workload_id, error);
}

static ft_status add_candidate(ft_store *store, void *ctx, ft_error *error) {
  candidate_key *key = ctx;
  FT_TRY(find_candidate(store, key, error));
  if (key->id) return FT_OK;
  if (!key->workload_id) FT_TRY(add_workload(store, key, error));
  const char *tactic = key->candidate->tactic;
  FT_TRY(ft_sql_run(store, FT_SQL_NOTE_SKELETON,
                    FT_SQL_VALUES(ft_sql_int(key->workload_id), ft_sql_text(tactic)),
                    error));
  return ft_sql_get(store, FT_SQL_ADD_CANDIDATE,
                    FT_SQL_VALUES(ft_sql_int(key->workload_id),
                                  ft_sql_int(key->target_id), ft_sql_int(key->version),
                                  ft_sql_text(tactic), ft_sql_text(key->schedule)),
                    &key->id, error);
}

static ft_status make_key(ft_store *store, const ft_candidate *candidate,
                          int64_t target_id, uint32_t codegen_version, candidate_key *out,
                          ft_error *error) {
  ft_arena_reset(store->scratch);
  if (!candidate->tactic || !*candidate->tactic)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "a candidate without a tactic");
  *out =
      (candidate_key){.candidate = candidate,
                      .schedule = ft_schedule_json(&candidate->schedule, store->scratch),
                      .target_id = target_id,
                      .version = codegen_version};
  FT_OOM_IF(!out->schedule, error);
  return find_candidate(store, out, error);
}

ft_status ft_store_find_candidate(ft_store *store, const ft_candidate *candidate,
                                  int64_t target_id, uint32_t codegen_version,
                                  int64_t *out_id, ft_error *error) {
  candidate_key key;
  *out_id = 0;
  FT_TRY(make_key(store, candidate, target_id, codegen_version, &key, error));
  *out_id = key.id;
  return FT_OK;
}

ft_status ft_store_candidate(ft_store *store, const ft_candidate *candidate,
                             int64_t target_id, uint32_t codegen_version, int64_t *out_id,
                             ft_error *error) {
  candidate_key key;
  *out_id = 0;
  FT_TRY(make_key(store, candidate, target_id, codegen_version, &key, error));
  if (!key.id) FT_TRY(ft_sql_transact(store, add_candidate, &key, error));
  *out_id = key.id;
  return FT_OK;
}
