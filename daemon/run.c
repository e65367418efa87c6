// run: a plan, once, on inputs of the caller's choice; its outputs against the
// double-precision interpreter when asked for.
#include <math.h>
#include <string.h>

#include "core/strbuf.h"
#include "daemon/default_plan.h"
#include "daemon/endtoend.h"
#include "daemon/execute.h"
#include "graph/inputs.h"
#include "graph/reference_cost.h"
#include "measure/check.h"

static const double dense_limit_s =
    20;  // longer than this the dense reference is left out
// Per kernel: outputs up to this size are compared whole, references end after this time.
enum { FULL_ELEMENTS = 1 << 16 };
static const uint64_t kernel_limit_ns = 2000000000u;

static ft_status plan_to_run(ft_session *s, const ft_model *model, ft_arena *arena,
                             ft_plan *out, bool *out_tuned, ft_error *error) {
  const char *body;
  ft_status found =
      ft_store_served_plan(s->store, model->graph, &s->target, arena, &body, error);
  *out_tuned = found == FT_OK;
  if (found == FT_OK)
    return ft_plan_parse(body, model->graph, &s->target, arena, out, error);
  if (found != FT_NOT_FOUND) return found;
  return ft_plan_default(s, model->graph, arena, out, error);
}

// ---- inputs ---------------------------------------------------------------------------

static ft_status find_input(const ft_graph *graph, const char *name, uint32_t *out,
                            ft_error *error) {
  for (*out = 0; *out < graph->input_count; ++*out)
    if (strcmp(graph->input[*out].name, name) == 0) return FT_OK;
  FT_FAIL(error, FT_INVALID_ARGUMENT, "the model has no graph input '%s'", name);
}

static ft_status use_file(const ft_graph *graph, const ft_input_file *file,
                          ft_arena *arena, ft_tensor *input, ft_error *error) {
  uint32_t i;
  FT_TRY(find_input(graph, file->name, &i, error));
  const ft_value *v = &graph->value[graph->input[i].value];
  if (file->tensor.dtype != v->dtype || !ft_shape_equal(&file->tensor.shape, &v->shape))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "input '%s' is %s %s, the file has %s %s",
            file->name, ft_dtype_text(v->dtype), ft_shape_text(&v->shape, arena),
            ft_dtype_text(file->tensor.dtype), ft_shape_text(&file->tensor.shape, arena));
  input[i] = file->tensor;
  return FT_OK;
}

static ft_status use_range(const ft_graph *graph, const ft_input_range *range,
                           uint64_t seed, ft_arena *arena, ft_tensor *input,
                           ft_error *error) {
  uint32_t i;
  void *data;
  FT_TRY(find_input(graph, range->name, &i, error));
  if (!(range->low < range->high) || !isfinite(range->low) || !isfinite(range->high))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "input '%s': [%g, %g) is no range", range->name,
            range->low, range->high);
  const ft_value *v = &graph->value[graph->input[i].value];
  FT_TRY(ft_tensor_alloc(v->dtype, &v->shape, arena, &input[i], &data, error));
  ft_fill_random(v->dtype, data, ft_shape_elements(&v->shape), range->low, range->high,
                 seed + i);
  return FT_OK;
}

static ft_status make_inputs(const ft_graph *graph, const ft_run_options *options,
                             ft_arena *arena, ft_tensor **out, ft_error *error) {
  *out = FT_NEW_ARRAY(arena, ft_tensor, graph->input_count);
  FT_OOM_IF(!*out, error);
  FT_TRY(ft_graph_random_inputs(graph, options->seed, arena, *out, error));
  for (uint32_t i = 0; i < options->range_count; i++)
    FT_TRY(use_range(graph, &options->range[i], options->seed, arena, *out, error));
  for (uint32_t i = 0; i < options->file_count; i++)
    FT_TRY(use_file(graph, &options->file[i], arena, *out, error));
  return FT_OK;
}

typedef struct running {
  ft_session *session;
  const ft_graph *graph;
  ft_arena *arena;
  ft_plan plan;
  const ft_module *module;  // [groups of the plan]
  const ft_tensor *input;   // [graph inputs]
  ft_execution execution;
  ft_run_result *result;
} running;

static ft_status take_outputs(running *r, ft_error *error) {
  ft_tensor *output = FT_NEW_ARRAY(r->arena, ft_tensor, r->graph->output_count);
  FT_OOM_IF(!output, error);
  for (uint32_t k = 0; k < r->graph->output_count; k++)
    FT_TRY(ft_plan_output(&r->plan, &r->execution, r->input, k, r->arena, &output[k],
                          error));
  r->result->output = output;
  r->result->output_count = r->graph->output_count;
  return FT_OK;
}

// ---- comparing ------------------------------------------------------------------------

const char *ft_verify_method_text(ft_verify_method method) {
  static const char *const text[] = {"none", "per kernel", "per kernel and dense"};
  return text[method];
}

static void judge(running *r, ft_verified *out, const char *name,
                  const ft_comparison *comparison) {
  *out = (ft_verified){name, *comparison};
  if (!(comparison->max_ratio <= 1)) r->result->is_verified = false;
}

