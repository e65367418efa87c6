// Steps of several dependent reductions over one set of axes, as the importer lowers
// them: softmax, the normalizations, argmax, moments.
#include "tests/support/random/maker.h"

// Elements under one element of a reduction over |axes|, at least 1.
static double share_of(const ft_shape *shape, uint32_t axes) {
  double n = 1;
  for (int i = 0; i < shape->rank; i++)
    if (axes >> i & 1) n *= (double)shape->dim[i];
  return n > 0 ? 1 / n : 1;
}

static uint32_t mean(maker *m, uint32_t v, uint32_t axes) {
  const ft_value *value = maker_value(m, v);
  uint32_t share = maker_fixed(m, value->dtype, share_of(&value->shape, axes));
  return maker_two(m, FT_OP_MUL, maker_reduce(m, FT_OP_REDUCE_SUM, v, axes), share);
}

// A gain or bias that broadcasts to |v|: over the reduced axes, the others, or all.
static uint32_t affine(maker *m, uint32_t v, uint32_t axes) {
  ft_shape shape = maker_value(m, v)->shape;
  uint64_t kind = maker_below(m, 3);
  for (int i = 0; i < shape.rank; i++)
    if (kind < 2 && (axes >> i & 1) == kind) shape.dim[i] = 1;
  return maker_input(m, maker_value(m, v)->dtype, shape);
}

static uint32_t scaled(maker *m, uint32_t y, uint32_t axes) {
  if (maker_chance(m, 60)) y = maker_two(m, FT_OP_MUL, y, affine(m, y, axes));
  if (maker_chance(m, 40)) y = maker_two(m, FT_OP_ADD, y, affine(m, y, axes));
  return y;
}

typedef void norm(maker *m, uint32_t v, uint32_t axes);

static void softmax(maker *m, uint32_t v, uint32_t axes) {
  uint32_t top = maker_reduce(m, FT_OP_REDUCE_MAX, v, axes);
  uint32_t e = maker_one(m, FT_OP_EXP, maker_two(m, FT_OP_SUB, v, top));
  maker_two(m, FT_OP_DIV, e, maker_reduce(m, FT_OP_REDUCE_SUM, e, axes));
}

static void log_softmax(maker *m, uint32_t v, uint32_t axes) {
  uint32_t top = maker_reduce(m, FT_OP_REDUCE_MAX, v, axes);
  uint32_t shifted = maker_two(m, FT_OP_SUB, v, top);
  uint32_t e = maker_one(m, FT_OP_EXP, shifted);
  uint32_t sum = maker_reduce(m, FT_OP_REDUCE_SUM, e, axes);
  maker_two(m, FT_OP_SUB, shifted, maker_one(m, FT_OP_LOG, sum));
}

static uint32_t inverse_deviation(maker *m, uint32_t d, uint32_t axes) {
  uint32_t variance = mean(m, maker_two(m, FT_OP_MUL, d, d), axes);
  uint32_t epsilon = maker_fixed(m, maker_value(m, d)->dtype, 1e-5);
  uint32_t safe = maker_two(m, FT_OP_ADD, variance, epsilon);
  return maker_one(m, FT_OP_RECIPROCAL, maker_one(m, FT_OP_SQRT, safe));
}

static void layer_norm(maker *m, uint32_t v, uint32_t axes) {
  uint32_t d = maker_two(m, FT_OP_SUB, v, mean(m, v, axes));
  uint32_t y = maker_two(m, FT_OP_MUL, d, inverse_deviation(m, d, axes));
  scaled(m, y, axes);
}

static void rms_norm(maker *m, uint32_t v, uint32_t axes) {
  uint32_t y = maker_two(m, FT_OP_MUL, v, inverse_deviation(m, v, axes));
  scaled(m, y, axes);
}

// m + log(sum(exp(x - m))), with 0 for an infinite m.
static void log_sum_exp(maker *m, uint32_t v, uint32_t axes) {
  ft_dtype dtype = maker_value(m, v)->dtype;
  uint32_t top = maker_reduce(m, FT_OP_REDUCE_MAX, v, axes);
  uint32_t infinity = maker_fixed(m, dtype, (double)__builtin_inff());
  uint32_t lost = maker_two(m, FT_OP_EQUAL, maker_one(m, FT_OP_ABS, top), infinity);
  uint32_t in[3] = {lost, maker_fixed(m, dtype, 0), top};
  uint32_t base = maker_emit(m, FT_OP_WHERE, 3, in, NULL);
  uint32_t e = maker_one(m, FT_OP_EXP, maker_two(m, FT_OP_SUB, v, base));
  uint32_t sum = maker_reduce(m, FT_OP_REDUCE_SUM, e, axes);
  maker_two(m, FT_OP_ADD, base, maker_one(m, FT_OP_LOG, sum));
}

