// What a nest decides: splits, what it keeps between passes, what it refuses.
#include "codegen/nest.h"

#include "graphs.h"

static const ft_nest_choice plain = {
    .vector_axes = UINT64_MAX, .vector = 16, .block = 4096, .unroll = 1, .parts = 1};

static ft_group_ir *ir_of(sketch *s) {
  ft_workload *w = FT_NEW(s->arena, ft_workload);
  *w = finish(s);
  ft_group_ir *ir;
  const char *reason;
  cr_assert_eq(ft_group_ir_make(w, s->arena, &ir, &reason, NULL), FT_OK);
  cr_assert(ir, "%s", reason);
  return ir;
}

static const char *plan(sketch *s, const ft_group_ir *ir, ft_nest_choice choice,
                        ft_nest *out) {
  choice.vector_axes &= ir->reduced ? ir->reduced : ((uint64_t)1 << ir->axis_count) - 1;
  return ft_nest_plan(ir, &choice, out, s->arena);
}

static ft_group_ir *sum_ir(sketch *s, int64_t rows, int64_t columns) {
  output(s, reduce(s, FT_OP_REDUCE_SUM, input(s, FT_F32, SHAPE(rows, columns)), 2));
  return ir_of(s);
}

Test(codegen_nest_plan, a_split_covers_the_axis_in_whole_chunks) {
  sketch s = sketch_open();
  ft_group_ir *ir = sum_ir(&s, 2, 100003);
  for (uint32_t parts = 2; parts <= 64; parts *= 2) {
    ft_nest_choice choice = plain;
    choice.parts = parts;
    choice.unroll = 2;
    ft_nest nest;
    const char *wrong = plan(&s, ir, choice, &nest);
    cr_assert_null(wrong, "%u: %s", parts, wrong);
    cr_assert_eq(nest.part % (16 * 2 * FT_NEST_CHUNK), 0);
    cr_assert_leq(nest.part * parts, 100003);
    cr_assert_gt(nest.part * (parts + 1), 100003 / 2);
    cr_assert_eq(nest.grid % parts, 0);
  }
  sketch_close(&s);
}

Test(codegen_nest_plan, refuses_more_parts_than_there_are_chunks) {
  sketch s = sketch_open();
  ft_group_ir *ir = sum_ir(&s, 3, 1000);
  ft_nest_choice choice = plain;
  ft_nest nest;
  choice.parts = 7;  // 1000 / (16 * 8) = 7
  cr_assert_null(plan(&s, ir, choice, &nest));
  choice.parts = 8;
  cr_assert(strstr(plan(&s, ir, choice, &nest), "split"));
  choice.parts = 0;
  cr_assert(strstr(plan(&s, ir, choice, &nest), "split"));
  sketch_close(&s);
}

Test(codegen_nest_plan, does_not_split_what_needs_the_whole_row_first) {
  sketch s = sketch_open();
  output(&s, softmax(&s, input(&s, FT_F32, SHAPE(2, 100000)), 1));
  ft_nest_choice choice = plain;
  choice.parts = 4;
  ft_nest nest;
  cr_assert(strstr(plan(&s, ir_of(&s), choice, &nest), "level"));
  sketch_close(&s);
  s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(2, 100000));
  output(&s, two(&s, FT_OP_DIV, x, reduce(&s, FT_OP_REDUCE_SUM, x, 2)));
  cr_assert(strstr(plan(&s, ir_of(&s), choice, &nest), "over the row"));
  sketch_close(&s);
}

static uint32_t kept_of(const ft_nest *nest, ft_op op) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < nest->ir->node_count; i++)
    count += nest->is_buffered[i] && nest->ir->node[i].op == op;
  return count;
}

static uint32_t all_kept(const ft_nest *nest) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < nest->ir->node_count; i++) count += nest->is_buffered[i];
  return count;
}

