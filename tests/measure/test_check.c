#include <math.h>

#include "graph/inputs.h"
#include "measure/check.h"
#include "tests/measure/workbench.h"
#include "tests/support/graphs.h"

static ft_arena *arena;
static ft_error error;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(measure_check, .init = set_up, .fini = tear_down);

// y = x + x + c of |shape|, with x = 0, 1, 2, ... and c = 3: as a group with its two
// inputs.
static ft_group affine(ft_shape shape, ft_tensor input[2], float **out_x) {
  const spec table[] = {
      {.op = SPEC_INPUT, .shape = shape},
      {.op = SPEC_INPUT, .shape = shape},
      {.op = FT_OP_ADD, .in = {0, 0}},
      {.op = FT_OP_ADD, .in = {2, 1}, .is_output = true},
  };
  ft_graph *graph = spec_build(table, 4, NULL, arena);
  const uint32_t all[] = {0, 1};
  ft_group group;
  cr_assert_eq(ft_group_make(graph, all, 2, arena, &group, &error), FT_OK, "%s",
               error.text);
  cr_assert(group.input_count == 2 && group.output_count == 1);
  for (uint32_t i = 0; i < 2; i++) {
    void *data;
    bool is_x = group.input[i] == graph->input[0].value;
    cr_assert_eq(ft_tensor_alloc(FT_F32, &shape, arena, &input[i], &data, &error), FT_OK);
    for (int64_t k = 0; k < ft_shape_elements(&shape); k++)
      ((float *)data)[k] = is_x ? (float)k : 3;
    if (is_x) *out_x = data;
  }
  return group;
}

static ft_output_check make(const ft_group *group, const ft_tensor *input, int64_t full,
                            uint64_t limit_ns) {
  ft_group_check *check;
  cr_assert_eq(
      ft_group_check_create(group, input, 1, full, limit_ns, arena, &check, &error),
      FT_OK, "%s", error.text);
  return ft_group_check_outputs(check);
}

static float *right_answer(const float *x, int64_t n) {
  float *y = FT_NEW_ARRAY(arena, float, (size_t)n);
  for (int64_t i = 0; i < n; i++) y[i] = 2 * x[i] + 3;
  return y;
}

static ft_comparison compare(const ft_output_check *check, const float *y,
                             char worst[256]) {
  const void *output[] = {y};
  ft_comparison found;
  cr_assert_eq(check->compare(check->ctx, output, &found, worst, &error), FT_OK, "%s",
               error.text);
  return found;
}

Test(measure_check, a_right_output_is_right_to_the_last_element) {
  ft_tensor input[2];
  float *x;
  ft_group group = affine(SHAPE(7, 143), input, &x);
  ft_output_check check = make(&group, input, 100000, UINT64_MAX);
  char worst[256];
  ft_comparison found = compare(&check, right_answer(x, 1001), worst);
  cr_expect_leq(found.max_ratio, 1.0);
  cr_expect_eq(found.compared, 1001);
  cr_expect_str_empty(worst);
}

Test(measure_check, every_single_wrong_element_of_a_whole_comparison_is_found) {
  ft_tensor input[2];
  float *x;
  ft_group group = affine(SHAPE(7, 143), input, &x);
  ft_output_check check = make(&group, input, 100000, UINT64_MAX);
  float *y = right_answer(x, 1001);
  for (int i = 0; i < 1001; i += 10) {
    char worst[256], words[64];
    float kept = y[i];
    y[i] += 1;
    ft_comparison found = compare(&check, y, worst);
    cr_expect_gt(found.max_ratio, 1.0);
    cr_expect_eq(found.worst_index, i);
    snprintf(words, sizeof words, "output 0 at %d: got ", i);
    cr_expect(strstr(worst, words), "%s", worst);
    y[i] = kept;
  }
}

Test(measure_check, nan_and_infinity_are_wrong_where_the_reference_has_none) {
  ft_tensor input[2];
  float *x;
  ft_group group = affine(SHAPE(100), input, &x);
  const float bad[] = {NAN, INFINITY, -INFINITY};
  ft_output_check check = make(&group, input, 100000, UINT64_MAX);
  for (int i = 0; i < 3; i++) {
    char worst[256];
    float *y = right_answer(x, 100);
    y[50] = bad[i];
    ft_comparison found = compare(&check, y, worst);
    cr_expect(isinf(found.max_ratio), "%g", found.max_ratio);
    cr_expect(strstr(worst, "output 0 at 50: got"), "%s", worst);
  }
}

