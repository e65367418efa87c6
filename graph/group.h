// group - the primitives that become one kernel; workload - its canonical form.
#ifndef FT_GRAPH_GROUP_H
#define FT_GRAPH_GROUP_H

#include "graph/graph.h"

// Values are root value indices. |input| are read from outside (immediates excluded),
// |output| are needed outside (by another primitive or as a graph output). After
// ft_workload_make the order of primitives, inputs and outputs is canonical: two
// groups with equal encodings correspond position by position. The kernel's arguments
// are the inputs, then the outputs, in this order.
typedef struct ft_group {
  const ft_graph *graph;
  uint32_t primitive_count, input_count, output_count;
  const uint32_t *primitive;  // topological order
  const uint32_t *input, *output;
} ft_group;

// The group of |primitive[count]| (any order, no duplicates, count >= 1): finds inputs
// and outputs. Not necessarily legal or convex.
FT_MUST_CHECK ft_status ft_group_make(const ft_graph *graph, const uint32_t *primitive,
                                      uint32_t count, ft_arena *arena, ft_group *out,
                                      ft_error *error);

// A canonical group with its key. The encoding holds, per primitive in canonical order:
// op, attributes, dtypes, shapes, operand references (with the view's shape), bytes of
// immediates, which values are outputs, and which external operands are the same
// buffer. Names, node order and weight bytes are not in it.
typedef struct ft_workload {
  ft_group group;
  ft_hash hash;  // of the encoding
  const uint8_t *encoding;
  size_t encoding_bytes;
  uint64_t read_bytes;   // compulsory: each input buffer once
  uint64_t write_bytes;  // each output buffer once
  double flops;          // one per element and arithmetic primitive; transcendental 1
} ft_workload;

// Canonical order: topological, ties broken by Weisfeiler-Lehman colours of the group's
// dataflow (from both ends). Permuting node order or names leaves the encoding
// unchanged unless two primitives have equal colours and are not interchangeable; then
// equal workloads may get two encodings (a cache miss), never two workloads one.
FT_MUST_CHECK ft_status ft_workload_make(const ft_group *group, ft_arena *arena,
                                         ft_workload *out, ft_error *error);
// Byte compare; the only test of equality. A hash match without it is a broken
// invariant.
bool ft_workload_equal(const ft_workload *a, const ft_workload *b);

// A graph, in |arena|, that holds just this group: its inputs as graph inputs, its
// outputs as graph outputs, names v0, v1, ... So that anything that takes a graph can
// take a group (repro, tests).
FT_MUST_CHECK ft_status ft_group_extract(const ft_group *group, ft_arena *arena,
                                         ft_graph **out, ft_error *error);

#endif
