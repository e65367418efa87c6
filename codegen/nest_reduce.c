// Reductions of a nest: accumulators in registers, sums in chunks, partial results of a
// split in the workspace.
#include <math.h>
#include <string.h>

#include "codegen/nest_emit.h"

bool ft_nest_vector_is_reduced(const ft_nest_emitter *e) {
  return ft_nest_along_vector(e, e->nest->reduced);
}

static bool is_float_sum(const ft_node *n) {
  return n->op == FT_OP_REDUCE_SUM && ft_dtype_is_float(n->dtype);
}

static uint16_t reduce_lanes(const ft_nest_emitter *e, const ft_node *n) {
  if (ft_nest_vector_is_reduced(e)) return e->nest->lanes;
  return ft_nest_along_vector(e, e->ir->node[n->operand[0]].mask) ? e->nest->lanes : 1;
}

// Lanes of what is left when all of a row is reduced.
static uint16_t result_lanes(const ft_nest_emitter *e, const ft_node *n) {
  return ft_nest_vector_is_reduced(e) ? 1 : reduce_lanes(e, n);
}

// ---- the innermost reduced axis
// --------------------------------------------------------

static uint32_t inner_axis(const ft_nest_emitter *e) {
  return e->nest->reduced_order[e->nest->reduced_count - 1];
}

static int64_t inner_step(const ft_nest_emitter *e) {
  return ft_nest_vector_is_reduced(e) ? e->nest->lanes : 1;
}

// Elements of it in whole steps; the rest is the tail.
static int64_t inner_whole(const ft_nest_emitter *e) {
  int64_t extent = e->ir->extent[inner_axis(e)];
  return extent / inner_step(e) * inner_step(e);
}

// What the accumulators of a sum take before they go to a double.
static int64_t chunk_of(const ft_nest_emitter *e) {
  return FT_NEST_CHUNK * inner_step(e) * e->nest->unroll;
}

static bool is_split_along(const ft_nest_emitter *e, uint32_t axis) {
  return e->nest->parts > 1 && e->nest->split_axis == axis;
}

static bool runs_in_pass(const ft_nest_emitter *e, uint32_t node) {
  const ft_node *n = &e->ir->node[node];
  return n->kind == FT_NODE_REDUCE && n->level == e->pass;
}

static bool pass_has_float_sum(const ft_nest_emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    if (runs_in_pass(e, i) && is_float_sum(&e->ir->node[i])) return true;
  }
  return false;
}

static bool is_long(const ft_nest_emitter *e) {
  return ft_group_ir_points(e->ir, e->nest->reduced) > FT_NEST_CHUNK * inner_step(e);
}

static bool runs_in_chunks(const ft_nest_emitter *e) {
  return !e->held && pass_has_float_sum(e) && inner_whole(e) > chunk_of(e);
}

// ---- accumulators
// ----------------------------------------------------------------------

// Sums of long rows and all products run in double; for short floats single precision is
// wide, but for products of bf16, which has its range.
static ft_dtype total_dtype(const ft_nest_emitter *e, const ft_node *n) {
  bool widens =
      (n->op == FT_OP_REDUCE_PROD && (n->dtype == FT_F32 || n->dtype == FT_BF16)) ||
      (n->op == FT_OP_REDUCE_SUM && n->dtype == FT_F32 && is_long(e));
  return widens ? FT_F64 : ft_kir_math_dtype(n->dtype);
}

