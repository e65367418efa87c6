#include "codegen/simt_gemm.h"

#include "codegen/expressions.h"
#include "codegen/loop_emit.h"

enum { MOST_THREAD = 8, WARP = 32, PAD = 1 };

typedef struct gemm {
  const ft_workload *workload;
  const ft_simt_gemm_choice *choice;
  ft_loop_emitter *e;
  const ft_primitive *p;
  ft_shape shape;  // of the product; rank >= 2
  ft_dtype dtype;
  int64_t m, n, k, batches;
  uint32_t threads;
  ft_kir_id thread, row, column;  // of the thread in the tile
  ft_kir_id first_m, first_n;     // of the block
  ft_affine batch[FT_MAX_RANK];
  uint32_t slab[2];  // shared
  uint32_t total[MOST_THREAD][MOST_THREAD];
} gemm;

static ft_kir_id number(gemm *g, int64_t n) {
  return ft_places_number(&g->e->places, n);
}

static ft_kir_id calculate(gemm *g, ft_kir_op op, ft_kir_id a, ft_kir_id b) {
  return ft_places_index(&g->e->places, op, a, b);
}

static ft_kir_id plus(gemm *g, ft_kir_id a, ft_kir_id b) {
  return calculate(g, FT_KIR_IADD, a, b);
}

static ft_kir_id times(gemm *g, ft_kir_id a, int64_t n) {
  return calculate(g, FT_KIR_IMUL, a, number(g, n));
}

static ft_kir_id named(gemm *g, ft_kir_id index) {
  return ft_loop_named(g->e, index);
}

// ---- what it takes
// ---------------------------------------------------------------------------

static const ft_primitive *product_of(const ft_group *group) {
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &group->graph->primitive[group->primitive[i]];
    if (p->op == FT_OP_MATMUL) return p;
  }
  return NULL;
}

static const char *name_of(const ft_primitive *p) {
  return ft_op_describe(p->op)->name;
}

// What depends on the product keeps its shape and is elementwise.
static const char *behind_refusal(const ft_group *group, const ft_primitive *product,
                                  ft_arena *arena) {
  const ft_graph *graph = group->graph;
  const ft_shape *shape = &graph->value[product->output].shape;
  bool *depends = FT_NEW_ARRAY(arena, bool, graph->value_count);
  if (!depends) return "out of memory";
  depends[product->output] = true;
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &graph->primitive[group->primitive[i]];
    bool is_behind = false;
    for (uint32_t k = 0; k < p->input_count; k++) {
      const ft_value *v = &graph->value[p->input[k]];
      if (!depends[v->root]) continue;
      is_behind = true;
      if (!ft_shape_equal(&v->shape, shape))
        return ft_arena_printf(arena, "%s sees the product in another shape", name_of(p));
    }
    if (!is_behind || p == product) continue;
    depends[p->output] = true;
    if (ft_op_describe(p->op)->class != FT_CLASS_E ||
        !ft_shape_equal(&graph->value[p->output].shape, shape))
      return ft_arena_printf(arena, "%s behind the product is not elementwise",
                             name_of(p));
  }
  for (uint32_t o = 0; o < group->output_count; o++)
    if (!depends[group->output[o]]) return "an output that is not behind the product";
  return NULL;
}

static bool is_between(uint32_t n, uint32_t low, uint32_t high) {
  return n >= low && n <= high && !(n & (n - 1));
}

static uint32_t threads_of(const ft_simt_gemm_choice *c) {
  return c->block_m / c->thread_m * (c->block_n / c->thread_n);
}

static const char *choice_refusal(const ft_simt_gemm_choice *c) {
  if (!is_between(c->block_m, 8, 128) || !is_between(c->block_n, 8, 128))
    return "block_m or block_n is not a power of two from 8 to 128";
  if (!is_between(c->block_k, 4, 32)) return "block_k is not 4, 8, 16 or 32";
  if (!is_between(c->thread_m, 1, MOST_THREAD) ||
      !is_between(c->thread_n, 1, MOST_THREAD))
    return "thread_m or thread_n is not 1, 2, 4 or 8";
  uint32_t threads = threads_of(c);
  if (threads < WARP || threads > 1024)
    return "a block of less than 32 or over 1024 threads";
  if (c->block_m * c->block_k % threads || c->block_n * c->block_k % threads)
    return "the threads cannot share the slabs evenly";
  return NULL;
}

