#include "codegen/nest.h"

enum { CACHE_LINE = 64, TILE = 64, MAX_ROW_NODES = 512 };

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

// ---- the plan ------------------------------------------------------------------------

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
  if (row_blocks > INT32_MAX / nest->chunks / nest->parts)
    return ft_arena_printf(arena, "%lld x %lld blocks are too many",
                           (long long)row_blocks, (long long)nest->chunks * nest->parts);
  nest->grid = (uint32_t)(row_blocks * nest->chunks * nest->parts);
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

// ---- the split
// -------------------------------------------------------------------------

// Elements of |axis| that may not be torn apart: what its accumulators take at a time.
static int64_t split_unit(const ft_nest *nest, uint32_t axis) {
  if (axis != nest->reduced_order[nest->reduced_count - 1]) return 1;
  bool is_vector = nest->has_vector && axis == nest->vector_axis;
  return (is_vector ? nest->lanes : 1) * (int64_t)nest->unroll * FT_NEST_CHUNK;
}

static const char *split_refusal(const ft_nest *nest) {
  if (nest->ir->levels != 1) return "split takes one level of reductions";
  for (uint32_t i = 0; i < nest->ir->output_count; i++) {
    if ((nest->ir->output[i].domain & nest->reduced) && ft_nest_store_pass(nest, i) > 1)
      return "split takes no output over the row that needs its reductions";
  }
  return NULL;
}

// Cuts the reduced axis that has most to cut.
static const char *split(ft_nest *nest, uint32_t parts) {
  nest->parts = parts;
  if (parts == 1) return NULL;
  if (parts < 1 || parts > INT16_MAX) return "split is not a number of parts";
  const char *wrong = split_refusal(nest);
  if (wrong) return wrong;
  int64_t most = 0;
  for (uint32_t i = 0; i < nest->reduced_count; i++) {
    uint32_t axis = nest->reduced_order[i];
    int64_t units = nest->ir->extent[axis] / split_unit(nest, axis);
    if (units <= most) continue;
    most = units;
    nest->split_axis = axis;
  }
  if (most < parts) return "split leaves nothing for some parts";
  int64_t unit = split_unit(nest, nest->split_axis);
  nest->part = most / parts * unit;
  return NULL;
}

// ---- options
// ---------------------------------------------------------------------------

// Every vector that starts at a multiple of |lanes| must be aligned as streamed stores of
// its size are: to itself, and to a cache line when it is longer.
bool ft_nest_can_stream(const ft_nest *nest, const ft_access *access) {
  int64_t size = (int64_t)ft_dtype_bytes(access->dtype);
  if (!nest->has_vector || access->stride[nest->vector_axis] != 1) return false;
  int64_t unit = nest->lanes * size < CACHE_LINE ? nest->lanes * size : CACHE_LINE;
  if (unit < 16 || nest->lanes * size % unit) return false;
  if (nest->chunks > 1 && nest->chunk * size % unit) return false;
  for (uint32_t axis = 0; axis < nest->ir->axis_count; axis++) {
    if (axis != nest->vector_axis && access->stride[axis] * size % unit) return false;
  }
  return true;
}

uint32_t ft_nest_store_pass(const ft_nest *nest, uint32_t output) {
  uint32_t level = nest->ir->node[nest->ir->output[output].node].level;
  bool is_late = level > 0 && nest->buffer == FT_NEST_ONLINE;
  return level < nest->ir->levels && !is_late ? level + 1 : nest->ir->levels + 1;
}

static bool is_row(const ft_nest *nest) {
  return nest->reduced_count == 1 && nest->has_vector &&
         nest->reduced_order[0] == nest->vector_axis;
}

