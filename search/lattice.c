#include "search/lattice.h"

#include <string.h>

// Sets met at one ideal, in breadth-first order: bits relative to its low.
typedef struct frontier {
  uint64_t *queue;  // [sets_per_ideal + 64], the rest is for operators
  uint32_t *where;  // its slot
  uint32_t count, limit;
  uint64_t *slot;  // open addressing, 0 is free (no set is empty)
  uint32_t slot_mask;
  bool is_cut;
} frontier;

// All sets of the lattice, each once.
typedef struct set_table {
  ft_set *set;
  size_t count, capacity;
  uint32_t *slot, slot_mask;
} set_table;

typedef struct builder {
  const ft_dag *dag;
  const uint64_t *whole;
  ft_lattice_limits limits;
  ft_arena *arena;
  ft_ideals ideals;
  frontier frontier;
  set_table sets;
  ft_step *step;
  size_t step_count, step_capacity;
  uint32_t *step_at;
} builder;

ft_lattice_limits ft_lattice_default_limits(uint32_t window, uint32_t span) {
  return (ft_lattice_limits){.window = window,
                             .span = span,
                             .sets_per_ideal = 4096,
                             .ideals = 1u << 16,
                             .steps = 1u << 20,
                             .sets = 1u << 15};
}

// ---- the sets at one ideal -----------------------------------------------------

static void clear(frontier *f) {
  while (f->count) f->slot[f->where[--f->count]] = 0;
}

static uint32_t mix(uint64_t bits) {
  return (uint32_t)((bits * 0x9e3779b97f4a7c15ull) >> 40);
}

// Adds a set unless it was met here before, or there is no room for more.
static void meet(frontier *f, uint64_t bits) {
  uint32_t at = mix(bits) & f->slot_mask;
  while (f->slot[at] && f->slot[at] != bits) at = (at + 1) & f->slot_mask;
  if (f->slot[at]) return;
  if (f->count == f->limit) {
    f->is_cut = true;
    return;
  }
  f->slot[at] = bits;
  f->where[f->count] = at;
  f->queue[f->count++] = bits;
}

// What a window's position needs (itself included) and touches, covered ones left out.
typedef struct surroundings {
  uint64_t needs[64], touches[64];
} surroundings;

static void look_around(const ft_dag *dag, ft_ideal ideal, uint64_t open,
                        surroundings *out) {
  for (uint64_t rest = open; rest; rest &= rest - 1) {
    uint32_t i = (uint32_t)__builtin_ctzll(rest), v = ideal.low + i;
    out->needs[i] =
        (ft_dag_back_from(dag->ancestor_back[v], v, ideal.low) & open) | 1ull << i;
    out->touches[i] = (ft_dag_back_from(dag->neighbour_back[v], v, ideal.low) |
                       ft_dag_front_from(dag->neighbour_front[v], v, ideal.low)) &
                      open;
  }
}

static void grow(frontier *f, uint64_t bits, const surroundings *around,
                 uint32_t window) {
  uint64_t touched = 0;
  for (uint64_t rest = bits; rest; rest &= rest - 1)
    touched |= around->touches[__builtin_ctzll(rest)];
  for (uint64_t rest = touched & ~bits; rest; rest &= rest - 1) {
    uint64_t grown = bits | around->needs[__builtin_ctzll(rest)];
    if ((uint32_t)__builtin_popcountll(grown) <= window) meet(f, grown);
  }
}

// The operator at window position |i| may start at the ideal: nothing of it is covered
// and all it needs is. At position 0 it may even leave the window.
static bool may_start(ft_ideal ideal, uint64_t open, const surroundings *around,
                      uint32_t i, uint64_t bits) {
  if (i == 0) return !(bits & ideal.mask);
  if (bits & ~open) return false;
  for (uint64_t rest = bits; rest; rest &= rest - 1)
    if (around->needs[__builtin_ctzll(rest)] & ~bits) return false;
  return true;
}

