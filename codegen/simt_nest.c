#include "codegen/simt_nest.h"

#include <math.h>
#include <string.h>

#include "codegen/nest.h"

enum { WARP = 32, MAX_SCOPES = 8 };

typedef struct scope {
  ft_kir_block *block;
  uint64_t open;  // axes with an index here
} scope;

typedef struct known {
  ft_kir_id value, splat;  // 0: not computed
  uint32_t depth, splat_depth;
} known;

// What is known at one of the items that a thread computes side by side.
typedef struct item_state {
  known *known;  // [node]
  ft_kir_id index[FT_MAX_AXES];
} item_state;

enum { MOST_ITEMS = 8 };

typedef struct emitter {
  const ft_group_ir *ir;
  const ft_simt_choice *choice;
  ft_kir *kir;
  ft_arena *arena;
  uint64_t kept, reduced;
  bool has_vector;
  uint32_t vector_axis;
  uint16_t lanes;
  uint32_t order[2][FT_MAX_AXES], count[2];  // kept and reduced axes, outermost first
  uint32_t depth;
  scope scope[MAX_SCOPES];
  item_state item[MOST_ITEMS];  // the first |items| are in use
  uint32_t items, at;           // at: the one that is being computed
  uint32_t *argument;           // [ABI position] buffer, 0: not declared
  uint32_t *total;              // [node] register of a reduction
  uint32_t pass;
  ft_kir_id thread, lane, row_in_block, is_stored;  // rows: is_stored is "row < rows"
} emitter;

enum { KEPT, REDUCED };

static uint64_t bit(uint32_t axis) {
  return (uint64_t)1 << axis;
}

static ft_kir_block *here(emitter *e) {
  return e->scope[e->depth].block;
}

static void enter(emitter *e, ft_kir_block *block, uint64_t axes) {
  FT_ASSERT(e->depth + 1 < MAX_SCOPES);
  e->scope[e->depth + 1] = (scope){block, e->scope[e->depth].open | axes};
  e->depth++;
}

static void forget(emitter *e, known *k) {
  if (k->value && k->depth >= e->depth) k->value = 0;
  if (k->splat && k->splat_depth >= e->depth) k->splat = 0;
}

static void leave(emitter *e) {
  for (uint32_t u = 0; u < e->items; u++)
    for (uint32_t i = 0; i < e->ir->node_count; i++) forget(e, &e->item[u].known[i]);
  e->depth--;
}

static known *known_of(emitter *e, uint32_t node) {
  return &e->item[e->at].known[node];
}

static ft_kir_id index_of(const emitter *e, uint32_t axis) {
  return e->item[e->at].index[axis];
}

static ft_kir_id number(emitter *e, int64_t n) {
  return ft_kir_number(e->kir, n);
}

static ft_kir_id calculate(emitter *e, ft_kir_op op, ft_kir_id a, ft_kir_id b) {
  return ft_kir_index(e->kir, op, a, b);
}

static ft_kir_id named(emitter *e, ft_kir_id index) {
  return ft_kir_let(e->kir, here(e), index);
}

static bool is_rows(const emitter *e) {
  return e->choice->row_threads != 0;
}

static bool varies(const emitter *e, uint64_t mask) {
  return e->has_vector && (mask & bit(e->vector_axis));
}

// ---- nodes
// --------------------------------------------------------------------------------

static uint32_t outermost_scope(const emitter *e, uint64_t mask) {
  uint32_t depth = 1;
  while (mask & ~e->scope[depth].open) depth++;
  FT_ASSERT(depth <= e->depth);
  return depth;
}

static ft_kir_id address(emitter *e, const ft_access *access) {
  ft_kir_id sum = number(e, 0);
  for (uint32_t axis = 0; axis < e->ir->axis_count; axis++) {
    if (!access->stride[axis]) continue;
    ft_kir_id term =
        calculate(e, FT_KIR_IMUL, index_of(e, axis), number(e, access->stride[axis]));
    sum = calculate(e, FT_KIR_IADD, sum, term);
  }
  return sum;
}

static int64_t lane_stride(const emitter *e, const ft_access *access) {
  return e->has_vector ? access->stride[e->vector_axis] : 1;
}

static uint32_t buffer_of(emitter *e, const ft_access *access, bool is_written) {
  uint32_t *id = &e->argument[access->argument];
  if (!*id)
    *id =
        ft_kir_global(e->kir, access->dtype, access->count, access->argument, is_written);
  return *id;
}

