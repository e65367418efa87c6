// simt_window_parts - what simt_window.c and simt_window_tile.c share: the windows under
// way, and a block's tile. Private to them.
#ifndef FT_CODEGEN_SIMT_WINDOW_PARTS_H
#define FT_CODEGEN_SIMT_WINDOW_PARTS_H

#include "codegen/simt_anchor.h"
#include "codegen/simt_window.h"

enum { FT_WINDOW_MOST_ITEMS = 16 };  // outputs of a thread

enum { FT_WINDOW_ROWS, FT_WINDOW_COLUMNS };

// A spatial axis. What has none along its rows gets one of a single point.
typedef struct ft_window_axis {
  int64_t in, out, window, stride, dilation, start;
  int64_t tile;   // outputs of a block
  int64_t tiles;  // blocks along it
  int64_t reach;  // of the input, for a tile
  bool is_whole;  // all that tiles reach lies in the input
} ft_window_axis;

typedef struct ft_window_emitter {
  const ft_workload *workload;
  const ft_simt_window_choice *choice;
  const ft_graph *graph;
  const ft_primitive *p;
  const ft_shape *x, *y;
  ft_dtype dtype, wide;  // of the results, and of sums
  ft_op combine;
  bool is_conv, has_padding;
  ft_window_axis axis[2];
  int64_t planes;
  int64_t taps, reach;  // positions of a window; input elements of a tile's plane
  uint32_t items;       // of a thread
  ft_loop_emitter *e;
  ft_kir_id thread, first_plane, first[2];  // of this block's outputs
  uint32_t tile, filters;                   // shared
  uint32_t total[FT_WINDOW_MOST_ITEMS];
} ft_window_emitter;

// An output of the block.
typedef struct ft_window_item {
  ft_kir_id plane, at[2];  // in the tile
} ft_window_item;

// The index of item |q| of the thread, and which item has an index.
ft_kir_id ft_window_item_index(ft_window_emitter *w, uint32_t q);
ft_window_item ft_window_item_at(ft_window_emitter *w, ft_kir_id index);
// The image and the channel of the result that plane |plane| is; whether there is such a
// plane, 0: certainly.
void ft_window_find_plane(ft_window_emitter *w, ft_kir_id plane, ft_kir_id *image,
                          ft_kir_id *channel);
ft_kir_id ft_window_is_plane(ft_window_emitter *w, ft_kir_id plane);

// All threads together: the tile of the input, and filters.
void ft_window_fill(ft_window_emitter *w);
// Item |q| of the thread, into its total.
void ft_window_combine(ft_window_emitter *w, uint32_t q);

// ---- indices, in few words

static inline ft_kir_id number(ft_window_emitter *w, int64_t n) {
  return ft_places_number(&w->e->places, n);
}

static inline ft_kir_id calculate(ft_window_emitter *w, ft_kir_op op, ft_kir_id a,
                                  ft_kir_id b) {
  return ft_places_index(&w->e->places, op, a, b);
}

static inline ft_kir_id plus(ft_window_emitter *w, ft_kir_id a, ft_kir_id b) {
  return calculate(w, FT_KIR_IADD, a, b);
}

static inline ft_kir_id times(ft_window_emitter *w, ft_kir_id a, int64_t n) {
  return calculate(w, FT_KIR_IMUL, a, number(w, n));
}

static inline ft_kir_id divided(ft_window_emitter *w, ft_kir_id a, int64_t n) {
  return calculate(w, FT_KIR_IDIV, a, number(w, n));
}

static inline ft_kir_id rest_of(ft_window_emitter *w, ft_kir_id a, int64_t n) {
  return calculate(w, FT_KIR_IMOD, a, number(w, n));
}

static inline ft_kir_id named(ft_window_emitter *w, ft_kir_id index) {
  return ft_loop_named(w->e, index);
}

static inline ft_affine affine(ft_window_emitter *w, ft_kir_id index) {
  return ft_affine_of(&w->e->places, index);
}

#endif
