#include <math.h>

#include "codegen/simt_conv_parts.h"
#include "codegen/simt_grid.h"

enum {
  WARP = 32,
  FILTER_LANES = 4,
  SHORT = 64,  // so many terms are one sum
  CHUNK_FACTOR = 4,
  MOST_WORK = 1,  // before a product, in cheap operations
};

// ---- what it takes
// ---------------------------------------------------------------------------

static const ft_primitive *conv_of(const ft_group *group) {
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &group->graph->primitive[group->primitive[i]];
    if (p->op == FT_OP_CONV) return p;
  }
  return NULL;
}

static const char *tile_refusal(const ft_simt_conv_choice *c) {
  if (!ft_simt_is_power(c->tile_channels, 1, 128))
    return "tile_channels is not a power of two up to 128";
  if (!ft_simt_is_power(c->tile_positions, 8, 256))
    return "tile_positions is not a power of two from 8 to 256";
  if (!ft_simt_is_power(c->slab, 4, 32)) return "slab is not 4, 8, 16 or 32";
  if (!ft_simt_is_power(c->thread_channels, 1, FT_CONV_MOST_THREAD) ||
      !ft_simt_is_power(c->thread_positions, 1, FT_CONV_MOST_THREAD))
    return "thread_channels or thread_positions is not 1, 2, 4 or 8";
  if (!ft_simt_is_power(c->vector, 1, 4)) return "vector is not 1, 2 or 4";
  return NULL;
}

uint32_t ft_simt_conv_threads(const ft_simt_conv_choice *c) {
  return c->tile_channels / c->thread_channels *
         (c->tile_positions / c->thread_positions);
}

static const char *choice_refusal(const ft_simt_conv_choice *c) {
  const char *wrong = tile_refusal(c);
  if (wrong) return wrong;
  if (c->thread_channels > c->tile_channels || c->thread_positions > c->tile_positions)
    return "a thread has more than the tile";
  if (c->vector > c->thread_positions) return "vector is more than thread_positions";
  uint32_t threads = ft_simt_conv_threads(c);
  if (threads < WARP || threads > 1024)
    return "a block of less than 32 or over 1024 threads";
  return NULL;
}

static int64_t product(const ft_shape *shape, int from) {
  int64_t all = 1;
  for (int i = from; i < shape->rank; i++) all *= shape->dim[i];
  return all;
}

static int64_t grid_of(const ft_conv_emitter *c) {
  return c->p->attr.groups * ft_simt_tiles(c->m, c->choice->tile_channels) *
         ft_simt_tiles(c->n, c->choice->tile_positions);
}

// Every output point reads one input point, the same.
static bool is_pointwise(const ft_conv_emitter *c) {
  for (int i = 2; i < c->x->rank; i++) {
    if (c->w->dim[i] != 1 || c->x->dim[i] != c->y->dim[i]) return false;
    if (c->p->attr.start[i - 2] || c->p->attr.stride[i - 2] != 1) return false;
  }
  return true;
}

static int64_t chunk_of(const ft_conv_emitter *c) {
  if (c->dtype != FT_F32 || c->k <= SHORT) return 0;
  int64_t terms = (int64_t)ceil(CHUNK_FACTOR * sqrt((double)c->k));
  int64_t chunk = ft_simt_tiles(terms, c->choice->slab) * c->choice->slab;
  return chunk < c->k ? chunk : 0;
}

// Filters come in vectors when nothing leads to them and they lie so.
static uint16_t filter_lanes(const ft_conv_emitter *c) {
  uint32_t root = c->graph->value[c->p->input[1]].root;
  const ft_group *group = &c->workload->group;
  for (uint32_t i = 0; i < group->primitive_count; i++)
    if (group->graph->primitive[group->primitive[i]].output == root) return 1;
  return c->k % FILTER_LANES ? 1 : FILTER_LANES;
}

