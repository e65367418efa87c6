// Rows and columns: threads that share the reduced axes of a row.
#include "codegen/simt_nest_emit.h"

// Rows: a row's threads are neighbours. Columns: neighbours have neighbouring items.
static void take_place(ft_simt_emitter *e) {
  const ft_simt_plan *p = e->plan;
  bool is_row = ft_simt_plan_is_row(p);
  ft_kir_id size = ft_simt_nest_number(e, is_row ? p->walkers : p->each);
  ft_kir_id inner =
      ft_simt_nest_named(e, ft_simt_nest_index(e, FT_KIR_IMOD, e->thread, size));
  ft_kir_id outer =
      ft_simt_nest_named(e, ft_simt_nest_index(e, FT_KIR_IDIV, e->thread, size));
  e->lane = is_row ? inner : outer;
  e->row_in_block = is_row ? outer : inner;
}

// Rows past the end are the last one, computed again.
static void take_row(ft_simt_emitter *e, ft_kir_id group) {
  const ft_simt_plan *p = e->plan;
  int64_t rows = p->steps[FT_SIMT_KEPT];
  ft_kir_id row =
      ft_simt_nest_index(e, FT_KIR_IMUL, group, ft_simt_nest_number(e, p->each));
  row = ft_simt_nest_named(e, ft_simt_nest_index(e, FT_KIR_IADD, row, e->row_in_block));
  e->row = row;
  if (rows % p->each) {
    ft_kir_id last = ft_simt_nest_number(e, rows - 1);
    e->guard = ft_simt_nest_index(e, FT_KIR_ILESS, row, ft_simt_nest_number(e, rows));
    e->row = ft_simt_nest_named(e, ft_simt_nest_index(e, FT_KIR_IMIN, row, last));
  }
  ft_simt_nest_decode(e, FT_SIMT_KEPT, e->row);
}

static void take_part(ft_simt_emitter *e, ft_kir_id part) {
  const ft_simt_plan *p = e->plan;
  ft_kir_id steps = e->end;
  ft_kir_id size = ft_simt_nest_number(e, p->part);
  e->begin = ft_simt_nest_named(e, ft_simt_nest_index(e, FT_KIR_IMUL, part, size));
  ft_kir_id end = ft_simt_nest_index(e, FT_KIR_IADD, e->begin, size);
  e->end = ft_simt_nest_named(e, ft_simt_nest_index(e, FT_KIR_IMIN, end, steps));
}

static void store_first(ft_simt_emitter *e) {
  ft_kir_id is_first =
      ft_simt_nest_index(e, FT_KIR_ILESS, e->lane, ft_simt_nest_number(e, 1));
  ft_simt_nest_when(e, e->plan->walkers > 1 ? is_first : 0, ft_simt_nest_store_outer);
}

void ft_simt_nest_store_once(ft_simt_emitter *e) {
  if (ft_simt_nest_has_outer(e)) ft_simt_nest_when(e, e->guard, store_first);
}

void ft_simt_nest_rows(ft_simt_emitter *e, ft_kir_id block) {
  ft_kir_id parts = ft_simt_nest_number(e, e->plan->parts);
  ft_kir_id group = ft_simt_nest_index(e, FT_KIR_IDIV, block, parts);
  ft_kir_id part = ft_simt_nest_index(e, FT_KIR_IMOD, block, parts);
  take_place(e);
  take_row(e, group);
  if (e->plan->parts > 1) take_part(e, part);
  ft_simt_nest_open_kept(e);
  ft_simt_nest_reduce(e);
  if (e->plan->parts > 1)
    ft_simt_nest_split(e, group, part);
  else
    ft_simt_nest_store_once(e);
}
