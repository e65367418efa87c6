#include "codegen/group_ir.h"

#include <math.h>
#include <string.h>

#include "graphs.h"

// The IR, which must exist.
static ft_group_ir *ir_of(sketch *s, const ft_workload *w) {
  ft_group_ir *ir;
  const char *reason;
  cr_assert_eq(ft_group_ir_make(w, s->arena, &ir, &reason, NULL), FT_OK);
  cr_assert(ir, "%s", reason);
  return ir;
}

static const char *refusal_of(sketch *s, const ft_workload *w) {
  ft_group_ir *ir;
  const char *reason;
  cr_assert_eq(ft_group_ir_make(w, s->arena, &ir, &reason, NULL), FT_OK);
  cr_assert_null(ir);
  return reason;
}

static uint32_t count_nodes(const ft_group_ir *ir, ft_node_kind kind) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < ir->node_count; i++) n += ir->node[i].kind == kind;
  return n;
}

Test(codegen_group_ir, same_shapes_collapse_to_one_axis) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(2, 3, 4)), y = input(&s, FT_F32, SHAPE(2, 3, 4));
  output(&s, two(&s, FT_OP_ADD, x, y));
  ft_workload w = finish(&s);
  ft_group_ir *ir = ir_of(&s, &w);
  cr_assert_eq(ir->axis_count, 1);
  cr_assert_eq(ir->extent[0], 24);
  cr_assert_eq(ir->output[0].access.stride[0], 1);
  sketch_close(&s);
}

Test(codegen_group_ir, a_bias_keeps_rows_and_columns_apart) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(2, 3, 8)), b = input(&s, FT_F32, SHAPE(8));
  output(&s, two(&s, FT_OP_ADD, x, b));
  ft_workload w = finish(&s);
  ft_group_ir *ir = ir_of(&s, &w);
  cr_assert_eq(ir->axis_count, 2);
  cr_assert_eq(ft_group_ir_points(ir, 3), 48);
  cr_assert(ir->extent[0] == 6 || ir->extent[1] == 6);
  sketch_close(&s);
}

Test(codegen_group_ir, a_view_inside_a_group_leaves_nothing) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(4, 6)), y = input(&s, FT_F32, SHAPE(24));
  output(&s, two(&s, FT_OP_MUL, view(&s, one(&s, FT_OP_EXP, x), SHAPE(24)), y));
  ft_workload w = finish(&s);
  ft_group_ir *ir = ir_of(&s, &w);
  cr_assert_eq(ir->axis_count, 1);
  cr_assert_eq(count_nodes(ir, FT_NODE_COMPUTE), 2);
  sketch_close(&s);
}

Test(codegen_group_ir, a_view_without_common_axes_is_refused_by_its_shapes) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(6, 4));
  output(&s, one(&s, FT_OP_TANH, view(&s, one(&s, FT_OP_EXP, x), SHAPE(8, 3))));
  ft_workload w = finish(&s);
  const char *reason = refusal_of(&s, &w);
  cr_assert(strstr(reason, "6x4") && strstr(reason, "8x3"), "%s", reason);
  sketch_close(&s);
}

Test(codegen_group_ir, an_outside_tensor_may_be_read_in_two_orders) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(5, 5));
  output(&s, two(&s, FT_OP_ADD, x, transpose(&s, x)));
  ft_workload w = finish(&s);
  ft_group_ir *ir = ir_of(&s, &w);
  cr_assert_eq(ir->axis_count, 2);
  cr_assert_eq(count_nodes(ir, FT_NODE_LOAD), 2);
  sketch_close(&s);
}

Test(codegen_group_ir, an_own_value_may_not) {
  sketch s = sketch_open();
  uint32_t e = one(&s, FT_OP_EXP, input(&s, FT_F32, SHAPE(5, 5)));
  output(&s, two(&s, FT_OP_ADD, e, transpose(&s, e)));
  ft_workload w = finish(&s);
  cr_assert(strstr(refusal_of(&s, &w), "two orders"));
  sketch_close(&s);
}

