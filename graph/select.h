// select - which operand, and which of its elements, an element of a PAD or CONCAT is.
// Private to graph/.
#ifndef FT_GRAPH_SELECT_H
#define FT_GRAPH_SELECT_H

#include "graph/step.h"

typedef struct ft_select {
  const ft_step *step;   // borrowed
  int64_t inner, axis;   // CONCAT: elements per position on the axis; positions on it
  const int64_t *first;  // CONCAT: [count + 1] where on the axis each operand begins
  int64_t stride[FT_MAX_RANK];  // PAD: of operand 0
} ft_select;

// Tables in |arena|; |step| must live as long. OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_select_make(const ft_step *step, ft_arena *arena,
                                       ft_select *out, ft_error *error);
// For each index[j] of the result: the operand and the element of it.
void ft_select_run(const ft_select *select, const int64_t *index, size_t count,
                   uint32_t *operand, int64_t *element);

#endif
