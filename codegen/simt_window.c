#include "codegen/simt_window.h"

#include <math.h>
#include <string.h>

#include "codegen/simt_anchor.h"

enum {
  WARP = 32,
  MOST_ITEMS = 16,     // outputs of a thread
  MOST_UNROLLED = 64,  // positions of a window
  SHORT = 64,          // so many terms are summed up in single precision
  MOST_SHARED_BYTES = 99 << 10,
  MOST_PRIMITIVES = 64,
};

enum { ROWS, COLUMNS };

// A spatial axis. What has none along its rows gets one of a single point.
typedef struct axis {
  int64_t in, out, window, stride, dilation, start;
  int64_t tile;   // outputs of a block
  int64_t tiles;  // blocks along it
  int64_t reach;  // of the input, for a tile
  bool is_whole;  // all that tiles reach lies in the input
} axis;

typedef struct stencil {
  const ft_workload *workload;
  const ft_simt_window_choice *choice;
  const ft_graph *graph;
  const ft_primitive *p;
  const ft_shape *x, *y;
  ft_dtype dtype, wide;  // of the results, and of sums
  ft_op combine;
  bool is_conv, has_padding;
  axis axis[2];
  int64_t planes;
  uint32_t items;  // of a thread
  ft_loop_emitter *e;
  ft_kir_id thread, first_plane, first[2];  // of this block's outputs
  uint32_t tile, filters;                   // shared
  uint32_t total[MOST_ITEMS];
} stencil;

// An output of the block.
typedef struct item {
  ft_kir_id plane, at[2];  // in the tile
} item;

static ft_kir_id number(stencil *w, int64_t n) {
  return ft_places_number(&w->e->places, n);
}

static ft_kir_id calculate(stencil *w, ft_kir_op op, ft_kir_id a, ft_kir_id b) {
  return ft_places_index(&w->e->places, op, a, b);
}

static ft_kir_id plus(stencil *w, ft_kir_id a, ft_kir_id b) {
  return calculate(w, FT_KIR_IADD, a, b);
}

static ft_kir_id times(stencil *w, ft_kir_id a, int64_t n) {
  return calculate(w, FT_KIR_IMUL, a, number(w, n));
}

static ft_kir_id divided(stencil *w, ft_kir_id a, int64_t n) {
  return calculate(w, FT_KIR_IDIV, a, number(w, n));
}

static ft_kir_id rest_of(stencil *w, ft_kir_id a, int64_t n) {
  return calculate(w, FT_KIR_IMOD, a, number(w, n));
}

static ft_kir_id named(stencil *w, ft_kir_id index) {
  return ft_loop_named(w->e, index);
}

static ft_affine affine(stencil *w, ft_kir_id index) {
  return ft_affine_of(&w->e->places, index);
}

// ---- planning
// ------------------------------------------------------------------------------------

static bool is_stencil(const ft_graph *graph, const ft_primitive *p) {
  if (p->op == FT_OP_CONV) return graph->value[p->input[1]].shape.dim[1] == 1;
  return ft_op_describe(p->op)->class == FT_CLASS_S;
}

static const ft_primitive *stencil_of(const ft_group *group) {
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &group->graph->primitive[group->primitive[i]];
    if (is_stencil(group->graph, p)) return p;
  }
  return NULL;
}

static int64_t tiles(int64_t extent, int64_t block) {
  return (extent + block - 1) / block;
}

