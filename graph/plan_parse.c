// Plans come from files and sockets: nothing in one is believed that can be computed.
//
//  1. Reading is all or nothing: *out is only filled when every member fits.
//  2. Sizes come from the graph, never from the text: a list longer than the graph allows
//     is refused before anything is allocated for it.
//  3. Groups are made again from their primitives' ids; order, workload hashes, buffers,
//     offsets, arguments are computed anew and the text must agree member by member.
//  4. What only the text knows (tactic, schedule, entry, hashes, launch) is covered by
//     plan_id, which is computed over the decoded plan. Measured times are not: they are
//     checked for sense alone.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "graph/plan_json.h"

enum { PATH_ROOM = 160 };

// ---- typed members; |path| names the object that holds them

static ft_status member(const json_t *object, const char *path, const char *key,
                        json_type type, const json_t **out, ft_error *error) {
  static const char *const names[] = {
      [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "a list",
      [JSON_STRING] = "a string",    [JSON_INTEGER] = "an integer",
      [JSON_REAL] = "a real number", [JSON_TRUE] = "a boolean"};
  *out = json_object_get(object, key);
  if (!*out) FT_FAIL(error, FT_REFUSED, "plan: %s%s is missing", path, key);
  json_type found = json_typeof(*out);
  if (found == JSON_FALSE) found = JSON_TRUE;
  if (found != type)
    FT_FAIL(error, FT_REFUSED, "plan: %s%s is not %s", path, key, names[type]);
  return FT_OK;
}

static ft_status read_unsigned(const json_t *object, const char *path, const char *key,
                               uint64_t most, uint64_t *out, ft_error *error) {
  const json_t *it;
  FT_TRY(member(object, path, key, JSON_INTEGER, &it, error));
  json_int_t value = json_integer_value(it);
  if (value < 0 || (uint64_t)value > most)
    FT_FAIL(error, FT_REFUSED, "plan: %s%s is %lld, not between 0 and %llu", path, key,
            (long long)value, (unsigned long long)most);
  *out = (uint64_t)value;
  return FT_OK;
}

static ft_status read_u32(const json_t *object, const char *path, const char *key,
                          uint32_t *out, ft_error *error) {
  uint64_t value;
  FT_TRY(read_unsigned(object, path, key, UINT32_MAX, &value, error));
  *out = (uint32_t)value;
  return FT_OK;
}

// null is -1.
static ft_status read_known(const json_t *object, const char *path, const char *key,
                            int64_t *out, ft_error *error) {
  uint64_t value;
  *out = -1;
  if (json_is_null(json_object_get(object, key))) return FT_OK;
  FT_TRY(read_unsigned(object, path, key, INT64_MAX, &value, error));
  *out = (int64_t)value;
  return FT_OK;
}

static ft_status read_real(const json_t *object, const char *path, const char *key,
                           double *out, ft_error *error) {
  const json_t *it;
  FT_TRY(member(object, path, key, JSON_REAL, &it, error));
  *out = json_real_value(it);
  if (*out < 0) FT_FAIL(error, FT_REFUSED, "plan: %s%s is %g, below 0", path, key, *out);
  return FT_OK;
}

// null is -1.
static ft_status read_maybe(const json_t *object, const char *path, const char *key,
                            double *out, ft_error *error) {
  *out = -1;
  if (json_is_null(json_object_get(object, key))) return FT_OK;
  return read_real(object, path, key, out, error);
}

static ft_status read_text(const json_t *object, const char *path, const char *key,
                           ft_arena *arena, const char **out, ft_error *error) {
  const json_t *it;
  FT_TRY(member(object, path, key, JSON_STRING, &it, error));
  *out = ft_arena_strdup(arena, json_string_value(it));
  FT_OOM_IF(!*out, error);
  return FT_OK;
}

// null is the zero hash.
static ft_status read_hash(const json_t *object, const char *path, const char *key,
                           ft_hash *out, ft_error *error) {
  const json_t *it;
  *out = (ft_hash){0};
  if (json_is_null(json_object_get(object, key))) return FT_OK;
  FT_TRY(member(object, path, key, JSON_STRING, &it, error));
  if (ft_hash_parse(json_string_value(it), out) != 0)
    FT_FAIL(error, FT_REFUSED, "plan: %s%s is no hash", path, key);
  return FT_OK;
}

// {} is unknown.
static ft_status read_time(const json_t *object, const char *path, const char *key,
                           ft_time *out, ft_error *error) {
  const json_t *it;
  char inner[PATH_ROOM];
  *out = (ft_time){0};
  FT_TRY(member(object, path, key, JSON_OBJECT, &it, error));
  if (json_object_size(it) == 0) return FT_OK;
  snprintf(inner, sizeof inner, "%s%s.", path, key);
  FT_TRY(read_unsigned(it, inner, "median_ns", INT64_MAX, &out->median_ns, error));
  FT_TRY(read_unsigned(it, inner, "low_ns", INT64_MAX, &out->low_ns, error));
  FT_TRY(read_unsigned(it, inner, "high_ns", INT64_MAX, &out->high_ns, error));
  return read_u32(it, inner, "samples", &out->samples, error);
}

// "2026-01-01T00:00:00Z"; null is 0.
static ft_status read_date(const json_t *object, const char *path, const char *key,
                           uint64_t *out, ft_error *error) {
  const json_t *it;
  *out = 0;
  if (json_is_null(json_object_get(object, key))) return FT_OK;
  FT_TRY(member(object, path, key, JSON_STRING, &it, error));
  struct tm tm = {0};
  const char *text = json_string_value(it);
  const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
  time_t seconds = end && !*end && strlen(text) == 20 ? timegm(&tm) : -1;
  // Past 2^64 ns is the year 2554.
  if (seconds <= 0 || (uint64_t)seconds > UINT64_MAX / 1000000000u)
    FT_FAIL(error, FT_REFUSED, "plan: %s%s '%.40s' is no time", path, key, text);
  *out = (uint64_t)seconds * 1000000000u;
  return FT_OK;
}

// ---- is it a plan of this graph for this target?

static ft_status check_word(const json_t *root, const char *path, const char *key,
                            const char *must, ft_error *error) {
  const json_t *it;
  FT_TRY(member(root, path, key, JSON_STRING, &it, error));
  if (strcmp(json_string_value(it), must) == 0) return FT_OK;
  FT_FAIL(error, FT_REFUSED, "plan: %s%s is '%.100s', must be '%s'", path, key,
          json_string_value(it), must);
}

static ft_status check_hash(const json_t *object, const char *path, const char *key,
                            const ft_hash *must, ft_error *error) {
  ft_hash found;
  FT_TRY(read_hash(object, path, key, &found, error));
  if (ft_hash_equal(&found, must)) return FT_OK;
  char found_text[FT_HASH_TEXT + 1], must_text[FT_HASH_TEXT + 1];
  ft_hash_text(&found, found_text);
  ft_hash_text(must, must_text);
  FT_FAIL(error, FT_REFUSED, "plan: %s%s is %s, must be %s", path, key, found_text,
          must_text);
}

static ft_status check_identity(const json_t *root, const ft_graph *graph,
                                const ft_target *target, ft_error *error) {
  const json_t *it;
  FT_TRY(check_word(root, "", "format", FT_PLAN_FORMAT, error));
  FT_TRY(check_hash(root, "", "graph", &graph->symbolic_hash, error));
  FT_TRY(check_hash(root, "", "binding", &graph->bound_hash, error));
  FT_TRY(member(root, "", "target", JSON_OBJECT, &it, error));
  return check_hash(it, "target.", "signature", &target->signature, error);
}

// ---- groups

typedef struct decoder {
  const json_t *root, *groups;
  const ft_graph *graph;
  const ft_target *target;
  ft_arena *arena;
  uint32_t count;
  ft_group *group;
  ft_workload *workload;
} decoder;

static ft_status refuse_inner(ft_status status, const char *path, const ft_error *inner,
                              ft_error *error) {
  if (status == FT_OUT_OF_MEMORY) FT_FAIL(error, status, "%s", inner->text);
  FT_FAIL(error, FT_REFUSED, "plan: %s: %s", path, inner->text);
}

static ft_status read_ids(const decoder *d, const json_t *group, const char *path,
                          uint32_t **out, uint32_t *out_count, ft_error *error) {
  const json_t *list, *item;
  FT_TRY(member(group, path, "primitives", JSON_ARRAY, &list, error));
  size_t count = json_array_size(list), i;
  if (count == 0 || count > d->graph->primitive_count)
    FT_FAIL(error, FT_REFUSED, "plan: %sprimitives has %zu items, the graph %u", path,
            count, d->graph->primitive_count);
  uint32_t *id = FT_NEW_ARRAY(d->arena, uint32_t, count);
  FT_OOM_IF(!id, error);
  json_array_foreach(list, i, item) {
    char inner[PATH_ROOM];
    snprintf(inner, sizeof inner, "%sprimitives[%zu].", path, i);
    FT_TRY(read_u32(item, inner, "id", &id[i], error));
  }
  *out = id;
  *out_count = (uint32_t)count;
  return FT_OK;
}

static ft_status make_group(decoder *d, uint32_t index, ft_error *error) {
  char path[PATH_ROOM];
  ft_error inner;
  uint32_t *id, count;
  snprintf(path, sizeof path, "groups[%u].", index);
  const json_t *group = json_array_get(d->groups, index);
  FT_TRY(read_ids(d, group, path, &id, &count, error));
  ft_status status =
      ft_group_make(d->graph, id, count, d->arena, &d->group[index], &inner);
  if (status == FT_OK)
    status = ft_workload_make(&d->group[index], d->arena, &d->workload[index], &inner);
  snprintf(path, sizeof path, "groups[%u].primitives", index);
  if (status != FT_OK) return refuse_inner(status, path, &inner, error);
  snprintf(path, sizeof path, "groups[%u].", index);
  return check_hash(group, path, "workload", &d->workload[index].hash, error);
}

// The order must be the one that ft_partition_make gives, so a plan has one text.
static ft_status make_partition(decoder *d, ft_partition *out, ft_error *error) {
  ft_error inner;
  ft_status status =
      ft_partition_make(d->graph, d->group, d->count, d->arena, out, &inner);
  if (status != FT_OK) return refuse_inner(status, "groups", &inner, error);
  for (uint32_t i = 0; i < d->count; i++)
    if (out->group[i].primitive[0] != d->group[i].primitive[0])
      FT_FAIL(error, FT_REFUSED, "plan: groups[%u] is out of order", i);
  return FT_OK;
}

static ft_status make_groups(decoder *d, ft_partition *out, ft_error *error) {
  FT_TRY(member(d->root, "", "groups", JSON_ARRAY, &d->groups, error));
  size_t count = json_array_size(d->groups);
  if (count > d->graph->primitive_count)
    FT_FAIL(error, FT_REFUSED, "plan: %zu groups for %u primitives", count,
            d->graph->primitive_count);
  d->count = (uint32_t)count;
  d->group = FT_NEW_ARRAY(d->arena, ft_group, count);
  d->workload = FT_NEW_ARRAY(d->arena, ft_workload, count);
  FT_OOM_IF(!d->group || !d->workload, error);
  for (uint32_t i = 0; i < d->count; i++) FT_TRY(make_group(d, i, error));
  return make_partition(d, out, error);
}

// ---- what only the text knows

static ft_status read_schedule(const json_t *group, const char *path, ft_arena *arena,
                               ft_schedule *out, ft_error *error) {
  const json_t *it;
  ft_error inner;
  FT_TRY(member(group, path, "schedule", JSON_OBJECT, &it, error));
  const char *text = ft_json_text(it, arena);
  FT_OOM_IF(!text, error);
  ft_status status = ft_schedule_parse(text, arena, out, &inner);
  if (status == FT_OK) return FT_OK;
  char name[PATH_ROOM];
  snprintf(name, sizeof name, "%sschedule", path);
  return refuse_inner(status, name, &inner, error);
}

static ft_status read_scalars(const json_t *group, const char *path, ft_arena *arena,
                              ft_plan_group *out, ft_error *error) {
  const json_t *list, *item;
  size_t i;
  FT_TRY(member(group, path, "scalars", JSON_ARRAY, &list, error));
  if (json_array_size(list) > 64)
    FT_FAIL(error, FT_REFUSED, "plan: %sscalars has %zu items, the most is 64", path,
            json_array_size(list));
  int64_t *scalar = FT_NEW_ARRAY(arena, int64_t, json_array_size(list));
  FT_OOM_IF(!scalar, error);
  json_array_foreach(list, i, item) {
    if (!json_is_integer(item))
      FT_FAIL(error, FT_REFUSED, "plan: %sscalars[%zu] is not an integer", path, i);
    scalar[i] = json_integer_value(item);
  }
  out->scalar = scalar;
  out->scalar_count = (uint32_t)json_array_size(list);
  return FT_OK;
}

static ft_status read_launch(const json_t *group, const char *path, bool is_gpu,
                             ft_plan_group *out, ft_error *error) {
  const json_t *launch, *grid, *block;
  char inner[PATH_ROOM];
  snprintf(inner, sizeof inner, "%slaunch.", path);
  FT_TRY(member(group, path, "launch", JSON_OBJECT, &launch, error));
  FT_TRY(member(launch, inner, "grid", JSON_ARRAY, &grid, error));
  json_int_t blocks = json_integer_value(json_array_get(grid, 0));
  if (blocks < 0 || blocks > UINT32_MAX)
    FT_FAIL(error, FT_REFUSED, "plan: %sgrid[0] is %lld", inner, (long long)blocks);
  out->grid = (uint32_t)blocks;
  FT_TRY(member(launch, inner, "block", JSON_ARRAY, &block, error));
  json_int_t threads = json_integer_value(json_array_get(block, 0));
  if (threads < 1 || threads > 1024)
    FT_FAIL(error, FT_REFUSED, "plan: %sblock[0] is %lld", inner, (long long)threads);
  // The CPU's blocks have one thread, and their launches no number for it.
  out->launch.block_threads = is_gpu ? (uint32_t)threads : 0;
  FT_TRY(read_unsigned(launch, inner, "shared_bytes", INT64_MAX,
                       &out->launch.dynamic_shared_bytes, error));
  return read_u32(launch, inner, "threads", &out->threads, error);
}

static ft_status read_resources(const json_t *group, const char *path,
                                ft_static_facts *out, ft_error *error) {
  const json_t *it;
  char inner[PATH_ROOM];
  snprintf(inner, sizeof inner, "%sresources.", path);
  FT_TRY(member(group, path, "resources", JSON_OBJECT, &it, error));
  FT_TRY(read_known(it, inner, "registers", &out->registers, error));
  FT_TRY(read_known(it, inner, "spill_bytes", &out->spill_store_bytes, error));
  FT_TRY(read_known(it, inner, "shared_bytes", &out->shared_bytes, error));
  return read_maybe(it, inner, "occupancy", &out->occupancy, error);
}

// None or one.
static ft_status read_link(const json_t *group, const char *path, ft_arena *arena,
                           ft_plan_group *out, ft_error *error) {
  const json_t *list;
  FT_TRY(member(group, path, "link", JSON_ARRAY, &list, error));
  if (json_array_size(list) == 0) return FT_OK;
  const char *name = json_string_value(json_array_get(list, 0));
  if (!name || !*name)
    FT_FAIL(error, FT_REFUSED, "plan: %slink[0] is not a library's name", path);
  out->link = ft_arena_strdup(arena, name);
  FT_OOM_IF(!out->link, error);
  return FT_OK;
}

static ft_status read_kernel(const json_t *it, const char *path, bool is_gpu,
                             ft_arena *arena, ft_plan_group *out, ft_error *error) {
  FT_TRY(read_text(it, path, "tactic", arena, &out->tactic, error));
  FT_TRY(read_schedule(it, path, arena, &out->schedule, error));
  if (!json_is_null(json_object_get(it, "entry")))
    FT_TRY(read_text(it, path, "entry", arena, &out->entry, error));
  FT_TRY(read_hash(it, path, "body", &out->body_hash, error));
  FT_TRY(read_hash(it, path, "source", &out->source_hash, error));
  FT_TRY(read_hash(it, path, "binary", &out->binary_hash, error));
  FT_TRY(read_link(it, path, arena, out, error));
  FT_TRY(read_scalars(it, path, arena, out, error));
  FT_TRY(read_launch(it, path, is_gpu, out, error));
  FT_TRY(read_unsigned(it, path, "scratch_bytes", INT64_MAX, &out->scratch_bytes, error));
  return read_unsigned(it, path, "workspace_bytes", INT64_MAX, &out->workspace_bytes,
                       error);
}

static ft_status read_group(const decoder *d, uint32_t index, ft_plan_group *out,
                            ft_error *error) {
  char path[PATH_ROOM];
  snprintf(path, sizeof path, "groups[%u].", index);
  const json_t *it = json_array_get(d->groups, index);
  FT_TRY(read_kernel(it, path, ft_target_is_gpu(d->target), d->arena, out, error));
  FT_TRY(read_time(it, path, "time", &out->time, error));
  FT_TRY(read_maybe(it, path, "predicted_ns", &out->predicted_ns, error));
  FT_TRY(read_maybe(it, path, "roofline_ns", &out->roofline_ns, error));
  return read_resources(it, path, &out->facts, error);
}

static ft_status read_times(const json_t *root, ft_plan_times *out, ft_error *error) {
  const json_t *it;
  FT_TRY(member(root, "", "times", JSON_OBJECT, &it, error));
  FT_TRY(read_time(it, "times.", "tuned", &out->tuned, error));
  FT_TRY(read_time(it, "times.", "unfused", &out->unfused, error));
  FT_TRY(read_time(it, "times.", "primitive", &out->primitive, error));
  FT_TRY(read_time(it, "times.", "greedy", &out->greedy, error));
  FT_TRY(read_real(it, "times.", "additive_ns", &out->additive_ns, error));
  FT_TRY(read_real(it, "times.", "bound_ns", &out->bound_ns, error));
  FT_TRY(read_real(it, "times.", "gap", &out->gap, error));
  return read_date(it, "times.", "measured_at", &out->measured_at, error);
}

static ft_status read_search(const json_t *root, ft_arena *arena, ft_plan *out,
                             ft_error *error) {
  const json_t *it;
  FT_TRY(read_text(root, "", "strategy", arena, &out->strategy, error));
  FT_TRY(read_u32(root, "", "window", &out->window, error));
  FT_TRY(read_u32(root, "", "span", &out->span, error));
  FT_TRY(member(root, "", "window_saturated", JSON_TRUE, &it, error));
  out->window_saturated = json_is_true(it);
  return FT_OK;
}

// ---- the text against the plan that it became

// Members whose value another model of the same graph may have otherwise, or that the
// answer sets: |in| is the key of what holds them.
static bool may_differ(const char *in, const char *key) {
  static const char *const free_members[][2] = {
      {"buffers", "name"},    {"inputs", "name"},     {"outputs", "name"},
      {"primitives", "node"}, {"", "constants"},      {"", "match"},
      {"", "plan_id"},        {"groups", "counters"}, {"groups", "counters_absent"}};
  for (size_t i = 0; i < sizeof free_members / sizeof *free_members; i++)
    if (strcmp(free_members[i][0], in) == 0 && strcmp(free_members[i][1], key) == 0)
      return true;
  return false;
}

typedef struct comparison {
  ft_arena *arena;
  ft_error *error;
  char path[PATH_ROOM];
} comparison;

static const char *shown(const json_t *value, ft_arena *arena) {
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
  const char *copy = text ? ft_arena_printf(arena, "%.80s", text) : NULL;
  json_free_t release;
  json_get_alloc_funcs(NULL, &release);
  if (text) release(text);
  return copy ? copy : "?";
}

static ft_status differs(const comparison *c, const json_t *there, const json_t *must) {
  FT_FAIL(c->error, FT_REFUSED, "plan: %s: is %s, must be %s", c->path,
          there ? shown(there, c->arena) : "missing", shown(must, c->arena));
}

static ft_status compare(comparison *c, const char *in, const json_t *there,
                         const json_t *must);

static ft_status compare_object(comparison *c, const char *in, const json_t *there,
                                const json_t *must) {
  size_t length = strlen(c->path);
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)must, key, value) {
    snprintf(c->path + length, sizeof c->path - length, "%s%s", length ? "." : "", key);
    const json_t *other = json_object_get(there, key);
    if (!other) return differs(c, other, value);
    if (!may_differ(in, key)) FT_TRY(compare(c, key, other, value));
    c->path[length] = '\0';
  }
  return FT_OK;
}

