// streams - the loops that ceilings are measured with, in the widest vectors that this
// processor has. The program itself is built for any processor of its family, so they are
// chosen when it runs.
#ifndef FT_MEASURE_STREAMS_H
#define FT_MEASURE_STREAMS_H

#include <stdint.h>

// Moves |bytes|, a multiple of 256, each operand aligned to 64; |to| is written, |a| and
// |b| are read, whichever the loop uses.
typedef void (*ft_stream)(void *to, const void *a, const void *b, uint64_t bytes);

// |rounds| of independent operations in registers.
typedef void (*ft_arithmetic)(uint64_t rounds);

typedef struct ft_streams {
  const char *isa;  // "avx512f"
  // One after the other; four places at once; asking for lines ahead of time.
  ft_stream read, read_four, read_ahead;
  ft_stream write, write_streaming;
  ft_stream copy, copy_ahead, copy_streaming;
  ft_stream triad, triad_ahead, triad_streaming;  // to = a + 3 b
  // NULL, with 0 flops: nothing is known to be near the peak here.
  ft_arithmetic fma, fma_add;
  double fma_flops, fma_add_flops;  // of one round
} ft_streams;

const ft_streams *ft_streams_here(void);  // static

#endif