static uint32_t positions(maker *m, int64_t count, int axis, uint8_t rank) {
  ft_shape shape = {.rank = rank};
  for (uint8_t i = 0; i < rank; i++) shape.dim[i] = i == axis ? count : 1;
  ft_tensor tensor;
  ft_error error;
  void *data;
  uint32_t value;
  maker_must(ft_tensor_alloc(FT_I64, &shape, m->arena, &tensor, &data, &error), "iota",
             &error);
  for (int64_t i = 0; i < count; i++) ft_element_set_i64(FT_I64, data, i, i);
  const char *name = ft_arena_printf(m->arena, "iota%u", m->names++);
  maker_must(ft_graph_add_constant(m->graph, name, &tensor, &value, &error), "iota",
             &error);
  return value;
}

// The first position of the largest along one axis; NaN is larger than any number.
static void arg_max(maker *m, uint32_t v, uint32_t axes) {
  int axis = __builtin_ctz(axes);
  ft_shape shape = maker_value(m, v)->shape;
  bool is_least = maker_chance(m, 30);
  ft_op op = is_least ? FT_OP_REDUCE_MIN : FT_OP_REDUCE_MAX;
  uint32_t extreme = maker_reduce(m, op, v, 1u << axis);
  uint32_t hit = maker_two(m, FT_OP_EQUAL, v, extreme);
  uint32_t nan = maker_one(m, FT_OP_NOT, maker_two(m, FT_OP_EQUAL, v, v));
  uint32_t in[3] = {maker_two(m, FT_OP_OR, hit, nan),
                    positions(m, shape.dim[axis], axis, shape.rank),
                    maker_fixed(m, FT_I64, (double)shape.dim[axis])};
  uint32_t places = maker_emit(m, FT_OP_WHERE, 3, in, NULL);
  maker_reduce(m, FT_OP_REDUCE_MIN, places, 1u << axis);
}

// Sum, largest and sum of squares of one read.
static void moments(maker *m, uint32_t v, uint32_t axes) {
  maker_reduce(m, FT_OP_REDUCE_SUM, maker_two(m, FT_OP_MUL, v, v), axes);
  maker_reduce(m, FT_OP_REDUCE_MAX, v, axes);
  mean(m, v, axes);
}

static uint32_t trailing(maker *m, uint8_t rank) {
  uint32_t first = (uint32_t)maker_below(m, rank);
  return ((1u << rank) - 1) & ~((1u << first) - 1);
}

static uint32_t norm_axes(maker *m, uint8_t rank) {
  uint64_t draw = maker_below(m, 100);
  if (draw < 45) return 1u << (rank - 1);
  if (draw < 65) return 1u << maker_below(m, rank);
  if (draw < 85) return trailing(m, rank);
  return (uint32_t)maker_below(m, (1u << rank) - 1) + 1;
}

// |v| as float and with an axis to reduce.
static uint32_t prepared(maker *m, uint32_t v) {
  ft_shape shape = maker_value(m, v)->shape;
  if (!shape.rank) {
    ft_shape new = maker_shape(m, 2, MAKER_ELEMENTS);
    v = maker_input(m, maker_single(m), new);
  }
  if (ft_dtype_is_float(maker_value(m, v)->dtype)) return v;
  return maker_emit(m, FT_OP_CAST, 1, &v, &(ft_attr){.to = maker_single(m)});
}

void maker_norm(maker *m, uint32_t v) {
  static norm *const norms[] = {softmax,  log_softmax, layer_norm, layer_norm,
                                rms_norm, log_sum_exp, arg_max,    moments};
  v = prepared(m, v);
  uint32_t axes = norm_axes(m, maker_value(m, v)->shape.rank);
  norms[maker_below(m, sizeof norms / sizeof *norms)](m, v, axes);
}
