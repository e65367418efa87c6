#include "graph/reference_cost.h"

#include <math.h>

// Measured with the interpreter on one slow core: dense order adds tens of times as many
// terms a second as the recursion by demand.
static const double demand_steps_per_s = 2e7, dense_steps_per_s = 4e8,
                    dense_elements_per_s = 4e6;

static double elements_of(const ft_graph *graph, uint32_t value) {
  return (double)ft_shape_elements(&graph->value[value].shape);
}

static double product(const int64_t *dim, int count) {
  double p = 1;
  for (int i = 0; i < count; i++) p *= (double)dim[i];
  return p;
}

// Terms of one element of |p|'s output; 1 for what is no sum.
static double terms_of(const ft_graph *graph, const ft_primitive *p) {
  const ft_shape *first = &graph->value[p->input[0]].shape;
  switch (ft_op_describe(p->op)->class) {
    case FT_CLASS_R: {
      double out = elements_of(graph, p->output);
      return out > 0 ? elements_of(graph, p->input[0]) / out : 1;
    }
    case FT_CLASS_S:
      return product(p->attr.window, first->rank - 2);
    case FT_CLASS_M: {
      const ft_shape *w = &graph->value[p->input[1]].shape;
      return p->op == FT_OP_CONV ? product(w->dim + 1, w->rank - 1)
                                 : (double)first->dim[first->rank - 1];
    }
    default:
      return 1;
  }
}

double ft_reference_dense_steps(const ft_graph *graph) {
  double steps = 0;
  for (uint32_t i = 0; i < graph->primitive_count; i++)
    steps += elements_of(graph, graph->primitive[i].output) *
             terms_of(graph, &graph->primitive[i]);
  return steps;
}

// What is needed of each root value, from the outputs back; nothing more than all of it.
static void need_more(const ft_graph *graph, uint32_t value, double count, double *need) {
  uint32_t root = graph->value[value].root;
  need[root] = fmin(need[root] + count, elements_of(graph, root));
}

double ft_reference_demand_steps(const ft_graph *graph, int64_t elements,
                                 ft_arena *arena) {
  double *need = FT_NEW_ARRAY(arena, double, graph->value_count), steps = 0;
  if (!need) return INFINITY;
  for (uint32_t i = 0; i < graph->output_count; i++)
    need_more(graph, graph->output[i].value, (double)elements, need);
  for (uint32_t i = graph->primitive_count; i-- > 0;) {
    const ft_primitive *p = &graph->primitive[i];
    double asked = need[p->output] * terms_of(graph, p);
    steps += asked;
    for (uint32_t k = 0; k < p->input_count; k++)
      need_more(graph, p->input[k], asked, need);
  }
  return steps;
}

double ft_reference_dense_seconds(const ft_graph *graph) {
  double elements = 0;
  for (uint32_t i = 0; i < graph->primitive_count; i++)
    elements += elements_of(graph, graph->primitive[i].output);
  return ft_reference_dense_steps(graph) / dense_steps_per_s +
         elements / dense_elements_per_s;
}

double ft_reference_demand_seconds(const ft_graph *graph, int64_t elements,
                                   ft_arena *arena) {
  return ft_reference_demand_steps(graph, elements, arena) / demand_steps_per_s;
}