static axis axis_of(const stencil *w, int which) {
  int i = w->x->rank - 4 + which;  // spatial axis
  const ft_attr *a = &w->p->attr;
  axis v = {.in = 1, .out = 1, .window = 1, .stride = 1, .dilation = 1};
  if (i >= 0) {
    v.in = w->x->dim[i + 2];
    v.out = w->y->dim[i + 2];
    v.window = a->window[i];
    v.stride = a->stride[i];
    v.dilation = a->dilation[i];
    v.start = a->start[i];
    if (w->is_conv) v.window = w->graph->value[w->p->input[1]].shape.dim[i + 2];
  }
  v.tile = which == ROWS ? w->choice->tile_rows : w->choice->tile_columns;
  v.tiles = tiles(v.out, v.tile);
  int64_t span = v.window ? (v.window - 1) * v.dilation : 0;
  v.reach = (v.tile - 1) * v.stride + span + 1;
  v.is_whole = v.start <= 0 && (v.tiles * v.tile - 1) * v.stride - v.start + span < v.in;
  return v;
}

static int64_t outputs_of(const ft_simt_window_choice *c) {
  return (int64_t)c->tile_rows * c->tile_columns * c->tile_planes;
}

static stencil plan(const ft_workload *workload, const ft_simt_window_choice *choice) {
  const ft_graph *graph = workload->group.graph;
  const ft_primitive *p = stencil_of(&workload->group);
  stencil w = {.workload = workload,
               .choice = choice,
               .graph = graph,
               .p = p,
               .x = &graph->value[p->input[0]].shape,
               .y = &graph->value[p->output].shape,
               .dtype = ft_kir_math_dtype(graph->value[p->output].dtype),
               .is_conv = p->op == FT_OP_CONV};
  w.combine = p->op == FT_OP_WINDOW_MAX ? FT_OP_REDUCE_MAX : FT_OP_REDUCE_SUM;
  for (int i = 0; i < 2; i++) w.axis[i] = axis_of(&w, i);
  for (int i = 0; w.is_conv && i + 2 < w.x->rank; i++)
    w.has_padding |=
        ft_simt_hangs_over(graph, p, i, graph->value[p->input[1]].shape.dim[i + 2]);
  bool is_long = w.combine == FT_OP_REDUCE_SUM && w.dtype == FT_F32 &&
                 w.axis[ROWS].window * w.axis[COLUMNS].window > SHORT;
  w.wide = is_long ? FT_F64 : w.dtype;
  w.planes = w.y->dim[0] * w.y->dim[1];
  w.items = (uint32_t)tiles(outputs_of(choice), choice->threads);
  return w;
}

static int64_t grid_of(const stencil *w) {
  return tiles(w->planes, w->choice->tile_planes) * w->axis[ROWS].tiles *
         w->axis[COLUMNS].tiles;
}

static int64_t taps_of(const stencil *w) {
  return w->axis[ROWS].window * w->axis[COLUMNS].window;
}

static int64_t plane_reach(const stencil *w) {
  return w->axis[ROWS].reach * w->axis[COLUMNS].reach;
}

// ---- filling
// -------------------------------------------------------------------------------------

// What changes no result.
static int64_t nothing(const stencil *w) {
  double least = w->combine == FT_OP_REDUCE_MAX ? -(double)INFINITY : 0;
  int64_t bits;
  memcpy(&bits, &least, sizeof bits);
  if (ft_dtype_is_float(w->dtype)) return bits;
  if (w->combine != FT_OP_REDUCE_MAX || w->dtype == FT_BOOL) return 0;
  return w->dtype == FT_I64 ? INT64_MIN : INT32_MIN;
}

// The image and the channel of the result that plane |plane| is.
static void find_plane(stencil *w, ft_kir_id plane, ft_kir_id *image,
                       ft_kir_id *channel) {
  bool is_one = w->y->dim[0] == 1;
  *image = is_one ? number(w, 0) : named(w, divided(w, plane, w->y->dim[1]));
  *channel = is_one ? plane : named(w, rest_of(w, plane, w->y->dim[1]));
}

// 0: it certainly is.
static ft_kir_id is_plane(stencil *w, ft_kir_id plane) {
  return ft_simt_is_below(w->e, plane, w->planes, w->choice->tile_planes);
}

