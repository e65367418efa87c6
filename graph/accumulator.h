// accumulator - one reduced element in the making. Private to graph/.
//
// Elements are added in row-major order of the reduced axes, so the dense interpreter
// and the sampling one give the same bits. The scale of a sum is the sum of the scales
// plus what the additions round away: |terms| times ft_accumulator_drift, which covers
// any order of summation. Where an order could overflow and another not, the scale is
// infinite.
#ifndef FT_GRAPH_ACCUMULATOR_H
#define FT_GRAPH_ACCUMULATOR_H

#include "graph/semantics.h"

typedef struct ft_accumulator {
  double value, scale;
  double magnitude;  // sum: of |finite terms|; product: of the finite factors above 1
  double least;      // product: of the factors below 1
  int64_t integer;
  unsigned seen;  // kinds of floats that came by
} ft_accumulator;

// What the additions of |terms| terms may round away, in units of |terms|. Kernels add
// single precision in double, or in few terms, and a running sum of what they drop drifts
// like its root: max(1, sqrt(n) / 4). Doubles are added in double, there and here, and
// equal ones are all rounded to the same side: n / 8, the bound (8 being the tolerance).
double ft_accumulator_drift(ft_dtype dtype, int64_t terms);

// Sets |count| accumulators to the result of reducing nothing.
void ft_accumulator_init(ft_op op, ft_dtype dtype, ft_accumulator *accumulator,
                         size_t count);
// Adds element j of |cells| to accumulator[slot[j]], j < count.
void ft_accumulator_add(ft_op op, ft_dtype dtype, ft_accumulator *accumulator,
                        const int64_t *slot, const ft_cells *cells, size_t count);
// Element |index| of |out| from an accumulator to which |terms| elements were added.
void ft_accumulator_finish(ft_op op, ft_dtype dtype, const ft_accumulator *accumulator,
                           int64_t terms, size_t index, ft_cells *out);

#endif
