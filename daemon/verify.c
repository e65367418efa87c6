// run --verify: a plan's outputs against the double-precision interpreter.
#include <string.h>

#include "daemon/endtoend.h"
#include "daemon/session.h"
#include "graph/inputs.h"
#include "measure/check.h"

// Above this many elements in the graph's values the dense reference would take minutes.
static const double dense_limit_elements = 400e6;

// Without a stored plan: one kernel per operator where a tactic takes it whole, else one
// per primitive, with default schedules.
static ft_status default_group(ft_session *s, const ft_graph *graph,
                               const uint32_t *primitive, uint32_t count, ft_arena *arena,
                               ft_group *group, bool *out_legal, ft_error *error) {
  FT_TRY(ft_group_make(graph, primitive, count, arena, group, error));
  ft_workload workload;
  FT_TRY(ft_workload_make(group, arena, &workload, error));
  const char *tactic, *reason = "";
  *out_legal =
      s->builder.match(s->builder.self, &workload, arena, &tactic, 1, &reason) > 0;
  if (!*out_legal && count == 1)
    FT_FAIL(error, FT_UNSUPPORTED, "no tactic for primitive %u (%s): %s", primitive[0],
            ft_op_describe(graph->primitive[primitive[0]].op)->name, reason);
  return FT_OK;
}

static ft_status default_partition(ft_session *s, const ft_graph *graph, ft_arena *arena,
                                   ft_partition *out, ft_error *error) {
  ft_group *group = FT_NEW_ARRAY(arena, ft_group, graph->primitive_count);
  uint32_t *index = FT_NEW_ARRAY(arena, uint32_t, graph->primitive_count);
  FT_OOM_IF(!group || !index, error);
  for (uint32_t i = 0; i < graph->primitive_count; i++) index[i] = i;
  uint32_t count = 0;
  for (uint32_t o = 0; o < graph->operator_count; o++) {
    const ft_operator *op = &graph->operator_[o];
    if (op->count == 0) continue;
    bool legal;
    FT_TRY(default_group(s, graph, index + op->first, op->count, arena, &group[count],
                         &legal, error));
    if (legal) {
      count++;
      continue;
    }
    for (uint32_t i = 0; i < op->count; i++)
      FT_TRY(default_group(s, graph, index + op->first + i, 1, arena, &group[count++],
                           &legal, error));
  }
  return ft_partition_make(graph, group, count, arena, out, error);
}

static ft_status default_schedules(ft_session *s, ft_plan *plan, ft_arena *arena,
                                   ft_error *error) {
  const ft_builder *b = &s->builder;
  for (uint32_t i = 0; i < plan->group_count; i++) {
    ft_plan_group *g = &plan->group[i];
    const char *reason;
    ft_schedule *space;
    uint32_t count;
    if (b->match(b->self, &g->workload, arena, &g->tactic, 1, &reason) == 0)
      FT_FAIL(error, FT_INTERNAL, "group %u lost its tactic: %s", i, reason);
    FT_TRY(b->space(b->self, &g->workload, g->tactic, &s->target, arena, &space, &count,
                    error));
    if (count == 0)
      FT_FAIL(error, FT_INTERNAL, "tactic %s has no schedule for group %u", g->tactic, i);
    g->schedule = space[0];
  }
  return FT_OK;
}

static ft_status default_plan(ft_session *s, const ft_graph *graph, ft_arena *arena,
                              ft_plan *out, ft_error *error) {
  ft_partition partition;
  FT_TRY(default_partition(s, graph, arena, &partition, error));
  ft_workload *workload = FT_NEW_ARRAY(arena, ft_workload, partition.group_count);
  FT_OOM_IF(!workload, error);
  for (uint32_t i = 0; i < partition.group_count; i++)
    FT_TRY(ft_workload_make(&partition.group[i], arena, &workload[i], error));
  FT_TRY(ft_plan_make(&partition, workload, &s->target, arena, out, error));
  out->strategy = "unfused";
  return default_schedules(s, out, arena, error);
}

static ft_status plan_to_run(ft_session *s, const ft_model *model, ft_arena *arena,
                             ft_plan *out, bool *out_tuned, ft_error *error) {
  const char *body;
  ft_status found =
      ft_store_served_plan(s->store, model->graph, &s->target, arena, &body, error);
  *out_tuned = found == FT_OK;
  if (found == FT_OK)
    return ft_plan_parse(body, model->graph, &s->target, arena, out, error);
  if (found != FT_NOT_FOUND) return found;
  return default_plan(s, model->graph, arena, out, error);
}

