// The plan as JSON; docs/plan_format.md describes every member.
//
// Each function returns a new reference, or NULL when out of memory; json_pack's "o"
// takes a reference, passes NULL on, and drops the others.
#include "graph/plan_json.h"

#include <string.h>

#include "core/clock.h"

// ---- words and numbers

// A model's names need not be UTF-8, JSON's strings must.
static json_t *name_json(const char *name) {
  json_t *text = json_string(name);
  if (text) return text;
  char clean[256];
  size_t length = 0;
  for (; name[length] && length < sizeof clean; length++) {
    unsigned char c = (unsigned char)name[length];
    clean[length] = c >= 0x20 && c < 0x7f ? (char)c : '?';
  }
  return json_stringn(clean, length);
}

static json_t *hash_json(const ft_hash *hash) {
  if (ft_hash_is_zero(hash)) return json_null();
  char text[FT_HASH_TEXT + 1];
  ft_hash_text(hash, text);
  return json_string(text);
}

static json_t *word_json(const char *word) {
  return word ? json_string(word) : json_null();
}
static json_t *number_json(uint64_t value) {
  return json_integer((json_int_t)value);
}
static json_t *known_json(int64_t value) {
  return value < 0 ? json_null() : json_integer(value);
}
static json_t *real_json(double value) {
  return value < 0 ? json_null() : json_real(value);
}

static json_t *list_json(const int64_t *item, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t i = 0; list && i < count; i++) {
    if (json_array_append_new(list, json_integer(item[i])) == 0) continue;
    json_decref(list);
    return NULL;
  }
  return list;
}

static json_t *ids_json(const uint32_t *id, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t i = 0; list && i < count; i++) {
    if (json_array_append_new(list, json_integer(id[i])) == 0) continue;
    json_decref(list);
    return NULL;
  }
  return list;
}

// One item per |count|, made by |make|.
typedef json_t *(*item_maker)(const ft_plan *plan, uint32_t index);
static json_t *items_json(const ft_plan *plan, uint32_t count, item_maker make) {
  json_t *list = json_array();
  for (uint32_t i = 0; list && i < count; i++) {
    if (json_array_append_new(list, make(plan, i)) == 0) continue;
    json_decref(list);
    return NULL;
  }
  return list;
}

// ---- what it is for

// With what the plan must keep to, when there is anything.
static json_t *binding_json(const ft_plan *plan) {
  const char *dims = plan->graph->dims_json;
  return dims && *dims ? json_loads(dims, 0, NULL) : json_object();
}

// A dim of that name would have a number.
static json_t *dims_json(const ft_plan *plan) {
  json_t *dims = binding_json(plan);
  if (json_is_object(json_object_get(dims, "#constraints")))
    json_object_del(dims, "#constraints");
  return dims;
}

// NULL: none.
static json_t *constraints_json(const ft_plan *plan) {
  json_t *dims = binding_json(plan);
  json_t *constraints = json_object_get(dims, "#constraints");
  constraints = json_is_object(constraints) ? json_incref(constraints) : NULL;
  json_decref(dims);
  return constraints;
}

// This version makes plans for the dims that were bound, and no others.
static json_t *guards_json(const ft_plan *plan) {
  json_t *dims = dims_json(plan), *list = dims ? json_array() : NULL, *value;
  const char *name;
  bool failed = !list;
  json_object_foreach(dims, name, value) {
    json_int_t n = json_integer_value(value);
    json_t *guard =
        json_pack("{s:s,s:I,s:I,s:i}", "dim", name, "min", n, "max", n, "multiple_of", 1);
    failed |= json_array_append_new(list, guard) != 0;
  }
  json_decref(dims);
  if (!failed) return list;
  json_decref(list);
  return NULL;
}

