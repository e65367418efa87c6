// Remaps, windows and contractions, alone and among other work, against the interpreter.
#include "codegen/loop.h"
#include "graphs.h"
#include "trying.h"

enum { MAX_POOL = 16, MOST_ELEMENTS = 12000, MOST_TERMS = 4000000 };

typedef struct maker {
  ft_rng rng;
  ft_arena *arena;
  ft_graph *graph;
  uint32_t pool[MAX_POOL], count;
  uint32_t names;
} maker;

static uint64_t below(maker *m, uint64_t n) {
  return ft_rng_below(&m->rng, n);
}

static bool chance(maker *m, uint64_t percent) {
  return below(m, 100) < percent;
}

static int64_t between(maker *m, int64_t low, int64_t high) {
  return low + (int64_t)below(m, (uint64_t)(high - low + 1));
}

static const ft_value *value_of(const maker *m, uint32_t v) {
  return &m->graph->value[v];
}

static int64_t random_dim(maker *m) {
  static const int64_t dims[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 20, 33, 40, 64, 65};
  return dims[below(m, sizeof dims / sizeof *dims)];
}

static ft_shape random_shape(maker *m, uint8_t rank) {
  ft_shape s = {.rank = rank};
  int64_t elements = 1;
  for (uint8_t i = 0; i < rank; i++) {
    do s.dim[i] = random_dim(m);
    while (elements * s.dim[i] > MOST_ELEMENTS);
    elements *= s.dim[i];
  }
  if (rank && chance(m, 3)) s.dim[below(m, rank)] = 0;
  return s;
}

static ft_dtype random_dtype(maker *m) {
  static const ft_dtype types[] = {FT_F32, FT_F32, FT_F32, FT_F32, FT_F32,
                                   FT_F32, FT_I32, FT_I64, FT_F64, FT_BOOL};
  return types[below(m, sizeof types / sizeof *types)];
}

static ft_dtype random_number(maker *m) {
  ft_dtype dtype = random_dtype(m);
  return dtype == FT_BOOL ? FT_F32 : dtype;
}

static uint32_t keep(maker *m, uint32_t value) {
  if (m->count < MAX_POOL)
    m->pool[m->count++] = value;
  else
    m->pool[below(m, MAX_POOL)] = value;
  return value;
}

static uint32_t new_input(maker *m, ft_dtype dtype, ft_shape shape) {
  uint32_t value;
  ft_error error;
  const char *name = ft_arena_printf(m->arena, "x%u", m->names++);
  cr_assert_eq(ft_graph_add_input(m->graph, name, dtype, &shape, &value, &error), FT_OK,
               "%s", error.text);
  return value;
}

// Indices into |limit| elements: known ones from both ends, or an input in [0, 4).
static uint32_t new_indices(maker *m, ft_shape shape, int64_t limit) {
  ft_dtype dtype = chance(m, 50) ? FT_I64 : FT_I32;
  if (limit >= 4 && chance(m, 30)) return new_input(m, dtype, shape);
  ft_tensor tensor;
  void *data;
  uint32_t value;
  cr_assert_eq(ft_tensor_alloc(dtype, &shape, m->arena, &tensor, &data, NULL), FT_OK);
  for (int64_t i = 0; i < ft_shape_elements(&shape); i++)
    ft_element_set_i64(dtype, data, i, between(m, -limit, limit - 1));
  const char *name = ft_arena_printf(m->arena, "i%u", m->names++);
  cr_assert_eq(ft_graph_add_constant(m->graph, name, &tensor, &value, NULL), FT_OK);
  return value;
}

static uint32_t emit(maker *m, ft_op op, uint32_t count, const uint32_t *in,
                     const ft_attr *attr) {
  uint32_t out;
  ft_error error;
  cr_assert_eq(ft_graph_emit(m->graph, op, in, count, attr, &out, &error), FT_OK, "%s",
               error.text);
  return keep(m, out);
}