// ---- comparing ------------------------------------------------------------------------

// The bytes of graph output |k| after the run: an output buffer, an input or a constant.
static ft_status output_tensor(const ft_graph *graph, uint32_t k, const ft_plan *plan,
                               const ft_program *program, void *const *data,
                               const ft_tensor *input, ft_arena *arena, ft_tensor *out,
                               ft_error *error) {
  uint32_t value = graph->output[k].value, root = graph->value[value].root;
  *out =
      (ft_tensor){.dtype = graph->value[value].dtype, .shape = graph->value[value].shape};
  out->bytes = (size_t)ft_shape_elements(&out->shape) * ft_dtype_bytes(out->dtype);
  uint32_t position = 0;
  for (uint32_t b = 0; b < plan->buffer_count; b++) {
    if (program->buffer[b].kind != FT_BUFFER_OUTPUT) continue;
    if (plan->buffer[b].value == root) out->data = data[position];
    position++;
  }
  for (uint32_t i = 0; i < graph->input_count; i++)
    if (graph->input[i].value == root) out->data = input[i].data;
  if (!out->data && graph->value[root].role == FT_ROLE_CONSTANT) {
    ft_tensor constant;
    FT_TRY(ft_graph_constant_data(graph, root, arena, &constant, error));
    out->data = constant.data;
  }
  if (!out->data)
    FT_FAIL(error, FT_INTERNAL, "the plan has no buffer for output '%s'",
            graph->output[k].name);
  return FT_OK;
}

static double graph_elements(const ft_graph *graph) {
  double total = 0;
  for (uint32_t i = 0; i < graph->primitive_count; i++)
    total += (double)ft_shape_elements(&graph->value[graph->primitive[i].output].shape);
  return total;
}

static ft_status compare_outputs(const ft_model *model, const ft_plan *plan,
                                 const ft_program *program, void *const *data,
                                 const ft_tensor *input, ft_arena *arena,
                                 ft_run_result *out, ft_error *error) {
  const ft_graph *graph = model->graph;
  if (graph_elements(graph) > dense_limit_elements)
    FT_FAIL(error, FT_UNSUPPORTED,
            "the dense reference of %.0f elements is above the limit of %.0f: bind "
            "smaller dims with --dim, or rely on the sampled check of `tune`",
            graph_elements(graph), dense_limit_elements);
  ft_reference *reference = FT_NEW_ARRAY(arena, ft_reference, graph->output_count);
  ft_verified_output *verified =
      FT_NEW_ARRAY(arena, ft_verified_output, graph->output_count);
  FT_OOM_IF(!reference || !verified, error);
  FT_TRY(ft_interpret_graph(graph, input, arena, reference, error));
  out->is_verified = true;
  for (uint32_t k = 0; k < graph->output_count; k++) {
    ft_tensor actual;
    FT_TRY(output_tensor(graph, k, plan, program, data, input, arena, &actual, error));
    verified[k].name = graph->output[k].name;
    verified[k].shape = actual.shape;
    ft_comparison_init(&verified[k].comparison);
    ft_compare_tensor(&actual, &reference[k], &verified[k].comparison);
    if (!(verified[k].comparison.max_ratio <= 1)) out->is_verified = false;
  }
  out->output_count = graph->output_count;
  out->output = verified;
  return FT_OK;
}

ft_status ft_session_verify(ft_session *s, const ft_model *model, uint64_t seed,
                            ft_arena *arena, ft_run_result *out, ft_error *error) {
  memset(out, 0, sizeof *out);
  const ft_graph *graph = model->graph;
  ft_plan plan;
  FT_TRY(plan_to_run(s, model, arena, &plan, &out->is_plan_tuned, error));
  const ft_module *module;
  FT_TRY(ft_plan_build(s, &plan, out->is_plan_tuned, arena, &module, error));
  ft_tensor *input = FT_NEW_ARRAY(arena, ft_tensor, graph->input_count);
  void **data = FT_NEW_ARRAY(arena, void *, plan.buffer_count);
  FT_OOM_IF(!input || !data, error);
  FT_TRY(ft_graph_random_inputs(graph, seed, arena, input, error));
  ft_program program;
  FT_TRY(ft_plan_program(&plan, "run", module, input, arena, &program, error));
  if (program.step_count > 0)
    FT_TRY(ft_cpu_runner_run(s->runner, &program, arena, data, &out->outcome,
                             out->failure, error));
  if (out->outcome != FT_OUTCOME_OK) return FT_OK;
  return compare_outputs(model, &plan, &program, data, input, arena, out, error);
}
