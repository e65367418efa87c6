// Random pieces of random graphs that do not need each other, as one kernel: each part by
// a skeleton and knobs of its own. What SIM runs agrees with the reference, and what is
// joined compiles.
//   FT_SIMT_CASES   how many in all;  FT_RANDOM_SEED  other cases
#include "codegen/nvrtc.h"
#include "codegen/simt_blocks.h"
#include "simming.h"
#include "simt_draws.h"
#include "tests/support/random/random_group.h"
#include "tests/support/random/trial.h"

enum { BATCH = 32, TRIES = 80, MOST_PRIMITIVES = 64 };

static const char *const archs[] = {"sm_80", "sm_90", "sm_100"};

// ---- choices
// ------------------------------------------------------------------------------

// Blocks of |threads|.
static bool draw_part(const ft_workload *w, uint32_t threads, ft_rng *rng,
                      ft_arena *arena, ft_simt_any_choice *out) {
  for (int i = 0; i < TRIES; i++) {
    ft_simt_skeleton skeleton = (ft_simt_skeleton)ft_rng_below(rng, FT_SIMT_SKELETONS);
    if (draw_taken(rng, skeleton, threads, w, arena, out) &&
        ft_simt_any_threads(out) == threads)
      return true;
  }
  return false;
}

// false: a part that no draw fits.
static bool draw(const ft_workload *w, ft_rng *rng, ft_arena *arena,
                 ft_simt_blocks_choice *out) {
  ft_parts parts;
  ft_error error;
  uint32_t threads = draw_power(rng, 32, 256);
  cr_assert_eq(ft_parts_make(w, arena, &parts, &error), FT_OK, "%s", error.text);
  if (parts.count < 2 || parts.count > FT_MOST_PARTS) return false;
  *out = (ft_simt_blocks_choice){.count = parts.count,
                                 .min_blocks = (uint32_t)ft_rng_below(rng, 3)};
  for (uint32_t i = 0; i < parts.count; i++)
    if (!draw_part(&parts.part[i].workload, threads, rng, arena, &out->part[i]))
      return false;
  out->order = ft_rng_below(rng, 2) ? FT_KIR_INTERLEAVE : FT_KIR_CONCAT;
  if (ft_simt_blocks_refusal(w, out, arena)) out->order = FT_KIR_CONCAT;
  return !ft_simt_blocks_refusal(w, out, arena);
}

static const char *choice_text(const ft_simt_blocks_choice *c, ft_arena *arena) {
  const char *text = c->order == FT_KIR_INTERLEAVE ? "interleaved" : "ranges";
  for (uint32_t i = 0; i < c->count; i++)
    text = ft_arena_printf(arena, "%s; %s", text, ft_simt_any_text(&c->part[i], arena));
  return text;
}

// ---- groups
// -------------------------------------------------------------------------------

// Primitives of a random graph, each third one left out: what they lead to stands alone.
static bool draw_group(bench *b, uint64_t seed, ft_rng *rng, trial *out) {
  ft_graph *graph = random_graph(seed, b->arena);
  uint32_t list[MOST_PRIMITIVES], count = 0;
  const char *refusal = NULL;
  for (uint32_t i = 0; i < graph->primitive_count && count < MOST_PRIMITIVES; i++)
    if (ft_rng_below(rng, 3)) list[count++] = i;
  if (count < 2) return false;
  const char *wrong = trial_of(b, graph, list, count, seed, out, &refusal);
  cr_assert(!wrong || refusal, "case %llu: %s", (unsigned long long)seed, wrong);
  return !refusal;
}

typedef struct counts {
  uint32_t kernels, interleaved, bodies, compiled;
} counts;

