// graphs - small graphs for tests, written as tables and built in any order.
#ifndef FT_TESTS_SUPPORT_GRAPHS_H
#define FT_TESTS_SUPPORT_GRAPHS_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/rng.h"
#include "graph/graph.h"

static inline ft_shape test_shape(const int64_t *dim, size_t rank) {
  ft_shape shape = {.rank = (uint8_t)rank};
  for (size_t i = 0; i < rank; i++) shape.dim[i] = dim[i];
  return shape;
}
// SHAPE(4, 8); a scalar is (ft_shape){0}.
#define SHAPE(...)                           \
  test_shape((const int64_t[]){__VA_ARGS__}, \
             sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

// What is no primitive in a table.
enum { SPEC_INPUT = -1, SPEC_SCALAR = -2, SPEC_VIEW = -3, SPEC_WEIGHT = -4 };

// One line of a table: |in| are earlier lines.
typedef struct spec {
  int op;  // ft_op or SPEC_*
  int in[3];
  ft_attr attr;
  ft_dtype dtype;
  ft_shape shape;  // inputs, weights, views
  double value;    // scalars
  bool is_output;
} spec;

enum { SPEC_MAX = 64 };

static inline uint32_t spec_add(ft_graph *graph, const spec *s, const uint32_t *value,
                                const char *name) {
  ft_error error;
  uint32_t input[3], out = FT_NONE;
  ft_status status = FT_OK;
  uint32_t arity = s->op >= 0 ? ft_op_describe((ft_op)s->op)->arity : 1;
  for (uint32_t k = 0; k < arity; k++)
    if (s->op >= 0 || s->op == SPEC_VIEW) input[k] = value[s->in[k]];
  switch (s->op) {
    case SPEC_INPUT:
      status = ft_graph_add_input(graph, name, s->dtype, &s->shape, &out, &error);
      break;
    case SPEC_SCALAR:
      status = ft_graph_add_scalar(graph, s->dtype, s->value, &out, &error);
      break;
    case SPEC_WEIGHT:
      status = ft_graph_add_weight(graph, name, s->dtype, &s->shape, 7, &out, &error);
      break;
    case SPEC_VIEW:
      status = ft_graph_view(graph, input[0], &s->shape, &out, &error);
      break;
    default:
      status = ft_graph_begin_operator(graph, name, "Test", "", &error);
      if (status == FT_OK)
        status = ft_graph_emit(graph, (ft_op)s->op, input, arity, &s->attr, &out, &error);
  }
  cr_assert_eq(status, FT_OK, "%s", error.text);
  return out;
}

static inline bool spec_ready(const spec *s, const bool *done) {
  if (s->op == SPEC_INPUT || s->op == SPEC_SCALAR || s->op == SPEC_WEIGHT) return true;
  uint32_t arity = s->op >= 0 ? ft_op_describe((ft_op)s->op)->arity : 1;
  for (uint32_t k = 0; k < arity; k++)
    if (!done[s->in[k]]) return false;
  return true;
}

// Builds table[count] in a random topological order with random names (|rng| NULL: as it
// stands); value[i] is where line i went, by the numbers before finish.
static inline ft_graph *spec_build(const spec *table, int count, ft_rng *rng,
                                   ft_arena *arena) {
  ft_error error;
  ft_graph *graph;
  uint32_t value[SPEC_MAX];
  bool done[SPEC_MAX] = {false};
  cr_assert_leq(count, SPEC_MAX);
  cr_assert_eq(ft_graph_create(arena, "test", &graph, &error), FT_OK);
  for (int left = count; left > 0; left--) {
    int start = rng ? (int)ft_rng_below(rng, (uint64_t)count) : 0, at = start;
    while (done[at] || !spec_ready(&table[at], done)) at = (at + 1) % count;
    char name[32];
    snprintf(name, sizeof name, "n%llu",
             rng ? (unsigned long long)ft_rng_u64(rng) : (unsigned long long)at);
    value[at] = spec_add(graph, &table[at], value, name);
    done[at] = true;
  }
  for (int i = 0; i < count; i++)
    if (table[i].is_output)
      cr_assert_eq(ft_graph_add_output(graph, "out", value[i], &error), FT_OK);
  cr_assert_eq(ft_graph_finish(graph, &error), FT_OK, "%s", error.text);
  ft_graph_check(graph);
  return graph;
}

// A random table of |primitives| over f32 4x8 with two inputs; sinks are outputs.
static inline int spec_random(spec *table, int primitives, ft_rng *rng) {
  static const ft_op ops[] = {FT_OP_EXP, FT_OP_TANH, FT_OP_NEG, FT_OP_ADD,
                              FT_OP_SUB, FT_OP_MUL,  FT_OP_MAX, FT_OP_REDUCE_SUM};
  int count = 0;
  bool read[SPEC_MAX] = {false};
  for (int i = 0; i < 2; i++)
    table[count++] = (spec){.op = SPEC_INPUT, .shape = SHAPE(4, 8)};
  for (int i = 0; i < primitives; i++) {
    spec s = {.op = (int)ops[ft_rng_below(rng, sizeof ops / sizeof *ops)]};
    s.attr.axes = ft_op_describe((ft_op)s.op)->class == FT_CLASS_R ? 2 : 0;
    for (int k = 0; k < ft_op_describe((ft_op)s.op)->arity; k++) {
      s.in[k] = (int)ft_rng_below(rng, (uint64_t)count);
      read[s.in[k]] = true;
    }
    table[count++] = s;
  }
  for (int i = 2; i < count; i++) table[i].is_output = !read[i];
  return count;
}

#endif
