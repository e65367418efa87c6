#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "graph/trial.h"
#include "measure/noise.h"

static ft_arena *arena;
static ft_pool *pool;
static ft_noise *noise;
static pid_t hog;

// A pool of one, and a process that wants the same cpu all the time.
static void set_up(void) {
  ft_error error;
  arena = ft_arena_create(ft_allocator_system());
  cr_assert_eq(ft_pool_create(ft_allocator_system(), 1, &pool, &error), FT_OK);
  cr_assert_eq(ft_noise_create(pool, arena, &noise, &error), FT_OK);
  hog = fork();  // inherits our one cpu
  volatile int never = 0;
  while (hog == 0 && !never) continue;
}
static void tear_down(void) {
  kill(hog, SIGKILL);
  waitpid(hog, NULL, 0);
  ft_noise_destroy(noise);
  ft_pool_destroy(pool);
  ft_arena_destroy(arena);
}
TestSuite(measure_noise, .init = set_up, .fini = tear_down);

static void busy(uint64_t ns) {
  uint64_t end = ft_clock_ns() + ns;
  while (ft_clock_ns() < end) continue;
}

Test(measure_noise, a_thread_that_lost_its_cpu_is_seen) {
  bool is_seen = false;
  for (int i = 0; i < 100 && !is_seen; i++) {
    ft_noise_before(noise, 0);
    busy(50000000);
    ft_noise_after(noise, 0);
    is_seen = ft_noise_was_preempted(noise, 1);
  }
  cr_expect(is_seen);
  ft_noise_before(noise, 0);
  cr_expect_not(ft_noise_was_preempted(noise, 0), "no thread took part");
}

Test(measure_noise, a_window_with_another_busy_process_is_foreign) {
  uint8_t flags[4] = {0, 0, 0, FT_SAMPLE_WARM_UP};
  ft_noise_start(noise);
  ft_noise_open_window(noise, 1);
  busy(400000000);
  ft_noise_close_window(noise, 3, flags);
  cr_expect_eq(flags[0], 0, "before the window");
  cr_expect(flags[1] == FT_SAMPLE_FOREIGN && flags[2] == FT_SAMPLE_FOREIGN);
  cr_expect_eq(flags[3], FT_SAMPLE_WARM_UP, "after it");
}

Test(measure_noise, the_first_probe_of_a_series_has_nothing_to_drift_from) {
  for (int i = 0; i < 5; i++) {
    ft_noise_start(noise);
    cr_expect_not(ft_noise_is_drifting(noise));
  }
}
