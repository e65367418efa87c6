// Plans.
//
// When a stored plan may be reused (ft_store_served_plan):
//  1. The graph is the same: symbolic hash, then its encoding byte for byte, then the
//  bound
//     dims, then the hash of the primitives with concrete shapes.
//  2. The target is the same: the signature, so device, driver, compilers, threads, ...
//     And its kernels are of the codegen version that the store was told to expect.
//  3. It won its end-to-end comparison: served = 1, and at most one row per binding and
//     target has that (a unique index).
//  4. None of its candidates is quarantined.
//  5. Whoever takes it decodes it against the graph (ft_plan_parse): workload hashes and
//     the plan's own hash are computed anew, not believed.
// Reading writes nothing, so the same store gives the same bytes.
#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "db/store_internal.h"

// Which of the plan's end-to-end times is its own.
static ft_time own_time(const ft_plan *plan, const char *role) {
  if (strcmp(role, "unfused") == 0) return plan->times.unfused;
  if (strcmp(role, "primitive") == 0) return plan->times.primitive;
  if (strcmp(role, "greedy") == 0) return plan->times.greedy;
  return plan->times.tuned;
}

typedef struct plan_save {
  const ft_plan *plan;
  const ft_plan_record *record;
  const char *body;
  int64_t id;
} plan_save;

static ft_status write_row(ft_store *store, plan_save *save, ft_error *error) {
  const ft_plan *p = save->plan;
  const ft_plan_record *r = save->record;
  ft_time own = r->time.samples ? r->time : own_time(p, r->role);
  return ft_sql_get(
      store, FT_SQL_SAVE_PLAN,
      FT_SQL_VALUES(
          ft_sql_hash(&p->hash), ft_sql_unless(r->run_id, 0), ft_sql_int(r->binding_id),
          ft_sql_int(r->target_id), ft_sql_text(r->role), ft_sql_text(p->strategy),
          ft_sql_int(p->window), ft_sql_int(p->span), ft_sql_int(p->window_saturated),
          ft_sql_text(ft_plan_status(p)), ft_sql_real(p->times.additive_ns),
          ft_sql_real(p->times.bound_ns), ft_sql_real(p->times.gap),
          ft_sql_ns(own.median_ns), ft_sql_ns(own.low_ns), ft_sql_ns(own.high_ns),
          ft_sql_unless(own.samples, 0), ft_sql_int((int64_t)p->peak_bytes),
          ft_sql_text(save->body), ft_sql_int((int64_t)ft_clock_unix_ns())),
      &save->id, error);
}

static ft_status write_groups(ft_store *store, const plan_save *save, ft_error *error) {
  FT_TRY(
      ft_sql_run(store, FT_SQL_DROP_GROUPS, FT_SQL_VALUES(ft_sql_int(save->id)), error));
  for (uint32_t i = 0; i < save->plan->group_count; i++)
    FT_TRY(ft_sql_run(store, FT_SQL_ADD_GROUP,
                      FT_SQL_VALUES(ft_sql_int(save->id), ft_sql_int(i),
                                    ft_sql_int(save->record->candidate_id[i])),
                      error));
  return ft_sql_run(
      store, FT_SQL_JUDGE_PLAN,
      FT_SQL_VALUES(ft_sql_int(save->id), ft_sql_int(FT_QUARANTINE_STRIKES)), error);
}

static ft_status save_plan(ft_store *store, void *ctx, ft_error *error) {
  plan_save *save = ctx;
  FT_TRY(write_row(store, save, error));
  FT_TRY(write_groups(store, save, error));
  if (!save->record->is_served) return FT_OK;
  FT_TRY(ft_sql_run(store, FT_SQL_UNSERVE,
                    FT_SQL_VALUES(ft_sql_int(save->record->binding_id),
                                  ft_sql_int(save->record->target_id)),
                    error));
  return ft_sql_run(store, FT_SQL_SERVE, FT_SQL_VALUES(ft_sql_int(save->id)), error);
}

// Where there is a device, what was not measured is not served. (A plan without kernels
// has nothing to measure.)
static bool may_serve(const ft_plan *plan) {
  return strcmp(ft_plan_status(plan), "measured") == 0 ||
         strcmp(plan->target->kind, "arch") == 0;
}

