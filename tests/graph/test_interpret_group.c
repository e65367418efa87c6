#include <math.h>

#include "graph/inputs.h"
#include "graph/interpreter.h"
#include "wide_graph.h"

static ft_arena *arena;
static void start(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void stop(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_interpret_group, .init = start, .fini = stop);

typedef struct sample {
  uint32_t count;
  int64_t index[3000], integer[3000];
  double value[3000], scale[3000];
} sample;

static bool same_bits(double a, double b) {
  return memcmp(&a, &b, sizeof a) == 0;
}
static bool same_value(double a, double b) {
  return same_bits(a, b) || (isnan(a) && isnan(b));
}

// Random indices with repeats, and every element when there are few.
static void choose(sample *s, int64_t elements, ft_rng *rng) {
  s->count = 0;
  for (int64_t i = 0; i < elements && i < 1000; i++) s->index[s->count++] = i;
  for (int i = 0; i < 1500 && elements; i++)
    s->index[s->count++] = (int64_t)ft_rng_below(rng, (uint64_t)elements);
}

static void agree(const ft_reference *whole, const sample *s, uint64_t seed) {
  for (uint32_t i = 0; i < s->count; i++) {
    int64_t at = s->index[i];
    double scale = whole->scale ? whole->scale[at] : 0;
    bool same = whole->value ? same_value(whole->value[at], s->value[i])
                             : whole->integer[at] == s->integer[i];
    cr_assert(same, "seed %llu, element %lld: %.17g and %.17g", (unsigned long long)seed,
              (long long)at, whole->value ? whole->value[at] : (double)whole->integer[at],
              whole->value ? s->value[i] : (double)s->integer[i]);
    cr_assert(same_value(scale, s->scale[i]), "seed %llu, element %lld: scales %g and %g",
              (unsigned long long)seed, (long long)at, scale, s->scale[i]);
  }
}

// A random part of the graph's primitives (it need not be convex: what its primitives
// read from primitives outside are inputs).
static ft_group random_group(const ft_graph *graph, ft_rng *rng, ft_arena *to) {
  uint32_t chosen[512], count = 0;
  uint64_t odds = 1 + ft_rng_below(rng, 4);
  for (uint32_t p = 0; p < graph->primitive_count && count < 512; p++)
    if (ft_rng_below(rng, 4) < odds) chosen[count++] = p;
  if (count == 0) chosen[count++] = 0;
  ft_group group;
  MUST(ft_group_make(graph, chosen, count, to, &group, ERR));
  return group;
}

static void check_group(const ft_group *group, uint64_t seed, ft_rng *rng, ft_arena *to) {
  static sample s;
  ft_graph *graph;
  ft_tensor input[64];
  ft_reference whole[64];
  cr_assert(group->input_count <= 64 && group->output_count <= 64);
  MUST(ft_group_random_inputs(group, seed, to, input, ERR));
  MUST(ft_group_extract(group, to, &graph, ERR));
  MUST(ft_interpret_graph(graph, input, to, whole, ERR));
  for (uint32_t o = 0; o < group->output_count; o++) {
    choose(&s, ft_shape_elements(&whole[o].shape), rng);
    MUST(ft_interpret_group(group, input, o, s.index, s.count, s.value, s.scale,
                            s.integer, ERR));
    agree(&whole[o], &s, seed);
  }
}

typedef ft_graph *maker(uint64_t seed, int steps, bool with_empty, ft_arena *to);

static void check_seeds(maker *make, uint64_t first, uint64_t last, bool with_empty) {
  uint32_t primitives = 0;
  for (uint64_t seed = first; seed <= last; seed++) {
    ft_arena *local = ft_arena_create(ft_allocator_system());
    ft_rng rng = ft_rng_seed(seed);
    const ft_graph *graph = make(seed, 12, with_empty, local);
    if (graph->primitive_count) {
      ft_group group = random_group(graph, &rng, local);
      check_group(&group, seed, &rng, local);
      primitives += group.primitive_count;
    }
    ft_arena_destroy(local);
  }
  cr_assert_gt(primitives, 2 * (last - first));
}

Test(graph_interpret_group, agrees_with_the_whole_graph_to_the_last_bit) {
  check_seeds(random_graph_make, 1, 400, false);
}

Test(graph_interpret_group, agrees_on_groups_without_elements) {
  check_seeds(random_graph_make, 1000, 1100, true);
}

Test(graph_interpret_group, agrees_on_windows_contractions_and_gathers) {
  check_seeds(wide_graph_make, 20000, 20600, false);
}

Test(graph_interpret_group, agrees_on_windows_contractions_and_gathers_of_nothing) {
  check_seeds(wide_graph_make, 30000, 30150, true);
}

// ---- one larger group -----------------------------------------------------------

static uint32_t apply(ft_graph *graph, ft_op op, uint32_t a, uint32_t b,
                      const ft_attr *attr) {
  uint32_t in[2] = {a, b}, out;
  MUST(ft_graph_emit(graph, op, in, ft_op_describe(op)->arity, attr, &out, ERR));
  return out;
}

// (x - mean) / sqrt(var + eps) over the last axis
static ft_graph *layer_norm(int64_t rows, int64_t columns) {
  ft_graph *graph;
  ft_shape shape = {2, {rows, columns}};
  ft_attr last = {.axes = 2};
  uint32_t x, n, eps;
  MUST(ft_graph_create(arena, "norm", &graph, ERR));
  MUST(ft_graph_begin_operator(graph, "n", "T", "", ERR));
  MUST(ft_graph_add_input(graph, "x", FT_F32, &shape, &x, ERR));
  MUST(ft_graph_add_scalar(graph, FT_F32, (double)columns, &n, ERR));
  MUST(ft_graph_add_scalar(graph, FT_F32, 1e-5, &eps, ERR));
  uint32_t sum = apply(graph, FT_OP_REDUCE_SUM, x, 0, &last);
  uint32_t centred =
      apply(graph, FT_OP_SUB, x, apply(graph, FT_OP_DIV, sum, n, NULL), NULL);
  uint32_t square = apply(graph, FT_OP_MUL, centred, centred, NULL);
  uint32_t squares = apply(graph, FT_OP_REDUCE_SUM, square, 0, &last);
  uint32_t var =
      apply(graph, FT_OP_ADD, apply(graph, FT_OP_DIV, squares, n, NULL), eps, NULL);
  uint32_t y =
      apply(graph, FT_OP_DIV, centred, apply(graph, FT_OP_SQRT, var, 0, NULL), NULL);
  MUST(ft_graph_add_output(graph, "y", y, ERR));
  MUST(ft_graph_finish(graph, ERR));
  return graph;
}

static ft_group everything(const ft_graph *graph) {
  uint32_t all[64];
  ft_group group;
  for (uint32_t p = 0; p < graph->primitive_count; p++) all[p] = p;
  MUST(ft_group_make(graph, all, graph->primitive_count, arena, &group, ERR));
  return group;
}

Test(graph_interpret_group, reduces_rows_longer_than_a_batch) {
  static sample s;
  ft_graph *graph = layer_norm(37, 2500);
  ft_group group = everything(graph);
  ft_tensor input;
  ft_reference whole;
  ft_rng rng = ft_rng_seed(3);
  MUST(ft_group_random_inputs(&group, 11, arena, &input, ERR));
  MUST(ft_interpret_graph(graph, &input, arena, &whole, ERR));
  choose(&s, 37 * 2500, &rng);
  MUST(ft_interpret_group(&group, &input, 0, s.index, s.count, s.value, s.scale, NULL,
                          ERR));
  agree(&whole, &s, 11);
}

// y = y0 + transpose(y0), y0 the one before: the elements needed double at each level
// unless equal lists are found to be equal.
Test(graph_interpret_group, shares_what_is_reached_by_many_ways) {
  ft_graph *graph;
  ft_shape shape = {2, {64, 64}};
  ft_attr swap = {.perm = {1, 0}};
  uint32_t y, half;
  MUST(ft_graph_create(arena, "deep", &graph, ERR));
  MUST(ft_graph_begin_operator(graph, "n", "T", "", ERR));
  MUST(ft_graph_add_input(graph, "x", FT_F32, &shape, &y, ERR));
  MUST(ft_graph_add_scalar(graph, FT_F32, 0.5, &half, ERR));
  for (int i = 0; i < 20; i++) {
    y = apply(graph, FT_OP_ADD, y, apply(graph, FT_OP_TRANSPOSE, y, 0, &swap), NULL);
    y = apply(graph, FT_OP_MUL, y, half, NULL);
  }
  MUST(ft_graph_add_output(graph, "y", y, ERR));
  MUST(ft_graph_finish(graph, ERR));
  ft_group group = everything(graph);
  ft_tensor input;
  ft_reference whole;
  static sample s;
  ft_rng rng = ft_rng_seed(4);
  MUST(ft_group_random_inputs(&group, 1, arena, &input, ERR));
  MUST(ft_interpret_graph(graph, &input, arena, &whole, ERR));
  choose(&s, 4096, &rng);
  MUST(ft_interpret_group(&group, &input, 0, s.index, s.count, s.value, s.scale, NULL,
                          ERR));
  agree(&whole, &s, 1);
}

Test(graph_interpret_group, refuses_wrong_indices_outputs_and_tensors) {
  ft_graph *graph = layer_norm(2, 3);
  ft_group group = everything(graph);
  ft_tensor input;
  ft_error error;
  double value;
  int64_t index = 6;
  MUST(ft_group_random_inputs(&group, 1, arena, &input, ERR));
  cr_assert_eq(
      ft_interpret_group(&group, &input, 0, &index, 1, &value, NULL, NULL, &error),
      FT_INVALID_ARGUMENT);
  index = -1;
  cr_assert_eq(
      ft_interpret_group(&group, &input, 0, &index, 1, &value, NULL, NULL, &error),
      FT_INVALID_ARGUMENT);
  index = 5;
  cr_assert_eq(
      ft_interpret_group(&group, &input, 1, &index, 1, &value, NULL, NULL, &error),
      FT_INVALID_ARGUMENT);
  input.bytes = 20;
  cr_assert_eq(
      ft_interpret_group(&group, &input, 0, &index, 1, &value, NULL, NULL, &error),
      FT_INVALID_ARGUMENT);
  input.bytes = 24;
  cr_assert_eq(
      ft_interpret_group(&group, &input, 0, &index, 1, &value, NULL, NULL, &error),
      FT_OK);
}
