// Why there is no plan: what the store has instead, and which key field differs.
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/strbuf.h"
#include "db/store_internal.h"

enum { SHOWN = 6, VALUE_CHARS = 60 };

typedef struct explanation {
  const ft_graph *graph;
  const ft_target *target;
  const char *key;      // of |target|
  ft_strbuf dims;       // other dims on this target
  ft_strbuf targets;    // these dims on other targets
  ft_strbuf kinds;      // these dims on targets of another kind
  ft_strbuf elsewhere;  // other dims on other targets
  int dims_count, targets_count, elsewhere_count;
  const char *quarantined;    // these dims on this target, and why not
  uint32_t expected_version;  // of codegen; 0: any
  bool has_other_version;     // that plan has |other_version|
  uint32_t other_version;
} explanation;

// "8" or "\"abc...\"", cut to VALUE_CHARS.
static void add_value(ft_strbuf *text, const json_t *value, ft_arena *scratch) {
  char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
  const char *shown = ft_arena_printf(scratch, "%.*s%s", VALUE_CHARS, dump ? dump : "?",
                                      dump && strlen(dump) > VALUE_CHARS ? "..." : "");
  ft_strbuf_add(text, shown ? shown : "?");
  json_free_t release;
  json_get_alloc_funcs(NULL, &release);
  release(dump);
}

static void add_difference(ft_strbuf *text, const char *field, const json_t *there,
                           const json_t *here, bool is_first, ft_arena *scratch) {
  ft_strbuf_printf(text, "%s%s", is_first ? "" : ", ", field);
  if (!is_first) return;
  ft_strbuf_add(text, " (there ");
  add_value(text, there, scratch);
  ft_strbuf_add(text, ", here ");
  add_value(text, here, scratch);
  ft_strbuf_add(text, ")");
}

void ft_match_differences(ft_strbuf *text, const char *there_text, const char *here_text,
                          ft_arena *scratch) {
  json_t *there = json_loads(there_text, 0, NULL), *here = json_loads(here_text, 0, NULL);
  const char *field;
  json_t *value;
  bool is_first = true;
  json_object_foreach(here, field, value) {
    const json_t *other = json_object_get(there, field);
    if (other && json_equal(other, value)) continue;
    add_difference(text, field, other, value, is_first, scratch);
    is_first = false;
  }
  if (is_first) ft_strbuf_add(text, "nothing that is written down");
  json_decref(there);
  json_decref(here);
}

static void add_item(ft_strbuf *list, int *count, const char *item) {
  if (strstr(list->text, item) || ++*count > SHOWN + 1) return;
  if (*count > SHOWN) item = "...";
  ft_strbuf_printf(list, "%s%s", list->length ? ", " : "", item);
}

// |key| is as ft_target_json has it.
static bool is_of_kind(const char *key, const char *kind, ft_arena *scratch) {
  const char *member = ft_arena_printf(scratch, "\"kind\":\"%s\"", kind);
  return !member || strstr(key, member);
}

static void note_plan(explanation *e, sqlite3_stmt *row, ft_arena *scratch) {
  const char *dims = ft_sql_column_text(row, 0, scratch);
  const char *name = ft_sql_column_text(row, 3, scratch);
  const char *key = ft_sql_column_text(row, 4, scratch);
  bool same_dims = dims && strcmp(dims, ft_store_dims(e->graph)) == 0;
  bool same_target =
      sqlite3_column_bytes(row, 2) == (int)sizeof(ft_hash) &&
      memcmp(sqlite3_column_blob(row, 2), &e->target->signature, sizeof(ft_hash)) == 0;
  if (!dims || !name || !key) return;
  if (same_dims && same_target) {
    e->quarantined = ft_sql_column_text(row, 5, scratch);
    uint32_t version = (uint32_t)sqlite3_column_int64(row, 6);
    e->has_other_version = e->expected_version && version != e->expected_version;
    e->other_version = version;
  } else if (same_target) {
    add_item(&e->dims, &e->dims_count, dims);
  } else if (same_dims && !is_of_kind(key, e->target->kind, scratch)) {
    ft_strbuf_printf(&e->kinds, "%sone for target '%s' (--target %s)",
                     e->kinds.length ? " and " : "there is ", name, name);
  } else if (same_dims && e->targets_count++ < 2) {
    ft_strbuf_printf(&e->targets, "%starget '%s', which differs in ",
                     e->targets.length ? "; and for " : "", name);
    ft_match_differences(&e->targets, key, e->key, scratch);
  } else if (!same_dims) {
    add_item(&e->elsewhere, &e->elsewhere_count, dims);
  }
}

