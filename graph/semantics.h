// semantics - what primitives mean: values in double precision with the scale of their
// error (interpreter.h says what a scale is), integers exact in int64. Private to
// graph/; interpreter.h and fold.h are the ways in.
//
// Uncertainty. Every element has a scale, integers and bools too: 0 when certain, and
// infinite when a comparison or a rounding within the error could have made it another.
// A float that depends on such a choice gets a scale that covers both answers where
// both are known (floor, round, sign, where), and an infinite one where they are not.
// A zero whose sign is uncertain (-0 rounds like 0, but not under 1 / x) has a speck of
// a scale: above 0, too small to be an error.
// An infinite float that came from overflow has scale 1: a kernel that fuses a multiply
// and an add may not have overflowed (see overflow_cancels). Any other infinity, and
// every NaN, is certain: scale 0.
//
// Short floats. Kernels store F16 and BF16 and compute in single precision (kir.h), so an
// F16 past 65504 is infinite where it is stored, and still a number to what the kernel
// goes on to do with it. The reference says what is stored: infinite, with scale 1. What
// only passes such a value on (copies, signs, maxima, roundings to integer) passes that
// on, and what is the same for any number past the range (tanh, exp, a comparison with a
// finite one) is as certain as ever; everything else that depends on it may be anything
// (|held|). A CAST to F16 rounds in the kernel too: its overflow is certain. Sums and
// products of a reduction or contraction run in single precision at least, so that only
// their result can pass the range. BF16 has the range of single precision: no such rule.
// Denormals of F16 are numbers like others in single precision, and are stored as such:
// no kernel flushes them, and below the normal numbers an error is a step of them.
#ifndef FT_GRAPH_SEMANTICS_H
#define FT_GRAPH_SEMANTICS_H

#include <math.h>
#include <stddef.h>

#include "graph/graph.h"

// The numbers of a float dtype.
typedef struct ft_limits {
  double unit;    // relative error of one rounding: half an ulp, 2^-24 for f32
  double radius;  // FT_TOLERANCE_ULPS * unit: what a scale of 1 may be off
  double tiny;    // smallest normal
  double lost;    // what a result below that may be off by: flushed, |tiny|
  double top;     // largest finite
  double speck;   // the scale of a zero of uncertain sign
  double least;   // scales up to this are specks
  bool is_held;   // in kernels a value past the range may still be a number
} ft_limits;

// NULL for integers and bool.
const ft_limits *ft_dtype_limits(ft_dtype dtype);
// Of what kernels add up and multiply many of |dtype| in.
const ft_limits *ft_dtype_sum_limits(ft_dtype dtype);
// True when the infinity |value| may be a finite number in a kernel.
static inline bool ft_is_held(const ft_limits *limits, double value, double scale) {
  return limits->is_held && isinf(value) && scale > 0;
}
// |value| rounded to |dtype|, half to even, infinite past its range.
double ft_dtype_round(ft_dtype dtype, double value);
// How far a right output may be from a value with this scale.
double ft_dtype_tolerance(ft_dtype dtype, double scale);

// Columns of some elements. Floats have values, integers and bools have integers (u64
// as its bits); both have scales.
typedef struct ft_cells {
  double *value, *scale;
  int64_t *integer;
} ft_cells;

// One elementwise primitive on |count| elements; the operands are already broadcast.
// |from| is the dtype of the operands (of the last one for WHERE), |to| the result's.
typedef struct ft_semantics_call {
  ft_dtype from, to;
  ft_cells in[3], out;
  size_t count;
} ft_semantics_call;

typedef void ft_elementwise(const ft_semantics_call *call);

// How |op| runs on operands of |from|, remaps as COPY; NULL when it has no meaning for
// that dtype (exp of an integer), and for reductions. Thread-safe.
ft_elementwise *ft_semantics_find(ft_op op, ft_dtype from);

// The result of a primitive outside the table: value |v| with scale |s| before its own
// rounding |added|; NaN, overflow and underflow as for any other. |mark| is the scale of
// an infinite value.
void ft_semantics_settle(const ft_limits *limits, double v, double s, double added,
                         bool doubt, double mark, double *value, double *scale);

// |x| wrapped to an integer dtype; bool is x != 0.
int64_t ft_integer_wrap(ft_dtype dtype, int64_t x);
// x < y as |dtype| orders them (u64: as unsigned).
bool ft_integer_below(ft_dtype dtype, int64_t x, int64_t y);
// Lowest and highest of an integer dtype (u64: as bits).
int64_t ft_integer_lowest(ft_dtype dtype);
int64_t ft_integer_highest(ft_dtype dtype);

#endif