ft_status ft_store_plan_save(ft_store *store, const ft_plan *plan,
                             const ft_plan_record *record, int64_t *out_id,
                             ft_error *error) {
  *out_id = 0;
  ft_arena_reset(store->scratch);
  if (ft_hash_is_zero(&plan->hash))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "plan '%s' of graph '%s' is not sealed",
            record->role, plan->graph->name);
  if (record->is_served && !may_serve(plan))
    FT_FAIL(error, FT_INVALID_ARGUMENT,
            "plan '%s' of graph '%s' is only predicted: not served for target '%s'",
            record->role, plan->graph->name, plan->target->name);
  plan_save save = {.plan = plan, .record = record};
  FT_TRY(ft_plan_text(plan, "exact", store->scratch, &save.body, error));
  FT_TRY(ft_sql_transact(store, save_plan, &save, error));
  *out_id = save.id;
  return FT_OK;
}

// ---- comparisons and refusals

typedef struct comparison {
  int64_t run_id;
  const int64_t *plan_id;
  uint32_t plans, rounds;
  const uint64_t *time_ns;
  const uint8_t *flags;
} comparison;

static ft_status save_comparison(ft_store *store, void *ctx, ft_error *error) {
  const comparison *c = ctx;
  for (uint32_t round = 0; round < c->rounds; round++) {
    for (uint32_t plan = 0; plan < c->plans; plan++) {
      size_t at = (size_t)round * c->plans + plan;
      if (c->time_ns[at] == 0) continue;
      if (c->time_ns[at] > INT64_MAX)
        FT_FAIL(error, FT_INVALID_ARGUMENT, "round %u of plan %lld has a time of %llu ns",
                round, (long long)c->plan_id[plan], (unsigned long long)c->time_ns[at]);
      FT_TRY(ft_sql_run(
          store, FT_SQL_ADD_COMPARISON,
          FT_SQL_VALUES(ft_sql_int(c->run_id), ft_sql_int(round),
                        ft_sql_int(c->plan_id[plan]), ft_sql_int((int64_t)c->time_ns[at]),
                        ft_sql_int(c->flags[at])),
          error));
    }
  }
  return FT_OK;
}

ft_status ft_store_comparison_save(ft_store *store, int64_t run_id,
                                   const int64_t *plan_id, uint32_t plans,
                                   uint32_t rounds, const uint64_t *time_ns,
                                   const uint8_t *flags, ft_error *error) {
  comparison it = {run_id, plan_id, plans, rounds, time_ns, flags};
  return ft_sql_transact(store, save_comparison, &it, error);
}

ft_status ft_store_refusal_save(ft_store *store, int64_t run_id, uint32_t producer,
                                uint32_t consumer, const char *rule, const char *detail,
                                ft_error *error) {
  return ft_sql_run(
      store, FT_SQL_ADD_REFUSAL,
      FT_SQL_VALUES(ft_sql_int(run_id), ft_sql_int(producer), ft_sql_int(consumer),
                    ft_sql_text(rule), ft_sql_text(detail)),
      error);
}

// ---- the exact lookup

static bool same_encoding(sqlite3_stmt *row, const ft_graph *graph) {
  const void *there = sqlite3_column_blob(row, 1);
  size_t size = (size_t)sqlite3_column_bytes(row, 1);
  return size == graph->symbolic_encoding_bytes &&
         (size == 0 || (there && memcmp(there, graph->symbolic_encoding, size) == 0));
}

static ft_status read_served(ft_store *store, sqlite3_stmt *row, const ft_graph *graph,
                             ft_arena *arena, ft_served_plan *out, ft_error *error) {
  if (!same_encoding(row, graph))
    FT_FAIL(error, FT_INTERNAL, "store %s: graph '%s' is there with other bytes",
            store->path, graph->name);
  *out = (ft_served_plan){.id = sqlite3_column_int64(row, 2),
                          .role = ft_sql_column_text(row, 3, arena),
                          .body = ft_sql_column_text(row, 0, arena)};
  FT_OOM_IF(!out->role || !out->body, error);
  return FT_OK;
}

ft_status ft_store_incumbent(ft_store *store, const ft_graph *graph,
                             const ft_target *target, ft_arena *arena,
                             ft_served_plan *out, ft_error *error) {
  *out = (ft_served_plan){.role = "", .body = ""};
  sqlite3_stmt *row;
  bool has_row = false;
  ft_status status = ft_sql_start(
      store, FT_SQL_SERVED_PLAN,
      FT_SQL_VALUES(ft_sql_hash(&graph->symbolic_hash), ft_sql_text(ft_store_dims(graph)),
                    ft_sql_hash(&graph->bound_hash), ft_sql_hash(&target->signature),
                    ft_sql_int(store->codegen_version)),
      &row, error);
  if (status == FT_OK) status = ft_sql_step(store, row, &has_row, error);
  if (status == FT_OK && has_row)
    status = read_served(store, row, graph, arena, out, error);
  ft_sql_finish(row);
  return status;
}

