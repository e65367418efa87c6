#include <stdio.h>

#include "codegen/sim_parts.h"
#include "core/rng.h"

enum { FUEL = 1 << 30, MOST_BLOCKS = 1 << 24 };

static const char *const fault_texts[FT_SIM_FAULTS] = {
    [FT_SIM_FINE] = "fine",
    [FT_SIM_BOUNDS] = "out of bounds",
    [FT_SIM_MISALIGNED] = "misaligned",
    [FT_SIM_RACE] = "race",
    [FT_SIM_UNINITIALISED] = "uninitialised",
    [FT_SIM_DIVERGENT] = "divergent",
    [FT_SIM_ENDLESS] = "endless",
    [FT_SIM_UNWAITED] = "touched before its wait",
    [FT_SIM_UNCOUNTED] = "a counter that is not back at 0",
};

const char *ft_sim_fault_text(ft_sim_fault fault) {
  return fault_texts[fault];
}

static void blame(ft_sim_state *s, ft_sim_fault fault, uint32_t buffer, int64_t index) {
  if (s->fault) return;
  s->fault = (int32_t)fault;
  s->buffer = buffer;
  s->index = index;
  s->thread = s->other = 0;
}

// The blocks that were counted there are seen up to where they arrived, and forgotten.
static void see(ft_sim_launch *l, const int32_t *counter) {
  size_t kept = 0;
  for (int64_t i = 0; i < l->call->grid; i++) l->seen[i] = 0;
  for (size_t i = 0; i < l->arrival_count; i++) {
    ft_sim_arrival a = l->arrival[i];
    if (a.counter == counter)
      l->seen[a.block] = a.epoch + 1;
    else
      l->arrival[kept++] = a;
  }
  l->arrival_count = kept;
  l->state.seen = l->seen;
}

// Memory is what tells the last block, as on a device: a counter that a launch leaves
// behind spoils the next one.
static int32_t arrive(ft_sim_state *s, int32_t *counter, uint32_t buffer, int64_t count,
                      int64_t index, int64_t of) {
  ft_sim_launch *l = (ft_sim_launch *)s;
  if (index < 0 || index >= count) {
    blame(s, FT_SIM_BOUNDS, buffer, index);
    return 0;
  }
  if (FT_GROW(l->arena, &l->arrival, l->arrival_count, &l->arrival_capacity)) {
    l->is_out_of_memory = true;
    return 0;
  }
  l->arrival[l->arrival_count++] =
      (ft_sim_arrival){&counter[index], buffer, index, s->block, s->epoch};
  s->epoch++;
  if (++counter[index] != of) return 0;
  counter[index] = 0;
  see(l, &counter[index]);
  return 1;
}

static ft_sim_cell **make_cells(const ft_sim_call *call, ft_arena *arena) {
  uint32_t all = call->inputs + call->outputs;
  ft_sim_cell **cell = FT_NEW_ARRAY(arena, ft_sim_cell *, all + 1);
  if (!cell) return NULL;
  for (uint32_t i = call->inputs; i <= all; i++) {
    size_t count = i < all ? (size_t)call->count[i] : (size_t)call->workspace_bytes;
    cell[i] = FT_NEW_ARRAY(arena, ft_sim_cell, count);
    if (!cell[i]) return NULL;
  }
  return cell;
}

ft_status ft_sim_open(const ft_sim_call *call, ft_sim_cell *const *cell, ft_arena *arena,
                      ft_sim_state **out, ft_error *error) {
  *out = NULL;
  if (call->grid > MOST_BLOCKS)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%lld blocks: SIM tells %d apart",
            (long long)call->grid, MOST_BLOCKS);
  ft_sim_launch *l = FT_NEW(arena, ft_sim_launch);
  FT_OOM_IF(!l, error);
  *l = (ft_sim_launch){.state = {.cell = cell ? cell : make_cells(call, arena),
                                 .arrive = arrive,
                                 .copy = ft_sim_copy_start,
                                 .commit = ft_sim_copy_commit,
                                 .wait = ft_sim_copy_wait},
                       .call = call,
                       .arena = arena,
                       .seen = FT_NEW_ARRAY(arena, uint64_t, (size_t)call->grid)};
  FT_OOM_IF(!l->state.cell || !l->seen, error);
  *out = &l->state;
  return FT_OK;
}

int32_t ft_sim_block(ft_sim_state *state, uint64_t block) {
  ft_sim_launch *l = (ft_sim_launch *)state;
  const ft_sim_call *call = l->call;
  state->block = block;
  state->epoch = 0;
  state->fuel = call->fuel ? call->fuel : FUEL;
  state->seen = NULL;
  int32_t code = call->entry(call->buffers, state, block);
  ft_sim_copy_forget(l);
  return code;
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

static void describe(const ft_sim_state *state, ft_sim_result *out) {
  out->fault = (ft_sim_fault)state->fault;
  snprintf(out->text, sizeof out->text,
           "%s: buffer %u[%lld], block %llu, threads %llu and %llu",
           ft_sim_fault_text(out->fault), state->buffer, (long long)state->index,
           (unsigned long long)state->block, (unsigned long long)state->thread,
           (unsigned long long)state->other);
}

ft_status ft_sim_run(const ft_sim_call *call, ft_arena *arena, ft_sim_result *out,
                     ft_error *error) {
  ft_sim_state *state;
  FT_TRY(ft_sim_open(call, NULL, arena, &state, error));
  const ft_sim_launch *l = (const ft_sim_launch *)state;
  uint64_t *order = shuffled(call->grid, call->seed, arena);
  FT_OOM_IF(!order, error);
  *out = (ft_sim_result){0};
  for (int64_t i = 0; i < call->grid && !state->fault && !out->code; i++)
    out->code = ft_sim_block(state, order[i]);
  FT_OOM_IF(l->is_out_of_memory, error);
  if (l->arrival_count && !out->code)
    blame(state, FT_SIM_UNCOUNTED, l->arrival->buffer, l->arrival->index);
  describe(state, out);
  return FT_OK;
}
