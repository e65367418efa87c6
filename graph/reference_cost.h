// reference_cost - which way to a reference is shorter: all of a graph, densely, or a few
// elements of its outputs, by demand (interpreter.h).
//
// By demand costs what the elements' cones hold, step by step. Of pointwise work that is
// next to nothing; of a deep network of convolutions it is nearly all of it, many times
// slower than in dense order.
#ifndef FT_GRAPH_REFERENCE_COST_H
#define FT_GRAPH_REFERENCE_COST_H

#include "graph/graph.h"

// Steps (terms of sums, elements of the rest) to compute every value of |graph|, and
// those in the cones of |elements| elements of each output, at most. Cheap; infinite when
// out of memory.
double ft_reference_dense_steps(const ft_graph *graph);
double ft_reference_demand_steps(const ft_graph *graph, int64_t elements,
                                 ft_arena *arena);
// Seconds that they may take, on a slow core.
double ft_reference_dense_seconds(const ft_graph *graph);
double ft_reference_demand_seconds(const ft_graph *graph, int64_t elements,
                                   ft_arena *arena);

#endif
