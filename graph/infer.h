// infer - the shape rules of one kind of primitive each; graph_infer.c chooses. Private
// to graph/. Dtypes and the number of inputs are right. *attr becomes canonical, *out is
// the result's shape. INVALID_ARGUMENT (a shape past 2^62: REFUSED) naming the values.
#ifndef FT_GRAPH_INFER_H
#define FT_GRAPH_INFER_H

#include "graph/builder.h"

typedef struct ft_inference {
  const ft_graph *graph;
  ft_op op;
  const uint32_t *input;
  uint32_t count;
  ft_attr *attr;
  ft_shape *out;
} ft_inference;

typedef ft_status ft_infer_shape(const ft_inference *in, ft_error *error);

ft_infer_shape ft_infer_slice, ft_infer_concat, ft_infer_pad, ft_infer_gather,
    ft_infer_gather_elements, ft_infer_window, ft_infer_matmul, ft_infer_conv;

// True when |shape| has a rank and dims that a shape can have.
bool ft_infer_is_shape(const ft_shape *shape);

#endif
