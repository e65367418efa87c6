#include "graph/contraction.h"

ft_contraction_rule ft_contraction_rule_of(ft_dtype dtype, int64_t terms) {
  ft_contraction_rule rule = {
      .dtype = dtype, .limits = ft_dtype_limits(dtype), .terms = terms};
  if (!rule.limits) return rule;
  rule.r = rule.limits->radius;
  rule.drift = ft_accumulator_drift(dtype, terms);
  rule.a = 1 + rule.drift * (1 + rule.r);
  rule.s = 1 + rule.drift * rule.r;
  return rule;
}

// Each product may have been flushed to zero.
double ft_contraction_plain(const ft_contraction_rule *rule, double value, double scale) {
  const ft_limits *limits = rule->limits;
  if (!isfinite(scale)) return (double)INFINITY;
  if (scale > 0) return scale + (double)rule->terms * (limits->lost / limits->unit);
  return value == 0 && rule->terms > 0 ? limits->speck : scale;
}

void ft_contraction_init(ft_contraction *contraction, size_t count) {
  for (size_t i = 0; i < count; i++) {
    contraction[i] = (ft_contraction){0};
    ft_accumulator_init(FT_OP_REDUCE_SUM, FT_F64, &contraction[i].products, 1);
  }
}

// ---- floats ---------------------------------------------------------------------

static inline void add_plain(const ft_contraction_rule *rule, ft_contraction *c, double a,
                             double sa, double b, double sb) {
  double product = a * b;
  c->value += product;
  c->has_plus |= product > 0;
  c->has_minus |= product < 0;
  c->scale += ft_contraction_first(rule, a, sa, 0) * fabs(b);
  c->scale += ft_contraction_first(rule, a, sa, 1) * sb;
  c->magnitude += fabs(product);
  c->error += fabs(a) * sb + sa * fabs(b) + rule->r * sa * sb;
}

static void add_floats(const ft_contraction_rule *rule, ft_contraction *contraction,
                       const int64_t *slot, const ft_cells *a, const ft_cells *b,
                       size_t count) {
  double value[FT_CONTRACTION_CHUNK], scale[FT_CONTRACTION_CHUNK];
  for (size_t j = 0; j < count; j++)
    add_plain(rule, &contraction[slot[j]], a->value[j], a->scale[j], b->value[j],
              b->scale[j]);
  ft_semantics_call call = {.from = rule->dtype,
                            .to = rule->dtype,
                            .in = {*a, *b},
                            .out = {value, scale, NULL},
                            .count = count};
  ft_semantics_find(FT_OP_MUL, rule->dtype)(&call);
  for (size_t j = 0; j < count; j++) {
    int64_t zero = 0;
    ft_cells cell = {&value[j], &scale[j], NULL};
    ft_accumulator_add(FT_OP_REDUCE_SUM, rule->dtype, &contraction[slot[j]].products,
                       &zero, &cell, 1);
  }
}

// The value is finite, hence all operands are; the unrounded sums tell what may overflow.
static void finish_large(const ft_contraction_rule *rule, const ft_contraction *c,
                         double *value, double *scale) {
  double s = c->error + c->magnitude;
  double added = rule->drift * (c->magnitude + rule->r * s);
  double most = c->magnitude + rule->r * (s + added);
  bool mixed = c->has_plus && c->has_minus;
  double top = ft_dtype_sum_limits(rule->dtype)->top;
  bool doubt = !isfinite(s) || (mixed && !(most <= top));
  ft_semantics_settle(rule->limits, c->value, s, added, doubt, 0, value, scale);
}

static void finish_float(const ft_contraction_rule *rule, const ft_contraction *c,
                         double *value, double *scale) {
  *value = c->value;
  if (ft_contraction_is_plain(rule, c->value, c->scale)) {
    *scale = ft_contraction_plain(rule, c->value, c->scale);
  } else if (isfinite(c->value)) {
    finish_large(rule, c, value, scale);
  } else {
    ft_cells out = {value, scale, NULL};
    ft_accumulator_finish(FT_OP_REDUCE_SUM, rule->dtype, &c->products, rule->terms, 0,
                          &out);
  }
}

// ---- both -----------------------------------------------------------------------

static void add_integers(ft_contraction *contraction, const int64_t *slot,
                         const ft_cells *a, const ft_cells *b, size_t count) {
  for (size_t j = 0; j < count; j++) {
    ft_contraction *c = &contraction[slot[j]];
    uint64_t product = (uint64_t)a->integer[j] * (uint64_t)b->integer[j];
    c->integer = (int64_t)((uint64_t)c->integer + product);
    c->is_unsure |= a->scale[j] > 0 || b->scale[j] > 0;
  }
}

void ft_contraction_add(const ft_contraction_rule *rule, ft_contraction *contraction,
                        const int64_t *slot, const ft_cells *a, const ft_cells *b,
                        size_t count) {
  if (rule->limits)
    add_floats(rule, contraction, slot, a, b, count);
  else
    add_integers(contraction, slot, a, b, count);
}

void ft_contraction_finish(const ft_contraction_rule *rule,
                           const ft_contraction *contraction, size_t index,
                           ft_cells *out) {
  if (rule->limits) {
    finish_float(rule, contraction, &out->value[index], &out->scale[index]);
    return;
  }
  out->integer[index] = ft_integer_wrap(rule->dtype, contraction->integer);
  out->scale[index] = contraction->is_unsure ? (double)INFINITY : 0;
}
