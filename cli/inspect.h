// inspect - an imported graph for people and for programs: `explain --graph`.
#ifndef FT_CLI_INSPECT_H
#define FT_CLI_INSPECT_H

#include <jansson.h>

#include "graph/group.h"

// What a primitive costs as a kernel of its own.
typedef struct ft_inspected {
  uint64_t read_bytes, write_bytes;
  double flops;
} ft_inspected;

typedef struct ft_inspection {
  const ft_graph *graph;
  ft_inspected *primitive;  // [graph primitives]
  double bytes, flops;      // their sums
} ft_inspection;

FT_MUST_CHECK ft_status ft_inspect_graph(const ft_graph *graph, ft_arena *arena,
                                         ft_inspection *out, ft_error *error);
// A new reference; NULL when out of memory. Operators without primitives are "folded":
// constant, a view of another value, or computed before by another node.
json_t *ft_inspection_json(const ft_inspection *inspection, const char *model);
void ft_inspection_print(const ft_inspection *inspection, const char *model,
                         ft_arena *arena);

#endif
