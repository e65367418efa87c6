// The loops of a blocked contraction: blocks, steps of k, tiles, sums in registers.
#include <string.h>

#include "codegen/contract_emit.h"

enum { MOST_SUMS = 64 };

// ---- indices and loops
// ------------------------------------------------------------------

static ft_kir_id number(ft_contract_emitter *m, int64_t n) {
  return ft_contract_number(m, n);
}

static ft_kir_id index_of(ft_contract_emitter *m, ft_kir_op op, ft_kir_id a,
                          ft_kir_id b) {
  return ft_contract_index(m, op, a, b);
}

ft_kir_id ft_contract_offset(ft_contract_emitter *m, ft_kir_id a, int64_t n) {
  return ft_loop_named(m->e, index_of(m, FT_KIR_IADD, a, number(m, n)));
}

ft_kir_id ft_contract_least(ft_contract_emitter *m, ft_kir_id a, int64_t n) {
  return ft_loop_named(m->e, index_of(m, FT_KIR_IMIN, a, number(m, n)));
}

ft_kir_stmt *ft_contract_open_loop(ft_contract_emitter *m, ft_kir_loop kind,
                                   ft_kir_id begin, ft_kir_id end, int64_t step) {
  ft_kir_stmt *loop = ft_kir_for(m->e->kir, kind, begin, end, number(m, step));
  ft_loop_enter(m->e, &loop->body);
  return loop;
}

void ft_contract_close_loop(ft_contract_emitter *m, ft_kir_stmt *loop) {
  ft_loop_close(m->e, loop);
}

// ---- places
// -----------------------------------------------------------------------------

ft_contract_split ft_contract_point(ft_contract_emitter *m, ft_kir_id at, int64_t extent,
                                    int64_t segment) {
  ft_places *q = &m->e->places;
  if (segment == extent) return (ft_contract_split){{0}, ft_affine_of(q, at)};
  ft_kir_id which = index_of(m, FT_KIR_IDIV, at, number(m, segment));
  ft_kir_id rest = index_of(m, FT_KIR_IMOD, at, number(m, segment));
  return (ft_contract_split){ft_affine_of(q, ft_loop_named(m->e, which)),
                             ft_affine_of(q, ft_loop_named(m->e, rest))};
}

ft_contract_split ft_contract_vector(ft_contract_emitter *m, ft_kir_id at, int64_t extent,
                                     int64_t segment) {
  ft_contract_split split = ft_contract_point(m, at, extent, segment);
  if (m->e->lanes == 1) return split;
  m->e->inner = ft_affine_index(&m->e->places, split.rest, 0);
  split.rest = (ft_affine){.coef = 1};
  return split;
}

// |count| dims and a split one, as |shape| sees them.
static const ft_place *split_place(ft_contract_emitter *m, ft_shape from, ft_affine *dim,
                                   ft_contract_split split, int64_t extent,
                                   int64_t segment, const ft_shape *shape) {
  ft_places *q = &m->e->places;
  dim[from.rank] = split.segment;
  from.dim[from.rank++] = extent / segment;
  dim[from.rank] = split.rest;
  from.dim[from.rank++] = segment;
  return ft_place_view(q, ft_place_make(q, &from, dim), shape);
}

static const ft_shape *shape_of(const ft_contract_emitter *m, uint32_t value) {
  return &m->e->graph->value[value].shape;
}

// The batch dims of a matmul's operand: those of the result, aligned at the end.
static ft_shape batch_dims(ft_contract_emitter *m, const ft_shape *shape,
                           ft_affine *dim) {
  int shift = shape_of(m, m->c->anchor->output)->rank - shape->rank;
  ft_shape from = {.rank = (uint8_t)(shape->rank - 2)};
  for (int i = 0; i < from.rank; i++) {
    from.dim[i] = shape->dim[i];
    dim[i] = m->batch_dim[i + shift];
  }
  return from;
}

static bool has_batch_dims(const ft_contract *c) {
  return c->anchor->op == FT_OP_MATMUL && !c->is_folded;
}

const ft_place *ft_contract_a_place(ft_contract_emitter *m, ft_affine row,
                                    ft_contract_split k) {
  const ft_contract *c = m->c;
  const ft_shape *shape = shape_of(m, c->operand[0]);
  ft_affine dim[FT_MAX_RANK];
  ft_shape from = {0};
  if (has_batch_dims(c)) from = batch_dims(m, shape, dim);
  dim[from.rank] = row;
  from.dim[from.rank++] = c->m;
  return split_place(m, from, dim, k, c->k, c->k_segment, shape);
}

