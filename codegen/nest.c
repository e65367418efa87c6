#include "codegen/nest.h"

#include "codegen/expressions.h"

enum { CACHE_LINE = 64, MAX_BUFFERED_BYTES = 1 << 20, TILE = 64 };

static uint64_t all_axes(const ft_group_ir *ir) {
  return ir->axis_count == 64 ? UINT64_MAX : ((uint64_t)1 << ir->axis_count) - 1;
}

static uint64_t bit(uint32_t axis) {
  return (uint64_t)1 << axis;
}

// ---- legality -----------------------------------------------------------------------

static const char *reduction_refusal(const ft_group_ir *ir, const ft_node *n,
                                     ft_arena *arena) {
  if (n->reduced != ir->reduced)
    return ft_arena_printf(arena, "reduces %s and, elsewhere, %s",
                           ft_group_ir_text(ir, n->reduced, arena),
                           ft_group_ir_text(ir, ir->reduced & ~n->reduced, arena));
  if (n->domain != all_axes(ir))
    return ft_arena_printf(arena, "reduces %s beside values over %s",
                           ft_group_ir_text(ir, n->domain, arena),
                           ft_group_ir_text(ir, all_axes(ir), arena));
  return NULL;
}

const char *ft_nest_refusal(const ft_group_ir *ir, ft_arena *arena) {
  if (ir->refusal) return ir->refusal;
  for (uint32_t i = 0; i < ir->node_count; i++) {
    if (ir->node[i].kind != FT_NODE_REDUCE) continue;
    const char *reason = reduction_refusal(ir, &ir->node[i], arena);
    if (reason) return reason;
  }
  for (uint32_t i = 0; i < ir->output_count; i++) {
    uint64_t domain = ir->output[i].domain;
    if (domain == all_axes(ir) || domain == (all_axes(ir) & ~ir->reduced)) continue;
    return ft_arena_printf(arena, "an output over %s in loops over %s",
                           ft_group_ir_text(ir, domain, arena),
                           ft_group_ir_text(ir, all_axes(ir), arena));
  }
  return NULL;
}

// ---- choosing axes --------------------------------------------------------------------

static double access_gain(const ft_access *access, uint32_t axis) {
  double bytes = (double)access->count * (double)ft_dtype_bytes(access->dtype);
  if (access->stride[axis] == 1) return bytes;
  return access->stride[axis] == 0 ? 0.5 * bytes : 0;
}

static double axis_gain(const ft_group_ir *ir, uint32_t axis) {
  double gain = 0;
  for (uint32_t i = 0; i < ir->node_count; i++) {
    if (ir->node[i].kind == FT_NODE_LOAD) gain += access_gain(&ir->node[i].access, axis);
  }
  for (uint32_t i = 0; i < ir->output_count; i++)
    gain += 2 * access_gain(&ir->output[i].access, axis);
  // A short axis fills no vector: a strided long one may be better.
  return ir->extent[axis] < 8 ? gain * (double)ir->extent[axis] / 32 : gain;
}

uint32_t ft_nest_best_axis(const ft_group_ir *ir, uint64_t candidates) {
  uint32_t best = FT_MAX_AXES;
  double best_gain = -1;
  for (uint32_t axis = 0; axis < ir->axis_count; axis++) {
    if (!(candidates & bit(axis))) continue;
    double gain = axis_gain(ir, axis);
    bool is_longer = best < FT_MAX_AXES && ir->extent[axis] > ir->extent[best];
    if (gain < best_gain || (gain == best_gain && !is_longer)) continue;
    best = axis;
    best_gain = gain;
  }
  return best;
}

// How far apart an axis's neighbours lie, over all tensors: outer loops step far.
static double axis_reach(const ft_group_ir *ir, uint32_t axis) {
  double reach = 0;
  for (uint32_t i = 0; i < ir->output_count; i++)
    reach += 2.0 * (double)ir->output[i].access.stride[axis];
  for (uint32_t i = 0; i < ir->node_count; i++) {
    if (ir->node[i].kind == FT_NODE_LOAD)
      reach += (double)ir->node[i].access.stride[axis];
  }
  return reach;
}

static uint32_t order_axes(const ft_group_ir *ir, uint64_t mask, uint32_t *out) {
  uint32_t count = 0;
  for (uint32_t axis = 0; axis < ir->axis_count; axis++) {
    if (!(mask & bit(axis))) continue;
    uint32_t at = count++;
    for (; at > 0 && axis_reach(ir, out[at - 1]) < axis_reach(ir, axis); at--)
      out[at] = out[at - 1];
    out[at] = axis;
  }
  return count;
}

