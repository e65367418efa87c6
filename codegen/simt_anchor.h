// simt_anchor - what skeletons share that compute one anchor (a product, a convolution, a
// window) for many elements at once, with elementwise work before and behind it. Private
// to codegen/simt_*.c.
//
// Padding adds nothing, not even to an infinite filter, but slabs hold zeros for it: a
// thread that ends up with a NaN (which then may come of 0 * inf) computes its elements
// again, term by term, as the loop tactic does.
#ifndef FT_CODEGEN_SIMT_ANCHOR_H
#define FT_CODEGEN_SIMT_ANCHOR_H

#include "codegen/loop_emit.h"

// NULL when |group| has kernels for its dtypes, no anchor but |anchor|, and what depends
// on that is elementwise, in its shape, as all outputs are; else the reason, in |arena|.
const char *ft_simt_group_refusal(const ft_group *group, const ft_primitive *anchor,
                                  ft_arena *arena);
// What an element of |value| costs to compute from the group's inputs, about, in cheap
// operations. UINT32_MAX: out of memory.
uint32_t ft_simt_work_before(const ft_group *group, uint32_t value, ft_arena *arena);

// Some output point of |p|, a convolution or window, reads padding along spatial axis
// |i|, where its window has |window| positions.
bool ft_simt_hangs_over(const ft_graph *graph, const ft_primitive *p, int i,
                        int64_t window);
// Whether the index |at| of the input's spatial axis |i| lies in the input; 0: it
// certainly does.
ft_kir_id ft_simt_is_in_axis(ft_loop_emitter *e, const ft_primitive *p, int i,
                             int64_t window, ft_affine at);

// Both conditions; 0 stands for one that always holds.
ft_kir_id ft_simt_both(ft_loop_emitter *e, ft_kir_id a, ft_kir_id b);
// "|at| < |extent|", or 0 when tiles of |block| have no rest.
ft_kir_id ft_simt_is_below(ft_loop_emitter *e, ft_kir_id at, int64_t extent,
                           int64_t block);

// Element of |value| at |place|, e->lanes of them, where |inside| holds (0: always), else
// |bits| (ft_kir_element), without computing or reading anything.
ft_kir_id ft_simt_value_if(ft_loop_emitter *e, uint32_t value, const ft_place *place,
                           ft_kir_id inside, int64_t bits);

// A register of |type| that holds |bits|.
uint32_t ft_simt_total(ft_loop_emitter *e, ft_kir_type type, int64_t bits);
ft_kir_id ft_simt_read(ft_loop_emitter *e, uint32_t total);
// total = reduction(total, value)
void ft_simt_add(ft_loop_emitter *e, uint32_t total, ft_op reduction, ft_kir_id value);
// An index: 1 when one of the |count| registers holds a NaN.
ft_kir_id ft_simt_has_nan(ft_loop_emitter *e, const uint32_t *total, uint32_t count);

#endif
