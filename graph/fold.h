// fold - one primitive on known constants. Private to graph/: ft_graph_emit calls it.
#ifndef FT_GRAPH_FOLD_H
#define FT_GRAPH_FOLD_H

#include "graph/graph.h"

// Runs |op| on |input[count]| (known bytes, dtypes and shapes already checked) and puts
// the result, of |dtype| and |shape| as inferred, into |arena|. Integers are exact in
// int64, floats are computed in double and rounded once. Errors: OUT_OF_MEMORY;
// INVALID_ARGUMENT for a gather out of range; UNSUPPORTED when the op has no folding rule
// (the emit then keeps the primitive).
FT_MUST_CHECK ft_status ft_fold_primitive(ft_op op, const ft_attr *attr,
                                          const ft_tensor *input, uint32_t count,
                                          ft_dtype dtype, const ft_shape *shape,
                                          ft_arena *arena, ft_tensor *out,
                                          ft_error *error);

#endif