const ft_place *ft_contract_b_place(ft_contract_emitter *m, ft_affine k,
                                    ft_contract_split column) {
  const ft_contract *c = m->c;
  const ft_shape *shape = shape_of(m, c->operand[1]);
  ft_affine dim[FT_MAX_RANK];
  ft_shape from = {0};
  if (has_batch_dims(c)) from = batch_dims(m, shape, dim);
  if (c->anchor->op == FT_OP_CONV) {
    dim[0] = ft_affine_of(&m->e->places, m->batch);
    from.dim[from.rank++] = c->batches;
  }
  dim[from.rank] = k;
  from.dim[from.rank++] = c->k;
  return split_place(m, from, dim, column, c->n, c->segment, shape);
}

const ft_place *ft_contract_c_place(ft_contract_emitter *m, ft_affine row,
                                    ft_contract_split column) {
  const ft_contract *c = m->c;
  ft_affine dim[FT_MAX_RANK] = {ft_affine_of(&m->e->places, m->batch), row};
  ft_shape from = {.rank = 2, .dim = {c->batches, c->m}};
  return split_place(m, from, dim, column, c->n, c->segment,
                     shape_of(m, c->anchor->output));
}

ft_affine ft_contract_reach(ft_contract_emitter *m, uint32_t i, const ft_place *place,
                            uint32_t *out_root) {
  ft_loop_emitter *e = m->e;
  for (uint32_t value = m->c->operand[i];;) {
    uint32_t root = e->graph->value[value].root;
    place = ft_place_view(&e->places, place, shape_of(m, root));
    if (!place) return (ft_affine){.is_lost = true};
    const ft_primitive *p = ft_loop_producer(e, root);
    *out_root = root;
    if (!p) return place->linear;
    place = ft_loop_operand(e, p, 0, place);
    value = p->input[0];
  }
}

// ---- the sums of one tile
// ---------------------------------------------------------------

typedef struct tile {
  ft_contract_emitter *m;
  ft_kir_id row, column, base;  // in the block, and in the scratch tile
  int64_t vectors;              // of a row
  uint32_t sum[MOST_SUMS];
  ft_kir_id at[MOST_SUMS];  // first column of each vector, in the matrix
} tile;

static ft_kir_type vector_type(const ft_contract_emitter *m) {
  return (ft_kir_type){FT_F32, (uint16_t)m->c->choice.vector};
}

static void open_sums(tile *t) {
  ft_kir *kir = t->m->e->kir;
  ft_kir_block *here = ft_loop_here(t->m->e);
  ft_kir_id zero = ft_kir_element(kir, here, vector_type(t->m), 0);
  for (int64_t i = 0; i < t->m->c->choice.mr * t->vectors; i++) {
    t->sum[i] = ft_kir_register(kir, here, vector_type(t->m));
    ft_kir_store(kir, here, t->sum[i], zero, number(t->m, 0), 1, FT_KIR_CACHED);
  }
}

static ft_kir_id read_sum(tile *t, int64_t i) {
  return ft_kir_load(t->m->e->kir, ft_loop_here(t->m->e), t->sum[i],
                     (uint16_t)t->m->c->choice.vector, number(t->m, 0), 1);
}

// One element of A, in every lane.
static ft_kir_id load_a(tile *t, int64_t row, ft_kir_id k) {
  ft_contract_emitter *m = t->m;
  ft_loop_emitter *e = m->e;
  ft_affine at = ft_affine_of(&e->places, t->row);
  at = ft_affine_add(&e->places, at, ft_affine_number(row));
  ft_kir_id element;
  if (m->a) {
    element =
        ft_kir_load(e->kir, ft_loop_here(e), m->a, 1, ft_contract_packed_a(m, at, k), 1);
  } else {
    e->lanes = 1;
    at = ft_affine_add(&e->places, at, ft_affine_of(&e->places, m->m0));
    const ft_place *place =
        ft_contract_a_place(m, at, ft_contract_point(m, k, m->c->k, m->c->k_segment));
    element = place ? ft_loop_value(e, m->c->operand[0], place) : 0;
  }
  return ft_loop_spread(e, element, (uint16_t)m->c->choice.vector);
}

