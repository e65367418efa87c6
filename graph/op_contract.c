// Contractions: MatMul, Gemm, Conv.
#include <math.h>

#include "graph/window.h"

static uint32_t transpose(ft_lowering *l, uint32_t matrix) {
  return ft_emit(l, FT_OP_TRANSPOSE, &matrix, 1, &(ft_attr){.perm = {1, 0}});
}

// ---- MatMul ---------------------------------------------------------------------------

// A vector on the left is a row, on the right a column; its axis goes from the result.
ft_status ft_lower_mat_mul(ft_lowering *l) {
  uint32_t a = ft_lower_input(l, 0), b = ft_lower_input(l, 1);
  ft_shape left = ft_lower_shape_of(l, a), right = ft_lower_shape_of(l, b), to = {0};
  if (l->status == FT_OK && (left.rank == 0 || right.rank == 0))
    return ft_lower_fail(l, FT_REFUSED, "an operand is a scalar");
  if (left.rank == 1) a = ft_emit_place(l, a, 1, 2);
  if (right.rank == 1) b = ft_emit_place(l, b, 0, 2);
  uint32_t y = ft_emit2(l, FT_OP_MATMUL, a, b);
  ft_shape from = ft_lower_shape_of(l, y);
  for (int i = 0; i < from.rank; i++) {
    bool is_row = i == from.rank - 2, is_column = i == from.rank - 1;
    if ((is_row && left.rank == 1) || (is_column && right.rank == 1)) continue;
    to.dim[to.rank++] = from.dim[i];
  }
  return ft_lower_return(l, ft_emit_view(l, y, &to));
}

// ---- Gemm -----------------------------------------------------------------------------

static uint32_t matrix(ft_lowering *l, uint32_t index, const char *transposed) {
  uint32_t a = ft_lower_input(l, index);
  int rank = ft_lower_shape_of(l, a).rank;
  if (l->status == FT_OK && rank != 2)
    ft_lower_fail(l, FT_REFUSED, "input %u has rank %d, not 2", index, rank);
  return ft_lower_int(l, transposed, 0) ? transpose(l, a) : a;
}

static uint32_t scale(ft_lowering *l, uint32_t x, const char *factor) {
  double value = (double)ft_lower_float(l, factor, 1);
  if (value == 1 || l->status != FT_OK) return x;
  if (!ft_dtype_is_float(ft_lower_dtype(l, x)) && value != trunc(value))
    ft_lower_fail(l, FT_UNSUPPORTED, "%s is %g, the operands are %s", factor, value,
                  ft_dtype_text(ft_lower_dtype(l, x)));
  return ft_emit2(l, FT_OP_MUL, x, ft_emit_scalar(l, x, value));
}

// C is required before opset 11. Where it was broadcast by an attribute (before 7), the
// same shapes result.
ft_status ft_lower_gemm(ft_lowering *l) {
  uint32_t y = ft_emit2(l, FT_OP_MATMUL, matrix(l, 0, "transA"), matrix(l, 1, "transB"));
  uint32_t c = l->opset < 11 ? ft_lower_input(l, 2) : ft_lower_optional(l, 2);
  ft_shape shape = ft_lower_shape_of(l, y);
  y = scale(l, y, "alpha");
  if (c == FT_NONE) return ft_lower_return(l, y);
  y = ft_emit2(l, FT_OP_ADD, y, scale(l, c, "beta"));
  ft_shape sum = ft_lower_shape_of(l, y);
  if (l->status == FT_OK && !ft_shape_equal(&shape, &sum))
    return ft_lower_fail(l, FT_REFUSED, "C does not broadcast to the product");
  return ft_lower_return(l, y);
}

// ---- Conv -----------------------------------------------------------------------------

static void check_channels(ft_lowering *l, const ft_shape *x, const ft_shape *w,
                           int64_t groups) {
  if (l->status != FT_OK) return;
  int64_t channels = x->dim[1], maps = w->dim[0];
  bool fits = groups >= 1 && groups <= channels + maps && maps % groups == 0 &&
              channels % groups == 0 && w->dim[1] == channels / groups;
  if (!fits)
    ft_lower_fail(l, FT_REFUSED,
                  "%lld channels and a weight of %lld x %lld do not make %lld groups",
                  (long long)channels, (long long)maps, (long long)w->dim[1],
                  (long long)groups);
}

ft_status ft_lower_conv(ft_lowering *l) {
  uint32_t input[] = {ft_lower_input(l, 0), ft_lower_input(l, 1)};
  uint32_t bias = ft_lower_optional(l, 2);
  ft_shape x = ft_lower_shape_of(l, input[0]), weight = ft_lower_shape_of(l, input[1]);
  int64_t groups = ft_lower_int(l, "group", 1);
  ft_window window;
  ft_window_read(l, input[0], &weight, false, &window);
  check_channels(l, &x, &weight, groups);
  ft_attr attr = ft_window_attr(&window);
  attr.groups = groups;
  attr.shape.dim[1] = weight.dim[0];
  for (int i = 0; i < FT_MAX_RANK; i++) attr.window[i] = 0;
  uint32_t y = ft_emit(l, FT_OP_CONV, input, 2, &attr);
  if (bias == FT_NONE || l->status != FT_OK) return ft_lower_return(l, y);
  ft_shape shape = ft_lower_shape_of(l, bias);
  if (shape.rank != 1 || shape.dim[0] != weight.dim[0])
    return ft_lower_fail(l, FT_REFUSED, "the bias is %s for %lld maps",
                         ft_shape_text(&shape, l->graph->arena),
                         (long long)weight.dim[0]);
  return ft_lower_return(l, ft_emit2(l, FT_OP_ADD, y, ft_emit_place(l, bias, 1, x.rank)));
}
