// Small graphs for the tests of codegen.
#ifndef FT_TESTS_CODEGEN_GRAPHS_H
#define FT_TESTS_CODEGEN_GRAPHS_H

#include <criterion/criterion.h>

#include "graph/group.h"

typedef struct sketch {
  ft_arena *arena;
  ft_graph *graph;
  uint32_t outputs;
} sketch;

static inline sketch sketch_open(void) {
  sketch s = {.arena = ft_arena_create(ft_allocator_system())};
  cr_assert_eq(ft_graph_create(s.arena, "g", &s.graph, NULL), FT_OK);
  cr_assert_eq(ft_graph_begin_operator(s.graph, "n", "Test", "", NULL), FT_OK);
  return s;
}

static inline void sketch_close(sketch *s) {
  ft_arena_destroy(s->arena);
}

static inline ft_shape shape_of(uint8_t rank, const int64_t *dim) {
  ft_shape shape = {.rank = rank};
  for (uint8_t i = 0; i < rank; i++) shape.dim[i] = dim[i];
  return shape;
}

#define SHAPE(...)                                                        \
  shape_of((uint8_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
           (int64_t[]){__VA_ARGS__})

static inline uint32_t input(sketch *s, ft_dtype dtype, ft_shape shape) {
  uint32_t value;
  const char *name = ft_arena_printf(s->arena, "x%u", s->graph->input_count);
  cr_assert_eq(ft_graph_add_input(s->graph, name, dtype, &shape, &value, NULL), FT_OK);
  return value;
}

static inline uint32_t scalar(sketch *s, ft_dtype dtype, double number) {
  uint32_t value;
  cr_assert_eq(ft_graph_add_scalar(s->graph, dtype, number, &value, NULL), FT_OK);
  return value;
}

static inline uint32_t apply(sketch *s, ft_op op, uint32_t count, const uint32_t *in,
                             const ft_attr *attr) {
  uint32_t value;
  ft_error error;
  cr_assert_eq(ft_graph_emit(s->graph, op, in, count, attr, &value, &error), FT_OK, "%s",
               error.text);
  return value;
}

static inline uint32_t one(sketch *s, ft_op op, uint32_t a) {
  return apply(s, op, 1, &a, NULL);
}

static inline uint32_t two(sketch *s, ft_op op, uint32_t a, uint32_t b) {
  return apply(s, op, 2, (uint32_t[]){a, b}, NULL);
}

static inline uint32_t reduce(sketch *s, ft_op op, uint32_t a, uint32_t axes) {
  return apply(s, op, 1, &a, &(ft_attr){.axes = axes});
}

static inline uint32_t transpose(sketch *s, uint32_t a) {
  return apply(s, FT_OP_TRANSPOSE, 1, &a, &(ft_attr){.perm = {1, 0}});
}

static inline uint32_t view(sketch *s, uint32_t a, ft_shape shape) {
  uint32_t value;
  cr_assert_eq(ft_graph_view(s->graph, a, &shape, &value, NULL), FT_OK);
  return value;
}

static inline void output(sketch *s, uint32_t a) {
  const char *name = ft_arena_printf(s->arena, "y%u", s->outputs++);
  cr_assert_eq(ft_graph_add_output(s->graph, name, a, NULL), FT_OK);
}

// Finishes the graph; the workload of all of it.
static inline ft_workload finish(sketch *s) {
  cr_assert_eq(ft_graph_finish(s->graph, NULL), FT_OK);
  uint32_t *list = FT_NEW_ARRAY(s->arena, uint32_t, s->graph->primitive_count);
  for (uint32_t i = 0; i < s->graph->primitive_count; i++) list[i] = i;
  ft_group group;
  ft_error error;
  cr_assert_eq(
      ft_group_make(s->graph, list, s->graph->primitive_count, s->arena, &group, &error),
      FT_OK, "%s", error.text);
  ft_workload workload;
  cr_assert_eq(ft_workload_make(&group, s->arena, &workload, &error), FT_OK, "%s",
               error.text);
  return workload;
}

// y = (x - mean(x)) / sqrt(mean((x - mean)^2) + eps) * gain, over the last axis.
static inline uint32_t layer_norm(sketch *s, uint32_t x, uint32_t gain, uint32_t axis) {
  ft_dtype dtype = s->graph->value[x].dtype;
  uint32_t n = scalar(s, dtype, 1.0 / 64);
  uint32_t mean = two(s, FT_OP_MUL, reduce(s, FT_OP_REDUCE_SUM, x, 1u << axis), n);
  uint32_t d = two(s, FT_OP_SUB, x, mean);
  uint32_t square = two(s, FT_OP_POW, d, scalar(s, dtype, 2));
  uint32_t variance =
      two(s, FT_OP_MUL, reduce(s, FT_OP_REDUCE_SUM, square, 1u << axis), n);
  uint32_t root = one(s, FT_OP_SQRT, two(s, FT_OP_ADD, variance, scalar(s, dtype, 1e-5)));
  return two(s, FT_OP_MUL, two(s, FT_OP_DIV, d, root), gain);
}

static inline uint32_t softmax(sketch *s, uint32_t x, uint32_t axis) {
  uint32_t top = reduce(s, FT_OP_REDUCE_MAX, x, 1u << axis);
  uint32_t e = one(s, FT_OP_EXP, two(s, FT_OP_SUB, x, top));
  return two(s, FT_OP_DIV, e, reduce(s, FT_OP_REDUCE_SUM, e, 1u << axis));
}

#endif
