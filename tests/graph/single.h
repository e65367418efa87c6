// single - a second opinion: evaluates a graph in single precision as some legal kernel
// might, with index arithmetic of its own. Sums go in a random order, products may be
// contracted into sums, functions are off by a few ulps.
#ifndef FT_TESTS_GRAPH_SINGLE_H
#define FT_TESTS_GRAPH_SINGLE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "graph/graph.h"

typedef struct single {
  const ft_graph *graph;
  ft_arena *arena;
  ft_rng rng;
  double **value;  // [value_count] roots; every number is exact in the value's dtype
} single;

// Row-major position in |shape| broadcast to |out|, of element |index| of |out|.
static inline int64_t position_in(const ft_shape *out, const ft_shape *shape,
                                  int64_t index) {
  int64_t coordinate[FT_MAX_RANK] = {0}, at = 0;
  for (int i = out->rank - 1; i >= 0; i--) {
    coordinate[i] = index % out->dim[i];
    index /= out->dim[i];
  }
  for (int i = 0; i < shape->rank; i++) {
    int64_t c = coordinate[i + out->rank - shape->rank];
    at = at * shape->dim[i] + (shape->dim[i] == 1 ? 0 : c);
  }
  return at;
}

static inline double off_by(single *s, double exact, double ulps) {
  float x = (float)exact;
  if (!isfinite(x) || x == 0) return (double)x;
  double step = (double)(nextafterf(fabsf(x), INFINITY) - fabsf(x));
  return (double)(float)((double)x + rint((2 * ft_rng_f64(&s->rng) - 1) * ulps) * step);
}

static inline double single_unary(single *s, ft_op op, double a) {
  switch (op) {
    case FT_OP_NEG:
      return -a;
    case FT_OP_ABS:
      return fabs(a);
    case FT_OP_SQRT:
      return (double)sqrtf((float)a);
    case FT_OP_RECIPROCAL:
      return (double)(1.0f / (float)a);
    case FT_OP_EXP:
      return off_by(s, exp(a), 1);
    case FT_OP_LOG:
      return off_by(s, log(a), 2);
    case FT_OP_ERF:
      return off_by(s, erf(a), 6);
    case FT_OP_TANH:
      return off_by(s, tanh(a), 5);
    case FT_OP_SIGMOID:
      return off_by(s, 1 / (1 + exp(-a)), 3);
    case FT_OP_SIN:
      return off_by(s, sin(a), 2);
    case FT_OP_COS:
      return off_by(s, cos(a), 2);
    case FT_OP_FLOOR:
      return floor(a);
    case FT_OP_CEIL:
      return ceil(a);
    case FT_OP_ROUND:
      return rint(a);
    case FT_OP_SIGN:
      return a > 0 ? 1 : a < 0 ? -1 : a;
    case FT_OP_RELU:
      return a < 0 ? 0 : a;
    case FT_OP_NOT:
      return a == 0;
    default:
      return a;  // COPY, remaps
  }
}

static inline double single_binary(single *s, ft_op op, double a, double b) {
  switch (op) {
    case FT_OP_ADD:
      return (double)((float)a + (float)b);
    case FT_OP_SUB:
      return (double)((float)a - (float)b);
    case FT_OP_MUL:
      return (double)((float)a * (float)b);
    case FT_OP_DIV:
      return (double)((float)a / (float)b);
    case FT_OP_FMOD:
      return (double)fmodf((float)a, (float)b);
    case FT_OP_POW:
      return off_by(s, pow(a, b), 1);
    case FT_OP_MIN:
      return a < b || isnan(a) ? a : b;
    case FT_OP_MAX:
      return a > b || isnan(a) ? a : b;
    case FT_OP_EQUAL:
      return a == b;
    case FT_OP_LESS:
      return a < b;
    case FT_OP_LESS_EQUAL:
      return a <= b;
    case FT_OP_AND:
      return a != 0 && b != 0;
    default:
      return a != 0 || b != 0;
  }
}

static inline double single_cast(ft_dtype to, double a) {
  if (to == FT_F32) return (double)(float)a;
  if (to == FT_BOOL) return a != 0;
  if (isnan(a)) return 0;
  return fmax(INT32_MIN, fmin(INT32_MAX, trunc(a)));
}

static inline double operand(const single *s, uint32_t value, const ft_shape *out,
                             int64_t index) {
  const ft_value *v = &s->graph->value[value];
  return s->value[v->root][position_in(out, &v->shape, index)];
}

// a * b + c rounded once, when operand |i| of an addition is a product.
static inline bool contract(const single *s, const ft_primitive *p, int i,
                            const ft_shape *out, int64_t index, double *result) {
  const ft_value *v = &s->graph->value[p->input[i]];
  if (v->producer == FT_NONE || v->root != p->input[i]) return false;
  const ft_primitive *product = &s->graph->primitive[v->producer];
  if (product->op != FT_OP_MUL || (p->op != FT_OP_ADD && p->op != FT_OP_SUB))
    return false;
  int64_t at = position_in(out, &v->shape, index);
  float a = (float)operand(s, product->input[0], &v->shape, at);
  float b = (float)operand(s, product->input[1], &v->shape, at);
  float c = (float)operand(s, p->input[1 - i], out, index);
  if (p->op == FT_OP_SUB) {
    if (i == 0)
      c = -c;
    else
      a = -a;
  }
  *result = (double)fmaf(a, b, c);
  return true;
}

