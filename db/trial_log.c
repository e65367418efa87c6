#include "db/trial_log.h"

#include <string.h>

#include "core/strbuf.h"
#include "db/store_internal.h"

// The columns of FT_TRIAL_COLUMNS, in order.
enum {
  ID,
  RUN,
  OUTCOME,
  MEDIAN,
  LOW,
  HIGH,
  SAMPLES,
  MODE,
  ATTEMPT,
  TACTIC,
  SCHEDULE,
  VERSION,
  WORKLOAD,
  PRIMITIVES,
  READ,
  WRITE,
  FLOPS,
  TARGET,
  TARGET_NAME,
  DEVICE,
  GRAPH,
  SOURCE,
  BODY,
  DIMS,
  COMPILER,
  FLAGS,
  BUILD_OUTCOME,
  BUILD_NS,
  PREDICTED,
  ROOFLINE,
  ERROR_RATIO,
  WORST,
  ERROR_TEXT,
  ENV,
  QUARANTINED,
  LIMIT,
  STARTED,
  ENDED,
  SEED,
  SAMPLE_NS,
  SAMPLE_FLAGS,
  ENCODING,
  LOG,
};

enum { SHORTEST_NAME = 6 };

// ---- a row ----------------------------------------------------------------------------

static const char *text_of(sqlite3_stmt *row, int column) {
  const char *text = (const char *)sqlite3_column_text(row, column);
  return text ? text : "";
}

static uint64_t number_of(sqlite3_stmt *row, int column) {
  return (uint64_t)sqlite3_column_int64(row, column);
}

static double real_of(sqlite3_stmt *row, int column) {
  return sqlite3_column_type(row, column) == SQLITE_NULL
             ? -1
             : sqlite3_column_double(row, column);
}

static ft_hash hash_of(sqlite3_stmt *row, int column) {
  ft_hash hash = {{0}};
  const void *bytes = sqlite3_column_blob(row, column);
  if (bytes && sqlite3_column_bytes(row, column) == (int)sizeof hash.byte)
    memcpy(hash.byte, bytes, sizeof hash.byte);
  return hash;
}

// As many samples as both blobs hold: the store is not above suspicion.
static void read_samples(sqlite3_stmt *row, ft_trial_row *out) {
  out->sample_ns = sqlite3_column_blob(row, SAMPLE_NS);
  out->sample_flags = sqlite3_column_blob(row, SAMPLE_FLAGS);
  uint32_t times = (uint32_t)sqlite3_column_bytes(row, SAMPLE_NS) / 8,
           flags = (uint32_t)sqlite3_column_bytes(row, SAMPLE_FLAGS);
  out->sample_count = times < flags ? times : flags;
}

static void read_row(sqlite3_stmt *row, ft_trial_row *out) {
  *out = (ft_trial_row){.trial_id = sqlite3_column_int64(row, ID),
                        .run_id = sqlite3_column_int64(row, RUN),
                        .outcome = text_of(row, OUTCOME),
                        .time = {number_of(row, MEDIAN), number_of(row, LOW),
                                 number_of(row, HIGH), (uint32_t)number_of(row, SAMPLES)},
                        .mode = text_of(row, MODE),
                        .attempt = sqlite3_column_int64(row, ATTEMPT),
                        .tactic = text_of(row, TACTIC),
                        .schedule = text_of(row, SCHEDULE),
                        .codegen_version = (uint32_t)number_of(row, VERSION),
                        .workload = hash_of(row, WORKLOAD),
                        .primitives = (uint32_t)number_of(row, PRIMITIVES),
                        .read_bytes = number_of(row, READ),
                        .write_bytes = number_of(row, WRITE),
                        .flops = sqlite3_column_double(row, FLOPS),
                        .target = hash_of(row, TARGET),
                        .target_name = text_of(row, TARGET_NAME),
                        .device = text_of(row, DEVICE),
                        .graph = hash_of(row, GRAPH),
                        .source = hash_of(row, SOURCE),
                        .body = hash_of(row, BODY),
                        .dims = text_of(row, DIMS),
                        .compiler = text_of(row, COMPILER),
                        .flags = text_of(row, FLAGS),
                        .build_outcome = text_of(row, BUILD_OUTCOME),
                        .build_ns = number_of(row, BUILD_NS),
                        .predicted_ns = real_of(row, PREDICTED),
                        .roofline_ns = real_of(row, ROOFLINE),
                        .max_error_ratio = real_of(row, ERROR_RATIO),
                        .worst = text_of(row, WORST),
                        .error = text_of(row, ERROR_TEXT),
                        .env = text_of(row, ENV),
                        .quarantined = text_of(row, QUARANTINED),
                        .limit_ns = number_of(row, LIMIT),
                        .started_at = number_of(row, STARTED),
                        .ended_at = number_of(row, ENDED),
                        .seed = number_of(row, SEED)};
  read_samples(row, out);
}

