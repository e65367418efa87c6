// simt_nest - a nest (codegen/nest.h) in the shape of a GPU: S1, S2 and S3.
//
// Two shapes, by |row_threads|:
//   0   a thread per item: an item is |vector| neighbours along a kept axis. Pointwise
//       groups, and reductions across the vectors (a serial loop in the thread).
//   2^k a row per 2^k threads, 1 to a whole block: |vector| neighbours along a reduced
//       axis for each thread and step; partial results meet by shuffles, and through
//       shared memory where a row has more than a warp.
// Passes are as in the CPU's nest: one per level of reductions, then one for what is left
// to store. Rows past the end are computed again and not stored, so that all threads of a
// warp arrive at its shuffles.
#ifndef FT_CODEGEN_SIMT_NEST_H
#define FT_CODEGEN_SIMT_NEST_H

#include "codegen/group_ir.h"
#include "codegen/kir.h"

typedef struct ft_simt_choice {
  uint32_t threads;      // of a block: a multiple of 32, up to 1024
  uint32_t vector;       // 1, 2, 4, 8: elements of a thread and step
  uint32_t unroll;       // items of a thread, 1 to 8; 1 for rows
  uint32_t row_threads;  // 0, or a power of two up to |threads|
  uint32_t blocks;       // most blocks, each then takes several turns; 0: one turn each.
                         // Items only
  bool streams;          // stores will not be read soon
} ft_simt_choice;

// NULL, or why the choice cannot work for |ir|.
const char *ft_simt_nest_refusal(const ft_group_ir *ir, const ft_simt_choice *choice,
                                 ft_arena *arena);
// |choice| was not refused.
FT_MUST_CHECK ft_status ft_simt_nest_build(const ft_group_ir *ir,
                                           const ft_simt_choice *choice, ft_arena *arena,
                                           ft_kir **out, ft_error *error);

#endif
