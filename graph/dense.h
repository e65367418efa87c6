// dense - one primitive over whole planes. Private to graph/: the interpreter and the
// folder run on it.
#ifndef FT_GRAPH_DENSE_H
#define FT_GRAPH_DENSE_H

#include "graph/plane.h"
#include "graph/remap.h"

// A primitive with all that its evaluation needs, shapes as inferred (a view's own).
typedef struct ft_step {
  ft_op op;
  ft_attr attr;
  uint32_t count;
  ft_shape in_shape[3];
  ft_dtype in_dtype[3];
  ft_dtype dtype;
  ft_shape shape;
} ft_step;

ft_step ft_step_of(const ft_graph *graph, const ft_primitive *primitive);
// The dtype that chooses the kernel: of the last operand (WHERE has a condition first).
ft_dtype ft_step_operand_dtype(const ft_step *step);
// How the elements of the result find those of operand |i| (not for reductions).
ft_remap ft_step_remap(const ft_step *step, uint32_t i);

// Runs |step| on |in[step->count]|. *out is all zero, and then created
// (ft_plane_release it), or has float columns of the right size that no operand is in.
// Errors, with *out released: OUT_OF_MEMORY; UNSUPPORTED when the op has no meaning for
// the dtype.
FT_MUST_CHECK ft_status ft_dense_run(const ft_step *step, const ft_plane *const *in,
                                     ft_plane *out, ft_error *error);

#endif