// ---- one step
// ---------------------------------------------------------------------------

static void add_slice(maker *m, uint32_t v) {
  ft_attr attr = {.shape = value_of(m, v)->shape};
  for (uint8_t i = 0; i < attr.shape.rank; i++) {
    int64_t n = attr.shape.dim[i];
    attr.step[i] = 1;
    if (!n || chance(m, 40)) continue;
    attr.step[i] = chance(m, 50) ? 1 : between(m, -3, 3);
    if (!attr.step[i]) attr.step[i] = -1;
    attr.start[i] = between(m, 0, n - 1);
    int64_t room = attr.step[i] > 0 ? n - 1 - attr.start[i] : attr.start[i];
    int64_t step = attr.step[i] > 0 ? attr.step[i] : -attr.step[i];
    attr.shape.dim[i] = between(m, chance(m, 5) ? 0 : 1, room / step + 1);
  }
  emit(m, FT_OP_SLICE, 1, &v, &attr);
}

static void add_concat(maker *m, uint32_t v) {
  ft_shape shape = value_of(m, v)->shape;
  if (!shape.rank) return;
  ft_attr attr = {.axis = (uint8_t)below(m, shape.rank)};
  ft_dtype dtype = value_of(m, v)->dtype;
  uint32_t in[5], count = 1 + (uint32_t)below(m, 4), at = (uint32_t)below(m, count);
  for (uint32_t i = 0; i < count; i++) {
    ft_shape part = shape;
    part.dim[attr.axis] = chance(m, 10) ? 0 : between(m, 1, 20);
    in[i] = i == at ? v : chance(m, 20) ? in[0] : new_input(m, dtype, part);
    if (i == 0 && at) in[0] = new_input(m, dtype, part);
  }
  emit(m, FT_OP_CONCAT, count, in, &attr);
}

static uint32_t number(maker *m, ft_dtype dtype) {
  static const double numbers[] = {0.5, 2, -1, 3, 0, 1};
  uint32_t v;
  cr_assert_eq(ft_graph_add_scalar(m->graph, dtype, numbers[below(m, 6)], &v, NULL),
               FT_OK);
  return v;
}

static void add_pad(maker *m, uint32_t v) {
  ft_attr attr = {.shape = value_of(m, v)->shape};
  for (uint8_t i = 0; i < attr.shape.rank; i++) {
    if (chance(m, 50)) continue;
    attr.start[i] = between(m, 0, 3);
    attr.shape.dim[i] += attr.start[i] + between(m, 0, 3);
  }
  uint32_t in[2] = {v, number(m, value_of(m, v)->dtype)};
  emit(m, FT_OP_PAD, 2, in, &attr);
}

static void add_gather(maker *m, uint32_t v) {
  const ft_shape *data = &value_of(m, v)->shape;
  if (!data->rank) return;
  ft_attr attr = {.axis = (uint8_t)below(m, data->rank)};
  int64_t limit = data->dim[attr.axis];
  ft_shape index = random_shape(m, (uint8_t)below(m, 3));
  for (uint8_t i = 0; i < index.rank; i++)
    if (index.dim[i] > 9 || !limit) index.dim[i] = limit ? 9 : 0;
  if (data->rank - 1 + index.rank > FT_MAX_RANK || (!limit && !index.rank)) return;
  uint32_t in[2] = {v, new_indices(m, index, limit)};
  emit(m, FT_OP_GATHER, 2, in, &attr);
}

static void add_gather_elements(maker *m, uint32_t v) {
  ft_shape shape = value_of(m, v)->shape;
  if (!shape.rank) return;
  ft_attr attr = {.axis = (uint8_t)below(m, shape.rank)};
  int64_t limit = shape.dim[attr.axis];
  for (uint8_t i = 0; i < shape.rank; i++)
    if (shape.dim[i] && chance(m, 50)) shape.dim[i] = between(m, 1, shape.dim[i]);
  if (limit) shape.dim[attr.axis] = between(m, 1, 12);
  uint32_t in[2] = {v, new_indices(m, shape, limit)};
  emit(m, FT_OP_GATHER_ELEMENTS, 2, in, &attr);
}

