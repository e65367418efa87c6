// A thread's tile: products from the slabs, sums of sums, and what is behind them.
#include "codegen/simt_gemm_emit.h"

static uint32_t chunks(const ft_gemm *g) {
  return g->choice->thread_n / g->chunk[1];
}

static ft_kir_type total_type(const ft_gemm *g) {
  return (ft_kir_type){g->math, (uint16_t)g->chunk[1]};
}

static ft_kir_id get(ft_gemm *g, uint32_t held) {
  return ft_kir_load(g->q.e->kir, ft_loop_here(g->q.e), held, (uint16_t)g->chunk[1],
                     ft_gemm_number(g, 0), 1);
}

static void set(ft_gemm *g, uint32_t held, ft_kir_id value) {
  ft_kir_store(g->q.e->kir, ft_loop_here(g->q.e), held, value, ft_gemm_number(g, 0), 1,
               FT_KIR_CACHED);
}

static void add(ft_gemm *g, uint32_t held, ft_kir_id value) {
  set(g, held,
      ft_kir_combine(g->q.e->kir, ft_loop_here(g->q.e), FT_OP_REDUCE_SUM, get(g, held),
                     value));
}

static ft_kir_id zeros(ft_gemm *g) {
  return ft_kir_element(g->q.e->kir, ft_loop_here(g->q.e), total_type(g), 0);
}

// ---- sums that wait
// -----------------------------------------------------------------------------

// Threads side by side have their chunks (i, j) side by side.
static ft_kir_id aside_index(ft_gemm *g, uint32_t i, uint32_t j) {
  ft_kir_id row = ft_gemm_number(g, (int64_t)(i * chunks(g) + j) * g->threads);
  return ft_gemm_times(g, ft_gemm_plus(g, row, g->thread), g->chunk[1]);
}

static ft_kir_id get_aside(ft_gemm *g, uint32_t i, uint32_t j) {
  if (!g->choice->shares_sums) return get(g, g->aside[i][j]);
  return ft_kir_load(g->q.e->kir, ft_loop_here(g->q.e), g->shared_aside,
                     total_type(g).lanes, aside_index(g, i, j), 1);
}

static void set_aside(ft_gemm *g, uint32_t i, uint32_t j, ft_kir_id value) {
  if (g->choice->shares_sums)
    ft_kir_store(g->q.e->kir, ft_loop_here(g->q.e), g->shared_aside, value,
                 aside_index(g, i, j), 1, FT_KIR_CACHED);
  else
    set(g, g->aside[i][j], value);
}

static ft_kir_id with_aside(ft_gemm *g, uint32_t i, uint32_t j) {
  return ft_kir_combine(g->q.e->kir, ft_loop_here(g->q.e), FT_OP_REDUCE_SUM,
                        get_aside(g, i, j), get(g, g->total[i][j]));
}

void ft_gemm_open_totals(ft_gemm *g) {
  ft_kir_block *here = ft_loop_here(g->q.e);
  ft_kir_id none = zeros(g);
  if (g->choice->shares_sums)
    g->shared_aside = ft_kir_shared(g->q.e->kir, here, g->math, ft_gemm_tile_elements(g));
  for (uint32_t i = 0; i < g->choice->thread_m; i++)
    for (uint32_t j = 0; j < chunks(g); j++) {
      g->total[i][j] = ft_kir_register(g->q.e->kir, here, total_type(g));
      set(g, g->total[i][j], none);
      if (!g->sum_steps) continue;
      if (!g->choice->shares_sums)
        g->aside[i][j] = ft_kir_register(g->q.e->kir, here, total_type(g));
      set_aside(g, i, j, none);
    }
}

// Chunks of neighbours, spread so that threads side by side have chunks side by side.
ft_kir_id ft_gemm_spread(ft_gemm *g, int which, uint32_t i) {
  const ft_simt_gemm_choice *c = g->choice;
  uint32_t across = which == 0 ? c->block_m / c->thread_m : c->block_n / c->thread_n;
  uint32_t chunk = g->chunk[which];
  ft_kir_id at =
      ft_gemm_plus(g, g->place[which], ft_gemm_number(g, (int64_t)(i / chunk) * across));
  return ft_gemm_plus(g, ft_gemm_times(g, at, chunk), ft_gemm_number(g, i % chunk));
}