static ft_conv_emitter plan(const ft_workload *workload,
                            const ft_simt_conv_choice *choice) {
  const ft_graph *graph = workload->group.graph;
  const ft_primitive *p = conv_of(&workload->group);
  ft_conv_emitter c = {.workload = workload,
                       .choice = choice,
                       .graph = graph,
                       .p = p,
                       .x = &graph->value[p->input[0]].shape,
                       .w = &graph->value[p->input[1]].shape,
                       .y = &graph->value[p->output].shape,
                       .dtype = ft_kir_math_dtype(graph->value[p->output].dtype)};
  c.is_pointwise = is_pointwise(&c);
  for (int i = 0; i + 2 < c.x->rank; i++)
    c.has_padding |= ft_simt_hangs_over(graph, p, i, c.w->dim[i + 2]);
  c.points = product(c.y, 2);
  c.taps = product(c.w, 2);
  c.m = c.y->dim[1] / p->attr.groups;
  c.n = c.y->dim[0] * c.points;
  c.k = c.w->dim[1] * c.taps;
  c.chunk = chunk_of(&c);
  c.threads = ft_simt_conv_threads(choice);
  c.lanes[FT_CONV_FILTER] = filter_lanes(&c);
  c.lanes[FT_CONV_IMAGE] = c.is_pointwise ? (uint16_t)choice->vector : 1;
  return c;
}

// ---- products
// ------------------------------------------------------------------------------------

static uint32_t vectors_of(const ft_conv_emitter *c) {
  return c->choice->thread_positions / c->choice->vector;
}

static uint32_t totals_of(const ft_conv_emitter *c) {
  return c->choice->thread_channels * vectors_of(c);
}

// Row i of the thread in the tile.
static ft_kir_id row_at(ft_conv_emitter *c, ft_kir_id i) {
  int64_t across = c->choice->tile_channels / c->choice->thread_channels;
  return plus(c, c->row, times(c, i, across));
}

// The first column of vector j.
static ft_kir_id column_at(ft_conv_emitter *c, ft_kir_id j) {
  int64_t across = c->choice->tile_positions / c->choice->thread_positions;
  return times(c, plus(c, c->column, times(c, j, across)), c->choice->vector);
}

static ft_kir_id slab_value(ft_conv_emitter *c, int which, ft_kir_id term,
                            ft_kir_id in_tile, uint32_t lanes) {
  return ft_kir_load(c->e->kir, ft_loop_here(c->e), c->slab[which], (uint16_t)lanes,
                     ft_conv_slab_index(c, which, term, in_tile), 1);
}

static void add_products(ft_conv_emitter *c, ft_kir_id term, const uint32_t *total) {
  ft_loop_emitter *e = c->e;
  uint32_t rows = c->choice->thread_channels, vectors = vectors_of(c);
  uint16_t lanes = (uint16_t)c->choice->vector;
  ft_kir_id a[FT_CONV_MOST_THREAD], b[FT_CONV_MOST_THREAD];
  for (uint32_t i = 0; i < rows; i++) {
    a[i] = slab_value(c, FT_CONV_FILTER, term, row_at(c, number(c, i)), 1);
    a[i] = ft_loop_spread(e, a[i], lanes);
  }
  for (uint32_t j = 0; j < vectors; j++)
    b[j] = slab_value(c, FT_CONV_IMAGE, term, column_at(c, number(c, j)), lanes);
  for (uint32_t i = 0; i < rows; i++)
    for (uint32_t j = 0; j < vectors; j++) {
      ft_kir_id factors[2] = {a[i], b[j]};
      ft_kir_id product =
          ft_kir_primitive(e->kir, ft_loop_here(e), FT_OP_MUL, c->dtype, factors, 2);
      ft_simt_add(e, total[i * vectors + j], FT_OP_REDUCE_SUM, product);
    }
}

static void multiply_slabs(ft_conv_emitter *c, const uint32_t *total) {
  ft_kir_stmt *loop = ft_kir_for(c->e->kir, FT_KIR_UNROLL, number(c, 0),
                                 number(c, c->choice->slab), number(c, 1));
  ft_loop_enter(c->e, &loop->body);
  add_products(c, loop->value, total);
  ft_loop_close(c->e, loop);
}

static void open_totals(ft_conv_emitter *c, uint32_t *total) {
  ft_kir_type type = {c->dtype, (uint16_t)c->choice->vector};
  for (uint32_t i = 0; i < totals_of(c); i++) total[i] = ft_simt_total(c->e, type, 0);
}

// Terms [begin, end) into |total|.
static void walk_terms(ft_conv_emitter *c, ft_kir_id begin, ft_kir_id end,
                       const uint32_t *total) {
  ft_loop_emitter *e = c->e;
  ft_kir_stmt *loop =
      ft_kir_for(e->kir, FT_KIR_SERIAL, begin, end, number(c, c->choice->slab));
  ft_loop_enter(e, &loop->body);
  ft_conv_fill(c, FT_CONV_FILTER, loop->value);
  ft_conv_fill(c, FT_CONV_IMAGE, loop->value);
  ft_kir_barrier(e->kir, ft_loop_here(e));
  multiply_slabs(c, total);
  ft_kir_barrier(e->kir, ft_loop_here(e));
  ft_loop_close(e, loop);
}