static ft_kir_id emit(emitter *e, uint32_t node);

static ft_kir_id emit_lanes(emitter *e, uint32_t node, uint16_t lanes) {
  ft_kir_id value = emit(e, node);
  if (e->kir->value[value].type.lanes == lanes) return value;
  known *k = known_of(e, node);
  if (!k->splat) {
    k->splat = ft_kir_splat(e->kir, e->scope[k->depth].block, value, lanes);
    k->splat_depth = k->depth;
  }
  return k->splat;
}

static ft_kir_id emit_compute(emitter *e, const ft_node *n, uint16_t lanes,
                              uint32_t *depth) {
  ft_kir_id operand[3] = {0};
  for (uint32_t i = 0; i < n->operand_count; i++) {
    operand[i] = emit_lanes(e, n->operand[i], lanes);
    uint32_t at = known_of(e, n->operand[i])->depth;
    if (at > *depth) *depth = at;
  }
  return ft_kir_primitive(e->kir, e->scope[*depth].block, n->op, n->dtype, operand,
                          n->operand_count);
}

static ft_kir_id emit_new(emitter *e, uint32_t node, uint32_t *depth) {
  const ft_node *n = &e->ir->node[node];
  uint16_t lanes = varies(e, n->mask) ? e->lanes : 1;
  ft_kir_block *block = e->scope[*depth].block;
  if (n->kind == FT_NODE_CONSTANT)
    return ft_kir_element(e->kir, block, (ft_kir_type){n->dtype, 1}, n->bits);
  if (n->kind == FT_NODE_LOAD)
    return ft_kir_load(e->kir, block, buffer_of(e, &n->access, false), lanes,
                       address(e, &n->access), lane_stride(e, &n->access));
  FT_ASSERT(n->kind == FT_NODE_COMPUTE);  // reductions are known when they are needed
  return emit_compute(e, n, lanes, depth);
}

static ft_kir_id emit(emitter *e, uint32_t node) {
  known *k = known_of(e, node);
  if (k->value) return k->value;
  uint32_t depth = outermost_scope(e, e->ir->node[node].mask);
  k->value = emit_new(e, node, &depth);
  k->depth = depth;
  return k->value;
}

static void store_output(emitter *e, const ft_output *out) {
  ft_kir_id value = emit_lanes(e, out->node, varies(e, out->domain) ? e->lanes : 1);
  ft_kir_store(e->kir, here(e), buffer_of(e, &out->access, true), value,
               address(e, &out->access), lane_stride(e, &out->access),
               e->choice->streams ? FT_KIR_STREAMED : FT_KIR_CACHED);
}

// ---- positions
// --------------------------------------------------------------------------

static int64_t steps_along(const emitter *e, uint32_t axis) {
  int64_t extent = e->ir->extent[axis];
  return e->has_vector && axis == e->vector_axis ? extent / e->lanes : extent;
}

static int64_t steps_of(const emitter *e, int which) {
  int64_t product = 1;
  for (uint32_t i = 0; i < e->count[which]; i++)
    product *= steps_along(e, e->order[which][i]);
  return product;
}

// The axes' indices at step |at| of the kept or the reduced ones.
static void decode(emitter *e, int which, ft_kir_id at) {
  int64_t inner = 1;
  for (uint32_t i = e->count[which]; i-- > 0;) {
    uint32_t axis = e->order[which][i];
    ft_kir_id index = calculate(e, FT_KIR_IDIV, at, number(e, inner));
    if (i > 0) index = calculate(e, FT_KIR_IMOD, index, number(e, steps_along(e, axis)));
    if (e->has_vector && axis == e->vector_axis)
      index = calculate(e, FT_KIR_IMUL, index, number(e, e->lanes));
    e->item[e->at].index[axis] = index == at ? at : named(e, index);  // |at| has a name
    inner *= steps_along(e, axis);
  }
}

// ---- reductions
// -----------------------------------------------------------------------------