// "f32-accumulate deterministic" -> what a consumer asks for.
static json_t *numerics_json(const ft_target *target) {
  const char *text = target->numerics ? target->numerics : "";
  const char *end = strstr(text, "-accumulate"), *start = end;
  while (start && start > text && start[-1] != ' ') start--;
  json_t *accumulate = end ? json_stringn(start, (size_t)(end - start)) : json_null();
  return json_pack("{s:o,s:b,s:b}", "accumulate", accumulate, "tf32",
                   strstr(text, "tf32") != NULL, "deterministic",
                   strstr(text, "deterministic") != NULL);
}

static json_t *target_json(const ft_target *target) {
  return json_pack("{s:s,s:o}", "name", target->name, "signature",
                   hash_json(&target->signature));
}

json_t *ft_time_json(const ft_time *time) {
  if (time->samples == 0) return json_object();
  return json_pack("{s:o,s:o,s:o,s:o}", "median_ns", number_json(time->median_ns),
                   "low_ns", number_json(time->low_ns), "high_ns",
                   number_json(time->high_ns), "samples", number_json(time->samples));
}

static json_t *date_json(uint64_t unix_ns) {
  char text[21];
  if (unix_ns == 0) return json_null();
  ft_clock_iso8601(unix_ns, text);
  return json_string(text);
}

static json_t *times_json(const ft_plan_times *t) {
  return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "tuned", ft_time_json(&t->tuned),
                   "unfused", ft_time_json(&t->unfused), "primitive",
                   ft_time_json(&t->primitive), "greedy", ft_time_json(&t->greedy),
                   "additive_ns", json_real(t->additive_ns), "bound_ns",
                   json_real(t->bound_ns), "gap", json_real(t->gap), "measured_at",
                   date_json(t->measured_at));
}

// ---- buffers

static const char *const role_names[] = {
    [FT_PLAN_INPUT] = "input",
    [FT_PLAN_CONSTANT] = "constant",
    [FT_PLAN_OUTPUT] = "output",
    [FT_PLAN_INTERMEDIATE] = "intermediate",
};

static json_t *buffer_json(const ft_plan *plan, uint32_t index) {
  const ft_plan_buffer *b = &plan->buffer[index];
  const ft_value *v = &plan->graph->value[b->value];
  int64_t stride[FT_MAX_RANK];
  ft_shape_strides(&v->shape, stride);
  json_t *offset = b->offset == UINT64_MAX ? json_null() : number_json(b->offset);
  return json_pack("{s:i,s:o,s:s,s:s,s:o,s:o,s:i,s:o,s:o,s:n}", "id", (int)index, "name",
                   name_json(v->name), "role", role_names[b->role], "dtype",
                   ft_dtype_text(v->dtype), "shape",
                   list_json(v->shape.dim, v->shape.rank), "strides",
                   list_json(stride, v->shape.rank), "align", 64, "bytes",
                   number_json(b->bytes), "offset", offset, "alias_of");
}

static json_t *constant_json(const ft_plan *plan, uint32_t index) {
  const ft_plan_buffer *b = &plan->buffer[index];
  const ft_value *v = &plan->graph->value[b->value];
  if (!v->data)
    return json_pack("{s:i,s:n,s:{s:s,s:o}}", "buffer", (int)index, "sha256", "recipe",
                     "op", "seed", "seed", number_json(v->seed));
  char hex[FT_HASH_HEX + 1];
  ft_hash hash = ft_hash_bytes(v->data->data, (size_t)b->bytes);
  ft_hash_hex(&hash, hex);
  return json_pack("{s:i,s:s,s:{s:s,s:[o]}}", "buffer", (int)index, "sha256", hex,
                   "recipe", "op", "initializer", "args", name_json(v->name));
}

static json_t *constants_json(const ft_plan *plan) {
  json_t *list = json_array();
  for (uint32_t i = 0; list && i < plan->buffer_count; i++) {
    if (plan->buffer[i].role != FT_PLAN_CONSTANT ||
        json_array_append_new(list, constant_json(plan, i)) == 0)
      continue;
    json_decref(list);
    return NULL;
  }
  return list;
}

