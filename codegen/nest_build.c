// Turns a planned nest into kernel IR.
//
// Code is emitted on demand: emit() computes a node in the outermost scope that has its
// axes open and its operands computed, so what does not change in a loop stands before
// it. A loop's statement is appended to the outer block when its body is done; whatever
// the body needed from outside was appended earlier.
#include <math.h>
#include <string.h>

#include "codegen/expressions.h"
#include "codegen/nest.h"

enum { MAX_SCOPES = FT_MAX_AXES + 8, CHUNK = 8 };

typedef struct scope {
  ft_kir_block *block;
  uint64_t open;  // axes with an index here
} scope;

// What is known of a node: its value, and the scope that holds it.
typedef struct known {
  ft_kir_id value, splat;  // 0: not computed
  uint32_t depth, splat_depth;
} known;

typedef struct emitter {
  const ft_nest *nest;
  const ft_group_ir *ir;
  ft_kir *kir;
  ft_arena *arena;
  uint32_t depth;  // current scope
  scope scope[MAX_SCOPES];
  ft_kir_id index[FT_MAX_AXES];
  known *known;               // [node]
  uint32_t *argument;         // [ABI position] buffer id, 0: not declared
  uint32_t *row_buffer;       // [node] scratch buffer of a buffered node, 0: none
  bool *is_in_row;            // [node] an earlier pass filled it
  bool *is_filling;           // [node] this pass fills it
  uint32_t *total, *partial;  // [node] registers of a reduction
  uint32_t pass;
  bool is_overlapping;  // the kept vector of this row starts early
} emitter;

static ft_kir_block *here(emitter *e) {
  return e->scope[e->depth].block;
}

static void enter(emitter *e, ft_kir_block *block, uint64_t axes) {
  FT_ASSERT(e->depth + 1 < MAX_SCOPES);
  e->scope[e->depth + 1] = (scope){block, e->scope[e->depth].open | axes};
  e->depth++;
}

static void leave(emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    known *k = &e->known[i];
    if (k->value && k->depth >= e->depth) k->value = 0;
    if (k->splat && k->splat_depth >= e->depth) k->splat = 0;
  }
  e->depth--;
}

static uint64_t bit(uint32_t axis) {
  return (uint64_t)1 << axis;
}

static bool varies_along_vector(const emitter *e, uint64_t mask) {
  return e->nest->has_vector && (mask & bit(e->nest->vector_axis));
}

static bool vector_is_reduced(const emitter *e) {
  return varies_along_vector(e, e->nest->reduced);
}

// ---- nodes
// -------------------------------------------------------------------------------

static uint32_t outermost_scope(const emitter *e, uint64_t mask) {
  uint32_t depth = 0;
  while (mask & ~e->scope[depth].open) depth++;
  FT_ASSERT(depth <= e->depth);
  return depth;
}

static ft_kir_id address(emitter *e, const ft_access *access) {
  ft_kir_id sum = ft_kir_number(e->kir, 0);
  for (uint32_t axis = 0; axis < e->ir->axis_count; axis++) {
    if (!access->stride[axis]) continue;
    ft_kir_id stride = ft_kir_number(e->kir, access->stride[axis]);
    ft_kir_id term = ft_kir_index(e->kir, FT_KIR_IMUL, e->index[axis], stride);
    sum = ft_kir_index(e->kir, FT_KIR_IADD, sum, term);
  }
  return sum;
}

static int64_t lane_stride(const emitter *e, const ft_access *access) {
  return e->nest->has_vector ? access->stride[e->nest->vector_axis] : 1;
}

static uint32_t buffer_of(emitter *e, const ft_access *access, bool is_written) {
  uint32_t *id = &e->argument[access->argument];
  if (!*id)
    *id =
        ft_kir_global(e->kir, access->dtype, access->count, access->argument, is_written);
  return *id;
}

static ft_kir_id emit(emitter *e, uint32_t node);

// The operand with |lanes| lanes; a single element is spread where it was computed.
static ft_kir_id emit_lanes(emitter *e, uint32_t node, uint16_t lanes) {
  ft_kir_id value = emit(e, node);
  if (e->kir->value[value].type.lanes == lanes) return value;
  known *k = &e->known[node];
  if (!k->splat) {
    k->splat = ft_kir_splat(e->kir, e->scope[k->depth].block, value, lanes);
    k->splat_depth = k->depth;
  }
  return k->splat;
}

