// Random groups x random schedules against the double-precision interpreter.
#include "trying.h"

enum { MAX_CASES = 512, MAX_POOL = 24 };

// ---- random graphs
// ---------------------------------------------------------------------

typedef struct maker {
  ft_rng rng;
  ft_arena *arena;
  ft_graph *graph;
  ft_shape domain;
  uint32_t pool[MAX_POOL], count;
} maker;

static uint64_t below(maker *m, uint64_t n) {
  return ft_rng_below(&m->rng, n);
}
static bool chance(maker *m, uint64_t percent) {
  return below(m, 100) < percent;
}

static ft_shape random_domain(maker *m) {
  static const int64_t dims[] = {1, 2, 3, 5, 7, 8, 16, 17, 33, 64, 100, 131, 300, 1025};
  ft_shape s = {.rank = (uint8_t)(below(m, 5))};
  int64_t elements = 1;
  for (uint8_t i = 0; i < s.rank; i++) {
    do s.dim[i] = dims[below(m, sizeof dims / sizeof *dims)];
    while (elements * s.dim[i] > 30000);
    elements *= s.dim[i];
  }
  if (s.rank && chance(m, 3)) s.dim[below(m, s.rank)] = 0;
  return s;
}

// The domain, with some dims 1 or leading ones left out.
static ft_shape random_operand(maker *m) {
  ft_shape s = m->domain;
  if (s.rank && chance(m, 20)) {
    for (uint8_t i = 1; i < s.rank; i++) s.dim[i - 1] = s.dim[i];
    s.dim[--s.rank] = 0;
  }
  for (uint8_t i = 0; i < s.rank; i++) {
    if (chance(m, 15)) s.dim[i] = 1;
  }
  return s;
}

static ft_dtype random_dtype(maker *m) {
  static const ft_dtype types[] = {FT_F32, FT_F32, FT_F32, FT_F32,  FT_F32,
                                   FT_F32, FT_I32, FT_I64, FT_BOOL, FT_F64};
  return types[below(m, sizeof types / sizeof *types)];
}

static void keep(maker *m, uint32_t value) {
  if (m->count < MAX_POOL) m->pool[m->count++] = value;
}

static void add_input(maker *m) {
  ft_shape s = random_operand(m);
  uint32_t value;
  const char *name = ft_arena_printf(m->arena, "x%u", m->graph->input_count);
  cr_assert_eq(ft_graph_add_input(m->graph, name, random_dtype(m), &s, &value, NULL),
               FT_OK);
  keep(m, value);
}

static const ft_value *value_of(const maker *m, uint32_t v) {
  return &m->graph->value[v];
}

static uint32_t emit(maker *m, ft_op op, const uint32_t *in, uint32_t count,
                     const ft_attr *attr) {
  uint32_t out;
  ft_error error;
  cr_assert_eq(ft_graph_emit(m->graph, op, in, count, attr, &out, &error), FT_OK, "%s",
               error.text);
  keep(m, out);
  return out;
}

static void add_unary(maker *m, uint32_t v) {
  static const ft_op floats[] = {FT_OP_NEG,     FT_OP_ABS,   FT_OP_SQRT, FT_OP_RECIPROCAL,
                                 FT_OP_EXP,     FT_OP_LOG,   FT_OP_ERF,  FT_OP_TANH,
                                 FT_OP_SIGMOID, FT_OP_SIN,   FT_OP_COS,  FT_OP_FLOOR,
                                 FT_OP_CEIL,    FT_OP_ROUND, FT_OP_SIGN, FT_OP_RELU};
  static const ft_op integers[] = {FT_OP_NEG, FT_OP_ABS, FT_OP_SIGN, FT_OP_RELU};
  ft_dtype dtype = value_of(m, v)->dtype;
  if (dtype == FT_BOOL)
    emit(m, FT_OP_NOT, &v, 1, NULL);
  else if (ft_dtype_is_float(dtype))
    emit(m, floats[below(m, 16)], &v, 1, NULL);
  else
    emit(m, integers[below(m, 4)], &v, 1, NULL);
}

static uint32_t partner(maker *m, uint32_t v) {
  for (uint32_t tries = 0; tries < 20; tries++) {
    uint32_t w = m->pool[below(m, m->count)];
    ft_shape s;
    if (value_of(m, w)->dtype == value_of(m, v)->dtype &&
        ft_shape_broadcast(&value_of(m, v)->shape, &value_of(m, w)->shape, &s, NULL) ==
            FT_OK)
      return w;
  }
  return v;
}

