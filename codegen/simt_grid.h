// simt_grid - the loops around a kernel in the shape of a GPU, and what its sizes are
// checked with. For the skeletons that emit from places (loop_emit.h). Private to
// codegen/simt_*.c.
#ifndef FT_CODEGEN_SIMT_GRID_H
#define FT_CODEGEN_SIMT_GRID_H

#include "codegen/loop_emit.h"

typedef struct ft_simt_grid {
  ft_kir_stmt *blocks, *threads;  // their variables: |value| of each
} ft_simt_grid;

// Enters both loops.
ft_simt_grid ft_simt_grid_open(ft_loop_emitter *e, int64_t blocks, uint32_t threads);
// Leaves both; *out is the kernel. OUT_OF_MEMORY; INTERNAL: a thread asked for vectors
// that its skeleton did not plan.
FT_MUST_CHECK ft_status ft_simt_grid_close(ft_loop_emitter *e, const ft_simt_grid *grid,
                                           ft_kir **out, ft_error *error);

// A power of two from |low| to |high|.
static inline bool ft_simt_is_power(uint32_t n, uint32_t low, uint32_t high) {
  return n >= low && n <= high && !(n & (n - 1));
}

// Tiles of |block| that cover |extent|.
static inline int64_t ft_simt_tiles(int64_t extent, int64_t block) {
  return (extent + block - 1) / block;
}

#endif
