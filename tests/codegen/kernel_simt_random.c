// Random groups in the shape of a GPU: what SIM runs agrees with the reference, and what
// the refusals let through prints as CUDA too. scripts/soak.sh --simt runs more of them.
//   FT_SIMT_CASES   how many in all;  FT_RANDOM_SEED  other cases
#include "codegen/simt_conv.h"
#include "codegen/simt_gemm.h"
#include "codegen/simt_loop.h"
#include "codegen/simt_nest.h"
#include "codegen/simt_skinny.h"
#include "codegen/simt_turn.h"
#include "codegen/simt_window.h"
#include "simming.h"
#include "tests/support/random/random_group.h"
#include "tests/support/random/trial.h"

enum { BATCH = 48, TRIES = 40, FEWEST_BLOCKS = 1 };

typedef struct drawn {
  ft_kir *kir;
  const char *skeleton;
} drawn;

static uint32_t power(ft_rng *rng, uint32_t low, uint32_t high) {
  uint32_t steps = 0;
  while (low << (steps + 1) <= high) steps++;
  return low << ft_rng_below(rng, steps + 1);
}

// Items, rows or columns.
static void draw_shape(ft_rng *rng, ft_simt_choice *c) {
  uint64_t shape = ft_rng_below(rng, 4);
  if (shape == 0) {
    if (ft_rng_below(rng, 3) == 0)
      c->blocks = FEWEST_BLOCKS + (uint32_t)ft_rng_below(rng, 4);
    return;
  }
  if (shape == 1)
    c->column_threads = power(rng, 1, c->threads);
  else
    c->row_threads = power(rng, 1, c->threads);
  c->buffer = (ft_simt_buffer)ft_rng_below(rng, 3);
  if (ft_rng_below(rng, 3) == 0) c->splits = 1 + (uint32_t)ft_rng_below(rng, 6);
}

static bool draw_nest(const ft_workload *w, ft_rng *rng, ft_arena *arena, drawn *out) {
  ft_group_ir *ir;
  const char *reason;
  ft_error error;
  cr_assert_eq(ft_group_ir_make(w, arena, &ir, &reason, &error), FT_OK, "%s", error.text);
  if (!ir || ir->refusal) return false;
  ft_simt_choice c = {.threads = power(rng, 32, 512),
                      .vector = power(rng, 1, 8),
                      .unroll = 1 + (uint32_t)ft_rng_below(rng, 8),
                      .streams = ft_rng_below(rng, 2),
                      .loads_once = ft_rng_below(rng, 2)};
  draw_shape(rng, &c);
  if (ft_simt_nest_refusal(ir, &c, arena)) return false;
  cr_assert_eq(ft_simt_nest_build(ir, &c, arena, &out->kir, &error), FT_OK, "%s",
               error.text);
  out->skeleton = ft_arena_printf(
      arena,
      "nest threads=%u vector=%u unroll=%u row_threads=%u column_threads=%u blocks=%u "
      "splits=%u buffer=%u",
      c.threads, c.vector, c.unroll, c.row_threads, c.column_threads, c.blocks, c.splits,
      (unsigned)c.buffer);
  return true;
}

static bool draw_gemm(const ft_workload *w, ft_rng *rng, ft_arena *arena, drawn *out) {
  ft_error error;
  ft_simt_gemm_choice c = {.block_m = power(rng, 8, 128),
                           .block_n = power(rng, 8, 128),
                           .block_k = power(rng, 4, 32),
                           .thread_m = power(rng, 1, 8),
                           .thread_n = power(rng, 1, 8),
                           .stages = 1 + (uint32_t)ft_rng_below(rng, 2),
                           .splits = 1 + (uint32_t)ft_rng_below(rng, 3),
                           .shares_sums = ft_rng_below(rng, 4) == 0};
  if (ft_simt_gemm_refusal(w, &c, arena)) return false;
  cr_assert_eq(ft_simt_gemm_build(w, &c, arena, &out->kir, &error), FT_OK, "%s",
               error.text);
  out->skeleton =
      ft_arena_printf(arena, "gemm %ux%ux%u thread %ux%u stages=%u splits=%u%s",
                      c.block_m, c.block_n, c.block_k, c.thread_m, c.thread_n, c.stages,
                      c.splits, c.shares_sums ? " shares sums" : "");
  return true;
}