static void walk_chunks(ft_conv_emitter *c) {
  ft_loop_emitter *e = c->e;
  ft_kir_stmt *loop = ft_kir_for(e->kir, FT_KIR_SERIAL, number(c, 0), number(c, c->k),
                                 number(c, c->chunk));
  ft_loop_enter(e, &loop->body);
  open_totals(c, c->partial);
  ft_kir_id end = plus(c, loop->value, number(c, c->chunk));
  end = named(c, calculate(c, FT_KIR_IMIN, end, number(c, c->k)));
  walk_terms(c, loop->value, end, c->partial);
  for (uint32_t i = 0; i < totals_of(c); i++)
    ft_simt_add(e, c->total[i], FT_OP_REDUCE_SUM, ft_simt_read(e, c->partial[i]));
  ft_loop_close(e, loop);
}

// ---- the block
// --------------------------------------------------------------------------------------

// The outputs at column |v|; |total| 0: the convolution is computed term by term.
static void store_at(ft_conv_emitter *c, const ft_conv_column *v, ft_kir_id channel,
                     ft_kir_id total) {
  ft_loop_emitter *e = c->e;
  ft_loop_section section = {.elements = ft_shape_elements(c->y), .domain = *c->y};
  const ft_place *place = ft_conv_point(c, c->y, v, channel);
  if (!place) return;
  if (total) ft_loop_remember(e, c->p->output, place, total);
  ft_loop_store(e, &section, &place, 1);
}

// The same in the tile, unless it is past the end; |total| is a register.
static void store_element(ft_conv_emitter *c, ft_kir_id row, ft_kir_id in_tile,
                          uint32_t total) {
  ft_loop_emitter *e = c->e;
  row = named(c, plus(c, c->first_m, row));
  ft_conv_column v = ft_conv_column_of(c, named(c, in_tile));
  ft_kir_id inside =
      ft_simt_both(e, ft_simt_is_below(e, row, c->m, c->choice->tile_channels), v.inside);
  ft_kir_stmt *branch = ft_kir_if(e->kir, inside ? inside : number(c, 1));
  ft_loop_enter(e, &branch->body);
  ft_kir_id channel = named(c, ft_conv_channel(c, row));
  store_at(c, &v, channel, total ? ft_simt_read(e, total) : 0);
  ft_loop_close(e, branch);
}

static void store_totals(ft_conv_emitter *c) {
  c->e->lanes = (uint16_t)c->choice->vector;
  for (uint32_t i = 0; i < c->choice->thread_channels; i++)
    for (uint32_t j = 0; j < vectors_of(c); j++)
      store_element(c, row_at(c, number(c, i)), column_at(c, number(c, j)),
                    c->total[i * vectors_of(c) + j]);
  c->e->lanes = 1;
}

// All elements of the thread again, without padding. A loop: it is in the text once.
static void store_exactly(ft_conv_emitter *c) {
  int64_t positions = c->choice->thread_positions, lanes = c->choice->vector;
  ft_kir_stmt *loop =
      ft_kir_for(c->e->kir, FT_KIR_SERIAL, number(c, 0),
                 number(c, positions * c->choice->thread_channels), number(c, 1));
  ft_loop_enter(c->e, &loop->body);
  ft_kir_id position = named(c, rest_of(c, loop->value, positions));
  ft_kir_id column = column_at(c, divided(c, position, lanes));
  store_element(c, row_at(c, divided(c, loop->value, positions)),
                plus(c, column, rest_of(c, position, lanes)), 0);
  ft_loop_close(c->e, loop);
}

static void store_tile(ft_conv_emitter *c) {
  ft_loop_emitter *e = c->e;
  if (!c->has_padding) {
    store_totals(c);
    return;
  }
  ft_kir_stmt *branch = ft_kir_if(e->kir, ft_simt_has_nan(e, c->total, totals_of(c)));
  ft_loop_enter(e, &branch->body);
  store_exactly(c);
  ft_loop_leave(e);
  ft_loop_enter(e, &branch->otherwise);
  store_totals(c);
  ft_loop_close(e, branch);
}

