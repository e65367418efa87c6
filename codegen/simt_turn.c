// The kernel of a turn. Its invariants:
//  1. between the barriers a cell of a tile has one writer, and is read after the barrier
//     by whoever walks the other axis;
//  2. what is read from a tile was written: both walks have the same guards;
//  3. the emitter knows nothing across phases: vectors lie along another axis.
#include "codegen/simt_turn.h"

#include <string.h>

#include "codegen/simt_nest_emit.h"
#include "codegen/simt_turn_plan.h"

enum { MOST_ELEMENTS = 16 };  // elements that a thread asks for at once

typedef struct turner {
  ft_simt_emitter e;
  ft_turn_plan plan;
  ft_simt_plan nest[FT_TURN_SIDES];  // what the emitter has to know of a side
  ft_kir_id first[FT_TURN_SIDES];    // element of the tile along the axis
  ft_kir_id across[FT_TURN_SIDES], down[FT_TURN_SIDES];  // the thread's first vector
  ft_kir_id row[FT_SIMT_MOST_UNROLL];  // [point] along the other axis, in the tile
  int phase;
  ft_kir_id *name;  // indices that have one
  size_t name_count, name_capacity;
} turner;

static ft_turn_kind side_of_phase(int phase) {
  return phase == 2 ? FT_TURN_NEAR : FT_TURN_FAR;
}

static const ft_turn_side *side_of(const turner *t) {
  return &t->plan.side[side_of_phase(t->phase)];
}

static const ft_turn_side *other_side(const turner *t) {
  return &t->plan.side[!side_of_phase(t->phase)];
}

static ft_kir_id number(turner *t, int64_t n) {
  return ft_simt_nest_number(&t->e, n);
}

static ft_kir_id calculate(turner *t, ft_kir_op op, ft_kir_id a, ft_kir_id b) {
  return ft_simt_nest_index(&t->e, op, a, b);
}

static ft_kir_id times(turner *t, ft_kir_id a, int64_t n) {
  return calculate(t, FT_KIR_IMUL, a, number(t, n));
}

static ft_kir_id sum(turner *t, ft_kir_id a, ft_kir_id b) {
  return calculate(t, FT_KIR_IADD, a, b);
}

// A sum may be one of its terms, which has a name already.
static ft_kir_id named(turner *t, ft_kir_id index) {
  for (size_t i = 0; i < t->name_count; i++)
    if (t->name[i] == index) return index;
  if (FT_GROW(t->e.arena, &t->name, t->name_count, &t->name_capacity)) {
    t->e.kir->failed = true;
    return index;
  }
  t->name[t->name_count++] = index;
  return ft_simt_nest_named(&t->e, index);
}

// ---- places in a tile
// -----------------------------------------------------------------------

static ft_kir_id rotated(turner *t, const ft_turn_tile *tile, ft_kir_id chunk,
                         ft_kir_id group) {
  if (!tile->turn) return chunk;
  ft_kir_id at = sum(t, chunk, times(t, group, tile->turn));
  return calculate(t, FT_KIR_IMOD, at, number(t, tile->chunks));
}

// The writer's vector at the current point.
static ft_kir_id written_place(turner *t, const ft_turn_tile *tile) {
  const ft_turn_side *writer = side_of(t), *reader = other_side(t);
  ft_kir_id row = t->row[t->e.at];
  ft_kir_id group = calculate(t, FT_KIR_IDIV, row, number(t, reader->lanes));
  ft_kir_id chunk = rotated(t, tile, t->across[tile->writer], group);
  return sum(t, times(t, row, tile->pitch), times(t, chunk, writer->lanes));
}

// The first element of the reader's vector: the others are a pitch apart.
static ft_kir_id read_place(turner *t, const ft_turn_tile *tile) {
  const ft_turn_side *reader = side_of(t), *writer = other_side(t);
  ft_kir_id column = t->row[t->e.at], group = t->across[!tile->writer];
  ft_kir_id lanes = number(t, writer->lanes);
  ft_kir_id chunk = rotated(t, tile, calculate(t, FT_KIR_IDIV, column, lanes), group);
  ft_kir_id place = times(t, group, reader->lanes * tile->pitch);
  place = sum(t, place, times(t, chunk, writer->lanes));
  return sum(t, place, calculate(t, FT_KIR_IMOD, column, lanes));
}

static void put_down(turner *t, const ft_turn_tile *tile) {
  ft_kir_id value = ft_simt_nest_emit(&t->e, tile->node);
  ft_kir_store(t->e.kir, ft_simt_nest_here(&t->e), tile->buffer, value,
               written_place(t, tile), 1, FT_KIR_CACHED);
}

