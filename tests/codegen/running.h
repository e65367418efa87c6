// Runs built kernels in this process (tests/support/random/launch.h), on a target made
// for tests.
#ifndef FT_TESTS_CODEGEN_RUNNING_H
#define FT_TESTS_CODEGEN_RUNNING_H

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "core/rng.h"
#include "graph/interpreter.h"
#include "tests/support/random/launch.h"

typedef int32_t kernel_entry(void *const *buffers, const int64_t *scalars, uint32_t block,
                             uint32_t thread, void *scratch);

// Runs |module| for |group|; out[i] gets the bytes of output i, in |arena|. Returns what
// the entry returned.
static inline int32_t run_module(const ft_module *module, const ft_group *group,
                                 const ft_tensor *input, uint64_t seed, ft_arena *arena,
                                 ft_tensor *out) {
  int32_t code;
  const char *wrong = launch(module, group, input, seed, arena, out, &code);
  cr_assert(!wrong, "%s", wrong);
  return code;
}

// A target with this machine's compilers, wide vectors, two threads.
static inline ft_target test_target(ft_arena *arena) {
  ft_target target = {.name = "cpu",
                      .kind = "cpu",
                      .device = "test",
                      .isa = "",
                      .units = 2,
                      .threads = 2,
                      .vector_bytes = 64,
                      .l2_bytes = 1 << 14,
                      .driver = "",
                      .toolkit = "",
                      .libraries = "",
                      .numerics = "",
                      .power_class = ""};
  ft_error error;
  cr_assert_eq(ft_compilers_find(arena, target.compiler, &target.compiler_count, &error),
               FT_OK, "%s", error.text);
  cr_assert_gt(target.compiler_count, 0);
  return target;
}

// A folder that is removed with its files by cache_remove.
static inline const char *cache_make(ft_arena *arena) {
  char *path = ft_arena_strdup(arena, P_tmpdir "/fusetune-test-XXXXXX");
  cr_assert(mkdtemp(path));
  return path;
}

static inline void cache_remove(const char *path, ft_arena *arena) {
  char *command = ft_arena_printf(arena, "rm -rf '%s'", path);
  cr_assert_eq(system(command), 0);
}

#endif
