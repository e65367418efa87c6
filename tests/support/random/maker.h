// maker - a random graph in the making: a pool of values and the steps that add to it.
// Private to random_group.c and its parts. Every draw is a statement of its own, so that
// a seed means one graph whatever the compiler evaluates first. What must not fail
// aborts, naming the call: a broken generator is no finding.
#ifndef FT_TESTS_RANDOM_MAKER_H
#define FT_TESTS_RANDOM_MAKER_H

#include "core/rng.h"
#include "graph/graph.h"

enum { MAKER_POOL = 20, MAKER_ELEMENTS = 30000, MAKER_TERMS = 4000000 };

typedef struct maker {
  ft_rng rng;
  ft_arena *arena;
  ft_graph *graph;
  ft_shape domain;  // pointwise work: operands broadcast to it
  uint32_t pool[MAKER_POOL], count;
  uint32_t names;
  ft_dtype single;  // what most floats are: F32, or a short float
} maker;

void maker_must(ft_status status, const char *what, const ft_error *error);

uint64_t maker_below(maker *m, uint64_t n);
bool maker_chance(maker *m, uint64_t percent);
int64_t maker_between(maker *m, int64_t low, int64_t high);

int64_t maker_dim(maker *m);
// At most |most| elements; some dims are rarely 0.
ft_shape maker_shape(maker *m, uint8_t rank, int64_t most);
ft_dtype maker_dtype(maker *m);
ft_dtype maker_single(maker *m);
ft_dtype maker_number(maker *m);  // not bool

const ft_value *maker_value(const maker *m, uint32_t v);
uint32_t maker_keep(maker *m, uint32_t value);
uint32_t maker_input(maker *m, ft_dtype dtype, ft_shape shape);
// A number that kernels meet often, as an immediate.
uint32_t maker_scalar(maker *m, ft_dtype dtype);
uint32_t maker_fixed(maker *m, ft_dtype dtype, double number);
uint32_t maker_emit(maker *m, ft_op op, uint32_t count, const uint32_t *in,
                    const ft_attr *attr);
uint32_t maker_one(maker *m, ft_op op, uint32_t a);
uint32_t maker_two(maker *m, ft_op op, uint32_t a, uint32_t b);
uint32_t maker_view(maker *m, uint32_t v, ft_shape shape);
uint32_t maker_reduce(maker *m, ft_op op, uint32_t v, uint32_t axes);
// A value to go on with: the last one more often, so that chains grow.
uint32_t maker_pick(maker *m);

// ---- steps: each adds what it made to the pool, or leaves it alone ------------------
typedef void maker_step(maker *m, uint32_t v);
maker_step maker_pointwise, maker_binary, maker_rearrange,
    maker_reduction;                                // pointwise.c
maker_step maker_remap;                             // remaps.c
maker_step maker_window, maker_conv, maker_matmul;  // products.c
maker_step maker_norm;                              // norms.c

#endif
