#include "cost_model/work.h"

#include <math.h>

#include "tests/cost_model/workloads.h"

static ft_arena *arena;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(cost_model_work, .init = set_up, .fini = tear_down);

static void expect(const ft_workload *workload, ft_work want) {
  ft_arena *scratch = ft_arena_create(ft_allocator_system());
  ft_work got = ft_work_of(workload, scratch);
  cr_expect_eq(got.read_bytes, want.read_bytes, "reads %g", got.read_bytes);
  cr_expect_eq(got.write_bytes, want.write_bytes, "writes %g", got.write_bytes);
  cr_expect_eq(got.product_flops, want.product_flops, "products %g", got.product_flops);
  cr_expect_eq(got.flops, want.flops, "flops %g", got.flops);
  ft_arena_destroy(scratch);
}

Test(cost_model_work, a_broadcast_operand_is_read_once) {
  expect(WORKLOAD(arena, INPUT(4, 8), INPUT(8),
                  {.op = FT_OP_ADD, .in = {0, 1}, .is_output = true}),
         (ft_work){4 * 40, 4 * 32, 0, 32});
}

Test(cost_model_work, what_a_slice_leaves_out_is_neither_read_nor_computed) {
  expect(WORKLOAD(arena, INPUT(100), {.op = FT_OP_EXP, .in = {0}},
                  {.op = FT_OP_SLICE,
                   .in = {1},
                   .attr = {.shape = SHAPE(10), .start = {5}, .step = {2}},
                   .is_output = true}),
         (ft_work){40, 40, 0, 4 * 10});
}

Test(cost_model_work, a_gather_reads_its_indices_for_sure_and_its_table_perhaps) {
  expect(WORKLOAD(arena, INPUT(1000, 8),
                  {.op = SPEC_INPUT, .dtype = FT_I64, .shape = SHAPE(4)},
                  {.op = FT_OP_GATHER, .in = {0, 1}, .is_output = true}),
         (ft_work){4 * 8, 4 * 4 * 8, 0, 0});
}

Test(cost_model_work, only_the_condition_of_a_where_is_read_for_sure) {
  expect(
      WORKLOAD(arena, {.op = SPEC_INPUT, .dtype = FT_BOOL, .shape = SHAPE(32)}, INPUT(32),
               INPUT(32), {.op = FT_OP_WHERE, .in = {0, 1, 2}, .is_output = true}),
      (ft_work){32, 128, 0, 0});
}

Test(cost_model_work, a_product_takes_two_m_n_k) {
  expect(WORKLOAD(arena, INPUT(2, 3), INPUT(3, 5),
                  {.op = FT_OP_MATMUL, .in = {0, 1}, .is_output = true}),
         (ft_work){4 * (6 + 15), 4 * 10, 60, 60});
}

Test(cost_model_work, a_convolution_does_not_multiply_its_padding) {
  // Per axis the outer taps lie inside for three of four windows: 3 + 4 + 3.
  expect(WORKLOAD(arena, INPUT(1, 1, 4, 4), INPUT(1, 1, 3, 3),
                  {.op = FT_OP_CONV,
                   .in = {0, 1},
                   .attr = {.shape = SHAPE(1, 1, 4, 4),
                            .groups = 1,
                            .start = {1, 1},
                            .stride = {1, 1},
                            .dilation = {1, 1}},
                   .is_output = true}),
         (ft_work){4 * (16 + 9), 4 * 16, 200, 200});
}

Test(cost_model_work, strides_past_the_window_leave_elements_unread) {
  expect(WORKLOAD(arena, INPUT(1, 1, 8, 8), INPUT(1, 1, 1, 1),
                  {.op = FT_OP_CONV,
                   .in = {0, 1},
                   .attr = {.shape = SHAPE(1, 1, 2, 2),
                            .groups = 1,
                            .stride = {4, 4},
                            .dilation = {1, 1}},
                   .is_output = true}),
         (ft_work){4 * (4 + 1), 4 * 4, 8, 8});
}

Test(cost_model_work, what_is_equal_along_an_axis_is_computed_once) {
  expect(WORKLOAD(arena, INPUT(1, 8),
                  {.op = FT_OP_BROADCAST, .in = {0}, .attr = {.shape = SHAPE(100, 8)}},
                  {.op = FT_OP_EXP, .in = {1}, .is_output = true}),
         (ft_work){32, 3200, 0, 4 * 8});
  // Two broadcasts along one axis, then their sum: still eight different ones.
  expect(WORKLOAD(arena, INPUT(1, 8), INPUT(1, 8),
                  {.op = FT_OP_BROADCAST, .in = {0}, .attr = {.shape = SHAPE(100, 8)}},
                  {.op = FT_OP_BROADCAST, .in = {1}, .attr = {.shape = SHAPE(100, 8)}},
                  {.op = FT_OP_ADD, .in = {2, 3}, .is_output = true}),
         (ft_work){64, 3200, 0, 8});
}

