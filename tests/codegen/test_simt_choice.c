#include "codegen/simt_choice.h"

#include <string.h>

#include "codegen/print_simt.h"
#include "graphs.h"

static ft_workload product(sketch *s) {
  *s = sketch_open();
  uint32_t a = input(s, FT_F32, SHAPE(8, 12)), b = input(s, FT_F32, SHAPE(12, 20));
  output(s, two(s, FT_OP_MATMUL, a, b));
  return finish(s);
}

Test(codegen_simt_choice, every_knob_reads_back_what_was_set) {
  for (int i = 0; i < FT_SIMT_SKELETONS; i++) {
    ft_simt_any_choice c = {.skeleton = (ft_simt_skeleton)i};
    uint32_t count = 0;
    while (ft_simt_knob_name(c.skeleton, count)) count++;
    cr_assert_gt(count, 0);
    for (uint32_t k = 0; k < count; k++) ft_simt_knob_set(&c, k, 1);
    for (uint32_t k = 0; k < count; k++) {
      cr_assert_eq(ft_simt_knob_get(&c, k), 1);
      ft_simt_knob_set(&c, k, 0);
      cr_assert_eq(ft_simt_knob_get(&c, k), 0, "%s", ft_simt_knob_name(c.skeleton, k));
    }
  }
}

Test(codegen_simt_choice, knobs_are_the_members_of_their_struct) {
  ft_simt_any_choice c = {.skeleton = FT_SIMT_GEMM,
                          .gemm = {64, 32, 16, 4, 2, .stages = 2}};
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  cr_assert_str_eq(
      ft_simt_any_text(&c, arena),
      "gemm block_m=64 block_n=32 block_k=16 thread_m=4 thread_n=2 stages=2");
  c = (ft_simt_any_choice){.skeleton = FT_SIMT_NEST,
                           .nest = {.threads = 128, .vector = 4, .streams = true}};
  cr_assert_str_eq(ft_simt_any_text(&c, arena), "nest threads=128 vector=4 streams=1");
  ft_arena_destroy(arena);
}

Test(codegen_simt_choice, the_skeleton_answers_for_its_choice) {
  sketch s;
  ft_workload w = product(&s);
  ft_kir *kir;
  ft_error error;
  ft_simt_any_choice gemm = {.skeleton = FT_SIMT_GEMM,
                             .gemm = {16, 16, 8, 2, 2, .stages = 1}};
  ft_simt_any_choice loop = {.skeleton = FT_SIMT_LOOP, .loop = {64, 4}};
  ft_simt_any_choice nest = {.skeleton = FT_SIMT_NEST,
                             .nest = {.threads = 64, .vector = 1, .unroll = 1}};
  cr_assert_null(ft_simt_any_refusal(&w, &gemm, s.arena));
  cr_assert_null(ft_simt_any_refusal(&w, &loop, s.arena));
  cr_assert_not_null(ft_simt_any_refusal(&w, &nest, s.arena));
  cr_assert_eq(ft_simt_any_build(&w, &gemm, s.arena, &kir, &error), FT_OK);
  cr_assert_null(ft_kir_verify(kir));
  cr_assert_eq(ft_simt_any_build(&w, &loop, s.arena, &kir, &error), FT_OK);
  cr_assert_null(ft_kir_verify(kir));
  gemm.gemm.block_m = 7;
  cr_assert_str_eq(ft_simt_any_refusal(&w, &gemm, s.arena),
                   "block_m or block_n is not a power of two from 8 to 128");
  sketch_close(&s);
}

Test(codegen_simt_choice, a_turn_takes_two_inner_axes) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(8, 12)), y = input(&s, FT_F32, SHAPE(12, 8));
  output(&s, two(&s, FT_OP_ADD, transpose(&s, x), y));
  ft_workload w = finish(&s);
  ft_kir *kir;
  ft_error error;
  ft_simt_any_choice c = {.skeleton = FT_SIMT_TURN,
                          .turn = {.threads = 64,
                                   .tile_near = 8,
                                   .tile_far = 16,
                                   .vector_near = 1,
                                   .vector_far = 2}};
  cr_assert_null(ft_simt_any_refusal(&w, &c, s.arena));
  cr_assert_eq(ft_simt_any_build(&w, &c, s.arena, &kir, &error), FT_OK);
  cr_assert_null(ft_kir_verify(kir));
  cr_assert_str_eq(ft_simt_any_text(&c, s.arena),
                   "turn threads=64 tile_near=8 tile_far=16 vector_near=1 vector_far=2");
  sketch_close(&s);
}

Test(codegen_simt_choice, min_blocks_is_a_knob_of_all_and_caps_registers) {
  sketch s;
  ft_workload w = product(&s);
  ft_kir *kir;
  ft_error error;
  ft_simt_launch launch;
  const char *text;
  ft_simt_any_choice gemm = {FT_SIMT_GEMM, .gemm = {32, 32, 8, 2, 2, .stages = 1}};
  cr_assert_eq(ft_simt_any_threads(&gemm), 256);
  gemm.min_blocks = 8;
  cr_assert_null(ft_simt_any_refusal(&w, &gemm, s.arena));
  cr_assert_eq(ft_simt_any_build(&w, &gemm, s.arena, &kir, &error), FT_OK);
  cr_assert_eq(ft_print_cuda(kir, "k", &text, &launch, &error), FT_OK);
  cr_assert(strstr(text, "__launch_bounds__(256, 8)"));
  gemm.min_blocks = 9;
  cr_assert_str_eq(ft_simt_any_refusal(&w, &gemm, s.arena),
                   "min_blocks of so many threads are over the 2048 of a multiprocessor");
  kir->min_blocks = 9;
  cr_assert_str_eq(ft_kir_verify(kir), ft_simt_any_refusal(&w, &gemm, s.arena));
  ft_simt_any_choice loop = {FT_SIMT_LOOP, .loop = {32, 4}, .min_blocks = 33};
  cr_assert_str_eq(ft_simt_any_refusal(&w, &loop, s.arena), "min_blocks is not 0 to 32");
  sketch_close(&s);
}

Test(codegen_simt_choice, the_blocks_for_a_cap_leave_each_thread_so_many_registers) {
  for (uint32_t threads = 32; threads <= 1024; threads *= 2)
    for (uint32_t registers = 32; registers <= 255; registers++) {
      uint32_t blocks = ft_simt_min_blocks(threads, registers);
      cr_assert(blocks <= 32 && blocks * threads <= 2048);
      cr_assert_leq(blocks * threads * registers, 65536);
      if (blocks < 32) cr_assert_gt((blocks + 1) * threads * registers, 65536);
    }
}