// ---- walking --------------------------------------------------------------------------

static ft_status find_binding(ft_store *store, const ft_graph *graph, int64_t *out,
                              ft_error *error) {
  FT_TRY(ft_sql_get(
      store, FT_SQL_BINDING_OF,
      FT_SQL_VALUES(ft_sql_hash(&graph->symbolic_hash), ft_sql_text(ft_store_dims(graph)),
                    ft_sql_hash(&graph->bound_hash)),
      out, error));
  if (*out) return FT_OK;
  FT_FAIL(error, FT_NOT_FOUND, "store %s has no run of graph '%s' with dims %s",
          store->path, graph->name ? graph->name : "", ft_store_dims(graph));
}

static ft_status walk(ft_store *store, sqlite3_stmt *statement, ft_trial_visit visit,
                      void *ctx, ft_error *error) {
  for (bool has_row = true;;) {
    FT_TRY(ft_sql_step(store, statement, &has_row, error));
    if (!has_row) return FT_OK;
    ft_trial_row row;
    read_row(statement, &row);
    FT_TRY(visit(ctx, &row, error));
  }
}

ft_status ft_store_each_trial(ft_store *store, const ft_trial_filter *filter,
                              ft_trial_visit visit, void *ctx, ft_error *error) {
  int64_t binding = 0;
  if (filter->graph) FT_TRY(find_binding(store, filter->graph, &binding, error));
  sqlite3_stmt *statement;
  ft_status status =
      ft_sql_start(store, FT_SQL_EACH_TRIAL,
                   FT_SQL_VALUES(ft_sql_int((int64_t)filter->since_ns),
                                 ft_sql_int(binding), ft_sql_int(filter->top_k)),
                   &statement, error);
  if (status == FT_OK) status = walk(store, statement, visit, ctx, error);
  ft_sql_finish(statement);
  return status;
}

// ---- one trial ------------------------------------------------------------------------

// The strings of |row| in |arena|; samples are left out.
static ft_status keep_row(ft_arena *arena, ft_trial_row *row, ft_error *error) {
  const char **text[] = {&row->outcome,     &row->mode,   &row->tactic,
                         &row->schedule,    &row->device, &row->target_name,
                         &row->dims,        &row->flags,  &row->compiler,
                         &row->worst,       &row->error,  &row->build_outcome,
                         &row->quarantined, &row->env};
  for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
    *text[i] = ft_arena_strdup(arena, *text[i]);
    FT_OOM_IF(!*text[i], error);
  }
  row->sample_ns = row->sample_flags = NULL;
  row->sample_count = 0;
  return FT_OK;
}

static ft_status read_one(ft_store *store, int64_t id, ft_arena *arena,
                          ft_found_trial *out, ft_hash *log, ft_error *error) {
  sqlite3_stmt *row;
  bool has_row = false;
  ft_status status =
      ft_sql_start(store, FT_SQL_ONE_TRIAL, FT_SQL_VALUES(ft_sql_int(id)), &row, error);
  if (status == FT_OK) status = ft_sql_step(store, row, &has_row, error);
  if (status == FT_OK && has_row) {
    read_row(row, &out->row);
    *log = hash_of(row, LOG);
    out->encoding_bytes = (size_t)sqlite3_column_bytes(row, ENCODING);
    out->encoding =
        ft_arena_memdup(arena, sqlite3_column_blob(row, ENCODING), out->encoding_bytes);
    status = keep_row(arena, &out->row, error);
  }
  ft_sql_finish(row);
  if (status == FT_OK && !has_row)
    FT_FAIL(error, FT_NOT_FOUND, "store %s has no trial %lld", store->path,
            (long long)id);
  if (status == FT_OK) FT_OOM_IF(!out->encoding, error);
  return status;
}

static ft_status read_text(ft_store *store, const ft_hash *hash, ft_arena *arena,
                           const char **out, ft_error *error) {
  *out = "";
  if (ft_hash_is_zero(hash)) return FT_OK;
  const void *data;
  size_t size;
  FT_TRY(ft_store_artifact_read(store, hash, arena, &data, &size, error));
  *out = data;
  return FT_OK;
}

static ft_status read_found(ft_store *store, int64_t id, ft_arena *arena,
                            ft_found_trial *out, ft_error *error) {
  ft_hash log = {{0}};
  FT_TRY(read_one(store, id, arena, out, &log, error));
  FT_TRY(read_text(store, &out->row.source, arena, &out->source, error));
  return read_text(store, &log, arena, &out->log, error);
}

