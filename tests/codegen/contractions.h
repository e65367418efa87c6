// Random graphs around one contraction: strides, batches, prologues, epilogues.
#ifndef FT_TESTS_CODEGEN_CONTRACTIONS_H
#define FT_TESTS_CODEGEN_CONTRACTIONS_H

#include <criterion/criterion.h>

#include "core/rng.h"
#include "graph/group.h"

typedef struct contraction {
  ft_rng rng;
  ft_arena *arena;
  ft_graph *graph;
  uint32_t names, outputs;
} contraction;

static inline uint64_t ct_below(contraction *c, uint64_t n) {
  return ft_rng_below(&c->rng, n);
}

static inline bool ct_chance(contraction *c, uint64_t percent) {
  return ct_below(c, 100) < percent;
}

static inline int64_t ct_between(contraction *c, int64_t low, int64_t high) {
  return low + (int64_t)ct_below(c, (uint64_t)(high - low + 1));
}

static inline int64_t ct_extent(contraction *c) {
  static const int64_t dims[] = {1,  2,  3,  5,  7,  8,  13, 16, 17,
                                 24, 31, 32, 48, 50, 64, 65, 97};
  if (ct_chance(c, 2)) return 0;
  return dims[ct_below(c, sizeof dims / sizeof *dims)];
}

static inline const ft_shape *ct_shape(const contraction *c, uint32_t v) {
  return &c->graph->value[v].shape;
}

static inline uint32_t ct_input(contraction *c, ft_dtype dtype, ft_shape shape) {
  uint32_t value;
  const char *name = ft_arena_printf(c->arena, "x%u", c->names++);
  cr_assert_eq(ft_graph_add_input(c->graph, name, dtype, &shape, &value, NULL), FT_OK);
  return value;
}

static inline uint32_t ct_emit(contraction *c, ft_op op, uint32_t count,
                               const uint32_t *in, const ft_attr *attr) {
  uint32_t out;
  ft_error error;
  cr_assert_eq(ft_graph_emit(c->graph, op, in, count, attr, &out, &error), FT_OK, "%s",
               error.text);
  return out;
}

static inline uint32_t ct_view(contraction *c, uint32_t v, ft_shape shape) {
  uint32_t out;
  cr_assert_eq(ft_graph_view(c->graph, v, &shape, &out, NULL), FT_OK);
  return out;
}

static inline uint32_t ct_number(contraction *c, double number) {
  uint32_t v;
  cr_assert_eq(ft_graph_add_scalar(c->graph, FT_F32, number, &v, NULL), FT_OK);
  return v;
}

// An operand that broadcasts to |shape|.
static inline uint32_t ct_beside(contraction *c, ft_shape shape) {
  if (ct_chance(c, 15)) return ct_number(c, 0.5);
  uint8_t skip = shape.rank ? (uint8_t)ct_below(c, shape.rank) : 0;
  ft_shape part = {.rank = (uint8_t)(shape.rank - skip)};
  for (uint8_t i = 0; i < part.rank; i++)
    part.dim[i] = ct_chance(c, 30) ? 1 : shape.dim[i + skip];
  return ct_input(c, FT_F32, part);
}

static inline uint32_t ct_elementwise(contraction *c, uint32_t v) {
  static const ft_op unary[] = {FT_OP_RELU,    FT_OP_TANH, FT_OP_ERF,
                                FT_OP_SIGMOID, FT_OP_NEG,  FT_OP_ABS};
  static const ft_op binary[] = {FT_OP_ADD, FT_OP_MUL, FT_OP_SUB, FT_OP_MAX};
  if (ct_chance(c, 45)) return ct_emit(c, unary[ct_below(c, 6)], 1, &v, NULL);
  if (ct_chance(c, 10)) {  // a mask
    uint32_t less[2] = {v, ct_number(c, 0)};
    uint32_t in[3] = {ct_emit(c, FT_OP_LESS, 2, less, NULL), ct_number(c, -1), v};
    return ct_emit(c, FT_OP_WHERE, 3, in, NULL);
  }
  uint32_t in[2] = {v, ct_chance(c, 10) ? v : ct_beside(c, *ct_shape(c, v))};
  if (ct_chance(c, 30)) {
    uint32_t other = in[1];
    in[1] = in[0];
    in[0] = other;
  }
  return ct_emit(c, binary[ct_below(c, 4)], 2, in, NULL);
}

static inline uint32_t ct_transpose(contraction *c, uint32_t v) {
  ft_attr attr = {0};
  for (uint8_t i = 0; i < ct_shape(c, v)->rank; i++) {
    uint8_t at = (uint8_t)ct_below(c, i + 1u);
    attr.perm[i] = attr.perm[at];
    attr.perm[at] = i;
  }
  return ct_emit(c, FT_OP_TRANSPOSE, 1, &v, &attr);
}

// Splits a dim in two, or joins two.
static inline uint32_t ct_reshape(contraction *c, uint32_t v) {
  ft_shape s = *ct_shape(c, v);
  if (!s.rank) return v;
  uint8_t at = (uint8_t)ct_below(c, s.rank);
  static const int64_t factors[] = {2, 3, 4, 8, 16, 32};
  int64_t by = factors[ct_below(c, 6)];
  if (s.rank < 6 && s.dim[at] && s.dim[at] % by == 0) {
    for (uint8_t i = s.rank++; i > at; i--) s.dim[i] = s.dim[i - 1];
    s.dim[at] /= by;
    s.dim[at + 1] = by;
    return ct_view(c, v, s);
  }
  if (at + 1 >= s.rank) return v;
  s.dim[at] *= s.dim[at + 1];
  for (uint8_t i = (uint8_t)(at + 1); i + 1 < s.rank; i++) s.dim[i] = s.dim[i + 1];
  s.dim[--s.rank] = 0;
  return ct_view(c, v, s);
}