// In places kept for them: an operator need not be connected, and no cut takes it away.
static void meet_operators(builder *b, ft_ideal ideal, uint64_t open,
                           const surroundings *around) {
  for (uint64_t rest = open; rest; rest &= rest - 1) {
    uint32_t i = (uint32_t)__builtin_ctzll(rest);
    uint64_t whole = b->whole[ideal.low + i], bits = whole << i;
    if (!whole || bits >> i != whole || !may_start(ideal, open, around, i, bits))
      continue;
    b->frontier.limit++;
    meet(&b->frontier, bits);
  }
}

// The sets go to b->frontier.queue.
static void collect(builder *b, ft_ideal ideal) {
  frontier *f = &b->frontier;
  clear(f);
  if (ideal.low == b->dag->count) return;
  uint64_t open = ft_ideal_window(ideal, b->ideals.span, b->dag->count) & ~ideal.mask;
  surroundings around;
  look_around(b->dag, ideal, open, &around);
  f->limit = b->limits.sets_per_ideal;
  for (uint64_t rest = open; rest; rest &= rest - 1) {
    uint64_t needs = around.needs[__builtin_ctzll(rest)];
    if ((uint32_t)__builtin_popcountll(needs) <= b->limits.window) meet(f, needs);
  }
  for (uint32_t i = 0; i < f->count; i++)
    if ((uint32_t)__builtin_popcountll(f->queue[i]) < b->limits.window)
      grow(f, f->queue[i], &around, b->limits.window);
  if (b->whole) meet_operators(b, ideal, open, &around);
}

// ---- the whole lattice ---------------------------------------------------------

static uint32_t find_set(const set_table *t, ft_set key) {
  uint32_t at = (uint32_t)ft_set_hash(key) & t->slot_mask;
  while (t->slot[at] != FT_NONE && !ft_set_equal(t->set[t->slot[at]], key))
    at = (at + 1) & t->slot_mask;
  return at;
}

static ft_status grow_set_slots(set_table *t, ft_arena *arena, ft_error *error) {
  uint32_t size = t->slot ? (t->slot_mask + 1) * 2 : 256;
  t->slot = FT_NEW_ARRAY(arena, uint32_t, size);
  FT_OOM_IF(!t->slot, error);
  memset(t->slot, 0xff, size * sizeof *t->slot);
  t->slot_mask = size - 1;
  for (uint32_t i = 0; i < t->count; i++) t->slot[find_set(t, t->set[i])] = i;
  return FT_OK;
}

static ft_status add_set(builder *b, ft_set set, uint32_t *out, ft_error *error) {
  set_table *t = &b->sets;
  if (!t->slot || t->count * 2 > t->slot_mask) FT_TRY(grow_set_slots(t, b->arena, error));
  uint32_t at = find_set(t, set);
  if (t->slot[at] == FT_NONE) {
    FT_OOM_IF(FT_GROW(b->arena, &t->set, t->count, &t->capacity), error);
    t->set[t->count] = set;
    t->slot[at] = (uint32_t)t->count++;
  }
  *out = t->slot[at];
  return FT_OK;
}

static ft_status add_step(builder *b, ft_ideal from, uint64_t bits, ft_error *error) {
  uint32_t set, to = ft_ideals_find(&b->ideals, ft_ideal_add(from, bits));
  FT_ASSERT(to != FT_NONE);
  FT_TRY(add_set(b, ft_set_at(from.low, bits), &set, error));
  FT_OOM_IF(FT_GROW(b->arena, &b->step, b->step_count, &b->step_capacity), error);
  b->step[b->step_count++] = (ft_step){set, to};
  return FT_OK;
}

static bool is_too_large(const builder *b) {
  return b->step_count > b->limits.steps || b->sets.count > b->limits.sets;
}

static ft_status add_steps(builder *b, ft_error *error) {
  for (uint32_t i = 0; i < b->ideals.count && !is_too_large(b); i++) {
    b->step_at[i] = (uint32_t)b->step_count;
    collect(b, b->ideals.ideal[i]);
    for (uint32_t k = 0; k < b->frontier.count; k++)
      FT_TRY(add_step(b, b->ideals.ideal[i], b->frontier.queue[k], error));
  }
  b->step_at[b->ideals.count] = (uint32_t)b->step_count;
  return FT_OK;
}

