#include "codegen/simt_anchor.h"

#include "codegen/expressions.h"

enum { MOST_PRIMITIVES = 64, HEAVY_WORK = 16, CHOICE_WORK = 8 };

static ft_kir_id number(ft_loop_emitter *e, int64_t n) {
  return ft_places_number(&e->places, n);
}

static ft_kir_id calculate(ft_loop_emitter *e, ft_kir_op op, ft_kir_id a, ft_kir_id b) {
  return ft_places_index(&e->places, op, a, b);
}

// ---- what is taken
// ---------------------------------------------------------------------------

static const char *name_of(const ft_primitive *p) {
  return ft_op_describe(p->op)->name;
}

// Whether |p| depends on |anchor|, and *wrong: in another way than elementwise.
static bool is_behind(const ft_graph *graph, const ft_primitive *p,
                      const ft_primitive *anchor, const bool *depends, ft_arena *arena,
                      const char **wrong) {
  const ft_shape *shape = &graph->value[anchor->output].shape;
  bool behind = false;
  for (uint32_t k = 0; k < p->input_count; k++) {
    const ft_value *v = &graph->value[p->input[k]];
    if (!depends[v->root]) continue;
    behind = true;
    if (!ft_shape_equal(&v->shape, shape))
      *wrong = ft_arena_printf(arena, "%s sees %s in another shape", name_of(p),
                               name_of(anchor));
  }
  bool is_alike = ft_op_describe(p->op)->class == FT_CLASS_E &&
                  ft_shape_equal(&graph->value[p->output].shape, shape);
  if (behind && !is_alike && !*wrong)
    *wrong = ft_arena_printf(arena, "%s behind %s is not elementwise", name_of(p),
                             name_of(anchor));
  return behind;
}

static const char *behind_refusal(const ft_group *group, const ft_primitive *anchor,
                                  ft_arena *arena) {
  const ft_graph *graph = group->graph;
  bool *depends = FT_NEW_ARRAY(arena, bool, graph->value_count);
  const char *wrong = NULL;
  if (!depends) return "out of memory";
  depends[anchor->output] = true;
  for (uint32_t i = 0; i < group->primitive_count && !wrong; i++) {
    const ft_primitive *p = &graph->primitive[group->primitive[i]];
    if (p != anchor)
      depends[p->output] = is_behind(graph, p, anchor, depends, arena, &wrong);
  }
  for (uint32_t o = 0; o < group->output_count && !wrong; o++)
    if (!depends[group->output[o]])
      wrong = ft_arena_printf(arena, "an output that is not behind %s", name_of(anchor));
  return wrong;
}

const char *ft_simt_group_refusal(const ft_group *group, const ft_primitive *anchor,
                                  ft_arena *arena) {
  if (group->primitive_count > MOST_PRIMITIVES)
    return ft_arena_printf(arena, "%u primitives are too many", group->primitive_count);
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &group->graph->primitive[group->primitive[i]];
    const char *wrong = ft_loop_dtype_refusal(group->graph, p, arena);
    if (wrong) return wrong;
    if (p != anchor && ft_loop_is_anchor(p))
      return ft_arena_printf(arena, "%s beside %s", name_of(p), name_of(anchor));
  }
  return behind_refusal(group, anchor, arena);
}

static uint32_t work_of(const ft_primitive *p) {
  ft_op op = p->op;
  bool chooses = op == FT_OP_CONCAT || op == FT_OP_PAD || op == FT_OP_GATHER ||
                 op == FT_OP_GATHER_ELEMENTS;
  if (chooses) return CHOICE_WORK;
  if (ft_op_describe(op)->class != FT_CLASS_E) return 0;
  return ft_expression_is_heavy(op) ? HEAVY_WORK : 1;
}

uint32_t ft_simt_work_before(const ft_group *group, uint32_t value, ft_arena *arena) {
  const ft_graph *graph = group->graph;
  bool *leads = FT_NEW_ARRAY(arena, bool, graph->value_count);
  uint32_t work = 0;
  if (!leads) return UINT32_MAX;
  leads[graph->value[value].root] = true;
  for (uint32_t i = group->primitive_count; i-- > 0;) {
    const ft_primitive *p = &graph->primitive[group->primitive[i]];
    if (!leads[p->output]) continue;
    work += work_of(p);
    for (uint32_t k = 0; k < p->input_count; k++)
      leads[graph->value[p->input[k]].root] = true;
  }
  return work;
}

// ---- padding
// -----------------------------------------------------------------------------------

