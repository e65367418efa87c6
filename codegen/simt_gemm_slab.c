// Slabs: from memory, through what leads to the operand, to shared memory.
#include "codegen/simt_gemm_emit.h"

// A piece that a thread moves. |branch|: NULL, or open, when not all threads have one.
typedef struct piece {
  ft_kir_stmt *branch;
  ft_kir_id outer, term;          // in the slab
  ft_kir_id all_outer, all_term;  // in the operand
  ft_kir_id inside;               // 0: always
} piece;

static piece open_piece(ft_gemm *g, int which, uint32_t round, ft_kir_id step) {
  const ft_gemm_slab *s = &g->slab[which];
  piece p = {0};
  ft_kir_id at =
      ft_gemm_plus(g, g->thread, ft_gemm_number(g, (int64_t)round * g->threads));
  if ((round + 1) * g->threads > s->pieces) {
    p.branch = ft_kir_if(
        g->q.e->kir, ft_gemm_index(g, FT_KIR_ILESS, at, ft_gemm_number(g, s->pieces)));
    ft_loop_enter(g->q.e, &p.branch->body);
  }
  bool along = s->reach.is_along_terms;
  ft_kir_id across =
      ft_gemm_number(g, (along ? g->choice->block_k : s->block) / s->reach.lanes);
  ft_kir_id high = ft_gemm_named(g, ft_gemm_index(g, FT_KIR_IDIV, at, across));
  ft_kir_id low = ft_gemm_index(g, FT_KIR_IMOD, at, across);
  low = ft_gemm_named(g, ft_gemm_times(g, low, s->reach.lanes));
  p.outer = along ? high : low;
  p.term = along ? low : high;
  if (!step) return p;
  ft_kir_id first_term =
      ft_gemm_times(g, ft_gemm_plus(g, g->first_step, step), g->choice->block_k);
  p.all_outer = ft_gemm_named(g, ft_gemm_plus(g, g->first[which], p.outer));
  p.all_term = ft_gemm_named(g, ft_gemm_plus(g, first_term, p.term));
  p.inside = ft_gemm_both(g, ft_gemm_guard(g, p.all_outer, s->extent, s->block),
                          ft_gemm_guard(g, p.all_term, g->q.k, g->choice->block_k));
  return p;
}

static void close_piece(ft_gemm *g, const piece *p) {
  if (!p->branch) return;
  ft_loop_close(g->q.e, p->branch);
}

static ft_kir_id slab_index(ft_gemm *g, int which, const piece *p, ft_kir_id step) {
  ft_kir_id row = ft_gemm_times(g, p->term, g->slab[which].pitch);
  return ft_gemm_plus(g, ft_gemm_slot(g, which, step), ft_gemm_plus(g, row, p->outer));
}

int64_t ft_gemm_slab_elements(const ft_gemm *g, int which) {
  const ft_gemm_slab *s = &g->slab[which];
  return (int64_t)s->slots * s->pitch * g->choice->block_k;
}

ft_kir_id ft_gemm_slot(ft_gemm *g, int which, ft_kir_id step) {
  const ft_gemm_slab *s = &g->slab[which];
  ft_kir_id slot = ft_gemm_index(g, FT_KIR_IMOD, step, ft_gemm_number(g, s->slots));
  return ft_gemm_times(g, slot, (int64_t)s->pitch * g->choice->block_k);
}

void ft_gemm_open_slab(ft_gemm *g, int which) {
  ft_gemm_slab *s = &g->slab[which];
  ft_kir_block *here = ft_loop_here(g->q.e);
  ft_dtype dtype = g->q.e->graph->value[g->q.p->input[which]].dtype;
  s->buffer = ft_kir_shared(g->q.e->kir, here, dtype, ft_gemm_slab_elements(g, which));
  uint32_t held = s->is_copied ? 0 : s->rounds;
  for (uint32_t i = 0; i < held && i < FT_GEMM_PIECES; i++)
    s->held[i] =
        ft_kir_register(g->q.e->kir, here, (ft_kir_type){g->math, s->reach.lanes});
}

// ---- through registers
// -------------------------------------------------------------------------

