// workbench - kernels compiled at test time, programs made by hand, and a runner.
#ifndef FT_TESTS_MEASURE_WORKBENCH_H
#define FT_TESTS_MEASURE_WORKBENCH_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/hash.h"
#include "measure/runner.h"

#define KERNEL_SOURCE FT_SOURCE_DIR "/tests/measure/kernels.c.txt"

typedef struct workbench {
  ft_arena *arena;
  ft_cpu_runner *runner;
  const char *object;  // the kernels' shared object
  ft_error error;
} workbench;

static inline char *bench_read(const char *path, size_t *size) {
  FILE *file = fopen(path, "re");
  cr_assert(file, "%s is missing", path);
  char *text = calloc(1, 1 << 16);
  *size = fread(text, 1, (1 << 16) - 1, file);
  fclose(file);
  return text;
}

// The kernels' object, named by the hash of their source; built once, by whoever comes
// first (made under another name, then renamed). Without sanitizers in any build.
static inline const char *bench_object(ft_arena *arena) {
  size_t size;
  char *text = bench_read(KERNEL_SOURCE, &size);
  char hex[FT_HASH_HEX + 1];
  ft_hash hash = ft_hash_bytes(text, size);
  free(text);
  ft_hash_hex(&hash, hex);
  const char *path =
      ft_arena_printf(arena, "%s/tests/kernels-%.16s.so", FT_BINARY_DIR, hex);
  if (access(path, R_OK) == 0) return path;
  const char *made = ft_arena_printf(arena, "%s.%d", path, (int)getpid());
  const char *command =
      ft_arena_printf(arena, "gcc -O1 -fPIC -shared -w -x c %s -o %s && mv %s %s",
                      KERNEL_SOURCE, made, made, path);
  cr_assert_eq(system(command), 0, "%s", command);
  return path;
}

static const char *const bench_worker[] = {FT_BINARY_DIR "/tests/test_worker", NULL};

// A small flush and few samples: these tests are about ends, not times.
static inline workbench bench_open_with(ft_runner_options options) {
  workbench w = {.arena = ft_arena_create(ft_allocator_system())};
  if (!options.worker_argv) options.worker_argv = bench_worker;
  if (!options.flush_bytes) options.flush_bytes = 1 << 20;
  if (!options.max_samples) options.max_samples = 12;
  cr_assert_eq(
      ft_cpu_runner_create(&options, NULL, ft_allocator_system(), &w.runner, &w.error),
      FT_OK, "%s", w.error.text);
  w.object = bench_object(w.arena);
  return w;
}

static inline workbench bench_open(void) {
  return bench_open_with((ft_runner_options){0});
}

static inline void bench_close(workbench *w) {
  ft_cpu_runner_destroy(w->runner);
  ft_arena_destroy(w->arena);
}

static inline ft_module *bench_module(workbench *w, const char *entry, uint32_t grid,
                                      uint32_t threads, int64_t s0, int64_t s1,
                                      int64_t s2, int64_t s3) {
  ft_module *m = FT_NEW(w->arena, ft_module);
  int64_t *s = FT_NEW_ARRAY(w->arena, int64_t, 4);
  s[0] = s0, s[1] = s1, s[2] = s2, s[3] = s3;
  *m = (ft_module){.outcome = FT_OUTCOME_OK,
                   .entry = entry,
                   .path = w->object,
                   .grid = grid,
                   .threads = threads,
                   .scalar_count = 4,
                   .scalar = s};
  return m;
}

enum { BENCH_ELEMENTS = 1001 };

static inline ft_program_buffer bench_buffer(ft_buffer_kind kind, int64_t elements,
                                             const void *data, uint64_t key) {
  return (ft_program_buffer){.kind = kind,
                             .dtype = FT_F32,
                             .shape = {1, {elements}},
                             .bytes = (uint64_t)elements * 4,
                             .data = data,
                             .key = key,
                             .offset = UINT64_MAX};
}

// y = ENTRY(x) with x = 0, 1, 2, ... of BENCH_ELEMENTS elements.
static inline ft_program *bench_program_of(workbench *w, ft_module *m, int64_t elements) {
  float *x = FT_NEW_ARRAY(w->arena, float, (size_t)elements);
  for (int64_t i = 0; i < elements; i++) x[i] = (float)i;
  ft_program_buffer *b = FT_NEW_ARRAY(w->arena, ft_program_buffer, 2);
  b[0] = bench_buffer(FT_BUFFER_INPUT, elements, x, 1000 + (uint64_t)elements);
  b[1] = bench_buffer(FT_BUFFER_OUTPUT, elements, NULL, 0);
  uint32_t *argument = FT_NEW_ARRAY(w->arena, uint32_t, 2);
  argument[1] = 1;
  ft_program_step *step = FT_NEW(w->arena, ft_program_step);
  *step = (ft_program_step){m, 2, argument};
  ft_program *p = FT_NEW(w->arena, ft_program);
  *p = (ft_program){
      .name = m->entry, .buffer_count = 2, .step_count = 1, .buffer = b, .step = step};
  return p;
}

static inline ft_program *bench_program(workbench *w, const char *entry, int64_t s2,
                                        int64_t s3) {
  uint32_t grid = (BENCH_ELEMENTS + 63) / 64;
  return bench_program_of(w, bench_module(w, entry, grid, 2, 3, BENCH_ELEMENTS, s2, s3),
                          BENCH_ELEMENTS);
}

// The check for y = 2 x + 3.
static inline ft_status bench_compare(void *ctx, const void *const *output,
                                      ft_comparison *out, char worst[256],
                                      ft_error *error) {
  (void)error;
  int64_t elements = *(const int64_t *)ctx;
  const float *y = output[0];
  *out = (ft_comparison){.worst_index = -1};
  for (int64_t i = 0; i < elements; i++) {
    out->compared++;
    float expected = 2 * (float)i + 3;
    if (y[i] == expected) continue;
    out->max_ratio = 1e9;
    out->worst_index = i;
    snprintf(worst, 256, "output 0 at %lld: got %g, expected %g", (long long)i,
             (double)y[i], (double)expected);
    break;
  }
  return FT_OK;
}

static int64_t bench_elements = BENCH_ELEMENTS;
static const ft_output_check bench_check = {&bench_elements, bench_compare};

static inline ft_trial bench_trial(workbench *w, const ft_program *p) {
  ft_trial t;
  ft_status status =
      ft_cpu_runner_trial(w->runner, p, &bench_check, 0, false, w->arena, &t, &w->error);
  cr_assert_eq(status, FT_OK, "%s", w->error.text);
  return t;
}

// The next program on the same runner is fine, whatever the one before did.
static inline void bench_still_works(workbench *w) {
  ft_trial t = bench_trial(w, bench_program(w, "scale", 0, 0));
  cr_assert_eq(t.outcome, FT_OUTCOME_OK, "%s: %s%s", ft_outcome_text(t.outcome), t.error,
               t.worst);
}

#endif