static ft_kir_id emit_compute(emitter *e, const ft_node *n, uint16_t lanes,
                              uint32_t *depth) {
  ft_kir_id operand[3] = {0};
  for (uint32_t i = 0; i < n->operand_count; i++) {
    operand[i] = emit_lanes(e, n->operand[i], lanes);
    uint32_t at = e->known[n->operand[i]].depth;
    if (at > *depth) *depth = at;
  }
  return ft_kir_primitive(e->kir, e->scope[*depth].block, n->op, n->dtype, operand,
                          n->operand_count);
}

static ft_kir_id row_position(emitter *e) {
  return e->index[e->nest->vector_axis];
}

static ft_kir_id emit_new(emitter *e, uint32_t node, uint32_t *depth) {
  const ft_node *n = &e->ir->node[node];
  uint16_t lanes = varies_along_vector(e, n->mask) ? e->nest->lanes : 1;
  ft_kir_block *block = e->scope[*depth].block;
  if (e->row_buffer[node] && e->is_in_row[node])
    return ft_kir_load(e->kir, block, e->row_buffer[node], lanes, row_position(e), 1);
  if (n->kind == FT_NODE_CONSTANT)
    return ft_kir_element(e->kir, block, (ft_kir_type){n->dtype, 1}, n->bits);
  if (n->kind == FT_NODE_LOAD)
    return ft_kir_load(e->kir, block, buffer_of(e, &n->access, false), lanes,
                       address(e, &n->access), lane_stride(e, &n->access));
  FT_ASSERT(n->kind == FT_NODE_COMPUTE);  // reductions are known when they are needed
  ft_kir_id value = emit_compute(e, n, lanes, depth);
  if (e->row_buffer[node]) {
    ft_kir_store(e->kir, e->scope[*depth].block, e->row_buffer[node], value,
                 row_position(e), 1, FT_KIR_CACHED);
    e->is_filling[node] = true;
  }
  return value;
}

static ft_kir_id emit(emitter *e, uint32_t node) {
  known *k = &e->known[node];
  if (k->value) return k->value;
  uint32_t depth = outermost_scope(e, e->ir->node[node].mask);
  k->value = emit_new(e, node, &depth);
  k->depth = depth;
  return k->value;
}

// ---- stores
// --------------------------------------------------------------------------------

static void store_output(emitter *e, const ft_output *out, bool is_aligned) {
  bool is_vector = varies_along_vector(e, out->domain);
  ft_kir_id value = emit_lanes(e, out->node, is_vector ? e->nest->lanes : 1);
  bool streams = e->nest->streams && is_aligned && !e->is_overlapping &&
                 ft_nest_can_stream(e->nest, &out->access);
  ft_kir_store(e->kir, here(e), buffer_of(e, &out->access, true), value,
               address(e, &out->access), lane_stride(e, &out->access),
               streams ? FT_KIR_STREAMED : FT_KIR_CACHED);
}

static void store_pass(emitter *e, uint32_t pass, bool is_aligned) {
  for (uint32_t i = 0; i < e->ir->output_count; i++) {
    const ft_output *out = &e->ir->output[i];
    if ((out->domain & e->nest->reduced) && ft_nest_store_pass(e->nest, i) == pass)
      store_output(e, out, is_aligned);
  }
}

// ---- loops
// -----------------------------------------------------------------------------------

static ft_kir_id number(emitter *e, int64_t n) {
  return ft_kir_number(e->kir, n);
}

static ft_kir_stmt *open_loop(emitter *e, ft_kir_loop kind, ft_kir_id begin,
                              ft_kir_id end, int64_t step) {
  return ft_kir_for(e->kir, kind, begin, end, number(e, step));
}

static void enter_axis(emitter *e, ft_kir_stmt *loop, uint32_t axis, ft_kir_id index) {
  enter(e, &loop->body, bit(axis));
  e->index[axis] = index;
}

static void close_loop(emitter *e, ft_kir_stmt *loop) {
  leave(e);
  ft_kir_append(here(e), loop);
}

// What the innermost loop over an axis runs: |first| lanes were seen before.
typedef void body(emitter *e, uint16_t first);

