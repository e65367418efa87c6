// TRANSPOSE, BROADCAST and SLICE. Of a tensor they make a tensor, so that weights stay as
// small as they are; of columns, columns.
#include <stdlib.h>
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

// The axis along which the operand is read with the shortest stride, but not the last;
// -1 when there is none.
static int row_axis(const ft_remap *remap) {
  int best = remap->rank - 2 < 0 ? -1 : 0;
  for (int i = 1; i < remap->rank - 1; i++)
    if (llabs(remap->stride[i]) < llabs(remap->stride[best])) best = i;
  return best;
}

// Where sheet |k| begins, in the operand and in the result.
static void find_sheet(const ft_remap *remap, int row, const int64_t *to_stride,
                       int64_t k, int64_t *from, int64_t *to) {
  *from = remap->base, *to = 0;
  for (int i = remap->rank - 2; i >= 0; i--) {
    if (i == row) continue;
    *from += k % remap->dim[i] * remap->stride[i];
    *to += k % remap->dim[i] * to_stride[i];
    k /= remap->dim[i];
  }
}

// Every sheet of an axis and the last; there is at least one element.
static void copy_all(const ft_remap *remap, size_t bytes, const void *from, void *to) {
  int64_t to_stride[FT_MAX_RANK], sheets = 1;
  int last = remap->rank - 1, row = row_axis(remap);
  sheet s = {.rows = 1, .columns = 1};
  if (last >= 0) s.columns = remap->dim[last], s.column_from = remap->stride[last];
  for (int64_t i = last, stride = 1; i >= 0; stride *= remap->dim[i--])
    to_stride[i] = stride;
  if (row >= 0) {
    s.rows = remap->dim[row];
    s.row_from = remap->stride[row];
    s.row_to = to_stride[row];
  }
  for (int i = 0; i < last; i++) sheets *= i == row ? 1 : remap->dim[i];
  for (int64_t k = 0; k < sheets; k++) {
    int64_t at_from, at_to;
    find_sheet(remap, row, to_stride, k, &at_from, &at_to);
    copier(bytes)(&s, (const char *)from + (size_t)at_from * bytes,
                  (char *)to + (size_t)at_to * bytes);
  }
}

static ft_status copy_columns(const ft_step *step, const ft_remap *remap,
                              const ft_plane *in, ft_plane *out, ft_error *error) {
  int64_t elements = ft_shape_elements(&step->shape);
  if (!out->value) FT_TRY(ft_plane_create(step->dtype, elements, out, error));
  if (elements == 0) return FT_OK;
  if (in->value) {
    copy_all(remap, sizeof *in->value, in->value, out->value);
    copy_all(remap, sizeof *in->scale, in->scale, out->scale);
    return FT_OK;
  }
  copy_all(remap, sizeof *in->integer, in->integer, out->integer);
  if (!in->scale) return FT_OK;
  int overflow = 0;
  size_t bytes = ft_checked_mul((size_t)elements, sizeof *out->scale, &overflow);
  out->scale = overflow ? NULL : ft_allocate(ft_allocator_system(), bytes, 64);
  FT_OOM_IF(!out->scale, error);
  copy_all(remap, sizeof *in->scale, in->scale, out->scale);
  return FT_OK;
}

ft_status ft_dense_copy(const ft_step *step, const ft_plane *in, ft_plane *out,
                        ft_error *error) {
  ft_remap remap = ft_step_remap(step, 0);
  if (!in->tensor.data) return copy_columns(step, &remap, in, out, error);
  ft_plane_release(out);
  FT_TRY(ft_plane_create_tensor(step->dtype, &step->shape, out, error));
  if (out->elements)
    copy_all(&remap, ft_dtype_bytes(step->dtype), in->tensor.data, out->bytes);
  return FT_OK;
}
