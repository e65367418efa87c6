// Turns a planned nest into kernel IR: blocks, rows, and the passes of a row.
#include "codegen/nest_emit.h"

static uint64_t bit(uint32_t axis) {
  return (uint64_t)1 << axis;
}

// ---- the passes of a row
// ---------------------------------------------------------------

static void mark_row_buffers(ft_nest_emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    e->is_in_row[i] |= e->is_filling[i];
    e->is_filling[i] = false;
  }
}

static void store_body(ft_nest_emitter *e, uint16_t first) {
  ft_nest_store_all(e, e->pass, !first);
}

static void store_inner(ft_nest_emitter *e) {
  uint32_t axis = e->nest->reduced_order[e->nest->reduced_count - 1];
  int64_t extent = e->ir->extent[axis];
  ft_kir_id begin = ft_nest_number(e, 0), end = ft_nest_number(e, extent);
  if (e->held)
    ft_nest_walk_steps(e, store_body);
  else if (ft_nest_vector_is_reduced(e))
    ft_nest_walk_vector(e, begin, end, e->nest->unroll, store_body);
  else
    ft_nest_walk(e, axis, begin, end, 1, extent % e->nest->unroll == 0, store_body);
}

static bool has_last_pass(const ft_nest_emitter *e) {
  for (uint32_t i = 0; i < e->ir->output_count; i++) {
    if ((e->ir->output[i].domain & e->nest->reduced) &&
        ft_nest_store_pass(e->nest, i) == e->ir->levels + 1)
      return true;
  }
  return false;
}

static void store_kept(ft_nest_emitter *e, bool is_aligned) {
  for (uint32_t i = 0; i < e->ir->output_count; i++) {
    if (!(e->ir->output[i].domain & e->nest->reduced))
      ft_nest_store(e, &e->ir->output[i], is_aligned);
  }
}

static void start_row(ft_nest_emitter *e, uint16_t first) {
  uint32_t held = e->held ? e->ir->node_count * e->nest->steps : 0;
  e->is_overlapping = first > 0;
  for (uint32_t i = 0; i < e->ir->node_count; i++) e->is_in_row[i] = false;
  for (uint32_t i = 0; i < held; i++) e->held[i] = 0;
}

// All passes of one row (or one vector of rows).
static void row_body(ft_nest_emitter *e, uint16_t first) {
  start_row(e, first);
  for (e->pass = 1; e->pass <= e->ir->levels; e->pass++) {
    if (e->nest->buffer != FT_NEST_ONLINE)
      ft_nest_reduce(e);
    else if (e->pass == 1)
      ft_nest_online(e);
    mark_row_buffers(e);
  }
  store_kept(e, !first);
  if (has_last_pass(e)) ft_nest_around(e, store_inner);
}

// One part of its reductions.
static void part_body(ft_nest_emitter *e, uint16_t first) {
  start_row(e, first);
  e->pass = 1;
  ft_nest_reduce(e);
}

// All parts of it are in the workspace.
static void finish_body(ft_nest_emitter *e, uint16_t first) {
  start_row(e, first);
  ft_nest_combine_results(e);
  store_kept(e, !first);
}

// ---- rows of a block
// -------------------------------------------------------------------

// Names |index|, unless it is |known|, which has a name.
static ft_kir_id name(ft_nest_emitter *e, ft_kir_id index, ft_kir_id known) {
  return index == known ? index : ft_kir_let(e->kir, ft_nest_here(e), index);
}

// The indices of the kept axes from the row's number, into |out|.
static void decode_row(ft_nest_emitter *e, ft_kir_id row, ft_kir_id *out) {
  int64_t inner = 1;
  for (uint32_t i = e->nest->kept_count; i-- > 0;) {
    uint32_t axis = e->nest->kept_order[i];
    ft_kir_id index = ft_kir_index(e->kir, FT_KIR_IDIV, row, ft_nest_number(e, inner));
    if (i > 0)
      index = ft_kir_index(e->kir, FT_KIR_IMOD, index,
                           ft_nest_number(e, e->ir->extent[axis]));
    out[axis] = name(e, index, row);
    inner *= e->ir->extent[axis];
  }
}