// Windows over |spatial| dims of |x|, and what is left of them.
static void choose_windows(maker *m, const ft_shape *x, ft_attr *attr) {
  for (int i = 0; i + 2 < x->rank; i++) {
    attr->window[i] = between(m, 1, chance(m, 10) ? 9 : 3);
    attr->stride[i] = chance(m, 60) ? 1 : between(m, 1, 3);
    attr->dilation[i] = chance(m, 70) ? 1 : between(m, 1, 3);
    attr->start[i] = chance(m, 40) ? 0 : between(m, 0, 3);
    int64_t after = chance(m, 40) ? 0 : between(m, 0, 3);
    int64_t reach = (attr->window[i] - 1) * attr->dilation[i];
    int64_t room = x->dim[i + 2] + attr->start[i] + after - reach - 1;
    attr->shape.dim[i + 2] = room < 0 ? 0 : room / attr->stride[i] + 1;
  }
}

static uint32_t image(maker *m, uint32_t v) {
  const ft_value *value = value_of(m, v);
  if (value->shape.rank >= 3 && value->shape.rank <= 5 && value->dtype != FT_BOOL)
    return v;
  ft_dtype dtype = random_number(m);  // first: a seed means one graph for every compiler
  uint8_t rank = (uint8_t)between(m, 3, 5);
  return new_input(m, dtype, random_shape(m, rank));
}

static void add_window(maker *m, uint32_t v) {
  v = image(m, v);
  ft_attr attr = {.shape = value_of(m, v)->shape};
  choose_windows(m, &value_of(m, v)->shape, &attr);
  emit(m, chance(m, 50) ? FT_OP_WINDOW_MAX : FT_OP_WINDOW_SUM, 1, &v, &attr);
}

static void add_conv(maker *m, uint32_t v) {
  v = image(m, v);
  ft_shape x = value_of(m, v)->shape, w = {.rank = x.rank};
  ft_attr attr = {.shape = x, .groups = 1};
  choose_windows(m, &x, &attr);
  if (x.dim[1] && chance(m, 30)) attr.groups = x.dim[1];
  if (x.dim[1] % 2 == 0 && x.dim[1] && chance(m, 30)) attr.groups = 2;
  w.dim[0] = attr.groups * between(m, 1, 4);
  w.dim[1] = x.dim[1] / attr.groups;
  double terms = (double)(w.dim[1] * w.dim[0] * x.dim[0]);
  for (int i = 2; i < x.rank; i++) {
    w.dim[i] = attr.window[i - 2];
    terms *= (double)(w.dim[i] * attr.shape.dim[i]);
  }
  attr.shape.dim[1] = w.dim[0];
  if (terms > MOST_TERMS) return;
  uint32_t in[2] = {v, new_input(m, value_of(m, v)->dtype, w)};
  emit(m, FT_OP_CONV, 2, in, &attr);
}

static void add_matmul(maker *m, uint32_t v) {
  const ft_value *a = value_of(m, v);
  if (a->shape.rank < 2 || a->dtype == FT_BOOL) {
    ft_dtype dtype = random_number(m);
    uint8_t rank = (uint8_t)between(m, 2, 4);
    v = new_input(m, dtype, random_shape(m, rank));
    a = value_of(m, v);
  }
  ft_shape b = {.rank = (uint8_t)between(m, 2, a->shape.rank)};
  for (uint8_t i = 0; i + 2 < b.rank; i++) {
    b.dim[i] = a->shape.dim[a->shape.rank - b.rank + i];
    if (chance(m, 30)) b.dim[i] = 1;
  }
  int64_t k = a->shape.dim[a->shape.rank - 1], n = random_dim(m);
  bool is_left = chance(m, 25);
  b.dim[b.rank - 2] = is_left ? n : k;
  b.dim[b.rank - 1] = is_left ? a->shape.dim[a->shape.rank - 2] : n;
  if ((double)ft_shape_elements(&a->shape) * (double)n > MOST_TERMS) return;
  uint32_t w = new_input(m, a->dtype, b), in[2] = {is_left ? w : v, is_left ? v : w};
  emit(m, FT_OP_MATMUL, 2, in, NULL);
}

