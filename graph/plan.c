#include "graph/plan.h"

#include <math.h>
#include <string.h>

#include "core/strbuf.h"
#include "graph/plan_json.h"

const char *ft_plan_status(const ft_plan *plan) {
  for (uint32_t i = 0; i < plan->group_count; i++)
    if (plan->group[i].time.samples == 0) return "predicted";
  return "measured";
}

void ft_plan_group_build(ft_plan_group *group, const ft_module *module,
                         const ft_hash *binary_hash) {
  group->body_hash = module->body_hash;
  group->source_hash = module->source_hash;
  group->binary_hash = *binary_hash;
  group->entry = module->entry;
  group->link = module->link;
  group->grid = module->grid;
  group->threads = module->threads;
  group->scratch_bytes = module->scratch_bytes;
  group->workspace_bytes = module->workspace_bytes;
  group->scalar_count = module->scalar_count;
  group->scalar = module->scalar;
  group->launch = module->launch;
  group->facts = module->facts;
}

// ---- sealing

static ft_status check_real(const char *name, double value, ft_error *error) {
  if (isfinite(value) && value >= 0) return FT_OK;
  FT_FAIL(error, FT_INVALID_ARGUMENT, "%s is %g", name, value);
}

static ft_status check_time(const char *name, const ft_time *t, ft_error *error) {
  bool is_known = t->samples > 0;
  if (t->low_ns <= t->median_ns && t->median_ns <= t->high_ns &&
      t->high_ns <= INT64_MAX && (t->median_ns > 0) == is_known)
    return FT_OK;
  FT_FAIL(error, FT_INVALID_ARGUMENT,
          "%s: low %llu, median %llu, high %llu ns of %u samples is no time", name,
          (unsigned long long)t->low_ns, (unsigned long long)t->median_ns,
          (unsigned long long)t->high_ns, t->samples);
}

static ft_status check_times(const ft_plan_times *t, ft_error *error) {
  FT_TRY(check_time("times.tuned", &t->tuned, error));
  FT_TRY(check_time("times.unfused", &t->unfused, error));
  FT_TRY(check_time("times.primitive", &t->primitive, error));
  FT_TRY(check_time("times.greedy", &t->greedy, error));
  FT_TRY(check_real("times.additive_ns", t->additive_ns, error));
  FT_TRY(check_real("times.bound_ns", t->bound_ns, error));
  return check_real("times.gap", t->gap, error);
}

static ft_status check_group(const ft_plan_group *g, ft_error *error) {
  if (!g->tactic || !*g->tactic) FT_FAIL(error, FT_INVALID_ARGUMENT, "tactic is missing");
  if (!isfinite(g->predicted_ns) || !isfinite(g->roofline_ns))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "predicted_ns is %g, roofline_ns %g",
            g->predicted_ns, g->roofline_ns);
  if (!isfinite(g->facts.occupancy))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "occupancy is %g", g->facts.occupancy);
  if (g->scratch_bytes > INT64_MAX || g->workspace_bytes > INT64_MAX)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "scratch or workspace passes 2^63 bytes");
  return check_time("time", &g->time, error);
}

ft_status ft_plan_seal(ft_plan *plan, ft_arena *arena, ft_error *error) {
  plan->hash = (ft_hash){0};
  FT_TRY(check_times(&plan->times, error));
  for (uint32_t i = 0; i < plan->group_count; i++) {
    ft_error inner;
    ft_status status = check_group(&plan->group[i], &inner);
    if (status != FT_OK) FT_FAIL(error, status, "groups[%u].%s", i, inner.text);
  }
  json_t *content = ft_plan_content_json(plan);
  const char *text = ft_json_text(content, arena);
  json_decref(content);
  FT_OOM_IF(!text, error);
  plan->hash = ft_hash_bytes(text, strlen(text));
  return FT_OK;
}

// ---- text

static int add_text(const char *text, size_t size, void *ctx) {
  ft_strbuf *buffer = ctx;
  ft_strbuf_addn(buffer, text, size);
  return buffer->failed ? -1 : 0;
}

const char *ft_json_text(const json_t *json, ft_arena *arena) {
  if (!json) return NULL;
  ft_strbuf text = ft_strbuf_init(arena);
  int code = json_dump_callback(json, add_text, &text, JSON_SORT_KEYS | JSON_COMPACT);
  return code == 0 ? text.text : NULL;
}

