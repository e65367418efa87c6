// Where values wait for later passes: register arrays, one place for each step of the
// thread, or shared memory. Either way a thread finds only what it left itself, since it
// has the same steps in every pass: no barrier.
#include "codegen/simt_nest_emit.h"

static uint16_t lanes_of(const ft_simt_emitter *e, uint32_t node) {
  return ft_simt_plan_varies(e->plan, e->ir->node[node].mask) ? e->plan->lanes : 1;
}

static uint32_t new_place(ft_simt_emitter *e, uint32_t node) {
  const ft_simt_plan *p = e->plan;
  ft_dtype dtype = ft_kir_math_dtype(e->ir->node[node].dtype);
  ft_kir_type type = {dtype, lanes_of(e, node)};
  ft_kir_block *at = ft_simt_nest_here(e);
  if (p->choice.buffer == FT_SIMT_REGISTERS)
    return ft_kir_registers(e->kir, at, type, p->share);
  return ft_kir_shared(e->kir, at, dtype,
                       p->steps[FT_SIMT_REDUCED] * p->each * type.lanes);
}

void ft_simt_nest_open_kept(ft_simt_emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++)
    if (e->plan->is_kept[i] && e->plan->home[i] == i) e->kept[i] = new_place(e, i);
  for (uint32_t i = 0; i < e->ir->node_count; i++)
    if (e->plan->is_kept[i]) e->kept[i] = e->kept[e->plan->home[i]];
}

// Neighbours of a warp have neighbouring places.
static ft_kir_id place_of(ft_simt_emitter *e, uint32_t node) {
  const ft_simt_plan *p = e->plan;
  const ft_simt_point *point = &e->point[e->at];
  if (p->choice.buffer == FT_SIMT_REGISTERS) return point->place;
  bool is_row = ft_simt_plan_is_row(p);
  ft_kir_id outer = is_row ? e->row_in_block : point->step;
  ft_kir_id inner = is_row ? point->step : e->row_in_block;
  ft_kir_id size = ft_simt_nest_number(e, is_row ? p->steps[FT_SIMT_REDUCED] : p->each);
  ft_kir_id at = ft_simt_nest_index(e, FT_KIR_IMUL, outer, size);
  at = ft_simt_nest_index(e, FT_KIR_IADD, at, inner);
  return ft_simt_nest_index(e, FT_KIR_IMUL, at,
                            ft_simt_nest_number(e, lanes_of(e, node)));
}

bool ft_simt_nest_is_waiting(const ft_simt_emitter *e, uint32_t node) {
  return e->plan->is_kept[node] && e->plan->first[node] < e->pass;
}

ft_kir_id ft_simt_nest_fetch(ft_simt_emitter *e, uint32_t node, ft_kir_block *at) {
  return ft_kir_load(e->kir, at, e->kept[node], lanes_of(e, node), place_of(e, node), 1);
}

void ft_simt_nest_leave_kept(ft_simt_emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++)
    if (e->plan->is_kept[i] && e->plan->first[i] == e->pass)
      ft_kir_store(e->kir, ft_simt_nest_here(e), e->kept[i], ft_simt_nest_emit(e, i),
                   place_of(e, i), 1, FT_KIR_CACHED);
}