// Steps over [0, extent) of the vector axis where seeing an element twice is harmless.
static void walk_twice(emitter *e, ft_kir_id begin, ft_kir_id end, int64_t extent,
                       body *run) {
  uint32_t axis = e->nest->vector_axis;
  int64_t lanes = e->nest->lanes;
  ft_kir_stmt *loop = open_loop(e, FT_KIR_VECTOR, begin, end, lanes);
  enter(e, &loop->body, 0);
  ft_kir_id at = loop->value;
  if (extent % lanes) {
    ft_kir_id last = ft_kir_index(e->kir, FT_KIR_ISUB, end, number(e, lanes));
    at = ft_kir_let(e->kir, here(e), ft_kir_index(e->kir, FT_KIR_IMIN, at, last));
  }
  e->scope[e->depth].open |= bit(axis);
  e->index[axis] = at;
  run(e, extent % lanes ? 1 : 0);
  close_loop(e, loop);
}

// The same with the tail apart, so that all other steps are aligned.
static void walk_aligned(emitter *e, ft_kir_id begin, ft_kir_id end, int64_t extent,
                         body *run) {
  int64_t lanes = e->nest->lanes;
  uint32_t axis = e->nest->vector_axis;
  ft_kir_id last = ft_kir_index(e->kir, FT_KIR_ISUB, end, number(e, lanes - 1));
  ft_kir_stmt *loop = open_loop(e, FT_KIR_VECTOR, begin, last, lanes);
  enter_axis(e, loop, axis, loop->value);
  run(e, 0);
  close_loop(e, loop);
  if (extent % lanes == 0) return;
  ft_kir_id is_last = ft_kir_index(e->kir, FT_KIR_ILESS, number(e, extent - 1), end);
  ft_kir_stmt *tail = ft_kir_if(e->kir, is_last);
  enter(e, &tail->body, bit(axis));
  e->index[axis] = number(e, extent - lanes);
  run(e, 1);
  close_loop(e, tail);
}

static void walk_vector(emitter *e, ft_kir_id begin, ft_kir_id end, int64_t extent,
                        body *run) {
  if (e->nest->streams)
    walk_aligned(e, begin, end, extent, run);
  else
    walk_twice(e, begin, end, extent, run);
}

// ---- reductions
// ------------------------------------------------------------------------------

static bool is_float_sum(const ft_node *n) {
  return n->op == FT_OP_REDUCE_SUM && ft_dtype_is_float(n->dtype);
}

static uint16_t reduce_lanes(const emitter *e, const ft_node *n) {
  if (vector_is_reduced(e)) return e->nest->lanes;
  return varies_along_vector(e, e->ir->node[n->operand[0]].mask) ? e->nest->lanes : 1;
}

// Vectors along the innermost reduced axis, and over all.
static int64_t inner_extent(const emitter *e) {
  return e->ir->extent[e->nest->reduced_order[e->nest->reduced_count - 1]];
}

static int64_t inner_step(const emitter *e) {
  return vector_is_reduced(e) ? e->nest->lanes : 1;
}

static bool is_long(const emitter *e) {
  return ft_group_ir_points(e->ir, e->nest->reduced) > CHUNK * inner_step(e);
}

// Sums of long rows and all products run in double.
static ft_dtype total_dtype(const emitter *e, const ft_node *n) {
  bool widens = n->dtype == FT_F32 &&
                (n->op == FT_OP_REDUCE_PROD || (n->op == FT_OP_REDUCE_SUM && is_long(e)));
  return widens ? FT_F64 : n->dtype;
}

static int64_t identity_bits(ft_op op, ft_dtype dtype) {
  double number = 0;
  int64_t integer = 0, bits;
  bool is_wide = dtype == FT_I64;
  if (op == FT_OP_REDUCE_PROD) {
    number = 1;
    integer = 1;
  }
  if (op == FT_OP_REDUCE_MAX) {
    number = -INFINITY;
    integer = is_wide ? INT64_MIN : INT32_MIN;
  }
  if (op == FT_OP_REDUCE_MIN) {
    number = INFINITY;
    integer = is_wide ? INT64_MAX : INT32_MAX;
  }
  memcpy(&bits, &number, sizeof bits);
  return ft_dtype_is_float(dtype) ? bits : integer;
}

static bool runs_in_pass(const emitter *e, uint32_t node) {
  const ft_node *n = &e->ir->node[node];
  return n->kind == FT_NODE_REDUCE && n->level == e->pass;
}

