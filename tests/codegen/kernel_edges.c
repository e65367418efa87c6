// Shapes and values at the edges, for pointwise work, each reduction and each norm, on
// every tactic that takes them and every schedule of its space: odd sizes, one row, one
// column, one element, none, a row of 2^20, rows that are -inf in part or wholly, NaN.
#include "tests/support/quick.h"
#include "trying.h"

typedef uint32_t make(sketch *k, uint32_t x, uint32_t axes);

// ---- what is computed ---------------------------------------------------------------

static uint32_t pointwise(sketch *k, uint32_t x, uint32_t axes) {
  (void)axes;
  uint32_t e = one(k, FT_OP_EXP, two(k, FT_OP_MUL, x, scalar(k, FT_F32, 0.5)));
  return two(k, FT_OP_SUB, e, one(k, FT_OP_TANH, x));
}

// exp of infinity must be infinite before anything is fused to it.
static uint32_t exp_minus_sum(sketch *k, uint32_t x, uint32_t axes) {
  uint32_t e = one(k, FT_OP_EXP, x);
  return two(k, FT_OP_SUB, e, reduce(k, FT_OP_REDUCE_SUM, e, axes));
}

static uint32_t sum(sketch *k, uint32_t x, uint32_t axes) {
  return reduce(k, FT_OP_REDUCE_SUM, x, axes);
}
static uint32_t largest(sketch *k, uint32_t x, uint32_t axes) {
  return reduce(k, FT_OP_REDUCE_MAX, x, axes);
}
static uint32_t least(sketch *k, uint32_t x, uint32_t axes) {
  return reduce(k, FT_OP_REDUCE_MIN, x, axes);
}
static uint32_t product(sketch *k, uint32_t x, uint32_t axes) {
  return reduce(k, FT_OP_REDUCE_PROD, x, axes);
}

static int64_t reduced(const sketch *k, uint32_t x, uint32_t axes) {
  const ft_shape *shape = &k->graph->value[x].shape;
  int64_t n = 1;
  for (int i = 0; i < shape->rank; i++)
    if (axes >> i & 1) n *= shape->dim[i];
  return n;
}

static uint32_t mean(sketch *k, uint32_t x, uint32_t axes) {
  int64_t n = reduced(k, x, axes);
  uint32_t share = scalar(k, FT_F32, 1 / (n ? (double)n : 1));
  return two(k, FT_OP_MUL, sum(k, x, axes), share);
}

// As the importer lowers ArgMax: the first position of the largest, NaN before numbers.
static uint32_t arg_max(sketch *k, uint32_t x, uint32_t axes) {
  int axis = __builtin_ctz(axes);
  ft_shape shape = k->graph->value[x].shape, line = {.rank = shape.rank};
  for (int i = 0; i < shape.rank; i++) line.dim[i] = i == axis ? shape.dim[i] : 1;
  ft_tensor tensor;
  void *data;
  uint32_t iota;
  cr_assert_eq(ft_tensor_alloc(FT_I64, &line, k->arena, &tensor, &data, NULL), FT_OK);
  for (int64_t i = 0; i < line.dim[axis]; i++) ft_element_set_i64(FT_I64, data, i, i);
  cr_assert_eq(ft_graph_add_constant(k->graph, "iota", &tensor, &iota, NULL), FT_OK);
  uint32_t hit = two(k, FT_OP_EQUAL, x, largest(k, x, 1u << axis));
  uint32_t nan = one(k, FT_OP_NOT, two(k, FT_OP_EQUAL, x, x));
  uint32_t in[3] = {two(k, FT_OP_OR, hit, nan), iota,
                    scalar(k, FT_I64, (double)line.dim[axis])};
  return reduce(k, FT_OP_REDUCE_MIN, apply(k, FT_OP_WHERE, 3, in, NULL), 1u << axis);
}

static uint32_t soft_max(sketch *k, uint32_t x, uint32_t axes) {
  uint32_t e = one(k, FT_OP_EXP, two(k, FT_OP_SUB, x, largest(k, x, axes)));
  return two(k, FT_OP_DIV, e, sum(k, e, axes));
}

static uint32_t log_soft_max(sketch *k, uint32_t x, uint32_t axes) {
  uint32_t d = two(k, FT_OP_SUB, x, largest(k, x, axes));
  return two(k, FT_OP_SUB, d, one(k, FT_OP_LOG, sum(k, one(k, FT_OP_EXP, d), axes)));
}

static uint32_t rms_norm(sketch *k, uint32_t x, uint32_t axes) {
  uint32_t square = mean(k, two(k, FT_OP_MUL, x, x), axes);
  uint32_t safe = two(k, FT_OP_ADD, square, scalar(k, FT_F32, 1e-5));
  return two(k, FT_OP_MUL, x, one(k, FT_OP_RECIPROCAL, one(k, FT_OP_SQRT, safe)));
}

static uint32_t deviation_norm(sketch *k, uint32_t x, uint32_t axes) {
  return rms_norm(k, two(k, FT_OP_SUB, x, mean(k, x, axes)), axes);
}

