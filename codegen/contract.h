// contract - a blocked matrix product or convolution, with what surrounds it.
//
// One contraction, the anchor, as C[batch][m][n] = sum over k of A[m][k] * B[k][n]:
//   matmul  A, B the operands; when B has no batch, A's batch dims are part of m
//   conv    A the filters, B the image: k is (channel, window), n the output's points
// Prologue: what leads to an operand, computed while a block of it is packed into the
// thread's scratch, a bounded number of times. Epilogue: elementwise work, transposes and
// views on the result, with operands of its own, in vectors of the finished tile.
//
// A block is an output tile of mc x nc. It walks k in steps of kc; for each it packs what
// is to be packed, then fills tiles of mr x nr from registers. Blocks share nothing.
//
// Invariants:
//  1. Ragged edges overlap: the last block, tile and vector start early, and write what
//     their neighbour writes, the same bytes. Nothing outside a buffer is touched.
//  2. Single precision sums hold |chunk| terms, about 4 sqrt(k), and are added up in the
//     scratch tile: the error stays within 2 sqrt(k) roundings of sum |terms| even when
//     all round the same way, which is what the comparison allows (interpreter.h).
//  3. A vector of n (of k, while A is packed) stays within one |segment|, so that what
//     reshapes split is still affine along it.
//  4. Padding adds nothing, not even to infinite filters: where a convolution with
//     padding made a NaN, the element is computed again, term by term.
//  5. An element of a prologue is computed at most MOST_VISITS times, MOST_HEAVY_VISITS
//     when it is expensive (contract_plan.c).
#ifndef FT_CODEGEN_CONTRACT_H
#define FT_CODEGEN_CONTRACT_H

#include "codegen/kir.h"
#include "graph/group.h"

typedef struct ft_contract_choice {
  uint32_t vector;        // lanes along n: a power of two up to 64
  int64_t mr, nr;         // rows and columns in registers; |vector| divides nr
  int64_t mc, nc, kc;     // of a block, about
  bool packs_a, packs_b;  // what has a prologue must be packed
} ft_contract_choice;

typedef struct ft_contract {
  const ft_workload *workload;
  const ft_primitive *anchor;
  uint32_t operand[2];        // the values A and B
  ft_contract_choice choice;  // its mc, nc and kc evened out
  bool is_folded;             // a matmul whose batch dims are part of m
  bool is_image;              // B is windows of an image: k and n are no strides of it
  bool has_padding;
  bool is_empty;  // no output element
  int64_t batches, m, n, k;
  int64_t m_blocks, n_blocks, k_blocks, chunk;
  int64_t segment, k_segment;
  uint32_t turn_lanes;  // B is packed in squares, transposed; 0: it is not
  uint32_t k_lanes;     // of vectors along k, while A is packed
  uint32_t grid;
  uint64_t scratch_bytes;
} ft_contract;

// NULL when this can be a kernel, else the reason, in |arena|.
const char *ft_contract_refusal(const ft_workload *workload, ft_arena *arena);
// What is asked for: anchor, batches, m, n, k and the flags. The workload is not refused.
ft_contract ft_contract_problem(const ft_workload *workload);
// True when operand |i| must be packed, in |problem|.
FT_MUST_CHECK ft_status ft_contract_must_pack(const ft_contract *problem, uint32_t i,
                                              ft_arena *arena, bool *out,
                                              ft_error *error);
// A choice that works whenever any does.
FT_MUST_CHECK ft_status ft_contract_plainest(const ft_contract *problem, ft_arena *arena,
                                             ft_contract_choice *out, ft_error *error);
// Decides everything. *reason is set when the choice cannot work.
FT_MUST_CHECK ft_status ft_contract_plan(const ft_workload *workload,
                                         const ft_contract_choice *choice,
                                         ft_arena *arena, ft_contract *out,
                                         const char **reason, ft_error *error);
FT_MUST_CHECK ft_status ft_contract_build(const ft_contract *contract, ft_arena *arena,
                                          ft_kir **out, ft_error *error);

#endif