static uint32_t new_register(emitter *e, const ft_node *n, ft_dtype dtype) {
  ft_kir_type type = {dtype, reduce_lanes(e, n)};
  uint32_t id = ft_kir_register(e->kir, here(e), type);
  ft_kir_id zero = ft_kir_element(e->kir, here(e), type, identity_bits(n->op, dtype));
  ft_kir_store(e->kir, here(e), id, zero, number(e, 0), 1, FT_KIR_CACHED);
  return id;
}

static ft_kir_id widened(emitter *e, ft_kir_id value, ft_dtype dtype) {
  if (e->kir->value[value].type.dtype == dtype) return value;
  return ft_kir_primitive(e->kir, here(e), FT_OP_CAST, dtype, &value, 1);
}

static void accumulate(emitter *e, const ft_node *n, uint32_t id, ft_kir_id value) {
  ft_kir_type type = {e->kir->buffer[id].dtype, e->kir->buffer[id].lanes};
  ft_kir_id old = ft_kir_load(e->kir, here(e), id, type.lanes, number(e, 0), 1);
  ft_kir_id sum =
      ft_kir_combine(e->kir, here(e), n->op, old, widened(e, value, type.dtype));
  ft_kir_store(e->kir, here(e), id, sum, number(e, 0), 1, FT_KIR_CACHED);
}

static void reduce_body(emitter *e, uint16_t first) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    if (!runs_in_pass(e, i)) continue;
    const ft_node *n = &e->ir->node[i];
    ft_kir_id value = emit_lanes(e, n->operand[0], reduce_lanes(e, n));
    if (first) {
      ft_kir_type type = e->kir->value[value].type;
      ft_kir_id other =
          ft_kir_element(e->kir, here(e), type, identity_bits(n->op, n->dtype));
      value = ft_kir_keep(e->kir, here(e), value, other, first);
    }
    accumulate(e, n, e->partial[i] ? e->partial[i] : e->total[i], value);
  }
  store_pass(e, e->pass, !first);
}

static void open_partials(emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    const ft_node *n = &e->ir->node[i];
    if (runs_in_pass(e, i) && is_float_sum(n))
      e->partial[i] = new_register(e, n, n->dtype);
  }
}

static void flush_partials(emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    if (!e->partial[i]) continue;
    const ft_node *n = &e->ir->node[i];
    ft_kir_id value =
        ft_kir_load(e->kir, here(e), e->partial[i], reduce_lanes(e, n), number(e, 0), 1);
    accumulate(e, n, e->total[i], value);
    e->partial[i] = 0;
  }
}

static bool pass_has_float_sum(const emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    if (runs_in_pass(e, i) && is_float_sum(&e->ir->node[i])) return true;
  }
  return false;
}

// [begin, end) of the innermost reduced axis, one step at a time.
static void reduce_steps(emitter *e, ft_kir_id begin, ft_kir_id end) {
  uint32_t axis = e->nest->reduced_order[e->nest->reduced_count - 1];
  ft_kir_loop kind = vector_is_reduced(e) ? FT_KIR_VECTOR : FT_KIR_SERIAL;
  ft_kir_stmt *loop = open_loop(e, kind, begin, end, inner_step(e));
  enter_axis(e, loop, axis, loop->value);
  reduce_body(e, 0);
  close_loop(e, loop);
}

static void reduce_in_chunks(emitter *e, int64_t full) {
  int64_t chunk = CHUNK * inner_step(e);
  ft_kir_stmt *loop = open_loop(e, FT_KIR_SERIAL, number(e, 0), number(e, full), chunk);
  enter(e, &loop->body, 0);
  open_partials(e);
  ft_kir_id end = ft_kir_index(e->kir, FT_KIR_IADD, loop->value, number(e, chunk));
  if (full % chunk) end = ft_kir_index(e->kir, FT_KIR_IMIN, end, number(e, full));
  reduce_steps(e, loop->value, end);
  flush_partials(e);
  close_loop(e, loop);
}

static void reduce_inner(emitter *e) {
  int64_t extent = inner_extent(e), step = inner_step(e);
  int64_t full = extent / step * step;
  if (pass_has_float_sum(e) && is_long(e) && full > CHUNK * step)
    reduce_in_chunks(e, full);
  else
    reduce_steps(e, number(e, 0), number(e, full));
  if (full == extent) return;
  // The tail starts early; the lanes that were summed already count as identities.
  ft_kir_stmt *tail = ft_kir_if(e->kir, number(e, 1));
  enter(e, &tail->body, bit(e->nest->vector_axis));
  e->index[e->nest->vector_axis] = number(e, extent - step);
  reduce_body(e, (uint16_t)(step - (extent - full)));
  close_loop(e, tail);
}