// The place of vector |vector| of the tile in row |k| of B. Vectors at one place would be
// taken for one value, so those of one segment share an inner index.
static const ft_place *vector_place(tile *t, int64_t vector, ft_kir_id k) {
  ft_contract_emitter *m = t->m;
  const ft_contract *c = m->c;
  bool is_whole = c->segment == c->n;
  m->e->lanes = (uint16_t)c->choice.vector;
  ft_contract_split split =
      ft_contract_vector(m, t->at[is_whole ? 0 : vector], c->n, c->segment);
  if (is_whole)
    split.rest = ft_affine_add(&m->e->places, split.rest,
                               ft_affine_number(vector * c->choice.vector));
  return ft_contract_b_place(m, ft_affine_of(&m->e->places, k), split);
}

static ft_kir_id load_b(tile *t, int64_t vector, ft_kir_id k) {
  ft_contract_emitter *m = t->m;
  ft_loop_emitter *e = m->e;
  uint16_t lanes = (uint16_t)m->c->choice.vector;
  if (m->b) {
    ft_affine at = ft_affine_of(&e->places, t->column);
    at = ft_affine_add(&e->places, at, ft_affine_number(vector * lanes));
    return ft_kir_load(e->kir, ft_loop_here(e), m->b, lanes,
                       ft_contract_packed_b(m, k, at), 1);
  }
  const ft_place *place = vector_place(t, vector, k);
  ft_kir_id element = place ? ft_loop_value(e, m->c->operand[1], place) : 0;
  return ft_loop_spread(e, element, lanes);
}

static void add_term(tile *t, ft_kir_id k) {
  ft_loop_emitter *e = t->m->e;
  ft_kir_id b[MOST_SUMS];
  for (int64_t v = 0; v < t->vectors; v++) b[v] = load_b(t, v, k);
  for (int64_t r = 0; r < t->m->c->choice.mr; r++) {
    ft_kir_id a = load_a(t, r, k);
    for (int64_t v = 0; v < t->vectors && !e->kir->failed; v++) {
      int64_t i = r * t->vectors + v;
      ft_kir_id product = ft_kir_primitive(e->kir, ft_loop_here(e), FT_OP_MUL, FT_F32,
                                           (ft_kir_id[]){a, b[v]}, 2);
      ft_kir_id sum = ft_kir_combine(e->kir, ft_loop_here(e), FT_OP_REDUCE_SUM,
                                     read_sum(t, i), product);
      ft_kir_store(e->kir, ft_loop_here(e), t->sum[i], sum, number(t->m, 0), 1,
                   FT_KIR_CACHED);
    }
  }
}

static ft_kir_id tile_index(tile *t, int64_t i) {
  int64_t at = i * t->m->c->choice.vector;
  return index_of(t->m, FT_KIR_IADD, t->base, number(t->m, at));
}

// The sums to the tile in memory; |adds|: to what is there.
static void close_sums(tile *t, bool adds) {
  ft_loop_emitter *e = t->m->e;
  ft_kir_block *here = ft_loop_here(e);
  for (int64_t i = 0; i < t->m->c->choice.mr * t->vectors; i++) {
    ft_kir_id sum = read_sum(t, i);
    if (adds) {
      ft_kir_id old = ft_kir_load(e->kir, here, t->m->tile, vector_type(t->m).lanes,
                                  tile_index(t, i), 1);
      sum = ft_kir_combine(e->kir, here, FT_OP_REDUCE_SUM, old, sum);
    }
    ft_kir_store(e->kir, here, t->m->tile, sum, tile_index(t, i), 1, FT_KIR_CACHED);
  }
}

static void sum_terms(tile *t, ft_kir_id begin, ft_kir_id end, bool adds) {
  open_sums(t);
  ft_kir_stmt *loop = ft_contract_open_loop(t->m, FT_KIR_SERIAL, begin, end, 1);
  add_term(t, loop->value);
  ft_contract_close_loop(t->m, loop);
  close_sums(t, adds);
}

// min(begin + step, end), without the min where it cannot matter.
static ft_kir_id step_end(ft_contract_emitter *m, ft_kir_id begin, int64_t step,
                          ft_kir_id end, bool is_even) {
  ft_kir_id last = index_of(m, FT_KIR_IADD, begin, number(m, step));
  if (!is_even) last = index_of(m, FT_KIR_IMIN, last, end);
  return ft_loop_named(m->e, last);
}

static void sum_chunks(tile *t) {
  const ft_contract *c = t->m->c;
  if (c->chunk >= c->choice.kc) {
    sum_terms(t, t->m->k0, t->m->k1, true);
    return;
  }
  bool is_even = c->k % c->choice.kc == 0 && c->choice.kc % c->chunk == 0;
  ft_kir_stmt *chunks =
      ft_contract_open_loop(t->m, FT_KIR_SERIAL, t->m->k0, t->m->k1, c->chunk);
  sum_terms(t, chunks->value, step_end(t->m, chunks->value, c->chunk, t->m->k1, is_even),
            true);
  ft_contract_close_loop(t->m, chunks);
}

