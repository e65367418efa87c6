#include "codegen/simt_work.h"

#include <math.h>

#include "codegen/simt_lanes.h"

// What an element takes beside one instruction: fp32 instructions, and functions of the
// special units. Rough: CUDA's functions branch, and differ by architecture.
static const struct {
  ft_op op;
  double operations, specials;
} weights[] = {
    {FT_OP_DIV, 8, 1},   {FT_OP_RECIPROCAL, 6, 1}, {FT_OP_SQRT, 6, 1},
    {FT_OP_EXP, 6, 1},   {FT_OP_LOG, 16, 1},       {FT_OP_ERF, 20, 1},
    {FT_OP_TANH, 12, 2}, {FT_OP_SIGMOID, 14, 2},   {FT_OP_SIN, 24, 0},
    {FT_OP_COS, 24, 0},  {FT_OP_POW, 40, 3},
};

typedef struct counter {
  const ft_kir *kir;
  ft_simt_lanes lanes;
  double threads;               // of the launch
  uint32_t *uses;               // [value_count] as an operand
  double flight, store_flight;  // most bytes of one list of statements so far
  ft_kernel_work *out;
} counter;

// ---- memory
// -----------------------------------------------------------------------------

static void count_access(counter *c, uint32_t buffer, ft_kir_id index, uint16_t lanes,
                         int64_t stride, bool is_store, double times) {
  ft_kir_space space = c->kir->buffer[buffer].space;
  if (space == FT_KIR_REGISTER) return;
  ft_simt_access access = {buffer, index, lanes, stride};
  ft_simt_traffic t = ft_simt_traffic_of(&c->lanes, &access);
  double warps = times / FT_WARP;
  c->out->wavefronts += warps * t.turns;
  c->out->steps += times;
  if (is_store)
    c->out->store_sectors += warps * t.sectors;
  else
    c->out->load_sectors += warps * t.sectors;
}

static double bytes_of(const counter *c, uint32_t buffer, uint16_t lanes) {
  const ft_kir_buffer *b = &c->kir->buffer[buffer];
  if (b->space != FT_KIR_GLOBAL) return 0;
  return (double)lanes * (double)ft_dtype_bytes(b->dtype);
}

static void count_copy(counter *c, const ft_kir_stmt *s, double times) {
  count_access(c, s->source, s->source_index, s->lanes, 1, false, times);
  count_access(c, s->buffer, s->index, s->lanes, 1, true, times);
}

// ---- operations
// -------------------------------------------------------------------------

static bool is_sum(const ft_kir_value *v) {
  if (v->op == FT_KIR_COMBINE) return v->primitive == FT_OP_REDUCE_SUM;
  return v->op == FT_KIR_PRIMITIVE &&
         (v->primitive == FT_OP_ADD || v->primitive == FT_OP_SUB);
}

// One of its operands is a product that nothing else uses: the two are one instruction.
static bool is_fused(const counter *c, const ft_kir_value *v) {
  if (!is_sum(v) || !ft_dtype_is_float(v->type.dtype)) return false;
  for (uint32_t i = 0; i < v->operand_count; i++) {
    const ft_kir_value *a = &c->kir->value[v->operand[i]];
    if (a->op == FT_KIR_PRIMITIVE && a->primitive == FT_OP_MUL &&
        a->type.dtype == v->type.dtype && c->uses[v->operand[i]] == 1)
      return true;
  }
  return false;
}

static void add_operations(counter *c, ft_dtype dtype, double count) {
  if (dtype == FT_F64)
    c->out->operations64 += count;
  else
    c->out->operations += count;
}

static void count_primitive(counter *c, const ft_kir_value *v, double elements) {
  ft_dtype from = c->kir->value[v->operand[0]].type.dtype, to = v->type.dtype;
  bool is_wide = from == FT_F64 || to == FT_F64;
  if (v->primitive == FT_OP_CAST && is_wide) {
    c->out->specials += from == to ? 0 : elements;  // as few in a clock as those
    return;
  }
  for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
    if (weights[i].op != v->primitive) continue;
    add_operations(c, to, elements * weights[i].operations);
    c->out->specials += elements * weights[i].specials;
    return;
  }
  add_operations(c, is_wide ? FT_F64 : to, elements);
}

static void count_value(counter *c, ft_kir_id id, double times) {
  const ft_kir_value *v = &c->kir->value[id];
  if (v->type.lanes == 0) return;
  double elements = times * v->type.lanes;
  c->out->steps += elements;
  if (v->op == FT_KIR_LOAD) {
    count_access(c, v->buffer, v->operand[0], v->type.lanes, v->imm, false, times);
  } else if (v->op == FT_KIR_SHUFFLE) {
    c->out->wavefronts += times / FT_WARP * (v->type.dtype == FT_F64 ? 2 : 1);
  } else if (v->op == FT_KIR_PRIMITIVE && !is_fused(c, v)) {
    count_primitive(c, v, elements);
  } else if (v->op == FT_KIR_COMBINE && !is_fused(c, v)) {
    add_operations(c, v->type.dtype, elements);
  } else if (v->op == FT_KIR_FOLD) {
    uint16_t lanes = c->kir->value[v->operand[0]].type.lanes;
    add_operations(c, v->type.dtype, times * (lanes - 1));
  }
}

