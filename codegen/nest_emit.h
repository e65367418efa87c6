// nest_emit - what the files that turn a nest into kernel IR share. Private to
// codegen/nest*.c.
//
// Code is emitted on demand: ft_nest_emit computes a node in the outermost scope that has
// its axes open and its operands computed, so what does not change in a loop stands
// before it. A loop's statement is appended to the outer block when its body is done;
// whatever the body needed from outside was appended earlier.
#ifndef FT_CODEGEN_NEST_EMIT_H
#define FT_CODEGEN_NEST_EMIT_H

#include "codegen/nest.h"

enum { FT_NEST_SCOPES = FT_MAX_AXES + 16 };

// A block, or one step of an unrolled loop in it.
typedef struct ft_nest_scope {
  ft_kir_block *block;
  uint64_t open;  // axes with an index here
} ft_nest_scope;

// What is known of a node: its value, and the scope that holds it. 0: not computed.
typedef struct ft_nest_known {
  ft_kir_id value, splat;
  uint32_t depth, splat_depth;
} ft_nest_known;

typedef struct ft_nest_emitter {
  const ft_nest *nest;
  const ft_group_ir *ir;
  ft_kir *kir;
  ft_arena *arena;
  uint32_t depth;  // current scope
  ft_nest_scope scope[FT_NEST_SCOPES];
  ft_kir_id index[FT_MAX_AXES];
  ft_kir_id ahead[FT_MAX_AXES];  // of the row to prefetch: kept axes
  ft_nest_known *known;          // [node]
  ft_kir_id *held;               // [node * steps + step] with REGISTERS
  uint32_t *argument;            // [ABI position] buffer id, 0: not declared
  uint32_t *row_buffer;          // [node] scratch buffer of a buffered node, 0: none
  bool *is_in_row;               // [node] an earlier pass filled it
  bool *is_filling;              // [node] this pass fills it
  // registers of a reduction, [node * FT_NEST_MAX_UNROLL + accumulator]
  uint32_t *total, *partial;
  uint32_t pass;
  uint32_t step;        // of an unrolled loop, or of a row in registers
  bool is_overlapping;  // the kept vector of this row starts early
  // the part of the reductions that this block does
  ft_kir_id row, part, is_last_part, begin, end;
  uint32_t *result;  // [node] workspace buffer of partial results
} ft_nest_emitter;

// What a loop runs for each step: the first |first| lanes were seen before.
typedef void ft_nest_body(ft_nest_emitter *e, uint16_t first);

// ---- nest_value.c: scopes, nodes, stores
ft_kir_block *ft_nest_here(ft_nest_emitter *e);
void ft_nest_enter(ft_nest_emitter *e, ft_kir_block *block, uint64_t axes);
void ft_nest_leave(ft_nest_emitter *e);
ft_kir_id ft_nest_number(ft_nest_emitter *e, int64_t n);
bool ft_nest_along_vector(const ft_nest_emitter *e, uint64_t mask);
// The node with |lanes| lanes, here or further out.
ft_kir_id ft_nest_emit(ft_nest_emitter *e, uint32_t node, uint16_t lanes);
void ft_nest_store(ft_nest_emitter *e, const ft_output *out, bool is_aligned);
// Outputs over K and R that belong to |pass|.
void ft_nest_store_all(ft_nest_emitter *e, uint32_t pass, bool is_aligned);
// Fetches this step of the row that comes |ahead| rows later.
void ft_nest_prefetch(ft_nest_emitter *e);

// ---- nest_walk.c: loops
ft_kir_stmt *ft_nest_open(ft_nest_emitter *e, ft_kir_loop kind, ft_kir_id begin,
                          ft_kir_id end, int64_t step);
void ft_nest_close(ft_nest_emitter *e, ft_kir_stmt *stmt);
// Steps over [begin, end), a multiple of |step|, of |axis|; unrolled. |is_whole|: a
// multiple of all that is unrolled.
void ft_nest_walk(ft_nest_emitter *e, uint32_t axis, ft_kir_id begin, ft_kir_id end,
                  int64_t step, bool is_whole, ft_nest_body *run);
// All of [begin, end) of the vector axis, |unroll| vectors at a time, where seeing an
// element twice is harmless.
void ft_nest_walk_vector(ft_nest_emitter *e, ft_kir_id begin, ft_kir_id end,
                         uint32_t unroll, ft_nest_body *run);
// One vector after the other, without loops: for rows in registers.
void ft_nest_walk_steps(ft_nest_emitter *e, ft_nest_body *run);

// ---- nest_reduce.c: reductions
// Computes the reductions of pass |e->pass|. They are known then, or, when the nest is
// split, in the workspace.
void ft_nest_reduce(ft_nest_emitter *e);
// The outer reduced axes around |inner|.
void ft_nest_around(ft_nest_emitter *e, void (*inner)(ft_nest_emitter *e));
bool ft_nest_vector_is_reduced(const ft_nest_emitter *e);
bool ft_nest_declare_results(ft_nest_emitter *e);
// Combines the partial results of this row, in order.
void ft_nest_combine_results(ft_nest_emitter *e);

// ---- nest_online.c
void ft_nest_online(ft_nest_emitter *e);

#endif
