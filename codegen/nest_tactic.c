#include "codegen/nest_tactic.h"

#include "codegen/expressions.h"

static const char *const knobs[] = {"block",   "buffer", "compiler", "non_temporal",
                                    "threads", "vector", NULL};

enum { SMALL_POINTS = 1 << 16, DEFAULT_CACHE_BYTES = 1 << 20 };

uint64_t ft_nest_all(const ft_group_ir *ir) {
  return ir->axis_count == 64 ? UINT64_MAX : ((uint64_t)1 << ir->axis_count) - 1;
}

uint64_t ft_nest_kept(const ft_group_ir *ir) {
  return ft_nest_all(ir) & ~ir->reduced;
}

static ft_nest_choice choice_of(const ft_schedule *schedule, uint64_t vector_axes) {
  int64_t vector = ft_schedule_get(schedule, "vector", 0);
  return (ft_nest_choice){
      .vector_axes = vector_axes,
      .vector = vector > 0 && vector <= 64 ? (uint32_t)vector : 0,
      .block = ft_schedule_get(schedule, "block", 0),
      .streams = ft_schedule_get(schedule, "non_temporal", 0) == 1,
      .buffers = ft_schedule_get(schedule, "buffer", 0) == 1,
  };
}

static bool is_flag(const ft_schedule *schedule, const char *name) {
  int64_t value = ft_schedule_get(schedule, name, -1);
  return value == 0 || value == 1;
}

const char *ft_nest_check(const ft_group_ir *ir, uint64_t vector_axes,
                          const ft_target *target, const ft_schedule *schedule,
                          ft_arena *arena) {
  const char *wrong = ft_schedule_refusal(schedule, knobs, target, arena);
  if (wrong) return wrong;
  if (!is_flag(schedule, "buffer")) return "buffer is not 0 or 1";
  if (!is_flag(schedule, "non_temporal")) return "non_temporal is not 0 or 1";
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
  return FT_OK;
}

// ---- the space -----------------------------------------------------------------------

// Values of the knobs to combine, default first.
typedef struct values {
  int64_t vector[2], block[2], threads[2], streams[2], buffers[2];
  uint32_t vectors, blocks, threadings, streamings, bufferings;
} values;

static int64_t clamp(int64_t n, int64_t low, int64_t high) {
  return n < low ? low : n > high ? high : n;
}

// Single-precision elements in a register.
static int64_t lanes_of(const ft_target *target) {
  return clamp(target->vector_bytes / 4, 4, 16);
}

static bool has_heavy(const ft_group_ir *ir) {
  for (uint32_t i = 0; i < ir->node_count; i++) {
    if (ir->node[i].kind == FT_NODE_COMPUTE && ft_expression_is_heavy(ir->node[i].op))
      return true;
  }
  return false;
}

static void choose_blocks(values *v, int64_t points, int64_t threads) {
  v->block[0] = clamp(points / (threads * 8), 2048, 32768);
  v->block[1] = clamp(points / (threads * 2), 2048, 262144);
  v->blocks = v->block[0] == v->block[1] ? 1 : 2;
}

static values choose_values(const ft_group_ir *ir, uint64_t vector_axes,
                            const ft_target *target) {
  int64_t points = ft_group_ir_points(ir, ft_nest_all(ir));
  int64_t threads = target->threads ? target->threads : 1;
  int64_t lanes = lanes_of(target);
  values v = {.vector = {2 * lanes, lanes}};
  // Two registers a step hide latency. Long expressions want more in flight, not less;
  // reductions across the vectors touch more of each memory page.
  bool is_across = ir->reduced && !(vector_axes & ir->reduced);
  if (has_heavy(ir)) v.vector[1] = 4 * lanes;
  if (is_across) {
    v.vector[0] = 4 * lanes;
    v.vector[1] = 2 * lanes;
  }
  v.vectors = points > lanes ? 2 : 1;
  choose_blocks(&v, points, threads);
  v.threads[v.threadings++] = points < SMALL_POINTS ? 1 : threads;
  if (points < SMALL_POINTS && points >= 4096 && threads > 1)
    v.threads[v.threadings++] = threads;
  uint64_t cache = target->l2_bytes ? target->l2_bytes : DEFAULT_CACHE_BYTES;
  v.streamings = 1;
  if (ir->workload->write_bytes > cache) {
    v.streams[0] = 1;
    v.streamings = 2;
  }
  v.buffers[0] = 1;
  v.bufferings = 2;
  return v;
}

typedef struct enumeration {
  const ft_group_ir *ir;
  uint64_t vector_axes;
  const ft_target *target;
  ft_schedules *out;
} enumeration;

// Drops what cannot work, and what comes to the same as an earlier one.
static void offer(const enumeration *e, const char *compiler, int64_t block,
                  int64_t buffer, int64_t streams, int64_t threads, int64_t vector) {
  ft_schedule s = {0};
  ft_schedule_set(&s, "block", block);
  ft_schedule_set(&s, "buffer", buffer);
  ft_schedule_set_text(&s, "compiler", compiler);
  ft_schedule_set(&s, "non_temporal", streams);
  ft_schedule_set(&s, "threads", threads);
  ft_schedule_set(&s, "vector", vector);
  if (!ft_nest_check(e->ir, e->vector_axes, e->target, &s, e->out->arena))
    ft_schedules_add(e->out, &s);
}

static void combine(const enumeration *e, const values *v, const char *compiler) {
  for (uint32_t t = 0; t < v->threadings; t++)
    for (uint32_t b = 0; b < v->blocks; b++)
      for (uint32_t f = 0; f < v->bufferings; f++)
        for (uint32_t n = 0; n < v->streamings; n++)
          for (uint32_t w = 0; w < v->vectors; w++)
            offer(e, compiler, v->block[b], v->buffers[f], v->streams[n], v->threads[t],
                  v->vector[w]);
}

void ft_nest_space(const ft_group_ir *ir, uint64_t vector_axes, const ft_target *target,
                   ft_schedules *out) {
  enumeration e = {ir, vector_axes, target, out};
  values v = choose_values(ir, vector_axes, target);
  if (!target->compiler_count) return;
  if (!target->compiler[0].is_clang) {
    v.vector[0] = lanes_of(target);
    v.vectors = 1;
  }
  combine(&e, &v, target->compiler[0].name);
  // The other compilers may win on register use, not on block size.
  v.blocks = v.threadings = v.vectors = 1;
  for (uint32_t i = 1; i < target->compiler_count; i++) {
    v.vector[0] = lanes_of(target) * (target->compiler[i].is_clang ? 2 : 1);
    combine(&e, &v, target->compiler[i].name);
  }
}
