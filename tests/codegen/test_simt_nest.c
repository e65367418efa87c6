// What a choice for a nest with threads decides, and what is refused.
#include <criterion/criterion.h>
#include <string.h>

#include "codegen/simt_nest.h"
#include "codegen/simt_nest_plan.h"
#include "graphs.h"

typedef struct built {
  sketch sketch;
  ft_workload workload;
  ft_group_ir *ir;
} built;

static built open_built(void) {
  return (built){.sketch = sketch_open()};
}

static void make(built *b) {
  const char *reason;
  ft_error error;
  b->workload = finish(&b->sketch);
  cr_assert_eq(ft_group_ir_make(&b->workload, b->sketch.arena, &b->ir, &reason, &error),
               FT_OK);
}

static built softmax_of(int64_t rows, int64_t columns) {
  built b = open_built();
  output(&b.sketch,
         softmax(&b.sketch, input(&b.sketch, FT_F32, SHAPE(rows, columns)), 1));
  make(&b);
  return b;
}

static built sum_of(int64_t rows, int64_t columns, uint32_t axes, ft_dtype dtype) {
  built b = open_built();
  uint32_t x = input(&b.sketch, dtype, SHAPE(rows, columns));
  output(&b.sketch, reduce(&b.sketch, FT_OP_REDUCE_SUM, x, axes));
  make(&b);
  return b;
}

static void expect_refusal(built *b, ft_simt_choice c, const char *part) {
  const char *text = ft_simt_nest_refusal(b->ir, &c, b->sketch.arena);
  cr_assert(text, "not refused: %s", part);
  cr_assert(strstr(text, part), "\"%s\" does not say \"%s\"", text, part);
}

static ft_simt_plan plan_of(built *b, ft_simt_choice c) {
  ft_simt_plan plan;
  const char *wrong = ft_simt_plan_make(b->ir, &c, b->sketch.arena, &plan);
  cr_assert_null(wrong, "%s", wrong);
  return plan;
}

Test(simt_nest, what_does_not_fit_is_refused_by_name) {
  built b = softmax_of(64, 40000), s = sum_of(8, 4096, 2, FT_F32);
  ft_simt_choice row = {.threads = 128, .vector = 4, .unroll = 1, .row_threads = 128};
  ft_simt_choice c = row;
  c.buffer = FT_SIMT_REGISTERS;
  expect_refusal(&b, c, "registers: 316 kept by a thread are about 486 of 255");
  c.threads = c.row_threads = 1024;
  expect_refusal(&b, c, "registers: 40 kept by a thread are about 72 of 64");
  c.buffer = FT_SIMT_SHARED;
  cr_assert_null(ft_simt_nest_refusal(b.ir, &c, b.sketch.arena));
  c.threads = 128, c.row_threads = 32;
  expect_refusal(&b, c, "bytes of shared memory are more than 232448");
  c = row, c.splits = 4;
  expect_refusal(&b, c, "one level of reductions");
  c = row, c.splits = 9;
  expect_refusal(&s, c, "leaves nothing");
  c = row, c.buffer = FT_SIMT_REGISTERS;
  expect_refusal(&s, c, "no pass needs a value of another");
  c = row, c.column_threads = 4;
  expect_refusal(&s, c, "exclude each other");
  c = row, c.row_threads = 0, c.splits = 2;
  expect_refusal(&s, c, "takes rows or columns");
  sketch_close(&b.sketch);
  sketch_close(&s.sketch);
}

Test(simt_nest, a_split_takes_no_output_over_the_row) {
  built b = open_built();
  uint32_t x = input(&b.sketch, FT_F32, SHAPE(4, 4096));
  output(&b.sketch, one(&b.sketch, FT_OP_RELU, x));
  output(&b.sketch, reduce(&b.sketch, FT_OP_REDUCE_SUM, x, 2));
  make(&b);
  ft_simt_choice c = {
      .threads = 128, .vector = 4, .unroll = 1, .row_threads = 128, .splits = 2};
  expect_refusal(&b, c, "no output over the reduced axes");
  sketch_close(&b.sketch);
}

