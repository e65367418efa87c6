// Transposes of tensors: weights mostly, large and in the order that suits nobody.
#include <string.h>

#include "graph/dense.h"

enum { TILE = 32 };

// Two axes at a time, a tile by a tile, so that neither side is walked in long strides.
typedef struct sheet {
  int64_t rows, columns;          // of the result; columns lie side by side there
  int64_t row_to;                 // distance of rows in the result
  int64_t row_from, column_from;  // distances in the operand
} sheet;

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

#define COPY_TILES(bytes)                                                             \
  static void copy_##bytes(const sheet *s, const char *from, char *to) {              \
    for (int64_t r = 0; r < s->rows; r += TILE)                                       \
      for (int64_t c = 0; c < s->columns; c += TILE)                                  \
        for (int64_t i = r; i < least(r + TILE, s->rows); i++)                        \
          for (int64_t j = c; j < least(c + TILE, s->columns); j++)                   \
            memcpy(to + (i * s->row_to + j) * (bytes),                                \
                   from + (i * s->row_from + j * s->column_from) * (bytes), (bytes)); \
  }
COPY_TILES(1)
COPY_TILES(2)
COPY_TILES(4)
COPY_TILES(8)

typedef void copy_sheet(const sheet *s, const char *from, char *to);

static copy_sheet *copier(size_t bytes) {
  return bytes == 1 ? copy_1 : bytes == 2 ? copy_2 : bytes == 4 ? copy_4 : copy_8;
}

// The axis along which the operand is read with the shortest stride, but not the last.
static int row_axis(const ft_remap *remap) {
  int best = 0;
  for (int i = 1; i < remap->rank - 1; i++)
    if (remap->stride[i] < remap->stride[best]) best = i;
  return best;
}

// Every sheet of the axes |row| and the last.
static void copy_sheets(const ft_remap *remap, int row, size_t bytes, const char *from,
                        char *to) {
  int64_t to_stride[FT_MAX_RANK], sheets = 1;
  int last = remap->rank - 1;
  for (int64_t i = last, stride = 1; i >= 0; stride *= remap->dim[i--])
    to_stride[i] = stride;
  for (int i = 0; i < last; i++) sheets *= i == row ? 1 : remap->dim[i];
  const sheet s = {remap->dim[row], remap->dim[last], to_stride[row], remap->stride[row],
                   remap->stride[last]};
  for (int64_t k = 0; k < sheets; k++) {
    int64_t rest = k, at_from = 0, at_to = 0;
    for (int i = last - 1; i >= 0; i--) {
      if (i == row) continue;
      at_from += rest % remap->dim[i] * remap->stride[i];
      at_to += rest % remap->dim[i] * to_stride[i];
      rest /= remap->dim[i];
    }
    copier(bytes)(&s, from + (size_t)at_from * bytes, to + (size_t)at_to * bytes);
  }
}

ft_status ft_dense_transpose(const ft_step *step, const ft_plane *in, ft_plane *out,
                             ft_error *error) {
  FT_TRY(ft_plane_create_tensor(step->dtype, &step->shape, out, error));
  ft_remap remap = ft_step_remap(step, 0);
  size_t bytes = ft_dtype_bytes(step->dtype);
  if (out->elements == 0) return FT_OK;
  if (remap.rank < 2)  // the elements keep their order
    memcpy(out->bytes, in->tensor.data, in->tensor.bytes);
  else
    copy_sheets(&remap, row_axis(&remap), bytes, in->tensor.data, out->bytes);
  return FT_OK;
}
