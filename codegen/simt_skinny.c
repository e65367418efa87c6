#include "codegen/simt_skinny.h"

#include <math.h>

#include "codegen/simt_grid.h"
#include "codegen/simt_product.h"

enum {
  WARP = 32,
  MOST_FEW = 8,
  MOST_UNROLL = 4,
  MOST_HELD = 64,          // sums of a thread
  MOST_SHARED = 48 << 10,  // bytes
};

typedef struct skinny {
  ft_simt_product q;
  const ft_simt_skinny_choice *choice;
  ft_dtype math;
  int weights;        // which operand
  int64_t few, many;  // rows and columns, or columns and rows
  bool is_along_terms;
  uint16_t lanes, store_lanes;
  uint32_t groups;  // of threads that share an output, or |lanes| of them
  uint32_t parts;   // sums of an output in shared memory
  uint32_t width;   // neighbouring outputs of a group
  int64_t blocks;   // of one batch
  int64_t round;    // terms that a group takes at once
  ft_kir_id thread, group, part_thread;
  ft_kir_id first, many_at;  // outputs of the block, of the group
  uint32_t total[MOST_UNROLL][MOST_FEW], shared;
} skinny;

// ---- what it takes
// ---------------------------------------------------------------------------

static const char *choice_refusal(const ft_simt_skinny_choice *c) {
  if (!ft_simt_is_power(c->threads, WARP, 1024))
    return "threads is not a power of two from 32 to 1024";
  if (!ft_simt_is_power(c->term_threads, 1, c->threads))
    return "term_threads is not a power of two up to threads";
  if (!ft_simt_is_power(c->unroll, 1, MOST_UNROLL)) return "unroll is not 1, 2 or 4";
  return NULL;
}

static uint16_t fewer(uint16_t a, uint16_t b) {
  return a < b ? a : b;
}

static void share_out(skinny *s) {
  const ft_simt_skinny_choice *c = s->choice;
  s->groups = c->threads / c->term_threads;
  s->width = s->is_along_terms ? 1 : s->lanes;
  s->round = (int64_t)c->term_threads * (s->is_along_terms ? s->lanes : 1);
  s->parts = !s->is_along_terms       ? c->term_threads
             : c->term_threads > WARP ? c->term_threads / WARP
                                      : 1;
  int64_t outputs = (int64_t)s->groups * s->width;
  s->blocks = (s->many + outputs - 1) / outputs;
}

static ft_status plan(const ft_workload *workload, const ft_simt_skinny_choice *choice,
                      ft_arena *arena, skinny *s, ft_error *error) {
  ft_simt_reach weights, other;
  *s = (skinny){.q = ft_simt_product_of(workload), .choice = choice, .store_lanes = 1};
  s->math = ft_kir_math_dtype(s->q.dtype);
  s->weights = s->q.m <= MOST_FEW;
  s->few = s->weights ? s->q.m : s->q.n;
  s->many = s->weights ? s->q.n : s->q.m;
  FT_TRY(ft_simt_product_reach(&s->q, s->weights, arena, &weights, error));
  FT_TRY(ft_simt_product_reach(&s->q, !s->weights, arena, &other, error));
  s->is_along_terms = weights.is_along_terms;
  s->lanes = weights.lanes;
  if (s->is_along_terms)
    s->lanes = fewer(s->lanes, other.is_along_terms ? other.lanes : 1);
  share_out(s);
  if (s->weights && !s->is_along_terms)
    FT_TRY(ft_simt_product_store_lanes(&s->q, s->lanes, arena, &s->store_lanes, error));
  return FT_OK;
}

static const char *drift_refusal(const skinny *s, ft_arena *arena) {
  double per_round = (double)s->round * s->choice->unroll;
  double terms = ceil((double)s->q.k / per_round);
  if (terms <= ft_simt_product_most_terms(&s->q)) return NULL;
  return ft_arena_printf(arena, "sums of %.0f terms drift", terms);
}

static int64_t sums_of(const skinny *s) {
  return (int64_t)s->parts * s->few * s->groups * s->width;
}

