// step - one primitive with all that its evaluation needs, shapes as inferred (a view's
// own). Private to graph/: both interpreters and the folder work on steps.
#ifndef FT_GRAPH_STEP_H
#define FT_GRAPH_STEP_H

#include "graph/graph.h"
#include "graph/remap.h"

typedef struct ft_operand {
  ft_dtype dtype;
  ft_shape shape;
} ft_operand;

typedef struct ft_step {
  ft_op op;
  const char *name;  // of the result, for errors
  const ft_attr *attr;
  uint32_t count;
  const ft_operand *operand;  // [count]
  ft_dtype dtype;
  ft_shape shape;
} ft_step;

// How a primitive is evaluated.
typedef enum ft_step_kind {
  FT_STEP_POINTWISE,  // an elementwise kernel on operands found by remaps; at most 3
  FT_STEP_SELECT,     // each element is one of one operand, known from its position
  FT_STEP_GATHER,     // each element is one of operand 0, operand 1 says which
  FT_STEP_ROWS,       // each element is made of a row of terms (rows.h)
} ft_step_kind;

// |out->operand| is in |arena|, the rest borrowed from the graph. OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_step_of(const ft_graph *graph, const ft_primitive *primitive,
                                   ft_arena *arena, ft_step *out, ft_error *error);
ft_step_kind ft_step_kind_of(ft_op op);
// The dtype that chooses the kernel: of the last operand (WHERE has a condition first).
ft_dtype ft_step_operand_dtype(const ft_step *step);
// How the elements of a pointwise result find those of operand |i|.
ft_remap ft_step_remap(const ft_step *step, uint32_t i);

#endif