// ---- products
// ------------------------------------------------------------------------------------

// The thread's chunk that starts at row or column |i|, of term |term|.
static ft_kir_id slab_chunk(ft_gemm *g, int which, uint32_t i, ft_kir_id slot,
                            ft_kir_id term) {
  const ft_gemm_slab *s = &g->slab[which];
  ft_kir_id row = ft_gemm_plus(g, slot, ft_gemm_times(g, term, s->pitch));
  return ft_kir_load(g->q.e->kir, ft_loop_here(g->q.e), s->buffer,
                     (uint16_t)g->chunk[which],
                     ft_gemm_plus(g, row, ft_gemm_spread(g, which, i)), 1);
}

static void add_row(ft_gemm *g, uint32_t i, ft_kir_id a, const ft_kir_id *b) {
  ft_kir *kir = g->q.e->kir;
  ft_kir_block *here = ft_loop_here(g->q.e);
  ft_kir_id factor =
      ft_kir_splat(kir, here, ft_kir_lane(kir, here, a, (uint16_t)(i % g->chunk[0])),
                   total_type(g).lanes);
  for (uint32_t j = 0; j < chunks(g); j++) {
    ft_kir_id pair[2] = {factor, b[j]};
    add(g, g->total[i][j], ft_kir_primitive(kir, here, FT_OP_MUL, g->math, pair, 2));
  }
}

static void add_products(ft_gemm *g, ft_kir_id slot_a, ft_kir_id slot_b, ft_kir_id term) {
  ft_kir_id a = 0, b[FT_GEMM_THREAD];
  for (uint32_t j = 0; j < chunks(g); j++)
    b[j] = slab_chunk(g, 1, j * g->chunk[1], slot_b, term);
  for (uint32_t i = 0; i < g->choice->thread_m; i++) {
    if (i % g->chunk[0] == 0) a = slab_chunk(g, 0, i, slot_a, term);
    add_row(g, i, a, b);
  }
}

void ft_gemm_multiply_slab(ft_gemm *g, ft_kir_id step) {
  ft_loop_emitter *e = g->q.e;
  ft_kir_id slot_a = ft_gemm_named(g, ft_gemm_slot(g, 0, step));
  ft_kir_id slot_b = ft_gemm_named(g, ft_gemm_slot(g, 1, step));
  ft_kir_stmt *loop =
      ft_kir_for(e->kir, FT_KIR_UNROLL, ft_gemm_number(g, 0),
                 ft_gemm_number(g, g->choice->block_k), ft_gemm_number(g, 1));
  ft_loop_enter(e, &loop->body);
  add_products(g, slot_a, slot_b, loop->value);
  ft_loop_close(e, loop);
}

// ---- sums of sums
// --------------------------------------------------------------------------------

void ft_gemm_set_aside(ft_gemm *g, ft_kir_id step) {
  ft_loop_emitter *e = g->q.e;
  if (!g->sum_steps) return;
  ft_kir_id rest = ft_gemm_index(g, FT_KIR_IMOD, step, ft_gemm_number(g, g->sum_steps));
  ft_kir_id is_last =
      ft_gemm_index(g, FT_KIR_ILESS, ft_gemm_number(g, g->sum_steps - 2), rest);
  ft_kir_stmt *branch = ft_kir_if(e->kir, is_last);
  ft_loop_enter(e, &branch->body);
  ft_kir_id none = zeros(g);
  for (uint32_t i = 0; i < g->choice->thread_m; i++)
    for (uint32_t j = 0; j < chunks(g); j++) {
      set_aside(g, i, j, with_aside(g, i, j));
      set(g, g->total[i][j], none);
    }
  ft_loop_close(e, branch);
}

void ft_gemm_finish_sums(ft_gemm *g) {
  for (uint32_t i = 0; g->sum_steps && i < g->choice->thread_m; i++)
    for (uint32_t j = 0; j < chunks(g); j++) set(g, g->total[i][j], with_aside(g, i, j));
}

// ---- the end
// -------------------------------------------------------------------------------------

