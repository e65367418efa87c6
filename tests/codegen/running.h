// Runs built kernels in this process: every block once, in a shuffled order, over buffers
// that end at a guard page, with read-only inputs and poisoned outputs.
#ifndef FT_TESTS_CODEGEN_RUNNING_H
#define FT_TESTS_CODEGEN_RUNNING_H

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "core/rng.h"
#include "graph/interpreter.h"

typedef int32_t kernel_entry(void *const *buffers, const int64_t *scalars, uint32_t block,
                             uint32_t thread, void *scratch);

enum { POISON = 0xA5, PAGE = 4096 };

typedef struct guarded {
  uint8_t *map, *data;
  size_t map_bytes, data_bytes;
} guarded;

// |bytes| rounded up to 64 end where an unmapped page begins; another lies before.
static inline guarded guarded_make(size_t bytes) {
  size_t rounded = (bytes + 63) / 64 * 64, pages = (rounded + PAGE - 1) / PAGE + 2;
  guarded g = {.map_bytes = pages * PAGE, .data_bytes = bytes};
  g.map =
      mmap(NULL, g.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  cr_assert(g.map != MAP_FAILED);
  memset(g.map, POISON, g.map_bytes);
  cr_assert_eq(mprotect(g.map, PAGE, PROT_NONE), 0);
  cr_assert_eq(mprotect(g.map + g.map_bytes - PAGE, PAGE, PROT_NONE), 0);
  g.data = g.map + g.map_bytes - PAGE - rounded;
  return g;
}

static inline void guarded_lock(guarded *g) {
  cr_assert_eq(mprotect(g->map + PAGE, g->map_bytes - 2 * PAGE, PROT_READ), 0);
}

// True when nothing around the data was written.
static inline bool guarded_is_clean(const guarded *g) {
  for (const uint8_t *p = g->map + PAGE; p < g->map + g->map_bytes - PAGE; p++) {
    if (p == g->data) p += g->data_bytes;
    if (p < g->map + g->map_bytes - PAGE && *p != POISON) return false;
  }
  return true;
}

// The bytes of all outputs, one after the other; poisons them for the next launch.
static inline void *outputs_copy(const ft_group *group, guarded *buffer,
                                 ft_arena *arena) {
  size_t bytes = 1;
  for (uint32_t i = 0; i < group->output_count; i++)
    bytes += buffer[group->input_count + i].data_bytes;
  uint8_t *copy = ft_arena_alloc(arena, bytes), *at = copy;
  cr_assert(copy);
  for (uint32_t i = 0; i < group->output_count; i++) {
    guarded *g = &buffer[group->input_count + i];
    if (!g->data_bytes) continue;
    memcpy(at, g->data, g->data_bytes);
    memset(g->data, POISON, g->data_bytes);
    at += g->data_bytes;
  }
  return copy;
}

static inline bool outputs_equal(const ft_group *group, const guarded *buffer,
                                 const uint8_t *copy) {
  for (uint32_t i = 0; i < group->output_count; i++) {
    const guarded *g = &buffer[group->input_count + i];
    if (g->data_bytes && memcmp(copy, g->data, g->data_bytes)) return false;
    copy += g->data_bytes;
  }
  return true;
}

// Every block once, in an order that |seed| gives.
static inline int32_t run_blocks(kernel_entry *entry, uint32_t grid, void **pointer,
                                 void *scratch, uint64_t seed, ft_arena *arena) {
  uint32_t *order = FT_NEW_ARRAY(arena, uint32_t, grid);
  ft_rng rng = ft_rng_seed(seed);
  for (uint32_t i = 0; i < grid; i++) {
    uint32_t at = (uint32_t)ft_rng_below(&rng, i + 1);
    order[i] = order[at];
    order[at] = i;
  }
  int32_t code = 0;
  for (uint32_t i = 0; i < grid && !code; i++)
    code = entry(pointer, NULL, order[i], 0, scratch);
  return code;
}

// Runs |module| for |group|; out[i] gets the bytes of output i, in |arena|. Returns what
// the entry returned.
static inline int32_t run_module(const ft_module *module, const ft_group *group,
                                 const ft_tensor *input, uint64_t seed, ft_arena *arena,
                                 ft_tensor *out) {
  void *library = dlopen(module->path, RTLD_NOW | RTLD_LOCAL);
  cr_assert(library, "%s", dlerror());
  kernel_entry *entry = NULL;
  void *symbol = dlsym(library, module->entry);
  cr_assert(symbol, "%s has no %s", module->path, module->entry);
  memcpy(&entry, &symbol, sizeof entry);
  uint32_t count = group->input_count + group->output_count;
  guarded *buffer = FT_NEW_ARRAY(arena, guarded, count);
  void **pointer = FT_NEW_ARRAY(arena, void *, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t o = i - group->input_count;
    const ft_value *v =
        i < group->input_count ? NULL : &group->graph->value[group->output[o]];
    size_t bytes = v ? (size_t)ft_shape_elements(&v->shape) * ft_dtype_bytes(v->dtype)
                     : input[i].bytes;
    buffer[i] = guarded_make(bytes);
    pointer[i] = buffer[i].data;
    if (v) continue;
    if (bytes) memcpy(buffer[i].data, input[i].data, bytes);
    guarded_lock(&buffer[i]);
  }
  guarded scratch = guarded_make(module->scratch_bytes);
  guarded workspace = guarded_make(module->workspace_bytes);
  if (module->workspace_bytes) memset(workspace.data, 0, module->workspace_bytes);
  pointer[count] = workspace.data;
  int32_t code = 0;
  // A workspace must be left as the next launch needs it, which gives the same bytes.
  for (uint64_t launch = 0; launch < (module->workspace_bytes ? 3 : 1) && !code;
       launch++) {
    void *before = launch ? outputs_copy(group, buffer, arena) : NULL;
    code = run_blocks(entry, module->grid, pointer, scratch.data, seed + launch, arena);
    if (before)
      cr_assert(outputs_equal(group, buffer, before), "launch %d differs", (int)launch);
  }
  for (uint32_t i = 0; i < group->output_count; i++) {
    const guarded *g = &buffer[group->input_count + i];
    const ft_value *v = &group->graph->value[group->output[i]];
    cr_assert(guarded_is_clean(g), "wrote around output %u", i);
    out[i] = (ft_tensor){v->dtype, v->shape,
                         ft_arena_memdup(arena, g->data, g->data_bytes), g->data_bytes};
  }
  for (uint32_t i = 0; i < count; i++) munmap(buffer[i].map, buffer[i].map_bytes);
  cr_assert(guarded_is_clean(&workspace), "wrote around the workspace");
  munmap(scratch.map, scratch.map_bytes);
  munmap(workspace.map, workspace.map_bytes);
  dlclose(library);
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
