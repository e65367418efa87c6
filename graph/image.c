#include "graph/image.h"

#include <string.h>

ft_status ft_image_make(const ft_rows *rows, const ft_plane *x, ft_arena *arena,
                        ft_image *out, ft_error *error) {
  *out = (ft_image){.rows = rows, .value = x->value, .scale = x->scale, .positions = 1};
  const ft_shape *shape = &rows->step->shape;
  for (int i = 2; i < shape->rank; i++) out->positions *= shape->dim[i];
  if (!x->tensor.data) return FT_OK;
  double *value = FT_NEW_ARRAY(arena, double, (size_t)x->elements);
  FT_OOM_IF(!value, error);
  for (int64_t i = 0; i < x->elements; i++) value[i] = ft_tensor_get_f64(&x->tensor, i);
  out->value = value;
  return FT_OK;
}

// A stretch along the last spatial axis: from |first| by |step| within [0, limit).
typedef struct stretch {
  int64_t first, step, limit;
  size_t count, low, high;  // [low, high) lies inside
} stretch;

static size_t clamp(int64_t x, size_t most) {
  return x < 0 ? 0 : (uint64_t)x < most ? (size_t)x : most;
}

static void find_inside(stretch *s) {
  int64_t last = s->limit - 1 - s->first;
  s->low = s->first >= 0 ? 0 : clamp((-s->first + s->step - 1) / s->step, s->count);
  s->high = last < 0 ? 0 : clamp(last / s->step + 1, s->count);
  if (s->high < s->low) s->high = s->low;
}

static void copy(const stretch *s, const double *from, double *to) {
  if (!from) {
    memset(to, 0, s->count * sizeof *to);
    return;
  }
  memset(to, 0, s->low * sizeof *to);
  if (s->step == 1)
    memcpy(to + s->low, from + s->first + (int64_t)s->low,
           (s->high - s->low) * sizeof *to);
  else
    for (size_t j = s->low; j < s->high; j++)
      to[j] = from[s->first + (int64_t)j * s->step];
  memset(to + s->high, 0, (s->count - s->high) * sizeof *to);
}

// Decodes |term| into positions in the input of output position 0; returns the channel.
static int64_t origins(const ft_rows *r, int64_t term, int64_t *origin) {
  const ft_attr *attr = r->step->attr;
  for (int i = r->window.rank - 1; i >= 0; i--) {
    origin[i] = term % r->window.dim[i] * attr->dilation[i] - attr->start[i];
    term /= r->window.dim[i];
  }
  return term;
}

// Where the line of output position |at| begins in the input, -1 when in the padding.
static int64_t line_of(const ft_rows *r, const int64_t *origin, int64_t at) {
  const ft_step *step = r->step;
  int64_t to = 0;
  at /= step->shape.dim[r->window.rank + 1];
  for (int i = r->window.rank - 2; i >= 0; i--) {
    int64_t dim = step->shape.dim[i + 2];
    int64_t position = origin[i] + at % dim * step->attr->stride[i];
    if (position < 0 || position >= step->operand[0].shape.dim[i + 2]) return -1;
    to += position * r->stride[i + 2];
    at /= dim;
  }
  return to;
}

void ft_image_row(const ft_image *image, int64_t start, int64_t term, int64_t first,
                  size_t count, double *value, double *scale) {
  const ft_rows *r = image->rows;
  int64_t origin[FT_MAX_RANK];
  start += origins(r, term, origin) * r->stride[1];
  int last = r->window.rank - 1;
  if (last < 0) {
    value[0] = image->value[start];
    scale[0] = image->scale ? image->scale[start] : 0;
    return;
  }
  int64_t length = r->step->shape.dim[last + 2], step = r->step->attr->stride[last];
  for (size_t done = 0; done < count;) {
    int64_t at = first + (int64_t)done, along = at % length;
    int64_t line = line_of(r, origin, at);
    stretch s = {.first = origin[last] + along * step,
                 .step = step,
                 .limit = line < 0 ? 0 : r->step->operand[0].shape.dim[last + 2],
                 .count = clamp(length - along, count - done)};
    find_inside(&s);
    copy(&s, image->value + start + line * (line >= 0), value + done);
    copy(&s, image->scale ? image->scale + start + line * (line >= 0) : NULL,
         scale + done);
    done += s.count;
  }
}
