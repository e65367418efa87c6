// window - what convolutions and pools slide over their input: the attributes that they
// share, with the paddings and output extents that follow. Private to graph/.
#ifndef FT_GRAPH_WINDOW_H
#define FT_GRAPH_WINDOW_H

#include "graph/lower.h"

// Per spatial axis (axis 2 of the input is entry 0); |shape| is the whole output,
// channels as the input has them.
typedef struct ft_window {
  int rank;  // of the spatial axes
  int64_t size[FT_MAX_RANK], stride[FT_MAX_RANK], dilation[FT_MAX_RANK];
  int64_t before[FT_MAX_RANK], after[FT_MAX_RANK];
  ft_shape shape;
} ft_window;

// Reads kernel_shape (|weight|'s when it is absent; |weight| may be NULL for pools, which
// must give it), strides, dilations, pads, auto_pad and, with |may_ceil|, ceil_mode.
// Fails REFUSED on what contradicts the shapes. After a failure *out is all zero.
//
// With ceil_mode a last window may be cut off at the end, never one that would start in
// the padding there (ONNX since 1.16; before, such windows were counted and gave NaN).
void ft_window_read(ft_lowering *l, uint32_t x, const ft_shape *weight, bool may_ceil,
                    ft_window *out);
// The attributes of WINDOW_* and CONV.
ft_attr ft_window_attr(const ft_window *window);
// How many positions of the window at |at| are in [low, high) of spatial axis |axis|.
int64_t ft_window_count(const ft_window *window, int axis, int64_t at, int64_t low,
                        int64_t high);

#endif
