// simt_gemm_emit - what the simt_gemm*.c files share. Private to them.
//
// simt_gemm.c decides and lays out the block, simt_gemm_slab.c brings slabs to shared
// memory, simt_gemm_tile.c multiplies, adds and stores.
#ifndef FT_CODEGEN_SIMT_GEMM_EMIT_H
#define FT_CODEGEN_SIMT_GEMM_EMIT_H

#include "codegen/simt_gemm.h"
#include "codegen/simt_product.h"

enum {
  FT_GEMM_THREAD = 8,   // most rows or columns of a thread
  FT_GEMM_PIECES = 32,  // most that a thread holds of a slab
};

// How an operand gets to shared memory. A slab has a row of |pitch| elements for each
// term; a piece is what a thread moves at once, |lanes| neighbours along the axis.
typedef struct ft_gemm_slab {
  ft_simt_reach reach;
  uint32_t block;                 // elements of the tile along the operand's outer axis
  int64_t extent;                 // of all of that axis
  uint32_t pitch;                 // elements
  uint32_t pieces;                // of all threads
  uint32_t rounds;                // pieces of a thread; the last may not be there
  uint32_t slots;                 // slabs in shared memory
  bool is_copied;                 // by COPY
  uint32_t buffer;                // shared
  uint32_t held[FT_GEMM_PIECES];  // registers
} ft_gemm_slab;

typedef struct ft_gemm {
  ft_simt_product q;
  const ft_simt_gemm_choice *choice;
  ft_dtype math;
  uint32_t threads;
  int64_t tile_count;   // of all batches
  int64_t steps;        // slabs in all
  int64_t split_steps;  // of one split, at most
  int64_t sum_steps;    // after which sums are put aside; 0: never
  uint32_t chunk[2];    // neighbouring rows, columns of a thread
  uint16_t store_lanes;
  ft_gemm_slab slab[2];
  ft_kir_id thread, place[2];  // of the thread in the tile: row, column
  ft_kir_id first[2];          // of the block
  ft_kir_id tile, split;       // numbers of this block
  ft_kir_id first_step, step_count;
  uint32_t total[FT_GEMM_THREAD][FT_GEMM_THREAD];  // [row][chunk of columns]: registers
  uint32_t aside[FT_GEMM_THREAD][FT_GEMM_THREAD];  // registers; or
  uint32_t shared_aside;                           // of all threads
} ft_gemm;

static inline int64_t ft_gemm_tile_elements(const ft_gemm *g) {
  return (int64_t)g->choice->block_m * g->choice->block_n;
}

// ---- indices --------------------------------------------------------------------------
static inline ft_kir_id ft_gemm_number(ft_gemm *g, int64_t n) {
  return ft_places_number(&g->q.e->places, n);
}
static inline ft_kir_id ft_gemm_index(ft_gemm *g, ft_kir_op op, ft_kir_id a,
                                      ft_kir_id b) {
  return ft_places_index(&g->q.e->places, op, a, b);
}
static inline ft_kir_id ft_gemm_plus(ft_gemm *g, ft_kir_id a, ft_kir_id b) {
  return ft_gemm_index(g, FT_KIR_IADD, a, b);
}
static inline ft_kir_id ft_gemm_times(ft_gemm *g, ft_kir_id a, int64_t n) {
  return ft_gemm_index(g, FT_KIR_IMUL, a, ft_gemm_number(g, n));
}
static inline ft_kir_id ft_gemm_named(ft_gemm *g, ft_kir_id index) {
  return ft_loop_named(g->q.e, index);
}
// "a < extent", or 0 when that holds for all blocks of |block|.
static inline ft_kir_id ft_gemm_guard(ft_gemm *g, ft_kir_id a, int64_t extent,
                                      uint32_t block) {
  if (extent % block == 0) return 0;
  return ft_gemm_index(g, FT_KIR_ILESS, a, ft_gemm_number(g, extent));
}
static inline ft_kir_id ft_gemm_both(ft_gemm *g, ft_kir_id a, ft_kir_id b) {
  return !a ? b : !b ? a : ft_gemm_index(g, FT_KIR_IMUL, a, b);
}

// ---- simt_gemm_slab.c -----------------------------------------------------------------
// Shared memory and registers, at the top of the block.
void ft_gemm_open_slab(ft_gemm *g, int which);
// Shared elements of all slots.
int64_t ft_gemm_slab_elements(const ft_gemm *g, int which);
// Where slot |step| % slots starts.
ft_kir_id ft_gemm_slot(ft_gemm *g, int which, ft_kir_id step);
// Slab |step| (of the split) to its slot, through registers.
void ft_gemm_fill_slab(ft_gemm *g, int which, ft_kir_id step);
// The same in two halves: to the registers that are held, and from there.
void ft_gemm_take_slab(ft_gemm *g, int which, ft_kir_id step);
void ft_gemm_put_slab(ft_gemm *g, int which, ft_kir_id step);
// Starts its copies.
void ft_gemm_copy_slab(ft_gemm *g, int which, ft_kir_id step);

// ---- simt_gemm_tile.c -----------------------------------------------------------------
void ft_gemm_open_totals(ft_gemm *g);
// Row |i| (0), column |i| (1) of the thread in the tile.
ft_kir_id ft_gemm_spread(ft_gemm *g, int which, uint32_t i);
// Adds the products of slab |step|, which is there.
void ft_gemm_multiply_slab(ft_gemm *g, ft_kir_id step);
// Puts the sums aside when |step| is the last of a chunk.
void ft_gemm_set_aside(ft_gemm *g, ft_kir_id step);
// The sums are whole in |total|.
void ft_gemm_finish_sums(ft_gemm *g);
void ft_gemm_store_tile(ft_gemm *g);
// |total| to the workspace; the last block of the tile adds all and stores.
void ft_gemm_store_split(ft_gemm *g);

#endif