// ---- the plan
// -----------------------------------------------------------------------------

static uint16_t fitting_lanes(uint32_t wanted, int64_t extent) {
  uint32_t lanes = 1;
  while (2 * lanes <= wanted && 2 * (int64_t)lanes <= extent) lanes *= 2;
  return (uint16_t)lanes;
}

static int64_t at_least_one(int64_t n) {
  return n < 1 ? 1 : n;
}

// True when some tensor is contiguous along another kept axis than the vector axis: a
// transpose. Each cache line it reads then serves several rows, if they come soon.
static bool reads_across(const ft_nest *nest) {
  for (uint32_t i = 0; i < nest->ir->node_count; i++) {
    const ft_node *n = &nest->ir->node[i];
    if (n->kind != FT_NODE_LOAD || n->access.stride[nest->vector_axis] < 2) continue;
    for (uint32_t axis = 0; axis < nest->ir->axis_count; axis++) {
      if ((nest->kept & bit(axis)) && n->access.stride[axis] == 1) return true;
    }
  }
  for (uint32_t i = 0; i < nest->ir->output_count; i++) {
    if (nest->ir->output[i].access.stride[nest->vector_axis] > 1) return true;
  }
  return false;
}

// A row of a kept vector axis is cut when it is longer than a block.
static void cut(ft_nest *nest, int64_t block, int64_t row_length) {
  int64_t extent = nest->has_vector ? nest->ir->extent[nest->vector_axis] : 1;
  bool is_kept = nest->has_vector && (nest->kept & bit(nest->vector_axis));
  nest->chunk = extent;
  nest->chunks = 1;
  nest->rows_per_block = at_least_one(block / at_least_one(row_length));
  if (!is_kept) return;
  bool is_tiled = reads_across(nest) && extent >= 2 * TILE;
  int64_t depth = at_least_one(row_length / extent);  // of the reduction at one point
  int64_t across = block / depth;                     // same work per block
  if (is_tiled) across = TILE;
  across = across / CACHE_LINE * CACHE_LINE;
  if (across < CACHE_LINE) across = CACHE_LINE;
  if (across < nest->lanes) across = nest->lanes;
  if (across >= extent) return;
  nest->rows_per_block = is_tiled ? at_least_one(block / TILE / depth) : 1;
  nest->chunk = across;
  nest->chunks = extent / across;
}

static const char *count_blocks(ft_nest *nest, ft_arena *arena) {
  if (nest->rows_per_block > nest->rows) nest->rows_per_block = nest->rows;
  int64_t row_blocks = (nest->rows + nest->rows_per_block - 1) / nest->rows_per_block;
  if (row_blocks > INT32_MAX / nest->chunks)
    return ft_arena_printf(arena, "%lld x %lld blocks are too many",
                           (long long)row_blocks, (long long)nest->chunks);
  nest->grid = (uint32_t)(row_blocks * nest->chunks);
  return NULL;
}

static const char *choose_vector(ft_nest *nest, const ft_nest_choice *choice) {
  uint32_t axis = ft_nest_best_axis(nest->ir, choice->vector_axes);
  nest->has_vector = axis < FT_MAX_AXES;
  nest->vector_axis = nest->has_vector ? axis : 0;
  nest->lanes = 1;
  if (!choice->vector || choice->vector & (choice->vector - 1) || choice->vector > 64)
    return "vector is not a power of two up to 64";
  if (nest->has_vector)
    nest->lanes = fitting_lanes(choice->vector, nest->ir->extent[axis]);
  return NULL;
}

// ---- options
// ------------------------------------------------------------------------------

// Every vector that starts at a multiple of |lanes| must start at a cache line.
bool ft_nest_can_stream(const ft_nest *nest, const ft_access *access) {
  int64_t size = (int64_t)ft_dtype_bytes(access->dtype);
  if (!nest->has_vector || access->stride[nest->vector_axis] != 1) return false;
  if (nest->lanes * size % CACHE_LINE) return false;
  if (nest->chunks > 1 && nest->chunk * size % CACHE_LINE) return false;
  for (uint32_t axis = 0; axis < nest->ir->axis_count; axis++) {
    if (axis != nest->vector_axis && access->stride[axis] * size % CACHE_LINE)
      return false;
  }
  return true;
}