static const char *check_registers(ft_nest *nest) {
  int64_t extent = nest->ir->extent[nest->vector_axis];
  int64_t steps = (extent + nest->lanes - 1) / nest->lanes;
  if (!is_row(nest))
    return "buffer 2, registers, takes one reduced axis, along the vectors";
  if (steps > FT_NEST_MAX_STEPS || steps * nest->ir->node_count > MAX_ROW_NODES)
    return "the row is too long for buffer 2, registers";
  if (nest->unroll > 1) return "buffer 2, registers, has nothing to unroll";
  nest->steps = (uint32_t)steps;
  return NULL;
}

static const char *check_buffer(ft_nest *nest, ft_arena *arena) {
  if (nest->buffer == FT_NEST_REGISTERS) return check_registers(nest);
  if (nest->buffer == FT_NEST_ONLINE) return ft_nest_online_refusal(nest);
  if (nest->buffer != FT_NEST_SCRATCH) return NULL;
  const char *wrong = "nothing is worth a buffer";
  if (is_row(nest)) ft_nest_choose_kept(nest, &wrong, arena);
  return wrong;
}

// An unrolled loop must have that many steps, else it is the same kernel.
static const char *check_unroll(const ft_nest *nest) {
  if (!nest->unroll || nest->unroll > FT_NEST_MAX_UNROLL ||
      (nest->unroll & (nest->unroll - 1)))
    return "unroll is not a power of two up to 8";
  if (nest->unroll == 1) return NULL;
  bool is_inner = nest->reduced_count > 0;
  uint32_t axis =
      is_inner ? nest->reduced_order[nest->reduced_count - 1] : nest->vector_axis;
  bool is_vector = nest->has_vector && axis == nest->vector_axis;
  int64_t steps = nest->ir->extent[axis] / (is_vector ? nest->lanes : 1);
  if (!is_inner && !nest->has_vector) steps = 1;
  return steps < nest->unroll ? "unroll is more than there are steps" : NULL;
}

static const char *check_options(ft_nest *nest, ft_arena *arena) {
  if (nest->streams) {
    bool any = false;
    for (uint32_t i = 0; i < nest->ir->output_count; i++)
      any |= ft_nest_can_stream(nest, &nest->ir->output[i].access);
    if (!any) return "no output can be streamed";
  }
  if (nest->ahead < 0 || nest->ahead > 64) return "prefetch is not 0 to 64 rows";
  if (nest->ahead && (!is_row(nest) || nest->ahead >= nest->rows))
    return "prefetch takes rows along the vectors";
  return check_buffer(nest, arena);
}

static void order(ft_nest *nest) {
  uint64_t vector = nest->has_vector ? bit(nest->vector_axis) : 0;
  const ft_group_ir *ir = nest->ir;
  nest->kept_count = order_axes(ir, nest->kept & ~vector, nest->kept_order);
  nest->reduced_count = order_axes(ir, nest->reduced & ~vector, nest->reduced_order);
  if (nest->reduced & vector)
    nest->reduced_order[nest->reduced_count++] = nest->vector_axis;
  nest->rows = ft_group_ir_points(ir, nest->kept & ~vector);
}

const char *ft_nest_plan(const ft_group_ir *ir, const ft_nest_choice *choice,
                         ft_nest *out, ft_arena *arena) {
  *out = (ft_nest){.ir = ir,
                   .reduced = ir->reduced,
                   .kept = all_axes(ir) & ~ir->reduced,
                   .unroll = choice->unroll,
                   .streams = choice->streams,
                   .ahead = choice->ahead,
                   .buffer = choice->buffer};
  if (choice->block < 1) return "block is not positive";
  const char *wrong = choose_vector(out, choice);
  if (wrong) return wrong;
  order(out);
  wrong = check_unroll(out);
  if (!wrong) wrong = split(out, choice->parts);
  if (wrong) return wrong;
  uint64_t vector = out->has_vector ? bit(out->vector_axis) : 0;
  cut(out, choice->block,
      at_least_one(ft_group_ir_points(ir, out->reduced | vector) / out->parts));
  wrong = count_blocks(out, arena);
  return wrong ? wrong : check_options(out, arena);
}