static int64_t batches_of(const ft_shape *shape) {
  int64_t batches = 1;
  for (int i = 0; i + 2 < shape->rank; i++) batches *= shape->dim[i];
  return batches;
}

static int64_t tiles(int64_t extent, uint32_t block) {
  return (extent + block - 1) / block;
}

static int64_t grid_of(const gemm *g) {
  return g->batches * tiles(g->m, g->choice->block_m) * tiles(g->n, g->choice->block_n);
}

static gemm plan(const ft_workload *workload, const ft_simt_gemm_choice *choice,
                 const ft_primitive *p) {
  const ft_graph *graph = workload->group.graph;
  const ft_shape *a = &graph->value[p->input[0]].shape;
  gemm g = {.workload = workload,
            .choice = choice,
            .p = p,
            .shape = graph->value[p->output].shape,
            .dtype = graph->value[p->output].dtype,
            .threads = threads_of(choice)};
  g.m = g.shape.dim[g.shape.rank - 2];
  g.n = g.shape.dim[g.shape.rank - 1];
  g.k = a->dim[a->rank - 1];
  g.batches = batches_of(&g.shape);
  return g;
}

const char *ft_simt_gemm_refusal(const ft_workload *workload,
                                 const ft_simt_gemm_choice *choice, ft_arena *arena) {
  const ft_group *group = &workload->group;
  const char *wrong = choice_refusal(choice);
  if (!wrong) wrong = ft_loop_refusal(workload, arena);
  if (wrong) return wrong;
  const ft_primitive *p = product_of(group);
  if (!p) return "no matrix product";
  if (!ft_dtype_is_float(group->graph->value[p->output].dtype))
    return "a product of integers";
  if (group->graph->value[p->output].shape.rank < 2) return "a product without rows";
  wrong = behind_refusal(group, p, arena);
  if (wrong) return wrong;
  gemm g = plan(workload, choice, p);
  if (!ft_shape_elements(&g.shape)) return "a product without elements";
  return grid_of(&g) > INT32_MAX ? "too many blocks" : NULL;
}

// ---- slabs
// -------------------------------------------------------------------------------------

// Operand |which| at row or column |at| and term |k|.
static const ft_place *operand_place(gemm *g, int which, ft_kir_id at, ft_kir_id k) {
  const ft_shape *shape = &g->e->graph->value[g->p->input[which]].shape;
  int shift = g->shape.rank - shape->rank, rank = shape->rank;
  ft_affine dim[FT_MAX_RANK];
  for (int i = 0; i + 2 < rank; i++)
    dim[i] = shape->dim[i] == 1 ? ft_affine_number(0) : g->batch[i + shift];
  ft_affine outer = ft_affine_of(&g->e->places, at),
            term = ft_affine_of(&g->e->places, k);
  dim[rank - 2] = which == 0 ? outer : term;
  dim[rank - 1] = which == 0 ? term : outer;
  return ft_place_make(&g->e->places, shape, dim);
}

// "a < extent", or 0 when it holds for all blocks.
static ft_kir_id guard(gemm *g, ft_kir_id a, int64_t extent, uint32_t block) {
  if (extent % block == 0) return 0;
  return calculate(g, FT_KIR_ILESS, a, number(g, extent));
}

static ft_kir_id both(gemm *g, ft_kir_id a, ft_kir_id b) {
  return !a ? b : !b ? a : calculate(g, FT_KIR_IMUL, a, b);
}

static ft_kir_id zero(gemm *g, ft_kir_block *at) {
  return ft_kir_element(g->e->kir, at, (ft_kir_type){g->dtype, 1}, 0);
}

