#include "measure/noise.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "graph/trial.h"

enum { PROBE_STEPS = 4000, PROBE_RUNS = 3, STAT_BYTES = 1 << 16, LOST_SHARE = 50 };
static const uint64_t window_ns = 200000000, least_foreign_ns = 30000000;

typedef struct thread_note {
  _Alignas(64) long switches;  // involuntary, so far
  uint64_t wall_ns, cpu_ns;
  bool was_preempted;
} thread_note;

struct ft_noise {
  ft_pool *pool;
  thread_note *note;  // [threads]
  bool *is_ours;      // [cpus]
  uint32_t cpus;
  int stat_fd;  // -1: no /proc/stat, then nothing is ever foreign
  char *stat_text;
  uint64_t probe_best_ns;
  uint64_t opened_ns, busy_ns, own_ns;
  uint32_t first;  // sample of the window
};

static ft_status mark_cpus(ft_noise *noise, ft_arena *arena, ft_error *error) {
  for (uint32_t t = 0; t < ft_pool_threads(noise->pool); t++)
    if (ft_pool_cpu(noise->pool, t) >= (int)noise->cpus)
      noise->cpus = (uint32_t)ft_pool_cpu(noise->pool, t) + 1;
  noise->is_ours = FT_NEW_ARRAY(arena, bool, noise->cpus);
  FT_OOM_IF(!noise->is_ours, error);
  for (uint32_t t = 0; t < ft_pool_threads(noise->pool); t++)
    if (ft_pool_cpu(noise->pool, t) >= 0)
      noise->is_ours[ft_pool_cpu(noise->pool, t)] = true;
  return FT_OK;
}

ft_status ft_noise_create(ft_pool *pool, ft_arena *arena, ft_noise **out,
                          ft_error *error) {
  ft_noise *noise = FT_NEW(arena, ft_noise);
  FT_OOM_IF(!noise, error);
  noise->pool = pool;
  noise->note = ft_arena_alloc_aligned(arena, ft_pool_threads(pool) * sizeof(thread_note),
                                       _Alignof(thread_note));
  noise->stat_text = ft_arena_alloc(arena, STAT_BYTES);
  FT_OOM_IF(!noise->note || !noise->stat_text, error);
  FT_TRY(mark_cpus(noise, arena, error));
  noise->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
  *out = noise;
  return FT_OK;
}

void ft_noise_destroy(ft_noise *noise) {
  if (noise && noise->stat_fd >= 0) close(noise->stat_fd);
}

static long involuntary_switches(void) {
  struct rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

static uint64_t thread_cpu_ns(void) {
  struct timespec t;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return 0;
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void ft_noise_before(ft_noise *noise, uint32_t thread) {
  thread_note *n = &noise->note[thread];
  *n = (thread_note){.switches = involuntary_switches(), .cpu_ns = thread_cpu_ns()};
  n->wall_ns = ft_clock_ns();
}

void ft_noise_after(ft_noise *noise, uint32_t thread) {
  thread_note *n = &noise->note[thread];
  uint64_t wall_ns = ft_clock_ns() - n->wall_ns, cpu_ns = thread_cpu_ns() - n->cpu_ns;
  uint64_t lost_ns = wall_ns > cpu_ns ? wall_ns - cpu_ns : 0;
  n->was_preempted =
      involuntary_switches() != n->switches && lost_ns > wall_ns / LOST_SHARE;
}

bool ft_noise_was_preempted(const ft_noise *noise, uint32_t threads) {
  for (uint32_t t = 0; t < threads; t++)
    if (noise->note[t].was_preempted) return true;
  return false;
}

// A dependent chain: as fast as the clock, whatever the caches hold.
static uint64_t probe_ns(void) {
  uint64_t start = ft_clock_ns();
  uint64_t x = start | 1;
  for (int i = 0; i < PROBE_STEPS; i++) {
    x = x * 0x9e3779b97f4a7c15ull + 1;
    __asm__ volatile("" : "+r"(x));
  }
  return ft_clock_ns() - start;
}

bool ft_noise_is_drifting(ft_noise *noise) {
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < PROBE_RUNS; i++) {
    uint64_t ns = probe_ns();
    if (ns < best) best = ns;
  }
  if (noise->probe_best_ns == 0 || best < noise->probe_best_ns)
    noise->probe_best_ns = best;
  return best > noise->probe_best_ns + noise->probe_best_ns / 4;
}

// "cpu3 user nice system idle iowait irq softirq steal ...": all but idle and iowait.
static uint64_t busy_ticks(const char *numbers) {
  uint64_t busy = 0;
  char *cursor;
  for (int field = 0; field < 8; field++, numbers = cursor) {
    uint64_t value = strtoull(numbers, &cursor, 10);
    if (cursor == numbers) break;
    if (field != 3 && field != 4) busy += value;
  }
  return busy;
}

static uint64_t read_busy_ns(ft_noise *noise) {
  ssize_t got = noise->stat_fd < 0
                    ? -1
                    : pread(noise->stat_fd, noise->stat_text, STAT_BYTES - 1, 0);
  if (got <= 0) return 0;
  noise->stat_text[got] = '\0';
  uint64_t ticks = 0;
  for (char *line = strstr(noise->stat_text, "\ncpu"); line;
       line = strstr(line + 1, "\ncpu")) {
    char *numbers;
    uint64_t cpu = strtoull(line + 4, &numbers, 10);
    if (cpu < noise->cpus && noise->is_ours[cpu]) ticks += busy_ticks(numbers);
  }
  return ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

static uint64_t timeval_ns(struct timeval t) {
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

static uint64_t read_own_ns(void) {
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
}

void ft_noise_start(ft_noise *noise) {
  noise->probe_best_ns = 0;
  ft_noise_open_window(noise, 0);
}

void ft_noise_open_window(ft_noise *noise, uint32_t index) {
  noise->opened_ns = ft_clock_ns();
  noise->busy_ns = read_busy_ns(noise);
  noise->own_ns = read_own_ns();
  noise->first = index;
}

void ft_noise_close_window(ft_noise *noise, uint32_t index, uint8_t *flags) {
  uint64_t limit = (ft_clock_ns() - noise->opened_ns) / 4;
  if (limit < least_foreign_ns) limit = least_foreign_ns;
  uint64_t busy = read_busy_ns(noise) - noise->busy_ns;
  uint64_t own = read_own_ns() - noise->own_ns;
  if (busy <= own || busy - own <= limit) return;
  for (uint32_t i = noise->first; i < index; i++) flags[i] |= FT_SAMPLE_FOREIGN;
}

void ft_noise_pass(ft_noise *noise, uint32_t index, uint8_t *flags) {
  if (ft_clock_ns() - noise->opened_ns < window_ns) return;
  ft_noise_close_window(noise, index + 1, flags);
  ft_noise_open_window(noise, index + 1);
}
