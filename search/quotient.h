// quotient - the graph of groups: who reads from whom when parts have been merged.
//
// Convex parts alone are not enough: {a1,b2},{b1,a2} with a1->a2, b1->b2 wait for each
// other. So before two parts become one, ask whether a third lies between them. Single
// thread (the walk marks parts in place).
#ifndef FT_SEARCH_QUOTIENT_H
#define FT_SEARCH_QUOTIENT_H

#include "search/dag.h"
#include "search/set.h"

typedef struct ft_quotient {
  const ft_dag *dag;
  uint32_t *owner;  // [dag->count] its part: the lowest primitive in it
  ft_set *part;     // [dag->count] valid at owners
  // An order in which the parts can run, so that a walk need not leave its stretch:
  uint32_t *at;     // [dag->count] position, valid at owners
  uint32_t *order;  // [dag->count] the part at a position; FT_NONE: merged away
  uint32_t *stack, *seen, visit;
} ft_quotient;

// Every primitive is a part. Everything in |arena|.
FT_MUST_CHECK ft_status ft_quotient_make(const ft_dag *dag, ft_arena *arena,
                                         ft_quotient *out, ft_error *error);
// Parts a < b become part a. Asserts that they fit into one set. The answers below hold
// as long as no merge closed a cycle. O(edges between them).
void ft_quotient_unite(ft_quotient *quotient, uint32_t a, uint32_t b);
// Makes |set| one part; its primitives must be parts of their own.
void ft_quotient_gather(ft_quotient *quotient, ft_set set);

// |to| reads something of |from| directly.
bool ft_quotient_has_edge(const ft_quotient *quotient, uint32_t from, uint32_t to);
// There is a way from |from| to |to| that passes a third part. O(edges between them).
bool ft_quotient_has_detour(ft_quotient *quotient, uint32_t from, uint32_t to);

#endif
