#include <criterion/criterion.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "measure/pool.h"

static ft_pool *make(uint32_t threads) {
  ft_pool *pool;
  ft_error error;
  cr_assert_eq(ft_pool_create(ft_allocator_system(), threads, &pool, &error), FT_OK, "%s",
               error.text);
  return pool;
}

enum { MOST = 5000 };
static atomic_int ran[MOST];
static atomic_uint threads_seen;

static int32_t mark(void *const *buffers, const int64_t *scalars, uint32_t block,
                    uint32_t thread, void *scratch) {
  (void)buffers, (void)scalars;
  atomic_fetch_add(&ran[block], 1);
  atomic_fetch_or(&threads_seen, 1u << thread);
  if (scratch) ++*(int *)scratch;
  return 0;
}

Test(measure_pool, runs_every_block_once_for_any_grid_and_thread_count) {
  for (uint32_t pool_threads = 1; pool_threads <= 5; pool_threads++) {
    ft_pool *pool = make(pool_threads);
    static const uint32_t grids[] = {1, 2, 3, 7, 64, 65, 127, 1000, 4999};
    for (size_t g = 0; g < sizeof grids / sizeof *grids; g++)
      for (uint32_t threads = 1; threads <= 6; threads++) {
        memset((void *)ran, 0, sizeof ran);
        ft_launch l = {mark, NULL, NULL, NULL, grids[g], threads};
        cr_assert_eq(ft_pool_launch(pool, &l), 0);
        for (uint32_t b = 0; b < MOST; b++)
          cr_assert_eq(ran[b], b < grids[g], "pool %u, threads %u, grid %u, block %u",
                       pool_threads, threads, grids[g], b);
      }
    ft_pool_destroy(pool);
  }
}

Test(measure_pool, one_block_or_one_thread_runs_in_the_caller) {
  ft_pool *pool = make(3);
  ft_launch one_block = {mark, NULL, NULL, NULL, 1, 3};
  ft_launch one_thread = {mark, NULL, NULL, NULL, 100, 1};
  for (int i = 0; i < 50; i++) {
    ft_pool_launch(pool, &one_block);
    ft_pool_launch(pool, &one_thread);
  }
  cr_expect_eq(threads_seen, 1);
  ft_pool_destroy(pool);
}

Test(measure_pool, each_thread_has_its_own_scratch) {
  ft_pool *pool = make(2);
  int used[2] = {0, 0};
  void *scratch[2] = {&used[0], &used[1]};
  ft_launch l = {mark, NULL, NULL, scratch, 4000, 2};
  for (int i = 0; i < 20; i++) ft_pool_launch(pool, &l);
  cr_expect_eq(used[0] + used[1], 20 * 4000);
  ft_pool_destroy(pool);
}

static int32_t fail_at_ten(void *const *buffers, const int64_t *scalars, uint32_t block,
                           uint32_t thread, void *scratch) {
  (void)buffers, (void)scalars, (void)thread, (void)scratch;
  return block == 10 ? -3 : 0;
}

Test(measure_pool, gives_the_result_that_is_not_zero_and_works_on) {
  ft_pool *pool = make(2);
  for (uint32_t threads = 1; threads <= 2; threads++) {
    ft_launch bad = {fail_at_ten, NULL, NULL, NULL, 1000, threads};
    ft_launch good = {mark, NULL, NULL, NULL, 1000, threads};
    cr_expect_eq(ft_pool_launch(pool, &bad), -3);
    cr_expect_eq(ft_pool_launch(pool, &good), 0);
  }
  ft_pool_destroy(pool);
}

static int calls[8];
static void count_call(void *ctx, uint32_t thread) {
  (void)ctx;
  calls[thread]++;
}

Test(measure_pool, each_calls_every_thread_once_also_after_it_slept) {
  ft_pool *pool = make(3);
  for (int i = 0; i < 30; i++) {
    if (i % 3 == 0) usleep(2000);
    ft_pool_each(pool, count_call, NULL);
  }
  for (uint32_t t = 0; t < 3; t++) cr_expect_eq(calls[t], 30, "thread %u", t);
  ft_pool_destroy(pool);
}

