#include "codegen/simt_turn_plan.h"

enum { WARP = 32, WORD_BYTES = 4, VECTOR_BYTES = 16, SMALLEST_TILE = 8 };
enum { LARGEST_TILE = 128, MOST_THREADS = 1024 };
// What every chip since sm_80 lends a block (codegen/occupancy.c).
enum { SHARED_BYTES = 101376 };

// Where a tensor lies, seen from two axes.
typedef enum place {
  PLACE_NEAR,
  PLACE_FAR,
  PLACE_NEITHER,  // contiguous along some third axis
  PLACE_FREE,     // does not depend on both: read where it is needed
} place;

enum { NEEDS_NEAR = 1, NEEDS_FAR = 2 };  // a bit each

typedef struct planner {
  const ft_group_ir *ir;
  uint32_t near, far;
  uint8_t *needs;           // [node] tensors of which places are below it
  bool *is_staged, *trial;  // [node] crosses from far to near
  bool *is_seen;            // [node]
  uint32_t bytes;           // of a point's values that cross, both ways
  uint32_t late;            // outputs that cross back
} planner;

static uint64_t bit(uint32_t axis) {
  return (uint64_t)1 << axis;
}

static bool is_power_of_two(int64_t n) {
  return n > 0 && !(n & (n - 1));
}

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

// ---- where tensors lie
// ----------------------------------------------------------------------

static place place_of(const planner *p, const ft_access *access) {
  int64_t near = access->stride[p->near], far = access->stride[p->far];
  if (!near || !far) return PLACE_FREE;
  return near == 1 ? PLACE_NEAR : far == 1 ? PLACE_FAR : PLACE_NEITHER;
}

static bool is_far_output(const planner *p, uint32_t output) {
  return place_of(p, &p->ir->output[output].access) == PLACE_FAR;
}

// Both sides have a tensor, and there is no third one.
static bool has_two_sides(const planner *p) {
  uint32_t count[4] = {0};
  for (uint32_t i = 0; i < p->ir->node_count; i++)
    if (p->ir->node[i].kind == FT_NODE_LOAD) count[place_of(p, &p->ir->node[i].access)]++;
  for (uint32_t i = 0; i < p->ir->output_count; i++)
    count[place_of(p, &p->ir->output[i].access)]++;
  return count[PLACE_NEAR] && count[PLACE_FAR] && !count[PLACE_NEITHER];
}

static void find_needs(planner *p) {
  for (uint32_t i = 0; i < p->ir->node_count; i++) {
    const ft_node *n = &p->ir->node[i];
    p->needs[i] = 0;
    for (uint32_t k = 0; k < n->operand_count; k++)
      p->needs[i] |= p->needs[n->operand[k]];
    if (n->kind != FT_NODE_LOAD) continue;
    place at = place_of(p, &n->access);
    p->needs[i] = at == PLACE_NEAR ? NEEDS_NEAR : at == PLACE_FAR ? NEEDS_FAR : 0;
  }
}

// ---- what crosses
// ---------------------------------------------------------------------------

// 1: far alone; 3: back through shared memory.
static uint32_t phase_of(const planner *p, uint32_t output) {
  if (!is_far_output(p, output)) return 2;
  return p->needs[p->ir->output[output].node] & NEEDS_NEAR ? 3 : 1;
}

// What a tile holds: inputs as they are, so that nothing is rounded twice.
static ft_dtype tile_dtype(const ft_node *n) {
  return n->kind == FT_NODE_LOAD ? n->access.dtype : ft_kir_math_dtype(n->dtype);
}

// Marks where |node| comes over: inputs alone, or the last values that need only them.
static void cross(planner *p, uint32_t node, bool is_input) {
  const ft_node *n = &p->ir->node[node];
  if (!(p->needs[node] & NEEDS_FAR) || p->is_seen[node]) return;
  p->is_seen[node] = true;
  bool is_here = is_input ? n->kind == FT_NODE_LOAD : p->needs[node] == NEEDS_FAR;
  if (is_here) p->trial[node] = true;
  for (uint32_t i = 0; !is_here && i < n->operand_count; i++)
    cross(p, n->operand[i], is_input);
}

