// What the CUDA text says, and what has none: kernel_simt*.c compile and run these.
#include "codegen/print_simt.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "simt_hands.h"

typedef struct printed {
  ft_arena *arena;
  const char *text;
  ft_simt_launch launch;
} printed;

static printed print_hand(ft_kir *(*build)(ft_arena *arena)) {
  printed p = {.arena = ft_arena_create(ft_allocator_system())};
  ft_error error;
  cr_assert_eq(ft_print_cuda(build(p.arena), "k", &p.text, &p.launch, &error), FT_OK,
               "%s", error.text);
  return p;
}

#define SAYS(p, what) cr_assert(strstr((p).text, what), "no %s in\n%s", what, (p).text)

Test(codegen_print_simt, the_workspace_is_the_last_argument_and_loads_pass_l1) {
  printed p = print_hand(build_split_sum);
  SAYS(p,
       "k(int *ft_status, const float *__restrict__ b1, float *__restrict__ b2, "
       "unsigned char *__restrict__ a2) {\n");
  SAYS(p, "float *const b3 = (float *)(a2 + 0);\n");
  SAYS(p, "int *const b4 = (int *)(a2 + 2432);\n");
  SAYS(p, " = __ldcg(&b3[");
  cr_assert_eq(p.launch.workspace_bytes, 2432 + 64);
  ft_arena_destroy(p.arena);
}

Test(codegen_print_simt, blocks_are_counted_after_a_fence_and_a_barrier) {
  printed p = print_hand(build_split_sum);
  const char *at = strstr(p.text, "__threadfence();\n      __syncthreads();\n");
  cr_assert(at, "%s", p.text);
  at = strstr(at, "if (__syncthreads_or(threadIdx.x == 0 && atomicAdd(&b4[");
  cr_assert(at, "%s", p.text);
  at = strstr(at, "__threadfence();\n        if (threadIdx.x == 0) b4[");
  cr_assert(at && strstr(at, "] = 0;\n"), "%s", p.text);
  ft_arena_destroy(p.arena);
}

Test(codegen_print_simt, registers_are_arrays_that_unrolled_loops_walk) {
  printed p = print_hand(build_held_rows);
  SAYS(p, "float b4[4][2];\n");
  SAYS(p, "#pragma unroll\n");
  ft_arena_destroy(p.arena);
}

Test(codegen_print_simt, only_what_is_read_alone_streams) {
  printed p = print_hand(build_held_rows);
  SAYS(p, " = __ldcs(&((const int2 *)(b1 + ");
  SAYS(p, " = b2[");  // the weights are cached
  ft_arena_destroy(p.arena);
}

// ---- asynchronous copies

Test(codegen_print_simt, copies_are_cp_async_of_their_width) {
  printed p = print_hand(build_staged_by_4);
  SAYS(p, "cp.async.cg.shared.global [%0], [%1], 16, %2;");
  SAYS(p, "      ft_copy_if_16((");
  SAYS(p, "asm volatile(\"cp.async.commit_group;\" ::: \"memory\");\n");
  SAYS(p, "asm volatile(\"cp.async.wait_group 1;\" ::: \"memory\");\n");
  cr_assert(p.launch.has_copies);
  ft_arena_destroy(p.arena);
  p = print_hand(build_staged_by_2);
  SAYS(p, "cp.async.ca.shared.global [%0], [%1], 8, %2;");
  ft_arena_destroy(p.arena);
  p = print_hand(build_staged_by_1);
  SAYS(p, "cp.async.ca.shared.global [%0], [%1], 4, %2;");
  ft_arena_destroy(p.arena);
}

// A copy of 4 floats a thread, |from| and |to| elements on.
static const char *copied(int64_t from, int64_t to, ft_status *out_status) {
  static char text[8192];
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  hand h = hand_start(1, LANES, arena);
  uint32_t in = ft_kir_global(h.kir, FT_F32, 8 * LANES, 0, false);
  uint32_t slab = ft_kir_shared(h.kir, h.here, FT_F32, 8 * LANES);
  ft_kir_id at = hand_times(&h, h.thread, 4);
  ft_kir_copy(h.kir, h.here, in, hand_plus(&h, at, hand_number(&h, from)), slab,
              hand_plus(&h, at, hand_number(&h, to)), 4, 0);
  ft_error error;
  const char *cuda = "";
  ft_simt_launch launch;
  *out_status = ft_print_cuda(hand_end(&h), "k", &cuda, &launch, &error);
  snprintf(text, sizeof text, "%s", *out_status ? error.text : cuda);
  ft_arena_destroy(arena);
  return text;
}

Test(codegen_print_simt, a_copy_that_may_be_misaligned_is_refused) {
  ft_status status;
  cr_assert(strstr(copied(8, 4, &status), " ft_copy_16(&b2["));
  cr_assert_eq(status, FT_OK);
  cr_assert(strstr(copied(2, 0, &status), "alignment of copies from buffer 1 to 2"));
  cr_assert_eq(status, FT_UNSUPPORTED);
  cr_assert(strstr(copied(0, 1, &status), "alignment of copies from buffer 1 to 2"));
  cr_assert_eq(status, FT_UNSUPPORTED);
}

// ---- shared memory

Test(codegen_print_simt, branches_that_exclude_each_other_share_bytes) {
  printed p = print_hand(build_turned_rows);
  cr_assert_eq(p.launch.shared_bytes, 2 * TURNED * 4);
  cr_assert_not(p.launch.is_shared_dynamic);
  SAYS(p, "  __shared__ __align__(16) unsigned char ft_shared[512];\n");
  SAYS(p, "float *const b3 = (float *)(ft_shared + 0);\n");
  SAYS(p, "float *const b4 = (float *)(ft_shared + 0);\n");
  ft_arena_destroy(p.arena);
}

// Shared memory of a kernel whose branches allocate 256 and 512 bytes; |is_looping|: in a
// loop; |by|: what they ask.
static uint64_t branching(bool is_looping, ft_kir_id (*by)(hand *h)) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  hand h = hand_start(4, LANES, arena);
  if (is_looping) hand_loop(&h, FT_KIR_SERIAL, 3);
  ft_kir_stmt *branch = ft_kir_if(h.kir, by(&h));
  ft_kir_append(h.here, branch);
  ft_kir_shared(h.kir, &branch->body, FT_F32, 64);
  ft_kir_shared(h.kir, &branch->otherwise, FT_F32, 128);
  ft_error error;
  const char *text;
  ft_simt_launch launch;
  cr_assert_eq(ft_print_cuda(hand_end(&h), "k", &text, &launch, &error), FT_OK, "%s",
               error.text);
  ft_arena_destroy(arena);
  return launch.shared_bytes;
}

static ft_kir_id by_block(hand *h) {
  return ft_kir_index(h->kir, FT_KIR_ILESS, h->block, hand_number(h, 2));
}
static ft_kir_id by_thread(hand *h) {
  return ft_kir_index(h->kir, FT_KIR_ILESS, h->thread, hand_number(h, 2));
}

Test(codegen_print_simt, branches_that_a_block_may_take_both_do_not) {
  cr_assert_eq(branching(false, by_block), 512);
  cr_assert_eq(branching(true, by_block), 768);
  cr_assert_eq(branching(false, by_thread), 768);
}

Test(codegen_print_simt, prints_equal_kernels_as_equal_bytes) {
  for (uint32_t i = 0; i < HANDS; i++) {
    printed a = print_hand(hands[i].build), b = print_hand(hands[i].build);
    cr_assert_str_eq(a.text, b.text);
    ft_arena_destroy(a.arena);
    ft_arena_destroy(b.arena);
  }
}