static void add_unary(maker *m, uint32_t v) {
  static const ft_op floats[] = {FT_OP_NEG, FT_OP_ABS,  FT_OP_RELU, FT_OP_SIGMOID,
                                 FT_OP_EXP, FT_OP_TANH, FT_OP_FLOOR};
  ft_dtype dtype = value_of(m, v)->dtype;
  if (dtype == FT_BOOL)
    emit(m, FT_OP_NOT, 1, &v, NULL);
  else
    emit(m, floats[below(m, ft_dtype_is_float(dtype) ? 7 : 3)], 1, &v, NULL);
}

static void add_binary(maker *m, uint32_t v) {
  static const ft_op ops[] = {FT_OP_ADD, FT_OP_MUL, FT_OP_SUB, FT_OP_FMOD, FT_OP_MAX};
  const ft_value *value = value_of(m, v);
  if (value->dtype == FT_BOOL) {
    add_unary(m, v);
    return;
  }
  ft_shape shape = value->shape;
  for (uint8_t i = 0; i < shape.rank; i++)
    if (chance(m, 40)) shape.dim[i] = 1;
  uint32_t in[2] = {v, chance(m, 40)   ? number(m, value->dtype)
                       : chance(m, 20) ? v
                                       : new_input(m, value->dtype, shape)};
  emit(m, ops[below(m, 5)], 2, in, NULL);
}

static void add_transpose(maker *m, uint32_t v) {
  ft_attr attr = {0};
  for (uint8_t i = 0; i < value_of(m, v)->shape.rank; i++) {
    uint8_t at = (uint8_t)below(m, i + 1u);
    attr.perm[i] = attr.perm[at];
    attr.perm[at] = i;
  }
  emit(m, FT_OP_TRANSPOSE, 1, &v, &attr);
}

static void add_view(maker *m, uint32_t v) {
  ft_shape s = value_of(m, v)->shape;
  if (s.rank < 2) return;
  uint8_t at = (uint8_t)below(m, s.rank - 1u);
  s.dim[at] *= s.dim[at + 1];
  for (uint8_t i = (uint8_t)(at + 1); i + 1 < s.rank; i++) s.dim[i] = s.dim[i + 1];
  s.dim[--s.rank] = 0;
  uint32_t view;
  cr_assert_eq(ft_graph_view(m->graph, v, &s, &view, NULL), FT_OK);
  keep(m, view);
}

static void add_reduce(maker *m, uint32_t v) {
  static const ft_op ops[] = {FT_OP_REDUCE_SUM, FT_OP_REDUCE_MAX, FT_OP_REDUCE_MIN};
  const ft_value *value = value_of(m, v);
  if (value->dtype == FT_BOOL || !value->shape.rank) return;
  ft_attr attr = {.axes = 1u << below(m, value->shape.rank)};
  emit(m, ops[below(m, 3)], 1, &v, &attr);
}

typedef void step(maker *m, uint32_t v);

static bool is_too_large(const maker *m, uint32_t v) {
  return ft_shape_elements(&value_of(m, v)->shape) > 4 * MOST_ELEMENTS;
}

static void add_step(maker *m) {
  static step *const news[] = {add_slice,           add_concat, add_pad,  add_gather,
                               add_gather_elements, add_window, add_conv, add_matmul};
  static step *const olds[] = {add_unary,     add_binary, add_binary, add_unary,
                               add_transpose, add_view,   add_reduce};
  uint32_t v = m->pool[chance(m, 70) ? m->count - 1 : below(m, m->count)];
  if (is_too_large(m, v)) v = m->pool[0];
  if (chance(m, 45))
    news[below(m, sizeof news / sizeof *news)](m, v);
  else
    olds[below(m, sizeof olds / sizeof *olds)](m, v);
}

