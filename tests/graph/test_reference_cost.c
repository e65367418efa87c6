#include <criterion/criterion.h>

#include "graph/reference_cost.h"
#include "tests/codegen/graphs.h"

static uint32_t conv(sketch *s, uint32_t x, int64_t channels, int64_t size) {
  uint32_t in[2] = {x, input(s, FT_F32, SHAPE(channels, channels, 3, 3))};
  ft_attr attr = {.shape = SHAPE(1, channels, size, size),
                  .groups = 1,
                  .start = {1, 1},
                  .stride = {1, 1},
                  .dilation = {1, 1}};
  return apply(s, FT_OP_CONV, 2, in, &attr);
}

Test(graph_reference_cost, a_deep_network_of_convolutions_is_checked_densely) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(1, 64, 56, 56));
  for (int i = 0; i < 12; i++) x = one(&s, FT_OP_RELU, conv(&s, x, 64, 56));
  output(&s, reduce(&s, FT_OP_REDUCE_SUM, x, 12));
  finish(&s);
  cr_assert_lt(ft_reference_dense_seconds(s.graph),
               ft_reference_demand_seconds(s.graph, 64, s.arena));
  // The cones of 64 channel sums are all of it.
  cr_assert_float_eq(
      ft_reference_demand_steps(s.graph, 64, s.arena) / ft_reference_dense_steps(s.graph),
      1, 1e-9);
  sketch_close(&s);
}

Test(graph_reference_cost, a_few_elements_of_large_pointwise_work_are_cheaper) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(4096, 4096));
  for (int i = 0; i < 8; i++) x = one(&s, FT_OP_TANH, x);
  output(&s, x);
  finish(&s);
  cr_assert_gt(ft_reference_dense_seconds(s.graph),
               ft_reference_demand_seconds(s.graph, 64, s.arena));
  cr_assert_float_eq(ft_reference_demand_steps(s.graph, 64, s.arena), 64 * 8, 1e-9);
  sketch_close(&s);
}

Test(graph_reference_cost, a_value_is_never_needed_more_than_whole) {
  sketch s = sketch_open();
  uint32_t a = input(&s, FT_F32, SHAPE(8, 8));
  uint32_t y = two(&s, FT_OP_MATMUL, a, one(&s, FT_OP_NEG, a));
  output(&s, y);
  finish(&s);
  cr_assert_float_eq(ft_reference_demand_steps(s.graph, 64, s.arena), 64 * 8 + 64, 1e-9);
  sketch_close(&s);
}
