// Index remaps, windows and contractions, with elementwise work around them.
#include "codegen/loop.h"
#include "codegen/nest.h"
#include "codegen/tactic.h"

static const char *const knobs[] = {"across", "block",  "compiler", "threads",
                                    "tile",   "vector", NULL};

enum { SMALL_WORK = 1 << 16, TILE = 6 };

// Work that no nest has: what the nest refuses for other reasons would be computed again
// and again here. A single primitive must always be a kernel.
static bool is_for_loops(const ft_group *group) {
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &group->graph->primitive[group->primitive[i]];
    ft_op_class class = ft_op_describe(p->op)->class;
    bool has_axes = class == FT_CLASS_E || class == FT_CLASS_R ||
                    p->op == FT_OP_BROADCAST || p->op == FT_OP_TRANSPOSE;
    if (!has_axes) return true;
  }
  return group->primitive_count == 1;
}

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  const char *refusal = ft_nest_refusal(ir, arena);
  *reason = !refusal                             ? "the group is a nest of loops"
            : is_for_loops(&ir->workload->group) ? ft_loop_refusal(ir->workload, arena)
                                                 : refusal;
  return *reason ? -1 : 1;
}

static uint32_t small(const ft_schedule *schedule, const char *name) {
  int64_t value = ft_schedule_get(schedule, name, 0);
  return value > 0 && value <= 64 ? (uint32_t)value : 0;
}

static ft_loop_choice choice_of(const ft_schedule *schedule) {
  return (ft_loop_choice){.vector = small(schedule, "vector"),
                          .tile = small(schedule, "tile"),
                          .block = ft_schedule_get(schedule, "block", 0),
                          .across = ft_schedule_get(schedule, "across", 0) == 1};
}

static const char *check(const ft_group_ir *ir, const ft_target *target,
                         const ft_schedule *schedule, ft_arena *arena) {
  const char *wrong = ft_schedule_refusal(schedule, knobs, target, arena);
  if (wrong) return wrong;
  ft_loop_choice choice = choice_of(schedule);
  int64_t across = ft_schedule_get(schedule, "across", -1);
  if (across != 0 && across != 1) return "across is not 0 or 1";
  bool is_clang = ft_schedule_compiler(schedule, target)->is_clang;
  if (!is_clang && choice.vector * 4 > target->vector_bytes)
    return "gcc takes vectors wider than a register apart";
  ft_loop loop;
  const char *reason;
  if (ft_loop_plan(ir->workload, &choice, arena, &loop, &reason, NULL) != FT_OK)
    return "out of memory";
  return reason;
}

static ft_status build(const ft_group_ir *ir, const ft_schedule *schedule,
                       ft_arena *arena, ft_kernel *out, ft_error *error) {
  ft_loop loop;
  const char *reason;
  ft_loop_choice choice = choice_of(schedule);
  FT_TRY(ft_loop_plan(ir->workload, &choice, arena, &loop, &reason, error));
  if (reason) FT_FAIL(error, FT_INVALID_ARGUMENT, "schedule: %s", reason);
  FT_TRY(ft_loop_build(&loop, arena, &out->kir, error));
  out->grid = loop.grid;
  out->scratch_bytes = 0;
  return FT_OK;
}

// ---- the space ------------------------------------------------------------------------

static int64_t clamp(int64_t n, int64_t low, int64_t high) {
  return n < low ? low : n > high ? high : n;
}

static bool has_product(const ft_group *group) {
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    ft_op op = group->graph->primitive[group->primitive[i]].op;
    if (ft_op_describe(op)->class == FT_CLASS_M) return true;
  }
  return false;
}

typedef struct offering {
  const ft_group_ir *ir;
  const ft_target *target;
  ft_schedules *out;
  int64_t block, threads;
} offering;

static void offer(const offering *o, bool across, int64_t tile, int64_t vector) {
  ft_schedule s = {0};
  ft_schedule_set(&s, "across", across);
  ft_schedule_set(&s, "block", o->block);
  ft_schedule_set_text(&s, "compiler", o->target->compiler[0].name);
  ft_schedule_set(&s, "threads", o->threads);
  ft_schedule_set(&s, "tile", tile);
  ft_schedule_set(&s, "vector", vector);
  if (!check(o->ir, o->target, &s, o->out->arena)) ft_schedules_add(o->out, &s);
}

// How vectors along the inner dim do.
typedef struct habit {
  bool is_strided;  // they gather what they load
  bool shares;      // but rows of a tile share it
} habit;

static habit habit_of(const ft_group_ir *ir, int64_t vector, ft_arena *arena) {
  ft_loop_choice choice = {.vector = (uint32_t)vector, .tile = TILE, .block = 1 << 20};
  ft_loop loop;
  const char *reason;
  habit h = {0};
  if (ft_loop_plan(ir->workload, &choice, arena, &loop, &reason, NULL) != FT_OK || reason)
    return h;
  for (uint32_t i = 0; i < loop.section_count; i++) {
    h.is_strided |= loop.section[i].strided || loop.section[i].is_scalar;
    h.shares |= loop.section[i].tile > 2;
  }
  return h;
}

static offering offering_of(const ft_group_ir *ir, const ft_target *target,
                            ft_schedules *out) {
  const ft_group *group = &ir->workload->group;
  double work = ft_loop_work(ir->workload), points = 1;
  for (uint32_t o = 0; o < group->output_count; o++)
    points += (double)ft_shape_elements(&group->graph->value[group->output[o]].shape);
  int64_t all = target->threads ? target->threads : 1;
  int64_t least = clamp((int64_t)(32768 * points / (work + 1)), 64, 4096);
  return (offering){.ir = ir,
                    .target = target,
                    .out = out,
                    .threads = work < SMALL_WORK ? 1 : all,
                    .block = clamp((int64_t)(points / (double)(all * 8)), least, 65536)};
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  if (!target->compiler_count) return;
  offering o = offering_of(ir, target, out);
  int64_t lanes = clamp(target->vector_bytes / 4, 4, 16);
  int64_t wide = target->compiler[0].is_clang ? 2 * lanes : lanes;
  bool has_products = has_product(&ir->workload->group);
  habit h = habit_of(ir, wide, out->arena);
  if (h.is_strided && !h.shares) offer(&o, true, 4, lanes);
  if (has_products) {
    offer(&o, false, TILE, wide);
    offer(&o, false, 8, lanes);
  } else {
    offer(&o, false, 1, wide);
    if (wide != lanes) offer(&o, false, 1, lanes);
  }
  if (h.is_strided && h.shares) offer(&o, true, 4, lanes);
}

const ft_tactic ft_tactic_loop = {
    .name = "loop", .match = match, .space = space, .check = check, .build = build};