// One for each unrolled step; sums in chunks have only one total.
static uint32_t total_count(const ft_nest_emitter *e, const ft_node *n) {
  return runs_in_chunks(e) && is_float_sum(n) ? 1 : e->nest->unroll;
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

static uint32_t new_register(ft_nest_emitter *e, const ft_node *n, ft_dtype dtype) {
  ft_kir_type type = {dtype, reduce_lanes(e, n)};
  ft_kir_block *at = ft_nest_here(e);
  uint32_t id = ft_kir_register(e->kir, at, type);
  ft_kir_id zero = ft_kir_element(e->kir, at, type, identity_bits(n->op, dtype));
  ft_kir_store(e->kir, at, id, zero, ft_nest_number(e, 0), 1, FT_KIR_CACHED);
  return id;
}

static uint32_t *registers_of(uint32_t *list, uint32_t node) {
  return &list[node * FT_NEST_MAX_UNROLL];
}

static ft_kir_id loaded(ft_nest_emitter *e, uint32_t id) {
  return ft_kir_load(e->kir, ft_nest_here(e), id, e->kir->buffer[id].lanes,
                     ft_nest_number(e, 0), 1);
}

static ft_kir_id widened(ft_nest_emitter *e, ft_kir_id value, ft_dtype dtype) {
  if (e->kir->value[value].type.dtype == dtype) return value;
  return ft_kir_primitive(e->kir, ft_nest_here(e), FT_OP_CAST, dtype, &value, 1);
}

static void accumulate(ft_nest_emitter *e, const ft_node *n, uint32_t id,
                       ft_kir_id value) {
  ft_dtype dtype = e->kir->buffer[id].dtype;
  ft_kir_id sum = ft_kir_combine(e->kir, ft_nest_here(e), n->op, loaded(e, id),
                                 widened(e, value, dtype));
  ft_kir_store(e->kir, ft_nest_here(e), id, sum, ft_nest_number(e, 0), 1, FT_KIR_CACHED);
}

// The accumulators of |node|, |count| of them, combined in pairs.
static ft_kir_id combined(ft_nest_emitter *e, const ft_node *n, const uint32_t *id,
                          uint32_t count) {
  ft_kir_id value[FT_NEST_MAX_UNROLL];
  for (uint32_t i = 0; i < count; i++) value[i] = loaded(e, id[i]);
  for (uint32_t half = count / 2; half; half /= 2) {
    for (uint32_t i = 0; i < half; i++)
      value[i] =
          ft_kir_combine(e->kir, ft_nest_here(e), n->op, value[i], value[i + half]);
  }
  return value[0];
}

// ---- steps
// -----------------------------------------------------------------------------

static uint32_t accumulator(const ft_nest_emitter *e, uint32_t node) {
  const uint32_t *partial = registers_of(e->partial, node);
  if (partial[0]) return partial[e->step];
  bool is_one = e->held || total_count(e, &e->ir->node[node]) == 1;
  return registers_of(e->total, node)[is_one ? 0 : e->step];
}

static void reduce_body(ft_nest_emitter *e, uint16_t first) {
  if (e->nest->ahead && e->pass == e->ir->levels && !first) ft_nest_prefetch(e);
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    if (!runs_in_pass(e, i)) continue;
    const ft_node *n = &e->ir->node[i];
    ft_kir_id value = ft_nest_emit(e, n->operand[0], reduce_lanes(e, n));
    if (first) {
      ft_kir_type type = e->kir->value[value].type;
      ft_kir_id other =
          ft_kir_element(e->kir, ft_nest_here(e), type, identity_bits(n->op, n->dtype));
      value = ft_kir_keep(e->kir, ft_nest_here(e), value, other, first);
    }
    accumulate(e, n, accumulator(e, i), value);
  }
  ft_nest_store_all(e, e->pass, !first);
}

static void open_partials(ft_nest_emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    const ft_node *n = &e->ir->node[i];
    for (uint32_t u = 0; u < e->nest->unroll && runs_in_pass(e, i) && is_float_sum(n);
         u++)
      registers_of(e->partial, i)[u] = new_register(e, n, n->dtype);
  }
}

static void flush_partials(ft_nest_emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    uint32_t *partial = registers_of(e->partial, i);
    if (!partial[0]) continue;
    const ft_node *n = &e->ir->node[i];
    ft_kir_id value = combined(e, n, partial, e->nest->unroll);
    accumulate(e, n, registers_of(e->total, i)[0], value);
    partial[0] = 0;
  }
}

static void run_chunk(ft_nest_emitter *e, ft_kir_id begin, ft_kir_id end, bool is_whole) {
  open_partials(e);
  ft_nest_walk(e, inner_axis(e), begin, end, inner_step(e), is_whole, reduce_body);
  flush_partials(e);
}

