// What the contract tactic takes.
#include "codegen/contract.h"

#include "codegen/contract_emit.h"

enum { MOST_PRIMITIVES = 64 };

static const char *name_of(const ft_primitive *p) {
  return ft_op_describe(p->op)->name;
}

static ft_op_class class_of(const ft_primitive *p) {
  return ft_op_describe(p->op)->class;
}

static const ft_primitive *member(const ft_group *group, uint32_t i) {
  return &group->graph->primitive[group->primitive[i]];
}

static const ft_primitive *anchor_of(const ft_group *group) {
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    if (class_of(member(group, i)) == FT_CLASS_M) return member(group, i);
  }
  return NULL;
}

static int64_t elements_of(const ft_graph *graph, uint32_t value) {
  return ft_shape_elements(&graph->value[value].shape);
}

// ---- the problem
// ------------------------------------------------------------------------

static int64_t product(const ft_shape *shape, int from, int to) {
  int64_t p = 1;
  for (int i = from; i < to; i++) p *= shape->dim[i];
  return p;
}

static void matmul_problem(ft_contract *c, const ft_graph *graph) {
  const ft_primitive *p = c->anchor;
  const ft_shape *a = &graph->value[p->input[0]].shape,
                 *b = &graph->value[p->input[1]].shape;
  const ft_shape *out = &graph->value[p->output].shape;
  c->operand[0] = p->input[0];
  c->operand[1] = p->input[1];
  c->batches = product(out, 0, out->rank - 2);
  c->m = out->dim[out->rank - 2];
  c->n = out->dim[out->rank - 1];
  c->k = a->dim[a->rank - 1];
  // Then A has all of the result's batch.
  c->is_folded = product(b, 0, b->rank - 2) == 1;
  if (!c->is_folded) return;
  c->m *= c->batches;
  c->batches = 1;
}

// Output point n reads input point n.
static bool is_pointwise(const ft_primitive *p, const ft_shape *x, const ft_shape *w,
                         const ft_shape *out) {
  for (int i = 2; i < x->rank; i++) {
    if (w->dim[i] != 1 || x->dim[i] != out->dim[i]) return false;
    if (p->attr.start[i - 2] || p->attr.stride[i - 2] != 1) return false;
  }
  return true;
}

static bool has_padding(const ft_primitive *p, const ft_shape *x, const ft_shape *w,
                        const ft_shape *out) {
  for (int i = 2; i < x->rank; i++) {
    const ft_attr *a = &p->attr;
    int64_t reach = (w->dim[i] - 1) * a->dilation[i - 2];
    int64_t last = (out->dim[i] - 1) * a->stride[i - 2] - a->start[i - 2] + reach;
    if (a->start[i - 2] > 0 || last >= x->dim[i]) return true;
  }
  return false;
}

static void conv_problem(ft_contract *c, const ft_graph *graph) {
  const ft_primitive *p = c->anchor;
  const ft_shape *x = &graph->value[p->input[0]].shape,
                 *w = &graph->value[p->input[1]].shape;
  const ft_shape *out = &graph->value[p->output].shape;
  c->operand[0] = p->input[1];
  c->operand[1] = p->input[0];
  c->batches = out->dim[0];
  c->m = out->dim[1];
  c->n = product(out, 2, out->rank);
  c->k = product(w, 1, w->rank);
  c->is_image = !is_pointwise(p, x, w, out);
  c->has_padding = has_padding(p, x, w, out);
}

ft_contract ft_contract_problem(const ft_workload *workload) {
  ft_contract c = {.workload = workload, .anchor = anchor_of(&workload->group)};
  if (c.anchor->op == FT_OP_MATMUL)
    matmul_problem(&c, workload->group.graph);
  else
    conv_problem(&c, workload->group.graph);
  c.is_empty = !c.batches || !c.m || !c.n;
  c.segment = c.n;
  c.k_segment = c.k;
  c.k_lanes = 1;
  return c;
}

// ---- what is taken
// ------------------------------------------------------------------------

// What a value has to do with the anchor.
typedef enum side { NEITHER, BEFORE, AFTER } side;

static bool follows_anchor(ft_op op) {
  return ft_op_describe(op)->class == FT_CLASS_E || op == FT_OP_TRANSPOSE;
}

static bool is_remap_inside(ft_op op) {
  return follows_anchor(op) || op == FT_OP_BROADCAST || op == FT_OP_SLICE;
}