// ---- values -------------------------------------------------------------------------

typedef enum pattern { PLAIN, MASKED_PARTLY, MASKED_ROWS, NANS, INFINITE } pattern;

// Of each row (of the last dim): -inf in its last third, or wholly in every second row;
// one NaN; both infinities.
static void spoil(session *s, const ft_group *group, uint32_t i, ft_tensor *t) {
  pattern p = *(const pattern *)s->how;
  int64_t elements = ft_shape_elements(&t->shape);
  if (p == PLAIN || !elements || t->dtype != FT_F32 ||
      group->graph->value[group->input[i]].role != FT_ROLE_INPUT)
    return;
  void *data = ft_arena_memdup(s->arena, t->data, t->bytes);
  t->data = data;
  int64_t length = t->shape.dim[t->shape.rank - 1];
  for (int64_t e = 0; e < elements; e++) {
    int64_t row = e / length, at = e % length;
    if ((p == MASKED_PARTLY && at > length * 2 / 3) || (p == MASKED_ROWS && row % 2 == 0))
      ft_element_set_f64(FT_F32, data, e, -(double)INFINITY);
  }
  if (p == NANS) ft_element_set_f64(FT_F32, data, elements / 2, NAN);
  if (p != INFINITE) return;
  ft_element_set_f64(FT_F32, data, elements / 3, (double)INFINITY);
  ft_element_set_f64(FT_F32, data, elements - 1, -(double)INFINITY);
}

// ---- running ------------------------------------------------------------------------

typedef struct edges {
  session *s;
  ft_candidate *candidate;
  test_case *of;  // [most][5]: each graph with each pattern
  uint32_t *graph_of, graphs, candidates;
} edges;

enum { MOST_GRAPHS = 40, PATTERNS = INFINITE + 1, MOST_EACH = 128 };

// All candidates of y = f(x), x of |shape|, and what they must give.
static void add_graph(edges *e, make *f, ft_shape shape, uint32_t axes) {
  sketch k = sketch_open();
  uint32_t x = input(&k, FT_F32, shape);
  output(&k, f(&k, x, axes));
  cr_assert_eq(ft_graph_finish(k.graph, NULL), FT_OK);
  if (!k.graph->primitive_count) return;  // a reduction over one element is a view
  cr_assert_lt(e->graphs, MOST_GRAPHS);
  test_case *c = e->of + e->graphs * PATTERNS;
  for (int p = PLAIN; p < PATTERNS; p++) {
    pattern how = (pattern)p;
    e->s->how = &how;
    e->s->spoil = spoil;
    cr_assert(
        make_case(e->s, k.graph, 0, k.graph->primitive_count, 40 + (uint64_t)p, &c[p]),
        "no tactic takes it");
  }
  uint32_t count = list_candidates(e->s, c, e->candidate + e->candidates);
  for (uint32_t i = 0; i < count; i++) e->graph_of[e->candidates + i] = e->graphs;
  e->candidates += count;
  e->graphs++;
}

static void run_edges(edges *e) {
  session *s = e->s;
  ft_module *module = FT_NEW_ARRAY(s->arena, ft_module, e->candidates);
  ft_error error;
  cr_assert_eq(s->builder.build(s->builder.self, e->candidate, e->candidates, false,
                                s->arena, module, &error),
               FT_OK, "%s", error.text);
  for (uint32_t i = 0; i < e->candidates; i++) {
    const test_case *c = e->of + e->graph_of[i] * PATTERNS;
    for (int p = PLAIN; p < PATTERNS; p++)
      run_case(s, &c[p], &e->candidate[i], &module[i]);
  }
}

static edges edges_open(session *s) {
  session_start(s);
  edges e = {.s = s};
  e.candidate = FT_NEW_ARRAY(s->arena, ft_candidate, MOST_GRAPHS * MOST_EACH);
  e.graph_of = FT_NEW_ARRAY(s->arena, uint32_t, MOST_GRAPHS * MOST_EACH);
  e.of = FT_NEW_ARRAY(s->arena, test_case, MOST_GRAPHS * PATTERNS);
  return e;
}

// |f| along rows and along columns of every shape.
static void check(make *f) {
  const ft_shape shapes[] = {SHAPE(7, 13),   SHAPE(33, 65), SHAPE(1, 1000),
                             SHAPE(1000, 1), SHAPE(1, 1),   SHAPE(0, 7),
                             SHAPE(7, 0),    SHAPE(16, 17), SHAPE(3, 31)};
  session s = session_open(1);
  edges e = edges_open(&s);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (uint32_t axes = 1; axes < 4; axes++) add_graph(&e, f, shapes[i], axes);
  run_edges(&e);
  cr_assert_gt(e.candidates, 40);
  session_close(&s);
}

// |f| over a row, and over a column, of 2^20.
static void check_huge(make *f) {
  session s = session_open(1);
  edges e = edges_open(&s);
  add_graph(&e, f, SHAPE(1, 1 << 20), 2);
  add_graph(&e, f, SHAPE(1 << 20, 1), 1);
  run_edges(&e);
  session_close(&s);
}

