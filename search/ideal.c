#include "search/ideal.h"

#include <string.h>

typedef struct table {
  ft_arena *arena;
  ft_ideal *ideal;
  size_t count, capacity;
  uint32_t *slot;
  uint32_t slot_mask;
} table;

ft_ideal ft_ideal_add(ft_ideal ideal, uint64_t bits) {
  uint64_t covered = ideal.mask | bits;
  if (covered == UINT64_MAX) return (ft_ideal){ideal.low + 64, 0};
  int skip = __builtin_ctzll(~covered);
  return (ft_ideal){ideal.low + (uint32_t)skip, covered >> skip};
}

uint32_t ft_ideal_size(ft_ideal ideal) {
  return ideal.low + (uint32_t)__builtin_popcountll(ideal.mask);
}

uint64_t ft_ideal_window(ft_ideal ideal, uint32_t span, uint32_t count) {
  uint32_t width = count - ideal.low < span ? count - ideal.low : span;
  return width >= 64 ? UINT64_MAX : (1ull << width) - 1;
}

static uint32_t find(const ft_ideal *ideal, const uint32_t *slot, uint32_t slot_mask,
                     ft_ideal key) {
  uint64_t word[2] = {key.low, key.mask};
  uint32_t at = (uint32_t)ft_hash64(FT_HASH64_SEED, word, sizeof word) & slot_mask;
  while (slot[at] != FT_NONE &&
         (ideal[slot[at]].low != key.low || ideal[slot[at]].mask != key.mask))
    at = (at + 1) & slot_mask;
  return at;
}

// Doubles the slots; they stay at most half full.
static ft_status grow_slots(table *t, ft_error *error) {
  uint32_t size = t->slot ? (t->slot_mask + 1) * 2 : 64;
  t->slot = FT_NEW_ARRAY(t->arena, uint32_t, size);
  FT_OOM_IF(!t->slot, error);
  memset(t->slot, 0xff, size * sizeof *t->slot);
  t->slot_mask = size - 1;
  for (uint32_t i = 0; i < t->count; i++)
    t->slot[find(t->ideal, t->slot, t->slot_mask, t->ideal[i])] = i;
  return FT_OK;
}

static ft_status insert(table *t, ft_ideal ideal, ft_error *error) {
  if (!t->slot || t->count * 2 > t->slot_mask) FT_TRY(grow_slots(t, error));
  uint32_t at = find(t->ideal, t->slot, t->slot_mask, ideal);
  if (t->slot[at] != FT_NONE) return FT_OK;
  FT_OOM_IF(FT_GROW(t->arena, &t->ideal, t->count, &t->capacity), error);
  t->ideal[t->count] = ideal;
  t->slot[at] = (uint32_t)t->count++;
  return FT_OK;
}

// Every ideal within a span comes from a smaller one within it by one primitive (take
// its highest away), so growing by single ready primitives finds them all.
static ft_status extend(table *t, const ft_dag *dag, ft_ideal ideal, uint32_t span,
                        ft_error *error) {
  uint64_t open = ft_ideal_window(ideal, span, dag->count) & ~ideal.mask;
  for (; open; open &= open - 1) {
    uint32_t i = (uint32_t)__builtin_ctzll(open), v = ideal.low + i;
    uint64_t needs = ft_dag_back_from(dag->producer_back[v], v, ideal.low);
    if (needs & ~ideal.mask) continue;
    FT_TRY(insert(t, ft_ideal_add(ideal, 1ull << i), error));
  }
  return FT_OK;
}

ft_status ft_ideals_make(const ft_dag *dag, uint32_t span, uint32_t limit,
                         ft_arena *arena, ft_ideals *out, bool *out_complete,
                         ft_error *error) {
  FT_ASSERT(span >= 1 && span <= FT_SET_SPREAD && limit >= 1);
  table t = {.arena = arena};
  *out_complete = false;
  FT_TRY(insert(&t, (ft_ideal){0, 0}, error));
  // One primitive more at each step: discovery is in order of size.
  for (size_t i = 0; i < t.count && t.count <= limit; i++)
    FT_TRY(extend(&t, dag, t.ideal[i], span, error));
  *out_complete = t.count <= limit;
  *out = (ft_ideals){.count = (uint32_t)t.count,
                     .span = span,
                     .ideal = t.ideal,
                     .slot = t.slot,
                     .slot_mask = t.slot_mask};
  return FT_OK;
}

uint32_t ft_ideals_find(const ft_ideals *ideals, ft_ideal ideal) {
  return ideals->slot[find(ideals->ideal, ideals->slot, ideals->slot_mask, ideal)];
}
