// expressions - the C text of primitives (expressions.def) and of types.
#ifndef FT_CODEGEN_EXPRESSIONS_H
#define FT_CODEGEN_EXPRESSIONS_H

#include "graph/graph.h"

// The template for |op| when its last operand is |dtype|; NULL: kernels cannot do that.
// Reductions: the name of the combining function ("add").
const char *ft_expression_text(ft_op op, ft_dtype dtype);
// The name vector types start with ("f32", "b8"); NULL: no kernels for this dtype yet.
const char *ft_expression_type(ft_dtype dtype);
// The C type of an element in memory ("float", "uint8_t", "uint16_t" of a short float);
// NULL: no kernels.
const char *ft_expression_c_type(ft_dtype dtype);
// True for primitives that cost many instructions an element.
bool ft_expression_is_heavy(ft_op op);

#endif
