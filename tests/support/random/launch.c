#include "tests/support/random/launch.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

#include "core/rng.h"

typedef int32_t kernel_entry(void *const *buffers, const int64_t *scalars, uint32_t block,
                             uint32_t thread, void *scratch);

enum { POISON = 0xA5, PAGE = 4096 };

// ---- buffers ------------------------------------------------------------------------

typedef struct guarded {
  uint8_t *map, *data;
  size_t map_bytes, data_bytes;
} guarded;

// |bytes| rounded up to 64 end where an unmapped page begins; another lies before.
static bool guarded_make(size_t bytes, guarded *out) {
  size_t rounded = (bytes + 63) / 64 * 64, pages = (rounded + PAGE - 1) / PAGE + 2;
  guarded g = {.map_bytes = pages * PAGE, .data_bytes = bytes};
  g.map =
      mmap(NULL, g.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (g.map == MAP_FAILED) return false;
  g.data = g.map + g.map_bytes - PAGE - rounded;
  memset(g.map + PAGE, POISON, g.map_bytes - 2 * PAGE);
  *out = g;
  return mprotect(g.map, PAGE, PROT_NONE) == 0 &&
         mprotect(g.map + g.map_bytes - PAGE, PAGE, PROT_NONE) == 0;
}

static void guarded_free(guarded *g) {
  if (g->map) munmap(g->map, g->map_bytes);
  *g = (guarded){0};
}

// True when nothing around the data was written.
static bool guarded_is_clean(const guarded *g) {
  for (const uint8_t *p = g->map + PAGE; p < g->data; p++)
    if (*p != POISON) return false;
  for (const uint8_t *p = g->data + g->data_bytes; p < g->map + g->map_bytes - PAGE; p++)
    if (*p != POISON) return false;
  return true;
}

// ---- a launch -----------------------------------------------------------------------

typedef struct frame {
  const ft_module *module;
  const ft_group *group;
  ft_arena *arena;
  void *library;
  kernel_entry *entry;
  uint32_t count;   // inputs and outputs
  guarded *buffer;  // [count], then the workspace, then the scratch
  void **pointer;
} frame;

static const char *load(frame *f) {
  f->library = dlopen(f->module->path, RTLD_NOW | RTLD_LOCAL);
  if (!f->library) return ft_arena_printf(f->arena, "dlopen: %s", dlerror());
  void *symbol = dlsym(f->library, f->module->entry);
  if (!symbol) return ft_arena_printf(f->arena, "no symbol %s", f->module->entry);
  memcpy(&f->entry, &symbol, sizeof f->entry);
  return NULL;
}

static size_t output_bytes(const frame *f, uint32_t output) {
  const ft_value *v = &f->group->graph->value[f->group->output[output]];
  return (size_t)ft_shape_elements(&v->shape) * ft_dtype_bytes(v->dtype);
}

static const char *fill(frame *f, const ft_tensor *input) {
  uint32_t inputs = f->group->input_count;
  f->count = inputs + f->group->output_count;
  f->buffer = FT_NEW_ARRAY(f->arena, guarded, f->count + 2);
  f->pointer = FT_NEW_ARRAY(f->arena, void *, f->count + 1);
  for (uint32_t i = 0; i < f->count; i++) {
    guarded *g = &f->buffer[i];
    size_t bytes = i < inputs ? input[i].bytes : output_bytes(f, i - inputs);
    if (!guarded_make(bytes, g)) return "no memory for a buffer";
    f->pointer[i] = g->data;
    if (i >= inputs) continue;
    if (bytes) memcpy(g->data, input[i].data, bytes);
    if (mprotect(g->map + PAGE, g->map_bytes - 2 * PAGE, PROT_READ)) return "no mprotect";
  }
  if (!guarded_make(f->module->workspace_bytes, &f->buffer[f->count]) ||
      !guarded_make(f->module->scratch_bytes, &f->buffer[f->count + 1]))
    return "no memory for the scratch";
  f->pointer[f->count] = f->buffer[f->count].data;
  memset(f->pointer[f->count], 0, f->module->workspace_bytes);
  return NULL;
}

static int32_t run_blocks(frame *f, uint64_t seed) {
  uint32_t grid = f->module->grid;
  uint32_t *order = FT_NEW_ARRAY(f->arena, uint32_t, grid);
  ft_rng rng = ft_rng_seed(seed);
  for (uint32_t i = 0; i < grid; i++) {
    uint32_t at = (uint32_t)ft_rng_below(&rng, i + 1);
    order[i] = order[at];
    order[at] = i;
  }
  void *scratch = f->buffer[f->count + 1].data;
  int32_t code = 0;
  for (uint32_t i = 0; i < grid && !code; i++)
    code = f->entry(f->pointer, f->module->scalar, order[i], 0, scratch);
  return code;
}

static const char *take(frame *f, ft_tensor *out) {
  for (uint32_t i = 0; i < f->group->output_count; i++) {
    const guarded *g = &f->buffer[f->group->input_count + i];
    const ft_value *v = &f->group->graph->value[f->group->output[i]];
    if (!guarded_is_clean(g))
      return ft_arena_printf(f->arena, "wrote around output %u", i);
    out[i] =
        (ft_tensor){v->dtype, v->shape, ft_arena_memdup(f->arena, g->data, g->data_bytes),
                    g->data_bytes};
  }
  if (!guarded_is_clean(&f->buffer[f->count])) return "wrote around the workspace";
  return guarded_is_clean(&f->buffer[f->count + 1]) ? NULL : "wrote around the scratch";
}

// A workspace must be left as the next launch needs it, which gives the same bytes.
static const char *launch_again(frame *f, uint64_t seed, const ft_tensor *first) {
  for (uint32_t i = 0; i < f->group->output_count; i++) {
    guarded *g = &f->buffer[f->group->input_count + i];
    memset(g->data, POISON, g->data_bytes);
  }
  if (run_blocks(f, seed)) return "the second launch fails";
  ft_tensor *again = FT_NEW_ARRAY(f->arena, ft_tensor, f->group->output_count);
  const char *wrong = take(f, again);
  for (uint32_t i = 0; i < f->group->output_count && !wrong; i++)
    if (first[i].bytes && memcmp(first[i].data, again[i].data, first[i].bytes))
      wrong = ft_arena_printf(f->arena, "output %u differs in the second launch", i);
  return wrong;
}

const char *launch(const ft_module *module, const ft_group *group, const ft_tensor *input,
                   uint64_t seed, ft_arena *arena, ft_tensor *out, int32_t *out_code) {
  frame f = {.module = module, .group = group, .arena = arena};
  const char *wrong = load(&f);
  *out_code = 0;
  if (!wrong) wrong = fill(&f, input);
  if (!wrong) {
    *out_code = run_blocks(&f, seed);
    wrong = take(&f, out);
    if (!wrong && !*out_code && module->workspace_bytes)
      wrong = launch_again(&f, seed + 1, out);
  }
  for (uint32_t i = 0; f.buffer && i < f.count + 2; i++) guarded_free(&f.buffer[i]);
  if (f.library) dlclose(f.library);
  return wrong;
}
