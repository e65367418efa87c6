// Steps of elementwise work, views, transposes, broadcasts and plain reductions.
#include "tests/support/random/maker.h"

static void add_unary(maker *m, uint32_t v) {
  static const ft_op floats[] = {FT_OP_NEG,     FT_OP_ABS,   FT_OP_SQRT, FT_OP_RECIPROCAL,
                                 FT_OP_EXP,     FT_OP_LOG,   FT_OP_ERF,  FT_OP_TANH,
                                 FT_OP_SIGMOID, FT_OP_SIN,   FT_OP_COS,  FT_OP_FLOOR,
                                 FT_OP_CEIL,    FT_OP_ROUND, FT_OP_SIGN, FT_OP_RELU};
  static const ft_op integers[] = {FT_OP_NEG, FT_OP_ABS, FT_OP_SIGN, FT_OP_RELU};
  ft_dtype dtype = maker_value(m, v)->dtype;
  if (dtype == FT_BOOL)
    maker_one(m, FT_OP_NOT, v);
  else if (ft_dtype_is_float(dtype))
    maker_one(m, floats[maker_below(m, 16)], v);
  else
    maker_one(m, integers[maker_below(m, 4)], v);
}

// Small enough, and a shape at all.
static bool broadcasts(const maker *m, const ft_shape *a, uint32_t b, ft_shape *out) {
  return ft_shape_broadcast(a, &maker_value(m, b)->shape, out, NULL) == FT_OK &&
         ft_shape_elements(out) <= 20 * MAKER_ELEMENTS;
}

static uint32_t partner(maker *m, uint32_t v) {
  for (uint32_t tries = 0; tries < 20; tries++) {
    uint32_t w = m->pool[maker_below(m, m->count)];
    ft_shape s;
    if (maker_value(m, w)->dtype == maker_value(m, v)->dtype &&
        broadcasts(m, &maker_value(m, v)->shape, w, &s))
      return w;
  }
  return v;
}

// A new operand: |v|'s shape with some dims 1, or a leading one left out.
static uint32_t companion(maker *m, uint32_t v) {
  ft_shape s = maker_value(m, v)->shape;
  if (s.rank && maker_chance(m, 25)) {
    for (uint8_t i = 1; i < s.rank; i++) s.dim[i - 1] = s.dim[i];
    s.dim[--s.rank] = 0;
  }
  for (uint8_t i = 0; i < s.rank; i++)
    if (maker_chance(m, 30)) s.dim[i] = 1;
  return maker_keep(m, maker_input(m, maker_value(m, v)->dtype, s));
}

void maker_binary(maker *m, uint32_t v) {
  static const ft_op numeric[] = {FT_OP_ADD,   FT_OP_SUB,  FT_OP_MUL,        FT_OP_ADD,
                                  FT_OP_MUL,   FT_OP_DIV,  FT_OP_MIN,        FT_OP_MAX,
                                  FT_OP_EQUAL, FT_OP_LESS, FT_OP_LESS_EQUAL, FT_OP_POW,
                                  FT_OP_FMOD};
  static const ft_op logic[] = {FT_OP_AND, FT_OP_OR, FT_OP_EQUAL};
  ft_dtype dtype = maker_value(m, v)->dtype;
  uint64_t draw = maker_below(m, 100);
  uint32_t other;
  if (draw < 25 && dtype != FT_BOOL)
    other = maker_scalar(m, dtype);
  else if (draw < 40)
    other = companion(m, v);
  else
    other = partner(m, v);
  bool is_swapped = maker_chance(m, 15);
  uint32_t a = is_swapped ? other : v, b = is_swapped ? v : other;
  if (dtype == FT_BOOL)
    maker_two(m, logic[maker_below(m, 3)], a, b);
  else
    maker_two(m, numeric[maker_below(m, sizeof numeric / sizeof *numeric)], a, b);
}

static void add_where(maker *m, uint32_t v) {
  for (uint32_t i = 0; i < m->count; i++) {
    uint32_t c = m->pool[i];
    ft_shape s, t;
    if (maker_value(m, c)->dtype != FT_BOOL || c == v) continue;
    uint32_t other = partner(m, v), in[3] = {c, v, other};
    if (!broadcasts(m, &maker_value(m, v)->shape, c, &s) || !broadcasts(m, &s, other, &t))
      continue;
    maker_emit(m, FT_OP_WHERE, 3, in, NULL);
    return;
  }
  add_unary(m, v);
}