// A tensor of |shape| from outside, perhaps by a prologue.
static inline uint32_t ct_operand(contraction *c, ft_shape shape) {
  ft_attr back = {0};
  ft_shape from = shape;
  bool turns = ct_chance(c, 30) && shape.rank > 1;
  if (turns) {
    for (uint8_t i = 0; i < shape.rank; i++) back.perm[i] = i;
    uint8_t a = (uint8_t)ct_below(c, shape.rank), b = (uint8_t)ct_below(c, shape.rank);
    back.perm[a] = b;
    back.perm[b] = a;
    from.dim[a] = shape.dim[b];
    from.dim[b] = shape.dim[a];
  }
  uint32_t v = ct_input(c, FT_F32, from);
  for (int i = 0; i < 2 && ct_chance(c, 25); i++) {
    uint32_t w = ct_elementwise(c, v);
    if (ft_shape_equal(ct_shape(c, w), &from)) v = w;
  }
  return turns ? ct_emit(c, FT_OP_TRANSPOSE, 1, &v, &back) : v;
}

static inline uint32_t ct_matmul(contraction *c) {
  uint8_t batch = (uint8_t)ct_below(c, 3);
  ft_shape a = {.rank = (uint8_t)(batch + 2)}, b = a;
  for (uint8_t i = 0; i < batch; i++) {
    a.dim[i] = b.dim[i] = ct_between(c, 1, 4);
    if (ct_chance(c, 20)) a.dim[i] = 1;
    if (ct_chance(c, 30)) b.dim[i] = 1;
  }
  int64_t k = ct_chance(c, 5) ? 700 : ct_extent(c);
  a.dim[batch] = ct_extent(c);
  a.dim[batch + 1] = b.dim[batch] = k;
  b.dim[batch + 1] = ct_extent(c);
  if (batch && ct_chance(c, 40)) {  // weights
    b.dim[0] = k;
    b.dim[1] = b.dim[batch + 1];
    for (uint8_t i = 2; i < b.rank; i++) b.dim[i] = 0;
    b.rank = 2;
  }
  uint32_t in[2] = {ct_operand(c, a), ct_operand(c, b)};
  return ct_emit(c, FT_OP_MATMUL, 2, in, NULL);
}

static inline uint32_t ct_conv(contraction *c) {
  uint8_t spatial = (uint8_t)ct_between(c, 1, 3);
  static const int64_t sizes[] = {1, 2, 5, 7, 8, 14, 17, 20};
  ft_shape x = {.rank = (uint8_t)(spatial + 2), .dim = {ct_between(c, 1, 2)}};
  x.dim[1] = ct_between(c, 1, 9);
  ft_shape w = {.rank = x.rank, .dim = {ct_between(c, 1, 20), x.dim[1]}};
  ft_attr attr = {.shape = x, .groups = 1};
  bool is_point = ct_chance(c, 25);
  attr.shape.dim[1] = w.dim[0];
  for (uint8_t i = 0; i < spatial; i++) {
    x.dim[i + 2] = sizes[ct_below(c, spatial > 2 ? 4 : 8)];
    w.dim[i + 2] = is_point ? 1 : ct_between(c, 1, 3);
    attr.stride[i] = is_point || ct_chance(c, 60) ? 1 : ct_between(c, 2, 3);
    attr.dilation[i] = ct_chance(c, 80) ? 1 : 2;
    attr.start[i] = is_point ? 0 : ct_between(c, 0, 2);
    int64_t after = is_point ? 0 : ct_between(c, 0, 2);
    int64_t reach = (w.dim[i + 2] - 1) * attr.dilation[i];
    int64_t room = x.dim[i + 2] + attr.start[i] + after - reach - 1;
    attr.shape.dim[i + 2] = room < 0 ? 0 : room / attr.stride[i] + 1;
  }
  uint32_t in[2] = {ct_operand(c, x), ct_operand(c, w)};
  return ct_emit(c, FT_OP_CONV, 2, in, &attr);
}

static inline void ct_output(contraction *c, uint32_t v) {
  const char *name = ft_arena_printf(c->arena, "y%u", c->outputs++);
  cr_assert_eq(ft_graph_add_output(c->graph, name, v, NULL), FT_OK);
}

// The graph that |seed| means. Most of them are one kernel of the contract tactic.
static inline ft_graph *random_contraction(uint64_t seed, ft_arena *arena) {
  contraction c = {.rng = ft_rng_seed(seed), .arena = arena};
  cr_assert_eq(ft_graph_create(arena, "g", &c.graph, NULL), FT_OK);
  cr_assert_eq(ft_graph_begin_operator(c.graph, "n", "Test", "", NULL), FT_OK);
  uint32_t v = ct_chance(&c, 65) ? ct_matmul(&c) : ct_conv(&c), first = v;
  for (int i = 0; i < 6 && ct_chance(&c, 75); i++) {
    uint64_t which = ct_below(&c, 10);
    uint32_t before = v;
    v = which < 2   ? ct_transpose(&c, v)
        : which < 4 ? ct_reshape(&c, v)
                    : ct_elementwise(&c, v);
    if (ct_chance(&c, 15)) ct_output(&c, before);
  }
  if (v != first && ct_chance(&c, 20)) ct_output(&c, first);
  ct_output(&c, v);
  cr_assert_eq(ft_graph_finish(c.graph, NULL), FT_OK);
  return c.graph;
}

#endif
