// Blocked contractions: what is taken, what is refused and why, how blocks come out.
#include <math.h>
#include <string.h>

#include "codegen/contract.h"
#include "codegen/tactic.h"
#include "graphs.h"

static uint32_t matmul(sketch *s, uint32_t a, uint32_t b) {
  return two(s, FT_OP_MATMUL, a, b);
}

static uint32_t product(sketch *s, int64_t m, int64_t k, int64_t n) {
  return matmul(s, input(s, FT_F32, SHAPE(m, k)), input(s, FT_F32, SHAPE(k, n)));
}

static const char *refusal(sketch *s) {
  ft_workload w = finish(s);
  return ft_contract_refusal(&w, s->arena);
}

static void assert_refused(sketch *s, const char *why) {
  const char *reason = refusal(s);
  cr_assert(reason && strstr(reason, why), "%s", reason ? reason : "taken");
  sketch_close(s);
}

static const ft_contract_choice usual = {
    .vector = 16, .mr = 8, .nr = 48, .mc = 128, .nc = 192, .kc = 256, .packs_b = true};

static ft_contract plan(sketch *s, ft_contract_choice choice, const char **reason) {
  ft_workload *w = FT_NEW(s->arena, ft_workload);
  *w = finish(s);
  ft_contract c;
  ft_error error;
  cr_assert_eq(ft_contract_plan(w, &choice, s->arena, &c, reason, &error), FT_OK);
  return c;
}

static ft_contract good_plan(sketch *s, ft_contract_choice choice) {
  const char *reason;
  ft_contract c = plan(s, choice, &reason);
  cr_assert_null(reason, "%s", reason);
  return c;
}

static void assert_bad_plan(int64_t m, int64_t k, int64_t n, ft_contract_choice choice,
                            const char *why) {
  sketch s = sketch_open();
  output(&s, product(&s, m, k, n));
  const char *reason;
  plan(&s, choice, &reason);
  cr_assert(reason && strstr(reason, why), "%s", reason ? reason : "works");
  sketch_close(&s);
}

// ---- what is taken
// ------------------------------------------------------------------------

Test(codegen_contract_plan, a_group_without_a_contraction_is_refused) {
  sketch s = sketch_open();
  output(&s, one(&s, FT_OP_EXP, input(&s, FT_F32, SHAPE(4))));
  assert_refused(&s, "no contraction");
}

Test(codegen_contract_plan, two_contractions_are_refused_by_name) {
  sketch s = sketch_open();
  output(&s, matmul(&s, product(&s, 4, 5, 6), input(&s, FT_F32, SHAPE(6, 7))));
  assert_refused(&s, "matmul beside matmul");
}

Test(codegen_contract_plan, a_reduction_after_it_is_refused_by_name) {
  sketch s = sketch_open();
  output(&s, reduce(&s, FT_OP_REDUCE_SUM, product(&s, 4, 5, 6), 2));
  assert_refused(&s, "reduce_sum after matmul");
}

Test(codegen_contract_plan, a_softmax_before_it_is_refused_by_name) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(4, 5));
  uint32_t a = two(&s, FT_OP_SUB, x, reduce(&s, FT_OP_REDUCE_MAX, x, 2));
  output(&s, matmul(&s, a, input(&s, FT_F32, SHAPE(5, 6))));
  assert_refused(&s, "reduce_max beside matmul");
}

Test(codegen_contract_plan, a_result_that_is_broadcast_is_refused) {
  sketch s = sketch_open();
  uint32_t y = product(&s, 5, 6, 1);
  output(&s, two(&s, FT_OP_ADD, y, input(&s, FT_F32, SHAPE(5, 9))));
  assert_refused(&s, "add makes 45 elements of the 5 of matmul");
}

Test(codegen_contract_plan, a_result_that_meets_its_transpose_is_refused) {
  sketch s = sketch_open();
  uint32_t y = product(&s, 6, 5, 6);
  output(&s, two(&s, FT_OP_ADD, y, transpose(&s, y)));
  assert_refused(&s, "add meets matmul at two places");
}

Test(codegen_contract_plan, an_output_that_does_not_come_from_it_is_refused) {
  sketch s = sketch_open();
  uint32_t a = one(&s, FT_OP_RELU, input(&s, FT_F32, SHAPE(4, 5)));
  output(&s, matmul(&s, a, input(&s, FT_F32, SHAPE(5, 6))));
  output(&s, a);
  assert_refused(&s, "an output comes from relu");
}

Test(codegen_contract_plan, integers_and_doubles_are_refused_by_name) {
  static const ft_dtype dtypes[] = {FT_I32, FT_F64};
  for (int i = 0; i < 2; i++) {
    sketch s = sketch_open();
    output(&s, matmul(&s, input(&s, dtypes[i], SHAPE(4, 5)),
                      input(&s, dtypes[i], SHAPE(5, 6))));
    assert_refused(&s, ft_dtype_text(dtypes[i]));
  }
}