// ---- names ----------------------------------------------------------------------------

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// The least and the greatest hash that begin with |hex|. False: not a hash's beginning.
static bool hash_range(const char *hex, ft_hash *low, ft_hash *high) {
  size_t length = strlen(hex);
  if (length < SHORTEST_NAME || length > 2 * sizeof low->byte) return false;
  memset(low->byte, 0, sizeof low->byte);
  memset(high->byte, 0xff, sizeof high->byte);
  for (size_t i = 0; i < length; i++) {
    int digit = hex_digit(hex[i]);
    if (digit < 0) return false;
    int shift = i % 2 ? 0 : 4;
    low->byte[i / 2] = (uint8_t)(low->byte[i / 2] | digit << shift);
    high->byte[i / 2] = (uint8_t)((high->byte[i / 2] & ~(0xf << shift)) | digit << shift);
  }
  return true;
}

static ft_status ambiguous(const char *name, const ft_hash *one, const ft_hash *two,
                           ft_error *error) {
  char a[FT_HASH_TEXT + 1], b[FT_HASH_TEXT + 1];
  ft_hash_text(one, a);
  ft_hash_text(two, b);
  FT_FAIL(error, FT_INVALID_ARGUMENT,
          "'%s' begins more than one source: %.23s, %.23s, ..", name, a, b);
}

static ft_status find_body(ft_store *store, const char *name, const ft_hash *low,
                           const ft_hash *high, ft_hash *out, ft_error *error) {
  sqlite3_stmt *row;
  bool has_row = false;
  ft_hash other = {{0}};
  ft_status status =
      ft_sql_start(store, FT_SQL_NAMED_SOURCES,
                   FT_SQL_VALUES(ft_sql_blob(low->byte, sizeof low->byte),
                                 ft_sql_blob(high->byte, sizeof low->byte)),
                   &row, error);
  if (status == FT_OK) status = ft_sql_step(store, row, &has_row, error);
  bool is_there = has_row;
  if (status == FT_OK && has_row) {
    *out = hash_of(row, 1);
    status = ft_sql_step(store, row, &has_row, error);
    if (status == FT_OK && has_row) other = hash_of(row, 1);
  }
  ft_sql_finish(row);
  if (status != FT_OK) return status;
  if (!is_there)
    FT_FAIL(error, FT_NOT_FOUND, "store %s has no source or body '%s'", store->path,
            name);
  // One body may be built for several targets: that is one source.
  if (ft_hash_is_zero(&other) || ft_hash_equal(out, &other)) return FT_OK;
  return ambiguous(name, out, &other, error);
}

static bool is_number(const char *name, int64_t *out) {
  *out = 0;
  for (const char *p = name; *p; p++) {
    if (*p < '0' || *p > '9' || *out > INT64_MAX / 10 - 1) return false;
    *out = *out * 10 + (*p - '0');
  }
  return *name != '\0' && *out > 0;
}

ft_status ft_store_trial_named(ft_store *store, const char *name, ft_arena *arena,
                               ft_found_trial *out, ft_error *error) {
  *out = (ft_found_trial){0};
  int64_t id;
  if (is_number(name, &id)) {
    ft_status status = read_found(store, id, arena, out, error);
    if (status != FT_NOT_FOUND || strlen(name) < SHORTEST_NAME) return status;
  }
  static const char prefix[] = "sha256:";
  const char *hex =
      strncmp(name, prefix, strlen(prefix)) == 0 ? name + strlen(prefix) : name;
  ft_hash low, high, body;
  if (!hash_range(hex, &low, &high))
    FT_FAIL(error, FT_INVALID_ARGUMENT,
            "'%s' is no trial: give an id, or %d or more hex digits of a source", name,
            SHORTEST_NAME);
  FT_TRY(find_body(store, name, &low, &high, &body, error));
  FT_TRY(ft_sql_get(store, FT_SQL_TRIAL_OF_BODY, FT_SQL_VALUES(ft_sql_hash(&body)), &id,
                    error));
  if (!id) FT_FAIL(error, FT_NOT_FOUND, "no trial has the source '%s'", name);
  return read_found(store, id, arena, out, error);
}

ft_status ft_store_trial_of(ft_store *store, const ft_candidate *candidate,
                            uint32_t codegen_version, int64_t *out_trial_id,
                            ft_hash *out_source, ft_error *error) {
  *out_trial_id = 0;
  *out_source = (ft_hash){{0}};
  ft_arena_reset(store->scratch);
  const char *schedule = ft_schedule_json(&candidate->schedule, store->scratch);
  FT_OOM_IF(!schedule, error);
  sqlite3_stmt *row;
  bool has_row = false;
  ft_status status =
      ft_sql_start(store, FT_SQL_TRIAL_OF_CANDIDATE,
                   FT_SQL_VALUES(ft_sql_hash(&candidate->workload->hash),
                                 ft_sql_hash(&candidate->target->signature),
                                 ft_sql_int(codegen_version),
                                 ft_sql_text(candidate->tactic), ft_sql_text(schedule)),
                   &row, error);
  if (status == FT_OK) status = ft_sql_step(store, row, &has_row, error);
  if (status == FT_OK && has_row) {
    *out_trial_id = sqlite3_column_int64(row, 0);
    *out_source = hash_of(row, 1);
  }
  ft_sql_finish(row);
  return status;
}