// Where the tile's element |at| of an axis lies in the input; *inside: unless outside.
static ft_affine input_at(stencil *w, int which, ft_kir_id at, ft_kir_id *inside) {
  const axis *v = &w->axis[which];
  ft_places *q = &w->e->places;
  ft_affine dim = ft_affine_scale(q, affine(w, w->first[which]), v->stride);
  dim = ft_affine_add(q, dim, affine(w, at));
  dim = ft_affine_add(q, dim, ft_affine_number(-v->start));
  if (v->is_whole) return dim;
  ft_kir_id index = named(w, ft_loop_index(w->e, dim));
  ft_kir_id above = calculate(w, FT_KIR_ILESS, number(w, -1), index);
  ft_kir_id below = calculate(w, FT_KIR_ILESS, index, number(w, v->in));
  *inside = ft_simt_both(w->e, *inside, calculate(w, FT_KIR_IMUL, above, below));
  return affine(w, index);
}

static ft_kir_id tile_element(stencil *w, ft_kir_id at) {
  int64_t across = w->axis[COLUMNS].reach, down = w->axis[ROWS].reach;
  ft_kir_id row = divided(w, at, across);
  ft_kir_id plane = named(w, plus(w, w->first_plane, divided(w, at, across * down)));
  ft_kir_id inside = is_plane(w, plane), image, channel;
  find_plane(w, plane, &image, &channel);
  if (w->is_conv && w->y->dim[1] != w->x->dim[1])
    channel = named(w, divided(w, channel, w->y->dim[1] / w->p->attr.groups));
  ft_affine dim[FT_MAX_RANK] = {affine(w, image), affine(w, channel)};
  int last = w->x->rank - 1;
  ft_affine along = input_at(w, ROWS, named(w, rest_of(w, row, down)), &inside);
  if (last > 2) dim[last - 1] = along;
  dim[last] = input_at(w, COLUMNS, named(w, rest_of(w, at, across)), &inside);
  return ft_simt_value_if(w->e, w->p->input[0], ft_place_make(&w->e->places, w->x, dim),
                          inside, nothing(w));
}

static ft_kir_id filter_element(stencil *w, ft_kir_id at) {
  const ft_shape *shape = &w->graph->value[w->p->input[1]].shape;
  ft_places *q = &w->e->places;
  ft_kir_id plane = named(w, plus(w, w->first_plane, divided(w, at, taps_of(w))));
  ft_kir_id image, channel;
  find_plane(w, plane, &image, &channel);
  ft_shape flat = {.rank = 2, .dim = {shape->dim[0], taps_of(w)}};
  ft_affine dim[FT_MAX_RANK] = {affine(w, channel),
                                affine(w, named(w, rest_of(w, at, taps_of(w))))};
  const ft_place *place = ft_place_view(q, ft_place_make(q, &flat, dim), shape);
  return ft_simt_value_if(w->e, w->p->input[1], place, is_plane(w, plane), 0);
}

typedef ft_kir_id element(stencil *w, ft_kir_id at);

// |count| elements of |buffer|, neighbouring threads along neighbours.
static void fill(stencil *w, uint32_t buffer, int64_t count, element *make) {
  ft_loop_emitter *e = w->e;
  ft_kir_stmt *loop = ft_kir_for(e->kir, FT_KIR_SERIAL, w->thread, number(w, count),
                                 number(w, w->choice->threads));
  ft_loop_enter(e, &loop->body);
  ft_kir_id value = make(w, loop->value);
  ft_kir_store(e->kir, ft_loop_here(e), buffer, value, loop->value, 1, FT_KIR_CACHED);
  ft_loop_leave(e);
  ft_kir_append(ft_loop_here(e), loop);
}

// ---- windows
// -------------------------------------------------------------------------------------

static item item_at(stencil *w, ft_kir_id at) {
  const ft_simt_window_choice *c = w->choice;
  ft_kir_id row = divided(w, at, c->tile_columns);
  return (item){.plane = named(w, divided(w, row, c->tile_rows)),
                .at = {named(w, rest_of(w, row, c->tile_rows)),
                       named(w, rest_of(w, at, c->tile_columns))}};
}

