// Runs SIMT kernels through their SIM print: prints, compiles a batch as one object, runs
// every block, compares with the double-precision reference.
#ifndef FT_TESTS_CODEGEN_SIMMING_H
#define FT_TESTS_CODEGEN_SIMMING_H

#include <dlfcn.h>

#include "codegen/print_simt.h"
#include "codegen/sim.h"
#include "core/strbuf.h"
#include "graph/inputs.h"
#include "graph/interpreter.h"
#include "running.h"

typedef struct simmed {
  const ft_workload *workload;
  ft_tensor *input;
  ft_reference *reference;
  const char *label, *name, *text;
  uint64_t fuel;  // ft_sim_call.fuel
  ft_simt_launch launch;
} simmed;

// The reference of |workload| on inputs drawn from |seed|.
static inline void simmed_expect(simmed *c, uint64_t seed, ft_arena *arena) {
  const ft_group *g = &c->workload->group;
  ft_error error;
  ft_graph *alone;
  c->input = FT_NEW_ARRAY(arena, ft_tensor, g->input_count);
  cr_assert_eq(ft_group_random_inputs(g, seed, arena, c->input, &error), FT_OK, "%s",
               error.text);
  cr_assert_eq(ft_group_extract(g, arena, &alone, &error), FT_OK, "%s", error.text);
  c->reference = FT_NEW_ARRAY(arena, ft_reference, g->output_count);
  cr_assert_eq(ft_interpret_graph(alone, c->input, arena, c->reference, &error), FT_OK,
               "%s", error.text);
}

static inline void simmed_print(simmed *c, ft_kir *kir, uint32_t number,
                                ft_arena *arena) {
  ft_error error;
  c->name = ft_arena_printf(arena, "sim_%u", number);
  cr_assert_eq(ft_print_sim(kir, c->name, &c->text, &c->launch, &error), FT_OK, "%s: %s",
               c->label, error.text);
}

// An object of all cases, loaded; |folder| holds the files. clang takes less than half of
// gcc's time for it.
static inline void *simmed_build(const simmed *c, uint32_t count, const char *folder,
                                 ft_arena *arena) {
  ft_strbuf bodies = ft_strbuf_init(arena);
  for (uint32_t i = 0; i < count; i++) ft_strbuf_add(&bodies, c[i].text);
  const char *path = ft_arena_printf(arena, "%s/%s.c", folder, c->name);
  FILE *file = fopen(path, "w");
  cr_assert(file);
  fprintf(file, "%s%s", ft_sim_prelude_for(bodies.text, arena), bodies.text);
  fclose(file);
  const char *command = ft_arena_printf(arena,
                                        "$(command -v clang || echo cc) -O0 -std=gnu11 "
                                        "-w -fPIC -shared -o '%s.so' '%s' -lm",
                                        path, path);
  cr_assert_eq(system(command), 0, "%s", command);
  void *library = dlopen(ft_arena_printf(arena, "%s.so", path), RTLD_NOW | RTLD_LOCAL);
  cr_assert(library, "%s", dlerror());
  return library;
}

static inline size_t simmed_bytes(const ft_value *v) {
  return (size_t)ft_shape_elements(&v->shape) * ft_dtype_bytes(v->dtype);
}

static inline ft_sim_entry *simmed_entry(const simmed *c, void *library) {
  ft_sim_entry *entry;
  void *symbol = dlsym(library, c->name);
  cr_assert(symbol);
  memcpy(&entry, &symbol, sizeof entry);
  return entry;
}

// Case |c| with memory of its own; out[i] is output i.
static inline ft_sim_call simmed_call(const simmed *c, void *library, ft_arena *arena,
                                      ft_tensor *out) {
  const ft_group *g = &c->workload->group;
  uint32_t all = g->input_count + g->output_count;
  void **buffer = FT_NEW_ARRAY(arena, void *, all + 1);
  int64_t *count = FT_NEW_ARRAY(arena, int64_t, all);
  for (uint32_t i = 0; i < g->input_count; i++) {
    buffer[i] = (void *)(uintptr_t)c->input[i].data;
    count[i] = ft_shape_elements(&c->input[i].shape);
  }
  for (uint32_t i = 0; i < g->output_count; i++) {
    const ft_value *v = &g->graph->value[g->output[i]];
    uint8_t *data = FT_NEW_ARRAY(arena, uint8_t, simmed_bytes(v) + 1);
    buffer[g->input_count + i] = data;
    count[g->input_count + i] = ft_shape_elements(&v->shape);
    out[i] = (ft_tensor){v->dtype, v->shape, data, simmed_bytes(v)};
  }
  buffer[all] = FT_NEW_ARRAY(arena, uint8_t, (size_t)c->launch.workspace_bytes);
  return (ft_sim_call){.entry = simmed_entry(c, library),
                       .grid = c->launch.grid,
                       .buffers = buffer,
                       .count = count,
                       .inputs = g->input_count,
                       .outputs = g->output_count,
                       .workspace_bytes = c->launch.workspace_bytes};
}

// The worst error over tolerance of all outputs.
static inline double simmed_ratio(const simmed *c, const ft_tensor *out) {
  double worst = 0;
  for (uint32_t i = 0; i < c->workload->group.output_count; i++) {
    ft_comparison cmp;
    ft_comparison_init(&cmp);
    ft_compare_tensor(&out[i], &c->reference[i], &cmp);
    if (!(cmp.max_ratio <= worst)) worst = cmp.max_ratio;
  }
  return worst;
}

// What is wrong with one launch; NULL: nothing.
static inline const char *simmed_launch(const simmed *c, const ft_sim_call *call,
                                        const ft_tensor *out, ft_arena *arena) {
  ft_sim_result r;
  ft_error error;
  for (uint32_t i = 0; i < call->outputs; i++)
    memset((void *)(uintptr_t)out[i].data, 0xA5, out[i].bytes);
  cr_assert_eq(ft_sim_run(call, arena, &r, &error), FT_OK, "%s", error.text);
  if (r.fault != FT_SIM_FINE) return ft_arena_strdup(arena, r.text);
  if (r.code) return ft_arena_printf(arena, "it returned %d", (int)r.code);
  double ratio = simmed_ratio(c, out);
  return ratio <= 1 ? NULL : ft_arena_printf(arena, "error %g of the tolerance", ratio);
}

// What is wrong with case |c|; NULL: nothing. A kernel with a workspace runs twice on it,
// one with copies with both landings.
static inline const char *simmed_wrong(const simmed *c, void *library, ft_arena *arena) {
  ft_tensor *out = FT_NEW_ARRAY(arena, ft_tensor, c->workload->group.output_count);
  ft_sim_call call = simmed_call(c, library, arena, out);
  int launches = call.workspace_bytes || c->launch.has_copies ? FT_SIM_LANDINGS : 1;
  const char *wrong = NULL;
  for (int i = 0; i < launches && !wrong; i++) {
    call.seed = (uint64_t)i + 1;
    call.landing = (ft_sim_landing)i;
    call.fuel = c->fuel;
    wrong = simmed_launch(c, &call, out, arena);
  }
  return wrong;
}

static inline void simmed_check(const simmed *c, void *library, ft_arena *arena) {
  const char *wrong = simmed_wrong(c, library, arena);
  cr_assert_null(wrong, "%s: %s\n%s", c->label, wrong, c->text);
}

#endif