static int64_t identity_bits(ft_op op, ft_dtype dtype) {
  double real = op == FT_OP_REDUCE_PROD  ? 1
                : op == FT_OP_REDUCE_MAX ? -INFINITY
                : op == FT_OP_REDUCE_MIN ? INFINITY
                                         : 0;
  int64_t bits, low = INT32_MIN, high = INT32_MAX;
  if (dtype == FT_I64) low = INT64_MIN, high = INT64_MAX;
  if (dtype == FT_BOOL) low = 0, high = 1;
  memcpy(&bits, &real, sizeof bits);
  if (ft_dtype_is_float(dtype)) return bits;
  return op == FT_OP_REDUCE_PROD  ? 1
         : op == FT_OP_REDUCE_MAX ? low
         : op == FT_OP_REDUCE_MIN ? high
                                  : 0;
}

static bool runs_in_pass(const emitter *e, uint32_t node) {
  const ft_node *n = &e->ir->node[node];
  return n->kind == FT_NODE_REDUCE && n->level == e->pass;
}

// Products overflow on the way where the result does not, and long sums lose digits.
// Single precision is wide for the sums of short floats, and for products of f16.
static ft_dtype total_dtype(const ft_node *n) {
  bool widens =
      (n->op == FT_OP_REDUCE_SUM && n->dtype == FT_F32) ||
      (n->op == FT_OP_REDUCE_PROD && (n->dtype == FT_F32 || n->dtype == FT_BF16));
  return widens ? FT_F64 : ft_kir_math_dtype(n->dtype);
}

static void open_total(emitter *e, uint32_t node) {
  const ft_node *n = &e->ir->node[node];
  uint16_t lanes = varies(e, e->ir->node[n->operand[0]].mask) ? e->lanes : 1;
  ft_kir_type type = {total_dtype(n), lanes};
  e->total[node] = ft_kir_register(e->kir, here(e), type);
  ft_kir_id zero =
      ft_kir_element(e->kir, here(e), type, identity_bits(n->op, type.dtype));
  ft_kir_store(e->kir, here(e), e->total[node], zero, number(e, 0), 1, FT_KIR_CACHED);
}

static ft_kir_id converted(emitter *e, ft_kir_id value, ft_dtype dtype) {
  if (e->kir->value[value].type.dtype == dtype) return value;
  return ft_kir_primitive(e->kir, here(e), FT_OP_CAST, dtype, &value, 1);
}

static ft_kir_id load_total(emitter *e, uint32_t node) {
  uint32_t id = e->total[node];
  return ft_kir_load(e->kir, here(e), id, e->kir->buffer[id].lanes, number(e, 0), 1);
}

static void add_to_total(emitter *e, uint32_t node) {
  const ft_node *n = &e->ir->node[node];
  ft_kir_id term = converted(e, emit(e, n->operand[0]), total_dtype(n));
  ft_kir_id sum = ft_kir_combine(e->kir, here(e), n->op, load_total(e, node), term);
  ft_kir_store(e->kir, here(e), e->total[node], sum, number(e, 0), 1, FT_KIR_CACHED);
}

static ft_kir_id shuffled(emitter *e, ft_op op, ft_kir_id value, uint32_t threads) {
  for (uint32_t mask = (threads < WARP ? threads : WARP) / 2; mask; mask /= 2) {
    ft_kir_id other = ft_kir_shuffle(e->kir, here(e), value, mask);
    value = ft_kir_combine(e->kir, here(e), op, value, other);
  }
  return value;
}

// Each warp's part goes to shared memory, and every thread adds them up in order.
static ft_kir_id gathered(emitter *e, ft_op op, ft_kir_id value) {
  int64_t warps = e->choice->row_threads / WARP;
  int64_t parts = e->choice->threads / WARP;
  ft_kir *kir = e->kir;
  uint32_t shared = ft_kir_shared(kir, here(e), kir->value[value].type.dtype, parts);
  ft_kir_id is_first =
      calculate(e, FT_KIR_ILESS, calculate(e, FT_KIR_IMOD, e->thread, number(e, WARP)),
                number(e, 1));
  ft_kir_stmt *branch = ft_kir_if(kir, is_first);
  ft_kir_store(kir, &branch->body, shared, value,
               calculate(e, FT_KIR_IDIV, e->thread, number(e, WARP)), 1, FT_KIR_CACHED);
  ft_kir_append(here(e), branch);
  ft_kir_barrier(kir, here(e));
  ft_kir_id first = calculate(e, FT_KIR_IMUL, e->row_in_block, number(e, warps));
  ft_kir_id sum = ft_kir_load(kir, here(e), shared, 1, first, 1);
  for (int64_t w = 1; w < warps; w++) {
    ft_kir_id at = calculate(e, FT_KIR_IADD, first, number(e, w));
    sum = ft_kir_combine(kir, here(e), op, sum,
                         ft_kir_load(kir, here(e), shared, 1, at, 1));
  }
  return sum;
}

