// A thread per item: |unroll| of them in a turn, side by side where nothing is reduced.
#include "codegen/simt_nest_emit.h"

static int64_t items(const ft_simt_emitter *e) {
  return e->plan->steps[FT_SIMT_KEPT];
}

static ft_kir_id is_item(ft_simt_emitter *e, ft_kir_id item) {
  return ft_simt_nest_index(e, FT_KIR_ILESS, item, ft_simt_nest_number(e, items(e)));
}

static void put_one(ft_simt_emitter *e, ft_kir_id item) {
  ft_simt_nest_decode(e, FT_SIMT_KEPT, item);
  ft_simt_nest_reduce(e);
  ft_simt_nest_store_outer(e);
}

static ft_kir_id item_after(ft_simt_emitter *e, ft_kir_id first, uint32_t u) {
  if (u == 0) return first;
  int64_t far = (int64_t)u * e->plan->choice.threads;
  ft_kir_id item = ft_simt_nest_index(e, FT_KIR_IADD, first, ft_simt_nest_number(e, far));
  return ft_simt_nest_named(e, item);
}

static void put_each(ft_simt_emitter *e, ft_kir_id first) {
  for (uint32_t u = 0; u < e->plan->choice.unroll; u++) {
    ft_kir_id item = item_after(e, first, u);
    ft_kir_stmt *branch = ft_kir_if(e->kir, is_item(e, item));
    ft_simt_nest_open(e, branch);
    put_one(e, item);
    ft_simt_nest_close(e, branch);
  }
}

// Side by side: all that the items read is asked for before any of it is used.
static void put_together(ft_simt_emitter *e, ft_kir_id first) {
  for (e->at = 0; e->at < e->points; e->at++)
    ft_simt_nest_decode(e, FT_SIMT_KEPT, item_after(e, first, e->at));
  for (e->at = 0; e->at < e->points; e->at++) ft_simt_nest_load_all(e);
  for (e->at = 0; e->at < e->points; e->at++) ft_simt_nest_store_outer(e);
  e->at = 0;
}

// A turn: |unroll| items, of which the last ones may be past the end.
static void put_items(ft_simt_emitter *e, ft_kir_id first) {
  uint32_t unroll = e->plan->choice.unroll;
  if (e->ir->reduced || unroll == 1) {
    put_each(e, first);
    return;
  }
  int64_t ahead = (int64_t)(unroll - 1) * e->plan->choice.threads;
  ft_kir_id last =
      ft_simt_nest_index(e, FT_KIR_IADD, first, ft_simt_nest_number(e, ahead));
  ft_kir_stmt *branch = ft_kir_if(e->kir, is_item(e, last));
  e->points = unroll;
  ft_simt_nest_enter(e, &branch->body);
  put_together(e, first);
  ft_simt_nest_leave(e);
  e->points = 1;
  ft_simt_nest_enter(e, &branch->otherwise);
  put_each(e, first);
  ft_simt_nest_leave(e);
  ft_kir_append(ft_simt_nest_here(e), branch);
}

void ft_simt_nest_items(ft_simt_emitter *e, ft_kir_id block) {
  const ft_simt_plan *p = e->plan;
  ft_kir_id size = ft_simt_nest_number(e, p->each);
  ft_kir_id first = ft_simt_nest_index(e, FT_KIR_IMUL, block, size);
  first = ft_simt_nest_named(e, ft_simt_nest_index(e, FT_KIR_IADD, first, e->thread));
  if (p->grid * p->each >= items(e)) {
    put_items(e, first);
    return;
  }
  ft_kir_stmt *loop =
      ft_kir_for(e->kir, FT_KIR_SERIAL, first, ft_simt_nest_number(e, items(e)),
                 ft_simt_nest_number(e, p->each * p->grid));
  ft_simt_nest_open(e, loop);
  put_items(e, loop->value);
  ft_simt_nest_close(e, loop);
}
