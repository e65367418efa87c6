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

Test(simt, every_schedule_has_a_drawing_and_every_drawing_a_schedule) {
  uint32_t per_choice[CHOICES + HANDS] = {0}, per_drawing[DRAWINGS] = {0};
  bench b;
  open_bench(&b);
  for (uint32_t d = 0; d < DRAWINGS; d++)
    for (uint32_t i = 0; i < CHOICES + HANDS; i++) {
      const char *label;
      if (!build_one(&b, d, choice_of(i), &label)) continue;
      per_choice[i]++;
      per_drawing[d]++;
    }
  for (uint32_t i = 0; i < CHOICES + HANDS; i++)
    cr_assert_gt(per_choice[i], 0, "choice %u", i);
  for (uint32_t d = 0; d < DRAWINGS; d++)
    cr_assert_gt(per_drawing[d], 0, "%s", drawings[d].name);
  close_bench(&b);
}

// Every fourth drawing from |first| on; the tests run beside each other.
static void check_quarter(uint32_t first) {
  bench b;
  simmed *c = calloc(MOST_CASES, sizeof *c);
  uint32_t count = 0;
  open_bench(&b);
  ft_arena *arena = b.sketch[0].arena;
  for (uint32_t d = first; d < DRAWINGS; d += 4)
    for (uint32_t i = 0; i < CHOICES + HANDS; i++) {
      const char *label;
      ft_kir *kir = build_one(&b, d, choice_of(i), &label);
      if (!kir) continue;
      cr_assert_lt(count, MOST_CASES);
      c[count] = (simmed){.workload = &b.workload[d], .label = label};
      simmed_expect(&c[count], d + 1, b.sketch[d].arena);
      simmed_print(&c[count], kir, count, arena);
      count++;
    }
  const char *folder = cache_make(arena);
  void *library = simmed_build(c, count, folder, arena);
  for (uint32_t i = 0; i < count; i++) simmed_check(&c[i], library, arena);
  cache_remove(folder, arena);
  free(c);
  close_bench(&b);
}

Test(simt, every_schedule_is_right_in_sim_first_quarter, .timeout = 1200) {
  check_quarter(0);
}
Test(simt, every_schedule_is_right_in_sim_second_quarter, .timeout = 1200) {
  check_quarter(1);
}
Test(simt, every_schedule_is_right_in_sim_third_quarter, .timeout = 1200) {
  check_quarter(2);
}
Test(simt, every_schedule_is_right_in_sim_fourth_quarter, .timeout = 1200) {
  check_quarter(3);
}

static void check_compiled(ft_nvrtc *nvrtc, ft_kir *kir, const char *label,
                           const char *arch) {
  const char *text;
  ft_simt_launch launch;
  ft_cubin cubin;
  ft_error error;
  cr_assert_eq(ft_print_cuda(kir, "ft_kernel", &text, &launch, &error), FT_OK, "%s",
               error.text);
  cr_assert_eq(
      ft_nvrtc_compile(nvrtc, text, "ft_kernel", arch, kir->arena, &cubin, &error), FT_OK,
      "%s", error.text);
  cr_assert_eq(cubin.outcome, FT_OUTCOME_OK, "%s: %s\n%s", label, cubin.log, text);
  cr_assert_gt(cubin.facts.registers, 0);
  // ptxas does not round the last one up.
  int64_t fixed = launch.is_shared_dynamic ? 0 : (int64_t)launch.shared_bytes;
  cr_assert_gt(cubin.facts.shared_bytes + 16, fixed, "%s", label);
}

// Every fourth drawing from |first| on: every third schedule, for one architecture in
// turn; FT_SIMT_COMPILE=all: each, for all of them.
static void compile_quarter(uint32_t first) {
  static const char *const archs[] = {"sm_80", "sm_90", "sm_100"};
  bench b;
  ft_nvrtc *nvrtc;
  ft_error error;
  bool all = getenv("FT_SIMT_COMPILE") != NULL;
  if (ft_nvrtc_open(ft_allocator_system(), &nvrtc, &error) != FT_OK)
    cr_skip_test("%s", error.text);
  open_bench(&b);
  for (uint32_t d = first; d < DRAWINGS; d += 4)
    for (uint32_t i = 0; i < CHOICES + HANDS; i++) {
      const char *label;
      ft_kir *kir = build_one(&b, d, choice_of(i), &label);
      for (uint32_t a = 0; kir && a < 3; a++)
        if (all || (i + d) % 9 == 3 * a) check_compiled(nvrtc, kir, label, archs[a]);
    }
  close_bench(&b);
  ft_nvrtc_close(nvrtc);
}

Test(simt, every_schedule_compiles_first_quarter, .timeout = 7200) {
  compile_quarter(0);
}
Test(simt, every_schedule_compiles_second_quarter, .timeout = 7200) {
  compile_quarter(1);
}
Test(simt, every_schedule_compiles_third_quarter, .timeout = 7200) {
  compile_quarter(2);
}
Test(simt, every_schedule_compiles_fourth_quarter, .timeout = 7200) {
  compile_quarter(3);
}
