// partition - the graph divided into groups.
//
// Invariants of a legal partition (ft_partition_check reports the first broken one):
//  1. Every primitive is in exactly one group.
//  2. The quotient graph (groups as nodes, values between them as edges) is acyclic.
//     Convex groups alone are not enough: {a1,b2},{b1,a2} with a1->a2, b1->b2.
//  3. Groups are listed in an order in which each runs after its producers.
//  4. Each group's outputs hold every value that another group or a graph output needs.
#ifndef FT_GRAPH_PARTITION_H
#define FT_GRAPH_PARTITION_H

#include "graph/group.h"

typedef struct ft_partition {
  const ft_graph *graph;
  uint32_t group_count;
  const ft_group *group;
} ft_partition;

// Orders |group[count]| (Kahn, ties by smallest primitive) and checks it. The groups'
// own arrays are borrowed. INVALID_ARGUMENT names the broken invariant and the
// primitives.
FT_MUST_CHECK ft_status ft_partition_make(const ft_graph *graph, const ft_group *group,
                                          uint32_t count, ft_arena *arena,
                                          ft_partition *out, ft_error *error);
FT_MUST_CHECK ft_status ft_partition_check(const ft_partition *partition,
                                           ft_error *error);

#endif
