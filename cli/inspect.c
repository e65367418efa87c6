// explain --graph: what the import left of a model, primitive by primitive.
#include "cli/inspect.h"

#include <stdio.h>

static const char *const class_texts[] = {"elementwise", "remap", "reduction", "stencil",
                                          "contraction"};

// Bytes and flops of the primitive as a kernel of its own.
static ft_status measure(const ft_graph *graph, uint32_t primitive, ft_arena *arena,
                         ft_workload *out, ft_error *error) {
  ft_group group;
  FT_TRY(ft_group_make(graph, &primitive, 1, arena, &group, error));
  return ft_workload_make(&group, arena, out, error);
}

ft_status ft_inspect_graph(const ft_graph *graph, ft_arena *arena, ft_inspection *out,
                           ft_error *error) {
  *out = (ft_inspection){.graph = graph};
  out->primitive = FT_NEW_ARRAY(arena, ft_inspected, graph->primitive_count);
  ft_arena *scratch = ft_arena_create(ft_allocator_system());
  ft_status status = FT_OK;
  if (!out->primitive || !scratch)
    status = ft_error_set(error, FT_OUT_OF_MEMORY, "out of memory in %s", __func__);
  for (uint32_t i = 0; i < graph->primitive_count && status == FT_OK; i++) {
    ft_workload workload;
    status = measure(graph, i, scratch, &workload, error);
    if (status != FT_OK) break;
    out->primitive[i] =
        (ft_inspected){workload.read_bytes, workload.write_bytes, workload.flops};
    out->flops += workload.flops;
    out->bytes += (double)workload.read_bytes + (double)workload.write_bytes;
    ft_arena_reset(scratch);
  }
  ft_arena_destroy(scratch);
  return status;
}

static const char *class_of(const ft_primitive *p) {
  return class_texts[ft_op_describe(p->op)->class];
}

// ---- as JSON --------------------------------------------------------------------------

static json_t *shape_json(const ft_shape *shape) {
  json_t *list = json_array();
  for (int i = 0; i < shape->rank; i++)
    json_array_append_new(list, json_integer((json_int_t)shape->dim[i]));
  return list;
}

static json_t *value_json(const ft_graph *graph, const char *name, uint32_t value) {
  const ft_value *v = &graph->value[value];
  return json_pack("{s:s, s:s, s:o}", "name", name, "dtype", ft_dtype_text(v->dtype),
                   "shape", shape_json(&v->shape));
}

static json_t *primitive_json(const ft_inspection *in, uint32_t id) {
  const ft_graph *graph = in->graph;
  const ft_primitive *p = &graph->primitive[id];
  const ft_inspected *cost = &in->primitive[id];
  json_t *inputs = json_array();
  for (uint32_t i = 0; i < p->input_count; i++)
    json_array_append_new(inputs,
                          value_json(graph, graph->value[p->input[i]].name, p->input[i]));
  return json_pack("{s:I, s:s, s:s, s:o, s:o, s:I, s:I, s:f}", "id", (json_int_t)id, "op",
                   ft_op_describe(p->op)->name, "class", class_of(p), "inputs", inputs,
                   "output", value_json(graph, graph->value[p->output].name, p->output),
                   "read_bytes", (json_int_t)cost->read_bytes, "write_bytes",
                   (json_int_t)cost->write_bytes, "flops", cost->flops);
}

static json_t *operator_json(const ft_inspection *in, const ft_operator *op) {
  json_t *primitives = json_array();
  for (uint32_t k = 0; k < op->count; k++)
    json_array_append_new(primitives, primitive_json(in, op->first + k));
  return json_pack("{s:s, s:s, s:s, s:b, s:o}", "name", op->name, "op", op->type,
                   "domain", op->domain, "folded", (int)(op->count == 0), "primitives",
                   primitives);
}

json_t *ft_inspection_json(const ft_inspection *in, const char *model) {
  const ft_graph *graph = in->graph;
  char symbolic[FT_HASH_TEXT + 1], bound[FT_HASH_TEXT + 1];
  ft_hash_text(&graph->symbolic_hash, symbolic);
  ft_hash_text(&graph->bound_hash, bound);
  json_t *inputs = json_array(), *outputs = json_array(), *operators = json_array();
  for (uint32_t i = 0; i < graph->input_count; i++)
    json_array_append_new(inputs,
                          value_json(graph, graph->input[i].name, graph->input[i].value));
  for (uint32_t i = 0; i < graph->output_count; i++)
    json_array_append_new(
        outputs, value_json(graph, graph->output[i].name, graph->output[i].value));
  for (uint32_t i = 0; i < graph->operator_count; i++)
    json_array_append_new(operators, operator_json(in, &graph->operator_[i]));
  return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:o, s:o, s:o}", "model",
                   model, "graph", symbolic, "binding", bound, "operators",
                   (json_int_t)graph->live_operators, "imported_operators",
                   (json_int_t)graph->operator_count, "primitives",
                   (json_int_t)graph->primitive_count, "bytes", in->bytes, "flops",
                   in->flops, "inputs", inputs, "outputs", outputs, "nodes", operators);
}

// ---- for people -----------------------------------------------------------------------

static void print_primitive(const ft_inspection *in, uint32_t id, ft_arena *arena) {
  const ft_graph *graph = in->graph;
  const ft_primitive *p = &graph->primitive[id];
  const ft_inspected *cost = &in->primitive[id];
  printf("    %-4u %-15s %-11s -> %s %-14s %10.3f MB %10.3f Mflop\n", id,
         ft_op_describe(p->op)->name, class_of(p),
         ft_dtype_text(graph->value[p->output].dtype),
         ft_shape_text(&graph->value[p->output].shape, arena),
         ((double)cost->read_bytes + (double)cost->write_bytes) * 1e-6,
         cost->flops * 1e-6);
}

static void print_value(const char *kind, const ft_graph *graph, const char *name,
                        uint32_t value, ft_arena *arena) {
  const ft_value *v = &graph->value[value];
  printf("  %-6s '%s' %s %s\n", kind, name, ft_dtype_text(v->dtype),
         ft_shape_text(&v->shape, arena));
}

void ft_inspection_print(const ft_inspection *in, const char *model, ft_arena *arena) {
  const ft_graph *g = in->graph;
  printf("%s: %u operators of %u left after folding, %u primitives\n", model,
         g->live_operators, g->operator_count, g->primitive_count);
  printf("  alone, the primitives move %.3f MB and do %.3f Mflop\n", in->bytes * 1e-6,
         in->flops * 1e-6);
  for (uint32_t i = 0; i < g->input_count; i++)
    print_value("input", g, g->input[i].name, g->input[i].value, arena);
  for (uint32_t i = 0; i < g->output_count; i++)
    print_value("output", g, g->output[i].name, g->output[i].value, arena);
  for (uint32_t i = 0; i < g->operator_count; i++) {
    const ft_operator *op = &g->operator_[i];
    printf("  %-18s '%s'%s\n", op->type, op->name, op->count ? "" : "   folded away");
    for (uint32_t k = 0; k < op->count; k++) print_primitive(in, op->first + k, arena);
  }
}