// The element, or 0 where |inside| does not hold.
static ft_kir_id guarded_value(gemm *g, int which, ft_kir_id at, ft_kir_id k,
                               ft_kir_id inside) {
  ft_loop_emitter *e = g->e;
  ft_kir *kir = e->kir;
  if (!inside) {
    const ft_place *place = operand_place(g, which, at, k);
    return place ? ft_loop_value(e, g->p->input[which], place) : 0;
  }
  uint32_t held = ft_kir_register(kir, ft_loop_here(e), (ft_kir_type){g->dtype, 1});
  ft_kir_store(kir, ft_loop_here(e), held, zero(g, ft_loop_here(e)), number(g, 0), 1,
               FT_KIR_CACHED);
  ft_kir_stmt *branch = ft_kir_if(kir, inside);
  ft_loop_enter(e, &branch->body);
  const ft_place *place = operand_place(g, which, at, k);
  ft_kir_id value = place ? ft_loop_value(e, g->p->input[which], place) : 0;
  ft_kir_store(kir, ft_loop_here(e), held, value, number(g, 0), 1, FT_KIR_CACHED);
  ft_loop_leave(e);
  ft_kir_append(ft_loop_here(e), branch);
  return ft_kir_load(kir, ft_loop_here(e), held, 1, number(g, 0), 1);
}

// Where element (|outer|, |term|) of a slab lies. The first operand's rows are padded, so
// that threads that read a column of it use different banks.
static ft_kir_id slab_index(gemm *g, int which, ft_kir_id outer, ft_kir_id term) {
  if (which == 0) return plus(g, times(g, outer, g->choice->block_k + PAD), term);
  return plus(g, times(g, term, g->choice->block_n), outer);
}

static void fill_slab(gemm *g, int which, ft_kir_id first_k) {
  const ft_simt_gemm_choice *c = g->choice;
  uint32_t block = which == 0 ? c->block_m : c->block_n;
  int64_t extent = which == 0 ? g->m : g->n;
  ft_kir_id first = which == 0 ? g->first_m : g->first_n;
  for (uint32_t q = 0; q < block * c->block_k / g->threads; q++) {
    ft_kir_id at = plus(g, g->thread, number(g, (int64_t)q * g->threads));
    // Neighbouring threads along the operand's rows.
    uint32_t inner = which == 0 ? c->block_k : block;
    ft_kir_id high = named(g, calculate(g, FT_KIR_IDIV, at, number(g, inner)));
    ft_kir_id low = named(g, calculate(g, FT_KIR_IMOD, at, number(g, inner)));
    ft_kir_id outer = which == 0 ? high : low, term = which == 0 ? low : high;
    ft_kir_id row = named(g, plus(g, first, outer)), k = named(g, plus(g, first_k, term));
    ft_kir_id inside =
        both(g, guard(g, row, extent, block), guard(g, k, g->k, c->block_k));
    ft_kir_id value = guarded_value(g, which, row, k, inside);
    ft_kir_store(g->e->kir, ft_loop_here(g->e), g->slab[which], value,
                 slab_index(g, which, outer, term), 1, FT_KIR_CACHED);
  }
}

// ---- products
// ------------------------------------------------------------------------------------

// Row i of the thread in the tile, or column.
static ft_kir_id spread(gemm *g, int which, uint32_t i) {
  const ft_simt_gemm_choice *c = g->choice;
  uint32_t across = which == 0 ? c->block_m / c->thread_m : c->block_n / c->thread_n;
  return plus(g, which == 0 ? g->row : g->column, number(g, (int64_t)i * across));
}

static ft_kir_id slab_element(gemm *g, int which, uint32_t i, ft_kir_id term) {
  return ft_kir_load(g->e->kir, ft_loop_here(g->e), g->slab[which], 1,
                     slab_index(g, which, spread(g, which, i), term), 1);
}

