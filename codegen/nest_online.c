// max(x) and sum(exp(x - max(x))) of a row in one pass. Each lane has its maximum so far
// and a sum over exp(x - that maximum); when a chunk raises the maximum, the sum is
// scaled.
//
//  1. A maximum of -inf counts as 0 in the exponents, so that nothing is inf - inf before
//     the row's maximum is known.
//  2. The sum is NaN when the maximum is NaN or infinite, as in the graph: inf - inf is.
#include <math.h>
#include <string.h>

#include "codegen/nest_emit.h"

static bool is_maximum(const ft_node *n) {
  return n->kind == FT_NODE_REDUCE && n->op == FT_OP_REDUCE_MAX && n->dtype == FT_F32;
}

// The maximum that |node| = sum(exp(x - max(x))) belongs to; node_count: it is none.
static uint32_t maximum_of(const ft_group_ir *ir, uint32_t node) {
  const ft_node *n = &ir->node[node];
  if (n->op != FT_OP_REDUCE_SUM || n->dtype != FT_F32) return ir->node_count;
  const ft_node *exponential = &ir->node[n->operand[0]];
  if (exponential->kind != FT_NODE_COMPUTE || exponential->op != FT_OP_EXP)
    return ir->node_count;
  const ft_node *shifted = &ir->node[exponential->operand[0]];
  if (shifted->kind != FT_NODE_COMPUTE || shifted->op != FT_OP_SUB) return ir->node_count;
  const ft_node *maximum = &ir->node[shifted->operand[1]];
  bool is_pair = is_maximum(maximum) && maximum->operand[0] == shifted->operand[0];
  return is_pair ? shifted->operand[1] : ir->node_count;
}

const char *ft_nest_online_refusal(const ft_nest *nest) {
  const ft_group_ir *ir = nest->ir;
  bool is_row = nest->reduced_count == 1 && nest->has_vector &&
                nest->reduced_order[0] == nest->vector_axis;
  if (!is_row) return "online takes one reduced axis, along the vectors";
  if (ir->levels != 2) return "online takes a maximum and a sum that needs it";
  if (nest->ahead) return "online has no pass that prefetches";
  for (uint32_t i = 0; i < ir->node_count; i++) {
    const ft_node *n = &ir->node[i];
    if (n->kind != FT_NODE_REDUCE) continue;
    bool fits = n->level == 1 ? is_maximum(n) : maximum_of(ir, i) < ir->node_count;
    if (!fits) return "online takes max(x) and sum(exp(x - max(x))) alone";
  }
  return NULL;
}

// ---- little pieces of code
// -------------------------------------------------------------

static ft_kir_id op(ft_nest_emitter *e, ft_op primitive, ft_dtype dtype, ft_kir_id a,
                    ft_kir_id b) {
  return ft_kir_primitive(e->kir, ft_nest_here(e), primitive, dtype, (ft_kir_id[]){a, b},
                          b ? 2 : 1);
}

static ft_kir_id all(ft_nest_emitter *e, ft_kir_type type, double number) {
  int64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return ft_kir_element(e->kir, ft_nest_here(e), type, bits);
}

static ft_kir_id get(ft_nest_emitter *e, uint32_t id) {
  return ft_kir_load(e->kir, ft_nest_here(e), id, e->kir->buffer[id].lanes,
                     ft_nest_number(e, 0), 1);
}

static void set(ft_nest_emitter *e, uint32_t id, ft_kir_id value) {
  ft_kir_store(e->kir, ft_nest_here(e), id, value, ft_nest_number(e, 0), 1,
               FT_KIR_CACHED);
}

static uint32_t make(ft_nest_emitter *e, ft_dtype dtype, double number) {
  ft_kir_type type = {dtype, e->nest->lanes};
  uint32_t id = ft_kir_register(e->kir, ft_nest_here(e), type);
  set(e, id, all(e, type, number));
  return id;
}

// The maximum as exponents are shifted by it: invariant 1.
static ft_kir_id shift_of(ft_nest_emitter *e, ft_kir_id maximum) {
  ft_kir_type type = e->kir->value[maximum].type;
  ft_kir_id is_low = op(e, FT_OP_EQUAL, FT_BOOL, maximum, all(e, type, -INFINITY));
  ft_kir_id choice[3] = {is_low, all(e, type, 0), maximum};
  return ft_kir_primitive(e->kir, ft_nest_here(e), FT_OP_WHERE, FT_F32, choice, 3);
}

// exp(a - b)
static ft_kir_id power(ft_nest_emitter *e, ft_kir_id a, ft_kir_id b) {
  return op(e, FT_OP_EXP, FT_F32, op(e, FT_OP_SUB, FT_F32, a, b), 0);
}

