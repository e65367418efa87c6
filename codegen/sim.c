#include "codegen/sim.h"

#include <stdio.h>

#include "core/rng.h"

// The same structures as in sim.h, without its includes. Static, so that kernels can
// share a translation unit or be alone.
const char ft_sim_prelude[] =
    "#include <math.h>\n"
    "#include <stdint.h>\n"
    "#define FT_FN static inline __attribute__((unused))\n"
    "#define ft_inf_f32 __builtin_inff()\n"
    "#define ft_nan_f32 __builtin_nanf(\"\")\n"
    "#define ft_inf_f64 __builtin_inf()\n"
    "#define ft_nan_f64 __builtin_nan(\"\")\n"
    "typedef struct ft_sim_cell { uint64_t writer, reader, other; } ft_sim_cell;\n"
    "typedef struct ft_sim_state {\n"
    "  uint64_t block, epoch, fuel;\n"
    "  int32_t fault;\n"
    "  uint32_t buffer;\n"
    "  int64_t index;\n"
    "  uint64_t thread, other;\n"
    "  ft_sim_cell *const *cell;\n"
    "  const int64_t *count;\n"
    "} ft_sim_state;\n"
    "enum { FT_SIM_BOUNDS = 1, FT_SIM_MISALIGNED, FT_SIM_RACE, FT_SIM_UNINITIALISED,\n"
    "       FT_SIM_DIVERGENT, FT_SIM_ENDLESS };\n"
    "FT_FN int ft_sim_fault(ft_sim_state *s, int fault, uint32_t buffer, int64_t index,\n"
    "                       uint64_t thread, uint64_t other) {\n"
    "  if (s->fault) return 0;\n"
    "  s->fault = fault, s->buffer = buffer, s->index = index;\n"
    "  s->thread = thread, s->other = other;\n"
    "  return 0;\n"
    "}\n"
    "FT_FN int ft_sim_tick(ft_sim_state *s) {\n"
    "  if (s->fuel) return s->fuel--, 1;\n"
    "  return ft_sim_fault(s, FT_SIM_ENDLESS, 0, 0, 0, 0);\n"
    "}\n"
    "FT_FN uint64_t ft_sim_stamp(const ft_sim_state *s, uint64_t thread) {\n"
    "  return (s->block << 40) + (s->epoch << 12) + thread + 1;\n"
    "}\n"
    // Another thread's stamp that no barrier separates from now.
    "FT_FN int ft_sim_is_racing(uint64_t stamp, uint64_t now) {\n"
    "  if (!stamp || stamp == now) return 0;\n"
    "  uint64_t a = stamp - 1, b = now - 1;\n"
    "  if (a >> 40 != b >> 40) return 1;\n"
    "  return a >> 12 == b >> 12 && (a & 4095) != (b & 4095);\n"
    "}\n"
    "FT_FN int ft_sim_read(ft_sim_state *s, ft_sim_cell *cell, uint32_t buffer,\n"
    "                      int64_t count, int64_t index, uint64_t thread) {\n"
    "  if (index < 0 || index >= count)\n"
    "    return ft_sim_fault(s, FT_SIM_BOUNDS, buffer, index, thread, 0);\n"
    "  if (!cell) return 1;\n"
    "  uint64_t now = ft_sim_stamp(s, thread);\n"
    "  ft_sim_cell *c = &cell[index];\n"
    "  if (!c->writer) ft_sim_fault(s, FT_SIM_UNINITIALISED, buffer, index, thread, 0);\n"
    "  if (ft_sim_is_racing(c->writer, now))\n"
    "    ft_sim_fault(s, FT_SIM_RACE, buffer, index, thread, (c->writer - 1) & 4095);\n"
    "  if (c->reader != now) c->other = c->reader, c->reader = now;\n"
    "  return 1;\n"
    "}\n"
    "FT_FN int ft_sim_write(ft_sim_state *s, ft_sim_cell *cell, uint32_t buffer,\n"
    "                       int64_t count, int64_t index, uint64_t thread) {\n"
    "  if (index < 0 || index >= count || !cell)\n"
    "    return ft_sim_fault(s, FT_SIM_BOUNDS, buffer, index, thread, 0);\n"
    "  uint64_t now = ft_sim_stamp(s, thread);\n"
    "  ft_sim_cell *c = &cell[index];\n"
    "  if (ft_sim_is_racing(c->writer, now))\n"
    "    ft_sim_fault(s, FT_SIM_RACE, buffer, index, thread, (c->writer - 1) & 4095);\n"
    "  if (ft_sim_is_racing(c->reader, now))\n"
    "    ft_sim_fault(s, FT_SIM_RACE, buffer, index, thread, (c->reader - 1) & 4095);\n"
    "  if (ft_sim_is_racing(c->other, now))\n"
    "    ft_sim_fault(s, FT_SIM_RACE, buffer, index, thread, (c->other - 1) & 4095);\n"
    "  c->writer = now;\n"
    "  return 1;\n"
    "}\n"
    "FT_FN void ft_sim_align(ft_sim_state *s, uint32_t buffer, int64_t index,\n"
    "                        int64_t lanes, uint64_t thread) {\n"
    "  if (index % lanes) ft_sim_fault(s, FT_SIM_MISALIGNED, buffer, index, thread, 0);\n"
    "}\n"
    "FT_FN void ft_sim_agree(ft_sim_state *s, int64_t a, int64_t b, uint64_t thread) {\n"
    "  if (a != b) ft_sim_fault(s, FT_SIM_DIVERGENT, 0, 0, thread, 0);\n"
    "}\n";

