// Trials as lines. A line is one JSON object, or the same members flattened for CSV.
#include "daemon/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

// ---- a row as JSON --------------------------------------------------------------------

// Text may hold bytes of a compiler's output: what is not UTF-8 is replaced.
static json_t *text_json(const char *text) {
  json_t *json = json_string(text);
  if (json) return json;
  size_t length = strlen(text);
  char *clean = malloc(length + 1);
  if (!clean) return NULL;
  for (size_t i = 0; i <= length; i++)
    clean[i] = (unsigned char)text[i] < 128 ? text[i] : '?';
  json = json_string(clean);
  free(clean);
  return json;
}

static json_t *note_json(const char *text) {
  return *text ? text_json(text) : json_null();
}

static json_t *hash_json(const ft_hash *hash) {
  char text[FT_HASH_TEXT + 1];
  if (ft_hash_is_zero(hash)) return json_null();
  ft_hash_text(hash, text);
  return json_string(text);
}

static json_t *date_json(uint64_t unix_ns) {
  char text[21];
  if (unix_ns == 0) return json_null();
  ft_clock_iso8601(unix_ns, text);
  return json_string(text);
}

// JSON has no infinity: a wrong result may be infinitely wrong.
static json_t *real_json(double value) {
  if (value < 0 || isnan(value)) return json_null();
  return isinf(value) ? json_string("inf") : json_real(value);
}

static json_t *parsed_json(const char *text) {
  json_t *json = json_loads(text, 0, NULL);
  return json ? json : json_null();
}

static uint64_t sample_of(const ft_trial_row *row, uint32_t index) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; i--)
    value = value << 8 | row->sample_ns[8 * index + (uint32_t)i];
  return value;
}

// [[ns, flags], ...] in the order they were taken.
static json_t *samples_json(const ft_trial_row *row) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < row->sample_count; i++)
    json_array_append_new(list, json_pack("[I, I]", (json_int_t)sample_of(row, i),
                                          (json_int_t)row->sample_flags[i]));
  return list;
}

static void add_key(json_t *o, const ft_trial_row *row) {
  json_object_set_new(o, "workload", hash_json(&row->workload));
  json_object_set_new(o, "primitives", json_integer(row->primitives));
  json_object_set_new(o, "read_bytes", json_integer((json_int_t)row->read_bytes));
  json_object_set_new(o, "write_bytes", json_integer((json_int_t)row->write_bytes));
  json_object_set_new(o, "flops", json_real(row->flops));
  json_object_set_new(o, "target", hash_json(&row->target));
  json_object_set_new(o, "target_name", text_json(row->target_name));
  json_object_set_new(o, "device", text_json(row->device));
  json_object_set_new(o, "codegen_version", json_integer(row->codegen_version));
  json_object_set_new(o, "tactic", text_json(row->tactic));
  json_object_set_new(o, "schedule", parsed_json(row->schedule));
}

static void add_build(json_t *o, const ft_trial_row *row) {
  json_object_set_new(o, "source", hash_json(&row->source));
  json_object_set_new(o, "body", hash_json(&row->body));
  json_object_set_new(o, "compiler", note_json(row->compiler));
  json_object_set_new(o, "flags", note_json(row->flags));
}

static void add_measurement(json_t *o, const ft_trial_row *row) {
  json_object_set_new(o, "outcome", text_json(row->outcome));
  json_object_set_new(o, "time", ft_time_json(&row->time));
  json_object_set_new(o, "max_error_ratio", real_json(row->max_error_ratio));
  json_object_set_new(o, "predicted_ns", real_json(row->predicted_ns));
  json_object_set_new(o, "roofline_ns", real_json(row->roofline_ns));
  json_object_set_new(o, "error", note_json(row->error));
  json_object_set_new(o, "worst", note_json(row->worst));
  json_object_set_new(o, "quarantined", note_json(row->quarantined));
  json_object_set_new(o, "limit_ns", json_integer((json_int_t)row->limit_ns));
  json_object_set_new(o, "measured_at",
                      date_json(row->ended_at ? row->ended_at : row->started_at));
  json_object_set_new(o, "env", parsed_json(row->env));
}

json_t *ft_trial_row_json(const ft_trial_row *row, bool samples) {
  json_t *o =
      json_pack("{s:s, s:I, s:I, s:I, s:I}", "format", FT_EXPORT_FORMAT, "trial",
                (json_int_t)row->trial_id, "run", (json_int_t)row->run_id, "attempt",
                (json_int_t)row->attempt, "seed", (json_int_t)row->seed);
  if (!o) return NULL;
  json_object_set_new(o, "mode", text_json(row->mode));
  json_object_set_new(o, "graph", hash_json(&row->graph));
  json_object_set_new(o, "dims", parsed_json(row->dims));
  add_key(o, row);
  add_build(o, row);
  add_measurement(o, row);
  if (samples) json_object_set_new(o, "samples", samples_json(row));
  return o;
}