// The node's value is known from here on.
static void pick_up(turner *t, const ft_turn_tile *tile) {
  ft_kir_id value = ft_kir_load(t->e.kir, ft_simt_nest_here(&t->e), tile->buffer,
                                side_of(t)->lanes, read_place(t, tile), tile->pitch);
  *ft_simt_nest_known(&t->e, tile->node) =
      (ft_simt_known){.value = value, .depth = t->e.depth};
}

// ---- a thread's points of a phase
// -----------------------------------------------------------

static void load_inputs(turner *t) {
  const ft_group_ir *ir = t->plan.ir;
  for (uint32_t i = 0; i < ir->node_count; i++)
    if (ir->node[i].kind == FT_NODE_LOAD && t->plan.is_needed[t->phase][i])
      ft_simt_nest_emit(&t->e, i);
}

static void pick_up_all(turner *t) {
  if (t->phase == 2)
    for (uint32_t i = 0; i < t->plan.in_count; i++) pick_up(t, &t->plan.in[i]);
  if (t->phase == 3)
    for (uint32_t i = 0; i < t->plan.out_count; i++) pick_up(t, &t->plan.out[i]);
}

static void leave_all(turner *t) {
  if (t->phase == 1)
    for (uint32_t i = 0; i < t->plan.in_count; i++) put_down(t, &t->plan.in[i]);
  for (uint32_t i = 0; i < t->plan.ir->output_count; i++)
    if (t->plan.phase[i] == (uint32_t)t->phase)
      ft_simt_nest_store(&t->e, &t->plan.ir->output[i]);
  if (t->phase == 2)
    for (uint32_t i = 0; i < t->plan.out_count; i++) put_down(t, &t->plan.out[i]);
}

// Side by side: all that is read is asked for before any of it is used.
// In the scope that is entered, behind its guard.
static void put_points(turner *t) {
  ft_simt_emitter *e = &t->e;
  e->scope[e->depth].open |= (uint64_t)1 << side_of(t)->axis;
  e->scope[e->depth].open |= (uint64_t)1 << other_side(t)->axis;
  for (e->at = 0; e->at < e->points; e->at++) {
    load_inputs(t);
    if (e->at == 0) ft_simt_nest_tell(e);
  }
  for (e->at = 0; e->at < e->points; e->at++) pick_up_all(t);
  for (e->at = 0; e->at < e->points; e->at++) leave_all(t);
  e->at = 0;
}

// Point |u| is |from| + u steps down from the thread's first.
static void place_points(turner *t, ft_kir_id from) {
  const ft_turn_side *s = side_of(t), *o = other_side(t);
  ft_simt_emitter *e = &t->e;
  ft_turn_kind kind = side_of_phase(t->phase);
  ft_kir_id along = sum(t, t->first[kind], times(t, t->across[kind], s->lanes));
  along = named(t, along);
  ft_kir_id down = named(t, sum(t, t->down[kind], from));
  for (uint32_t u = 0; u < e->points; u++) {
    t->row[u] = named(t, sum(t, down, number(t, u * s->stride)));
    e->point[u].index[s->axis] = along;
    e->point[u].index[o->axis] = named(t, sum(t, t->first[!kind], t->row[u]));
  }
}

// ---- a phase
// -----------------------------------------------------------------------------

static uint32_t points_of(const ft_turn_side *s) {
  int64_t points = MOST_ELEMENTS / s->lanes;
  if (points > FT_SIMT_MOST_UNROLL) points = FT_SIMT_MOST_UNROLL;
  return (uint32_t)(points < s->steps ? points : s->steps);
}

// A tile of which every element exists.
static void walk_whole(turner *t) {
  ft_simt_emitter *e = &t->e;
  const ft_turn_side *s = side_of(t);
  e->points = points_of(s);
  bool is_once = e->points == s->steps;
  int64_t turn = e->points * s->stride;
  ft_kir_stmt *loop = is_once
                          ? NULL
                          : ft_kir_for(e->kir, FT_KIR_SERIAL, number(t, 0),
                                       number(t, other_side(t)->tile), number(t, turn));
  ft_simt_nest_enter(e, is_once ? ft_simt_nest_here(e) : &loop->body);
  place_points(t, is_once ? number(t, 0) : loop->value);
  put_points(t);
  ft_simt_nest_leave(e);
  if (loop) ft_kir_append(ft_simt_nest_here(e), loop);
}

