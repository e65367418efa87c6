#include "graph/inputs.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static ft_arena *arena;
static ft_error error;
static void start(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void stop(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_inputs, .init = start, .fini = stop);

static ft_tensor filled(ft_dtype dtype, int64_t elements, double low, double high,
                        uint64_t seed) {
  ft_tensor t;
  void *data;
  cr_assert_eq(
      ft_tensor_alloc(dtype, &(ft_shape){1, {elements}}, arena, &t, &data, &error),
      FT_OK);
  ft_fill_random(dtype, data, elements, low, high, seed);
  return t;
}

Test(graph_inputs, floats_fill_the_half_open_interval) {
  static const ft_dtype dtypes[] = {FT_F32, FT_F64, FT_F16, FT_BF16};
  for (int d = 0; d < 4; d++) {
    ft_tensor t = filled(dtypes[d], 20000, -2, 2, 1);
    double sum = 0, least = 9, most = -9;
    for (int64_t i = 0; i < 20000; i++) {
      double x = ft_tensor_get_f64(&t, i);
      sum += x, least = fmin(least, x), most = fmax(most, x);
    }
    cr_assert(least >= -2 && least < -1.99 && most < 2 && most > 1.98, "%s: %g to %g",
              ft_dtype_text(dtypes[d]), least, most);
    cr_assert_lt(fabs(sum / 20000), 0.05);
  }
}

Test(graph_inputs, rounding_never_reaches_the_upper_end) {
  double low = 1 - 0x1p-24, high = 1;  // half of the draws would round up
  ft_tensor t = filled(FT_F32, 1000, low, high, 3);
  for (int64_t i = 0; i < 1000; i++) cr_assert_lt(ft_tensor_get_f64(&t, i), 1);
  t = filled(FT_BF16, 1000, 0.99, 1, 3);
  for (int64_t i = 0; i < 1000; i++) cr_assert_lt(ft_tensor_get_f64(&t, i), 1);
}

Test(graph_inputs, integers_take_every_value_below_the_upper_end) {
  ft_tensor t = filled(FT_I32, 4000, -1.5, 3, 1);
  int seen[5] = {0};
  for (int64_t i = 0; i < 4000; i++) {
    int64_t x = ft_tensor_get_i64(&t, i);
    cr_assert(x >= -2 && x < 3, "%lld", (long long)x);
    seen[x + 2]++;
  }
  for (int i = 0; i < 5; i++) cr_assert_gt(seen[i], 600);
}

Test(graph_inputs, bools_are_zero_or_one) {
  ft_tensor t = filled(FT_BOOL, 1000, -5, 5, 1);
  int ones = 0;
  for (int i = 0; i < 1000; i++) {
    cr_assert_leq(((const uint8_t *)t.data)[i], 1);
    ones += ((const uint8_t *)t.data)[i];
  }
  cr_assert(ones > 400 && ones < 600);
}

Test(graph_inputs, one_seed_gives_one_sequence) {
  ft_tensor a = filled(FT_F32, 100, 0, 1, 5), b = filled(FT_F32, 100, 0, 1, 5),
            c = filled(FT_F32, 100, 0, 1, 6);
  cr_assert_eq(memcmp(a.data, b.data, a.bytes), 0);
  cr_assert_neq(memcmp(a.data, c.data, a.bytes), 0);
}

// x: log(-x); y: sqrt(y + 1); z: z^2; w: w^0.5; i: an integer, cast to float under exp
static ft_graph *example(void) {
  ft_graph *graph;
  ft_shape shape = {1, {500}};
  uint32_t in[5], exponent[2], one, v[5];
  ft_attr to_float = {.to = FT_F32};
#define OK(call) cr_assert_eq((call), FT_OK)
  OK(ft_graph_create(arena, "g", &graph, &error));
  OK(ft_graph_begin_operator(graph, "n", "T", "", &error));
  for (int i = 0; i < 5; i++)
    OK(ft_graph_add_input(graph, "x", i == 4 ? FT_I32 : FT_F32, &shape, &in[i], &error));
  OK(ft_graph_add_scalar(graph, FT_F32, 2, &exponent[0], &error));
  OK(ft_graph_add_scalar(graph, FT_F32, 0.5, &exponent[1], &error));
  OK(ft_graph_add_scalar(graph, FT_F32, 1, &one, &error));
  OK(ft_graph_emit(graph, FT_OP_NEG, &in[0], 1, NULL, &v[0], &error));
  OK(ft_graph_emit(graph, FT_OP_LOG, &v[0], 1, NULL, &v[0], &error));
  OK(ft_graph_emit(graph, FT_OP_ADD, (uint32_t[]){in[1], one}, 2, NULL, &v[1], &error));
  OK(ft_graph_emit(graph, FT_OP_SQRT, &v[1], 1, NULL, &v[1], &error));
  for (int i = 0; i < 2; i++)
    OK(ft_graph_emit(graph, FT_OP_POW, (uint32_t[]){in[2 + i], exponent[i]}, 2, NULL,
                     &v[2 + i], &error));
  OK(ft_graph_emit(graph, FT_OP_CAST, &in[4], 1, &to_float, &v[4], &error));
  for (int i = 0; i < 5; i++) OK(ft_graph_add_output(graph, "y", v[i], &error));
  OK(ft_graph_finish(graph, &error));
  return graph;
}

static double least_of(const ft_tensor *t) {
  double least = INFINITY;
  for (int64_t i = 0; i < ft_shape_elements(&t->shape); i++)
    least = fmin(least, ft_tensor_get_f64(t, i));
  return least;
}

Test(graph_inputs, only_what_reaches_a_root_or_logarithm_unary_is_positive) {
  ft_tensor in[5];
  OK(ft_graph_random_inputs(example(), 1, arena, in, &error));
  cr_assert_geq(least_of(&in[0]), 0.25, "log(-x) reads x through a unary primitive");
  cr_assert_lt(least_of(&in[1]), -1.9, "y + 1 is no unary primitive");
  cr_assert_lt(least_of(&in[2]), -1.9, "squares take any number");
  cr_assert_geq(least_of(&in[3]), 0.25, "broken powers do not");
  cr_assert_eq(least_of(&in[4]), 0);
  for (int i = 0; i < 5; i++) cr_assert_eq((uintptr_t)in[i].data % 64, 0);
}

Test(graph_inputs, input_i_uses_the_seed_plus_i) {
  ft_tensor in[5], shifted[5];
  ft_graph *graph = example();
  OK(ft_graph_random_inputs(graph, 1, arena, in, &error));
  OK(ft_graph_random_inputs(graph, 2, arena, shifted, &error));
  cr_assert_eq(memcmp(in[2].data, shifted[1].data, in[2].bytes), 0);
  cr_assert_neq(memcmp(in[1].data, shifted[1].data, in[1].bytes), 0);
}

Test(graph_inputs, constants_of_a_group_get_their_own_bytes) {
  ft_graph *graph;
  ft_shape shape = {1, {3}};
  const float bytes[3] = {7, 8, 9};
  ft_tensor t = {FT_F32, shape, bytes, sizeof bytes}, in[3];
  uint32_t x, c, w, y;
  OK(ft_graph_create(arena, "g", &graph, &error));
  OK(ft_graph_begin_operator(graph, "n", "T", "", &error));
  OK(ft_graph_add_input(graph, "x", FT_F32, &shape, &x, &error));
  OK(ft_graph_add_constant(graph, "c", &t, &c, &error));
  OK(ft_graph_add_weight(graph, "w", FT_F32, &shape, 4, &w, &error));
  OK(ft_graph_emit(graph, FT_OP_ADD, (uint32_t[]){x, c}, 2, NULL, &y, &error));
  OK(ft_graph_emit(graph, FT_OP_MUL, (uint32_t[]){y, w}, 2, NULL, &y, &error));
  OK(ft_graph_add_output(graph, "y", y, &error));
  OK(ft_graph_finish(graph, &error));
  ft_group group;
  OK(ft_group_make(graph, (uint32_t[]){0, 1}, 2, arena, &group, &error));
  cr_assert_eq(group.input_count, 3);
  OK(ft_group_random_inputs(&group, 1, arena, in, &error));
  int known = 0, drawn = 0;
  for (uint32_t i = 0; i < 3; i++) {
    if (group.input[i] == c) known += memcmp(in[i].data, bytes, sizeof bytes) == 0;
    if (group.input[i] == w) drawn += fabs(ft_tensor_get_f64(&in[i], 0)) <= 0.5;
  }
  cr_assert(known == 1 && drawn == 1);
}

// Two gathers along axes of 50 and 7 read i through a view, a slice and a cast; k is read
// by an addition first.
Test(graph_inputs, indices_stay_below_the_shortest_axis_they_are_for) {
  ft_graph *graph;
  const ft_shape data = {2, {50, 7}}, flat = {1, {4000}}, square = {2, {40, 100}};
  ft_attr rows = {.axis = 0}, columns = {.axis = 1}, to_int = {.to = FT_I64};
  ft_attr part = {.start = {3999}, .step = {-1}, .shape = {1, {3000}}};
  uint32_t x, i, j, k, one, v, y[3];
  OK(ft_graph_create(arena, "g", &graph, &error));
  OK(ft_graph_begin_operator(graph, "n", "T", "", &error));
  OK(ft_graph_add_input(graph, "x", FT_F32, &data, &x, &error));
  OK(ft_graph_add_input(graph, "i", FT_I32, &flat, &i, &error));
  OK(ft_graph_add_input(graph, "j", FT_I64, &flat, &j, &error));
  OK(ft_graph_add_input(graph, "k", FT_I64, &flat, &k, &error));
  OK(ft_graph_add_scalar(graph, FT_I64, 1, &one, &error));
  OK(ft_graph_view(graph, i, &square, &v, &error));
  OK(ft_graph_emit(graph, FT_OP_GATHER, (uint32_t[]){x, v}, 2, &rows, &y[0], &error));
  OK(ft_graph_emit(graph, FT_OP_SLICE, &i, 1, &part, &v, &error));
  OK(ft_graph_emit(graph, FT_OP_CAST, &v, 1, &to_int, &v, &error));
  OK(ft_graph_emit(graph, FT_OP_GATHER, (uint32_t[]){x, v}, 2, &columns, &y[1], &error));
  OK(ft_graph_emit(graph, FT_OP_ADD, (uint32_t[]){k, one}, 2, NULL, &v, &error));
  OK(ft_graph_emit(graph, FT_OP_GATHER, (uint32_t[]){x, j}, 2, &rows, &y[2], &error));
  OK(ft_graph_emit(graph, FT_OP_GATHER, (uint32_t[]){y[2], v}, 2, &rows, &y[2], &error));
  for (int o = 0; o < 3; o++) OK(ft_graph_add_output(graph, "y", y[o], &error));
  OK(ft_graph_finish(graph, &error));
  ft_tensor in[4];
  OK(ft_graph_random_inputs(graph, 1, arena, in, &error));
  static const int64_t most[4] = {0, 6, 49, 3};
  for (int t = 1; t < 4; t++) {
    int64_t seen = 0;
    for (int64_t e = 0; e < 4000; e++) {
      int64_t index = ft_tensor_get_i64(&in[t], e);
      cr_assert(index >= 0 && index <= most[t], "input %d: %lld", t, (long long)index);
      if (index > seen) seen = index;
    }
    cr_assert_eq(seen, most[t], "input %d never reaches %lld", t, (long long)most[t]);
  }
}

Test(graph_inputs, a_recipe_of_a_group_says_what_its_indices_stay_below) {
  ft_graph *graph;
  const ft_shape data = {2, {50, 7}}, flat = {1, {9}};
  uint32_t x, i, y;
  OK(ft_graph_create(arena, "g", &graph, &error));
  OK(ft_graph_begin_operator(graph, "n", "T", "", &error));
  OK(ft_graph_add_input(graph, "x", FT_F32, &data, &x, &error));
  OK(ft_graph_add_input(graph, "i", FT_I32, &flat, &i, &error));
  OK(ft_graph_emit(graph, FT_OP_GATHER, (uint32_t[]){x, i}, 2, NULL, &y, &error));
  OK(ft_graph_add_output(graph, "y", y, &error));
  OK(ft_graph_finish(graph, &error));
  ft_group group;
  ft_input_recipe recipe[2];
  ft_tensor in[2];
  OK(ft_group_make(graph, (uint32_t[]){0}, 1, arena, &group, &error));
  OK(ft_group_input_recipes(&group, 5, arena, recipe, &error));
  cr_assert(recipe[1].low == 0 && recipe[1].high == 50 && recipe[1].elements == 9);
  OK(ft_group_random_inputs(&group, 5, arena, in, &error));
  int32_t drawn[9];
  ft_fill_random(FT_I32, drawn, 9, recipe[1].low, recipe[1].high, recipe[1].seed);
  cr_assert_eq(memcmp(drawn, in[1].data, sizeof drawn), 0);
}