static json_t *end_json(const ft_plan *plan, const char *name, uint32_t value,
                        uint32_t buffer) {
  const ft_shape *shape = &plan->graph->value[value].shape;
  return json_pack("{s:o,s:i,s:o}", "name", name_json(name), "buffer", (int)buffer,
                   "shape", list_json(shape->dim, shape->rank));
}

static json_t *input_json(const ft_plan *plan, uint32_t index) {
  const ft_graph_input *in = &plan->graph->input[index];
  return end_json(plan, in->name, in->value, plan->input_buffer[index]);
}

static json_t *output_json(const ft_plan *plan, uint32_t index) {
  const ft_graph_output *out = &plan->graph->output[index];
  return end_json(plan, out->name, out->value, plan->output_buffer[index]);
}

// ---- groups

static json_t *primitives_json(const ft_group *group) {
  json_t *list = json_array();
  for (uint32_t i = 0; list && i < group->primitive_count; i++) {
    uint32_t id = group->primitive[i];
    const ft_primitive *p = &group->graph->primitive[id];
    json_t *item =
        json_pack("{s:i,s:s,s:o}", "id", (int)id, "op", ft_op_describe(p->op)->name,
                  "node", name_json(group->graph->operator_[p->op_index].name));
    if (json_array_append_new(list, item) == 0) continue;
    json_decref(list);
    return NULL;
  }
  return list;
}

static json_t *schedule_json(const ft_schedule *schedule) {
  json_t *object = json_object();
  for (uint32_t i = 0; object && i < schedule->count; i++) {
    const ft_knob *knob = &schedule->knob[i];
    json_t *value = knob->text ? json_string(knob->text) : json_integer(knob->value);
    if (json_object_set_new(object, knob->name, value) == 0) continue;
    json_decref(object);
    return NULL;
  }
  return object;
}

static json_t *launch_json(const ft_plan_group *g) {
  int64_t grid[3] = {g->grid, 1, 1}, block[3] = {1, 1, 1};
  if (g->launch.block_threads) block[0] = g->launch.block_threads;
  return json_pack("{s:o,s:o,s:o,s:o}", "grid", list_json(grid, 3), "block",
                   list_json(block, 3), "threads", number_json(g->threads),
                   "shared_bytes", number_json(g->launch.dynamic_shared_bytes));
}

static json_t *resources_json(const ft_static_facts *f) {
  int64_t spill = f->spill_store_bytes < 0 && f->spill_load_bytes < 0 ? -1 : 0;
  if (f->spill_store_bytes > 0) spill += f->spill_store_bytes;
  if (f->spill_load_bytes > 0) spill += f->spill_load_bytes;
  return json_pack("{s:o,s:o,s:o,s:o}", "registers", known_json(f->registers),
                   "spill_bytes", known_json(spill), "shared_bytes",
                   known_json(f->shared_bytes), "occupancy", real_json(f->occupancy));
}

static json_t *arguments_json(const ft_plan_group *g) {
  return ids_json(g->argument,
                  g->workload.group.input_count + g->workload.group.output_count);
}

static json_t *link_json(const ft_plan_group *g) {
  return g->link ? json_pack("[s]", g->link) : json_array();
}

static json_t *kernel_json(const ft_plan_group *g) {
  return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "entry",
                   word_json(g->entry), "body", hash_json(&g->body_hash), "source",
                   hash_json(&g->source_hash), "binary", hash_json(&g->binary_hash),
                   "link", link_json(g), "arguments", arguments_json(g), "scalars",
                   list_json(g->scalar, g->scalar_count), "launch", launch_json(g),
                   "scratch_bytes", number_json(g->scratch_bytes), "workspace_bytes",
                   number_json(g->workspace_bytes));
}

static json_t *evidence_json(const ft_plan_group *g) {
  return json_pack("{s:o,s:o,s:o,s:o,s:n,s:s}", "time", ft_time_json(&g->time),
                   "predicted_ns", real_json(g->predicted_ns), "roofline_ns",
                   real_json(g->roofline_ns), "resources", resources_json(&g->facts),
                   "counters", "counters_absent",
                   "this version reads no hardware counters");
}

