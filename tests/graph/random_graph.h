// random_graph - seeded graphs over every kind of primitive, for tests.
#ifndef FT_TESTS_GRAPH_RANDOM_GRAPH_H
#define FT_TESTS_GRAPH_RANDOM_GRAPH_H

#include <criterion/criterion.h>

#include "core/rng.h"
#include "graph/graph.h"

#define MUST(call)                                 \
  do {                                             \
    ft_error must_ = {0};                          \
    cr_assert_eq((call), FT_OK, "%s", must_.text); \
  } while (0)
#define ERR (&must_)

enum { RANDOM_MOST_ELEMENTS = 1500 };

typedef struct random_graph {
  ft_graph *graph;
  ft_rng rng;
  uint32_t value[256], count;  // f32 values made so far
} random_graph;

static inline uint32_t pick(random_graph *r, uint32_t limit) {
  return (uint32_t)ft_rng_below(&r->rng, limit);
}

static inline uint32_t any_value(random_graph *r) {
  // Later values are likelier: chains rather than bushes.
  uint32_t a = pick(r, r->count), b = pick(r, r->count);
  return r->value[a > b ? a : b];
}

static inline uint32_t emit(random_graph *r, ft_op op, const uint32_t *in, uint32_t n,
                            const ft_attr *attr) {
  uint32_t out = FT_NONE;
  MUST(ft_graph_emit(r->graph, op, in, n, attr, &out, ERR));
  return out;
}

static inline void keep(random_graph *r, uint32_t value) {
  if (r->count < 256) r->value[r->count++] = value;
}

// A value that broadcasts with |with| to a shape that is not too big; perhaps itself.
static inline uint32_t partner(random_graph *r, uint32_t with) {
  for (int tries = 0; tries < 20; tries++) {
    uint32_t other = any_value(r);
    ft_shape shape;
    if (ft_shape_broadcast(&r->graph->value[with].shape, &r->graph->value[other].shape,
                           &shape, NULL) == FT_OK &&
        ft_shape_elements(&shape) <= RANDOM_MOST_ELEMENTS)
      return other;
  }
  return with;
}

static inline void add_unary(random_graph *r) {
  static const ft_op ops[] = {FT_OP_NEG,  FT_OP_ABS,     FT_OP_SQRT,  FT_OP_RECIPROCAL,
                              FT_OP_EXP,  FT_OP_LOG,     FT_OP_ERF,   FT_OP_TANH,
                              FT_OP_TANH, FT_OP_SIGMOID, FT_OP_SIN,   FT_OP_COS,
                              FT_OP_RELU, FT_OP_FLOOR,   FT_OP_ROUND, FT_OP_SIGN};
  uint32_t in = any_value(r);
  ft_op op = ops[pick(r, sizeof ops / sizeof ops[0])];
  if (op == FT_OP_SQRT || op == FT_OP_LOG) in = emit(r, FT_OP_ABS, &in, 1, NULL);
  keep(r, emit(r, op, &in, 1, NULL));
}

static inline void add_binary(random_graph *r) {
  static const ft_op ops[] = {FT_OP_ADD, FT_OP_SUB, FT_OP_MUL, FT_OP_ADD, FT_OP_SUB,
                              FT_OP_MUL, FT_OP_DIV, FT_OP_MIN, FT_OP_MAX};
  uint32_t a = any_value(r);
  uint32_t in[2] = {a, partner(r, a)};
  keep(r, emit(r, ops[pick(r, sizeof ops / sizeof ops[0])], in, 2, NULL));
}

static inline void add_power(random_graph *r) {
  static const double exponents[] = {2, 3, 0.5, -1, -0.5, 1.7};
  uint32_t in[2] = {any_value(r), FT_NONE};
  uint32_t e = pick(r, 6);
  if (e > 1) in[0] = emit(r, FT_OP_ABS, in, 1, NULL);
  MUST(ft_graph_add_scalar(r->graph, FT_F32, exponents[e], &in[1], ERR));
  keep(r, emit(r, FT_OP_POW, in, 2, NULL));
}

// compare, perhaps through logic, then where or a cast back
static inline void add_choice(random_graph *r) {
  uint32_t a = any_value(r), b = partner(r, a);
  uint32_t pair[2] = {a, b};
  uint32_t c = emit(r, FT_OP_EQUAL + (ft_op)pick(r, 3), pair, 2, NULL);
  if (pick(r, 3) == 0) c = emit(r, FT_OP_NOT, &c, 1, NULL);
  if (pick(r, 3) == 0) {
    uint32_t other[2] = {c, emit(r, FT_OP_LESS, pair, 2, NULL)};
    c = emit(r, pick(r, 2) ? FT_OP_AND : FT_OP_OR, other, 2, NULL);
  }
  uint32_t in[3] = {c, a, b};
  ft_attr to_float = {.to = FT_F32}, to_int = {.to = FT_I32};
  if (pick(r, 2)) {
    keep(r, emit(r, FT_OP_WHERE, in, 3, NULL));
  } else {
    if (pick(r, 2)) c = emit(r, FT_OP_CAST, &c, 1, &to_int);
    keep(r, emit(r, FT_OP_CAST, &c, 1, &to_float));
  }
}

