// interpreter - the double-precision reference for every kernel.
//
// Each element carries its value and its scale: the first-order error of the value in
// units of one rounding error (half an ulp: 2^-24 relative for f32). The scale
// generalises sum |terms|: for a + b it is scale(a) + scale(b), for a * b
// |a| scale(b) + |b| scale(a), for f(a) |f'(a)| scale(a) + ulps(f) |f(a)|, for a
// reduction the sum of the scales (max: the largest), plus what the operation itself
// rounds: |value|, nothing when exact operands give a representable value, for a sum of
// n terms max(1, sqrt(n) / 4) sum |terms| (doubles: n / 8). So a kernel's output y is
// right when
//   |y - value| <= FT_TOLERANCE_ULPS * unit * scale + the smallest normal number
// (of f16 the smallest denormal: nothing flushes those)
// (search_and_codegen 13); that radius is also how far operands are assumed off.
// Where a comparison or a rounding to integer could flip within the radii, either
// answer is right: the scale covers both where both are known (floor, sign, where),
// and is infinite where they are not (a comparison's bool, an integer, a pole).
// A value past the range of its dtype is infinite, as IEEE rounds it. Integers and
// bools are exact, or uncertain.
#ifndef FT_GRAPH_INTERPRETER_H
#define FT_GRAPH_INTERPRETER_H

#include "graph/graph.h"
#include "graph/group.h"

#define FT_TOLERANCE_ULPS 8.0

// One tensor in double precision. Floats: value and scale [elements]. Integers and
// bools: integer [elements] (u64 as its bits), value is NULL, and scale is NULL when all
// are certain, else 0 where certain and infinite where any answer is right.
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
// The values are those of ft_interpret_graph to the last bit.
//   input   one tensor per group input, in the group's order
//   output  which of the group's outputs
//   index   [count] row-major element indices of that output's root shape
//   value, scale [count] (floats); integer [count] (others; scale then as in
//   ft_reference); each may be NULL
// Errors: INVALID_ARGUMENT for an index outside the output, a tensor of another dtype
// or size, an operand from outside that is no input; OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_interpret_group(const ft_group *group, const ft_tensor *input,
                                           uint32_t output, const int64_t *index,
                                           uint32_t count, double *value, double *scale,
                                           int64_t *integer, ft_error *error);

// What a comparison found. ratio = error / tolerance, > 1 is wrong; infinite for a NaN
// or poison where the reference has none (or the reverse).
typedef struct ft_comparison {
  double max_abs_error, max_ratio;
  int64_t worst_index;  // row-major; -1 when nothing was compared, or all uncertain
  double worst_value, worst_expected;
  int64_t compared;  // elements
  // Of these, uncertain floats: the error bound says nothing (infinite scale), so they
  // are not in the numbers above. Their largest finite error, and the sum of the squares
  // of all finite expected values, to hold it against (ft_comparison_drift).
  int64_t uncertain;
  double max_uncertain_error, square_sum;
  int64_t finite;
} ft_comparison;

// Through many layers the error bound of single elements can say nothing; then the whole
// output must still be the reference's but for this much of its RMS.
#define FT_DRIFT_LIMIT 0.01

// The largest error of the uncertain elements, in units of the RMS of what was expected;
// 0 when there are none.
double ft_comparison_drift(const ft_comparison *comparison);

// What a float of |dtype| must be when the reference says |value| and |scale|: at most
// |tolerance| from |expected|, which is |value| as |dtype| rounds it. Infinite tolerance:
// any answer is right. A NaN or an infinity must be met exactly.
typedef struct ft_acceptance {
  double expected, tolerance;
} ft_acceptance;
ft_acceptance ft_reference_accepts(ft_dtype dtype, double value, double scale);

// Folds one element into *out. ft_comparison_init first. The value is rounded to the
// dtype before; two NaNs are equal, infinities must have the same sign. An element of
// infinite scale counts as compared and is never the worst.
void ft_comparison_init(ft_comparison *out);
void ft_compare_float(ft_dtype dtype, int64_t index, double actual, double value,
                      double scale, ft_comparison *out);
void ft_compare_integer(int64_t index, int64_t actual, int64_t expected,
                        ft_comparison *out);
// Element |index| of |actual|, of any dtype, against what ft_interpret_group gave for
// it: value and scale for floats, integer and scale for others.
void ft_compare_element(const ft_tensor *actual, int64_t index, double value,
                        double scale, int64_t integer, ft_comparison *out);
// Whole tensor against a whole reference.
void ft_compare_tensor(const ft_tensor *actual, const ft_reference *reference,
                       ft_comparison *out);

#endif