static ft_status compare_list(comparison *c, const char *in, const json_t *there,
                              const json_t *must) {
  size_t length = strlen(c->path), index;
  json_t *value;
  if (json_array_size(there) != json_array_size(must)) return differs(c, there, must);
  json_array_foreach((json_t *)must, index, value) {
    snprintf(c->path + length, sizeof c->path - length, "[%zu]", index);
    FT_TRY(compare(c, in, json_array_get(there, index), value));
    c->path[length] = '\0';
  }
  return FT_OK;
}

// As deep as |must|, which is ours: six levels.
static ft_status compare(comparison *c, const char *in, const json_t *there,
                         const json_t *must) {
  if (json_typeof(there) != json_typeof(must)) return differs(c, there, must);
  if (json_is_object(must)) return compare_object(c, in, there, must);
  if (json_is_array(must)) return compare_list(c, in, there, must);
  return json_equal(there, must) ? FT_OK : differs(c, there, must);
}

static ft_status compare_plan(const decoder *d, const ft_plan *plan, ft_error *error) {
  json_t *must = ft_plan_json(plan, "exact");
  FT_OOM_IF(!must, error);
  comparison c = {.arena = d->arena, .error = error};
  ft_status status = compare(&c, "", d->root, must);
  json_decref(must);
  return status;
}