const char *ft_simt_skinny_refusal(const ft_workload *workload,
                                   const ft_simt_skinny_choice *choice, ft_arena *arena) {
  skinny s;
  const char *wrong = choice_refusal(choice);
  if (!wrong) wrong = ft_simt_product_refusal(workload, arena);
  if (wrong) return wrong;
  s.q = ft_simt_product_of(workload);
  if (s.q.m > MOST_FEW && s.q.n > MOST_FEW) return "more than 8 rows and columns";
  if (plan(workload, choice, arena, &s, NULL) != FT_OK) return "out of memory";
  int64_t held = s.few * s.lanes * choice->unroll;
  if (held > MOST_HELD)
    return ft_arena_printf(arena, "%lld sums of a thread", (long long)held);
  int64_t bytes = sums_of(&s) * (int64_t)ft_dtype_bytes(s.math);
  if (bytes > MOST_SHARED)
    return ft_arena_printf(arena, "%lld bytes of sums", (long long)bytes);
  if (s.blocks > INT32_MAX / s.q.batches) return "too many blocks";
  return drift_refusal(&s, arena);
}

// ---- indices
// -----------------------------------------------------------------------------------

static ft_kir_id number(skinny *s, int64_t n) {
  return ft_places_number(&s->q.e->places, n);
}

static ft_kir_id calculate(skinny *s, ft_kir_op op, ft_kir_id a, ft_kir_id b) {
  return ft_places_index(&s->q.e->places, op, a, b);
}

static ft_kir_id plus(skinny *s, ft_kir_id a, ft_kir_id b) {
  return calculate(s, FT_KIR_IADD, a, b);
}

static ft_kir_id times(skinny *s, ft_kir_id a, int64_t n) {
  return calculate(s, FT_KIR_IMUL, a, number(s, n));
}

static ft_kir_id named(skinny *s, ft_kir_id index) {
  return ft_loop_named(s->q.e, index);
}

static ft_kir_block *here(skinny *s) {
  return ft_loop_here(s->q.e);
}

static ft_kir_stmt *open(skinny *s, ft_kir_stmt *stmt) {
  ft_loop_enter(s->q.e, &stmt->body);
  return stmt;
}

static ft_kir_stmt *open_loop(skinny *s, ft_kir_id begin, ft_kir_id end, int64_t step) {
  return open(s, ft_kir_for(s->q.e->kir, FT_KIR_SERIAL, begin, end, number(s, step)));
}

static ft_kir_stmt *open_if_less(skinny *s, ft_kir_id a, int64_t n) {
  ft_kir_id condition = calculate(s, FT_KIR_ILESS, a, number(s, n));
  return open(s, ft_kir_if(s->q.e->kir, condition));
}

// ---- sums of a thread
// ----------------------------------------------------------------------------

static ft_kir_id get(skinny *s, uint32_t held) {
  uint16_t lanes = s->q.e->kir->buffer[held].lanes;
  return ft_kir_load(s->q.e->kir, here(s), held, lanes, number(s, 0), 1);
}

static void set(skinny *s, uint32_t held, ft_kir_id value) {
  ft_kir_store(s->q.e->kir, here(s), held, value, number(s, 0), 1, FT_KIR_CACHED);
}

static ft_kir_id sum_of(skinny *s, ft_kir_id a, ft_kir_id b) {
  return ft_kir_combine(s->q.e->kir, here(s), FT_OP_REDUCE_SUM, a, b);
}

static uint32_t new_sum(skinny *s, uint16_t lanes) {
  ft_kir_type type = {s->math, lanes};
  uint32_t held = ft_kir_register(s->q.e->kir, here(s), type);
  set(s, held, ft_kir_element(s->q.e->kir, here(s), type, 0));
  return held;
}

static void open_sums(skinny *s) {
  for (uint32_t u = 0; u < s->choice->unroll; u++)
    for (int64_t f = 0; f < s->few; f++) s->total[u][f] = new_sum(s, s->lanes);
}

static ft_kir_id load(skinny *s, int which, ft_kir_id outer, ft_kir_id term) {
  bool is_weights = which == s->weights;
  bool is_vector = s->is_along_terms || is_weights;
  s->q.e->load_hint = is_weights && s->choice->streams ? FT_KIR_STREAMED : FT_KIR_CACHED;
  uint16_t along = s->is_along_terms ? s->lanes : 1;
  uint16_t across = s->is_along_terms || !is_weights ? 1 : s->lanes;
  ft_kir_id value = ft_simt_product_load(
      &s->q, which, ft_simt_product_position(&s->q, outer, across),
      ft_simt_product_position(&s->q, term, along), is_vector ? s->lanes : 1);
  s->q.e->load_hint = FT_KIR_CACHED;
  return ft_loop_spread(s->q.e, value, s->lanes);
}