static void compile(ft_nvrtc *nvrtc, const simmed *c, ft_kir *kir, uint32_t at,
                    ft_arena *arena) {
  const char *text;
  ft_simt_launch launch;
  ft_error error;
  ft_cubin cubin;
  cr_assert_eq(ft_print_cuda(kir, "kernel", &text, &launch, &error), FT_OK, "%s: %s",
               c->label, error.text);
  cr_assert_eq(launch.grid, c->launch.grid);
  if (!nvrtc) return;
  cr_assert_eq(
      ft_nvrtc_compile(nvrtc, text, "kernel", archs[at % 3], arena, &cubin, &error),
      FT_OK, "%s", error.text);
  cr_assert_eq(cubin.outcome, FT_OUTCOME_OK, "%s: %s\n%s", c->label, cubin.log, text);
}

// false: the graph of |seed| has no such pieces.
static bool make_case(bench *b, uint64_t seed, simmed *out, uint32_t number,
                      ft_nvrtc *nvrtc, counts *n) {
  ft_rng rng = ft_rng_seed(seed);
  trial *t = FT_NEW(b->arena, trial);
  ft_simt_blocks_choice c;
  ft_kir *kir;
  ft_error error;
  if (!draw_group(b, seed, &rng, t) || !draw(&t->workload, &rng, b->arena, &c))
    return false;
  cr_assert_eq(ft_simt_blocks_build(&t->workload, &c, b->arena, &kir, &error), FT_OK,
               "%s", error.text);
  *out =
      (simmed){.workload = &t->workload,
               .input = t->input,
               .reference = t->reference,
               .label = ft_arena_printf(
                   b->arena, "case %llu, %s:\n%s", (unsigned long long)seed,
                   choice_text(&c, b->arena), group_text(&t->workload.group, b->arena))};
  simmed_print(out, kir, number, b->arena);
  // Each tenth: the compiler takes longer than the rest.
  compile(number % 10 ? NULL : nvrtc, out, kir, (uint32_t)seed, b->arena);
  n->kernels++;
  n->bodies += c.count;
  n->interleaved += c.order == FT_KIR_INTERLEAVE;
  n->compiled += nvrtc && number % 10 == 0;
  return true;
}

static void run_batch(uint64_t first, ft_nvrtc *nvrtc, counts *n) {
  bench b;
  simmed c[BATCH];
  uint32_t count = 0;
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  const char *folder = cache_make(arena);
  bench_open(first, folder, 1, arena, &b);
  for (uint64_t seed = first; seed < first + BATCH; seed++)
    count += make_case(&b, seed, &c[count], count, nvrtc, n);
  if (count) {
    void *library = simmed_build(c, count, folder, arena);
    for (uint32_t i = 0; i < count; i++) simmed_check(&c[i], library, arena);
    dlclose(library);
  }
  bench_close(&b);
  cache_remove(folder, arena);
  ft_arena_destroy(arena);
}

static uint32_t setting(const char *name, uint32_t fallback) {
  const char *text = getenv(name);
  return text ? (uint32_t)strtoul(text, NULL, 10) : fallback;
}

Test(simt, random_pieces_joined_agree_with_the_reference, .timeout = 7200) {
  uint32_t cases = setting("FT_SIMT_CASES", 640);
  uint64_t first = setting("FT_RANDOM_SEED", 1);
  counts n = {0};
  ft_nvrtc *nvrtc;
  ft_error error;
  if (ft_nvrtc_open(ft_allocator_system(), &nvrtc, &error) != FT_OK) nvrtc = NULL;
  for (uint64_t at = 0; at < cases; at += BATCH) run_batch(first + at, nvrtc, &n);
  fprintf(stderr, "%u kernels of %u bodies, %u interleaved, %u compiled\n", n.kernels,
          n.bodies, n.interleaved, n.compiled);
  cr_assert_gt(n.kernels, cases / 8);
  // One in some twenty: of a handful of cases perhaps none.
  if (n.kernels >= 100) cr_assert_gt(n.interleaved, n.kernels / 50);
  ft_nvrtc_close(nvrtc);
}
