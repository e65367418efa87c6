#include "codegen/nest_tactic.h"

#include <stddef.h>
#include <string.h>

static const char *const knobs[] = {"block",    "buffer", "compiler", "non_temporal",
                                    "prefetch", "split",  "threads",  "unroll",
                                    "vector",   NULL};

enum { SMALL_POINTS = 1 << 16, SPLIT_POINTS = 1 << 13, DEFAULT_CACHE_BYTES = 1 << 20 };

// Elements of rows that are short enough to be fetched ahead, and of rows long enough to
// have left the nearest cache when a pass comes back, so that fewer passes may win.
enum { NEAR_ROW = 1 << 14, FAR_ROW = 1 << 12 };

uint64_t ft_nest_all(const ft_group_ir *ir) {
  return ir->axis_count == 64 ? UINT64_MAX : ((uint64_t)1 << ir->axis_count) - 1;
}

uint64_t ft_nest_kept(const ft_group_ir *ir) {
  return ft_nest_all(ir) & ~ir->reduced;
}

// A knob's value, or 0, which no plan takes, when it is out of [1, most].
static uint32_t small(const ft_schedule *schedule, const char *name, int64_t most) {
  int64_t value = ft_schedule_get(schedule, name, 0);
  return value > 0 && value <= most ? (uint32_t)value : 0;
}

static ft_nest_choice choice_of(const ft_schedule *schedule, uint64_t vector_axes) {
  return (ft_nest_choice){
      .vector_axes = vector_axes,
      .vector = small(schedule, "vector", 64),
      .block = ft_schedule_get(schedule, "block", 0),
      .unroll = small(schedule, "unroll", FT_NEST_MAX_UNROLL),
      .parts = small(schedule, "split", INT16_MAX),
      .ahead = ft_schedule_get(schedule, "prefetch", 0),
      .buffer = (ft_nest_buffer)ft_schedule_get(schedule, "buffer", 0),
      .streams = ft_schedule_get(schedule, "non_temporal", 0) == 1,
  };
}

static bool is_within(const ft_schedule *schedule, const char *name, int64_t most) {
  int64_t value = ft_schedule_get(schedule, name, -1);
  return value >= 0 && value <= most;
}

const char *ft_nest_check(const ft_group_ir *ir, uint64_t vector_axes,
                          const ft_target *target, const ft_schedule *schedule,
                          ft_arena *arena) {
  const char *wrong = ft_schedule_refusal(schedule, knobs, target, arena);
  if (wrong) return wrong;
  if (!is_within(schedule, "buffer", FT_NEST_ONLINE)) return "buffer is not 0 to 3";
  if (!is_within(schedule, "non_temporal", 1)) return "non_temporal is not 0 or 1";
  ft_nest_choice choice = choice_of(schedule, vector_axes);
  bool is_clang = ft_schedule_compiler(schedule, target)->is_clang;
  if (choice.streams && !is_clang) return "non_temporal needs clang";
  if (!is_clang && choice.vector * 4 > target->vector_bytes)
    return "gcc takes vectors wider than a register apart";  // and takes minutes for it
  ft_nest nest;
  return ft_nest_plan(ir, &choice, &nest, arena);
}

ft_status ft_nest_kernel(const ft_group_ir *ir, uint64_t vector_axes,
                         const ft_schedule *schedule, ft_arena *arena, ft_kernel *out,
                         ft_error *error) {
  ft_nest nest;
  ft_nest_choice choice = choice_of(schedule, vector_axes);
  const char *wrong = ft_nest_plan(ir, &choice, &nest, arena);
  if (wrong) FT_FAIL(error, FT_INVALID_ARGUMENT, "schedule: %s", wrong);
  FT_TRY(ft_nest_build(&nest, arena, &out->kir, error));
  out->grid = nest.grid;
  out->scratch_bytes = out->kir->scratch_bytes;
  out->workspace_bytes = out->kir->workspace_bytes;
  return FT_OK;
}

// ---- the space -----------------------------------------------------------------------

typedef struct enumeration {
  const ft_group_ir *ir;
  uint64_t vector_axes;
  const ft_target *target;
  ft_schedules *out;
  int64_t points, row, threads, lanes;  // |row|: elements that a reduction takes
  bool is_across;                       // reductions across the vectors
} enumeration;

// Values of all knobs but the compiler.
typedef struct knob_values {
  int64_t block, buffer, streams, ahead, parts, threads, unroll, vector;
} knob_values;

static int64_t clamp(int64_t n, int64_t low, int64_t high) {
  return n < low ? low : n > high ? high : n;
}

static enumeration enumerate(const ft_group_ir *ir, uint64_t vector_axes,
                             const ft_target *target, ft_schedules *out) {
  return (enumeration){.ir = ir,
                       .vector_axes = vector_axes,
                       .target = target,
                       .out = out,
                       .points = ft_group_ir_points(ir, ft_nest_all(ir)),
                       .row = ft_group_ir_points(ir, ir->reduced),
                       .threads = target->threads ? target->threads : 1,
                       .lanes = clamp(target->vector_bytes / 4, 4, 16),
                       .is_across = ir->reduced && !(vector_axes & ir->reduced)};
}

static bool is_offered(const ft_schedules *list, const ft_schedule *s) {
  for (uint32_t i = 0; i < list->count; i++) {
    if (ft_schedule_equal(&list->item[i], s)) return true;
  }
  return false;
}