static void add_cast(maker *m, uint32_t v) {
  ft_attr attr = {.to = maker_dtype(m)};
  maker_emit(m, FT_OP_CAST, 1, &v, &attr);
}

static maker_step *const elementwise[] = {
    add_unary,    add_unary,    add_unary,    add_unary, maker_binary, maker_binary,
    maker_binary, maker_binary, maker_binary, add_where, add_cast};

void maker_pointwise(maker *m, uint32_t v) {
  elementwise[maker_below(m, sizeof elementwise / sizeof *elementwise)](m, v);
}

// ---- the same elements elsewhere ----------------------------------------------------

static void add_transpose(maker *m, uint32_t v) {
  ft_attr attr = {0};
  uint8_t rank = maker_value(m, v)->shape.rank;
  for (uint8_t i = 0; i < rank; i++) {
    uint8_t at = (uint8_t)maker_below(m, i + 1u);
    attr.perm[i] = attr.perm[at];
    attr.perm[at] = i;
  }
  maker_emit(m, FT_OP_TRANSPOSE, 1, &v, &attr);
}

static void add_broadcast(maker *m, uint32_t v) {
  ft_attr attr = {.shape = m->domain};
  ft_shape s;
  const ft_shape *shape = &maker_value(m, v)->shape;
  if (ft_shape_broadcast(shape, &m->domain, &s, NULL) != FT_OK ||
      !ft_shape_equal(&s, &m->domain))
    return;
  maker_emit(m, FT_OP_BROADCAST, 1, &v, &attr);
}

static void merge_dims(ft_shape *s, uint8_t at) {
  s->dim[at] *= s->dim[at + 1];
  for (uint8_t i = (uint8_t)(at + 1); i + 1 < s->rank; i++) s->dim[i] = s->dim[i + 1];
  s->dim[--s->rank] = 0;
}

static void split_dim(ft_shape *s, uint8_t at) {
  int64_t factor = s->dim[at] % 2 == 0 ? 2 : s->dim[at] % 5 == 0 ? 5 : 1;
  for (uint8_t i = s->rank++; i > at; i--) s->dim[i] = s->dim[i - 1];
  s->dim[at + 1] = s->dim[at] / factor;
  s->dim[at] = factor;
}

static void add_view(maker *m, uint32_t v) {
  ft_shape s = maker_value(m, v)->shape;
  bool merges = maker_chance(m, 50);
  if (s.rank >= 2 && merges)
    merge_dims(&s, (uint8_t)maker_below(m, s.rank - 1u));
  else if (s.rank && s.rank < FT_MAX_RANK)
    split_dim(&s, (uint8_t)maker_below(m, s.rank));
  maker_view(m, v, s);
}

void maker_rearrange(maker *m, uint32_t v) {
  static maker_step *const steps[] = {add_transpose, add_view, add_broadcast};
  steps[maker_below(m, 3)](m, v);
}

// ---- reductions ---------------------------------------------------------------------

// Mostly the last axis, sometimes the first, some or all.
static uint32_t random_axes(maker *m, uint8_t rank) {
  uint64_t draw = maker_below(m, 100);
  uint32_t all = (1u << rank) - 1;
  if (draw < 50) return 1u << (rank - 1);
  if (draw < 70) return 1;
  if (draw < 80) return all;
  return (uint32_t)maker_below(m, all) + 1;
}

void maker_reduction(maker *m, uint32_t v) {
  static const ft_op ops[] = {FT_OP_REDUCE_SUM, FT_OP_REDUCE_SUM, FT_OP_REDUCE_SUM,
                              FT_OP_REDUCE_MAX, FT_OP_REDUCE_MIN, FT_OP_REDUCE_PROD};
  const ft_value *value = maker_value(m, v);
  if (value->dtype == FT_BOOL || !value->shape.rank) {
    add_unary(m, v);
    return;
  }
  uint32_t axes = random_axes(m, value->shape.rank);
  maker_reduce(m, ops[maker_below(m, 6)], v, axes);
}