ft_status ft_store_served_plan(ft_store *store, const ft_graph *graph,
                               const ft_target *target, ft_arena *arena,
                               const char **out_body, ft_error *error) {
  ft_served_plan plan;
  *out_body = NULL;
  FT_TRY(ft_store_incumbent(store, graph, target, arena, &plan, error));
  if (!plan.id) return ft_match_explain(store, graph, target, error);
  *out_body = plan.body;
  return FT_OK;
}

// ---- the plans of the last run

static ft_status read_plans(ft_store *store, sqlite3_stmt *row, ft_arena *arena,
                            ft_stored_plan **out, uint32_t *out_count, ft_error *error) {
  size_t count = 0, capacity = 0;
  ft_stored_plan *list = NULL;
  for (bool has_row = true;;) {
    FT_TRY(ft_sql_step(store, row, &has_row, error));
    if (!has_row) break;
    FT_OOM_IF(FT_GROW(arena, &list, count, &capacity), error);
    ft_stored_plan *p = &list[count++];
    *p = (ft_stored_plan){.id = sqlite3_column_int64(row, 0),
                          .role = ft_sql_column_text(row, 1, arena),
                          .body = ft_sql_column_text(row, 2, arena),
                          .is_served = sqlite3_column_int64(row, 3) != 0,
                          .quarantined = ft_sql_column_text(row, 4, arena)};
    FT_OOM_IF(!p->role || !p->body || !p->quarantined, error);
  }
  *out = list;
  *out_count = (uint32_t)count;
  return FT_OK;
}

ft_status ft_store_last_plans(ft_store *store, const ft_graph *graph,
                              const ft_target *target, ft_arena *arena,
                              ft_stored_plan **out, uint32_t *out_count,
                              ft_error *error) {
  *out = NULL;
  *out_count = 0;
  sqlite3_stmt *row;
  ft_status status = ft_sql_start(
      store, FT_SQL_LAST_PLANS,
      FT_SQL_VALUES(ft_sql_hash(&graph->symbolic_hash), ft_sql_text(ft_store_dims(graph)),
                    ft_sql_hash(&graph->bound_hash), ft_sql_hash(&target->signature)),
      &row, error);
  if (status == FT_OK) status = read_plans(store, row, arena, out, out_count, error);
  ft_sql_finish(row);
  return status;
}

// ---- refusals of the served plan's run

static ft_status read_refusals(ft_store *store, sqlite3_stmt *row, ft_arena *arena,
                               ft_refusal_record **out, uint32_t *out_count,
                               ft_error *error) {
  size_t count = 0, capacity = 0;
  ft_refusal_record *list = NULL;
  for (bool has_row = true;;) {
    FT_TRY(ft_sql_step(store, row, &has_row, error));
    if (!has_row) break;
    FT_OOM_IF(FT_GROW(arena, &list, count, &capacity), error);
    ft_refusal_record *r = &list[count++];
    *r = (ft_refusal_record){
        (uint32_t)sqlite3_column_int64(row, 0), (uint32_t)sqlite3_column_int64(row, 1),
        ft_sql_column_text(row, 2, arena), ft_sql_column_text(row, 3, arena)};
    FT_OOM_IF(!r->rule || !r->detail, error);
  }
  *out = list;
  *out_count = (uint32_t)count;
  return FT_OK;
}

ft_status ft_store_served_refusals(ft_store *store, const ft_graph *graph,
                                   const ft_target *target, ft_arena *arena,
                                   ft_refusal_record **out, uint32_t *out_count,
                                   ft_error *error) {
  *out = NULL;
  *out_count = 0;
  sqlite3_stmt *row;
  ft_status status = ft_sql_start(
      store, FT_SQL_SERVED_REFUSALS,
      FT_SQL_VALUES(ft_sql_hash(&graph->symbolic_hash), ft_sql_text(ft_store_dims(graph)),
                    ft_sql_hash(&graph->bound_hash), ft_sql_hash(&target->signature)),
      &row, error);
  if (status == FT_OK) status = read_refusals(store, row, arena, out, out_count, error);
  ft_sql_finish(row);
  return status;
}
