// one_primitive - a graph of one primitive on given tensors, and what it computes.
#ifndef FT_TESTS_GRAPH_ONE_PRIMITIVE_H
#define FT_TESTS_GRAPH_ONE_PRIMITIVE_H

#include <criterion/criterion.h>
#include <math.h>

#include "graph/interpreter.h"

enum { ONE_MOST_INPUTS = 8 };

typedef struct one_primitive {
  ft_arena *arena;
  ft_graph *graph;
  ft_tensor in[ONE_MOST_INPUTS];
  uint32_t value[ONE_MOST_INPUTS], count;
  ft_error error;
} one_primitive;

static inline one_primitive one_open(ft_arena *arena) {
  one_primitive o = {.arena = arena};
  cr_assert_eq(ft_graph_create(arena, "one", &o.graph, &o.error), FT_OK);
  cr_assert_eq(ft_graph_begin_operator(o.graph, "n", "T", "", &o.error), FT_OK);
  return o;
}

// An input; |data| NULL: 0, 1, 2, ...
static inline uint32_t one_input(one_primitive *o, ft_dtype dtype, ft_shape shape,
                                 const double *data) {
  void *bytes;
  ft_tensor *t = &o->in[o->count];
  cr_assert_eq(ft_tensor_alloc(dtype, &shape, o->arena, t, &bytes, &o->error), FT_OK);
  for (int64_t i = 0; i < ft_shape_elements(&shape); i++)
    ft_element_set_f64(dtype, bytes, i, data ? data[i] : (double)i);
  cr_assert_eq(
      ft_graph_add_input(o->graph, "x", dtype, &shape, &o->value[o->count], &o->error),
      FT_OK);
  return o->value[o->count++];
}

// The status of emitting |op| on all inputs, in order.
static inline ft_status one_emit(one_primitive *o, ft_op op, const ft_attr *attr,
                                 uint32_t *out) {
  return ft_graph_emit(o->graph, op, o->value, o->count, attr, out, &o->error);
}

// Runs what one_emit made; a status, as the interpreter gave it.
static inline ft_status one_try(one_primitive *o, ft_op op, const ft_attr *attr,
                                ft_reference *out) {
  uint32_t y;
  cr_assert_eq(one_emit(o, op, attr, &y), FT_OK, "%s", o->error.text);
  cr_assert_eq(ft_graph_add_output(o->graph, "y", y, &o->error), FT_OK);
  cr_assert_eq(ft_graph_finish(o->graph, &o->error), FT_OK);
  ft_graph_check(o->graph);
  return ft_interpret_graph(o->graph, o->in, o->arena, out, &o->error);
}

static inline ft_reference one_run(one_primitive *o, ft_op op, const ft_attr *attr) {
  ft_reference out;
  cr_assert_eq(one_try(o, op, attr, &out), FT_OK, "%s", o->error.text);
  return out;
}

// The result has this shape and these elements; NaN equals NaN.
static inline void one_expect(const ft_reference *got, ft_shape shape,
                              const double *want) {
  cr_assert(ft_shape_equal(&got->shape, &shape));
  for (int64_t i = 0; i < ft_shape_elements(&shape); i++) {
    double x = got->value ? got->value[i] : (double)got->integer[i];
    bool same = x == want[i] || (isnan(x) && isnan(want[i]));
    cr_assert(same, "element %lld: %g, not %g", (long long)i, x, want[i]);
  }
}

#endif
