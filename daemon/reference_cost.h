// reference_cost - which way to a whole graph's reference is shorter: all of it, densely,
// or a few elements of the outputs, by demand.
//
// By demand costs what the elements' cones hold, step by step. Of pointwise work that is
// next to nothing; of a deep network of convolutions it is nearly all of it, many times
// slower than in dense order.
#ifndef FT_DAEMON_REFERENCE_COST_H
#define FT_DAEMON_REFERENCE_COST_H

#include "graph/graph.h"

// Steps (terms of sums, elements of the rest) to compute every value of |graph|, and
// those in the cones of |elements| elements of each output, at most. Cheap; infinite when
// out of memory.
double ft_reference_dense_steps(const ft_graph *graph);
double ft_reference_demand_steps(const ft_graph *graph, int64_t elements,
                                 ft_arena *arena);
// Seconds that the dense reference may take, on a slow core.
double ft_reference_dense_seconds(const ft_graph *graph);
// True when all of it densely takes less time than 64 elements of each output.
bool ft_reference_is_dense(const ft_graph *graph, ft_arena *arena);

#endif
