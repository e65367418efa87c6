// builder - what a graph carries only while it is built. Private to graph/.
#ifndef FT_GRAPH_BUILDER_H
#define FT_GRAPH_BUILDER_H

#include "graph/graph.h"

// Constants up to this many elements are kept once each, whatever their names: equal
// subexpressions on equal literals are found.
enum { FT_INTERN_ELEMENTS = 64 };

// Bytes of one folded result; bytes read and written by one folding, and by all. Past
// that primitives stay primitives: a hostile file could ask for a megabyte per node.
enum { FT_FOLD_BYTES = 1 << 20, FT_FOLD_COST = 16 << 20, FT_FOLD_TOTAL = 64 << 20 };

typedef struct ft_graph_slot {
  uint64_t hash;
  uint32_t value;  // FT_NONE = empty
} ft_graph_slot;

typedef struct ft_graph_builder {
  size_t value_capacity, primitive_capacity, operator_capacity;
  size_t input_capacity, output_capacity;
  // Open addressing over primitives' outputs, views and small constants: what was
  // emitted before. A hit is confirmed by a full compare.
  ft_graph_slot *slot;
  uint32_t slot_count, slot_used;  // slot_count is a power of two
  uint64_t fold_cost;              // bytes that foldings have read and written
} ft_graph_builder;

// Appends |value| (root FT_NONE means itself), shape checked; OUT_OF_MEMORY, REFUSED.
FT_MUST_CHECK ft_status ft_graph_append_value(ft_graph *graph, const ft_value *value,
                                              uint32_t *out_value, ft_error *error);
// INVALID_ARGUMENT unless |value| exists and the graph is still being built.
FT_MUST_CHECK ft_status ft_graph_require(const ft_graph *graph, uint32_t value,
                                         ft_error *error);

// Finds a value of |hash| for which |same|(graph, value, key) holds; FT_NONE if none.
typedef bool ft_graph_same(const ft_graph *graph, uint32_t value, const void *key);
uint32_t ft_graph_find(const ft_graph *graph, uint64_t hash, ft_graph_same *same,
                       const void *key);
FT_MUST_CHECK ft_status ft_graph_remember(ft_graph *graph, uint64_t hash, uint32_t value,
                                          ft_error *error);

// "x (f32 4x8)" for errors, in the graph's arena.
const char *ft_value_text(const ft_graph *graph, uint32_t value);

// The dtype and shape of |op| on |input|, and |attr| in canonical form (members that
// |op| does not use are zero, reduced axes of extent 1 are dropped).
FT_MUST_CHECK ft_status ft_primitive_infer(const ft_graph *graph, ft_op op,
                                           const uint32_t *input, uint32_t count,
                                           const ft_attr *attr, ft_attr *out_attr,
                                           ft_dtype *out_dtype, ft_shape *out_shape,
                                           ft_error *error);

#endif