// The row to prefetch; near the end it is the last one, again and again.
static void decode_ahead(ft_nest_emitter *e) {
  ft_kir_id row =
      ft_kir_index(e->kir, FT_KIR_IADD, e->row, ft_nest_number(e, e->nest->ahead));
  ft_kir_id last = ft_nest_number(e, e->nest->rows - 1);
  row = ft_kir_let(e->kir, ft_nest_here(e), ft_kir_index(e->kir, FT_KIR_IMIN, row, last));
  decode_row(e, row, e->ahead);
}

static void kept_vector(ft_nest_emitter *e, ft_kir_id block, ft_nest_body *run) {
  const ft_nest *nest = e->nest;
  int64_t extent = e->ir->extent[nest->vector_axis];
  ft_kir_id begin = ft_nest_number(e, 0), end = ft_nest_number(e, extent);
  if (nest->chunks > 1) {
    ft_kir_id part =
        ft_kir_index(e->kir, FT_KIR_IMOD, block, ft_nest_number(e, nest->chunks));
    begin = ft_kir_index(e->kir, FT_KIR_IMUL, part, ft_nest_number(e, nest->chunk));
    begin = ft_kir_let(e->kir, ft_nest_here(e), begin);
    // The last block takes the rest: begin + chunk, or the extent.
    int64_t rest = extent - nest->chunks * nest->chunk;
    end = ft_kir_index(e->kir, FT_KIR_IADD, begin, ft_nest_number(e, nest->chunk));
    if (rest) {
      ft_kir_id is_last =
          ft_kir_index(e->kir, FT_KIR_ILESS, ft_nest_number(e, nest->chunks - 2), part);
      end = ft_kir_index(
          e->kir, FT_KIR_IADD, end,
          ft_kir_index(e->kir, FT_KIR_IMUL, is_last, ft_nest_number(e, rest)));
    }
    end = ft_kir_let(e->kir, ft_nest_here(e), end);
  }
  // Reductions unroll along the reduced axis.
  ft_nest_walk_vector(e, begin, end, e->ir->levels ? 1 : nest->unroll, run);
}

// Runs |run| for the rows of |block|, a number that leaves out the part.
static void each_row(ft_nest_emitter *e, ft_kir_id block, ft_nest_body *run) {
  const ft_nest *nest = e->nest;
  ft_kir_id group =
      ft_kir_index(e->kir, FT_KIR_IDIV, block, ft_nest_number(e, nest->chunks));
  ft_kir_id count = ft_nest_number(e, nest->rows_per_block);
  ft_kir_id begin = ft_kir_index(e->kir, FT_KIR_IMUL, group, count);
  begin = name(e, begin, block);
  ft_kir_id end = ft_kir_index(e->kir, FT_KIR_IADD, begin, count);
  if (nest->rows % nest->rows_per_block)
    end = ft_kir_index(e->kir, FT_KIR_IMIN, end, ft_nest_number(e, nest->rows));
  end = ft_kir_let(e->kir, ft_nest_here(e), end);
  ft_kir_stmt *loop = ft_nest_open(e, FT_KIR_SERIAL, begin, end, 1);
  e->row = loop->value;
  decode_row(e, e->row, e->index);
  for (uint32_t i = 0; i < nest->kept_count; i++)
    e->scope[e->depth].open |= bit(nest->kept_order[i]);
  if (nest->ahead) decode_ahead(e);
  if (nest->has_vector && (nest->kept & bit(nest->vector_axis)))
    kept_vector(e, block, run);
  else
    run(e, 0);
  ft_nest_close(e, loop);
}

// ---- blocks
// ----------------------------------------------------------------------------

// [begin, end) of the split axis; the last part takes what the others leave.
static void find_part(ft_nest_emitter *e, ft_kir_id block) {
  const ft_nest *nest = e->nest;
  int64_t extent = e->ir->extent[nest->split_axis];
  if (nest->has_vector && nest->split_axis == nest->vector_axis)
    extent = extent / nest->lanes * nest->lanes;
  ft_kir_block *at = ft_nest_here(e);
  e->part = ft_kir_let(
      e->kir, at,
      ft_kir_index(e->kir, FT_KIR_IMOD, block, ft_nest_number(e, nest->parts)));
  ft_kir_id begin =
      ft_kir_index(e->kir, FT_KIR_IMUL, e->part, ft_nest_number(e, nest->part));
  e->begin = name(e, begin, e->part);
  e->is_last_part = ft_kir_let(
      e->kir, at,
      ft_kir_index(e->kir, FT_KIR_ILESS, ft_nest_number(e, nest->parts - 2), e->part));
  ft_kir_id rest = ft_kir_index(e->kir, FT_KIR_IMUL, e->is_last_part,
                                ft_nest_number(e, extent - nest->parts * nest->part));
  ft_kir_id end =
      ft_kir_index(e->kir, FT_KIR_IADD, e->begin, ft_nest_number(e, nest->part));
  e->end = ft_kir_let(e->kir, at, ft_kir_index(e->kir, FT_KIR_IADD, end, rest));
}