// The reduction's value, known from here on.
static void close_total(emitter *e, uint32_t node) {
  const ft_node *n = &e->ir->node[node];
  ft_kir_id value = load_total(e, node);
  if (!varies(e, n->mask)) value = ft_kir_fold(e->kir, here(e), n->op, value);
  if (is_rows(e)) {
    value = shuffled(e, n->op, value, e->choice->row_threads);
    if (e->choice->row_threads > WARP) value = gathered(e, n->op, value);
  }
  value = converted(e, value, ft_kir_math_dtype(n->dtype));
  *known_of(e, node) = (known){.value = value, .depth = e->depth};
}

// ---- passes
// -----------------------------------------------------------------------------------

typedef void body(emitter *e);

static void accumulate(emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++)
    if (runs_in_pass(e, i)) add_to_total(e, i);
}

static void store_inner(emitter *e) {
  for (uint32_t i = 0; i < e->ir->output_count; i++)
    if (e->ir->output[i].domain & e->reduced) store_output(e, &e->ir->output[i]);
}

// The reduced axes, a share of them per thread for rows.
static void walk(emitter *e, body *run) {
  int64_t step = is_rows(e) ? e->choice->row_threads : 1;
  ft_kir_id begin = is_rows(e) ? e->lane : number(e, 0);
  ft_kir_stmt *loop = ft_kir_for(e->kir, FT_KIR_SERIAL, begin,
                                 number(e, steps_of(e, REDUCED)), number(e, step));
  enter(e, &loop->body, 0);
  decode(e, REDUCED, loop->value);
  e->scope[e->depth].open |= e->reduced;
  run(e);
  leave(e);
  ft_kir_append(here(e), loop);
}

// Outputs over the reduced axes (|is_inner|) or without them.
static bool has_output(const emitter *e, bool is_inner) {
  for (uint32_t i = 0; i < e->ir->output_count; i++)
    if (!(e->ir->output[i].domain & e->reduced) != is_inner) return true;
  return false;
}

static void reduce(emitter *e) {
  for (e->pass = 1; e->pass <= e->ir->levels; e->pass++) {
    for (uint32_t i = 0; i < e->ir->node_count; i++)
      if (runs_in_pass(e, i)) open_total(e, i);
    walk(e, accumulate);
    for (uint32_t i = 0; i < e->ir->node_count; i++)
      if (runs_in_pass(e, i)) close_total(e, i);
  }
}

static void store_outer(emitter *e) {
  for (uint32_t i = 0; i < e->ir->output_count; i++)
    if (!(e->ir->output[i].domain & e->reduced)) store_output(e, &e->ir->output[i]);
}

// ---- a thread per item
// ------------------------------------------------------------------------

static void item_body(emitter *e, ft_kir_block *block, ft_kir_id item) {
  enter(e, block, 0);
  decode(e, KEPT, item);
  e->scope[e->depth].open |= e->kept;
  reduce(e);
  if (e->reduced && has_output(e, true)) walk(e, store_inner);
  store_outer(e);
  leave(e);
}

static int64_t items_per_block(const emitter *e) {
  return (int64_t)e->choice->threads * e->choice->unroll;
}

static int64_t blocks_needed(const emitter *e) {
  int64_t each =
      is_rows(e) ? e->choice->threads / e->choice->row_threads : items_per_block(e);
  return (steps_of(e, KEPT) + each - 1) / each;
}

static int64_t grid_of(const emitter *e) {
  int64_t needed = blocks_needed(e);
  return e->choice->blocks && e->choice->blocks < needed ? e->choice->blocks : needed;
}

static ft_kir_id item_after(emitter *e, ft_kir_id first, uint32_t u) {
  if (u == 0) return first;
  return named(
      e, calculate(e, FT_KIR_IADD, first, number(e, (int64_t)u * e->choice->threads)));
}

static void put_each(emitter *e, ft_kir_id first) {
  for (uint32_t u = 0; u < e->choice->unroll; u++) {
    ft_kir_id item = item_after(e, first, u);
    ft_kir_stmt *branch =
        ft_kir_if(e->kir, calculate(e, FT_KIR_ILESS, item, number(e, steps_of(e, KEPT))));
    item_body(e, &branch->body, item);
    ft_kir_append(here(e), branch);
  }
}

