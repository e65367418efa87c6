// simt_nest - a nest (codegen/nest.h) in the shape of a GPU: S1, S2 and S3.
//
// Three shapes:
//   items    a thread per item: an item is |vector| neighbours along a kept axis.
//            Pointwise groups, and reductions across the vectors (serial in the thread).
//   rows     |row_threads| threads, 1 to a whole block, share a row: |vector| neighbours
//            along a reduced axis for each thread and step; partial results meet by
//            shuffles, and through shared memory where a row has more than a warp.
//   columns  |column_threads| threads share an item's reduced axes; neighbours in a warp
//            have neighbouring items. Partial results meet in a tree in shared memory.
// Passes are as in the CPU's nest: one per level of reductions, then one for what is left
// to store; an output is stored in the first pass that has its value. Rows past the end
// are computed again and not stored, so that all threads of a block meet.
//
// |buffer| says where values wait that a later pass needs again: REREAD computes them
// again from global memory; REGISTERS and SHARED keep each thread's share, so that each
// input is read once. What is kept is whatever takes less room: the values that the later
// pass starts from, or the inputs they come from.
//
// |splits| > 1 (rows and columns): that many blocks share each row; partial results go to
// the workspace, and the last block of a group of rows adds them up, in an order that
// does not depend on which block is last. For one level of reductions, all outputs over
// the kept axes.
//
// Float sums of f32 run in f32 as long as a chain of additions is short enough for the
// error to stay within the comparison's tolerance (graph/interpreter.h) whatever the
// terms are: max(8, 2 sqrt(n)) of n terms. Longer ones go on in f64, a chunk at a time.
// Products run in f64.
#ifndef FT_CODEGEN_SIMT_NEST_H
#define FT_CODEGEN_SIMT_NEST_H

#include "codegen/group_ir.h"
#include "codegen/kir.h"

typedef enum ft_simt_buffer {
  FT_SIMT_REREAD,
  FT_SIMT_REGISTERS,
  FT_SIMT_SHARED,
} ft_simt_buffer;

// Zeros beyond the first three fields are the plainest choice.
typedef struct ft_simt_choice {
  uint32_t threads;         // of a block: a multiple of 32, up to 1024
  uint32_t vector;          // 1, 2, 4, 8: elements of a thread and step
  uint32_t unroll;          // 1 to 8: items of a thread; rows and columns: steps at a
                            // time, each with accumulators of its own
  uint32_t row_threads;     // 0, or a power of two up to |threads|
  uint32_t blocks;          // most blocks, each then takes several turns; 0: one turn
                            // each. Items only
  bool streams;             // stores will not be read soon
  uint32_t column_threads;  // 0, or a power of two up to |threads|; not with row_threads
  uint32_t splits;          // blocks that share a row; 0 and 1: no split
  ft_simt_buffer buffer;    // rows and columns
  bool loads_once;          // inputs of which nothing is read twice bypass the caches
} ft_simt_choice;

// NULL, or why the choice cannot work for |ir|. Registers are refused by an estimate, 1.5
// for each one kept and 12 (results/register_pressure); what ptxas says is final.
const char *ft_simt_nest_refusal(const ft_group_ir *ir, const ft_simt_choice *choice,
                                 ft_arena *arena);
// |choice| was not refused.
FT_MUST_CHECK ft_status ft_simt_nest_build(const ft_group_ir *ir,
                                           const ft_simt_choice *choice, ft_arena *arena,
                                           ft_kir **out, ft_error *error);

#endif
