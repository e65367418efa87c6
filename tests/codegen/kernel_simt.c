// Kernels in GPU shape: right in the SIM print whatever the schedule.
#include "codegen/nvrtc.h"
#include "simt_drawings.h"

enum { MOST_CASES = 1024 };

// All choices, then all kernels that were drawn by hand.
static uint32_t choice_of(uint32_t i) {
  return i < CHOICES ? i : BY_HAND + i - CHOICES;
}

static bool is_one_of(const char *name, const char *const *names, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!strcmp(name, names[i])) return true;
  return false;
}

// A vector kernel added up what its lanes share once, not once for each lane.
Test(simt, sums_of_what_a_vector_shares_count_each_lane) {
  static const char *const names[] = {"equal terms", "equal planes", "equal integers"};
  simmed c[3 * NESTS] = {{0}};
  uint32_t count = 0;
  bench b;
  open_bench(&b);
  ft_arena *arena = b.sketch[0].arena;
  for (uint32_t d = 0; d < DRAWINGS; d++)
    for (uint32_t i = 0; i < NESTS && is_one_of(drawings[d].name, names, 3); i++) {
      const char *label;
      ft_kir *kir = build_one(&b, d, i, &label);
      if (!kir || choices[i].vector == 1 || !choices[i].row_threads) continue;
      c[count] = (simmed){.workload = &b.workload[d], .label = label};
      simmed_expect(&c[count], d + 1, b.sketch[d].arena);
      simmed_print(&c[count], kir, count, arena);
      count++;
    }
  cr_assert_geq(count, 6, "%u", count);
  const char *folder = cache_make(arena);
  void *library = simmed_build(c, count, folder, arena);
  for (uint32_t i = 0; i < count; i++) simmed_check(&c[i], library, arena);
  cache_remove(folder, arena);
  close_bench(&b);
}

Test(simt, every_schedule_of_every_drawing_is_right_in_sim) {
  bench b;
  simmed c[MOST_CASES] = {{0}};
  uint32_t count = 0, per_choice[CHOICES + HANDS] = {0}, per_drawing[DRAWINGS] = {0};
  open_bench(&b);
  ft_arena *arena = b.sketch[0].arena;
  for (uint32_t d = 0; d < DRAWINGS; d++)
    for (uint32_t i = 0; i < CHOICES + HANDS; i++) {
      const char *label;
      ft_kir *kir = build_one(&b, d, choice_of(i), &label);
      if (!kir) continue;
      cr_assert_lt(count, MOST_CASES);
      c[count] = (simmed){.workload = &b.workload[d], .label = label};
      simmed_expect(&c[count], d + 1, b.sketch[d].arena);
      simmed_print(&c[count], kir, count, arena);
      per_choice[i]++;
      per_drawing[d]++;
      count++;
    }
  for (uint32_t i = 0; i < CHOICES + HANDS; i++)
    cr_assert_gt(per_choice[i], 0, "choice %u", i);
  for (uint32_t d = 0; d < DRAWINGS; d++)
    cr_assert_gt(per_drawing[d], 0, "%s", drawings[d].name);
  const char *folder = cache_make(arena);
  void *library = simmed_build(c, count, folder, arena);
  for (uint32_t i = 0; i < count; i++) simmed_check(&c[i], library, arena);
  cache_remove(folder, arena);
  close_bench(&b);
}

Test(simt, every_schedule_compiles_for_three_architectures) {
  static const char *const archs[] = {"sm_80", "sm_90", "sm_100"};
  bench b;
  ft_nvrtc *nvrtc;
  ft_error error;
  if (ft_nvrtc_open(ft_allocator_system(), &nvrtc, &error) != FT_OK)
    cr_skip_test("%s", error.text);
  open_bench(&b);
  for (uint32_t d = 0; d < DRAWINGS; d++)
    for (uint32_t i = 0; i < CHOICES + HANDS; i++) {
      const char *label, *text;
      ft_simt_launch launch;
      ft_arena *arena = b.sketch[d].arena;
      ft_kir *kir = build_one(&b, d, choice_of(i), &label);
      if (!kir) continue;
      cr_assert_eq(ft_print_cuda(kir, "ft_kernel", 0, &text, &launch, &error), FT_OK,
                   "%s", error.text);
      ft_cubin cubin;
      cr_assert_eq(ft_nvrtc_compile(nvrtc, text, "ft_kernel", archs[(d + i) % 3], arena,
                                    &cubin, &error),
                   FT_OK, "%s", error.text);
      cr_assert_eq(cubin.outcome, FT_OUTCOME_OK, "%s: %s\n%s", label, cubin.log, text);
      cr_assert_gt(cubin.facts.registers, 0);
      // ptxas does not round the last one up.
      int64_t fixed = launch.is_shared_dynamic ? 0 : (int64_t)launch.shared_bytes;
      cr_assert_gt(cubin.facts.shared_bytes + 16, fixed, "%s", label);
    }
  close_bench(&b);
  ft_nvrtc_close(nvrtc);
}
