#include "tests/support/random/maker.h"

#include <stdio.h>
#include <stdlib.h>

void maker_must(ft_status status, const char *what, const ft_error *error) {
  if (status == FT_OK) return;
  fprintf(stderr, "random graph: %s: %s\n", what, error ? error->text : "failed");
  abort();
}

uint64_t maker_below(maker *m, uint64_t n) {
  return ft_rng_below(&m->rng, n);
}

bool maker_chance(maker *m, uint64_t percent) {
  return maker_below(m, 100) < percent;
}

int64_t maker_between(maker *m, int64_t low, int64_t high) {
  return low + (int64_t)maker_below(m, (uint64_t)(high - low + 1));
}

// ---- shapes and types ---------------------------------------------------------------

// Around vector widths, odd, 1; the longest only where there is room.
int64_t maker_dim(maker *m) {
  static const int64_t dims[] = {1,  1,  2,  3,  4,  5,  7,  8,  9,   15,  16,  17,
                                 20, 31, 32, 33, 40, 63, 64, 65, 100, 131, 300, 1025};
  return dims[maker_below(m, sizeof dims / sizeof *dims)];
}

ft_shape maker_shape(maker *m, uint8_t rank, int64_t most) {
  ft_shape s = {.rank = rank};
  int64_t elements = 1;
  for (uint8_t i = 0; i < rank; i++) {
    do s.dim[i] = maker_dim(m);
    while (elements * s.dim[i] > most);
    elements *= s.dim[i];
  }
  if (rank && maker_chance(m, 2)) s.dim[maker_below(m, rank)] = 0;
  return s;
}

ft_dtype maker_dtype(maker *m) {
  static const ft_dtype types[] = {FT_F32, FT_F32, FT_F32, FT_F32,  FT_F32, FT_F32,
                                   FT_F32, FT_I32, FT_I64, FT_BOOL, FT_F64};
  ft_dtype dtype = types[maker_below(m, sizeof types / sizeof *types)];
  return dtype == FT_F32 ? maker_single(m) : dtype;
}

// Short floats now and then meet f32.
ft_dtype maker_single(maker *m) {
  if (m->single == FT_F32 || maker_chance(m, 15)) return FT_F32;
  return m->single;
}

ft_dtype maker_number(maker *m) {
  ft_dtype dtype = maker_dtype(m);
  return dtype == FT_BOOL ? maker_single(m) : dtype;
}

// ---- values -------------------------------------------------------------------------

const ft_value *maker_value(const maker *m, uint32_t v) {
  return &m->graph->value[v];
}

uint32_t maker_keep(maker *m, uint32_t value) {
  if (m->count < MAKER_POOL)
    m->pool[m->count++] = value;
  else
    m->pool[maker_below(m, MAKER_POOL)] = value;
  return value;
}

uint32_t maker_input(maker *m, ft_dtype dtype, ft_shape shape) {
  uint32_t value;
  ft_error error;
  const char *name = ft_arena_printf(m->arena, "x%u", m->names++);
  maker_must(ft_graph_add_input(m->graph, name, dtype, &shape, &value, &error), "input",
             &error);
  return value;
}

uint32_t maker_fixed(maker *m, ft_dtype dtype, double number) {
  uint32_t v;
  ft_error error;
  maker_must(ft_graph_add_scalar(m->graph, dtype, number, &v, &error), "scalar", &error);
  return v;
}

uint32_t maker_scalar(maker *m, ft_dtype dtype) {
  static const double numbers[] = {0.5, 2, -1, 3, 0, 1.25, -0.5, 7, 1};
  return maker_fixed(m, dtype, numbers[maker_below(m, sizeof numbers / sizeof *numbers)]);
}

uint32_t maker_emit(maker *m, ft_op op, uint32_t count, const uint32_t *in,
                    const ft_attr *attr) {
  uint32_t out;
  ft_error error;
  maker_must(ft_graph_emit(m->graph, op, in, count, attr, &out, &error),
             ft_op_describe(op)->name, &error);
  return maker_keep(m, out);
}

uint32_t maker_one(maker *m, ft_op op, uint32_t a) {
  return maker_emit(m, op, 1, &a, NULL);
}

uint32_t maker_two(maker *m, ft_op op, uint32_t a, uint32_t b) {
  return maker_emit(m, op, 2, (uint32_t[]){a, b}, NULL);
}

uint32_t maker_view(maker *m, uint32_t v, ft_shape shape) {
  uint32_t view;
  ft_error error;
  maker_must(ft_graph_view(m->graph, v, &shape, &view, &error), "view", &error);
  return maker_keep(m, view);
}

uint32_t maker_reduce(maker *m, ft_op op, uint32_t v, uint32_t axes) {
  return maker_emit(m, op, 1, &v, &(ft_attr){.axes = axes});
}

uint32_t maker_pick(maker *m) {
  bool is_last = maker_chance(m, 60);
  return m->pool[is_last ? m->count - 1 : maker_below(m, m->count)];
}
