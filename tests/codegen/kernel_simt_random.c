// Random groups in the shape of a GPU: what SIM runs agrees with the reference, and what
// the refusals let through compiles as CUDA. scripts/soak.sh --simt runs more of them.
//   FT_SIMT_CASES   how many in all;  FT_RANDOM_SEED  other cases
//   FT_SIMT_COMPILE=all  each is compiled, not every sixteenth
#include "codegen/nvrtc.h"
#include "simming.h"
#include "simt_draws.h"
#include "tests/support/random/random_group.h"
#include "tests/support/random/trial.h"

enum { BATCH = 48, TRIES = 80 };

static const char *const archs[] = {"sm_80", "sm_90", "sm_100"};

// Some skeleton and knobs that take the group; false: none of those tried.
static bool draw(const ft_workload *w, uint64_t seed, ft_arena *arena,
                 ft_simt_any_choice *out) {
  ft_rng rng = ft_rng_seed(seed);
  bool narrow_first = draw_flag(&rng, 2);  // loops take everything
  for (int i = 0; i < TRIES; i++) {
    ft_simt_skeleton skeleton = (ft_simt_skeleton)ft_rng_below(&rng, FT_SIMT_SKELETONS);
    if (narrow_first && i < TRIES / 2 && skeleton == FT_SIMT_LOOP) continue;
    uint32_t threads = draw_power(&rng, 32, 512);
    if (!draw_taken(&rng, skeleton, threads, w, arena, out)) continue;
    draw_min_blocks(&rng, out);
    return true;
  }
  return false;
}

typedef struct counts {
  uint32_t kernels, untaken, compiled, crashed, of[FT_SIMT_SKELETONS];
} counts;

// Every sixteenth one; FT_SIMT_COMPILE=all: each. The compiler takes longer than the
// rest.
static bool is_compiled(uint64_t seed) {
  return seed % 16 == 1 || getenv("FT_SIMT_COMPILE");
}

// No knobs that were not refused fail to compile, unless the compiler itself crashes.
static void check_cuda(const simmed *c, ft_kir *kir, ft_nvrtc *nvrtc, uint64_t seed,
                       ft_arena *arena, counts *n) {
  const char *text;
  ft_simt_launch launch;
  ft_error error;
  ft_cubin cubin;
  cr_assert_eq(ft_print_cuda(kir, "kernel", &text, &launch, &error), FT_OK, "%s: %s",
               c->label, error.text);
  cr_assert_eq(launch.grid, c->launch.grid);
  if (!nvrtc || !is_compiled(seed)) return;
  const char *arch = archs[seed / 16 % 3];
  cr_assert_eq(ft_nvrtc_compile(nvrtc, text, "kernel", arch, arena, &cubin, &error),
               FT_OK, "%s", error.text);
  n->compiled++;
  if (cubin.outcome != FT_OUTCOME_OK && strstr(cubin.log, "a bug of NVRTC")) {
    fprintf(stderr, "%s%s\n", c->label, cubin.log);
    n->crashed++;
    return;
  }
  cr_assert_eq(cubin.outcome, FT_OUTCOME_OK, "%s for %s: %s\n%s", c->label, arch,
               cubin.log, text);
}

// false: no skeleton takes the group.
static bool make_case(bench *b, uint64_t seed, uint32_t number, ft_nvrtc *nvrtc,
                      counts *n, simmed *out) {
  trial *t = FT_NEW(b->arena, trial);
  ft_simt_any_choice choice;
  ft_kir *kir;
  ft_error error;
  // Every fourth one of short floats.
  const char *wrong = trial_make(b, seed % 4 == 3 ? RANDOM_SHORT + seed : seed, t);
  cr_assert_null(wrong, "case %llu: %s", (unsigned long long)seed, wrong);
  if (!draw(&t->workload, seed, b->arena, &choice)) return false;
  cr_assert_eq(ft_simt_any_build(&t->workload, &choice, b->arena, &kir, &error), FT_OK,
               "%s", error.text);
  *out = (simmed){.workload = &t->workload,
                  .input = t->input,
                  .reference = t->reference,
                  .label = ft_arena_printf(b->arena, "case %llu, %s:\n%s",
                                           (unsigned long long)t->seed,
                                           ft_simt_any_text(&choice, b->arena),
                                           group_text(&t->workload.group, b->arena))};
  simmed_print(out, kir, number, b->arena);
  check_cuda(out, kir, nvrtc, seed, b->arena, n);
  n->of[choice.skeleton]++;
  return true;
}

static void run_batch(bench *b, uint64_t first, ft_nvrtc *nvrtc, counts *n) {
  simmed c[BATCH];
  uint32_t count = 0;
  for (uint64_t seed = first; seed < first + BATCH; seed++) {
    if (make_case(b, seed, count, nvrtc, n, &c[count]))
      count++;
    else
      n->untaken++;
  }
  if (!count) return;
  const char *folder = cache_make(b->arena);
  void *library = simmed_build(c, count, folder, b->arena);
  for (uint32_t i = 0; i < count; i++) simmed_check(&c[i], library, b->arena);
  dlclose(library);
  cache_remove(folder, b->arena);
  n->kernels += count;
}

static uint32_t setting(const char *name, uint32_t fallback) {
  const char *text = getenv(name);
  return text ? (uint32_t)strtoul(text, NULL, 10) : fallback;
}

// A quarter of the cases: the tests run side by side.
static void run_quarter(uint32_t quarter) {
  uint32_t cases = setting("FT_SIMT_CASES", 2000) / 4;
  uint64_t first = setting("FT_RANDOM_SEED", 1) + (uint64_t)quarter * cases;
  counts n = {0};
  ft_nvrtc *nvrtc;
  ft_error error;
  if (ft_nvrtc_open(ft_allocator_system(), &nvrtc, &error) != FT_OK) nvrtc = NULL;
  for (uint64_t at = 0; at < cases; at += BATCH) {
    bench b;
    ft_arena *arena = ft_arena_create(ft_allocator_system());
    const char *folder = cache_make(arena);
    bench_open(first, folder, 1, arena, &b);
    run_batch(&b, first + at, nvrtc, &n);
    bench_close(&b);
    cache_remove(folder, arena);
    ft_arena_destroy(arena);
  }
  ft_nvrtc_close(nvrtc);
  fprintf(stderr, "%u kernels, %u compiled, %u groups untaken:", n.kernels, n.compiled,
          n.untaken);
  for (int i = 0; i < FT_SIMT_SKELETONS; i++)
    fprintf(stderr, " %s %u", ft_simt_skeleton_name((ft_simt_skeleton)i), n.of[i]);
  fprintf(stderr, "\n");
  cr_assert_leq(n.crashed, 1 + n.compiled / 500);
  cr_assert_gt(n.kernels, 4 * n.untaken);
}

Test(simt, random_groups_agree_with_the_reference_first_quarter, .timeout = 7200) {
  run_quarter(0);
}
Test(simt, random_groups_agree_with_the_reference_second_quarter, .timeout = 7200) {
  run_quarter(1);
}
Test(simt, random_groups_agree_with_the_reference_third_quarter, .timeout = 7200) {
  run_quarter(2);
}
Test(simt, random_groups_agree_with_the_reference_fourth_quarter, .timeout = 7200) {
  run_quarter(3);
}