// Whole chunks, then what is left; parts of a split are whole chunks but for the last.
static void reduce_in_chunks(ft_nest_emitter *e, ft_kir_id begin, ft_kir_id end) {
  int64_t chunk = chunk_of(e), rest = inner_whole(e) % chunk;
  if (is_split_along(e, inner_axis(e)))
    rest = (inner_whole(e) - e->nest->part * (e->nest->parts - 1)) % chunk;
  ft_kir_id past = ft_kir_index(e->kir, FT_KIR_ISUB, end, ft_nest_number(e, chunk - 1));
  ft_kir_stmt *loop = ft_nest_open(e, FT_KIR_SERIAL, begin, past, chunk);
  ft_kir_id to = ft_kir_index(e->kir, FT_KIR_IADD, loop->value, ft_nest_number(e, chunk));
  run_chunk(e, loop->value, to, true);
  ft_nest_close(e, loop);
  if (!rest) return;
  ft_kir_id from =
      ft_nest_number(e, inner_whole(e) - rest);  // only where the last element is
  ft_kir_stmt *last = ft_kir_if(e->kir, ft_kir_index(e->kir, FT_KIR_ILESS, from, end));
  ft_nest_enter(e, &last->body, 0);
  run_chunk(e, from, ft_nest_number(e, inner_whole(e)), false);
  ft_nest_close(e, last);
}

// The tail starts early; the lanes that were reduced already count as identities.
static void reduce_tail(ft_nest_emitter *e) {
  int64_t extent = e->ir->extent[inner_axis(e)], step = inner_step(e);
  bool is_split = is_split_along(e, inner_axis(e));
  ft_kir_stmt *tail =
      ft_kir_if(e->kir, is_split ? e->is_last_part : ft_nest_number(e, 1));
  ft_nest_enter(e, &tail->body, (uint64_t)1 << inner_axis(e));
  e->index[inner_axis(e)] = ft_nest_number(e, extent - step);
  e->step = 0;
  reduce_body(e, (uint16_t)(step - (extent - inner_whole(e))));
  ft_nest_close(e, tail);
}

static void reduce_inner(ft_nest_emitter *e) {
  int64_t whole = inner_whole(e), span = inner_step(e) * e->nest->unroll;
  ft_kir_id begin = ft_nest_number(e, 0), end = ft_nest_number(e, whole);
  if (is_split_along(e, inner_axis(e))) {
    begin = e->begin;
    end = e->end;
  }
  if (runs_in_chunks(e))
    reduce_in_chunks(e, begin, end);
  else
    ft_nest_walk(e, inner_axis(e), begin, end, inner_step(e), whole % span == 0,
                 reduce_body);
  if (whole != e->ir->extent[inner_axis(e)]) reduce_tail(e);
}

static void around(ft_nest_emitter *e, uint32_t position,
                   void (*inner)(ft_nest_emitter *e)) {
  if (position + 1 == e->nest->reduced_count) {
    inner(e);
    return;
  }
  uint32_t axis = e->nest->reduced_order[position];
  bool is_split = is_split_along(e, axis);
  ft_kir_id begin = is_split ? e->begin : ft_nest_number(e, 0);
  ft_kir_id end = is_split ? e->end : ft_nest_number(e, e->ir->extent[axis]);
  ft_kir_stmt *loop = ft_nest_open(e, FT_KIR_SERIAL, begin, end, 1);
  e->scope[e->depth].open |= (uint64_t)1 << axis;
  e->index[axis] = loop->value;
  around(e, position + 1, inner);
  ft_nest_close(e, loop);
}

void ft_nest_around(ft_nest_emitter *e, void (*inner)(ft_nest_emitter *e)) {
  around(e, 0, inner);
}

// ---- results
// ---------------------------------------------------------------------------

static void open_totals(ft_nest_emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    const ft_node *n = &e->ir->node[i];
    if (!runs_in_pass(e, i)) continue;
    for (uint32_t u = 0; u < total_count(e, n); u++)
      registers_of(e->total, i)[u] = new_register(e, n, total_dtype(e, n));
  }
}

static void know(ft_nest_emitter *e, uint32_t node, ft_kir_id value) {
  ft_dtype dtype = ft_kir_math_dtype(e->ir->node[node].dtype);
  e->known[node] = (ft_nest_known){.value = widened(e, value, dtype), .depth = e->depth};
}