static ft_kir_id item_index(stencil *w, uint32_t q) {
  return named(w, plus(w, w->thread, number(w, (int64_t)q * w->choice->threads)));
}

static ft_kir_id term(stencil *w, const item *o, const ft_kir_id *position) {
  ft_kir_id at[2];
  for (int i = 0; i < 2; i++)
    at[i] = plus(w, times(w, o->at[i], w->axis[i].stride),
                 times(w, position[i], w->axis[i].dilation));
  ft_kir_id index = plus(w, times(w, o->plane, w->axis[ROWS].reach), at[ROWS]);
  index = plus(w, times(w, index, w->axis[COLUMNS].reach), at[COLUMNS]);
  ft_kir *kir = w->e->kir;
  ft_kir_block *here = ft_loop_here(w->e);
  ft_kir_id value = ft_kir_load(kir, here, w->tile, 1, index, 1);
  if (!w->is_conv) return value;
  index = plus(w, times(w, o->plane, w->axis[ROWS].window), position[ROWS]);
  index = plus(w, times(w, index, w->axis[COLUMNS].window), position[COLUMNS]);
  ft_kir_id factors[2] = {value, ft_kir_load(kir, here, w->filters, 1, index, 1)};
  return ft_kir_primitive(kir, here, FT_OP_MUL, w->dtype, factors, 2);
}

static ft_kir_stmt *open_window(stencil *w, int which) {
  ft_kir_loop kind = taps_of(w) <= MOST_UNROLLED ? FT_KIR_UNROLL : FT_KIR_SERIAL;
  ft_kir_stmt *loop = ft_kir_for(w->e->kir, kind, number(w, 0),
                                 number(w, w->axis[which].window), number(w, 1));
  ft_loop_enter(w->e, &loop->body);
  return loop;
}

static void close_loop(stencil *w, ft_kir_stmt *loop) {
  ft_loop_leave(w->e);
  ft_kir_append(ft_loop_here(w->e), loop);
}

// Output |q| of the thread, in a register.
static void combine(stencil *w, uint32_t q) {
  item o = item_at(w, item_index(w, q));
  w->total[q] = ft_simt_total(w->e, (ft_kir_type){w->wide, 1}, nothing(w));
  ft_kir_stmt *rows = open_window(w, ROWS), *columns = open_window(w, COLUMNS);
  ft_simt_add(w->e, w->total[q], w->combine,
              term(w, &o, (ft_kir_id[]){rows->value, columns->value}));
  close_loop(w, columns);
  close_loop(w, rows);
}

// ---- outputs
// -------------------------------------------------------------------------------------

static ft_kir_id is_output(stencil *w, const ft_kir_id *at, ft_kir_id plane) {
  ft_kir_id inside = is_plane(w, plane);
  for (int i = 0; i < 2; i++)
    inside = ft_simt_both(w->e, inside,
                          ft_simt_is_below(w->e, at[i], w->axis[i].out, w->axis[i].tile));
  return inside ? inside : number(w, 1);
}

// |total| 0: the window is combined again, from memory.
static void store_item(stencil *w, ft_kir_id index, uint32_t total) {
  ft_loop_emitter *e = w->e;
  item o = item_at(w, index);
  ft_kir_id at[2], image, channel;
  for (int i = 0; i < 2; i++) at[i] = named(w, plus(w, w->first[i], o.at[i]));
  ft_kir_id plane = named(w, plus(w, w->first_plane, o.plane));
  ft_kir_stmt *branch = ft_kir_if(e->kir, is_output(w, at, plane));
  ft_loop_enter(e, &branch->body);
  find_plane(w, plane, &image, &channel);
  int last = w->y->rank - 1;
  ft_affine dim[FT_MAX_RANK] = {affine(w, image), affine(w, channel)};
  dim[last] = affine(w, at[COLUMNS]);
  if (last > 2) dim[last - 1] = affine(w, at[ROWS]);
  const ft_place *place = ft_place_make(&e->places, w->y, dim);
  ft_loop_section section = {.elements = ft_shape_elements(w->y), .domain = *w->y};
  if (place && total) {
    ft_kir_id value = ft_simt_read(e, total);
    if (w->wide != w->dtype)
      value = ft_kir_primitive(e->kir, ft_loop_here(e), FT_OP_CAST, w->dtype, &value, 1);
    ft_loop_remember(e, w->p->output, place, value);
  }
  if (place) ft_loop_store(e, &section, &place, 1);
  close_loop(w, branch);
}

