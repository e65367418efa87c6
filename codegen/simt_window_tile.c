// The tile of the input in shared memory, with what leads to it; and windows of it.
#include <math.h>
#include <string.h>

#include "codegen/simt_window_parts.h"

enum { MOST_UNROLLED = 64 };  // positions of a window

// ---- filling
// -------------------------------------------------------------------------------------

// What changes no result.
static int64_t nothing(const ft_window_emitter *w) {
  double least = w->combine == FT_OP_REDUCE_MAX ? -(double)INFINITY : 0;
  int64_t bits;
  memcpy(&bits, &least, sizeof bits);
  if (ft_dtype_is_float(w->dtype)) return bits;
  if (w->combine != FT_OP_REDUCE_MAX || w->dtype == FT_BOOL) return 0;
  return w->dtype == FT_I64 ? INT64_MIN : INT32_MIN;
}

// The image and the channel of the result that plane |plane| is.
void ft_window_find_plane(ft_window_emitter *w, ft_kir_id plane, ft_kir_id *image,
                          ft_kir_id *channel) {
  bool is_one = w->y->dim[0] == 1;
  *image = is_one ? number(w, 0) : named(w, divided(w, plane, w->y->dim[1]));
  *channel = is_one ? plane : named(w, rest_of(w, plane, w->y->dim[1]));
}

// 0: it certainly is.
ft_kir_id ft_window_is_plane(ft_window_emitter *w, ft_kir_id plane) {
  return ft_simt_is_below(w->e, plane, w->planes, w->choice->tile_planes);
}