// ---- lines ----------------------------------------------------------------------------

typedef struct exporter {
  const ft_export_options *options;
  ft_output *output;
  ft_error *error;
  uint64_t count;
} exporter;

static int write_part(const char *text, size_t size, void *ctx) {
  exporter *e = ctx;
  return ft_output_write(e->output, text, size, e->error) == FT_OK ? 0 : -1;
}

static ft_status write_text(exporter *e, const char *text) {
  return ft_output_write(e->output, text, strlen(text), e->error);
}

// Dumps piece by piece into the output; memory and the disk are told apart.
static ft_status write_json(exporter *e, const json_t *json, size_t flags) {
  ft_error_set(e->error, FT_OUT_OF_MEMORY, "out of memory while writing a trial");
  return json_dump_callback(json, write_part, e, flags) == 0 ? FT_OK : e->error->code;
}

// The CSV columns: a member, or "object.member".
static const char *const columns[] = {"trial",
                                      "run",
                                      "attempt",
                                      "mode",
                                      "outcome",
                                      "time.median_ns",
                                      "time.low_ns",
                                      "time.high_ns",
                                      "time.samples",
                                      "workload",
                                      "tactic",
                                      "schedule",
                                      "codegen_version",
                                      "target",
                                      "target_name",
                                      "compiler",
                                      "flags",
                                      "source",
                                      "body",
                                      "graph",
                                      "dims",
                                      "seed",
                                      "primitives",
                                      "read_bytes",
                                      "write_bytes",
                                      "flops",
                                      "predicted_ns",
                                      "roofline_ns",
                                      "max_error_ratio",
                                      "limit_ns",
                                      "measured_at",
                                      "error",
                                      "worst",
                                      "quarantined"};
enum { COLUMNS = sizeof columns / sizeof *columns };

static const json_t *member(const json_t *row, const char *path) {
  const char *dot = strchr(path, '.');
  if (!dot) return json_object_get(row, path);
  return json_object_get(json_object_getn(row, path, (size_t)(dot - path)), dot + 1);
}

// RFC 4180: always in quotes, a quote doubled.
static ft_status write_quoted(exporter *e, const char *text) {
  FT_TRY(write_text(e, "\""));
  for (const char *quote; (quote = strchr(text, '"')); text = quote + 1) {
    FT_TRY(ft_output_write(e->output, text, (size_t)(quote - text), e->error));
    FT_TRY(write_text(e, "\"\""));
  }
  FT_TRY(write_text(e, text));
  return write_text(e, "\"");
}

static ft_status write_cell(exporter *e, const json_t *value) {
  if (!value || json_is_null(value)) return FT_OK;
  if (json_is_string(value)) return write_quoted(e, json_string_value(value));
  if (json_is_number(value)) return write_json(e, value, JSON_ENCODE_ANY);
  char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
  FT_OOM_IF(!text, e->error);
  ft_status status = write_quoted(e, text);
  free(text);
  return status;
}

static ft_status write_header(exporter *e) {
  for (int i = 0; i < COLUMNS; i++) {
    if (i > 0) FT_TRY(write_text(e, ","));
    FT_TRY(write_text(e, columns[i]));
  }
  if (e->options->samples) FT_TRY(write_text(e, ",samples"));
  return write_text(e, "\n");
}

static ft_status write_line(exporter *e, const json_t *row) {
  if (e->options->kind == FT_EXPORT_JSONL) {
    FT_TRY(write_json(e, row, JSON_COMPACT | JSON_SORT_KEYS));
    return write_text(e, "\n");
  }
  for (int i = 0; i < COLUMNS; i++) {
    if (i > 0) FT_TRY(write_text(e, ","));
    FT_TRY(write_cell(e, member(row, columns[i])));
  }
  if (e->options->samples) {
    FT_TRY(write_text(e, ","));
    FT_TRY(write_cell(e, json_object_get(row, "samples")));
  }
  return write_text(e, "\n");
}

static ft_status visit(void *ctx, const ft_trial_row *row, ft_error *error) {
  exporter *e = ctx;
  e->error = error;
  if (e->options->stop && *e->options->stop)
    FT_FAIL(error, FT_INTERRUPTED, "interrupted; nothing was exported");
  json_t *json = ft_trial_row_json(row, e->options->samples);
  FT_OOM_IF(!json, error);
  ft_status status = write_line(e, json);
  json_decref(json);
  e->count += status == FT_OK;
  return status;
}

ft_status ft_export_trials(ft_store *store, const ft_export_options *options,
                           ft_output *output, uint64_t *out_count, ft_error *error) {
  exporter e = {.options = options, .output = output, .error = error};
  if (options->kind == FT_EXPORT_CSV) FT_TRY(write_header(&e));
  FT_TRY(ft_store_each_trial(store, &options->filter, visit, &e, error));
  *out_count = e.count;
  return FT_OK;
}
