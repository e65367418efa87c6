#include "graph/interpreter.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "graph/inputs.h"
#include "random_graph.h"
#include "single.h"
#include "tests/support/limited.h"
#include "wide_graph.h"

static ft_arena *arena;
static void start(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void stop(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_interpreter, .init = start, .fini = stop);

// ---- small graphs by hand -------------------------------------------------------

static ft_graph *open_graph(void) {
  ft_graph *graph;
  MUST(ft_graph_create(arena, "g", &graph, ERR));
  MUST(ft_graph_begin_operator(graph, "n", "T", "", ERR));
  return graph;
}
static uint32_t input(ft_graph *graph, ft_dtype dtype, ft_shape shape) {
  uint32_t value;
  MUST(ft_graph_add_input(graph, "x", dtype, &shape, &value, ERR));
  return value;
}
static uint32_t apply(ft_graph *graph, ft_op op, uint32_t a, uint32_t b,
                      const ft_attr *attr) {
  uint32_t in[2] = {a, b}, out;
  MUST(ft_graph_emit(graph, op, in, ft_op_describe(op)->arity, attr, &out, ERR));
  return out;
}
static void finish(ft_graph *graph, uint32_t output) {
  MUST(ft_graph_add_output(graph, "y", output, ERR));
  MUST(ft_graph_finish(graph, ERR));
}
static ft_tensor tensor(ft_dtype dtype, ft_shape shape, const double *data) {
  ft_tensor t;
  void *bytes;
  MUST(ft_tensor_alloc(dtype, &shape, arena, &t, &bytes, ERR));
  for (int64_t i = 0; i < ft_shape_elements(&shape); i++)
    ft_element_set_f64(dtype, bytes, i, data[i]);
  return t;
}

Test(graph_interpreter, subtracts_the_mean_of_each_row) {
  ft_graph *graph = open_graph();
  ft_shape shape = {2, {2, 3}};
  uint32_t x = input(graph, FT_F32, shape), n;
  MUST(ft_graph_add_scalar(graph, FT_F32, 3, &n, ERR));
  uint32_t sum = apply(graph, FT_OP_REDUCE_SUM, x, 0, &(ft_attr){.axes = 2});
  finish(graph, apply(graph, FT_OP_SUB, x, apply(graph, FT_OP_DIV, sum, n, NULL), NULL));
  ft_tensor in = tensor(FT_F32, shape, (double[]){1, 2, 6, -3, 0, 9});
  ft_reference out;
  MUST(ft_interpret_graph(graph, &in, arena, &out, ERR));
  static const double want[] = {-2, -1, 3, -5, -2, 7};
  for (int i = 0; i < 6; i++) cr_assert_eq(out.value[i], want[i]);
  cr_assert(ft_shape_equal(&out.shape, &shape));
}

Test(graph_interpreter, transposes_and_views_find_the_right_elements) {
  ft_graph *graph = open_graph();
  ft_shape shape = {2, {2, 3}}, flat = {1, {6}};
  uint32_t x = input(graph, FT_I32, shape), view;
  ft_attr swap = {.perm = {1, 0}};
  uint32_t t = apply(graph, FT_OP_TRANSPOSE, x, 0, &swap);
  MUST(ft_graph_view(graph, t, &flat, &view, ERR));
  finish(graph, apply(graph, FT_OP_NEG, view, 0, NULL));
  ft_tensor in = tensor(FT_I32, shape, (double[]){1, 2, 3, 4, 5, 6});
  ft_reference out;
  MUST(ft_interpret_graph(graph, &in, arena, &out, ERR));
  static const int64_t want[] = {-1, -4, -2, -5, -3, -6};
  for (int i = 0; i < 6; i++) cr_assert_eq(out.integer[i], want[i]);
  cr_assert(!out.value && !out.scale);
}

Test(graph_interpreter, outputs_may_be_inputs_constants_and_views_and_repeat) {
  ft_graph *graph = open_graph();
  ft_shape shape = {2, {2, 2}}, flat = {1, {4}};
  uint32_t x = input(graph, FT_F32, shape), w, view;
  MUST(ft_graph_add_weight(graph, "w", FT_F32, &shape, 5, &w, ERR));
  uint32_t y = apply(graph, FT_OP_ADD, x, w, NULL);
  MUST(ft_graph_view(graph, y, &flat, &view, ERR));
  uint32_t values[] = {x, w, view, y, view, x};
  for (int i = 0; i < 6; i++) MUST(ft_graph_add_output(graph, "y", values[i], ERR));
  MUST(ft_graph_finish(graph, ERR));
  ft_tensor in = tensor(FT_F32, shape, (double[]){1, 2, 3, 4});
  ft_reference out[6];
  MUST(ft_interpret_graph(graph, &in, arena, out, ERR));
  for (int i = 0; i < 4; i++) {
    cr_assert_eq(out[0].value[i], i + 1);
    cr_assert_eq(out[5].value[i], i + 1);
    cr_assert_eq(out[3].value[i], out[0].value[i] + out[1].value[i]);
    cr_assert_eq(out[2].value[i], out[3].value[i]);
    cr_assert_eq(out[4].value[i], out[3].value[i]);
  }
  cr_assert_eq(out[2].shape.rank, 1);
}

Test(graph_interpreter, an_uncertain_bool_output_has_a_scale) {
  ft_graph *graph = open_graph();
  ft_shape shape = {1, {2000}};
  uint32_t x = input(graph, FT_F32, shape), third;
  MUST(ft_graph_add_scalar(graph, FT_F32, 1.0 / 3, &third, ERR));
  uint32_t y = apply(graph, FT_OP_MUL, x, third, NULL);
  finish(graph, apply(graph, FT_OP_LESS, y, third, NULL));
  double data[2000] = {[3] = 1.00000012, [1999] = -7};
  ft_tensor in = tensor(FT_F32, shape, data);
  ft_reference out;
  MUST(ft_interpret_graph(graph, &in, arena, &out, ERR));
  cr_assert_not_null(out.scale);
  for (int i = 0; i < 2000; i++)
    cr_assert_eq(isinf(out.scale[i]), 0 + (i == 3), "element %d", i);
  cr_assert_eq(out.integer[1999], 1);
}

Test(graph_interpreter, refuses_tensors_of_another_dtype_shape_or_size) {
  ft_graph *graph = open_graph();
  ft_shape shape = {1, {4}};
  uint32_t x = input(graph, FT_F32, shape);
  finish(graph, apply(graph, FT_OP_NEG, x, 0, NULL));
  ft_tensor good = tensor(FT_F32, shape, (double[]){1, 2, 3, 4}), bad = good;
  ft_reference out;
  ft_error error;
  bad.dtype = FT_I32;
  cr_assert_eq(ft_interpret_graph(graph, &bad, arena, &out, &error), FT_INVALID_ARGUMENT);
  bad = good;
  bad.shape.dim[0] = 3;
  cr_assert_eq(ft_interpret_graph(graph, &bad, arena, &out, &error), FT_INVALID_ARGUMENT);
  bad = good;
  bad.bytes = 12;
  cr_assert_eq(ft_interpret_graph(graph, &bad, arena, &out, &error), FT_INVALID_ARGUMENT);
}

Test(graph_interpreter, reads_unaligned_tensors) {
  ft_graph *graph = open_graph();
  ft_shape shape = {1, {4}};
  uint32_t x = input(graph, FT_F32, shape);
  finish(graph, apply(graph, FT_OP_NEG, x, 0, NULL));
  ft_tensor in = tensor(FT_F32, shape, (double[]){1, 2, 3, 4});
  char *shifted = ft_arena_alloc(arena, 32);
  memcpy(shifted + 1, in.data, 16);
  in.data = shifted + 1;
  ft_reference out;
  MUST(ft_interpret_graph(graph, &in, arena, &out, ERR));
  cr_assert_eq(out.value[3], -4);
}

Test(graph_interpreter, says_so_when_the_outputs_do_not_fit_in_the_arena) {
  const ft_graph *graph = random_graph_make(12, 10, false, arena);
  ft_tensor in[3];
  ft_reference out[3];
  MUST(ft_graph_random_inputs(graph, 1, arena, in, ERR));
  int failures = 0;
  for (int n = 1; n < 8; n++) {
    limited l = {.left = n};
    ft_allocator a = limited_allocator(&l);
    ft_arena *small = ft_arena_create(&a);
    ft_error error;
    ft_status status = ft_interpret_graph(graph, in, small, out, &error);
    cr_assert(status == FT_OK || status == FT_OUT_OF_MEMORY);
    failures += status != FT_OK;
    ft_arena_destroy(small);
    cr_assert_eq(l.live, 0);
  }
  cr_assert(failures > 0 && failures < 7);
}

// ---- random graphs against single precision -------------------------------------

// Some NaN, infinities, zeros, huge and denormal numbers among the inputs.
static void season(const ft_tensor *t, ft_rng *rng) {
  static const float spice[] = {NAN,    INFINITY, -INFINITY, 0.0f,   -0.0f,
                                3e38f,  -3e38f,   1e-40f,    -2e20f, 1e-30f,
                                100.0f, -104.0f,  FLT_MIN,   1e9f};
  float *data = (float *)(uintptr_t)t->data;
  for (int64_t i = 0; i < ft_shape_elements(&t->shape); i++)
    if (ft_rng_below(rng, 12) == 0) data[i] = spice[ft_rng_below(rng, 14)];
}

static int descending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

typedef struct tally {
  double ratio[400000];
  size_t count, uncertain, planted, caught, graphs;
} tally;

static void judge_output(const ft_graph *graph, uint64_t seed, const ft_graph_output *o,
                         const ft_reference *reference, const double *actual, tally *t) {
  int64_t elements = ft_shape_elements(&reference->shape);
  for (int64_t i = 0; i < elements; i++) {
    double value = reference->value[i], scale = reference->scale[i];
    ft_comparison one;
    ft_comparison_init(&one);
    ft_compare_float(FT_F32, i, actual[i], value, scale, &one);
    cr_assert(
        one.max_ratio <= 1,
        "seed %llu, output %u, element %lld: %.9g, expected %.9g, scale %g: ratio %g",
        (unsigned long long)seed, o->value, (long long)i, actual[i], value, scale,
        one.max_ratio);
    if (isinf(scale)) t->uncertain++;
    if (isinf(scale) || !isfinite(value) || fabs(value) < 1e-30) continue;
    if (scale > 0 && t->count < 400000) t->ratio[t->count++] = one.max_ratio;
    ft_comparison_init(&one);
    ft_compare_float(FT_F32, i, actual[i] * (1 + 1e-3), value, scale, &one);
    t->planted++;
    t->caught += one.max_ratio > 1;
  }
  (void)graph;
}

typedef ft_graph *maker(uint64_t seed, int steps, bool with_empty, ft_arena *to);

static void judge_graph(maker *make, uint64_t seed, int steps, bool seasoned,
                        bool with_empty, tally *t) {
  ft_arena *local = ft_arena_create(ft_allocator_system());
  ft_graph *graph = make(seed, steps, with_empty, local);
  ft_tensor in[64];
  ft_rng rng = ft_rng_seed(seed);
  cr_assert_leq(graph->input_count, 64);
  MUST(ft_graph_random_inputs(graph, seed, local, in, ERR));
  for (uint32_t i = 0; i < graph->input_count && seasoned; i++)
    if (in[i].dtype == FT_F32) season(&in[i], &rng);
  ft_reference out[3];
  MUST(ft_interpret_graph(graph, in, local, out, ERR));
  single s = single_run(graph, in, seed, local);
  for (uint32_t i = 0; i < graph->output_count; i++) {
    const ft_value *v = &graph->value[graph->output[i].value];
    judge_output(graph, seed, &graph->output[i], &out[i], s.value[v->root], t);
  }
  t->graphs++;
  ft_arena_destroy(local);
}

static void judge(uint64_t seed, int steps, bool seasoned, bool with_empty, tally *t) {
  judge_graph(random_graph_make, seed, steps, seasoned, with_empty, t);
}
static void judge_wide(uint64_t seed, int steps, bool seasoned, bool with_empty,
                       tally *t) {
  judge_graph(wide_graph_make, seed, steps, seasoned, with_empty, t);
}

Test(graph_interpreter, a_single_precision_evaluation_stays_within_the_tolerance) {
  static tally t;
  for (uint64_t seed = 1; seed <= 1500; seed++) judge(seed, 10, false, false, &t);
  qsort(t.ratio, t.count, sizeof t.ratio[0], descending);
  double median = t.ratio[t.count / 2], high = t.ratio[t.count / 100];
  double share = (double)t.caught / (double)t.planted;
  printf(
      "ratio: median %.3g, 1 in 100 above %.3g, worst %.3g; caught %.4f of %zu; "
      "uncertain %zu\n",
      median, high, t.ratio[0], share, t.planted, t.uncertain);
  cr_assert_gt(t.count, 10000);
  cr_assert_gt(median, 0.005, "the tolerance is loose: median ratio %g", median);
  cr_assert_gt(high, 0.1, "the tolerance is loose: 1 in 100 above %g", high);
  cr_assert_geq(share, 0.95, "an error of 0.001 was caught in %.4f of %zu", share,
                t.planted);
}

Test(graph_interpreter, special_values_come_out_as_in_single_precision) {
  static tally t;
  for (uint64_t seed = 5000; seed <= 6500; seed++) judge(seed, 8, true, false, &t);
  printf("compared %zu, uncertain %zu\n", t.planted, t.uncertain);
  cr_assert_gt(t.planted, 4 * t.uncertain, "%zu of %zu are uncertain", t.uncertain,
               t.planted);
}

Test(graph_interpreter, graphs_without_elements_run) {
  static tally t;
  for (uint64_t seed = 9000; seed <= 9100; seed++) judge(seed, 10, false, true, &t);
  cr_assert_eq(t.graphs, 101);
}

Test(graph_interpreter, windows_contractions_and_gathers_stay_within_the_tolerance) {
  static tally t;
  for (uint64_t seed = 20000; seed <= 20800; seed++)
    judge_wide(seed, 10, false, false, &t);
  qsort(t.ratio, t.count, sizeof t.ratio[0], descending);
  double median = t.ratio[t.count / 2], high = t.ratio[t.count / 100];
  double share = (double)t.caught / (double)t.planted;
  printf(
      "ratio: median %.3g, 1 in 100 above %.3g, worst %.3g; caught %.4f of %zu; "
      "uncertain %zu\n",
      median, high, t.ratio[0], share, t.planted, t.uncertain);
  cr_assert_gt(t.count, 10000);
  cr_assert_gt(high, 0.1, "the tolerance is loose: 1 in 100 above %g", high);
  cr_assert_geq(share, 0.9, "an error of 0.001 was caught in %.4f of %zu", share,
                t.planted);
}

Test(graph_interpreter, special_values_pass_through_windows_contractions_and_gathers) {
  static tally t;
  for (uint64_t seed = 30000; seed <= 30800; seed++) judge_wide(seed, 7, true, false, &t);
  printf("compared %zu, uncertain %zu\n", t.planted, t.uncertain);
  cr_assert_gt(t.planted, 2 * t.uncertain, "%zu of %zu are uncertain", t.uncertain,
               t.planted);
}

Test(graph_interpreter, windows_contractions_and_gathers_run_without_elements) {
  static tally t;
  for (uint64_t seed = 40000; seed <= 40200; seed++)
    judge_wide(seed, 10, false, true, &t);
  cr_assert_eq(t.graphs, 201);
}