static bool is_read(const ft_graph *g, uint32_t root) {
  for (uint32_t i = 0; i < g->primitive_count; i++) {
    for (uint32_t k = 0; k < g->primitive[i].input_count; k++) {
      if (g->value[g->primitive[i].input[k]].root == root) return true;
    }
  }
  return false;
}

static ft_graph *random_graph(uint64_t seed, ft_arena *arena) {
  maker m = {.rng = ft_rng_seed(seed), .arena = arena};
  cr_assert_eq(ft_graph_create(arena, "random", &m.graph, NULL), FT_OK);
  uint8_t rank = (uint8_t)between(&m, 1, chance(&m, 10) ? 8 : 4);
  ft_dtype dtype = random_dtype(&m);
  keep(&m, new_input(&m, dtype, random_shape(&m, rank)));
  cr_assert_eq(ft_graph_begin_operator(m.graph, "n", "Random", "", NULL), FT_OK);
  for (uint64_t i = 0, n = 1 + below(&m, 6); i < n; i++) add_step(&m);
  for (uint32_t i = 0; i < m.count; i++) {
    const ft_value *v = value_of(&m, m.pool[i]);
    if (v->role != FT_ROLE_COMPUTED || v->root != m.pool[i]) continue;
    if (is_read(m.graph, v->root) && !chance(&m, 10)) continue;
    const char *name = ft_arena_printf(arena, "y%u", i);
    cr_assert_eq(ft_graph_add_output(m.graph, name, m.pool[i], NULL), FT_OK);
  }
  cr_assert_eq(ft_graph_finish(m.graph, NULL), FT_OK);
  return m.graph;
}

// ---- many
// ---------------------------------------------------------------------------------

// Whole graphs where a tactic takes them, else a random part; single primitives always.
static void make_random(session *s, uint64_t seed, uint32_t count, test_case *cases) {
  for (uint32_t made = 0; made < count; seed++) {
    ft_graph *graph = random_graph(seed, s->arena);
    if (!graph->primitive_count) continue;
    uint32_t first = 0, length = graph->primitive_count;
    bool is_taken = make_case(s, graph, first, length, seed, &cases[made]);
    s->accepted += is_taken;
    s->refused += !is_taken;
    if (!is_taken) {
      first = (uint32_t)ft_rng_below(&s->rng, graph->primitive_count);
      length = 1 + (uint32_t)ft_rng_below(&s->rng, graph->primitive_count - first);
      while (!make_case(s, graph, first, length, seed, &cases[made])) length--;
    }
    made++;
  }
}

static uint32_t setting(const char *name, uint32_t fallback) {
  const char *text = getenv(name);
  return text ? (uint32_t)strtoul(text, NULL, 10) : fallback;
}

static void run_random(uint64_t seed, uint32_t count) {
  session s = session_open(seed);
  session_start(&s);
  s.is_mild = true;
  test_case *cases = FT_NEW_ARRAY(s.arena, test_case, count);
  make_random(&s, seed, count, cases);
  for (uint32_t i = 0; i < count; i += 64)
    run_batch(&s, cases + i, count - i < 64 ? count - i : 64);
  fprintf(stderr, "%u kernels, %u whole graphs, %u refused\n", s.kernels, s.accepted,
          s.refused);
  cr_assert_gt(s.accepted, s.refused / 2);
  session_close(&s);
}

Test(codegen_loops, random_kernels_agree_with_the_interpreter, .timeout = 280) {
  run_random(setting("FT_RANDOM_SEED", 5000), setting("FT_RANDOM_KERNELS", 192));
}

// ---- one by one
// -----------------------------------------------------------------------------

