#include "daemon/execute.h"

#include <string.h>

static ft_status keep_all(ft_program *program, ft_arena *arena, ft_error *error) {
  ft_program_buffer *buffer =
      ft_arena_memdup(arena, program->buffer, program->buffer_count * sizeof *buffer);
  FT_OOM_IF(!buffer, error);
  for (uint32_t b = 0; b < program->buffer_count; b++)
    if (buffer[b].kind == FT_BUFFER_INTERMEDIATE) {
      buffer[b].kind = FT_BUFFER_OUTPUT;
      buffer[b].offset = UINT64_MAX;
    }
  program->buffer = buffer;
  program->workspace_bytes = 0;
  return FT_OK;
}

uint64_t ft_plan_limit_ns(const ft_plan *plan) {
  static const double default_ns = 10e9, ns_per_term = 20;
  double terms = 0;
  for (uint32_t i = 0; i < plan->group_count; i++) terms += plan->group[i].workload.flops;
  double limit_ns = default_ns + ns_per_term * terms;
  return limit_ns < 1e18 ? (uint64_t)limit_ns : (uint64_t)1e18;
}

ft_status ft_plan_execute(ft_session *s, const ft_plan *plan, const ft_module *module,
                          const ft_tensor *input, bool keep_intermediates,
                          ft_arena *arena, ft_execution *out, ft_error *error) {
  memset(out, 0, sizeof *out);
  ft_program *program = &out->program;
  FT_TRY(ft_plan_program(plan, "run", module, input, arena, program, error));
  if (keep_intermediates) FT_TRY(keep_all(program, arena, error));
  void **data = FT_NEW_ARRAY(arena, void *, program->buffer_count);
  out->bytes = FT_NEW_ARRAY(arena, const void *, program->buffer_count);
  FT_OOM_IF(!data || !out->bytes, error);
  ft_cpu_runner_limit_checks(s->runner, ft_plan_limit_ns(plan));
  ft_status status = FT_OK;
  if (program->step_count > 0)
    status = ft_cpu_runner_run(s->runner, program, arena, data, &out->outcome,
                               out->failure, error);
  ft_cpu_runner_limit_checks(s->runner, 0);
  FT_TRY(status);
  uint32_t position = 0;
  for (uint32_t b = 0; b < program->buffer_count; b++) {
    const ft_program_buffer *buffer = &program->buffer[b];
    if (buffer->kind == FT_BUFFER_INPUT) out->bytes[b] = buffer->data;
    if (buffer->kind == FT_BUFFER_OUTPUT) out->bytes[b] = data[position++];
  }
  return FT_OK;
}

ft_status ft_plan_output(const ft_plan *plan, const ft_execution *execution,
                         const ft_tensor *input, uint32_t k, ft_arena *arena,
                         ft_tensor *out, ft_error *error) {
  const ft_graph *graph = plan->graph;
  uint32_t value = graph->output[k].value, root = graph->value[value].root;
  *out =
      (ft_tensor){.dtype = graph->value[value].dtype, .shape = graph->value[value].shape};
  out->bytes = (size_t)ft_shape_elements(&out->shape) * ft_dtype_bytes(out->dtype);
  for (uint32_t b = 0; b < plan->buffer_count; b++)
    if (plan->buffer[b].value == root) out->data = execution->bytes[b];
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
