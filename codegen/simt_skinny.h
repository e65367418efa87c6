// simt_skinny - a matrix product with at most 8 rows or columns: it is as fast as the
// large operand ("the weights") comes out of memory.
//
// |term_threads| threads share the terms of an output. They read the weights once, in
// vectors along the axis that the weights are contiguous along:
//   along the terms      neighbouring threads take neighbouring terms of one output;
//                        their sums meet by shuffles, then those of the warps
//   along the outputs    neighbouring threads take neighbouring outputs, |lanes| each;
//                        their sums meet through shared memory
// Then the block's threads add what is left, in order, and compute what is behind the
// product. Equal inputs give equal bits.
#ifndef FT_CODEGEN_SIMT_SKINNY_H
#define FT_CODEGEN_SIMT_SKINNY_H

#include "codegen/kir.h"
#include "graph/group.h"

typedef struct ft_simt_skinny_choice {
  uint32_t threads;       // of a block: a power of two from 32 to 1024
  uint32_t term_threads;  // a power of two up to |threads|
  uint32_t unroll;        // 1, 2, 4: vectors of weights that a thread asks for at once
  bool streams;           // the weights will not be read again soon
} ft_simt_skinny_choice;

// NULL, or why the choice cannot work: no product with what is elementwise behind it,
// more than 8 rows and columns, sums of so many terms that they drift, more sums than a
// thread or a block's static shared memory has room for.
const char *ft_simt_skinny_refusal(const ft_workload *workload,
                                   const ft_simt_skinny_choice *choice, ft_arena *arena);
// |choice| was not refused.
FT_MUST_CHECK ft_status ft_simt_skinny_build(const ft_workload *workload,
                                             const ft_simt_skinny_choice *choice,
                                             ft_arena *arena, ft_kir **out,
                                             ft_error *error);

#endif