#define EDGES(name, f)                                                  \
  Test(codegen_edges, name##_is_right_at_every_edge, .timeout = 280) {  \
    compile_quickly();                                                  \
    check(f);                                                           \
  }                                                                     \
  Test(codegen_edges, name##_is_right_over_a_million, .timeout = 280) { \
    check_huge(f);                                                      \
  }

EDGES(pointwise_work, pointwise)
EDGES(a_sum, sum)
EDGES(a_mean, mean)
EDGES(a_maximum, largest)
EDGES(a_minimum, least)
EDGES(a_product, product)
EDGES(an_arg_max, arg_max)
EDGES(softmax, soft_max)
EDGES(log_softmax, log_soft_max)
EDGES(layer_norm, deviation_norm)
EDGES(rms_norm, rms_norm)
EDGES(exp_beside_its_sum, exp_minus_sum)

// ---- norms of images ----------------------------------------------------------------

static uint32_t affine(sketch *k, uint32_t y, int64_t channels) {
  ft_shape shape = {.rank = (uint8_t)(k->graph->value[y].shape.rank - 1)};
  for (int i = 0; i < shape.rank; i++) shape.dim[i] = i ? 1 : channels;
  y = two(k, FT_OP_MUL, y, input(k, FT_F32, shape));
  return two(k, FT_OP_ADD, y, input(k, FT_F32, shape));
}

static uint32_t instance_norm(sketch *k, uint32_t x, uint32_t axes) {
  (void)axes;
  return affine(k, deviation_norm(k, x, 12), k->graph->value[x].shape.dim[1]);
}

// As opset 21: the groups of a view, then the channels.
static uint32_t group_norm(sketch *k, uint32_t x, uint32_t axes) {
  ft_shape shape = k->graph->value[x].shape;
  int64_t groups = axes, rest = shape.dim[1] / groups;
  for (int i = 2; i < shape.rank; i++) rest *= shape.dim[i];
  uint32_t grouped = view(k, x, SHAPE(shape.dim[0], groups, rest));
  uint32_t y = view(k, deviation_norm(k, grouped, 4), shape);
  return affine(k, y, shape.dim[1]);
}

static void check_images(make *f, uint32_t axes) {
  const ft_shape shapes[] = {SHAPE(2, 6, 5, 7),  SHAPE(1, 4, 1, 33), SHAPE(3, 2, 17, 1),
                             SHAPE(2, 2, 1, 1),  SHAPE(0, 2, 3, 3),  SHAPE(1, 2, 65, 63),
                             SHAPE(5, 12, 4, 4), SHAPE(1, 2, 0, 3)};
  session s = session_open(1);
  edges e = edges_open(&s);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    add_graph(&e, f, shapes[i], axes);
  run_edges(&e);
  session_close(&s);
}

Test(codegen_edges, instance_norm_is_right_at_every_edge, .timeout = 280) {
  compile_quickly();
  check_images(instance_norm, 0);
}
Test(codegen_edges, group_norm_is_right_at_every_edge, .timeout = 280) {
  compile_quickly();
  check_images(group_norm, 2);
}

// ---- knobs --------------------------------------------------------------------------

// Blocks past every extent: once a block as long as 2^63 ended in a division by 0.
Test(codegen_edges, a_block_of_any_length_is_a_kernel) {
  static const int64_t blocks[] = {1, 2, INT32_MAX, INT64_MAX - 1, INT64_MAX};
  session s = session_open(1);
  session_start(&s);
  sketch k = sketch_open();
  uint32_t x = input(&k, FT_F32, SHAPE(40, 9));
  ft_attr attr = {.shape = SHAPE(20, 9), .start = {1, 0}, .step = {2, 1}};
  output(&k, one(&k, FT_OP_NEG, apply(&k, FT_OP_SLICE, 1, &x, &attr)));
  cr_assert_eq(ft_graph_finish(k.graph, NULL), FT_OK);
  test_case c;
  cr_assert(make_case(&s, k.graph, 0, k.graph->primitive_count, 9, &c));
  ft_candidate *candidate = FT_NEW_ARRAY(s.arena, ft_candidate, MOST_CANDIDATES);
  cr_assert_gt(list_candidates(&s, &c, candidate), 0);
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
    ft_schedule *schedule = &candidate[0].schedule;
    for (uint32_t n = 0; n < schedule->count; n++)
      if (!strcmp(schedule->knob[n].name, "block")) schedule->knob[n].value = blocks[i];
    cr_assert_null(s.builder.check(s.builder.self, &candidate[0], s.arena));
    ft_module module;
    ft_error error;
    cr_assert_eq(s.builder.build(s.builder.self, &candidate[0], 1, false, s.arena,
                                 &module, &error),
                 FT_OK, "%s", error.text);
    run_case(&s, &c, &candidate[0], &module);
  }
  sketch_close(&k);
  session_close(&s);
}