// x and r feed a sum that two passes need: the sum waits, not both inputs.
Test(simt_nest, the_sum_of_two_inputs_waits_in_one_place) {
  built b = open_built();
  sketch *s = &b.sketch;
  uint32_t x = input(s, FT_F32, SHAPE(64, 1024)), r = input(s, FT_F32, SHAPE(64, 1024));
  output(s, layer_norm(s, two(s, FT_OP_ADD, x, r), input(s, FT_F32, SHAPE(1024)), 1));
  make(&b);
  ft_simt_choice c = {.threads = 128,
                      .vector = 4,
                      .unroll = 1,
                      .row_threads = 64,
                      .buffer = FT_SIMT_REGISTERS};
  ft_simt_plan plan = plan_of(&b, c);
  cr_assert_eq(plan.kept_words, 4);
  for (uint32_t i = 0; i < b.ir->node_count; i++)
    if (b.ir->node[i].kind == FT_NODE_LOAD) cr_assert(!plan.is_kept[i]);
  sketch_close(&b.sketch);
}

// tanh(x), exp(x) and x are needed later: x alone waits.
Test(simt_nest, an_input_waits_when_more_would_come_of_it) {
  built b = open_built();
  sketch *s = &b.sketch;
  uint32_t x = input(s, FT_F32, SHAPE(64, 1024));
  uint32_t a = one(s, FT_OP_TANH, x), e = one(s, FT_OP_EXP, x);
  uint32_t total = reduce(s, FT_OP_REDUCE_SUM, two(s, FT_OP_MUL, a, e), 2);
  output(s, two(s, FT_OP_ADD, two(s, FT_OP_SUB, a, total), two(s, FT_OP_DIV, e, x)));
  make(&b);
  ft_simt_choice c = {.threads = 128,
                      .vector = 1,
                      .unroll = 1,
                      .row_threads = 128,
                      .buffer = FT_SIMT_REGISTERS};
  ft_simt_plan plan = plan_of(&b, c);
  cr_assert_eq(plan.kept_words, 1);
  for (uint32_t i = 0; i < b.ir->node_count; i++)
    cr_assert_eq(plan.is_kept[i], b.ir->node[i].kind == FT_NODE_LOAD);
  sketch_close(&b.sketch);
}

// The values of softmax follow one another: what waits takes the place of what waited.
Test(simt_nest, a_softmax_needs_one_place_in_shared_memory) {
  built b = softmax_of(16, 1024);
  ft_simt_choice c = {.threads = 128,
                      .vector = 4,
                      .unroll = 2,
                      .row_threads = 32,
                      .buffer = FT_SIMT_SHARED};
  ft_simt_plan plan = plan_of(&b, c);
  uint32_t kept = 0, places = 0;
  for (uint32_t i = 0; i < b.ir->node_count; i++) {
    kept += plan.is_kept[i];
    places += plan.is_kept[i] && plan.home[i] == i;
  }
  cr_assert_eq(kept, 2);
  cr_assert_eq(places, 1);
  sketch_close(&b.sketch);
}

static ft_simt_sum sum_plan(built *b, ft_simt_choice c) {
  ft_simt_plan plan = plan_of(b, c);
  for (uint32_t i = 0; i < b->ir->node_count; i++)
    if (b->ir->node[i].kind == FT_NODE_REDUCE) return ft_simt_plan_sum(&plan, i);
  cr_assert_fail("no reduction");
  return (ft_simt_sum){0};
}

// 2 sqrt(4096) = 128 additions may follow one another.
Test(simt_nest, short_shares_add_up_in_f32_and_long_ones_in_chunks) {
  built b = sum_of(8, 4096, 2, FT_F32), d = sum_of(8, 4096, 2, FT_F64);
  ft_simt_choice c = {.threads = 128, .vector = 4, .unroll = 1, .row_threads = 128};
  ft_simt_sum sum = sum_plan(&b, c);
  cr_assert(sum.part == FT_F32 && sum.meet == FT_F32 && sum.chunk == 0);
  c.row_threads = 8;  // 128 steps, and those of meeting
  sum = sum_plan(&b, c);
  cr_assert(sum.part == FT_F32 && sum.meet == FT_F64 && sum.chunk == 0);
  c.row_threads = 2;  // 512 steps
  sum = sum_plan(&b, c);
  cr_assert(sum.part == FT_F32 && sum.meet == FT_F64);
  cr_assert_eq(sum.chunk, 128);
  c.unroll = 8;  // 64 steps in each accumulator
  sum = sum_plan(&b, c);
  cr_assert(sum.part == FT_F32 && sum.chunk == 0);
  sum = sum_plan(&d, c);
  cr_assert(sum.part == FT_F64 && sum.meet == FT_F64);
  sketch_close(&b.sketch);
  sketch_close(&d.sketch);
}
