// contract_emit - what the files of the contract tactic share. Private to
// codegen/contract*.c.
#ifndef FT_CODEGEN_CONTRACT_EMIT_H
#define FT_CODEGEN_CONTRACT_EMIT_H

#include "codegen/contract.h"
#include "codegen/loop_emit.h"

// A kernel on its way. Indices are named and in scope where they are used.
typedef struct ft_contract_emitter {
  const ft_contract *c;
  ft_loop_emitter *e;
  ft_kir_id batch, m0, n0;           // of the block
  ft_affine batch_dim[FT_MAX_RANK];  // of a matmul's result
  ft_kir_id k0, k1;                  // the terms of this step
  uint32_t a, b, tile;               // scratch; 0: not there
  int64_t a_stride, b_stride;
} ft_contract_emitter;

// A position along n or k: which segment, and where in it.
typedef struct ft_contract_split {
  ft_affine segment, rest;
} ft_contract_split;

static inline ft_kir_id ft_contract_number(ft_contract_emitter *m, int64_t n) {
  return ft_places_number(&m->e->places, n);
}

static inline ft_kir_id ft_contract_index(ft_contract_emitter *m, ft_kir_op op,
                                          ft_kir_id a, ft_kir_id b) {
  return ft_places_index(&m->e->places, op, a, b);
}

// |a| + |n|, named.
ft_kir_id ft_contract_offset(ft_contract_emitter *m, ft_kir_id a, int64_t n);
// min(|a|, |n|), named.
ft_kir_id ft_contract_least(ft_contract_emitter *m, ft_kir_id a, int64_t n);
ft_kir_stmt *ft_contract_open_loop(ft_contract_emitter *m, ft_kir_loop kind,
                                   ft_kir_id begin, ft_kir_id end, int64_t step);
// Leaves the body of |loop|, or of a branch, and appends it.
void ft_contract_close_loop(ft_contract_emitter *m, ft_kir_stmt *loop);

// A vector from |at| on: it becomes the inner index of the emitter.
ft_contract_split ft_contract_vector(ft_contract_emitter *m, ft_kir_id at, int64_t extent,
                                     int64_t segment);
// One element at |at|.
ft_contract_split ft_contract_point(ft_contract_emitter *m, ft_kir_id at, int64_t extent,
                                    int64_t segment);

// Where element (row, k) of A, (k, column) of B is read. NULL: out of memory.
const ft_place *ft_contract_a_place(ft_contract_emitter *m, ft_affine row,
                                    ft_contract_split k);
const ft_place *ft_contract_b_place(ft_contract_emitter *m, ft_affine k,
                                    ft_contract_split column);
// The element of the result at (row, column).
const ft_place *ft_contract_c_place(ft_contract_emitter *m, ft_affine row,
                                    ft_contract_split column);

// Where operand |i|, which is a tensor in memory, is read for the element at |place|.
ft_affine ft_contract_reach(ft_contract_emitter *m, uint32_t i, const ft_place *place,
                            uint32_t *out_root);

// ---- contract_pack.c: rows [m0, m0 + mc) of A, columns [n0, n0 + nc) of B, terms [k0,
// k1)
void ft_contract_pack_a(ft_contract_emitter *m);
void ft_contract_pack_b(ft_contract_emitter *m);
// Where element (row of the block, k) of packed A lies, (k, column of the block) of B.
ft_kir_id ft_contract_packed_a(ft_contract_emitter *m, ft_affine row, ft_kir_id k);
ft_kir_id ft_contract_packed_b(ft_contract_emitter *m, ft_kir_id k, ft_affine column);

// ---- contract_epilogue.c
// Places of what depends on the anchor, for the element of its result at |place|:
// [value], NULL where nothing is. |wrong| is the primitive that reads it at two places,
// or NULL.
typedef struct ft_contract_places {
  const ft_place **of;
  const ft_primitive *wrong;
} ft_contract_places;

ft_contract_places ft_contract_follow(ft_contract_emitter *m, const ft_place *place);
// Stores every output for the tile of mr x nr at (row, column) of the matrix; |base| is
// where the tile starts in the scratch.
void ft_contract_epilogue(ft_contract_emitter *m, ft_kir_id row, ft_kir_id column,
                          ft_kir_id base);

// ---- contract_build.c
// All of the kernel, or, with |only_a|, the packing of A.
FT_MUST_CHECK ft_status ft_contract_emit(const ft_contract *contract, bool only_a,
                                         ft_arena *arena, ft_loop_emitter **out,
                                         ft_error *error);
// |m| becomes ready for places: no loops yet.
FT_MUST_CHECK ft_status ft_contract_open(const ft_contract *contract, ft_arena *arena,
                                         ft_contract_emitter *m, ft_error *error);

#endif