// Marks what |node| is computed from, itself included.
static void mark_cone(const ft_group_ir *ir, uint32_t node, bool *cone) {
  for (uint32_t i = 0; i < ir->node_count; i++) cone[i] = i == node;
  for (uint32_t i = node + 1; i-- > 0;) {
    for (uint32_t k = 0; cone[i] && k < ir->node[i].operand_count; k++)
      cone[ir->node[i].operand[k]] = true;
  }
}

// Notes that pass |pass| needs |node| and all it is computed from.
static void note_pass(const ft_group_ir *ir, uint32_t node, uint32_t pass, bool *cone,
                      uint32_t *first, uint32_t *last) {
  mark_cone(ir, node, cone);
  for (uint32_t i = 0; i < ir->node_count; i++) {
    if (!cone[i]) continue;
    if (!first[i] || pass < first[i]) first[i] = pass;
    if (pass > last[i]) last[i] = pass;
  }
}

static bool is_worth_keeping(const ft_nest *nest, const ft_node *n) {
  if (n->kind != FT_NODE_COMPUTE || !ft_expression_is_heavy(n->op)) return false;
  int64_t bytes = nest->ir->extent[nest->vector_axis] * (int64_t)ft_dtype_bytes(n->dtype);
  return (n->mask & nest->reduced) && bytes <= MAX_BUFFERED_BYTES;
}

// Expensive values over the row that an earlier pass computes and a later one needs.
// False when out of memory.
static bool choose_buffered(ft_nest *nest, ft_arena *arena) {
  const ft_group_ir *ir = nest->ir;
  bool *cone = FT_NEW_ARRAY(arena, bool, ir->node_count);
  uint32_t *first = FT_NEW_ARRAY(arena, uint32_t, ir->node_count);
  uint32_t *last = FT_NEW_ARRAY(arena, uint32_t, ir->node_count);
  bool *kept = FT_NEW_ARRAY(arena, bool, ir->node_count);
  if (!cone || !first || !last || !kept) return false;
  for (uint32_t i = 0; i < ir->node_count; i++) {
    const ft_node *n = &ir->node[i];
    if (n->kind == FT_NODE_REDUCE)
      note_pass(ir, n->operand[0], n->level, cone, first, last);
  }
  for (uint32_t i = 0; i < ir->output_count; i++) {
    if (ir->output[i].domain & nest->reduced)
      note_pass(ir, ir->output[i].node, ft_nest_store_pass(nest, i), cone, first, last);
  }
  bool is_row = nest->reduced_count == 1 && nest->has_vector &&
                nest->reduced_order[0] == nest->vector_axis;
  for (uint32_t i = 0; is_row && i < ir->node_count; i++) {
    kept[i] = first[i] && last[i] > first[i] && is_worth_keeping(nest, &ir->node[i]);
    nest->has_buffer |= kept[i];
  }
  nest->is_buffered = kept;
  return true;
}

uint32_t ft_nest_store_pass(const ft_nest *nest, uint32_t output) {
  uint32_t level = nest->ir->node[nest->ir->output[output].node].level;
  return level < nest->ir->levels ? level + 1 : nest->ir->levels + 1;
}

static const char *check_options(const ft_nest *nest) {
  if (nest->streams) {
    bool any = false;
    for (uint32_t i = 0; i < nest->ir->output_count; i++)
      any |= ft_nest_can_stream(nest, &nest->ir->output[i].access);
    if (!any) return "no output can be streamed";
  }
  if (nest->buffers && !nest->has_buffer) return "nothing is worth a buffer";
  return NULL;
}

const char *ft_nest_plan(const ft_group_ir *ir, const ft_nest_choice *choice,
                         ft_nest *out, ft_arena *arena) {
  *out = (ft_nest){.ir = ir, .reduced = ir->reduced};
  out->kept = all_axes(ir) & ~ir->reduced;
  out->streams = choice->streams;
  out->buffers = choice->buffers;
  if (choice->block < 1) return "block is not positive";
  const char *wrong = choose_vector(out, choice);
  if (wrong) return wrong;
  uint64_t vector = out->has_vector ? bit(out->vector_axis) : 0;
  out->kept_count = order_axes(ir, out->kept & ~vector, out->kept_order);
  out->reduced_count = order_axes(ir, out->reduced & ~vector, out->reduced_order);
  if (out->reduced & vector) out->reduced_order[out->reduced_count++] = out->vector_axis;
  out->rows = ft_group_ir_points(ir, out->kept & ~vector);
  cut(out, choice->block, ft_group_ir_points(ir, out->reduced | vector));
  wrong = count_blocks(out, arena);
  if (wrong) return wrong;
  if (out->buffers && !choose_buffered(out, arena)) return "out of memory";
  return check_options(out);
}