// ---- statements
// -------------------------------------------------------------------------

static void walk(counter *c, const ft_kir_block *block, double times);

// Its turns, on average over the threads: where they begin apart, they share the steps.
static double enter_loop(counter *c, const ft_kir_stmt *s) {
  ft_simt_lanes *l = &c->lanes;
  ft_simt_range begin = ft_simt_range_of(l, s->begin), end = ft_simt_range_of(l, s->end),
                step = ft_simt_range_of(l, s->step);
  l->begin[s->value] = s->begin;
  l->low[s->value] = begin.low;
  l->high[s->value] = fmax(end.high - 1, begin.low);
  double by = fmax(step.low, 1), length = fmax(end.high - begin.low, 0);
  return begin.low == begin.high ? ceil(length / by) : length / by;
}

static void walk_loop(counter *c, const ft_kir_stmt *s, double times) {
  double turns = enter_loop(c, s);
  if (s->loop == FT_KIR_THREAD) {
    c->lanes.thread = s->value;
    c->threads *= turns;
  }
  if (s->loop == FT_KIR_GRID) c->threads *= turns;
  if (turns > 0) walk(c, &s->body, times * turns);
}

static void walk_if(counter *c, const ft_kir_stmt *s, double times) {
  double chance = ft_simt_chance_of(&c->lanes, s->value);
  walk(c, &s->body, times * chance);
  walk(c, &s->otherwise, times * (1 - chance));
}

static void walk_done(counter *c, const ft_kir_stmt *s, double times) {
  double blocks = fmax(ft_simt_range_of(&c->lanes, s->end).high, 1);
  walk(c, &s->body, times / blocks);
}

static void count_statement(counter *c, const ft_kir_stmt *s, double times,
                            double *loaded, double *stored) {
  switch (s->kind) {
    case FT_KIR_LET:
      count_value(c, s->value, times);
      if (c->kir->value[s->value].op == FT_KIR_LOAD)
        *loaded += bytes_of(c, c->kir->value[s->value].buffer,
                            c->kir->value[s->value].type.lanes);
      break;
    case FT_KIR_STORE: {
      uint16_t lanes = c->kir->value[s->value].type.lanes;
      count_access(c, s->buffer, s->index, lanes, s->stride, true, times);
      *stored += bytes_of(c, s->buffer, lanes);
      break;
    }
    case FT_KIR_COPY:
      count_copy(c, s, times);
      *loaded += bytes_of(c, s->source, s->lanes);
      break;
    case FT_KIR_FOR:
      walk_loop(c, s, times);
      break;
    case FT_KIR_IF:
      walk_if(c, s, times);
      break;
    case FT_KIR_GRID_DONE:
      walk_done(c, s, times);
      break;
    default:
      break;
  }
}

static void walk(counter *c, const ft_kir_block *block, double times) {
  double loaded = 0, stored = 0;
  for (const ft_kir_stmt *s = block->first; s; s = s->next)
    count_statement(c, s, times, &loaded, &stored);
  if (times > 0) c->flight = fmax(c->flight, loaded);
  if (times > 0) c->store_flight = fmax(c->store_flight, stored);
}

static void count_uses(counter *c) {
  for (ft_kir_id id = 1; id < c->kir->value_count; id++) {
    const ft_kir_value *v = &c->kir->value[id];
    for (uint32_t i = 0; i < v->operand_count; i++) c->uses[v->operand[i]]++;
  }
}

static ft_status count(const ft_kir *kir, ft_arena *scratch, ft_kernel_work *out,
                       ft_error *error) {
  counter c = {.kir = kir, .threads = 1, .out = out};
  FT_TRY(ft_simt_lanes_init(&c.lanes, kir, scratch, error));
  c.uses = FT_NEW_ARRAY(scratch, uint32_t, kir->value_count);
  FT_OOM_IF(!c.uses, error);
  count_uses(&c);
  walk(&c, &kir->body, 1);
  out->bytes_in_flight = c.flight > 0 ? c.flight : c.store_flight;
  return FT_OK;
}

ft_status ft_simt_work_of(const ft_kir *kir, ft_kernel_work *out, ft_error *error) {
  *out = (ft_kernel_work){0};
  ft_arena *scratch = ft_arena_create(ft_allocator_system());
  FT_OOM_IF(!scratch, error);
  ft_status status = count(kir, scratch, out, error);
  ft_arena_destroy(scratch);
  return status;
}
