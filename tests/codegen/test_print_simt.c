// What the CUDA text says, and what has none: kernel_simt*.c compile and run these.
#include "codegen/print_simt.h"

#include <criterion/criterion.h>
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
  cr_assert_eq(ft_print_cuda(build(p.arena), "k", 0, &p.text, &p.launch, &error), FT_OK,
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

Test(codegen_print_simt, prints_equal_kernels_as_equal_bytes) {
  for (uint32_t i = 0; i < HANDS; i++) {
    printed a = print_hand(hands[i].build), b = print_hand(hands[i].build);
    cr_assert_str_eq(a.text, b.text);
    ft_arena_destroy(a.arena);
    ft_arena_destroy(b.arena);
  }
}