static bool is_cut(const ft_turn_side *s) {
  return s->extent % s->tile != 0;
}

// "index < extent" along the sides whose last tile is short.
static ft_kir_id inside(turner *t) {
  ft_kir_id both = number(t, 1);
  for (int k = 0; k < FT_TURN_SIDES; k++) {
    const ft_turn_side *s = &t->plan.side[k];
    if (!is_cut(s)) continue;
    ft_kir_id index = t->e.point[0].index[s->axis];
    ft_kir_id is_in = calculate(t, FT_KIR_ILESS, index, number(t, s->extent));
    both = calculate(t, FT_KIR_IMUL, both, is_in);
  }
  return both;
}

// A tile at an end: each point is asked for.
static void walk_cut(turner *t) {
  ft_simt_emitter *e = &t->e;
  const ft_turn_side *s = side_of(t);
  e->points = 1;
  ft_kir_stmt *loop = ft_kir_for(e->kir, FT_KIR_SERIAL, number(t, 0),
                                 number(t, other_side(t)->tile), number(t, s->stride));
  ft_simt_nest_open(e, loop);
  place_points(t, loop->value);
  ft_kir_stmt *branch = ft_kir_if(e->kir, inside(t));
  ft_simt_nest_open(e, branch);
  put_points(t);
  ft_simt_nest_close(e, branch);
  ft_simt_nest_close(e, loop);
}

static ft_kir_id is_whole(turner *t) {
  ft_kir_id both = number(t, 1);
  for (int k = 0; k < FT_TURN_SIDES; k++) {
    const ft_turn_side *s = &t->plan.side[k];
    if (!is_cut(s)) continue;
    ft_kir_id last = sum(t, t->first[k], number(t, s->tile - 1));
    ft_kir_id is_in = calculate(t, FT_KIR_ILESS, last, number(t, s->extent));
    both = calculate(t, FT_KIR_IMUL, both, is_in);
  }
  return both;
}

static bool has_whole_tile(const turner *t) {
  const ft_turn_side *s = t->plan.side;
  return s[0].extent >= s[0].tile && s[1].extent >= s[1].tile;
}

static void walk(turner *t) {
  ft_simt_emitter *e = &t->e;
  if (!is_cut(&t->plan.side[0]) && !is_cut(&t->plan.side[1])) {
    walk_whole(t);
    return;
  }
  if (!has_whole_tile(t)) {
    walk_cut(t);
    return;
  }
  ft_kir_stmt *branch = ft_kir_if(e->kir, is_whole(t));
  ft_simt_nest_open(e, branch);
  walk_whole(t);
  ft_simt_nest_leave(e);
  ft_simt_nest_enter(e, &branch->otherwise);
  walk_cut(t);
  ft_simt_nest_close(e, branch);
}

static bool has_work(const turner *t) {
  if (t->phase == 1 && t->plan.in_count) return true;
  for (uint32_t i = 0; i < t->plan.ir->output_count; i++)
    if (t->plan.phase[i] == (uint32_t)t->phase) return true;
  return t->phase == 2 && t->plan.out_count;
}

static void forget_all(turner *t) {
  for (uint32_t u = 0; u < FT_SIMT_MOST_UNROLL; u++)
    memset(t->e.point[u].known, 0, t->plan.ir->node_count * sizeof(ft_simt_known));
}

static void put_phase(turner *t, int phase, uint32_t tiles_behind) {
  t->phase = phase;
  t->e.plan = &t->nest[side_of_phase(phase)];
  forget_all(t);
  if (has_work(t)) walk(t);
  if (tiles_behind) ft_kir_barrier(t->e.kir, ft_simt_nest_here(&t->e));
}

// ---- the block
// -----------------------------------------------------------------------------

// The tile's corner and the other axes, for all points; near tiles go fastest.
static void find_tile(turner *t, ft_kir_id block) {
  const ft_group_ir *ir = t->plan.ir;
  ft_simt_emitter *e = &t->e;
  int64_t inner = 1;
  for (int k = 0; k < FT_TURN_SIDES; k++) {
    const ft_turn_side *s = &t->plan.side[k];
    ft_kir_id tile = calculate(t, FT_KIR_IDIV, block, number(t, inner));
    tile = calculate(t, FT_KIR_IMOD, tile, number(t, s->tiles));
    t->first[k] = named(t, times(t, tile, s->tile));
    inner *= s->tiles;
  }
  for (uint32_t axis = ir->axis_count; axis-- > 0;) {
    if (!(t->plan.others >> axis & 1)) continue;
    ft_kir_id index = calculate(t, FT_KIR_IDIV, block, number(t, inner));
    index = named(t, calculate(t, FT_KIR_IMOD, index, number(t, ir->extent[axis])));
    for (uint32_t u = 0; u < FT_SIMT_MOST_UNROLL; u++) e->point[u].index[axis] = index;
    inner *= ir->extent[axis];
  }
  e->scope[e->depth].open |= t->plan.others;
}

