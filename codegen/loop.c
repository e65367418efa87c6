// What the loop tactic takes, and how much work it is.
#include "codegen/loop.h"

#include "codegen/expressions.h"
#include "codegen/loop_emit.h"

// Each opens one scope at most (FT_LOOP_SCOPES), and an anchor a few more.
enum { MOST_PRIMITIVES = 64 };

static const char *name_of(const ft_primitive *p) {
  return ft_op_describe(p->op)->name;
}

// ---- dtypes -------------------------------------------------------------------------

static ft_op worker(ft_op op) {
  if (op == FT_OP_WINDOW_MAX) return FT_OP_REDUCE_MAX;
  ft_op_class class = ft_op_describe(op)->class;
  return class == FT_CLASS_S || class == FT_CLASS_M ? FT_OP_REDUCE_SUM : op;
}

static ft_dtype math_dtype(const ft_graph *graph, uint32_t value) {
  return ft_kir_math_dtype(graph->value[value].dtype);
}

const char *ft_loop_dtype_refusal(const ft_graph *graph, const ft_primitive *p,
                                  ft_arena *arena) {
  ft_op_class class = ft_op_describe(p->op)->class;
  ft_dtype last = math_dtype(graph, p->input[p->input_count - 1]);
  ft_dtype out = math_dtype(graph, p->output);
  if (class == FT_CLASS_I) last = math_dtype(graph, p->input[0]);
  for (uint32_t i = 0; i < p->input_count; i++) {
    ft_dtype in = math_dtype(graph, p->input[i]);
    if (!ft_expression_type(in)) last = in;
  }
  if (!ft_expression_type(out)) last = out;
  bool has_text = class == FT_CLASS_I || ft_expression_text(worker(p->op), last);
  if (ft_expression_type(last) && has_text) return NULL;
  return ft_arena_printf(arena, "%s of %s has no kernel yet", name_of(p),
                         ft_dtype_text(last));
}

// ---- anchors --------------------------------------------------------------------------

// What lies behind each primitive of the group.
typedef struct behind {
  const ft_primitive *anchor;
  const ft_primitive *heavy;   // expensive elementwise work
  const ft_primitive *choice;  // a remap that asks for each element where it lies
  uint32_t steps;              // elementwise primitives, those on two ways twice
} behind;

// Windows and contractions read an element many times, so what leads to it must be cheap.
enum { MOST_STEPS = 2 };

static bool chooses(ft_op op) {
  return op == FT_OP_CONCAT || op == FT_OP_PAD || op == FT_OP_GATHER ||
         op == FT_OP_GATHER_ELEMENTS;
}

static const char *again_refusal(const ft_primitive *p, const ft_primitive *what,
                                 ft_arena *arena) {
  return ft_arena_printf(arena, "%s would compute %s again and again", name_of(p),
                         name_of(what));
}

static const char *order_refusal(const ft_primitive *p, const behind *from,
                                 ft_arena *arena) {
  if (!ft_loop_is_anchor(p)) return NULL;
  if (from->anchor)
    return ft_arena_printf(arena, "%s after %s: loops take one of them", name_of(p),
                           name_of(from->anchor));
  if (ft_op_describe(p->op)->class == FT_CLASS_R) return NULL;
  if (from->heavy) return again_refusal(p, from->heavy, arena);
  if (from->choice) return again_refusal(p, from->choice, arena);
  if (from->steps > MOST_STEPS)
    return ft_arena_printf(arena, "%s would compute %u primitives again and again",
                           name_of(p), from->steps);
  return NULL;
}

static void join(behind *to, const behind *from) {
  if (!to->anchor) to->anchor = from->anchor;
  if (!to->heavy) to->heavy = from->heavy;
  if (!to->choice) to->choice = from->choice;
  if (to->steps < UINT32_MAX / 8) to->steps += from->steps;
}

static void step(behind *here, const ft_primitive *p) {
  if (ft_loop_is_anchor(p)) here->anchor = p;
  if (ft_expression_is_heavy(p->op)) here->heavy = p;
  if (chooses(p->op)) here->choice = p;
  here->steps += ft_op_describe(p->op)->class == FT_CLASS_E;
}

static const char *chain_refusal(const ft_group *group, ft_arena *arena) {
  const ft_graph *graph = group->graph;
  behind *of = FT_NEW_ARRAY(arena, behind, graph->primitive_count);
  if (!of) return "out of memory";
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &graph->primitive[group->primitive[i]];
    behind *here = &of[group->primitive[i]];
    for (uint32_t k = 0; k < p->input_count; k++) {
      uint32_t from = graph->value[graph->value[p->input[k]].root].producer;
      if (from != FT_NONE) join(here, &of[from]);
    }
    const char *wrong = order_refusal(p, here, arena);
    if (wrong) return wrong;
    step(here, p);
  }
  return NULL;
}

static int64_t elements_of(const ft_graph *graph, uint32_t value) {
  return ft_shape_elements(&graph->value[value].shape);
}

// An element of an anchor must be computed once.
static const char *repeat_refusal(const ft_group *group, ft_arena *arena) {
  const ft_graph *graph = group->graph;
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &graph->primitive[group->primitive[i]];
    if (!ft_loop_is_anchor(p)) continue;
    for (uint32_t o = 0; o < group->output_count; o++) {
      int64_t elements = elements_of(graph, group->output[o]);
      if (elements > elements_of(graph, p->output))
        return ft_arena_printf(arena, "%s of %lld elements in loops over %lld",
                               name_of(p), (long long)elements_of(graph, p->output),
                               (long long)elements);
      if (elements != elements_of(graph, group->output[0]))
        return ft_arena_printf(arena, "%s and outputs of two sizes", name_of(p));
    }
  }
  return NULL;
}

const char *ft_loop_refusal(const ft_workload *workload, ft_arena *arena) {
  const ft_group *group = &workload->group;
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &group->graph->primitive[group->primitive[i]];
    const char *wrong = ft_loop_dtype_refusal(group->graph, p, arena);
    if (wrong) return wrong;
  }
  if (group->primitive_count == 1) return NULL;
  if (group->primitive_count > MOST_PRIMITIVES)
    return ft_arena_printf(arena, "%u primitives are too many for loops",
                           group->primitive_count);
  const char *wrong = chain_refusal(group, arena);
  return wrong ? wrong : repeat_refusal(group, arena);
}

double ft_loop_work(const ft_workload *workload) {
  const ft_group *group = &workload->group;
  double work = 0;
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &group->graph->primitive[group->primitive[i]];
    double elements = (double)elements_of(group->graph, p->output);
    work += ft_loop_is_anchor(p) ? elements * ft_loop_terms(group->graph, p) : elements;
  }
  return work;
}
