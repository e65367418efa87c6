#include "cost_model/gpu_roofline.h"

#include <criterion/criterion.h>
#include <math.h>

#include "workloads.h"

static ft_arena *arena, *scratch;
static ft_workload *copy;  // 64 MiB in, 64 MiB out
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
  scratch = ft_arena_create(ft_allocator_system());
  copy =
      WORKLOAD(arena, INPUT(4096, 4096), {.op = FT_OP_NEG, .in = {0}, .is_output = true});
}
static void tear_down(void) {
  ft_arena_destroy(scratch);
  ft_arena_destroy(arena);
}
TestSuite(gpu_roofline, .init = set_up, .fini = tear_down);

// A kernel that has nothing against it: full multiprocessors, wide loads.
static ft_module good(void) {
  double sectors = 4096.0 * 4096 * 4 / 32;
  return (ft_module){.outcome = FT_OUTCOME_OK,
                     .grid = 132 * 8 * 16,
                     .facts = {.registers = 32},
                     .launch = {.block_threads = 256, .resident_blocks = 8},
                     .work = {.load_sectors = sectors,
                              .store_sectors = sectors,
                              .wavefronts = sectors / 2,
                              .operations = 4096.0 * 4096,
                              .bytes_in_flight = 32}};
}

static ft_gpu_prediction predicted(const char *arch, ft_module m) {
  return ft_gpu_predict(ft_chip_find(arch), copy, &m, scratch);
}

Test(gpu_roofline, a_kernel_with_nothing_against_it_takes_its_bytes_over_the_bandwidth) {
  const ft_chip *chip = ft_chip_find("sm_90");
  ft_gpu_prediction p = predicted("sm_90", good());
  double dram = 2 * 4096.0 * 4096 * 4 / chip->dram_bytes_per_s * 1e9;
  cr_assert_eq(p.binding, FT_ROOF_DRAM);
  cr_assert_float_eq(p.ns, FT_GPU_LAUNCH_NS + dram, 1, "%g", p.ns);
}

Test(gpu_roofline, every_fault_makes_it_longer) {
  ft_module m = good();
  double best = predicted("sm_90", m).ns;
  m.work.bytes_in_flight = 4;
  cr_assert_gt(predicted("sm_90", m).ns, 3 * best);
  m = good();
  m.launch.resident_blocks = 1;  // occupancy
  cr_assert_gt(predicted("sm_90", m).ns, 2 * best);
  m = good();
  m.grid = 20;
  cr_assert_gt(predicted("sm_90", m).ns, 5 * best);
  m = good();
  m.grid += 1;  // a wave of one block
  cr_assert_gt(predicted("sm_90", m).ns, 1.02 * best);
  m = good();
  m.work.load_sectors *= 32;
  cr_assert_eq(predicted("sm_90", m).binding, FT_ROOF_CACHE);
  m = good();
  m.facts.spill_load_bytes = 4096;
  cr_assert_gt(predicted("sm_90", m).ns, 2 * best);
}

Test(gpu_roofline, fp64_is_a_roof_of_its_own_and_low_on_consumer_chips) {
  ft_module m = good();
  m.work.operations64 = 4096.0 * 4096;
  cr_assert_eq(predicted("sm_90", m).binding, FT_ROOF_DRAM);
  ft_gpu_prediction p = predicted("sm_89", m);
  cr_assert_gt(p.roof_ns[FT_ROOF_OPERATIONS64], 30 * p.roof_ns[FT_ROOF_OPERATIONS]);
}

Test(gpu_roofline, no_prediction_is_below_the_bound) {
  uint32_t chips;
  const ft_chip *chip = ft_chips(&chips);
  for (uint32_t i = 0; i < chips; i++) {
    ft_module m = good();
    m.work = (ft_kernel_work){.bytes_in_flight = 1e9};  // as if nothing cost anything
    double bound = ft_gpu_bound_ns(&chip[i], copy, scratch);
    double ns = ft_gpu_predict(&chip[i], copy, &m, scratch).ns;
    cr_assert(bound > FT_GPU_LAUNCH_NS && ns >= bound, "%s: %g, %g", chip[i].arch, ns,
              bound);
  }
}

Test(gpu_roofline, writes_that_the_cache_holds_are_free_in_the_bound) {
  ft_workload *small =
      WORKLOAD(arena, INPUT(1024), {.op = FT_OP_NEG, .in = {0}, .is_output = true});
  const ft_chip *chip = ft_chip_find("sm_90");
  double read = 1024 * 4 / chip->dram_bytes_per_s * 1e9;
  cr_assert_float_eq(ft_gpu_bound_ns(chip, small, scratch), FT_GPU_LAUNCH_NS + read,
                     1e-6);
}

Test(gpu_roofline, whatever_the_module_says_the_prediction_is_finite) {
  ft_module m = {.outcome = FT_OUTCOME_OK, .facts = {-1, -1, -1, -1, -1, -1, -1}};
  double ns = predicted("sm_80", m).ns;
  cr_assert(isfinite(ns) && ns > 0, "%g", ns);
}

Test(gpu_roofline, as_a_predictor_it_says_the_bound) {
  ft_gpu_bounds bounds = {ft_chip_find("sm_90"), scratch};
  ft_predictor p = ft_gpu_predictor(&bounds);
  ft_candidate c = {.workload = copy};
  double ns;
  ft_error error;
  cr_assert_eq(p.predict(p.self, &c, 1, &ns, &error), FT_OK);
  cr_assert_eq(ns, p.bound_ns(p.self, copy));
  ft_trial trial = {.outcome = FT_OUTCOME_OK, .time = {1, 1, 1, 5}};
  cr_assert_eq(p.contradict(p.self, &c, &trial, ns, &error), FT_INTERNAL);
}
