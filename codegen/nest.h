// nest - the loop nest that the CPU tactics share: blocks of rows, passes over each row.
//
// The axes fall into kept ones (K) and reduced ones (R, the same for every reduction of
// the group). A row is one point of K, or, when the vector axis is kept, one vector of
// points. For each row, pass l = 1, 2, .. walks R and computes the reductions of level l;
// a last pass walks R again for what is left to store over K and R. Without reductions a
// row is computed and stored at once.
//
// One axis is walked |lanes| elements at a time, |unroll| such steps in a row; a
// reduction then has as many accumulators. Its tail is no loop of its own: the last step
// starts early and overlaps the one before, so nothing outside a buffer is read; what a
// sum has seen already is masked. lanes <= extent of that axis.
//
// Float sums add at most 8 vectors per accumulator in single precision before the
// accumulators are added in pairs and go to a double, so that the error does not grow
// with the row. Products accumulate in double.
//
// |parts| > 1 splits each reduction: blocks write partial results to the workspace, and
// the last block of a row combines them, part by part in order, and finishes the row. So
// results do not depend on which block comes last. Only for reductions of level 1.
//
// What passes share is computed again (REREAD), kept in scratch memory when expensive
// (SCRATCH), or kept in registers, all of it, in code without loops (REGISTERS). ONLINE
// does max(x) and sum(exp(x - max(x))) in one pass: sums are scaled when the maximum
// grows.
#ifndef FT_CODEGEN_NEST_H
#define FT_CODEGEN_NEST_H

#include "codegen/group_ir.h"
#include "codegen/kir.h"

typedef enum ft_nest_buffer {
  FT_NEST_REREAD,
  FT_NEST_SCRATCH,
  FT_NEST_REGISTERS,
  FT_NEST_ONLINE,
} ft_nest_buffer;

enum { FT_NEST_MAX_UNROLL = 8, FT_NEST_MAX_STEPS = 32, FT_NEST_CHUNK = 8 };

typedef struct ft_nest {
  const ft_group_ir *ir;
  uint64_t kept, reduced;
  uint32_t kept_count, reduced_count;
  uint32_t kept_order[FT_MAX_AXES];     // outermost first, without a kept vector axis
  uint32_t reduced_order[FT_MAX_AXES];  // outermost first; a reduced vector axis is last
  bool has_vector;                      // false: no axis at all, one point
  uint32_t vector_axis;
  uint16_t lanes;  // power of two
  int64_t rows;    // product of kept_order
  int64_t rows_per_block;
  int64_t chunk;   // elements of a kept vector axis per block
  int64_t chunks;  // blocks across it, >= 1; the last one takes the rest
  uint32_t unroll;
  uint32_t parts;       // 1: no split
  uint32_t split_axis;  // a reduced one, cut into |parts|
  int64_t part;         // elements of it in a part; the last part takes the rest
  uint32_t grid;
  bool streams;   // non-temporal stores where alignment is proven
  int64_t ahead;  // rows between what a pass computes and what it prefetches; 0: none
  ft_nest_buffer buffer;
  uint32_t steps;           // vectors of a row, with REGISTERS
  const bool *is_buffered;  // [node_count] what REGISTERS and SCRATCH keep
} ft_nest;

// What a schedule decides.
typedef struct ft_nest_choice {
  uint64_t vector_axes;  // candidates: a mask
  uint32_t vector;       // lanes wanted; fewer when the axis is short
  int64_t block;         // elements per block, about
  uint32_t unroll;
  uint32_t parts;
  int64_t ahead;
  ft_nest_buffer buffer;
  bool streams;
} ft_nest_choice;

// NULL when the group is a nest: all reductions over one set of axes, of operands that
// span all axes, and every output over all axes or over the kept ones. Else the reason.
const char *ft_nest_refusal(const ft_group_ir *ir, ft_arena *arena);

// The axis of |candidates| that most bytes lie along; FT_MAX_AXES when the mask is empty.
uint32_t ft_nest_best_axis(const ft_group_ir *ir, uint64_t candidates);

// Decides everything. Returns NULL, or why the choice cannot work.
const char *ft_nest_plan(const ft_group_ir *ir, const ft_nest_choice *choice,
                         ft_nest *out, ft_arena *arena);

// True when a store to |access| can be non-temporal.
bool ft_nest_can_stream(const ft_nest *nest, const ft_access *access);
// With SCRATCH: marks the values that are worth it; *wrong is NULL, or why there is none.
void ft_nest_choose_kept(ft_nest *nest, const char **wrong, ft_arena *arena);
// NULL, or why ONLINE does not fit.
const char *ft_nest_online_refusal(const ft_nest *nest);
// The pass that stores output |output| (one over K and R): the first that has its value.
uint32_t ft_nest_store_pass(const ft_nest *nest, uint32_t output);

// The kernel.
FT_MUST_CHECK ft_status ft_nest_build(const ft_nest *nest, ft_arena *arena, ft_kir **out,
                                      ft_error *error);

#endif
