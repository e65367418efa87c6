// Rows that several blocks share: each leaves its results in the workspace; the block
// that comes last adds them up and stores. Its threads take every |walkers|-th part and
// meet as for a row, so the order of additions is always the same.
#include "codegen/simt_nest_emit.h"

static uint32_t workspace(ft_simt_emitter *e, ft_dtype dtype, int64_t count) {
  const ft_group *group = &e->ir->workload->group;
  uint32_t argument = group->input_count + group->output_count;
  return ft_kir_workspace(e->kir, dtype, count, argument);
}

static void declare(ft_simt_emitter *e, uint32_t node) {
  int64_t rows = e->plan->steps[FT_SIMT_KEPT];
  int64_t lanes = ft_simt_nest_result_lanes(e, node);
  e->result[node] =
      workspace(e, ft_simt_plan_sum(e->plan, node).meet, e->plan->parts * rows * lanes);
}

static ft_kir_id place_of(ft_simt_emitter *e, uint32_t node, ft_kir_id part) {
  ft_kir_id rows = ft_simt_nest_number(e, e->plan->steps[FT_SIMT_KEPT]);
  ft_kir_id at = ft_simt_nest_index(e, FT_KIR_IMUL, part, rows);
  at = ft_simt_nest_index(e, FT_KIR_IADD, at, e->row);
  ft_kir_id lanes = ft_simt_nest_number(e, ft_simt_nest_result_lanes(e, node));
  return ft_simt_nest_index(e, FT_KIR_IMUL, at, lanes);
}

// e->begin is the part while results are left.
static void leave_results(ft_simt_emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++)
    if (ft_simt_nest_runs(e, i))
      ft_kir_store(e->kir, ft_simt_nest_here(e), e->result[i], e->value[i],
                   place_of(e, i, e->begin), 1, FT_KIR_CACHED);
}

static void leave_first(ft_simt_emitter *e) {
  ft_kir_id is_first =
      ft_simt_nest_index(e, FT_KIR_ILESS, e->lane, ft_simt_nest_number(e, 1));
  ft_simt_nest_when(e, e->plan->walkers > 1 ? is_first : 0, leave_results);
}

static void add_parts(ft_simt_emitter *e, uint32_t node) {
  uint16_t lanes = ft_simt_nest_result_lanes(e, node);
  ft_kir_id zero = ft_simt_nest_number(e, 0);
  uint32_t id =
      ft_simt_nest_new_total(e, node, e->kir->buffer[e->result[node]].dtype, lanes, 1);
  ft_kir_stmt *loop =
      ft_kir_for(e->kir, FT_KIR_SERIAL, e->lane, ft_simt_nest_number(e, e->plan->parts),
                 ft_simt_nest_number(e, e->plan->walkers));
  ft_simt_nest_open(e, loop);
  ft_kir_block *at = ft_simt_nest_here(e);
  ft_kir_id part =
      ft_kir_load(e->kir, at, e->result[node], lanes, place_of(e, node, loop->value), 1);
  ft_kir_id sum = ft_simt_nest_get_register(e, id, zero);
  sum = ft_kir_combine(e->kir, at, e->ir->node[node].op, sum, part);
  ft_simt_nest_set_register(e, id, zero, sum);
  ft_simt_nest_close(e, loop);
  e->value[node] = ft_simt_nest_get_register(e, id, zero);
}

static void add_all(ft_simt_emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++)
    if (ft_simt_nest_runs(e, i)) add_parts(e, i);
  ft_simt_nest_meet(e);
  ft_simt_nest_settle(e);
  ft_simt_nest_store_once(e);
}

void ft_simt_nest_split(ft_simt_emitter *e, ft_kir_id group, ft_kir_id part) {
  e->pass = 1;
  e->begin = part;
  for (uint32_t i = 0; i < e->ir->node_count; i++)
    if (ft_simt_nest_runs(e, i)) declare(e, i);
  ft_simt_nest_when(e, e->guard, leave_first);
  uint32_t counter = workspace(e, FT_I32, e->plan->grid / e->plan->parts);
  ft_kir_stmt *done =
      ft_kir_grid_done(e->kir, counter, group, ft_simt_nest_number(e, e->plan->parts));
  ft_simt_nest_open(e, done);
  add_all(e);
  ft_simt_nest_close(e, done);
}
