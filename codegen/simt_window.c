#include "codegen/simt_grid.h"
#include "codegen/simt_window_parts.h"

enum {
  WARP = 32,
  SHORT = 64,  // so many terms are summed up in single precision
  MOST_SHARED_BYTES = 99 << 10,
};

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

static ft_window_axis axis_of(const ft_window_emitter *w, int which) {
  int i = w->x->rank - 4 + which;  // spatial axis
  const ft_attr *a = &w->p->attr;
  ft_window_axis v = {.in = 1, .out = 1, .window = 1, .stride = 1, .dilation = 1};
  if (i >= 0) {
    v.in = w->x->dim[i + 2];
    v.out = w->y->dim[i + 2];
    v.window = a->window[i];
    v.stride = a->stride[i];
    v.dilation = a->dilation[i];
    v.start = a->start[i];
    if (w->is_conv) v.window = w->graph->value[w->p->input[1]].shape.dim[i + 2];
  }
  v.tile = which == FT_WINDOW_ROWS ? w->choice->tile_rows : w->choice->tile_columns;
  v.tiles = ft_simt_tiles(v.out, v.tile);
  int64_t span = v.window ? (v.window - 1) * v.dilation : 0;
  v.reach = (v.tile - 1) * v.stride + span + 1;
  v.is_whole = v.start <= 0 && (v.tiles * v.tile - 1) * v.stride - v.start + span < v.in;
  return v;
}

static int64_t outputs_of(const ft_simt_window_choice *c) {
  return (int64_t)c->tile_rows * c->tile_columns * c->tile_planes;
}