// Where the tile's element |at| of an axis lies in the input; *inside: unless outside.
static ft_affine input_at(ft_window_emitter *w, int which, ft_kir_id at,
                          ft_kir_id *inside) {
  const ft_window_axis *v = &w->axis[which];
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

static ft_kir_id tile_element(ft_window_emitter *w, ft_kir_id at) {
  int64_t across = w->axis[FT_WINDOW_COLUMNS].reach, down = w->axis[FT_WINDOW_ROWS].reach;
  ft_kir_id row = divided(w, at, across);
  ft_kir_id plane = named(w, plus(w, w->first_plane, divided(w, at, across * down)));
  ft_kir_id inside = ft_window_is_plane(w, plane), image, channel;
  ft_window_find_plane(w, plane, &image, &channel);
  if (w->is_conv && w->y->dim[1] != w->x->dim[1])
    channel = named(w, divided(w, channel, w->y->dim[1] / w->p->attr.groups));
  ft_affine dim[FT_MAX_RANK] = {affine(w, image), affine(w, channel)};
  int last = w->x->rank - 1;
  ft_affine along = input_at(w, FT_WINDOW_ROWS, named(w, rest_of(w, row, down)), &inside);
  if (last > 2) dim[last - 1] = along;
  dim[last] = input_at(w, FT_WINDOW_COLUMNS, named(w, rest_of(w, at, across)), &inside);
  return ft_simt_value_if(w->e, w->p->input[0], ft_place_make(&w->e->places, w->x, dim),
                          inside, nothing(w));
}

static ft_kir_id filter_element(ft_window_emitter *w, ft_kir_id at) {
  const ft_shape *shape = &w->graph->value[w->p->input[1]].shape;
  ft_places *q = &w->e->places;
  ft_kir_id plane = named(w, plus(w, w->first_plane, divided(w, at, w->taps)));
  ft_kir_id image, channel;
  ft_window_find_plane(w, plane, &image, &channel);
  ft_shape flat = {.rank = 2, .dim = {shape->dim[0], w->taps}};
  ft_affine dim[FT_MAX_RANK] = {affine(w, channel),
                                affine(w, named(w, rest_of(w, at, w->taps)))};
  const ft_place *place = ft_place_view(q, ft_place_make(q, &flat, dim), shape);
  return ft_simt_value_if(w->e, w->p->input[1], place, ft_window_is_plane(w, plane), 0);
}

typedef ft_kir_id element(ft_window_emitter *w, ft_kir_id at);

// |count| elements of |buffer|, neighbouring threads along neighbours.
static void fill(ft_window_emitter *w, uint32_t buffer, int64_t count, element *make) {
  ft_loop_emitter *e = w->e;
  ft_kir_stmt *loop = ft_kir_for(e->kir, FT_KIR_SERIAL, w->thread, number(w, count),
                                 number(w, w->choice->threads));
  ft_loop_enter(e, &loop->body);
  ft_kir_id value = make(w, loop->value);
  ft_kir_store(e->kir, ft_loop_here(e), buffer, value, loop->value, 1, FT_KIR_CACHED);
  ft_loop_close(e, loop);
}

// Shared buffers are counted in pieces of 16 bytes, and asked for in whole ones.
static int64_t whole(int64_t count) {
  return (count + 15) / 16 * 16;
}

void ft_window_fill(ft_window_emitter *w) {
  ft_loop_emitter *e = w->e;
  int64_t planes = w->choice->tile_planes;
  w->tile = ft_kir_shared(e->kir, ft_loop_here(e), w->dtype, whole(planes * w->reach));
  fill(w, w->tile, planes * w->reach, tile_element);
  if (!w->is_conv) return;
  w->filters = ft_kir_shared(e->kir, ft_loop_here(e), w->dtype, whole(planes * w->taps));
  fill(w, w->filters, planes * w->taps, filter_element);
}

// ---- windows
// -------------------------------------------------------------------------------------

ft_window_item ft_window_item_at(ft_window_emitter *w, ft_kir_id at) {
  const ft_simt_window_choice *c = w->choice;
  ft_kir_id row = divided(w, at, c->tile_columns);
  return (ft_window_item){.plane = named(w, divided(w, row, c->tile_rows)),
                          .at = {named(w, rest_of(w, row, c->tile_rows)),
                                 named(w, rest_of(w, at, c->tile_columns))}};
}

ft_kir_id ft_window_item_index(ft_window_emitter *w, uint32_t q) {
  return named(w, plus(w, w->thread, number(w, (int64_t)q * w->choice->threads)));
}

static ft_kir_id term(ft_window_emitter *w, const ft_window_item *o,
                      const ft_kir_id *position) {
  ft_kir_id at[2];
  for (int i = 0; i < 2; i++)
    at[i] = plus(w, times(w, o->at[i], w->axis[i].stride),
                 times(w, position[i], w->axis[i].dilation));
  ft_kir_id index =
      plus(w, times(w, o->plane, w->axis[FT_WINDOW_ROWS].reach), at[FT_WINDOW_ROWS]);
  index =
      plus(w, times(w, index, w->axis[FT_WINDOW_COLUMNS].reach), at[FT_WINDOW_COLUMNS]);
  ft_kir *kir = w->e->kir;
  ft_kir_block *here = ft_loop_here(w->e);
  ft_kir_id value = ft_kir_load(kir, here, w->tile, 1, index, 1);
  if (!w->is_conv) return value;
  index = plus(w, times(w, o->plane, w->axis[FT_WINDOW_ROWS].window),
               position[FT_WINDOW_ROWS]);
  index = plus(w, times(w, index, w->axis[FT_WINDOW_COLUMNS].window),
               position[FT_WINDOW_COLUMNS]);
  ft_kir_id factors[2] = {value, ft_kir_load(kir, here, w->filters, 1, index, 1)};
  return ft_kir_primitive(kir, here, FT_OP_MUL, w->dtype, factors, 2);
}

static ft_kir_stmt *open_window(ft_window_emitter *w, int which) {
  ft_kir_loop kind = w->taps <= MOST_UNROLLED ? FT_KIR_UNROLL : FT_KIR_SERIAL;
  ft_kir_stmt *loop = ft_kir_for(w->e->kir, kind, number(w, 0),
                                 number(w, w->axis[which].window), number(w, 1));
  ft_loop_enter(w->e, &loop->body);
  return loop;
}

// Output |q| of the thread, in a register.
void ft_window_combine(ft_window_emitter *w, uint32_t q) {
  ft_window_item o = ft_window_item_at(w, ft_window_item_index(w, q));
  w->total[q] = ft_simt_total(w->e, (ft_kir_type){w->wide, 1}, nothing(w));
  ft_kir_stmt *rows = open_window(w, FT_WINDOW_ROWS),
              *columns = open_window(w, FT_WINDOW_COLUMNS);
  ft_simt_add(w->e, w->total[q], w->combine,
              term(w, &o, (ft_kir_id[]){rows->value, columns->value}));
  ft_loop_close(w->e, columns);
  ft_loop_close(w->e, rows);
}
