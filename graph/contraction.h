// contraction - one element of a MATMUL or CONV in the making. Private to graph/.
//
// A float result is computed twice over, value and scale, each a plain sum of products
// in the order of the terms, so that a blocked loop and a term-by-term one give the same
// bits. With a, sa of the first operand and b, sb of the second, r the radius of a scale
// of 1, n terms and drift = ft_accumulator_drift (accumulator.h), a term adds
//   to the value   a b
//   to the scale   (A |a| + S sa) |b|  and then  S (|a| + r sa) sb
// where S = 1 + drift r carries the operands' errors through the additions and
// A = 1 + drift (1 + r) is one rounding per product and the drift of the sum (as for
// REDUCE_SUM); n = 1 has S = A = 1. When that comes out finite and far from the top of
// the dtype it is the answer. Else the careful sums beside it decide: whether an order of
// summation, or a fused multiply-add, could overflow where another does not (then the
// scale is infinite), and what is infinite or NaN in any order.
// Integers wrap; one uncertain operand makes the result uncertain.
#ifndef FT_GRAPH_CONTRACTION_H
#define FT_GRAPH_CONTRACTION_H

#include <math.h>

#include "graph/accumulator.h"

typedef struct ft_contraction {
  double value, scale;
  double magnitude, error;   // sums of |a b| and of |a| sb + sa |b| + r sa sb
  bool has_plus, has_minus;  // products above and below 0: a sum may not show the small
  ft_accumulator products;   // as MUL and REDUCE_SUM would have it
  int64_t integer;
  bool is_unsure;  // integers
} ft_contraction;

// The constants of one contraction; |limits| NULL for integers.
typedef struct ft_contraction_rule {
  ft_dtype dtype;
  const ft_limits *limits;
  int64_t terms;
  double drift, a, s, r;
} ft_contraction_rule;

ft_contraction_rule ft_contraction_rule_of(ft_dtype dtype, int64_t terms);

// The factors of the scale; first operand (as[0] bs[0] + as[1] bs[1] is a term's).
static inline double ft_contraction_first(const ft_contraction_rule *rule, double value,
                                          double scale, int which) {
  double size = fabs(value);
  return which ? rule->s * (size + rule->r * scale) : rule->a * size + rule->s * scale;
}

// True when the plain sums are the answer. A scale that is not finite comes of an operand
// that may be anything, and so may the result.
static inline bool ft_contraction_is_plain(const ft_contraction_rule *rule, double value,
                                           double scale) {
  return isfinite(value) &&
         (!isfinite(scale) || scale * (1 + rule->r) <= rule->limits->top);
}
// The answer from plain sums: the scale (the value stays).
double ft_contraction_plain(const ft_contraction_rule *rule, double value, double scale);

void ft_contraction_init(ft_contraction *contraction, size_t count);
// Adds a[j] b[j] to contraction[slot[j]]; count <= FT_CONTRACTION_CHUNK.
enum { FT_CONTRACTION_CHUNK = 1024 };
void ft_contraction_add(const ft_contraction_rule *rule, ft_contraction *contraction,
                        const int64_t *slot, const ft_cells *a, const ft_cells *b,
                        size_t count);
// Element |index| of |out|.
void ft_contraction_finish(const ft_contraction_rule *rule,
                           const ft_contraction *contraction, size_t index,
                           ft_cells *out);

#endif