static void add_products(skinny *s, uint32_t u, ft_kir_id weights, ft_kir_id term) {
  for (int64_t f = 0; f < s->few; f++) {
    ft_kir_id pair[2] = {weights, load(s, !s->weights, number(s, f), term)};
    ft_kir_id product =
        ft_kir_primitive(s->q.e->kir, here(s), FT_OP_MUL, s->math, pair, 2);
    set(s, s->total[u][f], sum_of(s, get(s, s->total[u][f]), product));
  }
}

// The thread's first term of the round that starts at |first|.
static ft_kir_id term_of(skinny *s, ft_kir_id first) {
  ft_kir_id own = times(s, s->part_thread, s->is_along_terms ? s->lanes : 1);
  return named(s, plus(s, first, own));
}

// One round; where the terms end, a vector is all there or not at all.
static void add_rest(skinny *s, uint32_t u, int64_t first) {
  ft_kir_id at = term_of(s, number(s, first));
  bool is_whole = first + s->round <= s->q.k;
  ft_kir_stmt *branch = is_whole ? NULL : open_if_less(s, at, s->q.k);
  add_products(s, u, load(s, s->weights, s->many_at, at), at);
  if (branch) ft_loop_close(s->q.e, branch);
}

// All weights of a step are asked for before the first is used.
static void add_steps(skinny *s, int64_t end) {
  uint32_t unroll = s->choice->unroll;
  ft_kir_stmt *loop = open_loop(s, number(s, 0), number(s, end), s->round * unroll);
  ft_kir_id term[MOST_UNROLL], weights[MOST_UNROLL];
  for (uint32_t u = 0; u < unroll; u++) {
    term[u] = term_of(s, plus(s, loop->value, number(s, u * s->round)));
    weights[u] = load(s, s->weights, s->many_at, term[u]);
  }
  for (uint32_t u = 0; u < unroll; u++) add_products(s, u, weights[u], term[u]);
  ft_loop_close(s->q.e, loop);
}

static void add_terms(skinny *s) {
  int64_t step = s->round * s->choice->unroll, whole = s->q.k / step * step;
  if (whole) add_steps(s, whole);
  for (uint32_t u = 0; whole + u * s->round < s->q.k; u++)
    add_rest(s, u, whole + u * s->round);
}

// ---- sums of a block
// -----------------------------------------------------------------------------

// The sum for |f| of all that the thread's group, or its part of a warp, has.
static ft_kir_id meet(skinny *s, int64_t f) {
  ft_kir_id sum = get(s, s->total[0][f]);
  for (uint32_t u = 1; u < s->choice->unroll; u++)
    sum = sum_of(s, sum, get(s, s->total[u][f]));
  if (!s->is_along_terms) return sum;
  uint32_t threads = s->choice->term_threads < WARP ? s->choice->term_threads : WARP;
  sum = ft_kir_fold(s->q.e->kir, here(s), FT_OP_REDUCE_SUM, sum);
  for (uint32_t mask = threads / 2; mask; mask /= 2)
    sum = sum_of(s, sum, ft_kir_shuffle(s->q.e->kir, here(s), sum, mask));
  return sum;
}

// Where part |part| of the sum for |f| of |group| lies.
static ft_kir_id sum_index(skinny *s, ft_kir_id part, ft_kir_id f, ft_kir_id group) {
  ft_kir_id row = plus(s, times(s, part, s->few), f);
  return times(s, plus(s, times(s, row, s->groups), group), s->width);
}

static void share_sums(skinny *s) {
  ft_kir_id sum[MOST_FEW], part = s->part_thread;
  ft_kir_stmt *branch = NULL;
  for (int64_t f = 0; f < s->few; f++) sum[f] = meet(s, f);
  if (s->is_along_terms) {
    ft_kir_id lane = calculate(s, FT_KIR_IMOD, s->part_thread, number(s, WARP));
    part = calculate(s, FT_KIR_IDIV, s->part_thread, number(s, WARP));
    branch = open_if_less(s, lane, 1);
  }
  for (int64_t f = 0; f < s->few; f++)
    ft_kir_store(s->q.e->kir, here(s), s->shared, sum[f],
                 sum_index(s, part, number(s, f), s->group), 1, FT_KIR_CACHED);
  if (branch) ft_loop_close(s->q.e, branch);
  ft_kir_barrier(s->q.e->kir, here(s));
}

