// How the threads of a row exchange what they reduced, in an order that is always the
// same: shuffles in a warp, shared memory beyond; columns: a tree in shared memory.
#include "codegen/simt_nest_emit.h"

static ft_kir_id shuffled(ft_simt_emitter *e, ft_op op, ft_kir_id value) {
  uint32_t threads = e->plan->walkers < FT_SIMT_WARP ? e->plan->walkers : FT_SIMT_WARP;
  ft_kir_block *at = ft_simt_nest_here(e);
  for (uint32_t mask = threads / 2; mask; mask /= 2) {
    ft_kir_id other = ft_kir_shuffle(e->kir, at, value, mask);
    value = ft_kir_combine(e->kir, at, op, value, other);
  }
  return value;
}

static ft_kir_id per_warp(ft_simt_emitter *e, ft_kir_op op) {
  return ft_simt_nest_index(e, op, e->thread, ft_simt_nest_number(e, FT_SIMT_WARP));
}

// The buffer that gets the thread's value, or the warp's.
static uint32_t leave(ft_simt_emitter *e, uint32_t node) {
  ft_kir_type type = e->kir->value[e->value[node]].type;
  ft_kir_block *at = ft_simt_nest_here(e);
  uint32_t id;
  if (ft_simt_plan_is_row(e->plan)) {
    id = ft_kir_shared(e->kir, at, type.dtype, e->plan->choice.threads / FT_SIMT_WARP);
    ft_kir_id one = ft_simt_nest_number(e, 1);
    ft_kir_id is_first =
        ft_simt_nest_index(e, FT_KIR_ILESS, per_warp(e, FT_KIR_IMOD), one);
    ft_kir_stmt *branch = ft_kir_if(e->kir, is_first);
    ft_kir_store(e->kir, &branch->body, id, e->value[node], per_warp(e, FT_KIR_IDIV), 1,
                 FT_KIR_CACHED);
    ft_kir_append(at, branch);
    return id;
  }
  int64_t count = (int64_t)e->plan->choice.threads * type.lanes;
  id = ft_kir_shared(e->kir, at, type.dtype, count);
  ft_kir_id place =
      ft_simt_nest_index(e, FT_KIR_IMUL, e->thread, ft_simt_nest_number(e, type.lanes));
  ft_kir_store(e->kir, at, id, e->value[node], place, 1, FT_KIR_CACHED);
  return id;
}

// The parts of the row's warps, one after the other.
static ft_kir_id gathered(ft_simt_emitter *e, uint32_t node, uint32_t id) {
  ft_kir_block *at = ft_simt_nest_here(e);
  int64_t warps = e->plan->walkers / FT_SIMT_WARP;
  ft_kir_id first =
      ft_simt_nest_index(e, FT_KIR_IMUL, e->row_in_block, ft_simt_nest_number(e, warps));
  ft_kir_id sum = ft_kir_load(e->kir, at, id, 1, first, 1);
  for (int64_t w = 1; w < warps; w++) {
    ft_kir_id place =
        ft_simt_nest_index(e, FT_KIR_IADD, first, ft_simt_nest_number(e, w));
    ft_kir_id part = ft_kir_load(e->kir, at, id, 1, place, 1);
    sum = ft_kir_combine(e->kir, at, e->ir->node[node].op, sum, part);
  }
  return sum;
}

// Threads below |half| rows of threads take what lies |half| rows further.
static void fold_half(ft_simt_emitter *e, uint32_t node, uint32_t id, uint32_t half) {
  uint16_t lanes = e->kir->value[e->value[node]].type.lanes;
  ft_kir_id place =
      ft_simt_nest_index(e, FT_KIR_IMUL, e->thread, ft_simt_nest_number(e, lanes));
  ft_kir_id distance = ft_simt_nest_number(e, (int64_t)half * e->plan->each * lanes);
  ft_kir_id far = ft_simt_nest_index(e, FT_KIR_IADD, place, distance);
  ft_kir_stmt *branch = ft_kir_if(
      e->kir, ft_simt_nest_index(e, FT_KIR_ILESS, e->lane, ft_simt_nest_number(e, half)));
  ft_kir_id near_part = ft_kir_load(e->kir, &branch->body, id, lanes, place, 1);
  ft_kir_id far_part = ft_kir_load(e->kir, &branch->body, id, lanes, far, 1);
  ft_kir_id sum =
      ft_kir_combine(e->kir, &branch->body, e->ir->node[node].op, near_part, far_part);
  ft_kir_store(e->kir, &branch->body, id, sum, place, 1, FT_KIR_CACHED);
  ft_kir_append(ft_simt_nest_here(e), branch);
}

// All reductions of the pass together: they share the barriers.
static void climb(ft_simt_emitter *e, const uint32_t *id) {
  for (uint32_t half = e->plan->walkers / 2; half; half /= 2) {
    for (uint32_t i = 0; i < e->ir->node_count; i++)
      if (ft_simt_nest_runs(e, i)) fold_half(e, i, id[i], half);
    ft_kir_barrier(e->kir, ft_simt_nest_here(e));
  }
}

static ft_kir_id top(ft_simt_emitter *e, uint32_t node, uint32_t id) {
  uint16_t lanes = e->kir->value[e->value[node]].type.lanes;
  ft_kir_id place =
      ft_simt_nest_index(e, FT_KIR_IMUL, e->row_in_block, ft_simt_nest_number(e, lanes));
  return ft_kir_load(e->kir, ft_simt_nest_here(e), id, lanes, place, 1);
}

void ft_simt_nest_meet(ft_simt_emitter *e) {
  bool is_row = ft_simt_plan_is_row(e->plan);
  uint32_t *id = e->slot;
  for (uint32_t i = 0; is_row && i < e->ir->node_count; i++)
    if (ft_simt_nest_runs(e, i))
      e->value[i] = shuffled(e, e->ir->node[i].op, e->value[i]);
  if (e->plan->walkers == 1 || (is_row && e->plan->walkers <= FT_SIMT_WARP)) return;
  for (uint32_t i = 0; i < e->ir->node_count; i++)
    if (ft_simt_nest_runs(e, i)) id[i] = leave(e, i);
  ft_kir_barrier(e->kir, ft_simt_nest_here(e));
  if (!is_row) climb(e, id);
  for (uint32_t i = 0; i < e->ir->node_count; i++)
    if (ft_simt_nest_runs(e, i))
      e->value[i] = is_row ? gathered(e, i, id[i]) : top(e, i, id[i]);
}
