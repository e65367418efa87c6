// simt_gemm - S5: a matrix product through shared memory, with what surrounds it.
//
// A block computes |block_m| x |block_n| elements of one batch, |thread_m| x |thread_n|
// of them a thread, in steps of |block_k| terms: all threads bring a slab of both
// operands to shared memory (computing what leads to them on the way), meet, and multiply
// from there. Elementwise work behind the product is done on the accumulators.
//
// Slabs hold a row of the tile for each term, so that a thread reads its rows and its
// columns in vectors. They are filled by vectors along the axis that the operand is
// contiguous along; where the extent does not divide, by narrower ones.
//
// |stages| 1: fill, meet, multiply, meet. 2 and more: the slabs of the next steps are on
// their way while one is multiplied, and threads meet once a step. With |copies|, memory
// that an operand is as it stands is copied without registers, |stages| - 1 steps ahead;
// everything else waits in registers, one step ahead.
//
// |splits| blocks share the terms of a tile; the last of them to finish adds their sums,
// in order, so that equal inputs give equal bits.
//
// Sums in single precision are of at most about 4 sqrt(k) terms; then those are added:
// with roundings all in one direction they stay within what the comparison allows.
#ifndef FT_CODEGEN_SIMT_GEMM_H
#define FT_CODEGEN_SIMT_GEMM_H

#include "codegen/kir.h"
#include "graph/group.h"

typedef struct ft_simt_gemm_choice {
  uint32_t block_m, block_n, block_k;  // 8 to 128, 8 to 128, 4 to 32: powers of two
  uint32_t thread_m, thread_n;         // 1 to 8: powers of two
  uint32_t stages;                     // 1 to 4
  uint32_t splits;                     // 1 to 64; 0 is 1
  bool copies;
  bool shares_sums;  // sums wait to be added in shared memory, not in registers
} ft_simt_gemm_choice;

// NULL, or why the choice cannot work: not one product of floats with at most elementwise
// work behind it, a block of fewer than 32 or more than 1024 threads, more slabs held in
// registers or shared memory than there is room for, sums that need not wait, copies of
// what is no plain memory, splits without terms.
const char *ft_simt_gemm_refusal(const ft_workload *workload,
                                 const ft_simt_gemm_choice *choice, ft_arena *arena);
// Of a block. |choice| was not refused, here and below.
uint32_t ft_simt_gemm_threads(const ft_simt_gemm_choice *choice);
FT_MUST_CHECK ft_status ft_simt_gemm_build(const ft_workload *workload,
                                           const ft_simt_gemm_choice *choice,
                                           ft_arena *arena, ft_kir **out,
                                           ft_error *error);

#endif
