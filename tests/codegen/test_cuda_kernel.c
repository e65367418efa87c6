// What becomes of a built kernel: facts, launch, and kernels that nothing can hold.
#include "codegen/cuda_kernel.h"

#include <criterion/criterion.h>
#include <string.h>

static ft_arena *arena;
static ft_error error;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(cuda_kernel, .init = set_up, .fini = tear_down);

static ft_module finish(const char *arch, uint32_t threads, int64_t registers,
                        uint64_t static_shared, uint64_t dynamic_shared) {
  ft_cuda_kernel kernel = {.launch = {.grid = 8,
                                      .threads = threads,
                                      .shared_bytes = dynamic_shared,
                                      .is_shared_dynamic = dynamic_shared > 0}};
  ft_cuda_object object = {.outcome = FT_OUTCOME_OK,
                           .path = "k.cubin",
                           .log = "",
                           .facts = {.registers = registers,
                                     .spill_store_bytes = 8,
                                     .spill_load_bytes = 12,
                                     .shared_bytes = (int64_t)static_shared}};
  ft_module module = {0};
  cr_assert_eq(
      ft_cuda_kernel_finish(&kernel, &object, ft_chip_find(arch), arena, &module, &error),
      FT_OK);
  return module;
}

Test(cuda_kernel, spills_are_recorded_and_no_failure) {
  ft_module m = finish("sm_90", 256, 64, 1024, 0);
  cr_assert_eq(m.outcome, FT_OUTCOME_OK);
  cr_assert_eq(m.facts.spill_store_bytes + m.facts.spill_load_bytes, 20);
  cr_assert_eq(m.launch.block_threads, 256);
  cr_assert_eq(m.launch.resident_blocks, 4);
  cr_assert_float_eq(m.facts.occupancy, 0.5, 1e-9);
}

Test(cuda_kernel, dynamic_shared_memory_is_passed_and_counts) {
  ft_module m = finish("sm_90", 256, 32, 64, 100000);
  cr_assert_eq(m.launch.dynamic_shared_bytes, 100000);
  cr_assert_eq(m.facts.shared_bytes, 100064);
  cr_assert_eq(m.launch.resident_blocks, 2);
}

Test(cuda_kernel, what_no_multiprocessor_holds_is_a_resource_limit) {
  ft_module m = finish("sm_86", 256, 32, 0, 150000);  // fits sm_90
  cr_assert_eq(m.outcome, FT_OUTCOME_RESOURCE_LIMIT);
  cr_assert_str_empty(m.path);
  cr_assert(strstr(m.log, "150000") && strstr(m.log, "sm_86"), "%s", m.log);
  cr_assert_eq(finish("sm_90", 256, 32, 0, 150000).outcome, FT_OUTCOME_OK);
  m = finish("sm_90", 1024, 128, 0, 0);
  cr_assert_eq(m.outcome, FT_OUTCOME_RESOURCE_LIMIT);
  cr_assert(strstr(m.log, "128 registers"), "%s", m.log);
}