static void store_totals(stencil *w) {
  for (uint32_t q = 0; q < w->items; q++) store_item(w, item_index(w, q), w->total[q]);
}

// All outputs of the thread again, without padding.
static void store_exactly(stencil *w) {
  int64_t threads = w->choice->threads;
  ft_kir_stmt *loop = ft_kir_for(w->e->kir, FT_KIR_SERIAL, w->thread,
                                 number(w, threads * w->items), number(w, threads));
  ft_loop_enter(w->e, &loop->body);
  store_item(w, loop->value, 0);
  close_loop(w, loop);
}

static void put_outputs(stencil *w) {
  for (uint32_t q = 0; q < w->items; q++) combine(w, q);
  if (!w->has_padding) {
    store_totals(w);
    return;
  }
  ft_kir_stmt *branch = ft_kir_if(w->e->kir, ft_simt_has_nan(w->e, w->total, w->items));
  ft_loop_enter(w->e, &branch->body);
  store_exactly(w);
  ft_loop_leave(w->e);
  ft_loop_enter(w->e, &branch->otherwise);
  store_totals(w);
  close_loop(w, branch);
}

// ---- the block
// --------------------------------------------------------------------------------------

static void put_thread(stencil *w, ft_kir_id block) {
  ft_loop_emitter *e = w->e;
  const ft_simt_window_choice *c = w->choice;
  const axis *rows = &w->axis[ROWS], *columns = &w->axis[COLUMNS];
  ft_kir_id rest = divided(w, block, columns->tiles);
  w->first[COLUMNS] =
      named(w, times(w, rest_of(w, block, columns->tiles), columns->tile));
  w->first[ROWS] = named(w, times(w, rest_of(w, rest, rows->tiles), rows->tile));
  w->first_plane = named(w, times(w, divided(w, rest, rows->tiles), c->tile_planes));
  int64_t elements = c->tile_planes * plane_reach(w), taps = c->tile_planes * taps_of(w);
  w->tile = ft_kir_shared(e->kir, ft_loop_here(e), w->dtype, elements);
  fill(w, w->tile, elements, tile_element);
  if (w->is_conv) {
    w->filters = ft_kir_shared(e->kir, ft_loop_here(e), w->dtype, taps);
    fill(w, w->filters, taps, filter_element);
  }
  ft_kir_barrier(e->kir, ft_loop_here(e));
  if (outputs_of(c) % c->threads == 0) {
    put_outputs(w);
    return;
  }
  ft_kir_stmt *branch =
      ft_kir_if(e->kir, calculate(w, FT_KIR_ILESS, w->thread, number(w, outputs_of(c))));
  ft_loop_enter(e, &branch->body);
  put_outputs(w);
  close_loop(w, branch);
}

// ---- what it takes
// ---------------------------------------------------------------------------

static bool is_between(uint32_t n, uint32_t low, uint32_t high) {
  return n >= low && n <= high && !(n & (n - 1));
}