Test(cost_model_work, a_reduction_combines_each_element_once) {
  expect(WORKLOAD(
             arena, INPUT(4, 8),
             {.op = FT_OP_REDUCE_SUM, .in = {0}, .attr = {.axes = 2}, .is_output = true}),
         (ft_work){128, 16, 0, 28});
}

Test(cost_model_work, an_input_needed_in_part_and_in_whole_is_read_whole_once) {
  expect(WORKLOAD(arena, INPUT(10),
                  {.op = FT_OP_SLICE,
                   .in = {0},
                   .attr = {.shape = SHAPE(6), .step = {1}},
                   .is_output = true},
                  {.op = FT_OP_NEG, .in = {0}, .is_output = true}),
         (ft_work){40, 24 + 40, 0, 0});
}

Test(cost_model_work, integers_and_empty_tensors_count_no_operations) {
  expect(WORKLOAD(arena, {.op = SPEC_INPUT, .dtype = FT_I32, .shape = SHAPE(32)},
                  {.op = FT_OP_ADD, .in = {0, 0}, .is_output = true}),
         (ft_work){128, 128, 0, 0});
  expect(WORKLOAD(arena, INPUT(0, 8), {.op = FT_OP_EXP, .in = {0}, .is_output = true}),
         (ft_work){0, 0, 0, 0});
  expect(WORKLOAD(arena, INPUT(2, 0), INPUT(0, 3),
                  {.op = FT_OP_MATMUL, .in = {0, 1}, .is_output = true}),
         (ft_work){0, 24, 0, 0});
}

Test(cost_model_work, values_seen_through_views_are_followed) {
  expect(WORKLOAD(arena, INPUT(4, 8), {.op = SPEC_VIEW, .in = {0}, .shape = SHAPE(8, 4)},
                  {.op = FT_OP_EXP, .in = {1}},
                  {.op = SPEC_VIEW, .in = {2}, .shape = SHAPE(32)},
                  {.op = FT_OP_SLICE,
                   .in = {3},
                   .attr = {.shape = SHAPE(6), .step = {1}},
                   .is_output = true}),
         (ft_work){24, 24, 0, 24});
}

Test(cost_model_work, random_elementwise_groups_read_every_input_whole) {
  ft_rng rng = ft_rng_seed(11);
  for (int i = 0; i < 200; i++) {
    spec table[SPEC_MAX];
    int count = spec_random(table, 2 + i % 14, &rng);
    ft_workload *w = workload_of(table, count, arena);
    ft_work work = ft_work_of(w, arena);
    cr_expect_eq(work.read_bytes, (double)w->read_bytes);
    cr_expect_eq(work.write_bytes, (double)w->write_bytes);
    cr_expect(work.flops >= 0 && isfinite(work.flops));
  }
}

// One spatial axis, everything counted by looking.
typedef struct counts {
  int pairs, places, taps;
} counts;
static counts look(int extent, int outputs, int taps, int stride, int dilation, int pad) {
  bool place[64] = {false}, tap[64] = {false};
  counts c = {0};
  for (int o = 0; o < outputs; o++)
    for (int k = 0; k < taps; k++) {
      int at = o * stride + k * dilation - pad;
      if (at < 0 || at >= extent) continue;
      c.pairs++;
      c.places += !place[at];
      c.taps += !tap[k];
      place[at] = tap[k] = true;
    }
  return c;
}

Test(cost_model_work, convolutions_count_as_looking_at_each_tap_does) {
  for (int extent = 1; extent <= 9; extent++)
    for (int taps = 1; taps <= 4; taps++)
      for (int stride = 1; stride <= 5; stride++)
        for (int dilation = 1; dilation <= 3; dilation++)
          for (int pad = 0; pad <= 2; pad++) {
            int reach = (taps - 1) * dilation + 1, room = extent + 2 * pad - reach;
            if (room < 0) continue;
            int outputs = room / stride + 1;
            counts c = look(extent, outputs, taps, stride, dilation, pad);
            ft_workload *w = WORKLOAD(arena, INPUT(1, 1, extent), INPUT(1, 1, taps),
                                      {.op = FT_OP_CONV,
                                       .in = {0, 1},
                                       .attr = {.shape = SHAPE(1, 1, outputs),
                                                .groups = 1,
                                                .start = {pad},
                                                .stride = {stride},
                                                .dilation = {dilation}},
                                       .is_output = true});
            ft_work work = ft_work_of(w, arena);
            cr_expect_eq(work.product_flops, 2 * c.pairs, "%d %d %d %d %d", extent, taps,
                         stride, dilation, pad);
            cr_expect_leq(work.read_bytes, 4 * (c.places + c.taps), "%d %d %d %d %d",
                          extent, taps, stride, dilation, pad);
            if (dilation == 1 && stride <= taps)
              cr_expect_eq(work.read_bytes, 4 * (c.places + c.taps), "%d %d %d %d",
                           extent, taps, stride, pad);
          }
}
