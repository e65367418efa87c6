// Remaps, windows and contractions one by one; random ones are in kernel_random.c.
#include "codegen/loop.h"
#include "trying.h"

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
  sketch k = sketch_open();
  uint32_t x = input(&k, FT_F32, SHAPE(1, 8, 20, 20));
  uint32_t bias =
      two(&k, FT_OP_ADD, convolution(&k, x, 8), input(&k, FT_F32, SHAPE(8, 1, 1)));
  output(&k, one(&k, FT_OP_RELU, two(&k, FT_OP_ADD, bias, x)));
  run_everything(&k);
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

Test(codegen_loops, a_window_that_hangs_over_both_ends_reads_what_is_there) {
  sketch k = sketch_open();
  uint32_t x = input(&k, FT_F32, SHAPE(3, 5, 2));
  ft_attr attr = {.shape = SHAPE(3, 5, 1),
                  .window = {6},
                  .start = {2},
                  .stride = {1},
                  .dilation = {1}};
  output(&k, apply(&k, FT_OP_WINDOW_MAX, 1, &x, &attr));
  run_everything(&k);
}

Test(codegen_loops, a_product_with_a_transposed_matrix_is_right_in_every_schedule) {
  sketch k = sketch_open();
  uint32_t a = input(&k, FT_F32, SHAPE(3, 1, 77)), b = input(&k, FT_F32, SHAPE(19, 77));
  output(&k, two(&k, FT_OP_MATMUL, a, transpose(&k, b)));
  run_everything(&k);
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
  run_everything(&k);
}

Test(codegen_loops, a_concat_of_very_many_is_right_in_every_schedule) {
  enum { PARTS = 150 };
  sketch k = sketch_open();
  uint32_t in[PARTS];
  for (uint32_t i = 0; i < PARTS; i++)
    in[i] = input(&k, FT_I32, i % 2 ? SHAPE(2, 1) : SHAPE(2, 3));
  output(&k,
         one(&k, FT_OP_NEG, apply(&k, FT_OP_CONCAT, PARTS, in, &(ft_attr){.axis = 1})));
  run_everything(&k);
}
