// simt_conv_parts - what simt_conv.c and simt_conv_slab.c share: the convolution under
// way, and how slabs are filled. Private to them.
#ifndef FT_CODEGEN_SIMT_CONV_PARTS_H
#define FT_CODEGEN_SIMT_CONV_PARTS_H

#include "codegen/simt_anchor.h"
#include "codegen/simt_conv.h"

enum { FT_CONV_MOST_THREAD = 8 };

// Slabs, and the operands that they hold.
enum { FT_CONV_FILTER, FT_CONV_IMAGE };

typedef struct ft_conv_emitter {
  const ft_workload *workload;
  const ft_simt_conv_choice *choice;
  const ft_graph *graph;
  const ft_primitive *p;
  const ft_shape *x, *w, *y;
  ft_dtype dtype;  // of sums
  bool is_pointwise, has_padding;
  int64_t points, taps;  // of an image of the result; of a window
  int64_t m, n, k;       // channels of a group, columns, terms
  int64_t chunk;         // terms of a partial sum; 0: one sum
  uint32_t threads;
  uint16_t lanes[2];  // of what fills a slab
  ft_loop_emitter *e;
  ft_kir_id thread, row, column;      // in the tile, of this thread's first element
  ft_kir_id group, first_m, first_n;  // of this block
  uint32_t slab[2];                   // shared
  uint32_t total[FT_CONV_MOST_THREAD * FT_CONV_MOST_THREAD];
  uint32_t partial[FT_CONV_MOST_THREAD * FT_CONV_MOST_THREAD];
} ft_conv_emitter;

// A column of the product: a point of an image.
typedef struct ft_conv_column {
  ft_kir_id inside;           // 0: certainly
  ft_kir_id image, point;     // point: in its image
  ft_affine at[FT_MAX_RANK];  // the point along each spatial axis; not when pointwise
} ft_conv_column;

// Column |in_tile| of the block's. Its indices have names from here on.
ft_conv_column ft_conv_column_of(ft_conv_emitter *c, ft_kir_id in_tile);
// Column |v| of |channel| of the result or, when it is pointwise, of the input: e->lanes
// points from there on.
const ft_place *ft_conv_point(ft_conv_emitter *c, const ft_shape *shape,
                              const ft_conv_column *v, ft_kir_id channel);
// Channel of the result in row |row| of the block's group.
ft_kir_id ft_conv_channel(ft_conv_emitter *c, ft_kir_id row);

void ft_conv_open_slabs(ft_conv_emitter *c);
// Terms from |first| on into a slab.
void ft_conv_fill(ft_conv_emitter *c, int which, ft_kir_id first);
// Where a slab has an element: a row of the tile's channels or positions per term.
ft_kir_id ft_conv_slab_index(ft_conv_emitter *c, int which, ft_kir_id term,
                             ft_kir_id in_tile);

// ---- indices, in few words

static inline ft_kir_id number(ft_conv_emitter *c, int64_t n) {
  return ft_places_number(&c->e->places, n);
}

static inline ft_kir_id calculate(ft_conv_emitter *c, ft_kir_op op, ft_kir_id a,
                                  ft_kir_id b) {
  return ft_places_index(&c->e->places, op, a, b);
}

static inline ft_kir_id plus(ft_conv_emitter *c, ft_kir_id a, ft_kir_id b) {
  return calculate(c, FT_KIR_IADD, a, b);
}

static inline ft_kir_id times(ft_conv_emitter *c, ft_kir_id a, int64_t n) {
  return calculate(c, FT_KIR_IMUL, a, number(c, n));
}

static inline ft_kir_id divided(ft_conv_emitter *c, ft_kir_id a, int64_t n) {
  return calculate(c, FT_KIR_IDIV, a, number(c, n));
}

static inline ft_kir_id rest_of(ft_conv_emitter *c, ft_kir_id a, int64_t n) {
  return calculate(c, FT_KIR_IMOD, a, number(c, n));
}

static inline ft_kir_id named(ft_conv_emitter *c, ft_kir_id index) {
  return ft_loop_named(c->e, index);
}

static inline ft_affine affine(ft_conv_emitter *c, ft_kir_id index) {
  return ft_affine_of(&c->e->places, index);
}

#endif