static uint32_t conv(sketch *s, int64_t channels, int64_t size, int64_t window,
                     int64_t pad, int64_t groups) {
  int64_t out = size + 2 * pad - window + 1;
  uint32_t in[2] = {input(s, FT_F32, SHAPE(1, channels, size, size)),
                    input(s, FT_F32, SHAPE(8, channels / groups, window, window))};
  ft_attr attr = {.shape = SHAPE(1, 8, out, out),
                  .groups = groups,
                  .start = {pad, pad},
                  .stride = {1, 1},
                  .dilation = {1, 1}};
  return apply(s, FT_OP_CONV, 2, in, &attr);
}

Test(codegen_contract_plan, a_grouped_convolution_is_refused_by_name) {
  sketch s = sketch_open();
  output(&s, conv(&s, 8, 10, 3, 1, 8));
  assert_refused(&s, "conv in 8 groups");
}

Test(codegen_contract_plan, heads_split_and_joined_are_strides_of_the_store) {
  sketch s = sketch_open();
  uint32_t y = view(&s, product(&s, 24, 32, 64), SHAPE(24, 4, 16));
  ft_attr attr = {.perm = {1, 0, 2}};
  output(&s, apply(&s, FT_OP_TRANSPOSE, 1, &y, &attr));
  ft_contract c = good_plan(&s, (ft_contract_choice){.vector = 16,
                                                     .mr = 4,
                                                     .nr = 32,
                                                     .mc = 24,
                                                     .nc = 64,
                                                     .kc = 32,
                                                     .packs_b = true});
  cr_assert_eq(c.segment, 16);
  sketch_close(&s);
}

// ---- the problem
// ------------------------------------------------------------------------

Test(codegen_contract_plan, a_batch_that_only_a_has_is_part_of_m) {
  sketch s = sketch_open();
  output(&s, matmul(&s, input(&s, FT_F32, SHAPE(3, 20, 32)),
                    input(&s, FT_F32, SHAPE(32, 64))));
  ft_workload w = finish(&s);
  ft_contract c = ft_contract_problem(&w);
  cr_assert(c.is_folded && c.batches == 1 && c.m == 60 && c.n == 64 && c.k == 32);
  sketch_close(&s);
}

Test(codegen_contract_plan, a_convolution_is_a_product_of_filters_and_windows) {
  sketch s = sketch_open();
  output(&s, conv(&s, 16, 10, 3, 1, 1));
  ft_workload w = finish(&s);
  ft_contract c = ft_contract_problem(&w);
  bool must;
  cr_assert(c.is_image && c.has_padding && c.m == 8 && c.n == 100 && c.k == 144);
  cr_assert_eq(ft_contract_must_pack(&c, 1, s.arena, &must, NULL), FT_OK);
  cr_assert(must);
  sketch_close(&s);
}

Test(codegen_contract_plan, a_pointwise_convolution_reads_its_image_in_place) {
  sketch s = sketch_open();
  output(&s, conv(&s, 16, 10, 1, 0, 1));
  ft_workload w = finish(&s);
  ft_contract c = ft_contract_problem(&w);
  bool must;
  cr_assert(!c.is_image && !c.has_padding);
  cr_assert_eq(ft_contract_must_pack(&c, 1, s.arena, &must, NULL), FT_OK);
  cr_assert_not(must);
  sketch_close(&s);
}

// ---- blocks
// --------------------------------------------------------------------------------

Test(codegen_contract_plan, blocks_are_about_equal) {
  sketch s = sketch_open();
  output(&s, product(&s, 130, 300, 200));
  ft_contract c = good_plan(&s, usual);
  cr_assert_eq(c.m_blocks, 2);
  cr_assert_eq(c.choice.mc, 72);  // not 128 and 2
  cr_assert_eq(c.n_blocks, 2);
  cr_assert_eq(c.choice.nc, 144);
  cr_assert_eq(c.k_blocks, 2);
  cr_assert_eq(c.grid, 4);
  sketch_close(&s);
}

Test(codegen_contract_plan, sums_in_single_precision_are_about_the_root_of_all_terms) {
  static const int64_t lengths[] = {1, 31, 64, 300, 768, 4096, 100003};
  for (int i = 0; i < 7; i++) {
    sketch s = sketch_open();
    output(&s, product(&s, 8, lengths[i], 48));
    ft_contract_choice choice = usual;
    choice.mc = 8;
    choice.nc = 48;
    ft_contract c = good_plan(&s, choice);
    double n = (double)lengths[i], chunk = (double)c.chunk;
    cr_assert(n <= 36 || chunk / 3 + n / chunk / 3 <= 2 * sqrt(n), "%g in %g", n, chunk);
    sketch_close(&s);
  }
}

