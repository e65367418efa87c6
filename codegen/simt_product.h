// simt_product - the matrix product of a group, as skeletons with threads see it: which
// groups they take, where operands and results are, and along which axis an operand is
// read in vectors. Private to codegen/simt_gemm*.c and codegen/simt_skinny*.c.
//
// A group is taken when it has a product of floats, and everything behind the product is
// elementwise and keeps its shape. What leads to the operands is computed on the way.
#ifndef FT_CODEGEN_SIMT_PRODUCT_H
#define FT_CODEGEN_SIMT_PRODUCT_H

#include "codegen/loop_emit.h"

typedef struct ft_simt_product {
  const ft_workload *workload;
  const ft_primitive *p;
  ft_shape shape;  // of the product; rank >= 2
  ft_dtype dtype;
  int64_t m, n, k, batches;
  bool has_other_anchor;  // reductions and the like around it: nothing is a vector
  ft_loop_emitter *e;     // the builder's
  ft_affine batch[FT_MAX_RANK];
} ft_simt_product;

// How operand |which| (0: left, 1: right) is best read.
typedef struct ft_simt_reach {
  bool is_along_terms;  // else along its rows (left) or columns (right)
  uint16_t lanes;       // a power of two that divides the extent along that axis, 16
                        // bytes at most
  bool is_plain;        // it is memory as it stands, contiguous along the axis
} ft_simt_reach;

// NULL, or why no skeleton of products takes the group; in |arena|.
const char *ft_simt_product_refusal(const ft_workload *workload, ft_arena *arena);
// |workload| was not refused.
ft_simt_product ft_simt_product_of(const ft_workload *workload);
FT_MUST_CHECK ft_status ft_simt_product_reach(const ft_simt_product *product, int which,
                                              ft_arena *arena, ft_simt_reach *out,
                                              ft_error *error);
// Lanes along the columns in which all that is behind the product can be computed and
// stored: |most|, or 1.
FT_MUST_CHECK ft_status ft_simt_product_store_lanes(const ft_simt_product *product,
                                                    uint16_t most, ft_arena *arena,
                                                    uint16_t *out, ft_error *error);

// How many terms one f32 sum may have before it is added to others, so that roundings in
// one direction stay within what the comparison allows (docs/decisions.md). INFINITY:
// any number; F64, and short floats, whose outputs are compared by less.
double ft_simt_product_most_terms(const ft_simt_product *product);

// ---- emitting; |product|'s emitter is open --------------------------------------------
// Sets the dims of the batch with number |batch|.
void ft_simt_product_enter_batch(ft_simt_product *product, ft_kir_id batch);
// A position, the first of |lanes| when more than 1.
ft_affine ft_simt_product_position(ft_simt_product *product, ft_kir_id at,
                                   uint16_t lanes);
// Operand |which| at row or column |outer| and term |term|; NULL: out of memory.
const ft_place *ft_simt_product_operand(ft_simt_product *product, int which,
                                        ft_affine outer, ft_affine term);
// Operand |which| there as |lanes| elements.
ft_kir_id ft_simt_product_load(ft_simt_product *product, int which, ft_affine outer,
                               ft_affine term, uint16_t lanes);
// The buffer and index of a plain operand there.
uint32_t ft_simt_product_source(ft_simt_product *product, int which, ft_affine outer,
                                ft_affine term, ft_kir_id *out_index);
// Stores all outputs for |sum|, of |lanes| elements, at row |m| and column |n|.
void ft_simt_product_store(ft_simt_product *product, ft_kir_id sum, ft_kir_id m,
                           ft_kir_id n, uint16_t lanes);

#endif