static inline void add_remap(random_graph *r) {
  uint32_t in = any_value(r);
  ft_shape shape = r->graph->value[in].shape;
  ft_attr attr = {0};
  for (int i = 0; i < shape.rank; i++) attr.perm[i] = (uint8_t)i;
  for (int i = shape.rank - 1; i > 0; i--) {
    uint32_t j = pick(r, (uint32_t)i + 1);
    uint8_t t = attr.perm[i];
    attr.perm[i] = attr.perm[j];
    attr.perm[j] = t;
  }
  keep(r, emit(r, FT_OP_TRANSPOSE, &in, 1, &attr));
}

static inline void add_broadcast(random_graph *r) {
  uint32_t in = any_value(r);
  ft_attr attr = {.shape = r->graph->value[in].shape};
  if (attr.shape.rank < 4) {
    for (int i = attr.shape.rank; i > 0; i--) attr.shape.dim[i] = attr.shape.dim[i - 1];
    attr.shape.dim[0] = 1 + pick(r, 3);
    attr.shape.rank++;
  }
  for (int i = 0; i < attr.shape.rank; i++)
    if (attr.shape.dim[i] == 1) attr.shape.dim[i] = 1 + pick(r, 4);
  if (ft_shape_elements(&attr.shape) > RANDOM_MOST_ELEMENTS) return;
  keep(r, emit(r, FT_OP_BROADCAST, &in, 1, &attr));
}

static inline void add_view(random_graph *r) {
  uint32_t in = any_value(r), out;
  ft_shape from = r->graph->value[in].shape, to = {.rank = 1};
  to.dim[0] = ft_shape_elements(&from);
  if (pick(r, 2) && from.rank >= 2) {  // merge the first two dims, append a 1
    to.rank = from.rank;
    to.dim[0] = from.dim[0] * from.dim[1];
    for (int i = 1; i < from.rank - 1; i++) to.dim[i] = from.dim[i + 1];
    to.dim[from.rank - 1] = 1;
  }
  MUST(ft_graph_view(r->graph, in, &to, &out, ERR));
  keep(r, out);
}

static inline void add_reduction(random_graph *r) {
  uint32_t in = any_value(r);
  static const ft_op ops[] = {FT_OP_REDUCE_SUM, FT_OP_REDUCE_SUM, FT_OP_REDUCE_MAX,
                              FT_OP_REDUCE_MIN, FT_OP_REDUCE_PROD};
  ft_attr attr = {.axes = pick(r, 1u << r->graph->value[in].shape.rank)};
  keep(r, emit(r, ops[pick(r, 5)], &in, 1, &attr));
}

static inline void add_inputs(random_graph *r, bool with_empty) {
  static const int64_t dims[] = {1, 2, 3, 5, 7, 8};
  ft_shape base = {.rank = 3};
  for (int i = 0; i < 3; i++) base.dim[i] = dims[pick(r, 6)];
  if (with_empty) base.dim[pick(r, 3)] = 0;
  for (int i = 0; i < 3; i++) {
    ft_shape shape = base;
    for (int d = 0; i && d < 3; d++)
      if (pick(r, 3) == 0) shape.dim[d] = 1;
    uint32_t value;
    MUST(ft_graph_add_input(r->graph, "x", FT_F32, &shape, &value, ERR));
    keep(r, value);
  }
  ft_shape weight = {.rank = 1, .dim = {base.dim[2]}};
  uint32_t value;
  MUST(ft_graph_add_weight(r->graph, "w", FT_F32, &weight, r->rng.state, &value, ERR));
  keep(r, value);
}

// A finished graph of about |steps| primitives; its last values are outputs.
static inline ft_graph *random_graph_make(uint64_t seed, int steps, bool with_empty,
                                          ft_arena *arena) {
  random_graph r = {.rng = ft_rng_seed(seed)};
  MUST(ft_graph_create(arena, "random", &r.graph, ERR));
  MUST(ft_graph_begin_operator(r.graph, "node", "Random", "", ERR));
  add_inputs(&r, with_empty);
  for (int i = 0; i < steps; i++) {
    uint32_t kind = pick(&r, 16);
    if (kind < 5)
      add_unary(&r);
    else if (kind < 9)
      add_binary(&r);
    else if (kind < 10)
      add_power(&r);
    else if (kind < 11)
      add_choice(&r);
    else if (kind < 12)
      add_remap(&r);
    else if (kind < 13)
      add_broadcast(&r);
    else if (kind < 14)
      add_view(&r);
    else
      add_reduction(&r);
  }
  for (uint32_t i = r.count > 3 ? r.count - 3 : 0; i < r.count; i++)
    MUST(ft_graph_add_output(r.graph, "y", r.value[i], ERR));
  MUST(ft_graph_finish(r.graph, ERR));
  ft_graph_check(r.graph);
  return r.graph;
}

#endif