static const char *member_refusal(const ft_group *group, const ft_primitive *p,
                                  const bool *depends, ft_arena *arena) {
  const ft_graph *graph = group->graph;
  const ft_primitive *anchor = anchor_of(group);
  if (p == anchor) return NULL;
  if (class_of(p) == FT_CLASS_M)
    return ft_arena_printf(arena, "%s beside %s: one contraction", name_of(p),
                           name_of(anchor));
  bool is_after = depends[p->output];
  if (!(is_after ? follows_anchor(p->op) : is_remap_inside(p->op)))
    return ft_arena_printf(arena, "%s %s %s is no part of a contraction", name_of(p),
                           is_after ? "after" : "beside", name_of(anchor));
  if (is_after && elements_of(graph, p->output) != elements_of(graph, anchor->output))
    return ft_arena_printf(arena, "%s makes %lld elements of the %lld of %s", name_of(p),
                           (long long)elements_of(graph, p->output),
                           (long long)elements_of(graph, anchor->output),
                           name_of(anchor));
  return NULL;
}

static const char *anchor_refusal(const ft_group *group, const ft_primitive *anchor,
                                  ft_arena *arena) {
  const ft_graph *graph = group->graph;
  ft_dtype dtype = graph->value[anchor->output].dtype;
  if (dtype != FT_F32)
    return ft_arena_printf(arena, "%s of %s is not blocked", name_of(anchor),
                           ft_dtype_text(dtype));
  if (anchor->op == FT_OP_CONV && anchor->attr.groups != 1)
    return ft_arena_printf(arena, "conv in %lld groups is not blocked",
                           (long long)anchor->attr.groups);
  for (int i = 0; i < 2; i++) {
    if (graph->value[anchor->input[i]].shape.rank >= FT_MAX_RANK)
      return ft_arena_printf(arena, "%s of rank %d", name_of(anchor), FT_MAX_RANK);
  }
  return NULL;
}

// [value] whether it comes from the anchor.
static bool *find_dependents(const ft_group *group, ft_arena *arena) {
  bool *depends = FT_NEW_ARRAY(arena, bool, group->graph->value_count);
  for (uint32_t i = 0; depends && i < group->primitive_count; i++) {
    const ft_primitive *p = member(group, i);
    depends[p->output] = p == anchor_of(group);
    for (uint32_t k = 0; k < p->input_count; k++)
      depends[p->output] |= depends[group->graph->value[p->input[k]].root];
  }
  return depends;
}

static const char *shape_refusal(const ft_group *group, ft_arena *arena) {
  bool *depends = find_dependents(group, arena);
  if (!depends) return "out of memory";
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = member(group, i);
    const char *wrong = ft_loop_dtype_refusal(group->graph, p, arena);
    if (!wrong) wrong = member_refusal(group, p, depends, arena);
    if (wrong) return wrong;
  }
  for (uint32_t o = 0; o < group->output_count; o++) {
    if (depends[group->output[o]]) continue;
    uint32_t p = group->graph->value[group->output[o]].producer;
    return ft_arena_printf(arena, "an output comes from %s, not from %s",
                           name_of(&group->graph->primitive[p]),
                           name_of(anchor_of(group)));
  }
  return NULL;
}

// Everything after the anchor is at one place per element of it.
static const char *place_refusal(const ft_contract *c, ft_arena *arena) {
  ft_contract_emitter m;
  ft_contract problem = *c;
  if (c->is_empty) return NULL;
  if (ft_contract_open(&problem, arena, &m, NULL) != FT_OK) return "out of memory";
  ft_kir *kir = m.e->kir;
  ft_kir_id zero = ft_kir_number(kir, 0), one = ft_kir_number(kir, 1);
  ft_kir_id at[3];
  for (int i = 0; i < 3; i++)
    at[i] = ft_kir_for(kir, FT_KIR_SERIAL, zero, one, one)->value;
  m.batch = at[0];
  ft_contract_split column = {.rest = ft_affine_of(&m.e->places, at[2])};
  const ft_place *place =
      ft_contract_c_place(&m, ft_affine_of(&m.e->places, at[1]), column);
  ft_contract_places places = ft_contract_follow(&m, place);
  if (kir->failed) return "out of memory";
  return places.wrong ? ft_arena_printf(arena, "%s meets %s at two places",
                                        name_of(places.wrong), name_of(c->anchor))
                      : NULL;
}

const char *ft_contract_refusal(const ft_workload *workload, ft_arena *arena) {
  const ft_group *group = &workload->group;
  const ft_primitive *anchor = anchor_of(group);
  if (!anchor) return "there is no contraction";
  if (group->primitive_count > MOST_PRIMITIVES)
    return ft_arena_printf(arena, "%u primitives are too many", group->primitive_count);
  const char *wrong = anchor_refusal(group, anchor, arena);
  if (!wrong) wrong = shape_refusal(group, arena);
  if (wrong) return wrong;
  ft_contract c = ft_contract_problem(workload);
  wrong = place_refusal(&c, arena);
  if (wrong) return wrong;
  ft_contract_choice plainest;
  if (ft_contract_plainest(&c, arena, &plainest, NULL) != FT_OK ||
      ft_contract_plan(workload, &plainest, arena, &c, &wrong, NULL) != FT_OK)
    return "out of memory";
  return wrong;
}