Test(codegen_nest_plan, keeps_the_exponentials_of_a_softmax_and_nothing_else) {
  sketch s = sketch_open();
  output(&s, softmax(&s, input(&s, FT_F32, SHAPE(64, 500)), 1));
  ft_nest_choice choice = plain;
  choice.buffer = FT_NEST_SCRATCH;
  ft_nest nest;
  cr_assert_null(plan(&s, ir_of(&s), choice, &nest));
  cr_assert_eq(kept_of(&nest, FT_OP_EXP), 1);
  cr_assert_eq(all_kept(&nest), 1);
  sketch_close(&s);
}

Test(codegen_nest_plan, keeps_a_sum_of_two_tensors_that_three_passes_need) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(64, 500)), y = input(&s, FT_F32, SHAPE(64, 500));
  output(&s, layer_norm(&s, two(&s, FT_OP_ADD, x, y), input(&s, FT_F32, SHAPE(500)), 1));
  ft_nest_choice choice = plain;
  choice.buffer = FT_NEST_SCRATCH;
  ft_nest nest;
  cr_assert_null(plan(&s, ir_of(&s), choice, &nest));
  cr_assert_eq(kept_of(&nest, FT_OP_ADD), 1);
  cr_assert_eq(all_kept(&nest), 1);
  sketch_close(&s);
}

Test(codegen_nest_plan, keeps_nothing_of_a_tensor_that_can_be_read_again) {
  sketch s = sketch_open();
  output(&s, layer_norm(&s, input(&s, FT_F32, SHAPE(64, 500)),
                        input(&s, FT_F32, SHAPE(500)), 1));
  ft_nest_choice choice = plain;
  choice.buffer = FT_NEST_SCRATCH;
  ft_nest nest;
  cr_assert(strstr(plan(&s, ir_of(&s), choice, &nest), "worth"));
  sketch_close(&s);
}

Test(codegen_nest_plan, registers_take_short_rows_and_online_takes_a_softmax) {
  sketch s = sketch_open();
  output(&s, softmax(&s, input(&s, FT_F32, SHAPE(64, 500)), 1));
  ft_group_ir *ir = ir_of(&s);
  ft_nest_choice choice = plain;
  ft_nest nest;
  choice.buffer = FT_NEST_REGISTERS;
  cr_assert_null(plan(&s, ir, choice, &nest));
  cr_assert_eq(nest.steps, 32);
  choice.unroll = 2;
  cr_assert(strstr(plan(&s, ir, choice, &nest), "unroll"));
  choice.unroll = 1;
  choice.vector = 8;
  cr_assert(strstr(plan(&s, ir, choice, &nest), "too long"));
  choice.buffer = FT_NEST_ONLINE;
  cr_assert_null(plan(&s, ir, choice, &nest));
  choice.ahead = 2;
  cr_assert(strstr(plan(&s, ir, choice, &nest), "prefetch"));
  sketch_close(&s);
  s = sketch_open();
  output(&s, layer_norm(&s, input(&s, FT_F32, SHAPE(64, 500)),
                        input(&s, FT_F32, SHAPE(500)), 1));
  choice.ahead = 0;
  cr_assert(strstr(plan(&s, ir_of(&s), choice, &nest), "online"));
  sketch_close(&s);
}

Test(codegen_nest_plan, refuses_what_would_be_the_same_kernel) {
  sketch s = sketch_open();
  ft_group_ir *ir = sum_ir(&s, 64, 40);
  ft_nest_choice choice = plain;
  ft_nest nest;
  choice.unroll = 2;
  cr_assert_null(plan(&s, ir, choice, &nest));
  choice.unroll = 4;  // 40 / 16 = 2 steps
  cr_assert(strstr(plan(&s, ir, choice, &nest), "unroll"));
  choice.unroll = 3;
  cr_assert(strstr(plan(&s, ir, choice, &nest), "power of two"));
  choice.unroll = 1;
  choice.ahead = 64;
  cr_assert(strstr(plan(&s, ir, choice, &nest), "prefetch"));
  sketch_close(&s);
}