static ft_status make_frontier(builder *b, ft_error *error) {
  size_t most = (size_t)b->limits.sets_per_ideal + FT_SET_SPREAD;
  uint32_t slots = 64;
  while (slots < most * 2) slots *= 2;
  b->frontier = (frontier){.queue = FT_NEW_ARRAY(b->arena, uint64_t, most),
                           .where = FT_NEW_ARRAY(b->arena, uint32_t, most),
                           .slot = FT_NEW_ARRAY(b->arena, uint64_t, slots),
                           .slot_mask = slots - 1};
  FT_OOM_IF(!b->frontier.queue || !b->frontier.where || !b->frontier.slot, error);
  return FT_OK;
}

// One try with one span; *out_fits is false when a limit was passed.
static ft_status try_span(builder *b, uint32_t span, bool *out_fits, ft_error *error) {
  FT_TRY(make_frontier(b, error));
  FT_TRY(ft_ideals_make(b->dag, span, b->limits.ideals, b->arena, &b->ideals, out_fits,
                        error));
  if (!*out_fits) return FT_OK;
  b->step_at = FT_NEW_ARRAY(b->arena, uint32_t, (size_t)b->ideals.count + 1);
  FT_OOM_IF(!b->step_at, error);
  FT_TRY(add_steps(b, error));
  *out_fits = !is_too_large(b);
  return FT_OK;
}

static ft_status copy_out(const builder *b, ft_arena *arena, ft_lattice *out,
                          ft_error *error) {
  uint32_t ideals = b->ideals.count;
  *out = (ft_lattice){.ideals = b->ideals,
                      .set_count = (uint32_t)b->sets.count,
                      .step_count = (uint32_t)b->step_count,
                      .is_cut = b->frontier.is_cut || b->ideals.span < b->limits.span};
  size_t slots = (size_t)b->ideals.slot_mask + 1;
  out->ideals.ideal =
      ft_arena_memdup(arena, b->ideals.ideal, ideals * sizeof *b->ideals.ideal);
  out->ideals.slot = ft_arena_memdup(arena, b->ideals.slot, slots * sizeof(uint32_t));
  out->set = ft_arena_memdup(arena, b->sets.set, b->sets.count * sizeof(ft_set));
  out->step = ft_arena_memdup(arena, b->step, b->step_count * sizeof(ft_step));
  out->step_at =
      ft_arena_memdup(arena, b->step_at, ((size_t)ideals + 1) * sizeof(uint32_t));
  FT_OOM_IF(
      !out->ideals.ideal || !out->ideals.slot || !out->set || !out->step || !out->step_at,
      error);
  return FT_OK;
}

// A span of 1 fits always: count + 1 ideals, and one or two steps from each.
ft_status ft_lattice_make(const ft_dag *dag, const uint64_t *whole,
                          const ft_lattice_limits *limits, const ft_allocator *allocator,
                          ft_arena *arena, ft_lattice *out, ft_error *error) {
  FT_ASSERT(limits->window && limits->sets_per_ideal && limits->span);
  ft_arena *scratch = ft_arena_create(allocator);
  FT_OOM_IF(!scratch, error);
  ft_status status = FT_OK;
  bool fits = false;
  for (uint32_t span = limits->span; status == FT_OK && !fits; span /= 2) {
    ft_arena_reset(scratch);
    builder b = {.dag = dag, .whole = whole, .limits = *limits, .arena = scratch};
    if (span <= 1) b.limits.ideals = b.limits.steps = b.limits.sets = UINT32_MAX / 4;
    status = try_span(&b, span ? span : 1, &fits, error);
    if (status == FT_OK && fits) status = copy_out(&b, arena, out, error);
  }
  ft_arena_destroy(scratch);
  return status;
}