static void clear_tile(tile *t) {
  ft_loop_emitter *e = t->m->e;
  ft_kir_id zero = ft_kir_element(e->kir, ft_loop_here(e), vector_type(t->m), 0);
  for (int64_t i = 0; i < t->m->c->choice.mr * t->vectors; i++)
    ft_kir_store(e->kir, ft_loop_here(e), t->m->tile, zero, tile_index(t, i), 1,
                 FT_KIR_CACHED);
}

static bool is_one_sum(const ft_contract *c) {
  return c->k > 0 && c->k <= c->chunk && c->k_blocks == 1;
}

// Runs |body| in the first or the last step of k only; -1 and 1.
static void in_step(tile *t, int which, void (*body)(tile *t)) {
  ft_contract_emitter *m = t->m;
  if (m->c->k_blocks == 1) {
    body(t);
    return;
  }
  ft_kir_id condition = which < 0
                            ? index_of(m, FT_KIR_ILESS, m->k0, number(m, 1))
                            : index_of(m, FT_KIR_ILESS, number(m, m->c->k - 1), m->k1);
  ft_kir_stmt *branch = ft_kir_if(m->e->kir, condition);
  ft_loop_enter(m->e, &branch->body);
  body(t);
  ft_loop_close(m->e, branch);
}

static void finish(tile *t) {
  ft_contract_emitter *m = t->m;
  ft_kir_id row = index_of(m, FT_KIR_IADD, m->m0, t->row);
  ft_kir_id column = index_of(m, FT_KIR_IADD, m->n0, t->column);
  ft_contract_epilogue(m, ft_loop_named(m->e, row), ft_loop_named(m->e, column), t->base);
}

static void tile_body(tile *t) {
  const ft_contract *c = t->m->c;
  for (int64_t v = 0; v < t->vectors && !t->m->b; v++) {
    ft_kir_id first = index_of(t->m, FT_KIR_IADD, t->m->n0, t->column);
    t->at[v] = ft_contract_offset(t->m, first, v * c->choice.vector);
  }
  if (is_one_sum(c)) {
    sum_terms(t, t->m->k0, t->m->k1, false);
  } else {
    in_step(t, -1, clear_tile);
    if (c->k) sum_chunks(t);
  }
  in_step(t, 1, finish);
}

// ---- tiles, steps and blocks
// ---------------------------------------------------------------

static int64_t parts(int64_t whole, int64_t part) {
  return (whole + part - 1) / part;
}

// The |part| elements that part |i| of |whole| starts with; the last one starts early.
static ft_kir_id start_of(ft_contract_emitter *m, ft_kir_id i, int64_t part,
                          int64_t whole) {
  ft_kir_id at = index_of(m, FT_KIR_IMUL, i, number(m, part));
  return whole % part ? ft_contract_least(m, at, whole - part) : ft_loop_named(m->e, at);
}

static void tiles(ft_contract_emitter *m) {
  const ft_contract_choice *c = &m->c->choice;
  int64_t rows = parts(c->mc, c->mr), columns = parts(c->nc, c->nr);
  tile t = {.m = m, .vectors = c->nr / c->vector, .base = number(m, 0)};
  ft_kir_stmt *outer =
      ft_contract_open_loop(m, FT_KIR_SERIAL, number(m, 0), number(m, columns), 1);
  t.column = start_of(m, outer->value, c->nr, c->nc);
  ft_kir_stmt *inner =
      ft_contract_open_loop(m, FT_KIR_SERIAL, number(m, 0), number(m, rows), 1);
  t.row = start_of(m, inner->value, c->mr, c->mc);
  if (m->c->k_blocks > 1) {
    ft_kir_id at = index_of(m, FT_KIR_IMUL, outer->value, number(m, rows));
    at = index_of(m, FT_KIR_IADD, at, inner->value);
    t.base = ft_loop_named(m->e, index_of(m, FT_KIR_IMUL, at, number(m, c->mr * c->nr)));
  }
  tile_body(&t);
  ft_contract_close_loop(m, inner);
  ft_contract_close_loop(m, outer);
}

static void step(ft_contract_emitter *m, bool only_a) {
  if (m->a && m->c->k) ft_contract_pack_a(m);
  if (only_a) return;
  if (m->b && m->c->k) ft_contract_pack_b(m);
  tiles(m);
}