Test(measure_check, a_nan_is_right_where_the_reference_has_one) {
  ft_tensor input[2];
  float *x;
  ft_group group = affine(SHAPE(100), input, &x);
  memset(&x[7], FT_POISON_BYTE, 4);  // the very NaN of the poison
  ft_output_check check = make(&group, input, 100000, UINT64_MAX);
  float *y = right_answer(x, 100);
  memset(&y[7], FT_POISON_BYTE, 4);
  char worst[256];
  cr_expect_leq(compare(&check, y, worst).max_ratio, 1.0, "%s", worst);
}

Test(measure_check, one_unwritten_element_of_a_large_output_is_found) {
  enum { N = 300 * 1000 };
  ft_tensor input[2];
  float *x;
  ft_group group = affine(SHAPE(300, 1000), input, &x);
  ft_output_check check = make(&group, input, 1000, UINT64_MAX);
  float *y = right_answer(x, N);
  char worst[256];
  ft_comparison found = compare(&check, y, worst);
  cr_expect_leq(found.max_ratio, 1.0, "%s", worst);
  cr_expect_eq(found.compared, 4096 + 2 * 64 + 2 * 64);
  memset(&y[123456], FT_POISON_BYTE, 8);
  found = compare(&check, y, worst);
  cr_expect(isinf(found.max_ratio));
  cr_expect_str_eq(worst, "output 0 at 123456: not written (nor 1 more of 300000)");
}

Test(measure_check, edges_of_a_large_output_are_always_compared) {
  enum { N = 300 * 1000 };
  static const int64_t edges[] = {0, 63, 999, N - 1000, N - 64, N - 1};
  ft_tensor input[2];
  float *x;
  ft_group group = affine(SHAPE(300, 1000), input, &x);
  ft_output_check check = make(&group, input, 1000, UINT64_MAX);
  float *y = right_answer(x, N);
  for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
    char worst[256];
    float kept = y[edges[i]];
    y[edges[i]] = -1;
    ft_comparison found = compare(&check, y, worst);
    cr_expect_eq(found.worst_index, edges[i], "%lld", (long long)edges[i]);
    y[edges[i]] = kept;
  }
}

Test(measure_check, the_time_limit_shrinks_the_sample_to_64_and_no_further) {
  ft_tensor input[2];
  float *x;
  ft_group group = affine(SHAPE(300, 1000), input, &x);
  char worst[256];
  ft_output_check check = make(&group, input, 1000, 0);
  ft_comparison found = compare(&check, right_answer(x, 300000), worst);
  cr_expect_eq(found.compared, 64);
  check = make(&group, input, 1000000, 0);
  cr_expect_eq(compare(&check, right_answer(x, 300000), worst).compared, 64);
}

// y = a b with a of ones and b = 0, 1, 2, ... along its columns, negated in a second
// output: sums of many terms.
static ft_group product(ft_tensor input[2]) {
  const spec table[] = {
      {.op = SPEC_INPUT, .shape = SHAPE(64, 1024)},
      {.op = SPEC_INPUT, .shape = SHAPE(1024, 96)},
      {.op = FT_OP_MATMUL, .in = {0, 1}, .is_output = true},
      {.op = FT_OP_NEG, .in = {2}, .is_output = true},
  };
  ft_graph *graph = spec_build(table, 4, NULL, arena);
  const uint32_t all[] = {0, 1};
  ft_group group;
  cr_assert_eq(ft_group_make(graph, all, 2, arena, &group, &error), FT_OK, "%s",
               error.text);
  for (uint32_t i = 0; i < 2; i++) {
    const ft_shape *shape = &graph->value[group.input[i]].shape;
    void *data;
    cr_assert_eq(ft_tensor_alloc(FT_F32, shape, arena, &input[i], &data, &error), FT_OK);
    for (int64_t k = 0; k < ft_shape_elements(shape); k++)
      ((float *)data)[k] = shape->dim[0] == 64 ? 1 : (float)(k % 96);
  }
  return group;
}