static bool draw_skinny(const ft_workload *w, ft_rng *rng, ft_arena *arena, drawn *out) {
  ft_error error;
  ft_simt_skinny_choice c = {.threads = power(rng, 32, 512),
                             .term_threads = power(rng, 1, 256),
                             .unroll = power(rng, 1, 4),
                             .streams = ft_rng_below(rng, 2)};
  if (ft_simt_skinny_refusal(w, &c, arena)) return false;
  cr_assert_eq(ft_simt_skinny_build(w, &c, arena, &out->kir, &error), FT_OK, "%s",
               error.text);
  out->skeleton = ft_arena_printf(arena, "skinny threads=%u term_threads=%u unroll=%u",
                                  c.threads, c.term_threads, c.unroll);
  return true;
}

static bool draw_conv(const ft_workload *w, ft_rng *rng, ft_arena *arena, drawn *out) {
  ft_error error;
  ft_simt_conv_choice c = {.tile_channels = power(rng, 1, 64),
                           .tile_positions = power(rng, 8, 128),
                           .slab = power(rng, 4, 32),
                           .thread_channels = power(rng, 1, 8),
                           .thread_positions = power(rng, 1, 8),
                           .vector = power(rng, 1, 4)};
  if (ft_simt_conv_refusal(w, &c, arena)) return false;
  cr_assert_eq(ft_simt_conv_build(w, &c, arena, &out->kir, &error), FT_OK, "%s",
               error.text);
  out->skeleton = ft_arena_printf(arena, "conv %ux%ux%u thread %ux%u vector %u",
                                  c.tile_channels, c.tile_positions, c.slab,
                                  c.thread_channels, c.thread_positions, c.vector);
  return true;
}

static bool draw_window(const ft_workload *w, ft_rng *rng, ft_arena *arena, drawn *out) {
  ft_error error;
  ft_simt_window_choice c = {.threads = power(rng, 32, 256),
                             .tile_rows = power(rng, 1, 16),
                             .tile_columns = power(rng, 1, 32),
                             .tile_planes = power(rng, 1, 16)};
  if (ft_simt_window_refusal(w, &c, arena)) return false;
  cr_assert_eq(ft_simt_window_build(w, &c, arena, &out->kir, &error), FT_OK, "%s",
               error.text);
  out->skeleton = ft_arena_printf(arena, "window threads=%u %ux%u of %u planes",
                                  c.threads, c.tile_rows, c.tile_columns, c.tile_planes);
  return true;
}

static bool draw_loop(const ft_workload *w, ft_rng *rng, ft_arena *arena, drawn *out) {
  ft_error error;
  ft_simt_loop_choice c = {.threads = power(rng, 32, 512),
                           .tile = 1 + (uint32_t)ft_rng_below(rng, 16)};
  if (ft_simt_loop_refusal(w, &c, arena)) return false;
  cr_assert_eq(ft_simt_loop_build(w, &c, arena, &out->kir, &error), FT_OK, "%s",
               error.text);
  out->skeleton = ft_arena_printf(arena, "loop threads=%u tile=%u", c.threads, c.tile);
  return true;
}