// The first schedule of the loop tactic for all of |s|, run on |input|.
static int32_t run_first(session *s, const ft_workload *w, ft_tensor *input,
                         ft_tensor *out) {
  const char *reason = ft_loop_refusal(w, s->arena);
  cr_assert_null(reason, "%s", reason);
  ft_schedule *list;
  uint32_t count;
  ft_error error;
  cr_assert_eq(s->builder.space(s->builder.self, w, "loop", &s->target, s->arena, &list,
                                &count, &error),
               FT_OK, "%s", error.text);
  ft_candidate candidate = {w, &s->target, "loop", list[0]};
  ft_module module;
  cr_assert_eq(
      s->builder.build(s->builder.self, &candidate, 1, false, s->arena, &module, &error),
      FT_OK);
  cr_assert_eq(module.outcome, FT_OUTCOME_OK, "%s", module.log);
  return run_module(&module, &w->group, input, 1, s->arena, out);
}

static ft_tensor tensor_of(ft_arena *arena, ft_dtype dtype, ft_shape shape, double fill) {
  ft_tensor t;
  void *data;
  cr_assert_eq(ft_tensor_alloc(dtype, &shape, arena, &t, &data, NULL), FT_OK);
  for (int64_t i = 0; i < ft_shape_elements(&shape); i++)
    ft_element_set_f64(dtype, data, i, fill);
  return t;
}

static int32_t gather_at(ft_op op, double index, double *out) {
  session s = session_open(1);
  session_start(&s);
  sketch k = sketch_open();
  bool is_whole = op == FT_OP_GATHER_ELEMENTS;
  uint32_t in[2] = {input(&k, FT_F32, SHAPE(7, 3)),
                    input(&k, FT_I64, is_whole ? SHAPE(2, 3) : SHAPE(2))};
  output(&k, apply(&k, op, 2, in, &(ft_attr){.axis = 0}));
  ft_workload w = finish(&k);
  ft_tensor data = tensor_of(s.arena, FT_F32, SHAPE(7, 3), 0), result, given[2];
  float *rows = ft_arena_memdup(s.arena, data.data, data.bytes);
  for (int i = 0; i < 21; i++) rows[i] = (float)i;
  data.data = rows;
  ft_tensor at = tensor_of(s.arena, FT_I64, is_whole ? SHAPE(2, 3) : SHAPE(2), index);
  bool is_first = w.group.input[0] == k.graph->value[in[0]].root;
  given[is_first ? 0 : 1] = data;
  given[is_first ? 1 : 0] = at;
  int32_t code = run_first(&s, &w, given, &result);
  if (out) *out = ft_tensor_get_f64(&result, 0);
  sketch_close(&k);
  session_close(&s);
  return code;
}

Test(codegen_loops, an_index_counts_from_both_ends) {
  double first, last;
  cr_assert_eq(gather_at(FT_OP_GATHER, -7, &first), 0);
  cr_assert_eq(first, 0);
  cr_assert_eq(gather_at(FT_OP_GATHER, 6, &last), 0);
  cr_assert_eq(last, 18);
  cr_assert_eq(gather_at(FT_OP_GATHER_ELEMENTS, -1, &last), 0);
  cr_assert_eq(last, 18);
}

Test(codegen_loops, an_index_out_of_range_returns_its_code_and_reads_nothing) {
  static const double wrong[] = {7, -8, 1e6, -1e6, 9.2e18, -9.2e18};
  for (int i = 0; i < 6; i++) {
    cr_assert_eq(gather_at(FT_OP_GATHER, wrong[i], NULL), FT_KERNEL_BAD_INDEX, "%g",
                 wrong[i]);
    cr_assert_eq(gather_at(FT_OP_GATHER_ELEMENTS, wrong[i], NULL), FT_KERNEL_BAD_INDEX);
  }
}

