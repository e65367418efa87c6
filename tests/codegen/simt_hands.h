// Kernels with threads drawn by hand, for what no skeleton has alone: each computes the
// drawing of its name.
#ifndef FT_TESTS_CODEGEN_SIMT_HANDS_H
#define FT_TESTS_CODEGEN_SIMT_HANDS_H

#include "codegen/kir.h"
#include "graphs.h"

typedef struct hand {
  ft_kir *kir;
  ft_kir_stmt *grid, *threads;
  ft_kir_block *here;
  ft_kir_id block, thread;
} hand;

static inline ft_kir_id hand_number(hand *h, int64_t n) {
  return ft_kir_number(h->kir, n);
}

static inline ft_kir_id hand_plus(hand *h, ft_kir_id a, ft_kir_id b) {
  return ft_kir_index(h->kir, FT_KIR_IADD, a, b);
}

static inline ft_kir_id hand_times(hand *h, ft_kir_id a, int64_t n) {
  return ft_kir_index(h->kir, FT_KIR_IMUL, a, hand_number(h, n));
}

static inline hand hand_start(int64_t blocks, int64_t threads, ft_arena *arena) {
  hand h = {.kir = ft_kir_create(arena)};
  ft_kir_id none = hand_number(&h, 0), one = hand_number(&h, 1);
  h.grid = ft_kir_for(h.kir, FT_KIR_GRID, none, hand_number(&h, blocks), one);
  h.threads = ft_kir_for(h.kir, FT_KIR_THREAD, none, hand_number(&h, threads), one);
  h.here = &h.threads->body;
  h.block = h.grid->value;
  h.thread = h.threads->value;
  return h;
}

static inline ft_kir *hand_end(hand *h) {
  ft_kir_append(&h->grid->body, h->threads);
  ft_kir_append(&h->kir->body, h->grid);
  return h->kir;
}

static inline ft_kir_id hand_load(hand *h, uint32_t buffer, uint16_t lanes,
                                  ft_kir_id index) {
  return ft_kir_load(h->kir, h->here, buffer, lanes, index, 1);
}

static inline void hand_store(hand *h, uint32_t buffer, ft_kir_id value,
                              ft_kir_id index) {
  ft_kir_store(h->kir, h->here, buffer, value, index, 1, FT_KIR_CACHED);
}

static inline ft_kir_id hand_sum(hand *h, ft_kir_id a, ft_kir_id b) {
  return ft_kir_combine(h->kir, h->here, FT_OP_REDUCE_SUM, a, b);
}

// A serial loop over [0, end) that the next statements go into.
static inline ft_kir_stmt *hand_loop(hand *h, ft_kir_loop kind, int64_t end) {
  ft_kir_stmt *loop =
      ft_kir_for(h->kir, kind, hand_number(h, 0), hand_number(h, end), hand_number(h, 1));
  ft_kir_append(h->here, loop);
  h->here = &loop->body;
  return loop;
}

// ---- sums of the rows of 3 sheets of 5 x 40: each block has a row, the last of a sheet
// adds them

enum { SHEETS = 3, ROWS = 5, COLUMNS = 40 };

static inline void draw_split_sum(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(SHEETS, ROWS, COLUMNS));
  output(s, reduce(s, FT_OP_REDUCE_SUM, one(s, FT_OP_ABS, x), 2));
}

static inline void add_rows(hand *h, uint32_t part, uint32_t out, ft_kir_id sheet) {
  ft_kir_block *body = h->here;
  uint32_t total = ft_kir_register(h->kir, body, (ft_kir_type){FT_F32, 1});
  ft_kir_id none = hand_number(h, 0);
  hand_store(h, total, ft_kir_element(h->kir, body, (ft_kir_type){FT_F32, 1}, 0), none);
  ft_kir_stmt *rows = hand_loop(h, FT_KIR_SERIAL, ROWS);
  ft_kir_id row = hand_plus(h, hand_times(h, sheet, ROWS), rows->value);
  ft_kir_id x =
      hand_load(h, part, 1, hand_plus(h, hand_times(h, row, COLUMNS), h->thread));
  hand_store(h, total, hand_sum(h, hand_load(h, total, 1, none), x), none);
  h->here = body;
  hand_store(h, out, hand_load(h, total, 1, none),
             hand_plus(h, hand_times(h, sheet, COLUMNS), h->thread));
}