static void steps(ft_contract_emitter *m, bool only_a) {
  const ft_contract *c = m->c;
  m->k0 = number(m, 0);
  m->k1 = number(m, c->k);
  if (c->k_blocks == 1) {
    step(m, only_a);
    return;
  }
  ft_kir_stmt *loop = ft_contract_open_loop(m, FT_KIR_SERIAL, m->k0, m->k1, c->choice.kc);
  ft_kir_id end = m->k1;
  m->k0 = loop->value;
  m->k1 = step_end(m, m->k0, c->choice.kc, end, c->k % c->choice.kc == 0);
  step(m, only_a);
  ft_contract_close_loop(m, loop);
}

static void decode_batch(ft_contract_emitter *m) {
  if (!has_batch_dims(m->c)) return;
  const ft_shape *out = shape_of(m, m->c->anchor->output);
  ft_kir_id rest = m->batch;
  for (int i = out->rank - 3; i >= 0; i--) {
    ft_kir_id at = index_of(m, FT_KIR_IMOD, rest, number(m, out->dim[i]));
    m->batch_dim[i] = ft_affine_of(&m->e->places, ft_loop_named(m->e, at));
    rest = index_of(m, FT_KIR_IDIV, rest, number(m, out->dim[i]));
  }
}

// Blocks side by side in m share columns of B.
static void decode_block(ft_contract_emitter *m, ft_kir_id block) {
  const ft_contract *c = m->c;
  ft_kir_id row = index_of(m, FT_KIR_IMOD, block, number(m, c->m_blocks));
  ft_kir_id rest = index_of(m, FT_KIR_IDIV, block, number(m, c->m_blocks));
  ft_kir_id column = index_of(m, FT_KIR_IMOD, rest, number(m, c->n_blocks));
  m->batch =
      c->batches == 1
          ? number(m, 0)
          : ft_loop_named(m->e, index_of(m, FT_KIR_IDIV, rest, number(m, c->n_blocks)));
  m->m0 = start_of(m, row, c->choice.mc, c->m);
  m->n0 = start_of(m, column, c->choice.nc, c->n);
  decode_batch(m);
}

// ---- the kernel
// ---------------------------------------------------------------------------

ft_status ft_contract_open(const ft_contract *contract, ft_arena *arena,
                           ft_contract_emitter *m, ft_error *error) {
  *m = (ft_contract_emitter){.c = contract};
  FT_TRY(ft_loop_open(contract->workload, arena, &m->e, error));
  m->e->lanes = 1;
  return FT_OK;
}

static int64_t spaced(int64_t stride) {
  return stride * 4 % 1024 ? stride : stride + 16;
}

static void open_scratch(ft_contract_emitter *m) {
  const ft_contract *c = m->c;
  const ft_contract_choice *t = &c->choice;
  int64_t tiles = c->k_blocks == 1 ? 1 : parts(t->mc, t->mr) * parts(t->nc, t->nr);
  m->tile = ft_kir_scratch(m->e->kir, FT_F32, tiles * t->mr * t->nr);
  m->a_stride = spaced(t->kc + c->k_lanes);
  m->b_stride = spaced(t->nc);
  if (t->packs_a) m->a = ft_kir_scratch(m->e->kir, FT_F32, t->mc * m->a_stride);
  if (t->packs_b)
    m->b = ft_kir_scratch(m->e->kir, FT_F32, (t->kc + c->turn_lanes) * m->b_stride);
}

ft_status ft_contract_emit(const ft_contract *contract, bool only_a, ft_arena *arena,
                           ft_loop_emitter **out, ft_error *error) {
  ft_contract_emitter m;
  FT_TRY(ft_contract_open(contract, arena, &m, error));
  ft_kir_stmt *grid = ft_contract_open_loop(&m, FT_KIR_GRID, number(&m, 0),
                                            number(&m, contract->grid), 1);
  if (!contract->is_empty) {
    open_scratch(&m);
    decode_block(&m, grid->value);
    steps(&m, only_a);
  }
  ft_loop_leave(m.e);
  ft_kir_append(&m.e->kir->body, grid);
  FT_OOM_IF(m.e->kir->failed, error);
  *out = m.e;
  return FT_OK;
}

ft_status ft_contract_build(const ft_contract *contract, ft_arena *arena, ft_kir **out,
                            ft_error *error) {
  ft_loop_emitter *e;
  FT_TRY(ft_contract_emit(contract, false, arena, &e, error));
  if (e->is_lost) FT_FAIL(error, FT_INTERNAL, "a contraction planned too little");
  *out = e->kir;
  return FT_OK;
}
