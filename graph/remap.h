// remap - which element of one tensor belongs to an element of another, both row-major.
// Private to graph/. Views need none: they keep the row-major order.
#ifndef FT_GRAPH_REMAP_H
#define FT_GRAPH_REMAP_H

#include <stddef.h>

#include "graph/tensor.h"

// Position i of a space with these dims goes to base + sum coordinate * stride. Adjacent
// dims that move together are merged, dims of 1 dropped.
typedef struct ft_remap {
  uint8_t rank;
  int64_t base;
  int64_t dim[FT_MAX_RANK], stride[FT_MAX_RANK];
  bool is_identity;  // i goes to i
} ft_remap;

// From the elements of |to| to those of |from|, which broadcasts to it NumPy-style.
ft_remap ft_remap_broadcast(const ft_shape *from, const ft_shape *to);
// From the elements of the transpose (dim i = from->dim[perm[i]]) to those of |from|.
ft_remap ft_remap_transpose(const ft_shape *from, const uint8_t *perm);
// From the elements of the slice |to| to those of |from|, as FT_OP_SLICE says.
ft_remap ft_remap_slice(const ft_shape *from, const ft_shape *to, const int64_t *start,
                        const int64_t *step);
// From the elements of |space| to base + sum coordinate[i] * stride[i].
ft_remap ft_remap_affine(const ft_shape *space, int64_t base, const int64_t *stride);
// From the elements of |from| to those of its reduction over the bits of |axes|.
ft_remap ft_remap_reduce(const ft_shape *from, uint32_t axes);
// From the elements of the reduction to the first element of each one's row.
ft_remap ft_remap_row_start(const ft_shape *from, uint32_t axes);
// From positions in a row, row-major over the reduced axes, to the distance from its
// first element.
ft_remap ft_remap_row_step(const ft_shape *from, uint32_t axes);

// out[j] = where start + j goes; [start, start + count) is inside the space.
void ft_remap_run(const ft_remap *remap, int64_t start, size_t count, int64_t *out);
// out[j] = where index[j] goes; in place is fine.
void ft_remap_list(const ft_remap *remap, const int64_t *index, size_t count,
                   int64_t *out);

#endif