static ft_status compare_dense(running *r, ft_error *error) {
  const ft_graph *graph = r->graph;
  ft_reference *reference = FT_NEW_ARRAY(r->arena, ft_reference, graph->output_count);
  ft_verified *list = FT_NEW_ARRAY(r->arena, ft_verified, graph->output_count);
  FT_OOM_IF(!reference || !list, error);
  FT_TRY(ft_interpret_graph(graph, r->input, r->arena, reference, error));
  for (uint32_t k = 0; k < graph->output_count; k++) {
    ft_comparison comparison;
    ft_comparison_init(&comparison);
    ft_compare_tensor(&r->result->output[k], &reference[k], &comparison);
    judge(r, &list[k], graph->output[k].name, &comparison);
    if (!(ft_comparison_drift(&comparison) <= FT_DRIFT_LIMIT))
      r->result->is_verified = false;
  }
  r->result->dense = list;
  r->result->dense_count = graph->output_count;
  return FT_OK;
}

static const char *kernel_name(const running *r, uint32_t group) {
  const ft_plan_group *g = &r->plan.group[group];
  ft_strbuf name = ft_strbuf_init(r->arena);
  ft_strbuf_printf(&name, "kernel %u (%s):", group, g->tactic);
  for (uint32_t i = 0; i < g->workload.group.output_count; i++)
    ft_strbuf_printf(&name, "%s '%s'", i ? "," : "",
                     r->graph->value[g->workload.group.output[i]].name);
  return name.failed ? "?" : name.text;
}

// The check on the bytes that the kernel's arguments held.
static ft_status compare_kernel(running *r, uint32_t position, ft_arena *arena,
                                ft_comparison *out, ft_error *error) {
  const ft_plan_group *g = &r->plan.group[position];
  const ft_group *group = &g->workload.group;
  ft_tensor *input = FT_NEW_ARRAY(arena, ft_tensor, group->input_count);
  const void **output = FT_NEW_ARRAY(arena, const void *, group->output_count);
  FT_OOM_IF(!input || !output, error);
  for (uint32_t i = 0; i < group->input_count; i++) {
    const ft_program_buffer *buffer = &r->execution.program.buffer[g->argument[i]];
    input[i] = (ft_tensor){buffer->dtype, buffer->shape,
                           r->execution.bytes[g->argument[i]], buffer->bytes};
  }
  for (uint32_t i = 0; i < group->output_count; i++)
    output[i] = r->execution.bytes[g->argument[group->input_count + i]];
  ft_group_check *check;
  FT_TRY(ft_group_check_create(group, input, position, FULL_ELEMENTS, kernel_limit_ns,
                               arena, &check, error));
  ft_output_check outputs = ft_group_check_outputs(check);
  char worst[256];
  return outputs.compare(outputs.ctx, output, out, worst, error);
}

static ft_status compare_kernels(running *r, ft_error *error) {
  ft_verified *list = FT_NEW_ARRAY(r->arena, ft_verified, r->plan.group_count);
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_status status = FT_OK;
  if (!list || !arena)
    status = ft_error_set(error, FT_OUT_OF_MEMORY, "out of memory in %s", __func__);
  for (uint32_t i = 0; i < r->plan.group_count && status == FT_OK; i++) {
    ft_comparison comparison;
    status = compare_kernel(r, i, arena, &comparison, error);
    if (status == FT_OK) judge(r, &list[i], kernel_name(r, i), &comparison);
    ft_arena_reset(arena);
  }
  ft_arena_destroy(arena);
  r->result->kernel = list;
  r->result->kernel_count = r->plan.group_count;
  return status;
}

static ft_status verify(running *r, ft_error *error) {
  r->result->is_verified = true;
  FT_TRY(compare_kernels(r, error));
  return r->result->method == FT_VERIFY_DENSE ? compare_dense(r, error) : FT_OK;
}

static ft_status prepare(running *r, const ft_run_options *options, const ft_model *model,
                         ft_error *error) {
  ft_tensor *input;
  FT_TRY(make_inputs(r->graph, options, r->arena, &input, error));
  r->input = input;
  FT_TRY(plan_to_run(r->session, model, r->arena, &r->plan, &r->result->is_plan_tuned,
                     error));
  FT_TRY(ft_plan_build(r->session, &r->plan, r->result->is_plan_tuned, r->arena,
                       &r->module, error));
  if (options->verify)
    r->result->method = ft_reference_dense_seconds(r->graph) <= dense_limit_s
                            ? FT_VERIFY_DENSE
                            : FT_VERIFY_PER_KERNEL;
  return FT_OK;
}

ft_status ft_session_run(ft_session *s, const ft_model *model,
                         const ft_run_options *options, ft_arena *arena,
                         ft_run_result *out, ft_error *error) {
  memset(out, 0, sizeof *out);
  running r = {.session = s, .graph = model->graph, .arena = arena, .result = out};
  FT_TRY(prepare(&r, options, model, error));
  FT_TRY(ft_plan_execute(s, &r.plan, r.module, r.input, options->verify, arena,
                         &r.execution, error));
  out->outcome = r.execution.outcome;
  memcpy(out->failure, r.execution.failure, sizeof out->failure);
  if (out->outcome != FT_OUTCOME_OK) return FT_OK;
  FT_TRY(take_outputs(&r, error));
  return options->verify ? verify(&r, error) : FT_OK;
}