static void add_products(gemm *g, ft_kir_id term) {
  ft_kir *kir = g->e->kir;
  ft_kir_block *here = ft_loop_here(g->e);
  ft_kir_id a[MOST_THREAD], b[MOST_THREAD];
  for (uint32_t i = 0; i < g->choice->thread_m; i++) a[i] = slab_element(g, 0, i, term);
  for (uint32_t j = 0; j < g->choice->thread_n; j++) b[j] = slab_element(g, 1, j, term);
  for (uint32_t i = 0; i < g->choice->thread_m; i++)
    for (uint32_t j = 0; j < g->choice->thread_n; j++) {
      ft_kir_id factors[2] = {a[i], b[j]};
      ft_kir_id product = ft_kir_primitive(kir, here, FT_OP_MUL, g->dtype, factors, 2);
      ft_kir_id total = ft_kir_load(kir, here, g->total[i][j], 1, number(g, 0), 1);
      ft_kir_id sum = ft_kir_combine(kir, here, FT_OP_REDUCE_SUM, total, product);
      ft_kir_store(kir, here, g->total[i][j], sum, number(g, 0), 1, FT_KIR_CACHED);
    }
}

static void multiply_slabs(gemm *g) {
  ft_kir_stmt *loop = ft_kir_for(g->e->kir, FT_KIR_UNROLL, number(g, 0),
                                 number(g, g->choice->block_k), number(g, 1));
  ft_loop_enter(g->e, &loop->body);
  add_products(g, loop->value);
  ft_loop_leave(g->e);
  ft_kir_append(ft_loop_here(g->e), loop);
}

static void walk_terms(gemm *g) {
  ft_loop_emitter *e = g->e;
  ft_kir_stmt *loop = ft_kir_for(e->kir, FT_KIR_SERIAL, number(g, 0), number(g, g->k),
                                 number(g, g->choice->block_k));
  ft_loop_enter(e, &loop->body);
  fill_slab(g, 0, loop->value);
  fill_slab(g, 1, loop->value);
  ft_kir_barrier(e->kir, ft_loop_here(e));
  multiply_slabs(g);
  ft_kir_barrier(e->kir, ft_loop_here(e));
  ft_loop_leave(e);
  ft_kir_append(ft_loop_here(e), loop);
}

// ---- the block
// --------------------------------------------------------------------------------------

static void open_totals(gemm *g) {
  ft_kir *kir = g->e->kir;
  ft_kir_block *here = ft_loop_here(g->e);
  ft_kir_id none = zero(g, here);
  for (uint32_t i = 0; i < g->choice->thread_m; i++)
    for (uint32_t j = 0; j < g->choice->thread_n; j++) {
      g->total[i][j] = ft_kir_register(kir, here, (ft_kir_type){g->dtype, 1});
      ft_kir_store(kir, here, g->total[i][j], none, number(g, 0), 1, FT_KIR_CACHED);
    }
}

static void store_element(gemm *g, const ft_loop_section *section, uint32_t i, uint32_t j,
                          ft_kir_id m, ft_kir_id n) {
  ft_loop_emitter *e = g->e;
  ft_affine dim[FT_MAX_RANK];
  for (int k = 0; k + 2 < g->shape.rank; k++) dim[k] = g->batch[k];
  dim[g->shape.rank - 2] = ft_affine_of(&e->places, m);
  dim[g->shape.rank - 1] = ft_affine_of(&e->places, n);
  const ft_place *place = ft_place_make(&e->places, &g->shape, dim);
  if (!place) return;
  ft_kir_id total =
      ft_kir_load(e->kir, ft_loop_here(e), g->total[i][j], 1, number(g, 0), 1);
  ft_loop_remember(e, g->p->output, place, total);
  ft_loop_store(e, section, &place, 1);
}