static uint32_t cross_all(planner *p, bool is_input) {
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < p->ir->node_count; i++) p->trial[i] = p->is_seen[i] = false;
  for (uint32_t i = 0; i < p->ir->output_count; i++)
    if (phase_of(p, i) != 1) cross(p, p->ir->output[i].node, is_input);
  for (uint32_t i = 0; i < p->ir->node_count; i++)
    if (p->trial[i]) bytes += (uint32_t)ft_dtype_bytes(tile_dtype(&p->ir->node[i]));
  return bytes;
}

// Whichever is fewer bytes; work done early is done once.
static void choose_staged(planner *p) {
  uint32_t inputs = cross_all(p, true), values = cross_all(p, false);
  if (inputs < values) cross_all(p, true);
  for (uint32_t i = 0; i < p->ir->node_count; i++) p->is_staged[i] = p->trial[i];
  p->bytes = inputs < values ? inputs : values;
  p->late = 0;
  for (uint32_t i = 0; i < p->ir->output_count; i++) {
    if (phase_of(p, i) != 3) continue;
    p->bytes += (uint32_t)ft_dtype_bytes(p->ir->output[i].access.dtype);
    p->late++;
  }
}

// ---- which two axes
// ---------------------------------------------------------------------------

static uint64_t inner_axes(const ft_group_ir *ir) {
  uint64_t mask = 0;
  for (uint32_t axis = 0; axis < ir->axis_count; axis++) {
    for (uint32_t i = 0; i < ir->node_count; i++)
      if (ir->node[i].kind == FT_NODE_LOAD && ir->node[i].access.stride[axis] == 1)
        mask |= bit(axis);
    for (uint32_t i = 0; i < ir->output_count; i++)
      if (ir->output[i].access.stride[axis] == 1) mask |= bit(axis);
  }
  return mask;
}

static bool is_better(const planner *p, uint32_t best_bytes, uint32_t best_late) {
  return p->bytes < best_bytes || (p->bytes == best_bytes && p->late < best_late);
}

// The pair that moves fewest bytes across; of equal ones that with fewest late outputs.
static const char *choose_axes(planner *p) {
  uint64_t inner = inner_axes(p->ir);
  uint32_t best_bytes = UINT32_MAX, best_late = 0, near = 0, far = 0;
  for (p->near = 0; p->near < p->ir->axis_count; p->near++)
    for (p->far = 0; p->far < p->ir->axis_count; p->far++) {
      if (p->near == p->far || !(inner & bit(p->near)) || !(inner & bit(p->far)))
        continue;
      if (!has_two_sides(p)) continue;
      find_needs(p);
      choose_staged(p);
      if (!is_better(p, best_bytes, best_late)) continue;
      best_bytes = p->bytes;
      best_late = p->late;
      near = p->near;
      far = p->far;
    }
  if (best_bytes == UINT32_MAX)
    return inner & (inner - 1) ? "its tensors do not lie along two axes"
                               : "all tensors lie along one axis";
  p->near = near;
  p->far = far;
  find_needs(p);
  choose_staged(p);
  return NULL;
}

static const char *group_refusal(const ft_group_ir *ir, ft_arena *arena) {
  if (ir->refusal) return ir->refusal;
  if (ir->levels) return "a reduction";
  uint64_t all = ir->axis_count == 64 ? UINT64_MAX : bit(ir->axis_count) - 1;
  for (uint32_t i = 0; i < ir->output_count; i++)
    if (ir->output[i].domain != all)
      return ft_arena_printf(arena, "an output over %s in loops over %s",
                             ft_group_ir_text(ir, ir->output[i].domain, arena),
                             ft_group_ir_text(ir, all, arena));
  return NULL;
}

// ---- what the choice makes of it
// ---------------------------------------------------------------

static const char *choice_refusal(const ft_simt_turn_choice *c) {
  if (!is_power_of_two(c->threads) || c->threads < WARP || c->threads > MOST_THREADS)
    return "threads is not a power of two from 32 to 1024";
  for (int k = 0; k < FT_TURN_SIDES; k++) {
    uint32_t tile = k == FT_TURN_NEAR ? c->tile_near : c->tile_far;
    uint32_t vector = k == FT_TURN_NEAR ? c->vector_near : c->vector_far;
    if (!is_power_of_two(tile) || tile < SMALLEST_TILE || tile > LARGEST_TILE)
      return "a tile is not a power of two from 8 to 128";
    if (!is_power_of_two(vector) || vector > 8) return "a vector is not 1, 2, 4 or 8";
  }
  return NULL;
}

