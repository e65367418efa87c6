// simt_gemm - S5: a matrix product through shared memory, with what surrounds it.
//
// A block computes |block_m| x |block_n| elements of one batch, |thread_m| x |thread_n|
// of them a thread, in steps of |block_k| terms: all threads copy a slab of both operands
// to shared memory (computing what leads to them on the way), meet, and multiply from
// there. Elementwise work behind the product is done on the accumulators. A thread's rows
// and columns are spread over the tile, so that neighbours read and write neighbours.
// Sums run in the operands' dtype, term by term.
#ifndef FT_CODEGEN_SIMT_GEMM_H
#define FT_CODEGEN_SIMT_GEMM_H

#include "codegen/kir.h"
#include "graph/group.h"

typedef struct ft_simt_gemm_choice {
  uint32_t block_m, block_n, block_k;  // 8 to 128, 8 to 128, 4 to 32: powers of two
  uint32_t thread_m, thread_n;         // 1 to 8: powers of two
} ft_simt_gemm_choice;

// NULL, or why the choice cannot work: not one product of floats with at most elementwise
// work behind it, a block of fewer than 32 or more than 1024 threads, slabs that the
// threads cannot share evenly.
const char *ft_simt_gemm_refusal(const ft_workload *workload,
                                 const ft_simt_gemm_choice *choice, ft_arena *arena);
// |choice| was not refused.
FT_MUST_CHECK ft_status ft_simt_gemm_build(const ft_workload *workload,
                                           const ft_simt_gemm_choice *choice,
                                           ft_arena *arena, ft_kir **out,
                                           ft_error *error);

#endif