static void store_tile(gemm *g) {
  ft_loop_emitter *e = g->e;
  const ft_simt_gemm_choice *c = g->choice;
  ft_loop_section section = {.elements = ft_shape_elements(&g->shape),
                             .domain = g->shape};
  for (uint32_t i = 0; i < c->thread_m; i++)
    for (uint32_t j = 0; j < c->thread_n; j++) {
      ft_kir_id m = named(g, plus(g, g->first_m, spread(g, 0, i)));
      ft_kir_id n = named(g, plus(g, g->first_n, spread(g, 1, j)));
      ft_kir_id inside =
          both(g, guard(g, m, g->m, c->block_m), guard(g, n, g->n, c->block_n));
      ft_kir_stmt *branch = ft_kir_if(e->kir, inside ? inside : number(g, 1));
      ft_loop_enter(e, &branch->body);
      store_element(g, &section, i, j, m, n);
      ft_loop_leave(e);
      ft_kir_append(ft_loop_here(e), branch);
    }
}

// The batch, row and column that the block begins at.
static void decode_block(gemm *g, ft_kir_id block) {
  int64_t across = tiles(g->n, g->choice->block_n),
          down = tiles(g->m, g->choice->block_m);
  ft_kir_id column = calculate(g, FT_KIR_IMOD, block, number(g, across));
  ft_kir_id rest = calculate(g, FT_KIR_IDIV, block, number(g, across));
  ft_kir_id row = calculate(g, FT_KIR_IMOD, rest, number(g, down));
  ft_kir_id batch = calculate(g, FT_KIR_IDIV, rest, number(g, down));
  g->first_n = named(g, times(g, column, g->choice->block_n));
  g->first_m = named(g, times(g, row, g->choice->block_m));
  int64_t inner = 1;
  for (int i = g->shape.rank - 3; i >= 0; i--) {
    ft_kir_id index = calculate(g, FT_KIR_IDIV, batch, number(g, inner));
    if (i > 0) index = calculate(g, FT_KIR_IMOD, index, number(g, g->shape.dim[i]));
    g->batch[i] = g->shape.dim[i] == 1 ? ft_affine_number(0)
                                       : ft_affine_of(&g->e->places, named(g, index));
    inner *= g->shape.dim[i];
  }
}

static void put_thread(gemm *g, ft_kir_id block) {
  const ft_simt_gemm_choice *c = g->choice;
  ft_kir_id across = number(g, c->block_n / c->thread_n);
  g->row = named(g, calculate(g, FT_KIR_IDIV, g->thread, across));
  g->column = named(g, calculate(g, FT_KIR_IMOD, g->thread, across));
  decode_block(g, block);
  open_totals(g);
  walk_terms(g);
  store_tile(g);
}

ft_status ft_simt_gemm_build(const ft_workload *workload,
                             const ft_simt_gemm_choice *choice, ft_arena *arena,
                             ft_kir **out, ft_error *error) {
  gemm g = plan(workload, choice, product_of(&workload->group));
  FT_TRY(ft_loop_open(workload, arena, &g.e, error));
  ft_loop_emitter *e = g.e;
  e->lanes = 1;
  e->inner = number(&g, 0);
  e->high = 1;
  ft_kir_stmt *grid = ft_kir_for(e->kir, FT_KIR_GRID, number(&g, 0),
                                 number(&g, grid_of(&g)), number(&g, 1));
  ft_kir_stmt *threads = ft_kir_for(e->kir, FT_KIR_THREAD, number(&g, 0),
                                    number(&g, g.threads), number(&g, 1));
  g.thread = threads->value;
  ft_loop_enter(e, &grid->body);
  ft_loop_enter(e, &threads->body);
  g.slab[0] = ft_kir_shared(e->kir, ft_loop_here(e), g.dtype,
                            (int64_t)choice->block_m * (choice->block_k + PAD));
  g.slab[1] = ft_kir_shared(e->kir, ft_loop_here(e), g.dtype,
                            (int64_t)choice->block_n * choice->block_k);
  put_thread(&g, grid->value);
  ft_loop_leave(e);
  ft_kir_append(ft_loop_here(e), threads);
  ft_loop_leave(e);
  ft_kir_append(&e->kir->body, grid);
  FT_OOM_IF(e->kir->failed, error);
  if (e->is_lost || e->new_cuts)
    FT_FAIL(error, FT_INTERNAL, "a thread asks for a vector");
  *out = e->kir;
  return FT_OK;
}