// Bytes per element of the narrowest tensor on a side.
static uint32_t narrowest(const planner *p, place side) {
  uint32_t least = VECTOR_BYTES;
  for (uint32_t i = 0; i < p->ir->node_count; i++) {
    const ft_node *n = &p->ir->node[i];
    if (n->kind != FT_NODE_LOAD || place_of(p, &n->access) != side) continue;
    uint32_t bytes = (uint32_t)ft_dtype_bytes(n->access.dtype);
    if (bytes < least) least = bytes;
  }
  for (uint32_t i = 0; i < p->ir->output_count; i++) {
    const ft_access *access = &p->ir->output[i].access;
    uint32_t bytes = (uint32_t)ft_dtype_bytes(access->dtype);
    if (place_of(p, access) == side && bytes < least) least = bytes;
  }
  return least;
}

static ft_turn_side side_of(const planner *p, const ft_simt_turn_choice *c,
                            ft_turn_kind kind) {
  bool is_near = kind == FT_TURN_NEAR;
  int64_t other = is_near ? c->tile_far : c->tile_near;
  ft_turn_side s = {.axis = is_near ? p->near : p->far,
                    .tile = is_near ? c->tile_near : c->tile_far,
                    .lanes = (uint16_t)(is_near ? c->vector_near : c->vector_far)};
  s.extent = p->ir->extent[s.axis];
  s.tiles = (s.extent + s.tile - 1) / s.tile;
  s.across = s.tile / s.lanes;
  s.stride = s.across ? c->threads / s.across : 0;
  s.steps = s.stride ? other / s.stride : 0;
  return s;
}

static const char *side_refusal(const planner *p, const ft_turn_side *s, place side,
                                uint32_t threads, ft_arena *arena) {
  uint32_t bytes = s->lanes * narrowest(p, side);
  if (bytes > VECTOR_BYTES)
    return ft_arena_printf(arena, "vectors of %u bytes are too wide", bytes);
  if (s->extent % s->lanes)
    return ft_arena_printf(arena, "an axis of %lld in vectors of %u",
                           (long long)s->extent, s->lanes);
  if (!s->stride || !s->steps)
    return ft_arena_printf(arena, "%u threads do not share rows of %lld vectors evenly",
                           threads, (long long)s->across);
  return NULL;
}

// Rotation by which the lanes of a reading warp, |reader->across| vectors down a column
// and then the next columns, come to lie in chunks of their own.
static int64_t turn_of(const ft_turn_side *writer, const ft_turn_side *reader) {
  int64_t columns = larger(WARP / reader->across, 1);
  return larger(columns / writer->lanes, 1);
}

static ft_turn_tile tile_of(const ft_turn_plan *t, ft_turn_kind writer, uint32_t node,
                            ft_dtype dtype) {
  const ft_turn_side *w = &t->side[writer], *r = &t->side[!writer];
  int64_t word = WORD_BYTES / (int64_t)ft_dtype_bytes(dtype);
  ft_turn_tile tile = {.dtype = dtype, .writer = writer, .node = node};
  tile.chunks = w->across;
  if (t->choice.swizzles) tile.turn = turn_of(w, r);
  tile.pitch = w->tile + (t->choice.swizzles ? 0 : larger(word, 1));
  return tile;
}

static void add_shared(ft_turn_plan *t, const ft_turn_tile *tile) {
  uint64_t rows = (uint64_t)t->side[!tile->writer].tile;
  uint64_t bytes = rows * (uint64_t)tile->pitch * ft_dtype_bytes(tile->dtype);
  t->shared_bytes += (bytes + VECTOR_BYTES - 1) / VECTOR_BYTES * VECTOR_BYTES;
}

