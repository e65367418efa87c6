#include "tests/support/random/random_group.h"

#include "tests/support/random/maker.h"

static void add_many(maker *m, maker_step *step, uint64_t most) {
  for (uint64_t i = maker_below(m, most + 1); i > 0; i--) step(m, maker_pick(m));
}

// Elementwise work with now and then a view, a transpose or a broadcast.
static void mixed(maker *m, uint32_t v) {
  if (maker_chance(m, 80))
    maker_pointwise(m, v);
  else
    maker_rearrange(m, v);
}

static void reducing(maker *m, uint32_t v) {
  if (maker_chance(m, 20))
    maker_reduction(m, v);
  else
    mixed(m, v);
}

// A domain, rarely a long one, and operands that broadcast to it.
static void open_domain(maker *m, uint8_t least_rank) {
  static const int64_t longs[] = {4096, 10007, 65537, 200003};
  uint8_t rank = (uint8_t)maker_between(m, least_rank, 4);
  if (rank && maker_chance(m, 4)) {
    m->domain = maker_shape(m, rank, 4);
    m->domain.dim[maker_below(m, rank)] = longs[maker_below(m, 4)];
  } else {
    m->domain = maker_shape(m, rank, MAKER_ELEMENTS);
  }
}

static ft_shape operand(maker *m) {
  ft_shape s = m->domain;
  if (s.rank > 1 && maker_chance(m, 15)) {
    for (uint8_t i = 1; i < s.rank; i++) s.dim[i - 1] = s.dim[i];
    s.dim[--s.rank] = 0;
  }
  for (uint8_t i = 0; i < s.rank; i++)
    if (maker_chance(m, 15)) s.dim[i] = 1;
  return s;
}

static void open_pointwise(maker *m, uint64_t most_inputs) {
  open_domain(m, 0);
  for (uint64_t n = 1 + maker_below(m, most_inputs); n > 0; n--) {
    ft_dtype dtype = maker_dtype(m);
    maker_keep(m, maker_input(m, dtype, operand(m)));
  }
}

// ---- families -----------------------------------------------------------------------

static void make_pointwise(maker *m) {
  open_pointwise(m, 3);
  mixed(m, maker_pick(m));
  add_many(m, mixed, 9);
}

static void make_reductions(maker *m) {
  open_pointwise(m, 3);
  add_many(m, mixed, 3);
  maker_reduction(m, maker_pick(m));
  add_many(m, reducing, 5);
}

static void make_norm(maker *m) {
  open_domain(m, 1);
  ft_dtype dtype = maker_chance(m, 85) ? maker_single(m) : maker_dtype(m);
  maker_keep(m, maker_input(m, dtype, m->domain));
  add_many(m, maker_pointwise, 2);
  maker_norm(m, m->pool[m->count - 1]);
  add_many(m, maker_pointwise, 3);
}

static void open_any(maker *m, uint8_t least, uint8_t most) {
  uint8_t rank = (uint8_t)maker_between(m, least, most);
  ft_dtype dtype = maker_dtype(m);
  ft_shape shape = maker_shape(m, rank, MAKER_ELEMENTS / 3);
  m->domain = shape;
  maker_keep(m, maker_input(m, dtype, shape));
}

static void make_product(maker *m) {
  bool is_conv = maker_chance(m, 40);
  open_any(m, is_conv ? 3 : 2, 4);
  if (maker_chance(m, 30)) maker_pointwise(m, m->pool[0]);
  (is_conv ? maker_conv : maker_matmul)(m, m->pool[m->count - 1]);
  add_many(m, maker_pointwise, 4);
  if (maker_chance(m, 15)) maker_rearrange(m, m->pool[m->count - 1]);
}

static void make_window(maker *m) {
  open_any(m, 3, 4);
  add_many(m, maker_pointwise, 2);
  maker_window(m, m->pool[m->count - 1]);
  add_many(m, maker_pointwise, 3);
}

static void anything(maker *m, uint32_t v) {
  static maker_step *const rare[] = {maker_window, maker_conv, maker_matmul,
                                     maker_reduction, maker_rearrange};
  uint64_t draw = maker_below(m, 100);
  if (draw < 35)
    maker_remap(m, v);
  else if (draw < 70)
    maker_pointwise(m, v);
  else
    rare[maker_below(m, 5)](m, v);
}

static void make_moved(maker *m) {
  open_any(m, 1, maker_chance(m, 10) ? 8 : 4);
  maker_remap(m, m->pool[0]);
  add_many(m, anything, 5);
}

typedef struct family {
  uint64_t weight;
  void (*make)(maker *m);
} family;

static const family families[] = {
    {20, make_pointwise}, {22, make_reductions}, {22, make_norm},
    {16, make_product},   {6, make_window},      {14, make_moved},
};

// ---- the whole ----------------------------------------------------------------------

static bool is_read(const ft_graph *g, uint32_t root) {
  for (uint32_t i = 0; i < g->primitive_count; i++) {
    for (uint32_t k = 0; k < g->primitive[i].input_count; k++) {
      if (g->value[g->primitive[i].input[k]].root == root) return true;
    }
  }
  return false;
}

// What nobody reads, and now and then what somebody does.
static void add_outputs(maker *m) {
  for (uint32_t i = 0; i < m->count; i++) {
    const ft_value *v = maker_value(m, m->pool[i]);
    if (v->role != FT_ROLE_COMPUTED || v->root != m->pool[i]) continue;
    bool is_wanted = maker_chance(m, 12);
    if (is_read(m->graph, v->root) && !is_wanted) continue;
    const char *name = ft_arena_printf(m->arena, "y%u", i);
    ft_error error;
    maker_must(ft_graph_add_output(m->graph, name, m->pool[i], &error), "output", &error);
  }
}

static ft_graph *attempt(ft_rng rng, bool is_short, ft_arena *arena) {
  maker m = {.rng = rng, .arena = arena, .single = FT_F32};
  ft_error error;
  if (is_short) m.single = maker_chance(&m, 60) ? FT_F16 : FT_BF16;
  maker_must(ft_graph_create(arena, "random", &m.graph, &error), "graph", &error);
  maker_must(ft_graph_begin_operator(m.graph, "n", "Random", "", &error), "operator",
             &error);
  uint64_t draw = maker_below(&m, 100);
  const family *f = families;
  for (; draw >= f->weight; f++) draw -= f->weight;
  f->make(&m);
  add_outputs(&m);
  maker_must(ft_graph_finish(m.graph, &error), "finish", &error);
  return m.graph;
}

ft_graph *random_graph(uint64_t seed, ft_arena *arena) {
  ft_rng rng = ft_rng_seed(seed * 0x9e3779b97f4a7c15ull + 1);
  ft_graph *graph;
  do graph = attempt(ft_rng_seed(ft_rng_u64(&rng)), seed >= RANDOM_SHORT, arena);
  while (!graph->primitive_count);
  return graph;
}