static ft_kir_id in_double(ft_nest_emitter *e, ft_kir_id a) {
  return op(e, FT_OP_CAST, FT_F64, a, 0);
}

// ---- a chunk
// ---------------------------------------------------------------------------

static uint32_t *total(ft_nest_emitter *e, uint32_t node) {
  return &e->total[node * FT_NEST_MAX_UNROLL];
}

static uint32_t *partial(ft_nest_emitter *e, uint32_t node) {
  return &e->partial[node * FT_NEST_MAX_UNROLL];
}

// The values under a reduction; lanes that were seen before count as -inf.
static ft_kir_id values(ft_nest_emitter *e, uint32_t node, uint16_t first) {
  ft_kir_type type = {FT_F32, e->nest->lanes};
  ft_kir_id value = ft_nest_emit(e, node, e->nest->lanes);
  if (!first) return value;
  return ft_kir_keep(e->kir, ft_nest_here(e), value, all(e, type, -INFINITY), first);
}

static void maximum_body(ft_nest_emitter *e, uint16_t first) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    const ft_node *n = &e->ir->node[i];
    if (n->kind != FT_NODE_REDUCE || n->level != 1) continue;
    uint32_t id = partial(e, i)[e->step];
    ft_kir_id value = values(e, n->operand[0], first);
    set(e, id, ft_kir_combine(e->kir, ft_nest_here(e), n->op, get(e, id), value));
  }
  ft_nest_store_all(e, 1, !first);
}

static void sum_body(ft_nest_emitter *e, uint16_t first) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    const ft_node *n = &e->ir->node[i];
    if (n->kind != FT_NODE_REDUCE || n->level != 2) continue;
    uint32_t maximum = maximum_of(e->ir, i);
    ft_kir_id x = values(e, e->ir->node[maximum].operand[0], first);
    ft_kir_id term = power(e, x, e->known[maximum].value);
    uint32_t id = partial(e, i)[e->step];
    set(e, id, ft_kir_combine(e->kir, ft_nest_here(e), n->op, get(e, id), term));
  }
}

static void open_partials(ft_nest_emitter *e, uint32_t level, uint32_t count) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    const ft_node *n = &e->ir->node[i];
    for (uint32_t u = 0; u < count && n->kind == FT_NODE_REDUCE && n->level == level; u++)
      partial(e, i)[u] = make(e, FT_F32, level == 1 ? -INFINITY : 0);
  }
}

static ft_kir_id combined(ft_nest_emitter *e, uint32_t node, uint32_t count) {
  ft_kir_id sum = get(e, partial(e, node)[0]);
  for (uint32_t u = 1; u < count; u++)
    sum = ft_kir_combine(e->kir, ft_nest_here(e), e->ir->node[node].op, sum,
                         get(e, partial(e, node)[u]));
  return sum;
}

// Raises the maxima to those of the chunk. Until the chunk ends, the shift stands for
// the maximum.
static void raise_maxima(ft_nest_emitter *e, uint32_t count) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    const ft_node *n = &e->ir->node[i];
    if (n->kind != FT_NODE_REDUCE || n->level != 1) continue;
    ft_kir_id before = get(e, total(e, i)[0]), chunk = combined(e, i, count);
    ft_kir_id now = ft_kir_combine(e->kir, ft_nest_here(e), n->op, before, chunk);
    ft_kir_id shift = shift_of(e, now);
    ft_kir_id scale = in_double(e, power(e, before, shift));
    set(e, total(e, i)[0], now);
    e->known[i] = (ft_nest_known){.value = shift, .depth = e->depth};
    for (uint32_t s = 0; s < e->ir->node_count; s++) {
      const ft_node *sum = &e->ir->node[s];
      if (sum->kind != FT_NODE_REDUCE || sum->level != 2 || maximum_of(e->ir, s) != i)
        continue;
      ft_kir_id old = get(e, total(e, s)[0]);
      set(e, total(e, s)[0], op(e, FT_OP_MUL, FT_F64, old, scale));
    }
  }
}

static void add_sums(ft_nest_emitter *e, uint32_t count) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    const ft_node *n = &e->ir->node[i];
    if (n->kind != FT_NODE_REDUCE) continue;
    if (n->level == 1) {
      e->known[i] = (ft_nest_known){0};
      continue;
    }
    ft_kir_id sum = in_double(e, combined(e, i, count));
    ft_kir_id old = get(e, total(e, i)[0]);
    set(e, total(e, i)[0], ft_kir_combine(e->kir, ft_nest_here(e), n->op, old, sum));
  }
}

typedef struct chunk {
  ft_kir_id begin, end;
  bool is_whole;
} chunk;

