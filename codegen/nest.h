// nest - the loop nest that the CPU tactics share: blocks of rows, passes over each row.
//
// The axes fall into kept ones (K) and reduced ones (R, the same for every reduction of
// the group). A row is one point of K, or, when the vector axis is kept, one vector of
// points. For each row, pass l = 1, 2, .. walks R and computes the reductions of level l;
// a last pass walks R again for what is left to store over K and R. Without reductions a
// row is computed and stored at once.
//
// One axis is walked |lanes| elements at a time. Its tail is no loop of its own: the last
// step starts early and overlaps the one before, so nothing outside a buffer is read;
// what a sum has seen already is masked. lanes <= extent of that axis.
//
// Float sums add at most 8 vectors in single precision before they go to a double, so
// that the error does not grow with the row. Products accumulate in double.
#ifndef FT_CODEGEN_NEST_H
#define FT_CODEGEN_NEST_H

#include "codegen/group_ir.h"
#include "codegen/kir.h"

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
  uint32_t grid;
  bool streams;             // non-temporal stores where alignment is proven
  bool buffers;             // keep expensive values of a row between passes
  bool has_buffer;          // there is such a value
  const bool *is_buffered;  // [node_count] with |buffers|
} ft_nest;

// What a schedule decides.
typedef struct ft_nest_choice {
  uint64_t vector_axes;  // candidates: a mask
  uint32_t vector;       // lanes wanted; fewer when the axis is short
  int64_t block;         // elements per block, about
  bool streams, buffers;
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
// The pass that stores output |output| (one over K and R): the first that has its value.
uint32_t ft_nest_store_pass(const ft_nest *nest, uint32_t output);

// The kernel.
FT_MUST_CHECK ft_status ft_nest_build(const ft_nest *nest, ft_arena *arena, ft_kir **out,
                                      ft_error *error);

#endif