static const char *add_tiles(ft_turn_plan *t, const planner *p, ft_arena *arena) {
  const ft_group_ir *ir = t->ir;
  t->in = FT_NEW_ARRAY(arena, ft_turn_tile, ir->node_count);
  t->out = FT_NEW_ARRAY(arena, ft_turn_tile, ir->output_count);
  t->phase = FT_NEW_ARRAY(arena, uint32_t, ir->output_count);
  if (!t->in || !t->out || !t->phase) return "out of memory";
  for (uint32_t i = 0; i < ir->node_count; i++) {
    if (!p->is_staged[i]) continue;
    t->in[t->in_count] = tile_of(t, FT_TURN_FAR, i, tile_dtype(&ir->node[i]));
    add_shared(t, &t->in[t->in_count++]);
  }
  for (uint32_t i = 0; i < ir->output_count; i++) {
    const ft_output *out = &ir->output[i];
    t->phase[i] = phase_of(p, i);
    if (t->phase[i] != 3) continue;
    t->out[t->out_count] = tile_of(t, FT_TURN_NEAR, out->node, out->access.dtype);
    add_shared(t, &t->out[t->out_count++]);
  }
  return NULL;
}

// What |phase| computes |node| from, up to what crossed.
static void need(ft_turn_plan *t, int phase, uint32_t node) {
  const ft_node *n = &t->ir->node[node];
  if (t->is_needed[phase][node]) return;
  for (uint32_t i = 0; phase == 2 && i < t->in_count; i++)
    if (t->in[i].node == node) return;
  t->is_needed[phase][node] = true;
  for (uint32_t i = 0; i < n->operand_count; i++) need(t, phase, n->operand[i]);
}

static const char *add_needs(ft_turn_plan *t, ft_arena *arena) {
  for (int i = 0; i <= FT_TURN_PHASES; i++) {
    t->is_needed[i] = FT_NEW_ARRAY(arena, bool, t->ir->node_count);
    if (!t->is_needed[i]) return "out of memory";
  }
  for (uint32_t i = 0; i < t->in_count; i++) need(t, 1, t->in[i].node);
  for (uint32_t i = 0; i < t->ir->output_count; i++)
    need(t, t->phase[i] == 1 ? 1 : 2, t->ir->output[i].node);
  return NULL;
}

static const char *count_blocks(ft_turn_plan *t, ft_arena *arena) {
  uint64_t all = t->ir->axis_count == 64 ? UINT64_MAX : bit(t->ir->axis_count) - 1;
  uint64_t pair = bit(t->side[FT_TURN_NEAR].axis) | bit(t->side[FT_TURN_FAR].axis);
  int64_t tiles = t->side[FT_TURN_NEAR].tiles * t->side[FT_TURN_FAR].tiles;
  t->others = all & ~pair;
  int64_t points = ft_group_ir_points(t->ir, t->others);
  if (points > INT32_MAX / tiles)
    return ft_arena_printf(arena, "%lld x %lld blocks are too many", (long long)points,
                           (long long)tiles);
  t->grid = points * tiles;
  return NULL;
}

static const char *open_planner(planner *p, const ft_group_ir *ir, ft_arena *arena) {
  *p = (planner){.ir = ir};
  p->needs = FT_NEW_ARRAY(arena, uint8_t, ir->node_count);
  p->is_staged = FT_NEW_ARRAY(arena, bool, ir->node_count);
  p->trial = FT_NEW_ARRAY(arena, bool, ir->node_count);
  p->is_seen = FT_NEW_ARRAY(arena, bool, ir->node_count);
  return p->needs && p->is_staged && p->trial && p->is_seen ? NULL : "out of memory";
}

const char *ft_turn_plan_make(const ft_group_ir *ir, const ft_simt_turn_choice *choice,
                              ft_arena *arena, ft_turn_plan *out) {
  planner p;
  *out = (ft_turn_plan){.ir = ir, .choice = *choice};
  const char *wrong = choice_refusal(choice);
  if (!wrong) wrong = group_refusal(ir, arena);
  if (!wrong) wrong = open_planner(&p, ir, arena);
  if (!wrong) wrong = choose_axes(&p);
  for (int k = 0; k < FT_TURN_SIDES && !wrong; k++) {
    out->side[k] = side_of(&p, choice, (ft_turn_kind)k);
    wrong = side_refusal(&p, &out->side[k], (place)k, choice->threads, arena);
  }
  if (!wrong) wrong = count_blocks(out, arena);
  if (!wrong) wrong = add_tiles(out, &p, arena);
  if (!wrong) wrong = add_needs(out, arena);
  if (!wrong && out->shared_bytes > SHARED_BYTES)
    wrong = ft_arena_printf(arena, "%llu bytes of shared memory are more than %d",
                            (unsigned long long)out->shared_bytes, (int)SHARED_BYTES);
  return wrong;
}
