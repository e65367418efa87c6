// kir_join - independent kernels as one: each block of the joined grid runs one of them.
//
// A body is a kernel of a grid loop over a thread loop (what the simt skeletons build).
// The joined kernel has one of each; a chain of branches on the block's index chooses the
// body, which sees its own block index. Branches are taken by whole blocks, so barriers
// and shuffles inside them still meet all threads. What a launch needs:
//   registers  about the most of any body    threads    the bodies', all equal
//   shared     the most of any body (print_simt.h)
//   workspace  the sum, one after the other
//
// Order: CONCAT gives body i the blocks from grid 0 + ... + grid i-1 on. INTERLEAVE lets
// the bodies take turns, so that blocks of different kinds are on the chip at a time:
// |rounds| times some blocks of each. Where a grid is no multiple of the rounds the last
// blocks of its turns have nothing to do, at most one for 16 that have.
#ifndef FT_CODEGEN_KIR_JOIN_H
#define FT_CODEGEN_KIR_JOIN_H

#include "codegen/kir.h"

typedef enum ft_kir_order {
  FT_KIR_CONCAT,
  FT_KIR_INTERLEAVE,
} ft_kir_order;

enum {
  FT_KIR_MOST_BODIES = 8,
  FT_KIR_PARAMETER_BYTES = 4096,  // of a launch, on every architecture
};

// Borrowed for the call.
typedef struct ft_kir_body {
  const ft_kir *kir;         // well formed
  const uint32_t *argument;  // [arguments] the joined kernel's ABI position of each of
                             // its own; the workspace has one too
  uint32_t arguments;
} ft_kir_body;

// NULL, or why they are no one kernel, in |arena|: more than FT_KIR_MOST_BODIES, not a
// grid loop over a thread loop from 0 by 1, blocks of different size (a barrier needs all
// threads of a block, and idle ones would not come), memory per thread, an argument that
// one body writes and another has, parameters above FT_KIR_PARAMETER_BYTES, more than
// 2^31 - 1 blocks; to interleave: no rounds (ft_kir_join_rounds is 1).
const char *ft_kir_join_refusal(const ft_kir_body *body, uint32_t count,
                                ft_kir_order order, ft_arena *arena);
// The bodies, which were not refused, as one kernel in |arena|; they stay as they are.
// A body of no blocks is left out; when all are, one block does nothing. OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_kir_join(const ft_kir_body *body, uint32_t count,
                                    ft_kir_order order, ft_arena *arena, ft_kir **out,
                                    ft_error *error);

// The most turns that bodies of |blocks[count]| blocks, each >= 1, can take with one idle
// block for 16 of its own at most; 1: they take none. A body of few blocks holds the
// others to as few turns.
int64_t ft_kir_join_rounds(const int64_t *blocks, uint32_t count);

#endif