// The outer reduced axes around |inner|.
static void around_reduced(emitter *e, uint32_t position, void (*inner)(emitter *e)) {
  if (position + 1 == e->nest->reduced_count) {
    inner(e);
    return;
  }
  uint32_t axis = e->nest->reduced_order[position];
  ft_kir_stmt *loop =
      open_loop(e, FT_KIR_SERIAL, number(e, 0), number(e, e->ir->extent[axis]), 1);
  enter_axis(e, loop, axis, loop->value);
  around_reduced(e, position + 1, inner);
  close_loop(e, loop);
}

static void open_totals(emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    const ft_node *n = &e->ir->node[i];
    if (runs_in_pass(e, i)) e->total[i] = new_register(e, n, total_dtype(e, n));
  }
}

static void finish_totals(emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    if (!runs_in_pass(e, i)) continue;
    const ft_node *n = &e->ir->node[i];
    ft_kir_id value =
        ft_kir_load(e->kir, here(e), e->total[i], reduce_lanes(e, n), number(e, 0), 1);
    if (vector_is_reduced(e)) value = ft_kir_fold(e->kir, here(e), n->op, value);
    e->known[i] = (known){.value = widened(e, value, n->dtype), .depth = e->depth};
  }
}

static void mark_row_buffers(emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    e->is_in_row[i] |= e->is_filling[i];
    e->is_filling[i] = false;
  }
}

static void reduce_pass(emitter *e) {
  open_totals(e);
  around_reduced(e, 0, reduce_inner);
  finish_totals(e);
  mark_row_buffers(e);
}

// ---- the last pass
// -----------------------------------------------------------------------------

static void store_body(emitter *e, uint16_t first) {
  store_pass(e, e->pass, !first);
}

static void store_inner(emitter *e) {
  uint32_t axis = e->nest->reduced_order[e->nest->reduced_count - 1];
  int64_t extent = e->ir->extent[axis];
  if (vector_is_reduced(e)) {
    walk_vector(e, number(e, 0), number(e, extent), extent, store_body);
    return;
  }
  ft_kir_stmt *loop = open_loop(e, FT_KIR_SERIAL, number(e, 0), number(e, extent), 1);
  enter_axis(e, loop, axis, loop->value);
  store_body(e, 0);
  close_loop(e, loop);
}

static bool has_last_pass(const emitter *e) {
  for (uint32_t i = 0; i < e->ir->output_count; i++) {
    if ((e->ir->output[i].domain & e->nest->reduced) &&
        ft_nest_store_pass(e->nest, i) == e->ir->levels + 1)
      return true;
  }
  return false;
}

// All passes of one row (or one vector of rows).
static void row_body(emitter *e, uint16_t first) {
  e->is_overlapping = first > 0;
  for (uint32_t i = 0; i < e->ir->node_count; i++) e->is_in_row[i] = false;
  for (e->pass = 1; e->pass <= e->ir->levels; e->pass++) reduce_pass(e);
  for (uint32_t i = 0; i < e->ir->output_count; i++) {
    if (!(e->ir->output[i].domain & e->nest->reduced))
      store_output(e, &e->ir->output[i], !first);
  }
  if (has_last_pass(e)) around_reduced(e, 0, store_inner);
}

// ---- blocks and rows
// -----------------------------------------------------------------------------

// The indices of the kept axes from the row's number.
static void decode_row(emitter *e, ft_kir_id row) {
  int64_t inner = 1;
  for (uint32_t i = e->nest->kept_count; i-- > 0;) {
    uint32_t axis = e->nest->kept_order[i];
    ft_kir_id index = ft_kir_index(e->kir, FT_KIR_IDIV, row, number(e, inner));
    if (i > 0)
      index = ft_kir_index(e->kir, FT_KIR_IMOD, index, number(e, e->ir->extent[axis]));
    e->index[axis] = ft_kir_let(e->kir, here(e), index);
    e->scope[e->depth].open |= bit(axis);
    inner *= e->ir->extent[axis];
  }
}

