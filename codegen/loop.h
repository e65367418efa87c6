// loop - kernels printed straight from a group's primitives, for whatever the nest does
// not take: index remaps, windows and contractions, alone or with elementwise work around
// them.
//
// Outputs of one size share a section of the kernel: loops over the outer dims of that
// size (a row is one point of them) around one over the inner dim. An element is computed
// on demand at its place (place.h): elementwise work and remaps inline, down to the
// buffers; a reduction, window or contraction, the anchor, by loops of its own into
// registers, |tile| rows at a time, so that what the rows share is loaded once.
//
// The inner dim is cut where what lies there changes: at the seams of a concat, at the
// rim of a pad or of a padded window. Each segment then knows its source, and runs in
// vectors; where indices are not affine along it, one element at a time.
//
// Guards: an index of a gather is checked before anything is read with it; out of range,
// the block returns FT_KERNEL_BAD_INDEX. A vector that would pass the end of a segment
// starts early: it writes what its neighbour writes, the same bytes.
#ifndef FT_CODEGEN_LOOP_H
#define FT_CODEGEN_LOOP_H

#include "codegen/kir.h"
#include "graph/group.h"

enum { FT_MAX_CUTS = 48, FT_MAX_TILE = 16 };

typedef struct ft_loop_choice {
  uint32_t vector;  // lanes wanted: a power of two up to 64
  uint32_t tile;    // rows of a contraction at a time
  int64_t block;    // elements per block, about
  bool across;      // vectors along the terms of the anchor, not along the inner dim
} ft_loop_choice;

// The outputs of one size, and how their elements are walked.
typedef struct ft_loop_section {
  int64_t elements;
  ft_shape domain;  // rank >= 1; the last dim is the inner one
  bool is_scalar;   // one element at a time
  uint32_t cuts;
  int64_t cut[FT_MAX_CUTS + 2];  // ascending, 0 and the inner extent included
  bool is_rim[FT_MAX_CUTS + 1];  // segment i runs one element at a time
  int tile_axis;                 // of |domain|; -1: none
  int64_t tile;
  int64_t rows, rows_per_block;  // rows of |tile| along tile_axis
  int64_t chunk, chunks;         // of the inner dim
  uint32_t grid;
  uint32_t strided;  // vectors that are loaded one element at a time
} ft_loop_section;

typedef struct ft_loop {
  const ft_workload *workload;
  ft_loop_choice choice;
  uint32_t section_count;
  ft_loop_section *section;
  uint32_t grid;
} ft_loop;

// NULL when this can be a kernel, else the reason, in |arena|.
const char *ft_loop_refusal(const ft_workload *workload, ft_arena *arena);
// NULL when kernels can compute |p| with the dtypes it has, else the reason, in |arena|.
const char *ft_loop_dtype_refusal(const ft_graph *graph, const ft_primitive *p,
                                  ft_arena *arena);
// Elementary steps of all outputs, about: elements times what each reduces.
double ft_loop_work(const ft_workload *workload);
// Decides everything. *reason is set when the choice cannot work.
FT_MUST_CHECK ft_status ft_loop_plan(const ft_workload *workload,
                                     const ft_loop_choice *choice, ft_arena *arena,
                                     ft_loop *out, const char **reason, ft_error *error);
FT_MUST_CHECK ft_status ft_loop_build(const ft_loop *loop, ft_arena *arena, ft_kir **out,
                                      ft_error *error);

#endif