// Each block does its part of its rows; the last one of these rows finishes them.
static void split_block(ft_nest_emitter *e, ft_kir_id block) {
  const ft_nest *nest = e->nest;
  const ft_group *group = &e->ir->workload->group;
  ft_kir_id rest = ft_kir_let(
      e->kir, ft_nest_here(e),
      ft_kir_index(e->kir, FT_KIR_IDIV, block, ft_nest_number(e, nest->parts)));
  find_part(e, block);
  each_row(e, rest, part_body);
  uint32_t counter = ft_kir_workspace(e->kir, FT_I32, nest->grid / nest->parts,
                                      group->input_count + group->output_count);
  ft_kir_stmt *last =
      ft_kir_grid_done(e->kir, counter, rest, ft_nest_number(e, nest->parts));
  ft_nest_enter(e, &last->body, 0);
  each_row(e, rest, finish_body);
  ft_nest_close(e, last);
}

static bool prepare(ft_nest_emitter *e) {
  uint32_t nodes = e->ir->node_count, steps = e->nest->steps;
  const ft_group *group = &e->ir->workload->group;
  e->known = FT_NEW_ARRAY(e->arena, ft_nest_known, nodes);
  e->argument =
      FT_NEW_ARRAY(e->arena, uint32_t, group->input_count + group->output_count);
  e->row_buffer = FT_NEW_ARRAY(e->arena, uint32_t, nodes);
  e->is_in_row = FT_NEW_ARRAY(e->arena, bool, nodes);
  e->is_filling = FT_NEW_ARRAY(e->arena, bool, nodes);
  e->total = FT_NEW_ARRAY(e->arena, uint32_t, (size_t)nodes * FT_NEST_MAX_UNROLL);
  e->partial = FT_NEW_ARRAY(e->arena, uint32_t, (size_t)nodes * FT_NEST_MAX_UNROLL);
  if (steps) e->held = FT_NEW_ARRAY(e->arena, ft_kir_id, (size_t)nodes * steps);
  return e->kir && e->known && e->argument && e->row_buffer && e->is_in_row &&
         e->is_filling && e->total && e->partial && (!steps || e->held) &&
         (e->nest->parts == 1 || ft_nest_declare_results(e));
}

static void add_row_buffers(ft_nest_emitter *e) {
  for (uint32_t i = 0; e->nest->is_buffered && i < e->ir->node_count; i++) {
    if (e->nest->is_buffered[i])
      e->row_buffer[i] = ft_kir_scratch(e->kir, ft_kir_math_dtype(e->ir->node[i].dtype),
                                        e->ir->extent[e->nest->vector_axis]);
  }
}

ft_status ft_nest_build(const ft_nest *nest, ft_arena *arena, ft_kir **out,
                        ft_error *error) {
  ft_nest_emitter *e = FT_NEW(arena, ft_nest_emitter);
  FT_OOM_IF(!e, error);
  e->nest = nest;
  e->ir = nest->ir;
  e->arena = arena;
  e->kir = ft_kir_create(arena);
  FT_OOM_IF(!prepare(e), error);
  add_row_buffers(e);
  ft_kir_stmt *grid = ft_kir_for(e->kir, FT_KIR_GRID, ft_nest_number(e, 0),
                                 ft_nest_number(e, nest->grid), ft_nest_number(e, 1));
  e->scope[0] = (ft_nest_scope){&grid->body, 0};
  if (e->ir->output_count && nest->parts > 1)
    split_block(e, grid->value);
  else if (e->ir->output_count)
    each_row(e, grid->value, row_body);
  if (nest->streams) ft_kir_fence(e->kir, &grid->body);
  ft_kir_append(&e->kir->body, grid);
  *out = e->kir;
  return FT_OK;
}