static inline double single_element(single *s, const ft_primitive *p, const ft_shape *out,
                                    bool contracts, int64_t index) {
  double a = operand(s, p->input[0], out, index), result;
  if (p->op == FT_OP_CAST) return single_cast(p->attr.to, a);
  if (p->input_count == 1) return single_unary(s, p->op, a);
  if (p->op == FT_OP_WHERE) return operand(s, p->input[a != 0 ? 1 : 2], out, index);
  if (contracts &&
      (contract(s, p, 0, out, index, &result) || contract(s, p, 1, out, index, &result)))
    return result;
  return single_binary(s, p->op, a, operand(s, p->input[1], out, index));
}

static inline void single_transpose(single *s, const ft_primitive *p, const ft_shape *out,
                                    double *to) {
  const ft_value *v = &s->graph->value[p->input[0]];
  int64_t elements = ft_shape_elements(out);
  for (int64_t index = 0; index < elements; index++) {
    int64_t coordinate[FT_MAX_RANK] = {0}, rest = index, at = 0;
    for (int i = out->rank - 1; i >= 0; i--) {
      coordinate[p->attr.perm[i]] = rest % out->dim[i];
      rest /= out->dim[i];
    }
    for (int i = 0; i < out->rank; i++) at = at * v->shape.dim[i] + coordinate[i];
    to[index] = s->value[v->root][at];
  }
}

static inline float combine(ft_op op, float a, float b) {
  switch (op) {
    case FT_OP_REDUCE_SUM:
      return a + b;
    case FT_OP_REDUCE_PROD:
      return a * b;
    case FT_OP_REDUCE_MAX:
      return a > b || isnan(a) ? a : b;
    default:
      return a < b || isnan(a) ? a : b;
  }
}

// Combines two random ones until one is left: any tree can come out.
static inline float combine_all(single *s, ft_op op, float *term, size_t count) {
  static const float neutral[] = {0, -INFINITY, INFINITY, 1};
  bool in_order = ft_rng_below(&s->rng, 2);
  if (count == 0) return neutral[op - FT_OP_REDUCE_SUM];
  for (size_t i = 1; in_order && i < count; i++) term[0] = combine(op, term[0], term[i]);
  while (!in_order && count > 1) {
    size_t i = ft_rng_below(&s->rng, count), j = ft_rng_below(&s->rng, count - 1);
    if (j >= i) j++;
    term[i] = combine(op, term[i], term[j]);
    term[j] = term[--count];
  }
  return term[0];
}

static inline void single_reduce(single *s, const ft_primitive *p, const ft_shape *out,
                                 double *to) {
  const ft_value *v = &s->graph->value[p->input[0]];
  int64_t elements = ft_shape_elements(&v->shape), results = ft_shape_elements(out);
  float *term = FT_NEW_ARRAY(s->arena, float, (size_t)elements);
  for (int64_t r = 0; r < results; r++) {
    size_t count = 0;
    for (int64_t i = 0; i < elements; i++)
      if (position_in(&v->shape, out, i) == r)
        term[count++] = (float)s->value[v->root][i];
    to[r] = (double)combine_all(s, p->op, term, count);
  }
}

#include "single_wide.h"

// |input|: as for ft_interpret_graph. Only f32, i32 and bool.
static inline single single_run(const ft_graph *graph, const ft_tensor *input,
                                uint64_t seed, ft_arena *arena) {
  single s = {graph, arena, ft_rng_seed(seed),
              FT_NEW_ARRAY(arena, double *, graph->value_count)};
  for (uint32_t v = 0; v < graph->value_count; v++) {
    const ft_value *value = &graph->value[v];
    int64_t elements = ft_shape_elements(&value->shape);
    s.value[v] = FT_NEW_ARRAY(arena, double, (size_t)elements);
    ft_tensor tensor = {.data = NULL};
    if (value->role == FT_ROLE_CONSTANT)
      MUST(ft_graph_constant_data(graph, v, arena, &tensor, ERR));
    for (uint32_t i = 0; i < graph->input_count; i++)
      if (graph->input[i].value == v) tensor = input[i];
    for (int64_t i = 0; tensor.data && i < elements; i++)
      s.value[v][i] = ft_tensor_get_f64(&tensor, i);
  }
  for (uint32_t i = 0; i < graph->primitive_count; i++) {
    const ft_primitive *p = &graph->primitive[i];
    const ft_shape *out = &graph->value[p->output].shape;
    double *to = s.value[p->output];
    bool contracts = ft_rng_below(&s.rng, 2);
    if (ft_op_describe(p->op)->class == FT_CLASS_R)
      single_reduce(&s, p, out, to);
    else if (p->op == FT_OP_TRANSPOSE)
      single_transpose(&s, p, out, to);
    else
      for (int64_t e = 0; e < ft_shape_elements(out); e++)
        to[e] = is_wide(p->op) ? single_wide(&s, p, out, e)
                               : single_element(&s, p, out, contracts, e);
  }
  return s;
}

#endif
