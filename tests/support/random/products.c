// Steps of windows and contractions.
#include "tests/support/random/maker.h"

// Windows over the spatial dims of |x|, and what is left of them.
static void choose_windows(maker *m, const ft_shape *x, ft_attr *attr) {
  for (int i = 0; i + 2 < x->rank; i++) {
    int64_t widest = maker_chance(m, 10) ? 9 : 3;
    attr->window[i] = maker_between(m, 1, widest);
    attr->stride[i] = maker_chance(m, 60) ? 1 : maker_between(m, 1, 3);
    attr->dilation[i] = maker_chance(m, 70) ? 1 : maker_between(m, 1, 3);
    attr->start[i] = maker_chance(m, 40) ? 0 : maker_between(m, 0, 3);
    int64_t after = maker_chance(m, 40) ? 0 : maker_between(m, 0, 3);
    int64_t reach = (attr->window[i] - 1) * attr->dilation[i];
    int64_t room = x->dim[i + 2] + attr->start[i] + after - reach - 1;
    attr->shape.dim[i + 2] = room < 0 ? 0 : room / attr->stride[i] + 1;
  }
}

// |v| when windows can lie in it, else a new input.
static uint32_t image(maker *m, uint32_t v) {
  const ft_value *value = maker_value(m, v);
  if (value->shape.rank >= 3 && value->shape.rank <= 5 && value->dtype != FT_BOOL &&
      ft_shape_elements(&value->shape) <= MAKER_ELEMENTS)
    return v;
  ft_dtype dtype = maker_number(m);
  uint8_t rank = (uint8_t)maker_between(m, 3, 5);
  return maker_input(m, dtype, maker_shape(m, rank, MAKER_ELEMENTS / 3));
}

void maker_window(maker *m, uint32_t v) {
  v = image(m, v);
  ft_shape x = maker_value(m, v)->shape;
  ft_attr attr = {.shape = x};
  choose_windows(m, &x, &attr);
  ft_op op = maker_chance(m, 50) ? FT_OP_WINDOW_MAX : FT_OP_WINDOW_SUM;
  maker_emit(m, op, 1, &v, &attr);
}

// The bias of |channels| channels, as an ADD.
static void add_bias(maker *m, uint32_t y) {
  ft_shape shape = {.rank = (uint8_t)(maker_value(m, y)->shape.rank - 1)};
  for (uint8_t i = 0; i < shape.rank; i++) shape.dim[i] = 1;
  shape.dim[0] = maker_value(m, y)->shape.dim[1];
  maker_two(m, FT_OP_ADD, y, maker_input(m, maker_value(m, y)->dtype, shape));
}

void maker_conv(maker *m, uint32_t v) {
  v = image(m, v);
  ft_shape x = maker_value(m, v)->shape, w = {.rank = x.rank};
  ft_attr attr = {.shape = x, .groups = 1};
  choose_windows(m, &x, &attr);
  if (x.dim[1] && maker_chance(m, 30)) attr.groups = x.dim[1];
  if (x.dim[1] % 2 == 0 && x.dim[1] && maker_chance(m, 30)) attr.groups = 2;
  int64_t share = maker_chance(m, 15) ? 20 : 4;
  w.dim[0] = attr.groups * maker_between(m, 1, share);
  w.dim[1] = x.dim[1] / attr.groups;
  double terms = (double)(w.dim[1] * w.dim[0] * x.dim[0]);
  for (int i = 2; i < x.rank; i++) {
    w.dim[i] = attr.window[i - 2];
    terms *= (double)(w.dim[i] * attr.shape.dim[i]);
  }
  attr.shape.dim[1] = w.dim[0];
  if (terms > MAKER_TERMS) return;
  uint32_t in[2] = {v, maker_input(m, maker_value(m, v)->dtype, w)};
  uint32_t y = maker_emit(m, FT_OP_CONV, 2, in, &attr);
  if (maker_chance(m, 50)) add_bias(m, y);
}

// |v| with its last two dims swapped, half of the time as a primitive of its own.
static uint32_t operand_like(maker *m, ft_dtype dtype, ft_shape shape) {
  if (!maker_chance(m, 30)) return maker_input(m, dtype, shape);
  ft_shape flipped = shape;
  flipped.dim[shape.rank - 1] = shape.dim[shape.rank - 2];
  flipped.dim[shape.rank - 2] = shape.dim[shape.rank - 1];
  ft_attr attr = {0};
  for (uint8_t i = 0; i < shape.rank; i++) attr.perm[i] = i;
  attr.perm[shape.rank - 1] = (uint8_t)(shape.rank - 2);
  attr.perm[shape.rank - 2] = (uint8_t)(shape.rank - 1);
  uint32_t w = maker_input(m, dtype, flipped);
  return maker_emit(m, FT_OP_TRANSPOSE, 1, &w, &attr);
}

// The other operand of a product with |a|: on the right, or on the left.
static ft_shape other_shape(maker *m, const ft_shape *a, bool is_left, int64_t n) {
  ft_shape b = {.rank = (uint8_t)maker_between(m, 2, a->rank)};
  for (uint8_t i = 0; i + 2 < b.rank; i++) {
    b.dim[i] = a->dim[a->rank - b.rank + i];
    if (maker_chance(m, 30)) b.dim[i] = 1;
  }
  b.dim[b.rank - 2] = is_left ? n : a->dim[a->rank - 1];
  b.dim[b.rank - 1] = is_left ? a->dim[a->rank - 2] : n;
  return b;
}

void maker_matmul(maker *m, uint32_t v) {
  const ft_value *a = maker_value(m, v);
  if (a->shape.rank < 2 || a->shape.rank > 5 || a->dtype == FT_BOOL) {
    ft_dtype number = maker_number(m);
    uint8_t rank = (uint8_t)maker_between(m, 2, 4);
    v = maker_input(m, number, maker_shape(m, rank, MAKER_ELEMENTS));
  }
  ft_shape shape = maker_value(m, v)->shape;
  ft_dtype dtype = maker_value(m, v)->dtype;
  int64_t n = maker_dim(m);
  bool is_left = maker_chance(m, 25);
  ft_shape b = other_shape(m, &shape, is_left, n);
  if ((double)ft_shape_elements(&shape) * (double)n > MAKER_TERMS) return;
  uint32_t w = operand_like(m, dtype, b), in[2] = {is_left ? w : v, is_left ? v : w};
  uint32_t y = maker_emit(m, FT_OP_MATMUL, 2, in, NULL);
  if (!maker_chance(m, 40)) return;
  ft_shape last = {.rank = 1};
  last.dim[0] = maker_value(m, y)->shape.dim[maker_value(m, y)->shape.rank - 1];
  maker_two(m, FT_OP_ADD, y, maker_input(m, dtype, last));
}
