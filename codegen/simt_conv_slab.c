// Slabs of filters and of the image in shared memory, with what leads to them.
#include "codegen/simt_conv_parts.h"

enum { PAD = 1 };  // between the terms of the slab of filters: other banks

// ---- slabs
// -------------------------------------------------------------------------------------

ft_conv_column ft_conv_column_of(ft_conv_emitter *c, ft_kir_id in_tile) {
  ft_conv_column v = {0};
  ft_kir_id at = named(c, plus(c, c->first_n, in_tile));
  v.inside = ft_simt_is_below(c->e, at, c->n, c->choice->tile_positions);
  v.image = c->y->dim[0] == 1 ? number(c, 0) : named(c, divided(c, at, c->points));
  v.point = c->y->dim[0] == 1 ? at : named(c, rest_of(c, at, c->points));
  ft_kir_id rest = v.point;
  for (int i = c->y->rank - 1; i > 2 && !c->is_pointwise; i--) {
    v.at[i - 2] = affine(c, named(c, rest_of(c, rest, c->y->dim[i])));
    rest = divided(c, rest, c->y->dim[i]);
  }
  v.at[0] = affine(c, named(c, rest));
  return v;
}

// The image of the result or, when it is pointwise, of the input, its points as one axis.
const ft_place *ft_conv_point(ft_conv_emitter *c, const ft_shape *shape,
                              const ft_conv_column *v, ft_kir_id channel) {
  ft_places *q = &c->e->places;
  ft_shape flat = {.rank = 3, .dim = {shape->dim[0], shape->dim[1], c->points}};
  ft_affine dim[FT_MAX_RANK] = {affine(c, v->image), affine(c, channel)};
  dim[2] = c->e->lanes > 1 ? (ft_affine){.coef = 1} : affine(c, v->point);
  c->e->inner = c->e->lanes > 1 ? v->point : number(c, 0);
  return ft_place_view(q, ft_place_make(q, &flat, dim), shape);
}

// The input of column |v| at window position |tap|; *inside: when it is not padding.
static const ft_place *window_place(ft_conv_emitter *c, const ft_conv_column *v,
                                    ft_kir_id channel, ft_kir_id tap, ft_kir_id *inside) {
  ft_places *q = &c->e->places;
  const ft_attr *attr = &c->p->attr;
  ft_affine dim[FT_MAX_RANK] = {affine(c, v->image), affine(c, channel)};
  for (int i = c->x->rank - 3; i >= 0; i--) {
    int64_t window = c->w->dim[i + 2];
    ft_affine position = affine(c, named(c, rest_of(c, tap, window)));
    tap = divided(c, tap, window);
    ft_affine at = ft_affine_scale(q, v->at[i], attr->stride[i]);
    at = ft_affine_add(q, at, ft_affine_scale(q, position, attr->dilation[i]));
    dim[i + 2] = ft_affine_add(q, at, ft_affine_number(-attr->start[i]));
    *inside = ft_simt_both(c->e, *inside,
                           ft_simt_is_in_axis(c->e, c->p, i, window, dim[i + 2]));
  }
  return ft_place_make(q, c->x, dim);
}

static ft_kir_id image_element(ft_conv_emitter *c, ft_kir_id in_tile, ft_kir_id k) {
  ft_conv_column v = ft_conv_column_of(c, in_tile);
  ft_kir_id inside =
      ft_simt_both(c->e, v.inside, ft_simt_is_below(c->e, k, c->k, c->choice->slab));
  ft_kir_id channel = named(c, divided(c, k, c->taps));
  if (c->p->attr.groups > 1)
    channel = named(c, plus(c, times(c, c->group, c->w->dim[1]), channel));
  const ft_place *place =
      c->is_pointwise
          ? ft_conv_point(c, c->x, &v, channel)
          : window_place(c, &v, channel, named(c, rest_of(c, k, c->taps)), &inside);
  return ft_simt_value_if(c->e, c->p->input[0], place, inside, 0);
}

ft_kir_id ft_conv_channel(ft_conv_emitter *c, ft_kir_id row) {
  return plus(c, times(c, c->group, c->m), row);
}