// Moves the members of |more| into |object|; NULL when either is.
static json_t *joined(json_t *object, json_t *more) {
  bool failed = !object || !more || json_object_update(object, more) != 0;
  json_decref(more);
  if (!failed) return object;
  json_decref(object);
  return NULL;
}

json_t *ft_plan_group_json(const ft_plan *plan, uint32_t index) {
  const ft_plan_group *g = &plan->group[index];
  json_t *head = json_pack("{s:i,s:o,s:o,s:o,s:s,s:o}", "position", (int)index,
                           "workload", hash_json(&g->workload.hash), "depends",
                           ids_json(g->depend, g->depend_count), "primitives",
                           primitives_json(&g->workload.group), "tactic", g->tactic,
                           "schedule", schedule_json(&g->schedule));
  return joined(joined(head, kernel_json(g)), evidence_json(g));
}

// ---- the whole

// |constraints| is a member only when there are some.
static json_t *identity_json(const ft_plan *plan) {
  return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:s,s:o,s:o*}", "format", FT_PLAN_FORMAT,
                   "graph", hash_json(&plan->graph->symbolic_hash), "binding",
                   hash_json(&plan->graph->bound_hash), "dims", dims_json(plan), "guards",
                   guards_json(plan), "target", target_json(plan->target), "abi",
                   ft_target_is_gpu(plan->target) ? "ft-cuda-1" : "ft-cpu-1", "numerics",
                   numerics_json(plan->target), "constraints", constraints_json(plan));
}

static json_t *content_json(const ft_plan *plan) {
  json_t *body = json_pack(
      "{s:s,s:o,s:o,s:b,s:o,s:o,s:o,s:o,s:o,s:o}", "strategy", plan->strategy, "window",
      number_json(plan->window), "span", number_json(plan->span), "window_saturated",
      plan->window_saturated, "peak_bytes", number_json(plan->peak_bytes),
      "workspace_bytes", number_json(plan->workspace_bytes), "buffers",
      items_json(plan, plan->buffer_count, buffer_json), "inputs",
      items_json(plan, plan->graph->input_count, input_json), "outputs",
      items_json(plan, plan->graph->output_count, output_json), "groups",
      items_json(plan, plan->group_count, ft_plan_group_json));
  return joined(identity_json(plan), body);
}

static void drop(json_t *list, const char *key) {
  size_t index;
  json_t *item;
  json_array_foreach(list, index, item) json_object_del(item, key);
}

// Names belong to the model, not to its graph: two models with one graph share plans. And
// a plan is what it is, whoever found it.
json_t *ft_plan_content_json(const ft_plan *plan) {
  static const char *const evidence[] = {"time", "predicted_ns", "roofline_ns",
                                         "counters", "counters_absent"};
  static const char *const search[] = {"strategy", "window", "span", "window_saturated"};
  json_t *content = content_json(plan), *groups = json_object_get(content, "groups"),
         *group;
  for (size_t i = 0; i < sizeof search / sizeof *search; i++)
    json_object_del(content, search[i]);
  drop(json_object_get(content, "buffers"), "name");
  drop(json_object_get(content, "inputs"), "name");
  drop(json_object_get(content, "outputs"), "name");
  for (size_t i = 0; i < sizeof evidence / sizeof *evidence; i++)
    drop(groups, evidence[i]);
  size_t index;
  json_array_foreach(groups, index, group)
      drop(json_object_get(group, "primitives"), "node");
  return content;
}

json_t *ft_plan_json(const ft_plan *plan, const char *match_level) {
  json_t *more =
      json_pack("{s:o,s:s,s:{s:s,s:[]},s:o,s:o}", "plan_id", hash_json(&plan->hash),
                "status", ft_plan_status(plan), "match", "level", match_level, "differs",
                "times", times_json(&plan->times), "constants", constants_json(plan));
  return joined(content_json(plan), more);
}