static void hold(ft_gemm *g, uint32_t held, ft_kir_id value) {
  ft_kir_store(g->q.e->kir, ft_loop_here(g->q.e), held, value, ft_gemm_number(g, 0), 1,
               FT_KIR_CACHED);
}

static ft_kir_id value_of(ft_gemm *g, int which, const piece *p) {
  const ft_simt_reach *r = &g->slab[which].reach;
  bool along = r->is_along_terms;
  return ft_simt_product_load(
      &g->q, which, ft_simt_product_position(&g->q, p->all_outer, along ? 1 : r->lanes),
      ft_simt_product_position(&g->q, p->all_term, along ? r->lanes : 1), r->lanes);
}

// The piece of the operand, or zeros where it ends.
static void take_piece(ft_gemm *g, int which, uint32_t round, uint32_t held,
                       ft_kir_id step) {
  ft_loop_emitter *e = g->q.e;
  piece p = open_piece(g, which, round, step);
  if (p.inside) {
    ft_kir_type type = {g->math, g->slab[which].reach.lanes};
    hold(g, held, ft_kir_element(e->kir, ft_loop_here(e), type, 0));
    ft_kir_stmt *branch = ft_kir_if(e->kir, p.inside);
    ft_loop_enter(e, &branch->body);
    hold(g, held, value_of(g, which, &p));
    ft_loop_close(e, branch);
  } else {
    hold(g, held, value_of(g, which, &p));
  }
  close_piece(g, &p);
}

static void put_piece(ft_gemm *g, int which, uint32_t round, uint32_t held,
                      ft_kir_id step) {
  const ft_gemm_slab *s = &g->slab[which];
  ft_loop_emitter *e = g->q.e;
  piece p = open_piece(g, which, round, 0);
  ft_kir_id value =
      ft_kir_load(e->kir, ft_loop_here(e), held, s->reach.lanes, ft_gemm_number(g, 0), 1);
  ft_kir_store(e->kir, ft_loop_here(e), s->buffer, value, slab_index(g, which, &p, step),
               s->reach.is_along_terms ? s->pitch : 1, FT_KIR_CACHED);
  close_piece(g, &p);
}

// As many loads as are held before the first store: they are under way together.
void ft_gemm_fill_slab(ft_gemm *g, int which, ft_kir_id step) {
  const ft_gemm_slab *s = &g->slab[which];
  for (uint32_t first = 0; first < s->rounds; first += FT_GEMM_PIECES) {
    uint32_t end =
        first + FT_GEMM_PIECES < s->rounds ? first + FT_GEMM_PIECES : s->rounds;
    for (uint32_t i = first; i < end; i++)
      take_piece(g, which, i, s->held[i - first], step);
    for (uint32_t i = first; i < end; i++)
      put_piece(g, which, i, s->held[i - first], step);
  }
}

void ft_gemm_take_slab(ft_gemm *g, int which, ft_kir_id step) {
  const ft_gemm_slab *s = &g->slab[which];
  for (uint32_t i = 0; i < s->rounds; i++) take_piece(g, which, i, s->held[i], step);
}

void ft_gemm_put_slab(ft_gemm *g, int which, ft_kir_id step) {
  const ft_gemm_slab *s = &g->slab[which];
  for (uint32_t i = 0; i < s->rounds; i++) put_piece(g, which, i, s->held[i], step);
}

// ---- without registers
// -------------------------------------------------------------------------

// Pieces along the terms are of one element, since a slab has them in different rows.
void ft_gemm_copy_slab(ft_gemm *g, int which, ft_kir_id step) {
  const ft_gemm_slab *s = &g->slab[which];
  for (uint32_t i = 0; i < s->rounds; i++) {
    piece p = open_piece(g, which, i, step);
    ft_kir_id from;
    uint32_t source = ft_simt_product_source(
        &g->q, which, ft_simt_product_position(&g->q, p.all_outer, 1),
        ft_simt_product_position(&g->q, p.all_term, 1), &from);
    ft_kir_copy(g->q.e->kir, ft_loop_here(g->q.e), source, from, s->buffer,
                slab_index(g, which, &p, step), s->reach.lanes, p.inside);
    close_piece(g, &p);
  }
}