static ft_kir_id filter_element(ft_conv_emitter *c, ft_kir_id in_tile, ft_kir_id k) {
  ft_places *q = &c->e->places;
  ft_kir_id row = named(c, plus(c, c->first_m, in_tile));
  ft_kir_id inside =
      ft_simt_both(c->e, ft_simt_is_below(c->e, row, c->m, c->choice->tile_channels),
                   ft_simt_is_below(c->e, k, c->k, c->choice->slab));
  ft_shape flat = {.rank = 2, .dim = {c->w->dim[0], c->k}};
  ft_affine dim[FT_MAX_RANK] = {affine(c, ft_conv_channel(c, row))};
  dim[1] = c->e->lanes > 1 ? (ft_affine){.coef = 1} : affine(c, k);
  c->e->inner = c->e->lanes > 1 ? k : number(c, 0);
  const ft_place *place = ft_place_view(q, ft_place_make(q, &flat, dim), c->w);
  return ft_simt_value_if(c->e, c->p->input[1], place, inside, 0);
}

static int64_t pitch(const ft_conv_emitter *c, int which) {
  return which == FT_CONV_FILTER ? c->choice->tile_channels + PAD
                                 : c->choice->tile_positions;
}

// Both slabs hold a row of the tile's channels or positions per term.
ft_kir_id ft_conv_slab_index(ft_conv_emitter *c, int which, ft_kir_id term,
                             ft_kir_id in_tile) {
  return plus(c, times(c, term, pitch(c, which)), in_tile);
}

// Item |q| of the thread, of rows of |across| items: its row, and where in it. The latter
// is the same for many q, so that what it takes is worked out once.
static void find_item(ft_conv_emitter *c, uint32_t q, uint32_t across, ft_kir_id *row,
                      ft_kir_id *in_row) {
  if (c->threads >= across) {
    *in_row = named(c, rest_of(c, c->thread, across));
    *row = plus(c, divided(c, c->thread, across),
                number(c, (int64_t)q * (c->threads / across)));
  } else {
    uint32_t turns = across / c->threads;
    *in_row = named(c, plus(c, c->thread, number(c, (int64_t)(q % turns) * c->threads)));
    *row = number(c, q / turns);
  }
}

// Neighbouring threads along the positions of the image, along the terms of filters.
static void fill_item(ft_conv_emitter *c, int which, uint32_t q, uint32_t across,
                      ft_kir_id first) {
  ft_loop_emitter *e = c->e;
  ft_kir_id row, in_row, value;
  find_item(c, q, across, &row, &in_row);
  e->lanes = c->lanes[which];
  in_row = named(c, times(c, in_row, e->lanes));
  ft_kir_id term = which == FT_CONV_FILTER ? in_row : row,
            in_tile = which == FT_CONV_FILTER ? row : in_row;
  ft_kir_id k = named(c, plus(c, first, term));
  if (which == FT_CONV_FILTER)
    value = filter_element(c, in_tile, k);
  else
    value = image_element(c, in_tile, k);
  ft_kir_store(e->kir, ft_loop_here(e), c->slab[which], value,
               ft_conv_slab_index(c, which, term, in_tile),
               which == FT_CONV_FILTER ? pitch(c, FT_CONV_FILTER) : 1, FT_KIR_CACHED);
  e->lanes = 1;
}

void ft_conv_fill(ft_conv_emitter *c, int which, ft_kir_id first) {
  const ft_simt_conv_choice *choice = c->choice;
  uint32_t across = which == FT_CONV_FILTER ? choice->slab : choice->tile_positions;
  uint32_t down = which == FT_CONV_FILTER ? choice->tile_channels : choice->slab;
  across /= c->lanes[which];
  uint32_t items = across * down;
  for (uint32_t q = 0; q * c->threads < items; q++) {
    if (items >= c->threads) {  // a multiple of them
      fill_item(c, which, q, across, first);
      continue;
    }
    ft_kir_stmt *branch =
        ft_kir_if(c->e->kir, calculate(c, FT_KIR_ILESS, c->thread, number(c, items)));
    ft_loop_enter(c->e, &branch->body);
    fill_item(c, which, q, across, first);
    ft_loop_close(c->e, branch);
  }
}

void ft_conv_open_slabs(ft_conv_emitter *c) {
  const ft_simt_conv_choice *choice = c->choice;
  ft_kir_block *here = ft_loop_here(c->e);
  for (int which = 0; which < 2; which++)
    c->slab[which] =
        ft_kir_shared(c->e->kir, here, c->dtype, choice->slab * pitch(c, which));
  // What a thread's columns take does not depend on the terms: named here, once.
  uint32_t across = choice->tile_positions / c->lanes[FT_CONV_IMAGE];
  for (uint32_t q = 0; q * c->threads < across; q++) {
    ft_kir_id row, in_row;
    find_item(c, q, across, &row, &in_row);
    ft_conv_column_of(c, named(c, times(c, in_row, c->lanes[FT_CONV_IMAGE])));
  }
}