// Columns [j, j + store_lanes) of row |i|.
static void store_piece(ft_gemm *g, uint32_t i, uint32_t j) {
  ft_loop_emitter *e = g->q.e;
  const ft_simt_gemm_choice *c = g->choice;
  ft_kir_id m = ft_gemm_named(g, ft_gemm_plus(g, g->first[0], ft_gemm_spread(g, 0, i)));
  ft_kir_id n = ft_gemm_named(g, ft_gemm_plus(g, g->first[1], ft_gemm_spread(g, 1, j)));
  ft_kir_id inside = ft_gemm_both(g, ft_gemm_guard(g, m, g->q.m, c->block_m),
                                  ft_gemm_guard(g, n, g->q.n, c->block_n));
  ft_kir_stmt *branch = ft_kir_if(e->kir, inside ? inside : ft_gemm_number(g, 1));
  ft_loop_enter(e, &branch->body);
  ft_kir_id sum = get(g, g->total[i][j / g->chunk[1]]);
  if (g->store_lanes == 1)
    sum = ft_kir_lane(e->kir, ft_loop_here(e), sum, (uint16_t)(j % g->chunk[1]));
  ft_simt_product_store(&g->q, sum, m, n, g->store_lanes);
  ft_loop_close(e, branch);
}

void ft_gemm_store_tile(ft_gemm *g) {
  for (uint32_t i = 0; i < g->choice->thread_m; i++)
    for (uint32_t j = 0; j < g->choice->thread_n; j += g->store_lanes)
      store_piece(g, i, j);
}

// ---- splits
// --------------------------------------------------------------------------------------

// Where the thread's chunk (i, j) of |split| lies: neighbours side by side.
static ft_kir_id part_index(ft_gemm *g, ft_kir_id split, uint32_t i, uint32_t j) {
  ft_kir_id part = ft_gemm_plus(g, ft_gemm_times(g, g->tile, g->choice->splits), split);
  ft_kir_id row =
      ft_gemm_plus(g, ft_gemm_times(g, part, (int64_t)g->choice->thread_m * chunks(g)),
                   ft_gemm_number(g, (int64_t)i * chunks(g) + j));
  ft_kir_id at = ft_gemm_plus(g, ft_gemm_times(g, row, g->threads), g->thread);
  return ft_gemm_times(g, at, g->chunk[1]);
}

static void add_parts(ft_gemm *g, uint32_t parts) {
  ft_loop_emitter *e = g->q.e;
  ft_kir_id none = zeros(g);
  for (uint32_t i = 0; i < g->choice->thread_m; i++)
    for (uint32_t j = 0; j < chunks(g); j++) set(g, g->total[i][j], none);
  ft_kir_stmt *loop =
      ft_kir_for(e->kir, FT_KIR_SERIAL, ft_gemm_number(g, 0),
                 ft_gemm_number(g, g->choice->splits), ft_gemm_number(g, 1));
  ft_loop_enter(e, &loop->body);
  for (uint32_t i = 0; i < g->choice->thread_m; i++)
    for (uint32_t j = 0; j < chunks(g); j++)
      add(g, g->total[i][j],
          ft_kir_load(e->kir, ft_loop_here(e), parts, total_type(g).lanes,
                      part_index(g, loop->value, i, j), 1));
  ft_loop_close(e, loop);
}

void ft_gemm_store_split(ft_gemm *g) {
  ft_loop_emitter *e = g->q.e;
  const ft_simt_gemm_choice *c = g->choice;
  uint32_t argument = e->group->input_count + e->group->output_count;
  int64_t tiles = g->tile_count, parts_count = tiles * c->splits;
  uint32_t parts =
      ft_kir_workspace(e->kir, g->math, parts_count * ft_gemm_tile_elements(g), argument);
  uint32_t counter = ft_kir_workspace(e->kir, FT_I32, tiles, argument);
  for (uint32_t i = 0; i < c->thread_m; i++)
    for (uint32_t j = 0; j < chunks(g); j++)
      ft_kir_store(e->kir, ft_loop_here(e), parts, get(g, g->total[i][j]),
                   part_index(g, g->split, i, j), 1, FT_KIR_CACHED);
  ft_kir_stmt *done =
      ft_kir_grid_done(e->kir, counter, g->tile, ft_gemm_number(g, c->splits));
  ft_loop_enter(e, &done->body);
  add_parts(g, parts);
  ft_gemm_store_tile(g);
  ft_loop_close(e, done);
}