// Rarely taken by a random group, so it gets several chances.
static bool draw_turn(const ft_workload *w, ft_rng *rng, ft_arena *arena, drawn *out) {
  ft_group_ir *ir;
  const char *reason, *wrong = "none";
  ft_error error;
  ft_simt_turn_choice c;
  cr_assert_eq(ft_group_ir_make(w, arena, &ir, &reason, &error), FT_OK, "%s", error.text);
  if (!ir || ir->refusal) return false;
  for (int i = 0; i < TRIES && wrong; i++) {
    c = (ft_simt_turn_choice){.threads = power(rng, 32, 512),
                              .tile_near = power(rng, 8, 128),
                              .tile_far = power(rng, 8, 128),
                              .vector_near = power(rng, 1, 8),
                              .vector_far = power(rng, 1, 8),
                              .swizzles = ft_rng_below(rng, 2),
                              .streams = ft_rng_below(rng, 2)};
    wrong = ft_simt_turn_refusal(ir, &c, arena);
  }
  if (wrong) return false;
  cr_assert_eq(ft_simt_turn_build(ir, &c, arena, &out->kir, &error), FT_OK, "%s",
               error.text);
  out->skeleton = ft_arena_printf(
      arena, "turn threads=%u tile=%ux%u vector=%ux%u swizzles=%d", c.threads,
      c.tile_near, c.tile_far, c.vector_near, c.vector_far, c.swizzles);
  return true;
}

typedef bool draw_function(const ft_workload *w, ft_rng *rng, ft_arena *arena,
                           drawn *out);
static draw_function *const drawers[] = {draw_nest, draw_gemm,   draw_skinny, draw_loop,
                                         draw_conv, draw_window, draw_turn};
enum { DRAWERS = sizeof drawers / sizeof *drawers };

// Some skeleton and knobs that take the group; false: none of those tried.
static bool draw(const ft_workload *w, uint64_t seed, ft_arena *arena, drawn *out,
                 uint32_t *out_drawer) {
  ft_rng rng = ft_rng_seed(seed);
  for (int i = 0; i < TRIES; i++) {
    *out_drawer = (uint32_t)ft_rng_below(&rng, DRAWERS);
    if (drawers[*out_drawer](w, &rng, arena, out)) return true;
  }
  return false;
}

typedef struct counts {
  uint32_t kernels, untaken, by_drawer[DRAWERS];
} counts;

static void print_cuda(const simmed *c, ft_kir *kir) {
  const char *text;
  ft_simt_launch launch;
  ft_error error;
  cr_assert_eq(ft_print_cuda(kir, "kernel", 0, &text, &launch, &error), FT_OK, "%s: %s",
               c->label, error.text);
  cr_assert_eq(launch.grid, c->launch.grid);
}

static void run_batch(bench *b, uint64_t first, counts *n) {
  simmed c[BATCH];
  uint32_t count = 0;
  for (uint64_t seed = first; seed < first + BATCH; seed++) {
    trial *t = FT_NEW(b->arena, trial);
    drawn d;
    uint32_t drawer;
    // Every fourth one of short floats.
    const char *wrong = trial_make(b, seed % 4 == 3 ? RANDOM_SHORT + seed : seed, t);
    cr_assert_null(wrong, "case %llu: %s", (unsigned long long)seed, wrong);
    if (!draw(&t->workload, seed, b->arena, &d, &drawer)) {
      n->untaken++;
      continue;
    }
    n->by_drawer[drawer]++;
    c[count] = (simmed){.workload = &t->workload,
                        .input = t->input,
                        .reference = t->reference,
                        .label = ft_arena_printf(
                            b->arena, "case %llu, %s:\n%s", (unsigned long long)t->seed,
                            d.skeleton, group_text(&t->workload.group, b->arena))};
    simmed_print(&c[count], d.kir, count, b->arena);
    print_cuda(&c[count], d.kir);
    count++;
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
  for (uint64_t at = 0; at < cases; at += BATCH) {
    bench b;
    ft_arena *arena = ft_arena_create(ft_allocator_system());
    const char *folder = cache_make(arena);
    bench_open(first, folder, 1, arena, &b);
    run_batch(&b, first + at, &n);
    bench_close(&b);
    cache_remove(folder, arena);
    ft_arena_destroy(arena);
  }
  fprintf(stderr,
          "%u kernels (%u nests, %u products, %u skinny, %u loops, %u convolutions, %u "
          "windows, %u turns), %u groups untaken\n",
          n.kernels, n.by_drawer[0], n.by_drawer[1], n.by_drawer[2], n.by_drawer[3],
          n.by_drawer[4], n.by_drawer[5], n.by_drawer[6], n.untaken);
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