static void load_all(emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++)
    if (e->ir->node[i].kind == FT_NODE_LOAD) emit(e, i);
}

// Side by side: all that the items read is asked for before any of it is used.
static void put_together(emitter *e, ft_kir_id first) {
  for (e->at = 0; e->at < e->items; e->at++) decode(e, KEPT, item_after(e, first, e->at));
  e->scope[e->depth].open |= e->kept;
  for (e->at = 0; e->at < e->items; e->at++) load_all(e);
  for (e->at = 0; e->at < e->items; e->at++) store_outer(e);
  e->at = 0;
}

// A turn: |unroll| items, of which the last ones may be past the end.
static void put_items(emitter *e, ft_kir_id first) {
  if (e->reduced || e->choice->unroll == 1) {
    put_each(e, first);
    return;
  }
  int64_t ahead = (int64_t)(e->choice->unroll - 1) * e->choice->threads;
  ft_kir_id last = calculate(e, FT_KIR_IADD, first, number(e, ahead));
  ft_kir_stmt *branch =
      ft_kir_if(e->kir, calculate(e, FT_KIR_ILESS, last, number(e, steps_of(e, KEPT))));
  e->items = e->choice->unroll;
  enter(e, &branch->body, 0);
  put_together(e, first);
  leave(e);
  e->items = 1;
  enter(e, &branch->otherwise, 0);
  put_each(e, first);
  leave(e);
  ft_kir_append(here(e), branch);
}

static void item_thread(emitter *e, ft_kir_id block) {
  ft_kir_id first = calculate(e, FT_KIR_IMUL, block, number(e, items_per_block(e)));
  first = named(e, calculate(e, FT_KIR_IADD, first, e->thread));
  if (grid_of(e) == blocks_needed(e)) {
    put_items(e, first);
    return;
  }
  ft_kir_stmt *loop =
      ft_kir_for(e->kir, FT_KIR_SERIAL, first, number(e, steps_of(e, KEPT)),
                 number(e, items_per_block(e) * grid_of(e)));
  enter(e, &loop->body, 0);
  put_items(e, loop->value);
  leave(e);
  ft_kir_append(here(e), loop);
}

// ---- a row per |row_threads|
// --------------------------------------------------------------------

static void store_when(emitter *e, ft_kir_id condition, body *run) {
  ft_kir_stmt *branch = ft_kir_if(e->kir, condition);
  enter(e, &branch->body, 0);
  run(e);
  leave(e);
  ft_kir_append(here(e), branch);
}

static void walk_and_store(emitter *e) {
  walk(e, store_inner);
}

static void store_once(emitter *e) {
  store_when(e, calculate(e, FT_KIR_ILESS, e->lane, number(e, 1)), store_outer);
}

static void row_thread(emitter *e, ft_kir_id block) {
  int64_t each = e->choice->threads / e->choice->row_threads, rows = steps_of(e, KEPT);
  ft_kir_id per_row = number(e, e->choice->row_threads);
  e->lane = named(e, calculate(e, FT_KIR_IMOD, e->thread, per_row));
  e->row_in_block = named(e, calculate(e, FT_KIR_IDIV, e->thread, per_row));
  ft_kir_id row = calculate(e, FT_KIR_IMUL, block, number(e, each));
  row = named(e, calculate(e, FT_KIR_IADD, row, e->row_in_block));
  ft_kir_id inside = named(e, calculate(e, FT_KIR_IMIN, row, number(e, rows - 1)));
  e->is_stored = calculate(e, FT_KIR_ILESS, row, number(e, rows));
  decode(e, KEPT, inside);
  e->scope[e->depth].open |= e->kept;
  reduce(e);
  if (has_output(e, true)) store_when(e, e->is_stored, walk_and_store);
  if (has_output(e, false)) store_when(e, e->is_stored, store_once);
}

// ---- planning
// ------------------------------------------------------------------------------------

static bool is_power_of_two(uint32_t n) {
  return n && !(n & (n - 1));
}

