// unary - what a run of elementwise primitives computes of one value and of numbers:
// P(x) (a f(Q(x)) + b) with polynomials P and Q of degree 3 at most. So that a function
// is recognised however a model spells it: GELU is x/2 (1 + erf(x/sqrt 2)), in any order.
#ifndef FT_CODEGEN_UNARY_H
#define FT_CODEGEN_UNARY_H

#include "graph/graph.h"

enum { FT_UNARY_TERMS = 4 };

typedef struct ft_unary {
  double p[FT_UNARY_TERMS];  // coefficient of x^i
  ft_op f;                   // FT_OP_COUNT: none, the whole is P. FT_OP_WHERE: x where
                             // x >= 0, else |slope| x, or |slope| (exp(x) - 1)
  bool is_exponential;       // of WHERE
  double slope;              // of WHERE
  double q[FT_UNARY_TERMS];
  double a, b;
  bool is_negative;  // not a number: the truth of x < 0
} ft_unary;

ft_unary ft_unary_x(void);
ft_unary ft_unary_number(double number);
// |op| of these; false when the form cannot say it.
bool ft_unary_apply(ft_op op, const ft_unary *operand, uint32_t count, ft_unary *out);
// Degree of a polynomial; equality to the precision of float.
int ft_unary_degree(const double p[FT_UNARY_TERMS]);
bool ft_unary_is_near(double a, double b);

#endif