// ---- outputs
// -------------------------------------------------------------------------------------

static ft_kir_id add_parts(skinny *s, ft_kir_id f, ft_kir_id group) {
  uint32_t held = new_sum(s, (uint16_t)s->width);
  ft_kir_stmt *loop = open_loop(s, number(s, 0), number(s, s->parts), 1);
  ft_kir_id part = ft_kir_load(s->q.e->kir, here(s), s->shared, (uint16_t)s->width,
                               sum_index(s, loop->value, f, group), 1);
  set(s, held, sum_of(s, get(s, held), part));
  ft_loop_close(s->q.e, loop);
  return get(s, held);
}

static void store_sums(skinny *s, ft_kir_id sum, ft_kir_id f, ft_kir_id many) {
  for (uint16_t l = 0; l < s->width; l += s->store_lanes) {
    ft_kir_id at = plus(s, many, number(s, l)), piece = sum;
    if (s->store_lanes == 1) piece = ft_kir_lane(s->q.e->kir, here(s), sum, l);
    ft_simt_product_store(&s->q, piece, s->weights ? f : at, s->weights ? at : f,
                          s->store_lanes);
  }
}

// Neighbouring threads have neighbouring outputs.
static void put_outputs(skinny *s) {
  ft_kir_stmt *loop =
      open_loop(s, s->thread, number(s, s->few * s->groups), (int64_t)s->choice->threads);
  ft_kir_id groups = number(s, s->groups);
  ft_kir_id f = named(s, calculate(s, FT_KIR_IDIV, loop->value, groups));
  ft_kir_id group = named(s, calculate(s, FT_KIR_IMOD, loop->value, groups));
  ft_kir_id many = named(s, plus(s, s->first, times(s, group, s->width)));
  ft_kir_stmt *branch = open_if_less(s, many, s->many);
  store_sums(s, add_parts(s, f, group), f, many);
  ft_loop_close(s->q.e, branch);
  ft_loop_close(s->q.e, loop);
}

// ---- the block
// -----------------------------------------------------------------------------------

// Outputs past the end are those of the last group again, and are not stored: all
// threads arrive at the shuffles.
static void enter_block(skinny *s, ft_kir_id block) {
  ft_kir_id blocks = number(s, s->blocks), groups = number(s, s->groups);
  ft_kir_id threads = number(s, s->choice->term_threads);
  ft_kir_id in_batch = calculate(s, FT_KIR_IMOD, block, blocks);
  ft_simt_product_enter_batch(&s->q, calculate(s, FT_KIR_IDIV, block, blocks));
  s->first = named(s, times(s, in_batch, (int64_t)s->groups * s->width));
  s->group = named(s, s->is_along_terms ? calculate(s, FT_KIR_IDIV, s->thread, threads)
                                        : calculate(s, FT_KIR_IMOD, s->thread, groups));
  s->part_thread =
      named(s, s->is_along_terms ? calculate(s, FT_KIR_IMOD, s->thread, threads)
                                 : calculate(s, FT_KIR_IDIV, s->thread, groups));
  ft_kir_id many = plus(s, s->first, times(s, s->group, s->width));
  s->many_at = named(s, calculate(s, FT_KIR_IMIN, many, number(s, s->many - s->width)));
}

static void put_thread(skinny *s, ft_kir_id block) {
  enter_block(s, block);
  s->shared = ft_kir_shared(s->q.e->kir, here(s), s->math, sums_of(s));
  open_sums(s);
  add_terms(s);
  share_sums(s);
  put_outputs(s);
}

ft_status ft_simt_skinny_build(const ft_workload *workload,
                               const ft_simt_skinny_choice *choice, ft_arena *arena,
                               ft_kir **out, ft_error *error) {
  skinny s;
  FT_TRY(plan(workload, choice, arena, &s, error));
  FT_TRY(ft_loop_open(workload, arena, &s.q.e, error));
  ft_loop_emitter *e = s.q.e;
  ft_simt_grid grid = ft_simt_grid_open(e, s.q.batches * s.blocks, choice->threads);
  s.thread = grid.threads->value;
  put_thread(&s, grid.blocks->value);
  return ft_simt_grid_close(e, &grid, out, error);
}