Test(measure_check, every_element_of_a_product_is_compared_where_dense_order_is_shorter) {
  enum { N = 64 * 96 };
  ft_tensor input[2];
  ft_group group = product(input);
  float y[N], minus[N];
  for (int i = 0; i < N; i++) minus[i] = -(y[i] = 1024 * (float)(i % 96));
  const bool is_y_first =
      group.graph->primitive[group.graph->value[group.output[0]].producer].op ==
      FT_OP_MATMUL;
  const void *output[] = {is_y_first ? y : minus, is_y_first ? minus : y};
  ft_comparison found;
  char worst[256];
  ft_output_check check = make(&group, input, 1000, UINT64_MAX);
  cr_assert_eq(check.compare(check.ctx, output, &found, worst, &error), FT_OK);
  cr_expect_leq(found.max_ratio, 1.0, "%s", worst);
  cr_expect_eq(found.compared, 2 * N);
  for (int i = 1; i < N; i += 97) {
    y[i] += 2;
    cr_assert_eq(check.compare(check.ctx, output, &found, worst, &error), FT_OK);
    cr_expect(found.max_ratio > 1.0 && found.worst_index == i, "%d: %s", i, worst);
    y[i] -= 2;
  }
  // No time for all of it: 64 elements are fewer steps.
  check = make(&group, input, 1000, 0);
  cr_assert_eq(check.compare(check.ctx, output, &found, worst, &error), FT_OK);
  cr_expect_eq(found.compared, 2 * 64);
  cr_expect_leq(found.max_ratio, 1.0, "%s", worst);
}

Test(measure_check, an_empty_output_is_right) {
  ft_tensor input[2];
  float *x;
  ft_group group = affine(SHAPE(0, 5), input, &x);
  ft_output_check check = make(&group, input, 1000, UINT64_MAX);
  char worst[256];
  ft_comparison found = compare(&check, (const float *)"", worst);
  cr_expect(found.compared == 0 && found.max_ratio <= 1.0);
}

Test(measure_check, unwritten_integers_and_bools_are_found_and_right_ones_are_not) {
  const spec table[] = {
      {.op = SPEC_INPUT, .dtype = FT_I8, .shape = SHAPE(300)},
      {.op = FT_OP_NEG, .in = {0}, .is_output = true},
  };
  ft_graph *graph = spec_build(table, 2, NULL, arena);
  const uint32_t zero = 0;
  ft_group group;
  cr_assert_eq(ft_group_make(graph, &zero, 1, arena, &group, &error), FT_OK);
  ft_tensor input;
  void *data;
  ft_shape shape = SHAPE(300);
  cr_assert_eq(ft_tensor_alloc(FT_I8, &shape, arena, &input, &data, &error), FT_OK);
  int8_t *x = data, y[300];
  for (int i = 0; i < 300; i++) x[i] = (int8_t)(i % 100), y[i] = (int8_t)-x[i];
  ft_output_check check = make(&group, &input, 1000, UINT64_MAX);
  const void *output[] = {y};
  ft_comparison found;
  char worst[256];
  // -5 is the poison of a byte: right where x = 5.
  cr_assert_eq(check.compare(check.ctx, output, &found, worst, &error), FT_OK);
  cr_expect_leq(found.max_ratio, 1.0, "%s", worst);
  y[200] = (int8_t)FT_POISON_INTEGER_BYTE;
  cr_assert_eq(check.compare(check.ctx, output, &found, worst, &error), FT_OK);
  cr_expect(isinf(found.max_ratio));
  cr_expect(strstr(worst, "output 0 at 200: not written"), "%s", worst);
}

Test(measure_check, a_kernel_is_checked_against_the_interpreter_by_a_runner) {
  ft_tensor input[2];
  float *x;
  ft_group group = affine(SHAPE(1001), input, &x);
  workbench w = bench_open();
  ft_output_check check = make(&group, input, 100000, UINT64_MAX);
  static const struct {
    const char *entry;
    ft_outcome outcome;
    const char *worst;
  } cases[] = {
      {"scale", FT_OUTCOME_OK, ""},
      {"half", FT_OUTCOME_WRONG_RESULT,
       "output 0 at 500: not written (nor 500 more of 1001)"},
      {"not_a_number", FT_OUTCOME_WRONG_RESULT, ": got nan, expected "},
  };
  for (int i = 0; i < 3; i++) {
    ft_program *p = bench_program(&w, cases[i].entry, 0, 0);
    ft_program_buffer *b = (ft_program_buffer *)(uintptr_t)p->buffer;
    b[0].data = x;
    b[0].key = 77;
    ft_trial t;
    cr_assert_eq(
        ft_cpu_runner_trial(w.runner, p, &check, 0, false, w.arena, &t, &w.error), FT_OK,
        "%s", w.error.text);
    cr_expect_eq(t.outcome, cases[i].outcome, "%s: %s", cases[i].entry, t.error);
    cr_expect(strstr(t.worst, cases[i].worst), "%s", t.worst);
    cr_expect_eq(t.worst[0] == 0, cases[i].worst[0] == 0);
  }
  bench_close(&w);
}
