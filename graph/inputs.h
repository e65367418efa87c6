// inputs - seeded input tensors.
#ifndef FT_GRAPH_INPUTS_H
#define FT_GRAPH_INPUTS_H

#include "graph/group.h"

// Fills |data| with |elements| of |dtype| drawn from |seed|: floats uniform in
// [low, high), integers in [floor(low), high), bools 0 or 1.
void ft_fill_random(ft_dtype dtype, void *data, int64_t elements, double low, double high,
                    uint64_t seed);

// One tensor per graph input. Floats uniform in [-2, 2), or in [0.25, 2.25) when a
// primitive that needs positive numbers (SQRT, LOG, POW with a broken exponent) reads the
// input directly or through unary elementwise primitives. Integers in [0, 4), or in
// [0, n) when they are indices of a GATHER or GATHER_ELEMENTS along an axis of n (the
// smallest n, at least 1): read directly or through what hands values on (index remaps,
// copies, casts, MIN, MAX, WHERE).
// Input i uses seed + i. The data is in |arena|, 64-byte aligned.
FT_MUST_CHECK ft_status ft_graph_random_inputs(const ft_graph *graph, uint64_t seed,
                                               ft_arena *arena, ft_tensor *out,
                                               ft_error *error);
// What one input of a group is made of: enough to draw it, and its key. Two equal recipes
// give equal bytes, so inputs can be kept between groups.
typedef struct ft_input_recipe {
  ft_dtype dtype;
  int64_t elements;  // -1: a constant, whose own bytes are used
  double low, high;
  uint64_t seed;
} ft_input_recipe;

// The recipes of a group's inputs, one per input, by the rules above.
FT_MUST_CHECK ft_status ft_group_input_recipes(const ft_group *group, uint64_t seed,
                                               ft_arena *arena, ft_input_recipe *out,
                                               ft_error *error);

// The same for the inputs of a group (constants get their own bytes when known).
FT_MUST_CHECK ft_status ft_group_random_inputs(const ft_group *group, uint64_t seed,
                                               ft_arena *arena, ft_tensor *out,
                                               ft_error *error);

#endif