static ft_window_emitter plan(const ft_workload *workload,
                              const ft_simt_window_choice *choice) {
  const ft_graph *graph = workload->group.graph;
  const ft_primitive *p = stencil_of(&workload->group);
  ft_window_emitter w = {.workload = workload,
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
  w.taps = w.axis[FT_WINDOW_ROWS].window * w.axis[FT_WINDOW_COLUMNS].window;
  w.reach = w.axis[FT_WINDOW_ROWS].reach * w.axis[FT_WINDOW_COLUMNS].reach;
  bool is_long = w.combine == FT_OP_REDUCE_SUM && w.dtype == FT_F32 && w.taps > SHORT;
  w.wide = is_long ? FT_F64 : w.dtype;
  w.planes = w.y->dim[0] * w.y->dim[1];
  w.items = (uint32_t)ft_simt_tiles(outputs_of(choice), choice->threads);
  return w;
}

static int64_t grid_of(const ft_window_emitter *w) {
  return ft_simt_tiles(w->planes, w->choice->tile_planes) *
         w->axis[FT_WINDOW_ROWS].tiles * w->axis[FT_WINDOW_COLUMNS].tiles;
}

// ---- outputs
// -------------------------------------------------------------------------------------

static ft_kir_id is_output(ft_window_emitter *w, const ft_kir_id *at, ft_kir_id plane) {
  ft_kir_id inside = ft_window_is_plane(w, plane);
  for (int i = 0; i < 2; i++)
    inside = ft_simt_both(w->e, inside,
                          ft_simt_is_below(w->e, at[i], w->axis[i].out, w->axis[i].tile));
  return inside ? inside : number(w, 1);
}

// |total| 0: the window is combined again, from memory.
static void store_item(ft_window_emitter *w, ft_kir_id index, uint32_t total) {
  ft_loop_emitter *e = w->e;
  ft_window_item o = ft_window_item_at(w, index);
  ft_kir_id at[2], image, channel;
  for (int i = 0; i < 2; i++) at[i] = named(w, plus(w, w->first[i], o.at[i]));
  ft_kir_id plane = named(w, plus(w, w->first_plane, o.plane));
  ft_kir_stmt *branch = ft_kir_if(e->kir, is_output(w, at, plane));
  ft_loop_enter(e, &branch->body);
  ft_window_find_plane(w, plane, &image, &channel);
  int last = w->y->rank - 1;
  ft_affine dim[FT_MAX_RANK] = {affine(w, image), affine(w, channel)};
  dim[last] = affine(w, at[FT_WINDOW_COLUMNS]);
  if (last > 2) dim[last - 1] = affine(w, at[FT_WINDOW_ROWS]);
  const ft_place *place = ft_place_make(&e->places, w->y, dim);
  ft_loop_section section = {.elements = ft_shape_elements(w->y), .domain = *w->y};
  if (place && total) {
    ft_kir_id value = ft_simt_read(e, total);
    if (w->wide != w->dtype)
      value = ft_kir_primitive(e->kir, ft_loop_here(e), FT_OP_CAST, w->dtype, &value, 1);
    ft_loop_remember(e, w->p->output, place, value);
  }
  if (place) ft_loop_store(e, &section, &place, 1);
  ft_loop_close(w->e, branch);
}

static void store_totals(ft_window_emitter *w) {
  for (uint32_t q = 0; q < w->items; q++)
    store_item(w, ft_window_item_index(w, q), w->total[q]);
}

// All outputs of the thread again, without padding.
static void store_exactly(ft_window_emitter *w) {
  int64_t threads = w->choice->threads;
  ft_kir_stmt *loop = ft_kir_for(w->e->kir, FT_KIR_SERIAL, w->thread,
                                 number(w, threads * w->items), number(w, threads));
  ft_loop_enter(w->e, &loop->body);
  store_item(w, loop->value, 0);
  ft_loop_close(w->e, loop);
}

static void put_outputs(ft_window_emitter *w) {
  for (uint32_t q = 0; q < w->items; q++) ft_window_combine(w, q);
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
  ft_loop_close(w->e, branch);
}

// ---- the block
// --------------------------------------------------------------------------------------

static void put_thread(ft_window_emitter *w, ft_kir_id block) {
  ft_loop_emitter *e = w->e;
  const ft_simt_window_choice *c = w->choice;
  const ft_window_axis *rows = &w->axis[FT_WINDOW_ROWS],
                       *columns = &w->axis[FT_WINDOW_COLUMNS];
  ft_kir_id rest = divided(w, block, columns->tiles);
  w->first[FT_WINDOW_COLUMNS] =
      named(w, times(w, rest_of(w, block, columns->tiles), columns->tile));
  w->first[FT_WINDOW_ROWS] =
      named(w, times(w, rest_of(w, rest, rows->tiles), rows->tile));
  w->first_plane = named(w, times(w, divided(w, rest, rows->tiles), c->tile_planes));
  ft_window_fill(w);
  ft_kir_barrier(e->kir, ft_loop_here(e));
  if (outputs_of(c) % c->threads == 0) {
    put_outputs(w);
    return;
  }
  ft_kir_stmt *branch =
      ft_kir_if(e->kir, calculate(w, FT_KIR_ILESS, w->thread, number(w, outputs_of(c))));
  ft_loop_enter(e, &branch->body);
  put_outputs(w);
  ft_loop_close(w->e, branch);
}

// ---- what it takes
// ---------------------------------------------------------------------------

static const char *choice_refusal(const ft_simt_window_choice *c) {
  if (!ft_simt_is_power(c->threads, WARP, 1024))
    return "threads is not a power of two from 32 to 1024";
  if (!ft_simt_is_power(c->tile_rows, 1, 64))
    return "tile_rows is not a power of two up to 64";
  if (!ft_simt_is_power(c->tile_columns, 1, 128))
    return "tile_columns is not a power of two up to 128";
  if (!ft_simt_is_power(c->tile_planes, 1, 256))
    return "tile_planes is not a power of two up to 256";
  if (outputs_of(c) > (int64_t)c->threads * FT_WINDOW_MOST_ITEMS)
    return "a thread would have more than 16 outputs";
  return NULL;
}

static const char *shape_refusal(const ft_window_emitter *w, ft_arena *arena) {
  if (!ft_shape_elements(w->y)) return "a window without outputs";
  if (w->axis[FT_WINDOW_ROWS].out == 1 && w->x->rank == 3 && w->choice->tile_rows > 1)
    return "tile_rows where there are no rows";
  int64_t each = w->reach + (w->is_conv ? w->taps : 0);
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
  wrong = ft_simt_group_refusal(&workload->group, p, arena);
  if (wrong) return wrong;
  ft_window_emitter w = plan(workload, choice);
  return shape_refusal(&w, arena);
}

ft_status ft_simt_window_build(const ft_workload *workload,
                               const ft_simt_window_choice *choice, ft_arena *arena,
                               ft_kir **out, ft_error *error) {
  ft_window_emitter w = plan(workload, choice);
  FT_TRY(ft_loop_open(workload, arena, &w.e, error));
  ft_loop_emitter *e = w.e;
  e->lanes = 1;
  e->inner = number(&w, 0);
  e->high = 1;
  ft_simt_grid grid = ft_simt_grid_open(e, grid_of(&w), choice->threads);
  w.thread = grid.threads->value;
  put_thread(&w, grid.blocks->value);
  return ft_simt_grid_close(e, &grid, out, error);
}
