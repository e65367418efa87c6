// dag - who needs whom among the primitives, ready for 64-bit arithmetic.
//
// A near word tells of the 64 primitives before or after one: bit j of a |back| word
// of v is primitive v - 64 + j, bit j of a |front| word is v + 1 + j. Ideals and groups
// never reach farther. Immutable after make, then thread-safe.
#ifndef FT_SEARCH_DAG_H
#define FT_SEARCH_DAG_H

#include "graph/graph.h"

typedef struct ft_dag {
  uint32_t count;  // primitives, in topological order: every edge goes up
  // Direct producers of v: producer[producer_at[v] .. producer_at[v + 1]), ascending,
  // once each; consumers likewise.
  const uint32_t *producer_at, *producer, *consumer_at, *consumer;
  const uint64_t *producer_back;  // [count] direct producers
  const uint64_t *ancestor_back;  // [count] all that v needs, through near ones
  // [count] neighbours: an edge joins them, or they read the same buffer.
  const uint64_t *neighbour_back, *neighbour_front;
} ft_dag;

typedef struct ft_dag_pair {
  uint32_t a, b;  // a < b
} ft_dag_pair;

// From |edge| (a produces for b; duplicates are fine) and |sibling| (a and b read the
// same buffer; far ones are ignored). INVALID_ARGUMENT names a pair that does not go up
// or leaves [0, count). Everything in |arena|. O(count + edges + siblings).
FT_MUST_CHECK ft_status ft_dag_make(uint32_t count, const ft_dag_pair *edge,
                                    uint32_t edge_count, const ft_dag_pair *sibling,
                                    uint32_t sibling_count, ft_arena *arena, ft_dag *out,
                                    ft_error *error);

// Of a finished graph, through its views. Immediates make no siblings: they are not
// arguments, so sharing one saves nothing.
FT_MUST_CHECK ft_status ft_dag_of_graph(const ft_graph *graph, ft_arena *arena,
                                        ft_dag *out, ft_error *error);

// The words above seen from a window that starts at |low| <= v < low + 64: bit i is
// primitive low + i.
static inline uint64_t ft_dag_back_from(uint64_t back, uint32_t v, uint32_t low) {
  return v == low ? 0 : back >> (64 - (v - low));
}
static inline uint64_t ft_dag_front_from(uint64_t front, uint32_t v, uint32_t low) {
  return v - low == 63 ? 0 : front << (v - low + 1);
}

// True when |to| needs |from| by a chain of edges that may pass any primitive.
// O(edges) worst; |seen| is scratch of |count| bytes.
bool ft_dag_reaches(const ft_dag *dag, uint32_t from, uint32_t to, uint8_t *seen);

#endif
