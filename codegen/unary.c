#include "codegen/unary.h"

#include <math.h>

ft_unary ft_unary_number(double number) {
  return (ft_unary){.p = {number}, .f = FT_OP_COUNT};
}

ft_unary ft_unary_x(void) {
  return (ft_unary){.p = {0, 1}, .f = FT_OP_COUNT};
}

int ft_unary_degree(const double p[FT_UNARY_TERMS]) {
  int degree = FT_UNARY_TERMS - 1;
  while (degree > 0 && p[degree] == 0) degree--;
  return degree;
}

// Models hold their constants as float.
bool ft_unary_is_near(double a, double b) {
  return fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b));
}

static bool is_polynomial(const ft_unary *u) {
  return u->f == FT_OP_COUNT && !u->is_negative;
}

static bool is_number(const ft_unary *u, double *out) {
  *out = u->p[0];
  return is_polynomial(u) && ft_unary_degree(u->p) == 0;
}

static bool is_x(const ft_unary *u) {
  return is_polynomial(u) && ft_unary_degree(u->p) == 1 && u->p[0] == 0 && u->p[1] == 1;
}

static bool multiply(const double a[FT_UNARY_TERMS], const double b[FT_UNARY_TERMS],
                     double out[FT_UNARY_TERMS]) {
  double product[2 * FT_UNARY_TERMS] = {0};
  for (int i = 0; i < FT_UNARY_TERMS; i++)
    for (int k = 0; k < FT_UNARY_TERMS; k++) product[i + k] += a[i] * b[k];
  for (int i = 0; i < FT_UNARY_TERMS; i++) out[i] = product[i];
  for (int i = FT_UNARY_TERMS; i < 2 * FT_UNARY_TERMS; i++)
    if (product[i] != 0) return false;
  return true;
}

static bool mul(const ft_unary *u, ft_unary *out) {
  bool is_first = is_polynomial(&u[0]);
  const ft_unary *polynomial = &u[!is_first], *other = &u[is_first];
  if (!is_polynomial(polynomial) || other->is_negative) return false;
  *out = *other;
  return multiply(polynomial->p, other->p, out->p);
}

static bool add(const ft_unary *u, ft_unary *out) {
  bool is_first = is_polynomial(&u[0]);
  const ft_unary *polynomial = &u[!is_first], *other = &u[is_first];
  if (!is_polynomial(polynomial) || other->is_negative) return false;
  *out = *other;
  if (is_polynomial(other)) {
    for (int i = 0; i < FT_UNARY_TERMS; i++) out->p[i] += polynomial->p[i];
    return true;
  }
  if (ft_unary_degree(other->p) || ft_unary_degree(polynomial->p)) return false;
  out->a = other->a * other->p[0];
  out->b = other->b * other->p[0] + polynomial->p[0];
  out->p[0] = 1;
  return true;
}

static bool scaled(const ft_unary *u, double by, ft_unary *out) {
  *out = *u;
  for (int i = 0; i < FT_UNARY_TERMS; i++) out->p[i] *= by;
  return !u->is_negative;
}

static bool sub(const ft_unary *u, ft_unary *out) {
  ft_unary both[2] = {u[0], u[1]};
  return scaled(&u[1], -1, &both[1]) && add(both, out);
}

static bool divide(const ft_unary *u, ft_unary *out) {
  double by;
  return is_number(&u[1], &by) && by != 0 && scaled(&u[0], 1 / by, out);
}

static bool power(const ft_unary *u, ft_unary *out) {
  double exponent;
  if (!is_number(&u[1], &exponent) || (exponent != 2 && exponent != 3)) return false;
  ft_unary pair[2] = {u[0], u[0]};
  if (!is_polynomial(&u[0]) || !mul(pair, out)) return false;
  pair[1] = *out;
  return exponent == 2 || mul(pair, out);
}

static bool is_below(const ft_unary *u, ft_unary *out) {
  double number;
  if (!is_x(&u[0]) || !is_number(&u[1], &number) || number != 0) return false;
  *out = (ft_unary){.f = FT_OP_COUNT, .is_negative = true};
  return true;
}

// x < 0 ? slope x : x, or x < 0 ? slope (exp(x) - 1) : x.
static bool where(const ft_unary *u, ft_unary *out) {
  const ft_unary *low = &u[1];
  if (!u[0].is_negative || !is_x(&u[2]) || low->is_negative) return false;
  *out = (ft_unary){.p = {1}, .f = FT_OP_WHERE, .q = {0, 1}, .a = 1};
  if (is_polynomial(low)) {
    out->slope = low->p[1];
    return ft_unary_degree(low->p) == 1 && low->p[0] == 0;
  }
  bool is_curve = low->f == FT_OP_EXP && ft_unary_degree(low->q) == 1 && low->q[0] == 0 &&
                  low->q[1] == 1 && ft_unary_degree(low->p) == 0;
  out->is_exponential = true;
  out->slope = low->a * low->p[0];
  return is_curve && ft_unary_is_near(low->b, -low->a);
}

static bool call(ft_op op, const ft_unary *u, ft_unary *out) {
  if (!is_polynomial(u)) return false;
  *out = (ft_unary){.p = {1}, .f = op, .a = 1};
  for (int i = 0; i < FT_UNARY_TERMS; i++) out->q[i] = u->p[i];
  return true;
}

bool ft_unary_apply(ft_op op, const ft_unary *operand, uint32_t count, ft_unary *out) {
  static bool (*const rules[FT_OP_COUNT])(const ft_unary *, ft_unary *) = {
      [FT_OP_ADD] = add,    [FT_OP_SUB] = sub,   [FT_OP_MUL] = mul,
      [FT_OP_DIV] = divide, [FT_OP_POW] = power, [FT_OP_LESS] = is_below,
      [FT_OP_WHERE] = where};
  if (rules[op]) return rules[op](operand, out);
  if (op == FT_OP_NEG) return scaled(operand, -1, out);
  if (op == FT_OP_COPY) return scaled(operand, 1, out);
  return count == 1 && op != FT_OP_NOT && op != FT_OP_CAST && call(op, operand, out);
}