// ---- the whole

static ft_status decode(decoder *d, ft_plan *out, ft_error *error) {
  ft_partition partition;
  ft_error inner;
  FT_TRY(check_identity(d->root, d->graph, d->target, error));
  FT_TRY(make_groups(d, &partition, error));
  FT_TRY(ft_plan_make(&partition, d->workload, d->target, d->arena, out, error));
  FT_TRY(read_search(d->root, d->arena, out, error));
  FT_TRY(read_times(d->root, &out->times, error));
  for (uint32_t i = 0; i < d->count; i++) FT_TRY(read_group(d, i, &out->group[i], error));
  ft_status status = ft_plan_seal(out, d->arena, &inner);
  if (status != FT_OK) return refuse_inner(status, "members", &inner, error);
  FT_TRY(compare_plan(d, out, error));
  return check_hash(d->root, "", "plan_id", &out->hash, error);
}

ft_status ft_plan_parse(const char *json, const ft_graph *graph, const ft_target *target,
                        ft_arena *arena, ft_plan *out, ft_error *error) {
  json_error_t where;
  ft_plan plan;
  *out = (ft_plan){0};
  json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &where);
  // jansson reports some failed allocations without a word, and others as bad syntax.
  if (!root && (!*where.text || json_error_code(&where) == json_error_out_of_memory))
    FT_FAIL(error, FT_OUT_OF_MEMORY, "out of memory in %s", __func__);
  if (!root)
    FT_FAIL(error, FT_REFUSED, "plan, position %d: %s", where.position, where.text);
  decoder d = {.root = root, .graph = graph, .target = target, .arena = arena};
  ft_status status =
      json_is_object(root)
          ? decode(&d, &plan, error)
          : ft_error_set(error, FT_REFUSED, "plan: is a list, not an object");
  json_decref(root);
  if (status == FT_OK) *out = plan;
  return status;
}