// Position of this row among the results of a part.
static ft_kir_id result_position(ft_nest_emitter *e) {
  if (!e->nest->has_vector || ft_nest_vector_is_reduced(e)) return e->row;
  uint32_t axis = e->nest->vector_axis;
  ft_kir_id extent = ft_nest_number(e, e->ir->extent[axis]);
  ft_kir_id row = ft_kir_index(e->kir, FT_KIR_IMUL, e->row, extent);
  return ft_kir_index(e->kir, FT_KIR_IADD, row, e->index[axis]);
}

static int64_t results_of_part(const ft_nest_emitter *e) {
  bool is_across = e->nest->has_vector && !ft_nest_vector_is_reduced(e);
  return e->nest->rows * (is_across ? e->ir->extent[e->nest->vector_axis] : 1);
}

static ft_kir_id result_index(ft_nest_emitter *e, ft_kir_id part) {
  ft_kir_id size = ft_nest_number(e, results_of_part(e));
  ft_kir_id base = ft_kir_index(e->kir, FT_KIR_IMUL, part, size);
  return ft_kir_index(e->kir, FT_KIR_IADD, base, result_position(e));
}

static void finish_totals(ft_nest_emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    if (!runs_in_pass(e, i)) continue;
    const ft_node *n = &e->ir->node[i];
    ft_kir_id value = combined(e, n, registers_of(e->total, i), total_count(e, n));
    if (ft_nest_vector_is_reduced(e))
      value = ft_kir_fold(e->kir, ft_nest_here(e), n->op, value);
    if (e->nest->parts > 1)
      ft_kir_store(e->kir, ft_nest_here(e), e->result[i], value, result_index(e, e->part),
                   1, FT_KIR_CACHED);
    else
      know(e, i, value);
  }
}

void ft_nest_reduce(ft_nest_emitter *e) {
  open_totals(e);
  if (e->held)
    ft_nest_walk_steps(e, reduce_body);
  else
    ft_nest_around(e, reduce_inner);
  finish_totals(e);
}

// ---- the split
// -------------------------------------------------------------------------

bool ft_nest_declare_results(ft_nest_emitter *e) {
  const ft_group *group = &e->ir->workload->group;
  uint32_t argument = group->input_count + group->output_count;
  e->pass = 1;
  e->result = FT_NEW_ARRAY(e->arena, uint32_t, e->ir->node_count);
  for (uint32_t i = 0; e->result && i < e->ir->node_count; i++) {
    const ft_node *n = &e->ir->node[i];
    if (n->kind != FT_NODE_REDUCE) continue;
    e->result[i] = ft_kir_workspace(e->kir, total_dtype(e, n),
                                    e->nest->parts * results_of_part(e), argument);
  }
  return e->result != NULL;
}

static ft_kir_id result_of(ft_nest_emitter *e, uint32_t node, ft_kir_id part) {
  return ft_kir_load(e->kir, ft_nest_here(e), e->result[node],
                     result_lanes(e, &e->ir->node[node]), result_index(e, part), 1);
}

static ft_kir_id combine_parts(ft_nest_emitter *e, uint32_t node) {
  const ft_node *n = &e->ir->node[node];
  ft_kir_type type = {total_dtype(e, n), result_lanes(e, n)};
  uint32_t id = ft_kir_register(e->kir, ft_nest_here(e), type);
  ft_kir_id first = result_of(e, node, ft_nest_number(e, 0));
  ft_kir_store(e->kir, ft_nest_here(e), id, first, ft_nest_number(e, 0), 1,
               FT_KIR_CACHED);
  ft_kir_stmt *loop = ft_nest_open(e, FT_KIR_SERIAL, ft_nest_number(e, 1),
                                   ft_nest_number(e, e->nest->parts), 1);
  accumulate(e, n, id, result_of(e, node, loop->value));
  ft_nest_close(e, loop);
  return loaded(e, id);
}

void ft_nest_combine_results(ft_nest_emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    if (e->ir->node[i].kind == FT_NODE_REDUCE) know(e, i, combine_parts(e, i));
  }
}