Test(codegen_loops, a_long_sum_of_equal_products_does_not_drift) {
  session s = session_open(1);
  session_start(&s);
  sketch k = sketch_open();
  uint32_t in[2] = {input(&k, FT_F32, SHAPE(1, 100003)),
                    input(&k, FT_F32, SHAPE(100003, 2))};
  output(&k, apply(&k, FT_OP_MATMUL, 2, in, NULL));
  ft_workload w = finish(&k);
  ft_tensor given[2], result;
  for (int i = 0; i < 2; i++)
    given[i] = tensor_of(s.arena, FT_F32, k.graph->value[w.group.input[i]].shape, 1.1);
  cr_assert_eq(run_first(&s, &w, given, &result), 0);
  double one = (double)1.1f, exact = 100003 * one * one;
  cr_assert_lt(fabs(ft_tensor_get_f64(&result, 1) / exact - 1), 3e-7);
  sketch_close(&k);
  session_close(&s);
}

static uint32_t convolution(sketch *k, uint32_t x, int64_t channels) {
  uint32_t w = input(k, FT_F32, SHAPE(channels, channels, 3, 3));
  ft_attr attr = {.shape = SHAPE(1, channels, 20, 20),
                  .groups = 1,
                  .start = {1, 1},
                  .stride = {1, 1},
                  .dilation = {1, 1}};
  return apply(k, FT_OP_CONV, 2, (uint32_t[]){x, w}, &attr);
}

Test(codegen_loops, a_convolution_takes_bias_residual_and_activation_along) {
  session s = session_open(1);
  session_start(&s);
  sketch k = sketch_open();
  uint32_t x = input(&k, FT_F32, SHAPE(1, 8, 20, 20));
  uint32_t bias =
      two(&k, FT_OP_ADD, convolution(&k, x, 8), input(&k, FT_F32, SHAPE(8, 1, 1)));
  output(&k, one(&k, FT_OP_RELU, two(&k, FT_OP_ADD, bias, x)));
  ft_workload w = finish(&k);
  test_case c;
  cr_assert(make_case(&s, k.graph, 0, k.graph->primitive_count, 7, &c));
  run_batch(&s, &c, 1);
  cr_assert_eq(w.group.output_count, 1);
  sketch_close(&k);
  session_close(&s);
}

static const char *refusal_of(session *s, sketch *k) {
  ft_workload w = finish(k);
  const char *reason = ft_loop_refusal(&w, s->arena);
  cr_assert_not_null(reason);
  return reason;
}

Test(codegen_loops, two_contractions_in_a_row_are_refused_by_name) {
  session s = session_open(1);
  session_start(&s);
  sketch k = sketch_open();
  uint32_t x = input(&k, FT_F32, SHAPE(1, 8, 20, 20));
  output(&k, convolution(&k, convolution(&k, x, 8), 8));
  cr_assert(strstr(refusal_of(&s, &k), "conv after conv"));
  sketch_close(&k);
  session_close(&s);
}

Test(codegen_loops, costly_work_before_a_contraction_is_refused_by_name) {
  session s = session_open(1);
  session_start(&s);
  sketch k = sketch_open();
  uint32_t x = input(&k, FT_F32, SHAPE(1, 8, 20, 20));
  output(&k, convolution(&k, one(&k, FT_OP_EXP, x), 8));
  cr_assert(strstr(refusal_of(&s, &k), "conv would compute exp"));
  sketch_close(&k);
  session_close(&s);
}

Test(codegen_loops, a_broadcast_contraction_is_refused) {
  session s = session_open(1);
  session_start(&s);
  sketch k = sketch_open();
  uint32_t a = input(&k, FT_F32, SHAPE(5, 6)), b = input(&k, FT_F32, SHAPE(6, 1));
  uint32_t m = apply(&k, FT_OP_MATMUL, 2, (uint32_t[]){a, b}, NULL);
  output(&k, two(&k, FT_OP_ADD, m, input(&k, FT_F32, SHAPE(5, 9))));
  cr_assert(strstr(refusal_of(&s, &k), "matmul of 5 elements in loops over 45"));
  sketch_close(&k);
  session_close(&s);
}