bool ft_simt_hangs_over(const ft_graph *graph, const ft_primitive *p, int i,
                        int64_t window) {
  const ft_attr *a = &p->attr;
  int64_t in = graph->value[p->input[0]].shape.dim[i + 2];
  int64_t out = graph->value[p->output].shape.dim[i + 2];
  int64_t last = (out - 1) * a->stride[i] - a->start[i] + (window - 1) * a->dilation[i];
  return a->start[i] > 0 || last >= in;
}

ft_kir_id ft_simt_both(ft_loop_emitter *e, ft_kir_id a, ft_kir_id b) {
  return !a ? b : !b ? a : calculate(e, FT_KIR_IMUL, a, b);
}

ft_kir_id ft_simt_is_below(ft_loop_emitter *e, ft_kir_id at, int64_t extent,
                           int64_t block) {
  return extent % block ? calculate(e, FT_KIR_ILESS, at, number(e, extent)) : 0;
}

ft_kir_id ft_simt_is_in_axis(ft_loop_emitter *e, const ft_primitive *p, int i,
                             int64_t window, ft_affine at) {
  if (!ft_simt_hangs_over(e->graph, p, i, window)) return 0;
  ft_kir_id index = ft_loop_named(e, ft_loop_index(e, at));
  int64_t extent = e->graph->value[p->input[0]].shape.dim[i + 2];
  return calculate(e, FT_KIR_IMUL, calculate(e, FT_KIR_ILESS, number(e, -1), index),
                   calculate(e, FT_KIR_ILESS, index, number(e, extent)));
}

// ---- values
// ------------------------------------------------------------------------------------

static void keep(ft_loop_emitter *e, uint32_t total, ft_kir_id value) {
  ft_kir_store(e->kir, ft_loop_here(e), total, value, number(e, 0), 1, FT_KIR_CACHED);
}

uint32_t ft_simt_total(ft_loop_emitter *e, ft_kir_type type, int64_t bits) {
  uint32_t total = ft_kir_register(e->kir, ft_loop_here(e), type);
  keep(e, total, ft_kir_element(e->kir, ft_loop_here(e), type, bits));
  return total;
}

ft_kir_id ft_simt_read(ft_loop_emitter *e, uint32_t total) {
  return ft_kir_load(e->kir, ft_loop_here(e), total, e->kir->buffer[total].lanes,
                     number(e, 0), 1);
}

void ft_simt_add(ft_loop_emitter *e, uint32_t total, ft_op reduction, ft_kir_id value) {
  ft_dtype dtype = e->kir->buffer[total].dtype;
  if (e->kir->value[value].type.dtype != dtype)
    value = ft_kir_primitive(e->kir, ft_loop_here(e), FT_OP_CAST, dtype, &value, 1);
  keep(e, total,
       ft_kir_combine(e->kir, ft_loop_here(e), reduction, ft_simt_read(e, total), value));
}

ft_kir_id ft_simt_value_if(ft_loop_emitter *e, uint32_t value, const ft_place *place,
                           ft_kir_id inside, int64_t bits) {
  if (!place || e->kir->failed) return 0;
  if (!inside) return ft_loop_spread(e, ft_loop_value(e, value, place), e->lanes);
  ft_kir_type type = {ft_kir_math_dtype(e->graph->value[value].dtype), e->lanes};
  uint32_t held = ft_simt_total(e, type, bits);
  ft_kir_stmt *branch = ft_kir_if(e->kir, inside);
  ft_loop_enter(e, &branch->body);
  keep(e, held, ft_loop_spread(e, ft_loop_value(e, value, place), e->lanes));
  ft_loop_close(e, branch);
  return ft_simt_read(e, held);
}

ft_kir_id ft_simt_has_nan(ft_loop_emitter *e, const uint32_t *total, uint32_t count) {
  ft_kir *kir = e->kir;
  ft_kir_id all = 0;
  for (uint32_t i = 0; i < count; i++) {
    ft_kir_id value = ft_simt_read(e, total[i]);
    ft_kir_block *here = ft_loop_here(e);
    ft_kir_id same =
        ft_kir_primitive(kir, here, FT_OP_EQUAL, FT_BOOL, (ft_kir_id[]){value, value}, 2);
    same = ft_kir_fold(kir, here, FT_OP_REDUCE_MIN, same);
    all = all ? ft_kir_combine(kir, here, FT_OP_REDUCE_MIN, all, same) : same;
  }
  ft_kir_id is_same = ft_loop_named(e, ft_kir_to_index(kir, all));
  return calculate(e, FT_KIR_ILESS, is_same, number(e, 1));
}