enum { FUEL = 1 << 24, MOST_BLOCKS = 1 << 24 };  // fuel of each block

static const char *const fault_texts[FT_SIM_FAULTS] = {
    [FT_SIM_FINE] = "fine",
    [FT_SIM_BOUNDS] = "out of bounds",
    [FT_SIM_MISALIGNED] = "misaligned",
    [FT_SIM_RACE] = "race",
    [FT_SIM_UNINITIALISED] = "uninitialised",
    [FT_SIM_DIVERGENT] = "divergent",
    [FT_SIM_ENDLESS] = "endless",
};

const char *ft_sim_fault_text(ft_sim_fault fault) {
  return fault_texts[fault];
}

static uint64_t *shuffled(int64_t grid, uint64_t seed, ft_arena *arena) {
  uint64_t *order = FT_NEW_ARRAY(arena, uint64_t, (size_t)grid);
  ft_rng rng = ft_rng_seed(seed);
  for (int64_t i = 0; order && i < grid; i++) {
    uint64_t at = ft_rng_below(&rng, (uint64_t)i + 1);
    order[i] = order[at];
    order[at] = (uint64_t)i;
  }
  return order;
}

ft_status ft_sim_run(ft_sim_entry *entry, int64_t grid, void *const *buffers,
                     const int64_t *count, uint32_t inputs, uint32_t outputs,
                     uint64_t seed, ft_arena *arena, ft_sim_result *out,
                     ft_error *error) {
  if (grid > MOST_BLOCKS)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%lld blocks: SIM tells %d apart",
            (long long)grid, MOST_BLOCKS);
  ft_sim_cell **cell = FT_NEW_ARRAY(arena, ft_sim_cell *, inputs + outputs);
  uint64_t *order = shuffled(grid, seed, arena);
  FT_OOM_IF(!cell || !order, error);
  for (uint32_t i = inputs; i < inputs + outputs; i++) {
    cell[i] = FT_NEW_ARRAY(arena, ft_sim_cell, (size_t)count[i]);
    FT_OOM_IF(!cell[i], error);
  }
  ft_sim_state state = {.cell = cell, .count = count};
  *out = (ft_sim_result){0};
  for (int64_t i = 0; i < grid && !state.fault && !out->code; i++) {
    state.block = order[i];
    state.epoch = 0;
    state.fuel = FUEL;
    out->code = entry(buffers, &state, order[i]);
  }
  out->fault = (ft_sim_fault)state.fault;
  snprintf(out->text, sizeof out->text,
           "%s: buffer %u[%lld], block %llu, threads %llu and %llu",
           ft_sim_fault_text(out->fault), state.buffer, (long long)state.index,
           (unsigned long long)state.block, (unsigned long long)state.thread,
           (unsigned long long)state.other);
  return FT_OK;
}
