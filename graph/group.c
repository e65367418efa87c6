#include "graph/group.h"

#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static bool holds(const uint32_t *sorted, uint32_t count, uint32_t primitive) {
  return bsearch(&primitive, sorted, count, sizeof *sorted, ascending) != NULL;
}

static ft_status check_members(const ft_graph *graph, const uint32_t *sorted,
                               uint32_t count, ft_error *error) {
  if (count == 0) FT_FAIL(error, FT_INVALID_ARGUMENT, "a group of no primitives");
  if (sorted[count - 1] >= graph->primitive_count)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "no primitive %u: there are %u",
            sorted[count - 1], graph->primitive_count);
  for (uint32_t i = 1; i < count; i++)
    if (sorted[i] == sorted[i - 1])
      FT_FAIL(error, FT_INVALID_ARGUMENT, "primitive %u is in the group twice",
              sorted[i]);
  return FT_OK;
}

static void add_once(uint32_t *list, uint32_t *count, uint32_t root) {
  for (uint32_t i = 0; i < *count; i++)
    if (list[i] == root) return;
  list[(*count)++] = root;
}

static uint32_t find_inputs(const ft_graph *graph, const uint32_t *sorted, uint32_t count,
                            uint32_t *input) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i++) {
    const ft_primitive *p = &graph->primitive[sorted[i]];
    for (uint32_t k = 0; k < p->input_count; k++) {
      const ft_value *v = &graph->value[p->input[k]];
      bool inside = v->producer != FT_NONE && holds(sorted, count, v->producer);
      if (!inside && !ft_value_is_immediate(graph, p->input[k]))
        add_once(input, &found, v->root);
    }
  }
  return found;
}

static bool needed_outside(const ft_value *v, const uint32_t *sorted, uint32_t count) {
  if (v->is_output) return true;
  for (uint32_t i = 0; i < v->consumer_count; i++)
    if (!holds(sorted, count, v->consumer[i])) return true;
  return false;
}

static uint32_t find_outputs(const ft_graph *graph, const uint32_t *sorted,
                             uint32_t count, uint32_t *output) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t root = graph->primitive[sorted[i]].output;
    if (needed_outside(&graph->value[root], sorted, count)) output[found++] = root;
  }
  return found;
}

ft_status ft_group_make(const ft_graph *graph, const uint32_t *primitive, uint32_t count,
                        ft_arena *arena, ft_group *out, ft_error *error) {
  uint32_t *sorted = ft_arena_memdup(arena, primitive, count * sizeof *primitive);
  FT_OOM_IF(!sorted, error);
  if (count) qsort(sorted, count, sizeof *sorted, ascending);
  FT_TRY(check_members(graph, sorted, count, error));
  size_t reads = 0;
  for (uint32_t i = 0; i < count; i++) reads += graph->primitive[sorted[i]].input_count;
  uint32_t *input = FT_NEW_ARRAY(arena, uint32_t, reads);
  uint32_t *output = FT_NEW_ARRAY(arena, uint32_t, count);
  FT_OOM_IF(!input || !output, error);
  *out = (ft_group){.graph = graph,
                    .primitive_count = count,
                    .primitive = sorted,
                    .input = input,
                    .output = output};
  out->input_count = find_inputs(graph, sorted, count, input);
  out->output_count = find_outputs(graph, sorted, count, output);
  return FT_OK;
}

// ---- extraction -----------------------------------------------------------------

typedef struct extraction {
  const ft_group *group;
  ft_graph *to;
  uint32_t *copy;  // per value of the old graph: its value in the new one, FT_NONE
  uint32_t names;
} extraction;

static ft_status next_name(extraction *x, const char **out, ft_error *error) {
  *out = ft_arena_printf(x->to->arena, "v%u", x->names++);
  FT_OOM_IF(!*out, error);
  return FT_OK;
}

static ft_status extract_inputs(extraction *x, ft_error *error) {
  const ft_graph *from = x->group->graph;
  for (uint32_t i = 0; i < x->group->input_count; i++) {
    const ft_value *v = &from->value[x->group->input[i]];
    const char *name;
    FT_TRY(next_name(x, &name, error));
    FT_TRY(ft_graph_add_input(x->to, name, v->dtype, &v->shape,
                              &x->copy[x->group->input[i]], error));
  }
  return FT_OK;
}

// The new value of an operand: immediates are copied as they are used, views rebuilt.
static ft_status extract_operand(extraction *x, uint32_t value, uint32_t *out,
                                 ft_error *error) {
  const ft_graph *from = x->group->graph;
  const ft_value *v = &from->value[value];
  if (x->copy[value] == FT_NONE) {
    if (ft_value_is_immediate(from, value))
      FT_TRY(ft_graph_add_constant(x->to, "", v->data, &x->copy[value], error));
    else
      FT_TRY(ft_graph_view(x->to, x->copy[v->root], &v->shape, &x->copy[value], error));
  }
  *out = x->copy[value];
  return FT_OK;
}

static ft_status extract_primitive(extraction *x, uint32_t index, ft_error *error) {
  const ft_primitive *p = &x->group->graph->primitive[index];
  uint32_t *input = FT_NEW_ARRAY(x->to->arena, uint32_t, p->input_count);
  const char *name;
  FT_OOM_IF(!input, error);
  for (uint32_t k = 0; k < p->input_count; k++)
    FT_TRY(extract_operand(x, p->input[k], &input[k], error));
  FT_TRY(next_name(x, &name, error));
  FT_TRY(ft_graph_begin_operator(x->to, name, ft_op_describe(p->op)->name, "", error));
  uint32_t *out = &x->copy[p->output];
  FT_TRY(ft_graph_emit(x->to, p->op, input, p->input_count, &p->attr, out, error));
  return ft_graph_name_value(x->to, *out, name, error);
}

ft_status ft_group_extract(const ft_group *group, ft_arena *arena, ft_graph **out,
                           ft_error *error) {
  extraction x = {.group = group};
  *out = NULL;
  FT_TRY(ft_graph_create(arena, "group", &x.to, error));
  uint32_t values = group->graph->value_count;
  x.copy = FT_NEW_ARRAY(arena, uint32_t, values);
  FT_OOM_IF(!x.copy, error);
  memset(x.copy, 0xff, values * sizeof *x.copy);
  FT_TRY(extract_inputs(&x, error));
  for (uint32_t i = 0; i < group->primitive_count; i++)
    FT_TRY(extract_primitive(&x, group->primitive[i], error));
  for (uint32_t i = 0; i < group->output_count; i++) {
    uint32_t value = x.copy[group->output[i]];
    FT_TRY(ft_graph_add_output(x.to, x.to->value[value].name, value, error));
  }
  FT_TRY(ft_graph_finish(x.to, error));
  *out = x.to;
  return FT_OK;
}