// Twice over the chunk: the second time it comes from the nearest cache.
static void run_chunk(ft_nest_emitter *e, chunk c) {
  uint32_t unroll = e->nest->unroll, axis = e->nest->vector_axis;
  open_partials(e, 1, unroll);
  ft_nest_walk(e, axis, c.begin, c.end, e->nest->lanes, c.is_whole, maximum_body);
  raise_maxima(e, unroll);
  open_partials(e, 2, unroll);
  ft_nest_walk(e, axis, c.begin, c.end, e->nest->lanes, c.is_whole, sum_body);
  add_sums(e, unroll);
}

static void run_tail(ft_nest_emitter *e, int64_t whole) {
  int64_t extent = e->ir->extent[e->nest->vector_axis], lanes = e->nest->lanes;
  uint16_t first = (uint16_t)(lanes - (extent - whole));
  ft_kir_stmt *tail = ft_kir_if(e->kir, ft_nest_number(e, 1));
  ft_nest_enter(e, &tail->body, (uint64_t)1 << e->nest->vector_axis);
  e->index[e->nest->vector_axis] = ft_nest_number(e, extent - lanes);
  e->step = 0;
  open_partials(e, 1, 1);
  maximum_body(e, first);
  raise_maxima(e, 1);
  open_partials(e, 2, 1);
  sum_body(e, first);
  add_sums(e, 1);
  ft_nest_close(e, tail);
}

// ---- the row
// ---------------------------------------------------------------------------

static void finish(ft_nest_emitter *e, uint32_t node) {
  uint32_t maximum = maximum_of(e->ir, node);
  ft_kir_block *at = ft_nest_here(e);
  ft_kir_id highest = e->known[maximum].value;
  ft_kir_id shift = ft_kir_splat(e->kir, at, shift_of(e, highest), e->nest->lanes);
  ft_kir_id scale = in_double(e, power(e, get(e, total(e, maximum)[0]), shift));
  ft_kir_id sum = op(e, FT_OP_MUL, FT_F64, get(e, total(e, node)[0]), scale);
  sum = ft_kir_fold(e->kir, at, FT_OP_REDUCE_SUM, sum);
  sum = op(e, FT_OP_CAST, FT_F32, sum, 0);
  // Invariant 2.
  ft_kir_id zero = op(e, FT_OP_SUB, FT_F32, highest, highest);
  e->known[node] =
      (ft_nest_known){.value = op(e, FT_OP_ADD, FT_F32, sum, zero), .depth = e->depth};
}

static void each_of_level(ft_nest_emitter *e, uint32_t level,
                          void (*run)(ft_nest_emitter *e, uint32_t node)) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    if (e->ir->node[i].kind == FT_NODE_REDUCE && e->ir->node[i].level == level) run(e, i);
  }
}

static void open_maximum(ft_nest_emitter *e, uint32_t node) {
  total(e, node)[0] = make(e, FT_F32, -INFINITY);
}

static void open_sum(ft_nest_emitter *e, uint32_t node) {
  total(e, node)[0] = make(e, FT_F64, 0);
}

static void fold_maximum(ft_nest_emitter *e, uint32_t node) {
  ft_kir_id value = get(e, total(e, node)[0]);
  value = ft_kir_fold(e->kir, ft_nest_here(e), e->ir->node[node].op, value);
  e->known[node] = (ft_nest_known){.value = value, .depth = e->depth};
}

void ft_nest_online(ft_nest_emitter *e) {
  int64_t extent = e->ir->extent[e->nest->vector_axis], lanes = e->nest->lanes;
  int64_t whole = extent / lanes * lanes, size = FT_NEST_CHUNK * lanes * e->nest->unroll;
  int64_t rest = whole % size;
  each_of_level(e, 1, open_maximum);
  each_of_level(e, 2, open_sum);
  if (whole > rest) {
    ft_kir_stmt *loop = ft_nest_open(e, FT_KIR_SERIAL, ft_nest_number(e, 0),
                                     ft_nest_number(e, whole - rest), size);
    ft_kir_id end =
        ft_kir_index(e->kir, FT_KIR_IADD, loop->value, ft_nest_number(e, size));
    run_chunk(e, (chunk){loop->value, end, true});
    ft_nest_close(e, loop);
  }
  if (rest) {
    ft_kir_stmt *last = ft_kir_if(e->kir, ft_nest_number(e, 1));
    ft_nest_enter(e, &last->body, 0);
    bool is_whole = rest % (lanes * e->nest->unroll) == 0;
    run_chunk(
        e, (chunk){ft_nest_number(e, whole - rest), ft_nest_number(e, whole), is_whole});
    ft_nest_close(e, last);
  }
  if (whole != extent) run_tail(e, whole);
  each_of_level(e, 1, fold_maximum);
  each_of_level(e, 2, finish);
}
