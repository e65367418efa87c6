// simt_nest_emit - what the files that turn a nest with threads into kernel IR share.
// Private to codegen/simt_nest*.c, and to simt_turn.c, for which each side of a tile is a
// nest without reductions.
//
// Code is emitted on demand, as in nest_emit.h: a node is computed in the outermost scope
// that has its axes open, so what does not change in a loop stands before it.
#ifndef FT_CODEGEN_SIMT_NEST_EMIT_H
#define FT_CODEGEN_SIMT_NEST_EMIT_H

#include "codegen/simt_nest_plan.h"

enum { FT_SIMT_SCOPES = 12 };

typedef struct ft_simt_scope {
  ft_kir_block *block;
  uint64_t open;  // axes with an index here
} ft_simt_scope;

typedef struct ft_simt_known {
  ft_kir_id value, splat;  // 0: not computed
  uint32_t depth, splat_depth;
} ft_simt_known;

// What is known at one of the points that a thread computes side by side.
typedef struct ft_simt_point {
  ft_simt_known *known;  // [node]
  ft_kir_id index[FT_MAX_AXES];
  ft_kir_id step;         // of the row, over all threads
  ft_kir_id place;        // registers: the thread's own step
  ft_kir_id accumulator;  // that takes it
} ft_simt_point;

typedef struct ft_simt_emitter {
  const ft_simt_plan *plan;
  const ft_group_ir *ir;
  ft_kir *kir;
  ft_arena *arena;
  uint32_t depth;
  ft_simt_scope scope[FT_SIMT_SCOPES];
  ft_simt_point point[FT_SIMT_MOST_UNROLL];  // the first |points| are in use
  uint32_t points, at;                       // at: the one that is being computed
  uint32_t *argument;                        // [ABI position] buffer, 0: not declared
  uint32_t *part, *total;  // [node] registers of a reduction: accumulators; 0 or total
  uint32_t *kept;          // [node] where it waits
  uint32_t *slot;          // [node] shared memory where threads meet
  uint32_t *result;        // [node] workspace of a split
  ft_kir_id *value;        // [node] of a reduction that is being closed
  uint32_t pass;
  ft_kir_id thread;
  // rows and columns: |lane| of |walkers|, row in the block and in all
  ft_kir_id lane, row_in_block, row;
  ft_kir_id guard;       // "row < rows" around stores; 0: none needed
  ft_kir_id begin, end;  // steps of this block
} ft_simt_emitter;

typedef void ft_simt_body(ft_simt_emitter *e);

// ---- simt_nest_value.c: scopes, positions, nodes, stores
ft_kir_block *ft_simt_nest_here(ft_simt_emitter *e);
void ft_simt_nest_enter(ft_simt_emitter *e, ft_kir_block *block);
void ft_simt_nest_leave(ft_simt_emitter *e);
// Enters the body, or the first branch, of a statement; close also appends it.
void ft_simt_nest_open(ft_simt_emitter *e, ft_kir_stmt *stmt);
void ft_simt_nest_close(ft_simt_emitter *e, ft_kir_stmt *stmt);
// |run| under a condition; 0: always.
void ft_simt_nest_when(ft_simt_emitter *e, ft_kir_id condition, ft_simt_body *run);
ft_kir_id ft_simt_nest_number(ft_simt_emitter *e, int64_t n);
ft_kir_id ft_simt_nest_index(ft_simt_emitter *e, ft_kir_op op, ft_kir_id a, ft_kir_id b);
ft_kir_id ft_simt_nest_named(ft_simt_emitter *e, ft_kir_id index);
// a + b, named, where both are: an index gets one name only.
ft_kir_id ft_simt_nest_plus(ft_simt_emitter *e, ft_kir_id a, ft_kir_id b);
// Gives the axes of a set their indices at step |at|.
void ft_simt_nest_decode(ft_simt_emitter *e, int set, ft_kir_id at);
ft_simt_known *ft_simt_nest_known(ft_simt_emitter *e, uint32_t node);
// What the first point knows from outside is known to the others.
void ft_simt_nest_tell(ft_simt_emitter *e);
ft_kir_id ft_simt_nest_emit(ft_simt_emitter *e, uint32_t node);
// The same; what has one lane and is the same in |lanes| of them gets copies.
ft_kir_id ft_simt_nest_emit_lanes(ft_simt_emitter *e, uint32_t node, uint16_t lanes);
// All inputs that the pass reads.
void ft_simt_nest_load_all(ft_simt_emitter *e);
void ft_simt_nest_store(ft_simt_emitter *e, const ft_output *out);
// The outputs over the kept axes; those over all that the pass has.
void ft_simt_nest_store_outer(ft_simt_emitter *e);
void ft_simt_nest_store_inner(ft_simt_emitter *e);
bool ft_simt_nest_has_outer(const ft_simt_emitter *e);
bool ft_simt_nest_has_inner(const ft_simt_emitter *e);

// ---- simt_nest_keep_emit.c: values that wait for later passes
void ft_simt_nest_open_kept(ft_simt_emitter *e);
bool ft_simt_nest_is_waiting(const ft_simt_emitter *e, uint32_t node);
ft_kir_id ft_simt_nest_fetch(ft_simt_emitter *e, uint32_t node, ft_kir_block *at);
// Leaves what the pass has first.
void ft_simt_nest_leave_kept(ft_simt_emitter *e);

// ---- simt_nest_walk.c: the reduced axes
// This thread's share of steps [begin, end).
void ft_simt_nest_walk(ft_simt_emitter *e, ft_kir_id begin, ft_kir_id end,
                       ft_simt_body *run);

// ---- simt_nest_reduce.c: reductions
// Reduces all levels, and stores what the passes have.
void ft_simt_nest_reduce(ft_simt_emitter *e);
uint16_t ft_simt_nest_result_lanes(const ft_simt_emitter *e, uint32_t node);
void ft_simt_nest_set_register(ft_simt_emitter *e, uint32_t id, ft_kir_id at,
                               ft_kir_id value);
ft_kir_id ft_simt_nest_get_register(ft_simt_emitter *e, uint32_t id, ft_kir_id at);
uint32_t ft_simt_nest_new_total(ft_simt_emitter *e, uint32_t node, ft_dtype dtype,
                                uint16_t lanes, int64_t count);
// e->value of the pass's reductions is known from here on.
void ft_simt_nest_settle(ft_simt_emitter *e);

// ---- simt_nest_meet.c: threads of a row
// e->value of the pass's reductions: of each thread, then of all that share the row.
void ft_simt_nest_meet(ft_simt_emitter *e);
bool ft_simt_nest_runs(const ft_simt_emitter *e, uint32_t node);  // in this pass

// ---- simt_nest_items.c, simt_nest_rows.c, simt_nest_split.c
void ft_simt_nest_items(ft_simt_emitter *e, ft_kir_id block);
void ft_simt_nest_rows(ft_simt_emitter *e, ft_kir_id block);
// Where a block of a split leaves its results, and what the last one makes of them.
// |group|: of rows; |part|: of them.
void ft_simt_nest_split(ft_simt_emitter *e, ft_kir_id group, ft_kir_id part);
// Stores the outputs over the kept axes, once for each row.
void ft_simt_nest_store_once(ft_simt_emitter *e);

#endif
