// What is measured, in which order, and that the rows make sense; how fast is the
// machine's business.
#include "graph/ceiling.h"

#include "tests/measure/workbench.h"

static workbench open_small(void) {
  return bench_open_with((ft_runner_options){.flush_bytes = 1 << 20});
}

static uint32_t measure(workbench *w, ft_ceiling out[FT_CEILINGS_MOST]) {
  uint32_t count;
  cr_assert_eq(ft_cpu_runner_ceilings(w->runner, 1, w->arena, out, &count, &w->error),
               FT_OK, "%s", w->error.text);
  return count;
}

Test(measure_ceilings, rows_are_ordered_sampled_and_positive, .timeout = 120) {
  workbench w = open_small();
  ft_ceiling row[FT_CEILINGS_MOST];
  uint32_t count = measure(&w, row);
  cr_assert_gt(count, 0);
  for (uint32_t i = 0; i < count; i++) {
    const ft_ceiling *r = &row[i];
    cr_expect_geq(r->samples, 3, "three rounds whatever the limit");
    cr_expect_gt(r->median, 0);
    cr_expect(!ft_ceiling_is_better(r->kind, r->median, r->best),
              "%s: best %g, median %g", ft_ceiling_name(r->kind), r->best, r->median);
    cr_expect_gt(r->measured_at, 0);
    cr_expect_not(r->is_raised);
    if (i == 0) continue;
    cr_expect(row[i - 1].kind < r->kind ||
                  (row[i - 1].kind == r->kind && row[i - 1].bytes < r->bytes),
              "row %u, %s", i, ft_ceiling_name(r->kind));
  }
  bench_still_works(&w);
  bench_close(&w);
}

Test(measure_ceilings, each_way_to_move_has_each_size_up_to_four_flushes,
     .timeout = 120) {
  workbench w = open_small();
  ft_ceiling row[FT_CEILINGS_MOST];
  uint32_t count = measure(&w, row), sized[FT_CEILING_KINDS] = {0};
  for (uint32_t i = 0; i < count; i++) {
    cr_expect_leq(row[i].bytes, 4 << 20);
    sized[row[i].kind] += row[i].bytes == 1 << 20 || row[i].bytes == 4 << 20;
  }
  for (int kind = FT_CEILING_READ; kind <= FT_CEILING_TRIAD_STREAMING; kind++)
    cr_expect_eq(sized[kind], 2, "%s", ft_ceiling_name((ft_ceiling_kind)kind));
  // The runner was told of no target: no cache is known to measure in.
  for (int kind = FT_CEILING_READ_L2; kind <= FT_CEILING_TRIAD_LAST; kind++)
    cr_expect_eq(sized[kind], 0);
  cr_expect_eq(row[count - 1].kind, FT_CEILING_LAUNCH_ALL);
  cr_expect_eq(row[count - 2].kind, FT_CEILING_LAUNCH);
  bench_close(&w);
}

Test(measure_ceilings, known_caches_are_measured_in, .timeout = 120) {
  ft_target target = {.name = "cpu",
                      .l2_bytes = 256 << 10,
                      .cache_bytes = 4 << 20,
                      .threads = 1,
                      .memory_bytes = 1ull << 30};
  ft_runner_options options = {.worker_argv = bench_worker, .flush_bytes = 1 << 20};
  ft_cpu_runner *runner;
  ft_error error;
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  cr_assert_eq(
      ft_cpu_runner_create(&options, &target, ft_allocator_system(), &runner, &error),
      FT_OK);
  ft_ceiling row[FT_CEILINGS_MOST];
  uint32_t count, seen = 0;
  cr_assert_eq(ft_cpu_runner_ceilings(runner, 1, arena, row, &count, &error), FT_OK, "%s",
               error.text);
  for (uint32_t i = 0; i < count; i++) {
    if (row[i].kind == FT_CEILING_READ_L2) cr_expect_eq(row[i].bytes, 128 << 10);
    if (row[i].kind == FT_CEILING_READ_LAST) cr_expect_eq(row[i].bytes, 2 << 20);
    seen += row[i].kind >= FT_CEILING_READ_L2 && row[i].kind <= FT_CEILING_TRIAD_LAST;
  }
  cr_expect_eq(seen, 6);
  ft_cpu_runner_destroy(runner);
  ft_arena_destroy(arena);
}

Test(measure_ceilings, a_stopped_runner_measures_nothing) {
  volatile int stop = 1;
  workbench w = bench_open_with((ft_runner_options){.stop = &stop});
  ft_ceiling row[FT_CEILINGS_MOST];
  uint32_t count = 7;
  cr_assert_eq(ft_cpu_runner_ceilings(w.runner, 1, w.arena, row, &count, &w.error),
               FT_INTERRUPTED);
  cr_expect_eq(count, 0);
  bench_close(&w);
}
