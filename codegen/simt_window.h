// simt_window - S8: pools and convolutions of single channels (depthwise) through shared
// memory, with what surrounds them.
//
// A plane is one channel of one image. A block computes |tile_rows| x |tile_columns|
// outputs of |tile_planes| planes: all threads fill what the windows reach of the input,
// the halo included, each element once (computing what leads to it on the way), meet, and
// combine their windows from there. Elementwise work behind is done on the results.
// Padding is filled with what changes nothing; for filters see codegen/simt_anchor.h.
//
// One or two spatial axes (of one, |tile_rows| is 1), strides, dilation, padding on
// either side; a depthwise convolution may have several filters for a channel. Single
// precision sums of more than 64 terms run in double.
#ifndef FT_CODEGEN_SIMT_WINDOW_H
#define FT_CODEGEN_SIMT_WINDOW_H

#include "codegen/kir.h"
#include "graph/group.h"

typedef struct ft_simt_window_choice {
  uint32_t threads;                  // of a block: 32 to 1024
  uint32_t tile_rows, tile_columns;  // 1 to 64, 1 to 128
  uint32_t tile_planes;              // 1 to 256; all are powers of two
} ft_simt_window_choice;

// NULL, or why the choice cannot work: not one pool or depthwise convolution with at most
// elementwise work behind it and none of its kind before it; more than 16 outputs for a
// thread; more shared memory than 99 KiB. In |arena|.
const char *ft_simt_window_refusal(const ft_workload *workload,
                                   const ft_simt_window_choice *choice, ft_arena *arena);
// |choice| was not refused.
FT_MUST_CHECK ft_status ft_simt_window_build(const ft_workload *workload,
                                             const ft_simt_window_choice *choice,
                                             ft_arena *arena, ft_kir **out,
                                             ft_error *error);

#endif
