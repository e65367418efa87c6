// simt_loop - what codegen/loop.h takes, in the shape of a GPU: a thread per element, or
// per |tile| of them that share an operand.
//
// The fallback: every group that has loops has this kernel. A thread computes its
// elements on demand, from the buffers: no shared memory, no barriers; neighbouring
// threads have neighbouring elements. Sections (outputs of one size) take the blocks one
// after the other.
#ifndef FT_CODEGEN_SIMT_LOOP_H
#define FT_CODEGEN_SIMT_LOOP_H

#include "codegen/kir.h"
#include "graph/group.h"

typedef struct ft_simt_loop_choice {
  uint32_t threads;  // of a block: a multiple of 32, up to 1024
  uint32_t tile;     // 1 to 16; fewer where it does not divide
} ft_simt_loop_choice;

// NULL, or why the choice cannot work: also what ft_loop_refusal says.
const char *ft_simt_loop_refusal(const ft_workload *workload,
                                 const ft_simt_loop_choice *choice, ft_arena *arena);
// |choice| was not refused.
FT_MUST_CHECK ft_status ft_simt_loop_build(const ft_workload *workload,
                                           const ft_simt_loop_choice *choice,
                                           ft_arena *arena, ft_kir **out,
                                           ft_error *error);

#endif
