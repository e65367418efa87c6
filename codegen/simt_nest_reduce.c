// Reductions of a nest with threads: each thread's accumulators.
#include <math.h>
#include <string.h>

#include "codegen/simt_nest_emit.h"

static int64_t identity_bits(ft_op op, ft_dtype dtype) {
  double real = op == FT_OP_REDUCE_PROD  ? 1
                : op == FT_OP_REDUCE_MAX ? -INFINITY
                : op == FT_OP_REDUCE_MIN ? INFINITY
                                         : 0;
  int64_t bits, low = INT32_MIN, high = INT32_MAX;
  if (dtype == FT_I64) low = INT64_MIN, high = INT64_MAX;
  if (dtype == FT_BOOL) low = 0, high = 1;
  memcpy(&bits, &real, sizeof bits);
  if (ft_dtype_is_float(dtype)) return bits;
  return op == FT_OP_REDUCE_PROD  ? 1
         : op == FT_OP_REDUCE_MAX ? low
         : op == FT_OP_REDUCE_MIN ? high
                                  : 0;
}

bool ft_simt_nest_runs(const ft_simt_emitter *e, uint32_t node) {
  const ft_node *n = &e->ir->node[node];
  return n->kind == FT_NODE_REDUCE && n->level == e->pass;
}

typedef void visitor(ft_simt_emitter *e, uint32_t node);

static void each_of_pass(ft_simt_emitter *e, visitor *visit) {
  for (uint32_t i = 0; i < e->ir->node_count; i++)
    if (ft_simt_nest_runs(e, i)) visit(e, i);
}

// ---- registers
// ----------------------------------------------------------------------------

void ft_simt_nest_set_register(ft_simt_emitter *e, uint32_t id, ft_kir_id at,
                               ft_kir_id value) {
  ft_kir_store(e->kir, ft_simt_nest_here(e), id, value, at, 1, FT_KIR_CACHED);
}

ft_kir_id ft_simt_nest_get_register(ft_simt_emitter *e, uint32_t id, ft_kir_id at) {
  return ft_kir_load(e->kir, ft_simt_nest_here(e), id, e->kir->buffer[id].lanes, at, 1);
}

uint32_t ft_simt_nest_new_total(ft_simt_emitter *e, uint32_t node, ft_dtype dtype,
                                uint16_t lanes, int64_t count) {
  ft_kir_type type = {dtype, lanes};
  ft_kir_block *at = ft_simt_nest_here(e);
  uint32_t id = count == 1 ? ft_kir_register(e->kir, at, type)
                           : ft_kir_registers(e->kir, at, type, count);
  ft_kir_id zero =
      ft_kir_element(e->kir, at, type, identity_bits(e->ir->node[node].op, dtype));
  for (int64_t i = 0; i < count; i++)
    ft_simt_nest_set_register(e, id, ft_simt_nest_number(e, i), zero);
  return id;
}

static ft_kir_id converted(ft_simt_emitter *e, ft_kir_id value, ft_dtype dtype) {
  if (e->kir->value[value].type.dtype == dtype) return value;
  return ft_kir_primitive(e->kir, ft_simt_nest_here(e), FT_OP_CAST, dtype, &value, 1);
}

static ft_kir_id combine(ft_simt_emitter *e, uint32_t node, ft_kir_id a, ft_kir_id b) {
  return ft_kir_combine(e->kir, ft_simt_nest_here(e), e->ir->node[node].op, a, b);
}

// Lanes along a reduced axis are terms, also where the operand is the same in all.
static uint16_t operand_lanes(const ft_simt_emitter *e, uint32_t node) {
  const ft_node *n = &e->ir->node[node];
  uint64_t mask = n->reduced | e->ir->node[n->operand[0]].mask;
  return ft_simt_plan_varies(e->plan, mask) ? e->plan->lanes : 1;
}

uint16_t ft_simt_nest_result_lanes(const ft_simt_emitter *e, uint32_t node) {
  return ft_simt_plan_varies(e->plan, e->ir->node[node].mask) ? e->plan->lanes : 1;
}

static void open_part(ft_simt_emitter *e, uint32_t node) {
  e->part[node] = ft_simt_nest_new_total(e, node, ft_simt_plan_sum(e->plan, node).part,
                                         operand_lanes(e, node), e->plan->accumulators);
}

static void add_to_part(ft_simt_emitter *e, uint32_t node) {
  uint32_t id = e->part[node];
  ft_kir_id at = e->point[e->at].accumulator;
  ft_kir_id term =
      ft_simt_nest_emit_lanes(e, e->ir->node[node].operand[0], operand_lanes(e, node));
  term = converted(e, term, e->kir->buffer[id].dtype);
  ft_kir_id sum = ft_simt_nest_get_register(e, id, at);
  ft_simt_nest_set_register(e, id, at, combine(e, node, sum, term));
}