Test(measure_pool, works_on_after_a_rest) {
  ft_pool *pool = make(3);
  memset((void *)ran, 0, sizeof ran);
  ft_launch l = {mark, NULL, NULL, NULL, 1000, 3};
  for (int i = 0; i < 30; i++) {
    ft_pool_rest(pool);
    if (i % 3 == 0) usleep(2000);
    cr_assert_eq(ft_pool_launch(pool, &l), 0);
    ft_pool_rest(pool);
    ft_pool_each(pool, count_call, NULL);
  }
  for (uint32_t t = 0; t < 3; t++) cr_expect_eq(calls[t], 30, "thread %u", t);
  for (uint32_t b = 0; b < 1000; b++) cr_expect_eq(ran[b], 30);
  ft_pool_destroy(pool);
}

static int count_cpus(void) {
  cpu_set_t set;
  cr_assert_eq(sched_getaffinity(0, sizeof set, &set), 0);
  return CPU_COUNT(&set);
}

Test(measure_pool, the_owner_is_pinned_and_may_be_let_loose) {
  int all = count_cpus();
  ft_pool *pool = make(0);
  cr_expect_eq(count_cpus(), 1);
  ft_pool_unpin(pool);
  cr_expect_eq(count_cpus(), all);
  ft_pool_pin(pool);
  cr_expect_eq(count_cpus(), 1);
  cr_expect_eq(sched_getcpu(), ft_pool_cpu(pool, 0));
  ft_pool_destroy(pool);
}

static int where[64];
static void note_cpu(void *ctx, uint32_t thread) {
  (void)ctx;
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  where[thread] = CPU_COUNT(&set) == 1 ? sched_getcpu() : -1;
}

Test(measure_pool, by_default_has_one_pinned_thread_per_allowed_cpu) {
  cpu_set_t set;
  cr_assert_eq(sched_getaffinity(0, sizeof set, &set), 0);
  uint32_t cpus = (uint32_t)CPU_COUNT(&set);
  if (cpus > 64) cr_skip_test("more cpus than this test counts");
  ft_pool *pool = make(0);
  cr_assert_eq(ft_pool_threads(pool), cpus);
  ft_pool_each(pool, note_cpu, NULL);
  for (uint32_t t = 0; t < cpus; t++) {
    cr_expect_eq(where[t], ft_pool_cpu(pool, t), "thread %u", t);
    cr_expect(CPU_ISSET((size_t)where[t], &set));
    for (uint32_t u = 0; u < t; u++) cr_expect_neq(where[t], where[u]);
  }
  ft_pool_destroy(pool);
}

Test(measure_pool, is_clean_under_the_thread_sanitizer) {
  char program[256], command[1024];
  snprintf(program, sizeof program, "%s/tests/tsan_pool.%d", FT_BINARY_DIR,
           (int)getpid());
  snprintf(command, sizeof command,
           "clang -fsanitize=thread -g -O1 -std=c11 -D_GNU_SOURCE -I%s "
           "%s/tests/measure/tsan_pool.c %s/measure/pool.c %s/core/allocator.c "
           "%s/core/status.c %s/core/clock.c -o %s -pthread 2>/dev/null",
           FT_SOURCE_DIR, FT_SOURCE_DIR, FT_SOURCE_DIR, FT_SOURCE_DIR, FT_SOURCE_DIR,
           FT_SOURCE_DIR, program);
  if (system(command) != 0) cr_skip_test("no clang with ThreadSanitizer");
  // Its shadow memory needs the classic layout of the address space.
  snprintf(command, sizeof command, "setarch -R %s >%s.log 2>&1", program, program);
  int code = system(command);
  if (code != 0) {
    snprintf(command, sizeof command, "cat %s.log >&2", program);
    (void)!system(command);
  }
  cr_expect_eq(code, 0);
  unlink(program);
  strcat(program, ".log");
  unlink(program);
}
