// simt_conv - S7: a convolution through shared memory, with what surrounds it.
//
// An implicit product: rows are the output channels of a group, columns the output points
// of all images, terms (input channel, window position) in the order of the filters. A
// block computes |tile_channels| x |tile_positions|, |thread_channels| x
// |thread_positions| of them a thread, in steps of |slab| terms: all threads fill a slab
// of filters and a slab of the image, gathered, with zeros for padding (computing what
// leads to them on the way), meet, and multiply from there. Elementwise work behind the
// convolution is done on the accumulators. A thread's rows are spread over the tile, as
// are its columns, |vector| neighbours at a time.
//
// Any number of spatial axes, strides, dilation, groups, padding on either side. A
// convolution of single points reads the image in vectors too.
//
// Single precision sums hold about 4 sqrt(k) of the k terms where there are many; such
// sums are added up. Padding: codegen/simt_anchor.h.
#ifndef FT_CODEGEN_SIMT_CONV_H
#define FT_CODEGEN_SIMT_CONV_H

#include "codegen/kir.h"
#include "graph/group.h"

typedef struct ft_simt_conv_choice {
  uint32_t tile_channels, tile_positions;      // 1 to 128, 8 to 256: powers of two
  uint32_t slab;                               // 4 to 32: a power of two
  uint32_t thread_channels, thread_positions;  // 1 to 8: powers of two
  uint32_t vector;  // 1, 2, 4: divides thread_positions and the points of an image
} ft_simt_conv_choice;

// NULL, or why the choice cannot work: not one convolution of floats with at most
// elementwise work behind it, more work before it than products that follow, a block of
// fewer than 32 or more than 1024 threads, vectors that some operand does not have. In
// |arena|.
const char *ft_simt_conv_refusal(const ft_workload *workload,
                                 const ft_simt_conv_choice *choice, ft_arena *arena);
// Of a block. |choice| was not refused, here and below.
uint32_t ft_simt_conv_threads(const ft_simt_conv_choice *choice);
FT_MUST_CHECK ft_status ft_simt_conv_build(const ft_workload *workload,
                                           const ft_simt_conv_choice *choice,
                                           ft_arena *arena, ft_kir **out,
                                           ft_error *error);

#endif