// The accumulators, added up, in the dtype that threads exchange.
static ft_kir_id sum_of_part(ft_simt_emitter *e, uint32_t node) {
  ft_dtype meet = ft_simt_plan_sum(e->plan, node).meet;
  ft_kir_id sum = 0;
  for (uint32_t u = 0; u < e->plan->accumulators; u++) {
    ft_kir_id one =
        ft_simt_nest_get_register(e, e->part[node], ft_simt_nest_number(e, u));
    one = converted(e, one, meet);
    sum = u ? combine(e, node, sum, one) : one;
  }
  return sum;
}

// ---- a pass
// -------------------------------------------------------------------------------

// Once for each step of the thread. What waits is left last: it may take the place of
// what the step needed.
static void take_step(ft_simt_emitter *e) {
  each_of_pass(e, add_to_part);
  if (ft_simt_nest_has_inner(e)) ft_simt_nest_when(e, e->guard, ft_simt_nest_store_inner);
  ft_simt_nest_leave_kept(e);
}

static int64_t chunk_of_pass(const ft_simt_emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    if (!ft_simt_nest_runs(e, i)) continue;
    int64_t chunk = ft_simt_plan_sum(e->plan, i).chunk;
    if (chunk) return chunk;  // the same for all
  }
  return 0;
}

static void open_total(ft_simt_emitter *e, uint32_t node) {
  ft_simt_sum sum = ft_simt_plan_sum(e->plan, node);
  e->total[node] = 0;
  if (sum.chunk)
    e->total[node] = ft_simt_nest_new_total(e, node, sum.meet, operand_lanes(e, node), 1);
  else
    open_part(e, node);
}

static void open_chunk(ft_simt_emitter *e, uint32_t node) {
  if (e->total[node]) open_part(e, node);
}

static void close_chunk(ft_simt_emitter *e, uint32_t node) {
  if (!e->total[node]) return;
  ft_kir_id zero = ft_simt_nest_number(e, 0), sum = sum_of_part(e, node);
  ft_kir_id before = ft_simt_nest_get_register(e, e->total[node], zero);
  ft_simt_nest_set_register(e, e->total[node], zero, combine(e, node, before, sum));
}

static void walk_chunks(ft_simt_emitter *e, int64_t turns) {
  int64_t step = turns * e->plan->walkers * e->plan->accumulators;
  ft_kir_id size = ft_simt_nest_number(e, step);
  ft_kir_stmt *loop = ft_kir_for(e->kir, FT_KIR_SERIAL, e->begin, e->end, size);
  ft_simt_nest_open(e, loop);
  ft_kir_id end = ft_simt_nest_index(e, FT_KIR_IADD, loop->value, size);
  end = ft_simt_nest_named(e, ft_simt_nest_index(e, FT_KIR_IMIN, end, e->end));
  each_of_pass(e, open_chunk);
  ft_simt_nest_walk(e, loop->value, end, take_step);
  each_of_pass(e, close_chunk);
  ft_simt_nest_close(e, loop);
}

// What the thread has: one lane for each that is kept.
static void close_total(ft_simt_emitter *e, uint32_t node) {
  ft_kir_id value = e->total[node] ? ft_simt_nest_get_register(e, e->total[node],
                                                               ft_simt_nest_number(e, 0))
                                   : sum_of_part(e, node);
  const ft_node *n = &e->ir->node[node];
  if (!ft_simt_plan_varies(e->plan, n->mask))
    value = ft_kir_fold(e->kir, ft_simt_nest_here(e), n->op, value);
  e->value[node] = value;
}

static void settle(ft_simt_emitter *e, uint32_t node) {
  ft_dtype math = ft_kir_math_dtype(e->ir->node[node].dtype);
  ft_kir_id value = converted(e, e->value[node], math);
  *ft_simt_nest_known(e, node) = (ft_simt_known){.value = value, .depth = e->depth};
}

void ft_simt_nest_settle(ft_simt_emitter *e) {
  each_of_pass(e, settle);
}

static void run_pass(ft_simt_emitter *e) {
  int64_t chunk = chunk_of_pass(e);
  each_of_pass(e, open_total);
  if (chunk)
    walk_chunks(e, chunk);
  else
    ft_simt_nest_walk(e, e->begin, e->end, take_step);
  each_of_pass(e, close_total);
  ft_simt_nest_meet(e);
  if (e->plan->parts == 1) ft_simt_nest_settle(e);
}

// What is left to store: rows past the end are not even computed.
static void run_last(ft_simt_emitter *e) {
  ft_simt_nest_walk(e, e->begin, e->end, ft_simt_nest_store_inner);
}

void ft_simt_nest_reduce(ft_simt_emitter *e) {
  for (e->pass = 1; e->pass <= e->ir->levels; e->pass++) run_pass(e);
  if (e->ir->reduced && ft_simt_nest_has_inner(e))
    ft_simt_nest_when(e, e->guard, run_last);
}