static const char *choice_refusal(const ft_simt_window_choice *c) {
  if (!is_between(c->threads, WARP, 1024))
    return "threads is not a power of two from 32 to 1024";
  if (!is_between(c->tile_rows, 1, 64)) return "tile_rows is not a power of two up to 64";
  if (!is_between(c->tile_columns, 1, 128))
    return "tile_columns is not a power of two up to 128";
  if (!is_between(c->tile_planes, 1, 256))
    return "tile_planes is not a power of two up to 256";
  if (outputs_of(c) > (int64_t)c->threads * MOST_ITEMS)
    return "a thread would have more than 16 outputs";
  return NULL;
}

// One anchor; and kernels for all that surrounds it.
static const char *group_refusal(const ft_group *group, const ft_primitive *anchor,
                                 ft_arena *arena) {
  if (group->primitive_count > MOST_PRIMITIVES)
    return ft_arena_printf(arena, "%u primitives are too many", group->primitive_count);
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &group->graph->primitive[group->primitive[i]];
    const char *wrong = ft_loop_dtype_refusal(group->graph, p, arena);
    if (wrong) return wrong;
    if (p != anchor && ft_loop_is_anchor(p))
      return ft_arena_printf(arena, "%s beside %s", ft_op_describe(p->op)->name,
                             ft_op_describe(anchor->op)->name);
  }
  return ft_simt_behind_refusal(group, anchor, arena);
}

static const char *shape_refusal(const stencil *w, ft_arena *arena) {
  if (!ft_shape_elements(w->y)) return "a window without outputs";
  if (w->axis[ROWS].out == 1 && w->x->rank == 3 && w->choice->tile_rows > 1)
    return "tile_rows where there are no rows";
  int64_t each = plane_reach(w) + (w->is_conv ? taps_of(w) : 0);
  int64_t bytes = w->choice->tile_planes * each * (int64_t)ft_dtype_bytes(w->dtype);
  if (bytes > MOST_SHARED_BYTES)
    return ft_arena_printf(arena, "%lld bytes of shared memory are more than %d",
                           (long long)bytes, MOST_SHARED_BYTES);
  return grid_of(w) > INT32_MAX ? "too many blocks" : NULL;
}

const char *ft_simt_window_refusal(const ft_workload *workload,
                                   const ft_simt_window_choice *choice, ft_arena *arena) {
  const char *wrong = choice_refusal(choice);
  if (wrong) return wrong;
  const ft_primitive *p = stencil_of(&workload->group);
  if (!p) return "no pool and no depthwise convolution";
  int rank = workload->group.graph->value[p->output].shape.rank;
  if (rank < 3 || rank > 4)
    return ft_arena_printf(arena, "a window over %d axes", rank - 2);
  wrong = group_refusal(&workload->group, p, arena);
  if (wrong) return wrong;
  stencil w = plan(workload, choice);
  return shape_refusal(&w, arena);
}

ft_status ft_simt_window_build(const ft_workload *workload,
                               const ft_simt_window_choice *choice, ft_arena *arena,
                               ft_kir **out, ft_error *error) {
  stencil w = plan(workload, choice);
  FT_TRY(ft_loop_open(workload, arena, &w.e, error));
  ft_loop_emitter *e = w.e;
  e->lanes = 1;
  e->inner = number(&w, 0);
  e->high = 1;
  ft_kir_stmt *grid = ft_kir_for(e->kir, FT_KIR_GRID, number(&w, 0),
                                 number(&w, grid_of(&w)), number(&w, 1));
  ft_kir_stmt *threads = ft_kir_for(e->kir, FT_KIR_THREAD, number(&w, 0),
                                    number(&w, choice->threads), number(&w, 1));
  w.thread = threads->value;
  ft_loop_enter(e, &grid->body);
  ft_loop_enter(e, &threads->body);
  put_thread(&w, grid->value);
  close_loop(&w, threads);
  ft_loop_leave(e);
  ft_kir_append(&e->kir->body, grid);
  FT_OOM_IF(e->kir->failed, error);
  if (e->is_lost || e->new_cuts)
    FT_FAIL(error, FT_INTERNAL, "a thread asks for a vector");
  *out = e->kir;
  return FT_OK;
}
