// nest_tactic - what the tactics that build a nest share: their knobs and their space.
//
// Knobs: block (elements of work per block), buffer (what passes over a row share: 0 read
// again, 1 scratch memory, 2 registers, 3 online softmax; ft_nest_buffer), compiler,
// non_temporal (streamed stores; clang only), prefetch (rows ahead), split (parts of each
// reduction; 1 = none), threads, unroll (steps per loop body), vector (elements per
// step).
#ifndef FT_CODEGEN_NEST_TACTIC_H
#define FT_CODEGEN_NEST_TACTIC_H

#include "codegen/nest.h"
#include "codegen/tactic.h"

void ft_nest_space(const ft_group_ir *ir, uint64_t vector_axes, const ft_target *target,
                   ft_schedules *out);
const char *ft_nest_check(const ft_group_ir *ir, uint64_t vector_axes,
                          const ft_target *target, const ft_schedule *schedule,
                          ft_arena *arena);
ft_status ft_nest_kernel(const ft_group_ir *ir, uint64_t vector_axes,
                         const ft_schedule *schedule, ft_arena *arena, ft_kernel *out,
                         ft_error *error);
// All axes, and those no reduction takes.
uint64_t ft_nest_all(const ft_group_ir *ir);
uint64_t ft_nest_kept(const ft_group_ir *ir);

#endif
