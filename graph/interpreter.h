// interpreter - the double-precision reference for every kernel.
//
// Each element carries its value and its scale: the first-order error of the value in
// units of one rounding error. The scale generalises sum |terms|: for a + b it is
// scale(a) + scale(b), for a * b |a| scale(b) + |b| scale(a), for f(a)
// |f'(a)| scale(a) + ulps(f) |f(a)|, for a reduction the sum of the scales (max: the
// largest), plus |value| for the rounding of the operation itself. Where a comparison
// or a rounding to integer could flip within the error, the scale is infinite: either
// answer is right. A value past the range of its dtype is infinite, as IEEE rounds it.
// So a kernel's output y is right when |y - value| <= FT_TOLERANCE_ULPS * eps * scale
// + the smallest normal number (search_and_codegen 13). Integers and bools are exact.
#ifndef FT_GRAPH_INTERPRETER_H
#define FT_GRAPH_INTERPRETER_H

#include "graph/graph.h"
#include "graph/group.h"

#define FT_TOLERANCE_ULPS 8.0

// One tensor in double precision. Floats: value and scale [elements]. Integers and
// bools: integer [elements]; value and scale are NULL.
typedef struct ft_reference {
  ft_dtype dtype;
  ft_shape shape;
  double *value, *scale;
  int64_t *integer;
} ft_reference;

// Runs the whole graph. |input|: one tensor per graph input, in order, right dtype and
// shape. out: one reference per graph output, in order. Intermediates are freed as
// soon as their last reader ran. Memory: 16 bytes per live element.
FT_MUST_CHECK ft_status ft_interpret_graph(const ft_graph *graph, const ft_tensor *input,
                                           ft_arena *arena, ft_reference *out,
                                           ft_error *error);

// Reference values of chosen elements of a group's outputs, by demand: cost follows
// the elements asked for (a reduced element costs its whole row).
//   input   one tensor per group input, in the group's order
//   output  which of the group's outputs
//   index   [count] row-major element indices of that output's root shape
//   value, scale [count] (floats); integer [count] (others); the unused may be NULL
FT_MUST_CHECK ft_status ft_interpret_group(const ft_group *group, const ft_tensor *input,
                                           uint32_t output, const int64_t *index,
                                           uint32_t count, double *value, double *scale,
                                           int64_t *integer, ft_error *error);

// What a comparison found. ratio = error / tolerance, > 1 is wrong; infinite for a NaN
// or poison where the reference has none (or the reverse).
typedef struct ft_comparison {
  double max_abs_error, max_ratio;
  int64_t worst_index;   // row-major; -1 when nothing was compared
  double worst_value, worst_expected;
  int64_t compared;      // elements
} ft_comparison;

// Folds one element into *out. ft_comparison_init first.
void ft_comparison_init(ft_comparison *out);
void ft_compare_float(ft_dtype dtype, int64_t index, double actual, double value,
                      double scale, ft_comparison *out);
void ft_compare_integer(int64_t index, int64_t actual, int64_t expected,
                        ft_comparison *out);
// Whole tensor against a whole reference.
void ft_compare_tensor(const ft_tensor *actual, const ft_reference *reference,
                       ft_comparison *out);

#endif
