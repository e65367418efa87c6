// What a kernel does, counted from its statements, against counts by hand.
#include "codegen/simt_work.h"

#include "codegen/simt_choice.h"
#include "graphs.h"

static ft_kernel_work work_of(const ft_workload *w, const ft_simt_any_choice *choice,
                              ft_arena *arena) {
  ft_kir *kir;
  ft_kernel_work work;
  ft_error error;
  const char *wrong = ft_simt_any_refusal(w, choice, arena);
  cr_assert_null(wrong, "%s", wrong);
  cr_assert_eq(ft_simt_any_build(w, choice, arena, &kir, &error), FT_OK, "%s",
               error.text);
  cr_assert_null(ft_kir_verify(kir));
  cr_assert_eq(ft_simt_work_of(kir, &work, &error), FT_OK, "%s", error.text);
  return work;
}

static ft_workload added(sketch *s, int64_t elements) {
  uint32_t x = input(s, FT_F32, SHAPE(elements)), y = input(s, FT_F32, SHAPE(elements));
  output(s, two(s, FT_OP_ADD, x, y));
  return finish(s);
}

Test(simt_work, counts_each_sector_of_neighbours_once) {
  for (uint32_t vector = 1; vector <= 4; vector *= 4) {
    sketch s = sketch_open();
    ft_workload w = added(&s, 1 << 14);
    ft_simt_any_choice c = {FT_SIMT_NEST,
                            .nest = {.threads = 128, .vector = vector, .unroll = 1}};
    ft_kernel_work k = work_of(&w, &c, s.arena);
    double sectors = (1 << 14) * 4 / 32;
    cr_assert_float_eq(k.load_sectors, 2 * sectors, 1e-9, "%g", k.load_sectors);
    cr_assert_float_eq(k.store_sectors, sectors, 1e-9);
    cr_assert_float_eq(k.operations, 1 << 14, 1e-9);
    cr_assert_float_eq(k.bytes_in_flight, 2.0 * 4 * vector, 1e-9);
    // 128 bytes of one access in one turn.
    cr_assert_float_eq(k.wavefronts, 3 * sectors / 4, 1e-9, "%g", k.wavefronts);
    sketch_close(&s);
  }
}

Test(simt_work, has_more_in_flight_when_items_go_together) {
  sketch s = sketch_open();
  ft_workload w = added(&s, 1 << 14);
  ft_simt_any_choice c = {FT_SIMT_NEST,
                          .nest = {.threads = 128, .vector = 4, .unroll = 4}};
  cr_assert_float_eq(work_of(&w, &c, s.arena).bytes_in_flight, 4 * 2 * 16, 1e-9);
  sketch_close(&s);
}

Test(simt_work, counts_a_sector_for_each_thread_that_strides) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(64, 64)), y = input(&s, FT_F32, SHAPE(64, 64));
  output(&s, two(&s, FT_OP_SUB, transpose(&s, x), y));
  ft_workload w = finish(&s);
  ft_simt_any_choice c = {FT_SIMT_NEST,
                          .nest = {.threads = 64, .vector = 1, .unroll = 1}};
  ft_kernel_work k = work_of(&w, &c, s.arena);
  double warps = 64 * 64 / 32;
  cr_assert_float_eq(k.load_sectors, warps * (32 + 4), 1e-9, "%g", k.load_sectors);
  sketch_close(&s);
}

Test(simt_work, counts_only_items_that_exist) {
  sketch s = sketch_open();
  ft_workload w = added(&s, 100);  // of 128 threads
  ft_simt_any_choice c = {FT_SIMT_NEST,
                          .nest = {.threads = 128, .vector = 1, .unroll = 1}};
  cr_assert_float_eq(work_of(&w, &c, s.arena).operations, 100, 1e-6);
  sketch_close(&s);
}

Test(simt_work, reads_a_row_once_for_each_pass) {
  sketch s = sketch_open();
  output(&s, softmax(&s, input(&s, FT_F32, SHAPE(64, 256)), 1));
  ft_workload w = finish(&s);
  ft_simt_any_choice c = {
      FT_SIMT_NEST,
      .nest = {.threads = 128, .vector = 1, .unroll = 1, .row_threads = 32}};
  ft_kernel_work k = work_of(&w, &c, s.arena);
  double sectors = 64 * 256 * 4 / 32;
  cr_assert_float_eq(k.load_sectors, 3 * sectors, 1e-9, "%g", k.load_sectors);
  cr_assert_float_eq(k.store_sectors, sectors, 1e-9);
  cr_assert_gt(k.specials, 64 * 256);  // an exponential each, at least
  sketch_close(&s);
}

Test(simt_work, counts_a_product_and_its_sum_as_one) {
  sketch s = sketch_open();
  uint32_t a = input(&s, FT_F32, SHAPE(64, 32)), b = input(&s, FT_F32, SHAPE(32, 64));
  output(&s, two(&s, FT_OP_MATMUL, a, b));
  ft_workload w = finish(&s);
  ft_simt_any_choice c = {FT_SIMT_LOOP, .loop = {.threads = 64, .tile = 1}};
  ft_kernel_work k = work_of(&w, &c, s.arena);
  double products = 64 * 64 * 32;
  cr_assert(k.operations + k.operations64 >= products &&
                k.operations + k.operations64 < 1.5 * products,
            "%g + %g", k.operations, k.operations64);
  sketch_close(&s);
}

Test(simt_work, counts_the_same_twice) {
  sketch s = sketch_open();
  ft_workload w = added(&s, 4096);
  ft_simt_any_choice c = {FT_SIMT_NEST,
                          .nest = {.threads = 128, .vector = 4, .unroll = 2}};
  ft_kernel_work a = work_of(&w, &c, s.arena), b = work_of(&w, &c, s.arena);
  cr_assert_arr_eq(&a, &b, sizeof a);
  sketch_close(&s);
}