// The group, row and column that the block begins at: neighbours share filters.
static void decode_block(ft_conv_emitter *c, ft_kir_id block) {
  int64_t across = ft_simt_tiles(c->n, c->choice->tile_positions),
          down = ft_simt_tiles(c->m, c->choice->tile_channels);
  ft_kir_id rest = divided(c, block, across);
  c->first_n = named(c, times(c, rest_of(c, block, across), c->choice->tile_positions));
  c->first_m = named(c, times(c, rest_of(c, rest, down), c->choice->tile_channels));
  c->group = c->p->attr.groups == 1 ? number(c, 0) : named(c, divided(c, rest, down));
}

static void put_thread(ft_conv_emitter *c, ft_kir_id block) {
  int64_t across = c->choice->tile_positions / c->choice->thread_positions;
  c->row = named(c, divided(c, c->thread, across));
  c->column = named(c, rest_of(c, c->thread, across));
  decode_block(c, block);
  ft_conv_open_slabs(c);
  open_totals(c, c->total);
  if (c->chunk)
    walk_chunks(c);
  else
    walk_terms(c, number(c, 0), number(c, c->k), c->total);
  store_tile(c);
}

static ft_status put_kernel(ft_conv_emitter *c, ft_arena *arena, ft_kir **out,
                            ft_error *error) {
  FT_TRY(ft_loop_open(c->workload, arena, &c->e, error));
  ft_loop_emitter *e = c->e;
  e->lanes = 1;
  e->inner = number(c, 0);
  e->high = 1;
  ft_simt_grid grid = ft_simt_grid_open(e, grid_of(c), c->threads);
  c->thread = grid.threads->value;
  put_thread(c, grid.blocks->value);
  return ft_simt_grid_close(e, &grid, out, error);
}

// ---- refusals
// -----------------------------------------------------------------------------------

static const char *shape_refusal(const ft_conv_emitter *c, ft_arena *arena) {
  if (!c->m || !c->n) return "a convolution without elements";
  if (!c->k) return "a convolution without terms";
  if (c->choice->vector > 1 && c->points % c->choice->vector)
    return ft_arena_printf(arena, "%lld points of an image are no vectors of %u",
                           (long long)c->points, c->choice->vector);
  return grid_of(c) > INT32_MAX ? "too many blocks" : NULL;
}

// An element of a slab is computed anew for every tile and window that has it, and used
// for as many products as the tile is wide.
static const char *work_refusal(const ft_group *group, const ft_primitive *p,
                                const ft_simt_conv_choice *c, ft_arena *arena) {
  uint32_t products[] = {c->tile_channels, c->tile_positions};
  for (int i = 0; i < 2; i++) {
    uint32_t work = ft_simt_work_before(group, p->input[i], arena);
    if (work > MOST_WORK * products[i])
      return ft_arena_printf(arena, "%u operations before every %u products of conv",
                             work, products[i]);
  }
  return NULL;
}

// What reshapes, slices or broadcasts along the points may have no vectors: it is tried.
static const char *vector_refusal(ft_conv_emitter *c, ft_arena *arena) {
  ft_kir *kir;
  ft_status status = put_kernel(c, arena, &kir, NULL);
  if (status == FT_OK) return NULL;
  return status == FT_INTERNAL ? "what surrounds the convolution has no vectors"
                               : "out of memory";
}

const char *ft_simt_conv_refusal(const ft_workload *workload,
                                 const ft_simt_conv_choice *choice, ft_arena *arena) {
  const ft_graph *graph = workload->group.graph;
  const char *wrong = choice_refusal(choice);
  if (wrong) return wrong;
  const ft_primitive *p = conv_of(&workload->group);
  if (!p) return "no convolution";
  if (!ft_dtype_is_float(graph->value[p->output].dtype))
    return "a convolution of integers";
  if (graph->value[p->output].shape.rank < 3) return "a convolution without points";
  wrong = ft_simt_group_refusal(&workload->group, p, arena);
  if (!wrong) wrong = work_refusal(&workload->group, p, choice, arena);
  if (wrong) return wrong;
  ft_conv_emitter c = plan(workload, choice);
  wrong = shape_refusal(&c, arena);
  return wrong || choice->vector == 1 ? wrong : vector_refusal(&c, arena);
}

ft_status ft_simt_conv_build(const ft_workload *workload,
                             const ft_simt_conv_choice *choice, ft_arena *arena,
                             ft_kir **out, ft_error *error) {
  ft_conv_emitter c = plan(workload, choice);
  return put_kernel(&c, arena, out, error);
}
