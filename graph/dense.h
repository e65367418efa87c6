// dense - one primitive over whole planes. Private to graph/: the interpreter and the
// folder run on it.
#ifndef FT_GRAPH_DENSE_H
#define FT_GRAPH_DENSE_H

#include "graph/plane.h"
#include "graph/step.h"

// Runs |step| on |in[step->count]|. *out is all zero, and then created
// (ft_plane_release it), or has float columns of the right size that no operand is in.
// It becomes columns, or a tensor of its own when a remap reads a tensor.
// Errors, with *out released: OUT_OF_MEMORY; UNSUPPORTED when the op has no meaning for
// the dtype; INVALID_ARGUMENT for an index out of range.
FT_MUST_CHECK ft_status ft_dense_run(const ft_step *step, const ft_plane *const *in,
                                     ft_plane *out, ft_error *error);

// ---- its parts ------------------------------------------------------------------

// Windows and contractions, term by term; |out| is created. OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_dense_rows(const ft_step *step, const ft_plane *const *in,
                                      ft_plane *out, ft_error *error);
// Contractions of floats, in blocks. The same bits as ft_dense_rows.
FT_MUST_CHECK ft_status ft_dense_contract(const ft_step *step, const ft_plane *const *in,
                                          ft_plane *out, ft_error *error);
// TRANSPOSE, BROADCAST, SLICE, in tiles; |out| as for ft_dense_run, not released on an
// error. OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_dense_copy(const ft_step *step, const ft_plane *in,
                                      ft_plane *out, ft_error *error);

#endif