static void kept_vector(emitter *e, ft_kir_id block) {
  const ft_nest *nest = e->nest;
  int64_t extent = e->ir->extent[nest->vector_axis];
  ft_kir_id begin = number(e, 0), end = number(e, extent);
  if (nest->chunks > 1) {
    ft_kir_id part = ft_kir_index(e->kir, FT_KIR_IMOD, block, number(e, nest->chunks));
    begin = ft_kir_index(e->kir, FT_KIR_IMUL, part, number(e, nest->chunk));
    begin = ft_kir_let(e->kir, here(e), begin);
    // The last block takes the rest: begin + chunk, or the extent.
    int64_t rest = extent - nest->chunks * nest->chunk;
    end = ft_kir_index(e->kir, FT_KIR_IADD, begin, number(e, nest->chunk));
    if (rest) {
      ft_kir_id is_last =
          ft_kir_index(e->kir, FT_KIR_ILESS, number(e, nest->chunks - 2), part);
      end = ft_kir_index(e->kir, FT_KIR_IADD, end,
                         ft_kir_index(e->kir, FT_KIR_IMUL, is_last, number(e, rest)));
    }
    end = ft_kir_let(e->kir, here(e), end);
  }
  walk_vector(e, begin, end, extent, row_body);
}

static void rows_of_block(emitter *e, ft_kir_id block) {
  const ft_nest *nest = e->nest;
  ft_kir_id group = ft_kir_index(e->kir, FT_KIR_IDIV, block, number(e, nest->chunks));
  ft_kir_id begin =
      ft_kir_index(e->kir, FT_KIR_IMUL, group, number(e, nest->rows_per_block));
  begin = ft_kir_let(e->kir, here(e), begin);
  ft_kir_id end =
      ft_kir_index(e->kir, FT_KIR_IADD, begin, number(e, nest->rows_per_block));
  if (nest->rows % nest->rows_per_block)
    end = ft_kir_index(e->kir, FT_KIR_IMIN, end, number(e, nest->rows));
  end = ft_kir_let(e->kir, here(e), end);
  ft_kir_stmt *loop = open_loop(e, FT_KIR_SERIAL, begin, end, 1);
  enter(e, &loop->body, 0);
  decode_row(e, loop->value);
  if (nest->has_vector && (nest->kept & bit(nest->vector_axis)))
    kept_vector(e, block);
  else
    row_body(e, 0);
  close_loop(e, loop);
}

static bool prepare(emitter *e) {
  uint32_t nodes = e->ir->node_count;
  const ft_group *group = &e->ir->workload->group;
  e->known = FT_NEW_ARRAY(e->arena, known, nodes);
  e->argument =
      FT_NEW_ARRAY(e->arena, uint32_t, group->input_count + group->output_count);
  e->row_buffer = FT_NEW_ARRAY(e->arena, uint32_t, nodes);
  e->is_in_row = FT_NEW_ARRAY(e->arena, bool, nodes);
  e->is_filling = FT_NEW_ARRAY(e->arena, bool, nodes);
  e->total = FT_NEW_ARRAY(e->arena, uint32_t, nodes);
  e->partial = FT_NEW_ARRAY(e->arena, uint32_t, nodes);
  return e->kir && e->known && e->argument && e->row_buffer && e->is_in_row &&
         e->is_filling && e->total && e->partial;
}

static void add_row_buffers(emitter *e) {
  if (!e->nest->buffers) return;
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    if (e->nest->is_buffered[i])
      e->row_buffer[i] = ft_kir_scratch(e->kir, e->ir->node[i].dtype,
                                        e->ir->extent[e->nest->vector_axis]);
  }
}

ft_status ft_nest_build(const ft_nest *nest, ft_arena *arena, ft_kir **out,
                        ft_error *error) {
  emitter *e = FT_NEW(arena, emitter);
  FT_OOM_IF(!e, error);
  e->nest = nest;
  e->ir = nest->ir;
  e->arena = arena;
  e->kir = ft_kir_create(arena);
  FT_OOM_IF(!prepare(e), error);
  add_row_buffers(e);
  ft_kir_stmt *grid =
      ft_kir_for(e->kir, FT_KIR_GRID, number(e, 0), number(e, nest->grid), number(e, 1));
  e->scope[0] = (scope){&grid->body, 0};
  if (e->ir->output_count) rows_of_block(e, grid->value);
  if (nest->streams) ft_kir_fence(e->kir, &grid->body);
  ft_kir_append(&e->kir->body, grid);
  *out = e->kir;
  return FT_OK;
}