static const char *launch_refusal(const ft_simt_choice *c) {
  if (c->threads < WARP || c->threads > 1024 || c->threads % WARP)
    return "threads is not a multiple of 32 up to 1024";
  if (!is_power_of_two(c->vector) || c->vector > 8) return "vector is not 1, 2, 4 or 8";
  if (c->unroll < 1 || c->unroll > MOST_ITEMS) return "unroll is not 1 to 8";
  if (!c->row_threads) return NULL;
  if (!is_power_of_two(c->row_threads) || c->threads % c->row_threads)
    return "row_threads does not divide threads";
  if (c->unroll != 1) return "rows are not unrolled";
  if (c->blocks) return "rows take one turn";
  return NULL;
}

static uint64_t vector_axes(const ft_group_ir *ir, const ft_simt_choice *choice) {
  uint64_t all = ir->axis_count == 64 ? UINT64_MAX : bit(ir->axis_count) - 1;
  return choice->row_threads ? ir->reduced : all & ~ir->reduced;
}

static void list_axes(emitter *e) {
  for (uint32_t axis = 0; axis < e->ir->axis_count; axis++) {
    bool is_last = e->has_vector && axis == e->vector_axis;
    int which = e->reduced & bit(axis) ? REDUCED : KEPT;
    if (!is_last) e->order[which][e->count[which]++] = axis;
  }
  if (!e->has_vector) return;
  int which = e->reduced & bit(e->vector_axis) ? REDUCED : KEPT;
  e->order[which][e->count[which]++] = e->vector_axis;
}

static emitter plan(const ft_group_ir *ir, const ft_simt_choice *choice,
                    ft_arena *arena) {
  emitter e = {
      .ir = ir, .choice = choice, .arena = arena, .reduced = ir->reduced, .items = 1};
  uint64_t all = ir->axis_count == 64 ? UINT64_MAX : bit(ir->axis_count) - 1;
  e.kept = all & ~ir->reduced;
  uint32_t axis = ft_nest_best_axis(ir, vector_axes(ir, choice));
  e.has_vector = axis != FT_MAX_AXES;
  e.vector_axis = axis;
  e.lanes = 1;
  if (e.has_vector && ir->extent[axis] % choice->vector == 0)
    e.lanes = (uint16_t)choice->vector;
  list_axes(&e);
  return e;
}

const char *ft_simt_nest_refusal(const ft_group_ir *ir, const ft_simt_choice *choice,
                                 ft_arena *arena) {
  const char *wrong = launch_refusal(choice);
  if (!wrong) wrong = ft_nest_refusal(ir, arena);
  if (wrong) return wrong;
  if (choice->row_threads && !ir->reduced) return "no reduction, so no rows";
  emitter e = plan(ir, choice, arena);
  if (e.lanes < choice->vector)
    return ft_arena_printf(arena, "no axis that %u divides", choice->vector);
  if (grid_of(&e) > INT32_MAX)
    return ft_arena_printf(arena, "%lld blocks are too many", (long long)grid_of(&e));
  return NULL;
}

ft_status ft_simt_nest_build(const ft_group_ir *ir, const ft_simt_choice *choice,
                             ft_arena *arena, ft_kir **out, ft_error *error) {
  emitter e = plan(ir, choice, arena);
  uint32_t arguments = ir->workload->group.input_count + ir->workload->group.output_count;
  e.kir = ft_kir_create(arena);
  known *table = FT_NEW_ARRAY(arena, known, (size_t)ir->node_count * MOST_ITEMS);
  e.argument = FT_NEW_ARRAY(arena, uint32_t, arguments);
  e.total = FT_NEW_ARRAY(arena, uint32_t, ir->node_count);
  FT_OOM_IF(!e.kir || !table || !e.argument || !e.total, error);
  for (uint32_t u = 0; u < MOST_ITEMS; u++)
    e.item[u].known = table + (size_t)u * ir->node_count;
  ft_kir_stmt *grid = ft_kir_for(e.kir, FT_KIR_GRID, number(&e, 0),
                                 number(&e, grid_of(&e)), number(&e, 1));
  ft_kir_stmt *threads = ft_kir_for(e.kir, FT_KIR_THREAD, number(&e, 0),
                                    number(&e, choice->threads), number(&e, 1));
  e.thread = threads->value;
  enter(&e, &threads->body, 0);
  if (is_rows(&e))
    row_thread(&e, grid->value);
  else
    item_thread(&e, grid->value);
  leave(&e);
  ft_kir_append(&grid->body, threads);
  ft_kir_append(&e.kir->body, grid);
  FT_OOM_IF(e.kir->failed, error);
  *out = e.kir;
  return FT_OK;
}