// Drops what cannot work, and what is there already.
static bool offer(const enumeration *e, const char *compiler, knob_values v) {
  ft_schedule s = {0};
  ft_schedule_set(&s, "block", v.block);
  ft_schedule_set(&s, "buffer", v.buffer);
  ft_schedule_set_text(&s, "compiler", compiler);
  ft_schedule_set(&s, "non_temporal", v.streams);
  ft_schedule_set(&s, "prefetch", v.ahead);
  ft_schedule_set(&s, "split", v.parts);
  ft_schedule_set(&s, "threads", v.threads);
  ft_schedule_set(&s, "unroll", v.unroll);
  ft_schedule_set(&s, "vector", v.vector);
  if (ft_nest_check(e->ir, e->vector_axes, e->target, &s, e->out->arena)) return false;
  if (!is_offered(e->out, &s)) ft_schedules_add(e->out, &s);
  return true;
}

static bool is_big(const enumeration *e) {
  uint64_t cache = e->target->l2_bytes ? e->target->l2_bytes : DEFAULT_CACHE_BYTES;
  return e->ir->workload->write_bytes > cache;
}

// Fewest parts that give each thread work, when rows alone do not; 1: rows do.
static int64_t parts_of(const enumeration *e, int64_t each) {
  int64_t vector = e->lanes;
  int64_t rows = ft_group_ir_points(e->ir, ft_nest_kept(e->ir));
  if (e->is_across) rows = rows / (4 * vector) + 1;
  int64_t wanted = e->threads * each, most = e->points / SPLIT_POINTS;
  if (!e->ir->reduced || rows >= 2 * e->threads || most < 2) return 1;
  return clamp(wanted / rows, 1, clamp(most, 1, 256));
}

// What is best more often than not.
static knob_values first_guess(const enumeration *e) {
  knob_values v = {.parts = 1, .vector = e->lanes};
  v.block = clamp(e->points / (e->threads * 8), 2048, 32768);
  v.threads = e->points < SMALL_POINTS ? 1 : e->threads;
  v.unroll = 2;
  // Reductions across the vectors touch more of each memory page when wide.
  if (e->is_across) {
    v.vector = 4 * e->lanes;
    v.unroll = 1;
  }
  v.streams = is_big(e);
  // Rows that the nearest caches hold for a while.
  v.ahead = e->ir->levels && e->row <= NEAR_ROW ? 2 : 0;
  v.buffer = FT_NEST_SCRATCH;
  v.parts = parts_of(e, 2);
  if (v.parts > 1) v.threads = e->threads;
  return v;
}

// The guess without what does not fit this group.
static knob_values fitted(const enumeration *e, const char *compiler, knob_values v) {
  ft_schedules none = {.arena = e->out->arena};
  enumeration trial = *e;
  trial.out = &none;
  for (int relaxed = 0; relaxed < 32; relaxed++) {
    knob_values w = v;
    if (relaxed & 1) w.buffer = FT_NEST_REREAD;
    if (relaxed & 2) w.ahead = 0;
    if (relaxed & 4) w.streams = 0;
    if (relaxed & 8) w.unroll = 1;
    if (relaxed & 16) w.parts = 1;
    if (offer(&trial, compiler, w)) return w;
  }
  return v;
}

// A knob set to another value.
typedef struct change {
  size_t knob;
  int64_t value;
} change;

#define KNOB(name) offsetof(knob_values, name)

static void apply(knob_values *v, change c) {
  memcpy((char *)v + c.knob, &c.value, sizeof c.value);
}

// |v| with two changes; the second may be none (knob of the first).
static void offer_changed(const enumeration *e, const char *compiler, knob_values v,
                          change a, change b) {
  apply(&v, b);
  apply(&v, a);
  if (v.buffer == FT_NEST_REGISTERS) v.unroll = 1;
  if (v.buffer == FT_NEST_ONLINE) v.ahead = 0;
  offer(e, compiler, v);
}

// The best guess, then what lies around it: every change alone and, for large outputs,
// with the other kind of store.
static void offer_around(const enumeration *e, const char *compiler, knob_values v) {
  int64_t coarse = clamp(e->points / (e->threads * 2), 2048, 262144);
  int64_t wide = e->is_across ? 2 * e->lanes : v.vector;
  const change changes[] = {
      {KNOB(unroll), v.unroll == 4 ? 2 : 4},
      {KNOB(ahead), 0},
      {KNOB(parts), parts_of(e, 8)},
      {KNOB(buffer), FT_NEST_REREAD},
      {KNOB(buffer), FT_NEST_REGISTERS},
      {KNOB(buffer), e->row >= FAR_ROW ? FT_NEST_ONLINE : v.buffer},
      {KNOB(vector), wide},
      {KNOB(threads), e->points >= 4096 ? e->threads : 1},
      {KNOB(block), coarse},
      {KNOB(unroll), 1},
      {KNOB(parts), 1},
  };
  change other = {KNOB(streams), !v.streams};
  offer(e, compiler, v);
  if (is_big(e)) offer_changed(e, compiler, v, other, other);
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    offer_changed(e, compiler, v, changes[i], changes[i]);
    if (is_big(e) && i < 6) offer_changed(e, compiler, v, changes[i], other);
  }
}

void ft_nest_space(const ft_group_ir *ir, uint64_t vector_axes, const ft_target *target,
                   ft_schedules *out) {
  enumeration e = enumerate(ir, vector_axes, target, out);
  for (uint32_t i = 0; i < target->compiler_count; i++) {
    const ft_compiler *compiler = &target->compiler[i];
    knob_values v = first_guess(&e);
    if (!compiler->is_clang) v.vector = e.lanes;
    v = fitted(&e, compiler->name, v);
    // The other compilers may win on register use, not on block size.
    if (i == 0)
      offer_around(&e, compiler->name, v);
    else
      offer(&e, compiler->name, v);
  }
}