ft_status ft_plan_text(const ft_plan *plan, const char *match_level, ft_arena *arena,
                       const char **out, ft_error *error) {
  json_t *json = ft_plan_json(plan, match_level);
  *out = ft_json_text(json, arena);
  json_decref(json);
  FT_OOM_IF(!*out, error);
  return FT_OK;
}

// ---- the program

uint64_t ft_content_key(const void *data, uint64_t bytes) {
  const unsigned char *p = data;
  uint64_t hash = FT_HASH64_SEED ^ bytes;
  for (uint64_t i = 0; i < bytes; i += 8) {
    uint64_t word = 0;
    memcpy(&word, p + i, bytes - i < 8 ? (size_t)(bytes - i) : 8);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  }
  return hash;
}

static ft_status check_input(const ft_graph *graph, uint32_t index,
                             const ft_tensor *input, ft_error *error) {
  const ft_value *v = &graph->value[graph->input[index].value];
  if (input->dtype == v->dtype && ft_shape_equal(&input->shape, &v->shape)) return FT_OK;
  FT_FAIL(error, FT_INVALID_ARGUMENT, "input %u '%.200s' has another dtype or shape",
          index, graph->input[index].name);
}

static const ft_buffer_kind kinds[] = {
    [FT_PLAN_INPUT] = FT_BUFFER_INPUT,
    [FT_PLAN_CONSTANT] = FT_BUFFER_INPUT,
    [FT_PLAN_OUTPUT] = FT_BUFFER_OUTPUT,
    [FT_PLAN_INTERMEDIATE] = FT_BUFFER_INTERMEDIATE,
};

static ft_status fill_buffers(const ft_plan *plan, const ft_tensor *input,
                              ft_arena *arena, ft_program_buffer *out, ft_error *error) {
  const ft_graph *g = plan->graph;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    const ft_plan_buffer *b = &plan->buffer[i];
    const ft_value *v = &g->value[b->value];
    out[i] = (ft_program_buffer){.kind = kinds[b->role],
                                 .dtype = v->dtype,
                                 .shape = v->shape,
                                 .bytes = b->bytes,
                                 .offset = b->offset};
    if (b->role != FT_PLAN_CONSTANT) continue;
    ft_tensor data;
    FT_TRY(ft_graph_constant_data(g, b->value, arena, &data, error));
    out[i].data = data.data;
    out[i].key = ft_content_key(data.data, b->bytes);
  }
  for (uint32_t i = 0; i < g->input_count; i++) {
    FT_TRY(check_input(g, i, &input[i], error));
    ft_program_buffer *b = &out[plan->input_buffer[i]];
    b->data = input[i].data;
    b->key = ft_content_key(input[i].data, b->bytes);
  }
  return FT_OK;
}

static ft_status fill_steps(const ft_plan *plan, const ft_module *module,
                            ft_program_step *out, ft_error *error) {
  for (uint32_t i = 0; i < plan->group_count; i++) {
    const ft_plan_group *g = &plan->group[i];
    if (module[i].outcome != FT_OUTCOME_OK)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "group %u has no kernel: %s", i,
              ft_outcome_text(module[i].outcome));
    out[i] = (ft_program_step){
        .module = &module[i],
        .argument_count = g->workload.group.input_count + g->workload.group.output_count,
        .argument = g->argument};
  }
  return FT_OK;
}

ft_status ft_plan_program(const ft_plan *plan, const char *name, const ft_module *module,
                          const ft_tensor *input, ft_arena *arena, ft_program *out,
                          ft_error *error) {
  ft_program_buffer *buffer = FT_NEW_ARRAY(arena, ft_program_buffer, plan->buffer_count);
  ft_program_step *step = FT_NEW_ARRAY(arena, ft_program_step, plan->group_count);
  FT_OOM_IF(!buffer || !step, error);
  FT_TRY(fill_buffers(plan, input, arena, buffer, error));
  FT_TRY(fill_steps(plan, module, step, error));
  *out = (ft_program){.name = name,
                      .buffer_count = plan->buffer_count,
                      .step_count = plan->group_count,
                      .buffer = buffer,
                      .step = step,
                      .workspace_bytes = plan->workspace_bytes};
  return FT_OK;
}