static void find_thread(turner *t) {
  for (int k = 0; k < FT_TURN_SIDES; k++) {
    ft_kir_id across = number(t, t->plan.side[k].across);
    t->across[k] = named(t, calculate(t, FT_KIR_IMOD, t->e.thread, across));
    t->down[k] = named(t, calculate(t, FT_KIR_IDIV, t->e.thread, across));
  }
}

static void declare(turner *t, ft_turn_tile *tile) {
  int64_t rows = t->plan.side[!tile->writer].tile;
  tile->buffer =
      ft_kir_shared(t->e.kir, ft_simt_nest_here(&t->e), tile->dtype, rows * tile->pitch);
}

static void put_block(turner *t, ft_kir_id block) {
  find_tile(t, block);
  find_thread(t);
  for (uint32_t i = 0; i < t->plan.in_count; i++) declare(t, &t->plan.in[i]);
  for (uint32_t i = 0; i < t->plan.out_count; i++) declare(t, &t->plan.out[i]);
  put_phase(t, 1, t->plan.in_count);
  put_phase(t, 2, t->plan.out_count);
  put_phase(t, 3, 0);
}

// ---- opening
// -------------------------------------------------------------------------------

static ft_status open_turner(turner *t, ft_arena *arena, ft_error *error) {
  const ft_group_ir *ir = t->plan.ir;
  const ft_group *group = &ir->workload->group;
  ft_simt_emitter *e = &t->e;
  *e = (ft_simt_emitter){.ir = ir, .arena = arena, .points = 1};
  e->kir = ft_kir_create(arena);
  e->argument = FT_NEW_ARRAY(arena, uint32_t, group->input_count + group->output_count);
  ft_simt_known *known =
      FT_NEW_ARRAY(arena, ft_simt_known, (size_t)ir->node_count * FT_SIMT_MOST_UNROLL);
  bool *kept = FT_NEW_ARRAY(arena, bool, ir->node_count);
  FT_OOM_IF(!e->kir || !e->argument || !known || !kept, error);
  for (uint32_t u = 0; u < FT_SIMT_MOST_UNROLL; u++)
    e->point[u].known = known + (size_t)u * ir->node_count;
  for (int k = 0; k < FT_TURN_SIDES; k++)
    t->nest[k] = (ft_simt_plan){.ir = ir,
                                .choice = {.streams = t->plan.choice.streams},
                                .has_vector = true,
                                .vector_axis = t->plan.side[k].axis,
                                .lanes = t->plan.side[k].lanes,
                                .is_kept = kept};
  return FT_OK;
}

const char *ft_simt_turn_refusal(const ft_group_ir *ir, const ft_simt_turn_choice *choice,
                                 ft_arena *arena) {
  ft_turn_plan plan;
  return ft_turn_plan_make(ir, choice, arena, &plan);
}

ft_status ft_simt_turn_build(const ft_group_ir *ir, const ft_simt_turn_choice *choice,
                             ft_arena *arena, ft_kir **out, ft_error *error) {
  turner *t = FT_NEW(arena, turner);
  FT_OOM_IF(!t, error);
  const char *wrong = ft_turn_plan_make(ir, choice, arena, &t->plan);
  if (wrong) FT_FAIL(error, FT_INTERNAL, "a turn that is refused: %s", wrong);
  FT_TRY(open_turner(t, arena, error));
  ft_simt_emitter *e = &t->e;
  ft_kir_stmt *grid = ft_kir_for(e->kir, FT_KIR_GRID, number(t, 0),
                                 number(t, t->plan.grid), number(t, 1));
  ft_kir_stmt *threads = ft_kir_for(e->kir, FT_KIR_THREAD, number(t, 0),
                                    number(t, choice->threads), number(t, 1));
  e->thread = threads->value;
  ft_simt_nest_enter(e, &threads->body);
  put_block(t, grid->value);
  ft_simt_nest_leave(e);
  ft_kir_append(&grid->body, threads);
  ft_kir_append(&e->kir->body, grid);
  FT_OOM_IF(e->kir->failed, error);
  *out = e->kir;
  return FT_OK;
}