Test(codegen_group_ir, outputs_that_are_transposes_share_their_axes) {
  sketch s = sketch_open();
  uint32_t e = one(&s, FT_OP_EXP, input(&s, FT_F32, SHAPE(3, 7)));
  output(&s, e);
  output(&s, transpose(&s, e));
  ft_workload w = finish(&s);
  ft_group_ir *ir = ir_of(&s, &w);
  cr_assert_eq(ir->axis_count, 2);
  cr_assert_eq(ir->output[0].domain, ir->output[1].domain);
  cr_assert_neq(ir->output[0].access.stride[0], ir->output[1].access.stride[0]);
  sketch_close(&s);
}

Test(codegen_group_ir, two_reads_of_one_tensor_run_together) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(4, 8));
  output(&s, softmax(&s, x, 1));
  ft_workload w = finish(&s);
  ft_group_ir *ir = ir_of(&s, &w);
  cr_assert_eq(ir->axis_count, 2);
  cr_assert_eq(ir->levels, 2);
  cr_assert_eq(count_nodes(ir, FT_NODE_LOAD), 1);
  cr_assert_eq(ft_group_ir_points(ir, ir->reduced), 8);
  sketch_close(&s);
}

Test(codegen_group_ir, a_layer_norm_is_two_axes_and_two_levels) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(2, 5, 64)), g = input(&s, FT_F32, SHAPE(64));
  output(&s, layer_norm(&s, x, g, 2));
  ft_workload w = finish(&s);
  ft_group_ir *ir = ir_of(&s, &w);
  cr_assert_eq(ir->axis_count, 2);
  cr_assert_eq(ir->levels, 2);
  cr_assert_eq(ft_group_ir_points(ir, ir->reduced), 64);
  sketch_close(&s);
}

Test(codegen_group_ir, squares_and_roots_by_constant_exponents_are_no_powers) {
  static const double exponents[] = {0, 1, 2, 3, -1, 0.5, -0.5};
  for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++) {
    sketch s = sketch_open();
    uint32_t x = input(&s, FT_F32, SHAPE(8));
    output(&s, two(&s, FT_OP_POW, x, scalar(&s, FT_F32, exponents[i])));
    ft_workload w = finish(&s);
    ft_group_ir *ir = ir_of(&s, &w);
    for (uint32_t n = 0; n < ir->node_count; n++)
      cr_assert_neq(ir->node[n].op, FT_OP_POW, "exponent %g", exponents[i]);
    sketch_close(&s);
  }
}

Test(codegen_group_ir, a_reduction_of_nothing_is_a_constant) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(3, 0));
  output(&s, reduce(&s, FT_OP_REDUCE_MAX, one(&s, FT_OP_EXP, x), 2));
  ft_workload w = finish(&s);
  ft_group_ir *ir = ir_of(&s, &w);
  cr_assert_eq(ir->node_count, 1);
  cr_assert_eq(ir->node[0].kind, FT_NODE_CONSTANT);
  double bits;
  memcpy(&bits, &ir->node[0].bits, sizeof bits);
  cr_assert(isinf(bits) && bits < 0);
  sketch_close(&s);
}

Test(codegen_group_ir, outputs_without_elements_are_left_out) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(0, 4)), y = input(&s, FT_F32, SHAPE(4));
  output(&s, two(&s, FT_OP_ADD, x, y));
  output(&s, one(&s, FT_OP_EXP, y));
  ft_workload w = finish(&s);
  ft_group_ir *ir = ir_of(&s, &w);
  cr_assert_eq(ir->output_count, 1);
  sketch_close(&s);
}

Test(codegen_group_ir, dtypes_without_kernels_are_refused_by_name) {
  sketch s = sketch_open();
  output(&s, one(&s, FT_OP_NEG, input(&s, FT_U8, SHAPE(4))));
  ft_workload w = finish(&s);
  cr_assert_str_eq(refusal_of(&s, &w), "u8 has no kernel yet");
  sketch_close(&s);
}

Test(codegen_group_ir, a_long_chain_of_doublings_takes_no_exponential_time) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(8, 16));
  for (int i = 0; i < 60; i++) x = two(&s, FT_OP_ADD, x, x);
  output(&s, x);
  ft_workload w = finish(&s);
  cr_assert_eq(count_nodes(ir_of(&s, &w), FT_NODE_COMPUTE), 60);
  sketch_close(&s);
}