static uint32_t scalar(maker *m, ft_dtype dtype) {
  static const double numbers[] = {0.5, 2, -1, 3, 0, 1.25, -0.5, 7};
  uint32_t v;
  cr_assert_eq(ft_graph_add_scalar(m->graph, dtype, numbers[below(m, 8)], &v, NULL),
               FT_OK);
  return v;
}

static void add_binary(maker *m, uint32_t v) {
  static const ft_op numeric[] = {FT_OP_ADD,        FT_OP_SUB, FT_OP_MUL,   FT_OP_DIV,
                                  FT_OP_MIN,        FT_OP_MAX, FT_OP_EQUAL, FT_OP_LESS,
                                  FT_OP_LESS_EQUAL, FT_OP_POW};
  static const ft_op logic[] = {FT_OP_AND, FT_OP_OR, FT_OP_EQUAL};
  ft_dtype dtype = value_of(m, v)->dtype;
  uint32_t in[2] = {v, partner(m, v)};
  if (dtype == FT_BOOL) {
    emit(m, logic[below(m, 3)], in, 2, NULL);
    return;
  }
  if (chance(m, 25)) in[1] = scalar(m, dtype);
  if (chance(m, 10)) in[0] = in[1], in[1] = v;
  emit(m, numeric[below(m, 10)], in, 2, NULL);
}

static void add_where(maker *m, uint32_t v) {
  for (uint32_t i = 0; i < m->count; i++) {
    uint32_t c = m->pool[i];
    ft_shape s;
    if (value_of(m, c)->dtype != FT_BOOL || c == v) continue;
    uint32_t in[3] = {c, v, partner(m, v)};
    if (ft_shape_broadcast(&value_of(m, c)->shape, &value_of(m, v)->shape, &s, NULL) !=
            FT_OK ||
        ft_shape_broadcast(&s, &value_of(m, in[2])->shape, &s, NULL) != FT_OK)
      continue;
    emit(m, FT_OP_WHERE, in, 3, NULL);
    return;
  }
  add_unary(m, v);
}

static void add_cast(maker *m, uint32_t v) {
  ft_attr attr = {.to = random_dtype(m)};
  emit(m, FT_OP_CAST, &v, 1, &attr);
}

static void add_transpose(maker *m, uint32_t v) {
  ft_attr attr = {0};
  uint8_t rank = value_of(m, v)->shape.rank;
  for (uint8_t i = 0; i < rank; i++) {
    uint8_t at = (uint8_t)below(m, i + 1u);
    attr.perm[i] = attr.perm[at];
    attr.perm[at] = i;
  }
  emit(m, FT_OP_TRANSPOSE, &v, 1, &attr);
}

static void add_broadcast(maker *m, uint32_t v) {
  ft_attr attr = {.shape = m->domain};
  ft_shape s;
  const ft_shape *shape = &value_of(m, v)->shape;
  if (ft_shape_broadcast(shape, &m->domain, &s, NULL) != FT_OK ||
      !ft_shape_equal(&s, &m->domain))
    return;
  emit(m, FT_OP_BROADCAST, &v, 1, &attr);
}

static void add_reduce(maker *m, uint32_t v) {
  static const ft_op ops[] = {FT_OP_REDUCE_SUM, FT_OP_REDUCE_SUM, FT_OP_REDUCE_MAX,
                              FT_OP_REDUCE_MIN, FT_OP_REDUCE_PROD};
  const ft_value *value = value_of(m, v);
  if (value->dtype == FT_BOOL || !value->shape.rank) {
    add_unary(m, v);
    return;
  }
  uint32_t all = (1u << value->shape.rank) - 1;
  ft_attr attr = {.axes = 1u << (value->shape.rank - 1)};  // mostly the last
  if (chance(m, 40)) attr.axes = (uint32_t)below(m, all) + 1;
  emit(m, ops[below(m, 5)], &v, 1, &attr);
}

// Two neighbouring dims merged, or one split.
static void add_view(maker *m, uint32_t v) {
  ft_shape s = value_of(m, v)->shape;
  if (s.rank >= 2 && chance(m, 50)) {
    uint8_t at = (uint8_t)below(m, s.rank - 1u);
    s.dim[at] *= s.dim[at + 1];
    for (uint8_t i = (uint8_t)(at + 1); i + 1 < s.rank; i++) s.dim[i] = s.dim[i + 1];
    s.dim[--s.rank] = 0;
  } else if (s.rank && s.rank < FT_MAX_RANK) {
    uint8_t at = (uint8_t)below(m, s.rank);
    int64_t factor = s.dim[at] % 2 == 0 ? 2 : s.dim[at] % 5 == 0 ? 5 : 1;
    for (uint8_t i = s.rank++; i > at; i--) s.dim[i] = s.dim[i - 1];
    s.dim[at + 1] = s.dim[at] / factor;
    s.dim[at] = factor;
  }
  uint32_t view;
  cr_assert_eq(ft_graph_view(m->graph, v, &s, &view, NULL), FT_OK);
  keep(m, view);
}