static inline ft_kir *build_split_sum(ft_arena *arena) {
  hand h = hand_start(SHEETS * ROWS, COLUMNS, arena);
  uint32_t in = ft_kir_global(h.kir, FT_F32, SHEETS * ROWS * COLUMNS, 0, false);
  uint32_t out = ft_kir_global(h.kir, FT_F32, SHEETS * COLUMNS, 1, true);
  uint32_t part = ft_kir_workspace(h.kir, FT_F32, SHEETS * ROWS * COLUMNS, 2);
  uint32_t counter = ft_kir_workspace(h.kir, FT_I32, SHEETS, 2);
  ft_kir_id at = hand_plus(&h, hand_times(&h, h.block, COLUMNS), h.thread);
  ft_kir_id x = hand_load(&h, in, 1, at);
  hand_store(&h, part, ft_kir_primitive(h.kir, h.here, FT_OP_ABS, FT_F32, &x, 1), at);
  ft_kir_id sheet = ft_kir_let(
      h.kir, h.here, ft_kir_index(h.kir, FT_KIR_IDIV, h.block, hand_number(&h, ROWS)));
  ft_kir_stmt *last = ft_kir_grid_done(h.kir, counter, sheet, hand_number(&h, ROWS));
  ft_kir_append(h.here, last);
  h.here = &last->body;
  add_rows(&h, part, out, sheet);
  return hand_end(&h);
}

// ---- x minus a weighted sum of its 4 rows: a thread holds 2 columns in registers

enum { HELD = 4, PAIRS = 33 };

static inline void draw_held_rows(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(3, HELD, 2 * PAIRS));
  uint32_t w = input(s, FT_F32, SHAPE(HELD, 1));
  output(s,
         two(s, FT_OP_SUB, x, reduce(s, FT_OP_REDUCE_SUM, two(s, FT_OP_MUL, x, w), 2)));
}

// Where row |row| of the thread's columns starts.
static inline ft_kir_id held_place(hand *h, ft_kir_id row) {
  ft_kir_id all = hand_plus(h, hand_times(h, h->block, HELD), row);
  return hand_times(h, hand_plus(h, hand_times(h, all, PAIRS), h->thread), 2);
}

static inline void hold_rows(hand *h, uint32_t in, uint32_t held) {
  ft_kir_block *outer = h->here;
  ft_kir_stmt *rows = hand_loop(h, FT_KIR_UNROLL, HELD);
  ft_kir_id x = ft_kir_load_hinted(h->kir, h->here, in, 2, held_place(h, rows->value), 1,
                                   FT_KIR_STREAMED);
  hand_store(h, held, x, rows->value);
  h->here = outer;
}

static inline void weigh_rows(hand *h, uint32_t weight, uint32_t held, uint32_t total) {
  ft_kir_block *outer = h->here;
  ft_kir_id none = hand_number(h, 0);
  ft_kir_id zero = ft_kir_element(h->kir, outer, (ft_kir_type){FT_F32, 2}, 0);
  hand_store(h, total, zero, none);
  ft_kir_stmt *rows = hand_loop(h, FT_KIR_UNROLL, HELD);
  ft_kir_id w = hand_load(h, weight, 1, rows->value);
  ft_kir_id factor[2] = {hand_load(h, held, 2, rows->value),
                         ft_kir_splat(h->kir, h->here, w, 2)};
  ft_kir_id x = ft_kir_primitive(h->kir, h->here, FT_OP_MUL, FT_F32, factor, 2);
  hand_store(h, total, hand_sum(h, hand_load(h, total, 2, none), x), none);
  h->here = outer;
}