Test(codegen_contract_plan, very_many_short_sums_are_refused) {
  ft_contract_choice choice = {
      .vector = 16, .mr = 1, .nr = 64, .mc = 1, .nc = 64, .kc = 8};
  assert_bad_plan(1, 100003, 64, choice, "drift");
}

Test(codegen_contract_plan, no_terms_and_no_elements_have_plans) {
  sketch s = sketch_open();
  output(&s, product(&s, 8, 0, 48));
  ft_contract c = good_plan(&s, usual);
  cr_assert_eq(c.grid, 1);
  sketch_close(&s);
  s = sketch_open();
  output(&s, product(&s, 0, 5, 48));
  c = good_plan(&s, usual);
  cr_assert(c.is_empty);
  sketch_close(&s);
}

Test(codegen_contract_plan, choices_that_cannot_work_are_refused_with_the_reason) {
  static const struct {
    ft_contract_choice choice;
    const char *why;
  } cases[] = {
      {{.vector = 12, .mr = 8, .nr = 48, .mc = 64, .nc = 96, .kc = 64}, "power of two"},
      {{.vector = 16, .mr = 8, .nr = 40, .mc = 64, .nc = 96, .kc = 64}, "divide nr"},
      {{.vector = 16, .mr = 0, .nr = 48, .mc = 64, .nc = 96, .kc = 64}, "mr"},
      {{.vector = 4, .mr = 16, .nr = 48, .mc = 64, .nc = 96, .kc = 64}, "192 sums"},
      {{.vector = 16, .mr = 8, .nr = 48, .mc = 64, .nc = 96, .kc = 0}, "not positive"},
      {{.vector = 16, .mr = 8, .nr = 48, .mc = 4, .nc = 96, .kc = 64}, "blocks of 4x96"},
      {{.vector = 16, .mr = 8, .nr = 112, .mc = 64, .nc = 112, .kc = 64},
       "tiles of 8x112"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_bad_plan(100, 100, 100, cases[i].choice, cases[i].why);
}

Test(codegen_contract_plan, scratch_has_a_bound) {
  ft_contract_choice choice = {.vector = 16,
                               .mr = 8,
                               .nr = 48,
                               .mc = 4096,
                               .nc = 4096,
                               .kc = 256,
                               .packs_a = true,
                               .packs_b = true};
  assert_bad_plan(4096, 4096, 4096, choice, "bytes of scratch");
}

static void assert_prologue_plan(ft_op op, int64_t nc, const char *why) {
  sketch s = sketch_open();
  uint32_t a = one(&s, op, input(&s, FT_F32, SHAPE(64, 64)));
  output(&s, matmul(&s, a, input(&s, FT_F32, SHAPE(64, 4096))));
  const char *reason;
  ft_contract_choice choice = {.vector = 16,
                               .mr = 8,
                               .nr = 32,
                               .mc = 64,
                               .nc = nc,
                               .kc = 64,
                               .packs_a = true,
                               .packs_b = true};
  plan(&s, choice, &reason);
  if (why)
    cr_assert(reason && strstr(reason, why), "%s", reason ? reason : "works");
  else
    cr_assert_null(reason, "%s", reason);
  sketch_close(&s);
}

Test(codegen_contract_plan, a_prologue_is_computed_a_bounded_number_of_times) {
  assert_prologue_plan(FT_OP_RELU, 64, NULL);
  assert_prologue_plan(FT_OP_RELU, 32, "operand 0 would be computed 128 times");
  assert_prologue_plan(FT_OP_EXP, 512, NULL);
  assert_prologue_plan(FT_OP_EXP, 256, "operand 0 would be computed 16 times");
}

Test(codegen_contract_plan, a_prologue_is_not_left_unpacked) {
  sketch s = sketch_open();
  uint32_t a = one(&s, FT_OP_RELU, input(&s, FT_F32, SHAPE(64, 64)));
  output(&s, matmul(&s, a, input(&s, FT_F32, SHAPE(64, 64))));
  const char *reason;
  plan(&s, usual, &reason);
  cr_assert(reason && strstr(reason, "operand 0 must be packed"), "%s", reason);
  sketch_close(&s);
}

// ---- the tactic
// --------------------------------------------------------------------------

static const ft_target wide = {.name = "cpu",
                               .threads = 2,
                               .vector_bytes = 64,
                               .compiler_count = 1,
                               .compiler = {{"clang-14", "14", "", true}}};

static ft_schedules space_of(sketch *s, const ft_target *target) {
  ft_group_ir *ir = FT_NEW(s->arena, ft_group_ir);
  ft_workload *w = FT_NEW(s->arena, ft_workload);
  *w = finish(s);
  ir->workload = w;
  ft_schedules list = {.arena = s->arena};
  ft_tactic_contract.space(ir, target, &list);
  cr_assert_not(list.failed);
  for (uint32_t i = 0; i < list.count; i++) {
    const char *wrong = ft_tactic_contract.check(ir, target, &list.item[i], s->arena);
    cr_assert_null(wrong, "%s", wrong);
    for (uint32_t k = 0; k < i; k++)
      cr_assert_not(ft_schedule_equal(&list.item[i], &list.item[k]));
  }
  return list;
}

Test(codegen_contract_plan, every_offered_schedule_works_once) {
  static const int64_t shapes[][3] = {{128, 768, 3072}, {1, 768, 3072}, {4, 30, 9},
                                      {1000, 3, 1},     {7, 0, 5},      {0, 4, 4},
                                      {64, 64, 49},     {1, 1, 1},      {9, 100003, 17}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    sketch s = sketch_open();
    output(&s, product(&s, shapes[i][0], shapes[i][1], shapes[i][2]));
    ft_schedules list = space_of(&s, &wide);
    cr_assert(list.count >= 1 && list.count <= 24, "%zu: %u", i, list.count);
    sketch_close(&s);
  }
}

Test(codegen_contract_plan, tiles_fit_the_registers_there_are) {
  for (uint32_t bytes = 16; bytes <= 64; bytes *= 2) {
    ft_target target = wide;
    target.vector_bytes = bytes;
    sketch s = sketch_open();
    output(&s, product(&s, 128, 256, 512));
    ft_schedules list = space_of(&s, &target);
    for (uint32_t i = 0; i < list.count; i++) {
      int64_t vector = ft_schedule_get(&list.item[i], "vector", 0);
      int64_t vectors = ft_schedule_get(&list.item[i], "nr", 0) / vector;
      int64_t rows = ft_schedule_get(&list.item[i], "mr", 0);
      cr_assert_leq(rows * vectors + vectors + 1, bytes == 64 ? 32 : 16);
      cr_assert_leq(vector * 4, bytes);
    }
    sketch_close(&s);
  }
}

Test(codegen_contract_plan, few_rows_stream_the_matrix_unpacked_first) {
  sketch s = sketch_open();
  output(&s, product(&s, 1, 768, 3072));
  ft_schedules list = space_of(&s, &wide);
  cr_assert_eq(ft_schedule_get(&list.item[0], "pack_b", 1), 0);
  cr_assert_eq(ft_schedule_get(&list.item[0], "mr", 0), 1);
  cr_assert_leq(ft_schedule_get(&list.item[0], "kc", 0), 16);
  sketch_close(&s);
}

Test(codegen_contract_plan, more_sums_than_registers_are_refused) {
  sketch s = sketch_open();
  output(&s, product(&s, 128, 256, 512));
  ft_workload w = finish(&s);
  ft_group_ir ir = {.workload = &w};
  ft_schedule k = {0};
  ft_schedule_set_text(&k, "compiler", "clang-14");
  static const struct {
    const char *name;
    int64_t value;
  } knobs[] = {{"kc", 64},    {"mc", 64},    {"mr", 8},      {"nc", 64},    {"nr", 64},
               {"pack_a", 0}, {"pack_b", 1}, {"threads", 2}, {"vector", 16}};
  for (int i = 0; i < 9; i++) ft_schedule_set(&k, knobs[i].name, knobs[i].value);
  const char *wrong = ft_tactic_contract.check(&ir, &wide, &k, s.arena);
  cr_assert(wrong && strstr(wrong, "37 registers of 32"), "%s", wrong);
  sketch_close(&s);
}

Test(codegen_contract_plan, equal_plans_give_equal_kernels) {
  sketch s = sketch_open();
  output(&s, one(&s, FT_OP_ERF, product(&s, 20, 30, 64)));
  ft_contract_choice choice = {
      .vector = 16, .mr = 4, .nr = 32, .mc = 20, .nc = 64, .kc = 30, .packs_b = true};
  ft_contract c = good_plan(&s, choice);
  ft_kir *one_kernel, *other;
  cr_assert_eq(ft_contract_build(&c, s.arena, &one_kernel, NULL), FT_OK);
  cr_assert_eq(ft_contract_build(&c, s.arena, &other, NULL), FT_OK);
  cr_assert_null(ft_kir_verify(one_kernel));
  cr_assert_eq(one_kernel->value_count, other->value_count);
  cr_assert_eq(one_kernel->scratch_bytes, other->scratch_bytes);
  sketch_close(&s);
}