static void add_step(maker *m) {
  // Later values more often, so that chains grow.
  uint32_t v = m->pool[chance(m, 60) ? m->count - 1 : below(m, m->count)];
  uint64_t draw = below(m, 100);
  if (draw < 30)
    add_unary(m, v);
  else if (draw < 62)
    add_binary(m, v);
  else if (draw < 68)
    add_where(m, v);
  else if (draw < 74)
    add_cast(m, v);
  else if (draw < 78)
    add_transpose(m, v);
  else if (draw < 82)
    add_view(m, v);
  else if (draw < 86)
    add_broadcast(m, v);
  else
    add_reduce(m, v);
}

static bool is_read(const ft_graph *g, uint32_t root) {
  for (uint32_t i = 0; i < g->primitive_count; i++) {
    for (uint8_t k = 0; k < g->primitive[i].input_count; k++) {
      if (g->value[g->primitive[i].input[k]].root == root) return true;
    }
  }
  return false;
}

static ft_graph *random_graph(uint64_t seed, ft_arena *arena) {
  maker m = {.rng = ft_rng_seed(seed), .arena = arena};
  cr_assert_eq(ft_graph_create(arena, "random", &m.graph, NULL), FT_OK);
  m.domain = random_domain(&m);
  for (uint64_t i = 0, n = 1 + below(&m, 3); i < n; i++) add_input(&m);
  cr_assert_eq(ft_graph_begin_operator(m.graph, "n", "Random", "", NULL), FT_OK);
  for (uint64_t i = 0, n = 1 + below(&m, 8); i < n; i++) add_step(&m);
  for (uint32_t i = 0; i < m.count; i++) {
    const ft_value *v = value_of(&m, m.pool[i]);
    if (v->role != FT_ROLE_COMPUTED || v->root != m.pool[i]) continue;
    if (is_read(m.graph, v->root) && !chance(&m, 15)) continue;
    const char *name = ft_arena_printf(arena, "y%u", i);
    cr_assert_eq(ft_graph_add_output(m.graph, name, m.pool[i], NULL), FT_OK);
  }
  cr_assert_eq(ft_graph_finish(m.graph, NULL), FT_OK);
  return m.graph;
}

// ---- cases

// Whole graphs where a tactic takes them, else a random part.
static uint32_t make_cases(session *s, uint64_t seed, uint32_t count, test_case *cases) {
  uint32_t made = 0;
  for (; made < count; seed++) {
    ft_graph *graph = random_graph(seed, s->arena);
    if (!graph->primitive_count) continue;
    if (make_case(s, graph, 0, graph->primitive_count, seed, &cases[made])) {
      s->accepted++;
      made++;
      continue;
    }
    s->refused++;
    uint32_t first = (uint32_t)ft_rng_below(&s->rng, graph->primitive_count);
    uint32_t rest = graph->primitive_count - first;
    uint32_t length = 1 + (uint32_t)ft_rng_below(&s->rng, rest);
    while (!make_case(s, graph, first, length, seed, &cases[made])) length--;
    made++;
  }
  return made;
}

static uint32_t setting(const char *name, uint32_t fallback) {
  const char *text = getenv(name);
  return text ? (uint32_t)strtoul(text, NULL, 10) : fallback;
}

static void run_random(uint64_t seed, uint32_t count) {
  session s = session_open(seed);
  session_start(&s);
  test_case *cases = FT_NEW_ARRAY(s.arena, test_case, count);
  make_cases(&s, seed, count, cases);
  uint64_t began = ft_clock_ns();
  for (uint32_t i = 0; i < count; i += 64)
    run_batch(&s, cases + i, count - i < 64 ? count - i : 64);
  fprintf(stderr, "%u kernels, %u whole graphs, %u refused, %.1f s\n", s.kernels,
          s.accepted, s.refused, (double)(ft_clock_ns() - began) / 1e9);
  cr_assert_gt(s.accepted, s.refused / 2);
  session_close(&s);
}

Test(codegen_random, kernels_agree_with_the_interpreter, .timeout = 280) {
  run_random(setting("FT_RANDOM_SEED", 1000), setting("FT_RANDOM_KERNELS", 192));
}

Test(codegen_random, other_kernels_agree_with_the_interpreter, .timeout = 280) {
  run_random(setting("FT_RANDOM_SEED", 0) + 900000, setting("FT_RANDOM_KERNELS", 192));
}