static inline ft_kir *build_held_rows(ft_arena *arena) {
  hand h = hand_start(3, PAIRS, arena);
  ft_kir_type pair = {FT_F32, 2};
  uint32_t in = ft_kir_global(h.kir, FT_F32, 3 * HELD * 2 * PAIRS, 0, false);
  uint32_t weight = ft_kir_global(h.kir, FT_F32, HELD, 1, false);
  uint32_t out = ft_kir_global(h.kir, FT_F32, 3 * HELD * 2 * PAIRS, 2, true);
  uint32_t held = ft_kir_registers(h.kir, h.here, pair, HELD);
  uint32_t total = ft_kir_register(h.kir, h.here, pair);
  hold_rows(&h, in, held);
  weigh_rows(&h, weight, held, total);
  ft_kir_stmt *rows = hand_loop(&h, FT_KIR_UNROLL, HELD);
  ft_kir_id sides[2] = {hand_load(&h, held, 2, rows->value),
                        hand_load(&h, total, 2, hand_number(&h, 0))};
  ft_kir_id y = ft_kir_primitive(h.kir, h.here, FT_OP_SUB, FT_F32, sides, 2);
  hand_store(&h, out, y, held_place(&h, rows->value));
  return hand_end(&h);
}

// ---- sums of rows: a warp copies one slab ahead of the one it adds

enum { LANES = 32 };
enum { MOST_LANES = 4, WIDE = 2 * LANES * MOST_LANES + 44 };  // the last slab is short

static inline void draw_staged_sum(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(4, WIDE));
  output(s, reduce(s, FT_OP_REDUCE_SUM, one(s, FT_OP_ABS, x), 2));
}

typedef struct staging {
  hand h;
  uint32_t in, slab, total;
  uint16_t lanes;
  int64_t slabs;
} staging;

// Where the thread's part of slab |number| goes to: the two take turns.
static inline ft_kir_id staged_place(staging *g, ft_kir_id number) {
  hand *h = &g->h;
  ft_kir_id turn = ft_kir_index(h->kir, FT_KIR_IMOD, number, hand_number(h, 2));
  return hand_times(h, turn, LANES * g->lanes);
}

static inline void stage(staging *g, ft_kir_id number) {
  hand *h = &g->h;
  ft_kir_id own = hand_times(h, h->thread, g->lanes);
  ft_kir_id column = hand_plus(h, hand_times(h, number, LANES * g->lanes), own);
  ft_kir_id inside = ft_kir_index(h->kir, FT_KIR_ILESS, column, hand_number(h, WIDE));
  ft_kir_copy(h->kir, h->here, g->in, hand_plus(h, hand_times(h, h->block, WIDE), column),
              g->slab, hand_plus(h, staged_place(g, number), own), g->lanes, inside);
  ft_kir_commit(h->kir, h->here);
}

// Each thread adds what its neighbours copied.
static inline void add_staged(staging *g, ft_kir_id number) {
  hand *h = &g->h;
  ft_kir_block *outer = h->here;
  ft_kir_id none = hand_number(h, 0);
  ft_kir_stmt *parts = hand_loop(h, FT_KIR_UNROLL, g->lanes);
  ft_kir_id mirror =
      ft_kir_index(h->kir, FT_KIR_ISUB, hand_number(h, LANES - 1), h->thread);
  ft_kir_id at = hand_plus(h, hand_times(h, parts->value, LANES), mirror);
  ft_kir_id x = hand_load(h, g->slab, 1, hand_plus(h, staged_place(g, number), at));
  x = ft_kir_primitive(h->kir, h->here, FT_OP_ABS, FT_F32, &x, 1);
  hand_store(h, g->total, hand_sum(h, hand_load(h, g->total, 1, none), x), none);
  h->here = outer;
}

static inline void walk_slabs(staging *g) {
  hand *h = &g->h;
  ft_kir_block *outer = h->here;
  stage(g, hand_number(h, 0));
  ft_kir_stmt *slabs = hand_loop(h, FT_KIR_SERIAL, g->slabs);
  stage(g, hand_plus(h, slabs->value, hand_number(h, 1)));
  ft_kir_wait(h->kir, h->here, 1);
  ft_kir_barrier(h->kir, h->here);
  add_staged(g, slabs->value);
  ft_kir_barrier(h->kir, h->here);
  h->here = outer;
}