Test(codegen_loops, a_contraction_does_not_ask_a_concat_for_every_term) {
  session s = session_open(1);
  session_start(&s);
  sketch k = sketch_open();
  uint32_t in[2] = {input(&k, FT_F32, SHAPE(1, 6, 20, 20)),
                    input(&k, FT_F32, SHAPE(1, 2, 20, 20))};
  uint32_t x = apply(&k, FT_OP_CONCAT, 2, in, &(ft_attr){.axis = 1});
  output(&k, convolution(&k, x, 8));
  cr_assert(strstr(refusal_of(&s, &k), "conv would compute concat"));
  sketch_close(&k);
  session_close(&s);
}

// Every schedule of the group of all of |k|, against the interpreter.
static void run_every_schedule(sketch *k) {
  session s = session_open(1);
  session_start(&s);
  ft_workload w = finish(k);
  test_case c;
  ft_schedule *list;
  uint32_t count;
  ft_error error;
  cr_assert(make_case(&s, k->graph, 0, k->graph->primitive_count, 9, &c));
  cr_assert_eq(s.builder.space(s.builder.self, &w, "loop", &s.target, s.arena, &list,
                               &count, &error),
               FT_OK, "%s", error.text);
  cr_assert(count > 0 && count <= 4, "%u schedules", count);
  for (uint32_t i = 0; i < count; i++) {
    ft_candidate candidate = {&c.workload, &s.target, "loop", list[i]};
    ft_module module;
    cr_assert_eq(
        s.builder.build(s.builder.self, &candidate, 1, false, s.arena, &module, &error),
        FT_OK);
    run_case(&s, &c, &candidate, &module);
  }
  session_close(&s);
}

Test(codegen_loops, a_window_that_hangs_over_both_ends_reads_what_is_there) {
  sketch k = sketch_open();
  uint32_t x = input(&k, FT_F32, SHAPE(3, 5, 2));
  ft_attr attr = {.shape = SHAPE(3, 5, 1),
                  .window = {6},
                  .start = {2},
                  .stride = {1},
                  .dilation = {1}};
  output(&k, apply(&k, FT_OP_WINDOW_MAX, 1, &x, &attr));
  run_every_schedule(&k);
  sketch_close(&k);
}

Test(codegen_loops, a_product_with_a_transposed_matrix_is_right_in_every_schedule) {
  sketch k = sketch_open();
  uint32_t a = input(&k, FT_F32, SHAPE(3, 1, 77)), b = input(&k, FT_F32, SHAPE(19, 77));
  output(&k, two(&k, FT_OP_MATMUL, a, transpose(&k, b)));
  run_every_schedule(&k);
  sketch_close(&k);
}

Test(codegen_loops, a_grouped_dilated_strided_convolution_is_right_in_every_schedule) {
  sketch k = sketch_open();
  uint32_t in[2] = {input(&k, FT_F32, SHAPE(2, 6, 19, 23)),
                    input(&k, FT_F32, SHAPE(9, 2, 3, 2))};
  ft_attr attr = {.shape = SHAPE(2, 9, 10, 26),
                  .groups = 3,
                  .start = {1, 4},
                  .stride = {2, 1},
                  .dilation = {1, 3}};
  output(&k, apply(&k, FT_OP_CONV, 2, in, &attr));
  run_every_schedule(&k);
  sketch_close(&k);
}

Test(codegen_loops, a_concat_of_very_many_is_right_in_every_schedule) {
  enum { PARTS = 150 };
  sketch k = sketch_open();
  uint32_t in[PARTS];
  for (uint32_t i = 0; i < PARTS; i++)
    in[i] = input(&k, FT_I32, i % 2 ? SHAPE(2, 1) : SHAPE(2, 3));
  output(&k,
         one(&k, FT_OP_NEG, apply(&k, FT_OP_CONCAT, PARTS, in, &(ft_attr){.axis = 1})));
  run_every_schedule(&k);
  sketch_close(&k);
}
