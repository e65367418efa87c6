#include "graph/remap.h"

// Appends an axis, merging it into the last one when both move together.
static void add_axis(ft_remap *remap, int64_t dim, int64_t stride) {
  if (dim == 1) return;
  if (remap->rank) {
    int last = remap->rank - 1;
    if (remap->stride[last] == stride * dim) {
      remap->dim[last] *= dim;
      remap->stride[last] = stride;
      return;
    }
  }
  remap->dim[remap->rank] = dim;
  remap->stride[remap->rank++] = stride;
}

static ft_remap closed(ft_remap remap) {
  bool in_order = remap.rank == 0 || (remap.rank == 1 && remap.stride[0] == 1);
  remap.is_identity = in_order && remap.base == 0;
  return remap;
}

ft_remap ft_remap_broadcast(const ft_shape *from, const ft_shape *to) {
  ft_remap remap = {0};
  int64_t stride[FT_MAX_RANK];
  ft_shape_strides(from, stride);
  for (int i = 0; i < to->rank; i++) {
    int axis = i - (to->rank - from->rank);
    bool repeats = axis < 0 || from->dim[axis] == 1;
    add_axis(&remap, to->dim[i], repeats ? 0 : stride[axis]);
  }
  return closed(remap);
}

ft_remap ft_remap_transpose(const ft_shape *from, const uint8_t *perm) {
  ft_remap remap = {0};
  int64_t stride[FT_MAX_RANK];
  ft_shape_strides(from, stride);
  for (int i = 0; i < from->rank; i++)
    add_axis(&remap, from->dim[perm[i]], stride[perm[i]]);
  return closed(remap);
}

ft_remap ft_remap_affine(const ft_shape *space, int64_t base, const int64_t *stride) {
  ft_remap remap = {.base = base};
  for (int i = 0; i < space->rank; i++) add_axis(&remap, space->dim[i], stride[i]);
  return closed(remap);
}

ft_remap ft_remap_slice(const ft_shape *from, const ft_shape *to, const int64_t *start,
                        const int64_t *step) {
  int64_t stride[FT_MAX_RANK], base = 0;
  ft_shape_strides(from, stride);
  for (int i = 0; i < to->rank; i++) {
    base += start[i] * stride[i];
    stride[i] *= to->dim[i] > 1 ? step[i] : 1;  // a longer step could overflow
  }
  return ft_remap_affine(to, base, stride);
}

static ft_shape reduced(const ft_shape *from, uint32_t axes) {
  ft_shape shape = *from;
  for (int i = 0; i < from->rank; i++)
    if (axes >> i & 1) shape.dim[i] = 1;
  return shape;
}

ft_remap ft_remap_reduce(const ft_shape *from, uint32_t axes) {
  ft_shape to = reduced(from, axes);
  return ft_remap_broadcast(&to, from);
}

ft_remap ft_remap_row_start(const ft_shape *from, uint32_t axes) {
  ft_remap remap = {0};
  int64_t stride[FT_MAX_RANK];
  ft_shape_strides(from, stride);
  for (int i = 0; i < from->rank; i++)
    if (!(axes >> i & 1)) add_axis(&remap, from->dim[i], stride[i]);
  return closed(remap);
}

ft_remap ft_remap_row_step(const ft_shape *from, uint32_t axes) {
  return ft_remap_row_start(from, ~axes);
}

void ft_remap_list(const ft_remap *remap, const int64_t *index, size_t count,
                   int64_t *out) {
  for (size_t j = 0; j < count; j++) {
    int64_t rest = index[j], to = remap->base;
    for (int i = remap->rank - 1; i > 0; i--) {
      to += rest % remap->dim[i] * remap->stride[i];
      rest /= remap->dim[i];
    }
    out[j] = remap->rank ? to + rest * remap->stride[0] : to;
  }
}

// Walks whole stretches of the innermost axis.
void ft_remap_run(const ft_remap *remap, int64_t start, size_t count, int64_t *out) {
  if (remap->rank == 0) {
    for (size_t j = 0; j < count; j++) out[j] = remap->base;
    return;
  }
  int last = remap->rank - 1;
  int64_t inner = remap->dim[last], step = remap->stride[last];
  while (count) {
    int64_t first;
    ft_remap_list(remap, &start, 1, &first);
    int64_t left = inner - start % inner;
    size_t stretch = (uint64_t)left < count ? (size_t)left : count;
    for (size_t j = 0; j < stretch; j++) out[j] = first + (int64_t)j * step;
    out += stretch, count -= stretch, start += (int64_t)stretch;
  }
}