static inline ft_kir *build_staged_sum(uint16_t lanes, ft_arena *arena) {
  staging g = {.h = hand_start(4, LANES, arena), .lanes = lanes};
  hand *h = &g.h;
  ft_kir_type single = {FT_F32, 1};
  g.slabs = (WIDE + LANES * lanes - 1) / (LANES * lanes);
  g.in = ft_kir_global(h->kir, FT_F32, 4 * WIDE, 0, false);
  uint32_t out = ft_kir_global(h->kir, FT_F32, 4, 1, true);
  g.slab = ft_kir_shared(h->kir, h->here, FT_F32, 2 * LANES * lanes);
  g.total = ft_kir_register(h->kir, h->here, single);
  hand_store(h, g.total, ft_kir_element(h->kir, h->here, single, 0), hand_number(h, 0));
  walk_slabs(&g);
  ft_kir_id sum = hand_load(h, g.total, 1, hand_number(h, 0));
  for (int64_t mask = LANES / 2; mask; mask /= 2)
    sum = hand_sum(h, sum, ft_kir_shuffle(h->kir, h->here, sum, mask));
  ft_kir_stmt *first =
      ft_kir_if(h->kir, ft_kir_index(h->kir, FT_KIR_ILESS, h->thread, hand_number(h, 1)));
  ft_kir_append(h->here, first);
  h->here = &first->body;
  hand_store(h, out, sum, h->block);
  return hand_end(h);
}

static inline ft_kir *build_staged_by_4(ft_arena *arena) {
  return build_staged_sum(4, arena);
}
static inline ft_kir *build_staged_by_2(ft_arena *arena) {
  return build_staged_sum(2, arena);
}
static inline ft_kir *build_staged_by_1(ft_arena *arena) {
  return build_staged_sum(1, arena);
}

// ---- absolute values: the first blocks and the others each turn their row around by
// shared memory of their own

enum { TURNED_ROWS = 5, TURNED = 64 };

static inline void draw_turned_rows(sketch *s) {
  output(s, one(s, FT_OP_ABS, input(s, FT_F32, SHAPE(TURNED_ROWS, TURNED))));
}

static inline void turn_row(hand *h, uint32_t in, uint32_t out, int64_t count) {
  uint32_t slab = ft_kir_shared(h->kir, h->here, FT_F32, count);
  ft_kir_id row = hand_times(h, h->block, TURNED);
  hand_store(h, slab, hand_load(h, in, 1, hand_plus(h, row, h->thread)), h->thread);
  ft_kir_barrier(h->kir, h->here);
  ft_kir_id back =
      ft_kir_index(h->kir, FT_KIR_ISUB, hand_number(h, TURNED - 1), h->thread);
  ft_kir_id x = hand_load(h, slab, 1, back);
  hand_store(h, out, ft_kir_primitive(h->kir, h->here, FT_OP_ABS, FT_F32, &x, 1),
             hand_plus(h, row, back));
}

static inline ft_kir *build_turned_rows(ft_arena *arena) {
  hand h = hand_start(TURNED_ROWS, TURNED, arena);
  uint32_t in = ft_kir_global(h.kir, FT_F32, TURNED_ROWS * TURNED, 0, false);
  uint32_t out = ft_kir_global(h.kir, FT_F32, TURNED_ROWS * TURNED, 1, true);
  ft_kir_id first = ft_kir_index(h.kir, FT_KIR_ILESS, h.block, hand_number(&h, 2));
  ft_kir_stmt *branch = ft_kir_if(h.kir, first);
  ft_kir_append(h.here, branch);
  h.here = &branch->body;
  turn_row(&h, in, out, TURNED);
  h.here = &branch->otherwise;
  turn_row(&h, in, out, 2 * TURNED);
  return hand_end(&h);
}

static const struct {
  const char *drawing;
  ft_kir *(*build)(ft_arena *arena);
} hands[] = {
    {"split sum", build_split_sum},    {"held rows", build_held_rows},
    {"staged sum", build_staged_by_4}, {"staged sum", build_staged_by_2},
    {"staged sum", build_staged_by_1}, {"turned rows", build_turned_rows},
};
enum { HANDS = sizeof hands / sizeof *hands };

#endif
