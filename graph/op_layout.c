// DepthToSpace and SpaceToDepth: a view, a transpose, a view.
#include "graph/lower.h"

// Views x as |split|, transposes, views the result as |to|.
static ft_status rearrange(ft_lowering *l, uint32_t x, const ft_shape *split,
                           const uint8_t *perm, const ft_shape *to) {
  ft_attr attr = {0};
  for (int i = 0; i < split->rank; i++) attr.perm[i] = perm[i];
  uint32_t view = ft_emit_view(l, x, split);
  return ft_lower_return(
      l, ft_emit_view(l, ft_emit(l, FT_OP_TRANSPOSE, &view, 1, &attr), to));
}

static int64_t block_size(ft_lowering *l, const ft_shape *shape) {
  int64_t size = ft_lower_int(l, "blocksize", 0);
  if (l->status == FT_OK && shape->rank != 4)
    ft_lower_fail(l, FT_REFUSED, "the input has rank %d, not 4", shape->rank);
  if (size < 1 || size > 1 << 15)
    ft_lower_fail(l, FT_REFUSED, "blocksize is %lld", (long long)size);
  return l->status == FT_OK ? size : 1;
}

static void divide(ft_lowering *l, int64_t *extent, int64_t by) {
  if (*extent % by)
    ft_lower_fail(l, FT_REFUSED, "%lld is no multiple of %lld", (long long)*extent,
                  (long long)by);
  else
    *extent /= by;
}

ft_status ft_lower_depth_to_space(ft_lowering *l) {
  static const uint8_t depth_first[] = {0, 3, 4, 1, 5, 2}, columns[] = {0, 1, 4, 2, 5, 3};
  uint32_t x = ft_lower_input(l, 0);
  ft_shape in = ft_lower_shape_of(l, x), to = in;
  int64_t b = block_size(l, &in);
  ft_span mode = ft_lower_text(l, "mode", "DCR");
  bool is_crd = ft_span_is(mode, "CRD");
  if (!is_crd && !ft_span_is(mode, "DCR"))
    return ft_lower_fail(l, FT_REFUSED, "mode is '%.*s'", FT_SPAN_SHOW(mode));
  divide(l, &to.dim[1], b * b);
  if (l->status != FT_OK) return l->status;
  ft_shape split = {.rank = 6, .dim = {in.dim[0], b, b, to.dim[1], in.dim[2], in.dim[3]}};
  if (is_crd) {
    split.dim[1] = to.dim[1];
    split.dim[3] = b;
  }
  to.dim[2] *= b;
  to.dim[3] *= b;
  return rearrange(l, x, &split, is_crd ? columns : depth_first, &to);
}

ft_status ft_lower_space_to_depth(ft_lowering *l) {
  static const uint8_t perm[] = {0, 3, 5, 1, 2, 4};
  uint32_t x = ft_lower_input(l, 0);
  ft_shape in = ft_lower_shape_of(l, x), to = in;
  int64_t b = block_size(l, &in);
  if (l->status == FT_OK) divide(l, &to.dim[2], b);
  if (l->status == FT_OK) divide(l, &to.dim[3], b);
  if (l->status != FT_OK) return l->status;
  ft_shape split = {.rank = 6, .dim = {in.dim[0], in.dim[1], to.dim[2], b, to.dim[3], b}};
  to.dim[1] *= b * b;
  return rearrange(l, x, &split, perm, &to);
}