static ft_status collect(ft_store *store, explanation *e, int64_t graph_id,
                         ft_error *error) {
  sqlite3_stmt *row;
  bool has_row = true;
  ft_status status = ft_sql_start(store, FT_SQL_OTHER_PLANS,
                                  FT_SQL_VALUES(ft_sql_int(graph_id)), &row, error);
  while (status == FT_OK) {
    status = ft_sql_step(store, row, &has_row, error);
    if (status != FT_OK || !has_row) break;
    note_plan(e, row, store->scratch);
  }
  ft_sql_finish(row);
  return status;
}

static void compose(const explanation *e, const char *path, ft_strbuf *text) {
  ft_strbuf_printf(text, "no plan for graph '%s' with dims %s on target '%s' in %s: ",
                   e->graph->name ? e->graph->name : "", ft_store_dims(e->graph),
                   e->target->name, path);
  size_t start = text->length;
  if (e->quarantined && *e->quarantined)
    ft_strbuf_printf(text, "its plan is quarantined (%s)", e->quarantined);
  else if (e->has_other_version)
    ft_strbuf_printf(text, "its plan's kernels are of codegen version %u, not %u",
                     e->other_version, e->expected_version);
  else if (e->quarantined)
    ft_strbuf_add(text, "the plan there is for a model whose constants differ");
  if (e->targets.length)
    ft_strbuf_printf(text, "%sthere is one for %s", text->length > start ? "; " : "",
                     e->targets.text);
  if (e->kinds.length)
    ft_strbuf_printf(text, "%s%s", text->length > start ? "; " : "", e->kinds.text);
  if (e->dims.length)
    ft_strbuf_printf(text, "%sthere is one for dims %s on this target",
                     text->length > start ? "; " : "", e->dims.text);
  if (text->length == start && e->elsewhere.length)
    ft_strbuf_printf(text, "there is one for dims %s on another target",
                     e->elsewhere.text);
  if (text->length == start)
    ft_strbuf_add(text, "the graph is known, but none of its plans was served");
  if (e->targets.length || e->has_other_version)
    ft_strbuf_add(text, "; fusetune revalidate measures the best of it again");
}

ft_status ft_match_explain(ft_store *store, const ft_graph *graph,
                           const ft_target *target, ft_error *error) {
  ft_arena_reset(store->scratch);
  int64_t graph_id;
  FT_TRY(ft_sql_get(store, FT_SQL_FIND_GRAPH,
                    FT_SQL_VALUES(ft_sql_hash(&graph->symbolic_hash)), &graph_id, error));
  if (!graph_id)
    FT_FAIL(error, FT_NOT_FOUND, "no plan for graph '%s' in %s: it was never tuned",
            graph->name ? graph->name : "", store->path);
  explanation e = {.graph = graph,
                   .target = target,
                   .key = ft_target_json(target, store->scratch),
                   .expected_version = store->codegen_version,
                   .dims = ft_strbuf_init(store->scratch),
                   .targets = ft_strbuf_init(store->scratch),
                   .kinds = ft_strbuf_init(store->scratch),
                   .elsewhere = ft_strbuf_init(store->scratch)};
  FT_OOM_IF(!e.key, error);
  FT_TRY(collect(store, &e, graph_id, error));
  ft_strbuf text = ft_strbuf_init(store->scratch);
  compose(&e, store->path, &text);
  FT_OOM_IF(text.failed, error);
  FT_FAIL(error, FT_NOT_FOUND, "%s", text.text);
}
