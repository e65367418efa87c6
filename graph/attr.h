// attr - which members of ft_attr a primitive has, and what is done to all of them:
// clearing, comparing, writing down. Private to graph/. A new member gets a place here,
// and nowhere else.
#ifndef FT_GRAPH_ATTR_H
#define FT_GRAPH_ATTR_H

#include "graph/graph.h"

enum { FT_ATTR_NUMBERS = 2 + 5 * FT_MAX_RANK };

// |attr| (NULL: all zero) with the members that |op| does not have set to zero.
ft_attr ft_attr_used(ft_op op, const ft_attr *attr);
// Compares every member.
bool ft_attr_equal(const ft_attr *a, const ft_attr *b);
// The members beside to, axes, shape and perm that |op| has, in a fixed order; returns
// how many numbers. None for the primitives that have only those four.
int ft_attr_numbers(ft_op op, const ft_attr *attr, int64_t out[FT_ATTR_NUMBERS]);
// Back again: fills those members of |attr| from |number|. False when an axis is none.
bool ft_attr_take_numbers(ft_op op, const int64_t *number, ft_attr *attr);
// In-memory hash of the members that |op| has.
uint64_t ft_attr_hash(uint64_t seed, ft_op op, const ft_attr *attr);

#endif
