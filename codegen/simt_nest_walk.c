// Loops over the reduced axes: a thread's share is every |walkers|-th step. Loops that
// take several steps at a time have the same bounds for all threads of a block; what is
// left is walked one by one.
#include <string.h>

#include "codegen/simt_nest_emit.h"

static void stand_at(ft_simt_emitter *e, ft_kir_id step, ft_kir_id accumulator) {
  ft_simt_nest_decode(e, FT_SIMT_REDUCED, step);
  e->point[e->at].step = step;
  e->point[e->at].accumulator = accumulator;
}

static ft_kir_id ahead(ft_simt_emitter *e, ft_kir_id from, int64_t turns) {
  ft_kir_id far = ft_simt_nest_number(e, turns * e->plan->walkers);
  return ft_simt_nest_index(e, FT_KIR_IADD, from, far);
}

// ---- one step at a time
// --------------------------------------------------------------------

static void walk_rest(ft_simt_emitter *e, ft_kir_id begin, ft_kir_id end,
                      ft_simt_body *run) {
  ft_kir_id first = ft_simt_nest_plus(e, begin, e->lane);
  ft_kir_stmt *loop = ft_kir_for(e->kir, FT_KIR_SERIAL, first, end,
                                 ft_simt_nest_number(e, e->plan->walkers));
  ft_simt_nest_open(e, loop);
  stand_at(e, loop->value, ft_simt_nest_number(e, 0));
  run(e);
  ft_simt_nest_close(e, loop);
}

// ---- several
// -------------------------------------------------------------------------------

// All that the points read is asked for before any of it is used.
static void run_points(ft_simt_emitter *e, ft_kir_id from, ft_simt_body *run) {
  size_t bytes = e->ir->node_count * sizeof(ft_simt_known);
  e->points = e->plan->accumulators;
  for (uint32_t u = 1; u < e->points; u++) {
    memset(e->point[u].known, 0, bytes);
    memcpy(e->point[u].index, e->point[0].index, sizeof e->point[0].index);
  }
  for (e->at = 0; e->at < e->points; e->at++) {
    ft_kir_id step = ft_simt_nest_named(e, ahead(e, from, e->at));
    stand_at(e, step, ft_simt_nest_number(e, e->at));
  }
  for (e->at = 0; e->at < e->points; e->at++) {
    ft_simt_nest_tell(e);
    ft_simt_nest_load_all(e);
  }
  for (e->at = 0; e->at < e->points; e->at++) {
    ft_simt_nest_tell(e);
    run(e);
  }
  e->at = 0;
}

static ft_kir_id walk_turns(ft_simt_emitter *e, ft_kir_id begin, ft_kir_id end,
                            ft_simt_body *run) {
  int64_t turn = (int64_t)e->plan->walkers * e->plan->accumulators;
  ft_kir_id size = ft_simt_nest_number(e, turn);
  ft_kir_id whole = ft_simt_nest_index(e, FT_KIR_ISUB, end, begin);
  whole = ft_simt_nest_index(e, FT_KIR_IDIV, whole, size);
  whole = ft_simt_nest_index(e, FT_KIR_IMUL, whole, size);
  whole = ft_simt_nest_named(e, ft_simt_nest_index(e, FT_KIR_IADD, begin, whole));
  ft_kir_stmt *loop = ft_kir_for(e->kir, FT_KIR_SERIAL, begin, whole, size);
  ft_simt_nest_open(e, loop);
  run_points(e, ft_simt_nest_index(e, FT_KIR_IADD, loop->value, e->lane), run);
  ft_simt_nest_close(e, loop);
  e->points = 1;
  return whole;
}

// ---- a row in registers
// ------------------------------------------------------------------------

static void run_place(ft_simt_emitter *e, ft_kir_id place, ft_simt_body *run) {
  ft_kir_id walkers = ft_simt_nest_number(e, e->plan->walkers);
  ft_kir_id step = ft_simt_nest_index(e, FT_KIR_IMUL, place, walkers);
  step = ft_simt_nest_plus(e, step, e->lane);
  ft_kir_id accumulators = ft_simt_nest_number(e, e->plan->accumulators);
  stand_at(e, step, ft_simt_nest_index(e, FT_KIR_IMOD, place, accumulators));
  e->point[0].place = place;
  run(e);
}

static void walk_places(ft_simt_emitter *e, ft_simt_body *run) {
  int64_t walkers = e->plan->walkers, steps = e->plan->steps[FT_SIMT_REDUCED];
  int64_t whole = steps / walkers;
  if (whole) {
    ft_kir_stmt *loop =
        ft_kir_for(e->kir, FT_KIR_UNROLL, ft_simt_nest_number(e, 0),
                   ft_simt_nest_number(e, whole), ft_simt_nest_number(e, 1));
    ft_simt_nest_open(e, loop);
    run_place(e, loop->value, run);
    ft_simt_nest_close(e, loop);
  }
  if (whole * walkers == steps) return;
  ft_kir_id rest = ft_simt_nest_number(e, steps - whole * walkers);
  ft_kir_stmt *branch =
      ft_kir_if(e->kir, ft_simt_nest_index(e, FT_KIR_ILESS, e->lane, rest));
  ft_simt_nest_open(e, branch);
  run_place(e, ft_simt_nest_number(e, whole), run);
  ft_simt_nest_close(e, branch);
}

void ft_simt_nest_walk(ft_simt_emitter *e, ft_kir_id begin, ft_kir_id end,
                       ft_simt_body *run) {
  if (e->plan->choice.buffer == FT_SIMT_REGISTERS) {
    walk_places(e, run);
    return;
  }
  int64_t from, to;
  bool is_known =
      ft_kir_is_number(e->kir, begin, &from) && ft_kir_is_number(e->kir, end, &to);
  int64_t turn = (int64_t)e->plan->walkers * e->plan->accumulators;
  if (e->plan->accumulators > 1 && !(is_known && to - from < turn))
    begin = walk_turns(e, begin, end, run);
  int64_t left;
  is_known = ft_kir_is_number(e->kir, begin, &left) && is_known;
  if (!(is_known && left == to)) walk_rest(e, begin, end, run);
}
