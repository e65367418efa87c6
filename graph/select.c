#include "graph/select.h"

static ft_status prepare_concat(const ft_step *step, ft_arena *arena, ft_select *out,
                                ft_error *error) {
  int axis = step->attr->axis;
  int64_t *first = FT_NEW_ARRAY(arena, int64_t, (size_t)step->count + 1);
  FT_OOM_IF(!first, error);
  out->first = first;
  out->axis = step->shape.dim[axis];
  out->inner = 1;
  for (int i = axis + 1; i < step->shape.rank; i++) out->inner *= step->shape.dim[i];
  for (uint32_t i = 0; i < step->count; i++)
    first[i + 1] = first[i] + step->operand[i].shape.dim[axis];
  return FT_OK;
}

ft_status ft_select_make(const ft_step *step, ft_arena *arena, ft_select *out,
                         ft_error *error) {
  *out = (ft_select){.step = step};
  if (step->op == FT_OP_CONCAT) return prepare_concat(step, arena, out, error);
  ft_shape_strides(&step->operand[0].shape, out->stride);
  return FT_OK;
}

// The last operand that begins at or before |at|; empty ones begin where the next does.
static uint32_t find_part(const ft_select *s, int64_t at) {
  uint32_t low = 0, high = s->step->count;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (s->first[middle] <= at)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static void run_concat(const ft_select *s, int64_t index, uint32_t *operand,
                       int64_t *element) {
  int64_t rest = index / s->inner, at = rest % s->axis, outer = rest / s->axis;
  uint32_t part = find_part(s, at);
  int64_t length = s->first[part + 1] - s->first[part];
  *operand = part;
  *element = (outer * length + at - s->first[part]) * s->inner + index % s->inner;
}

static void run_pad(const ft_select *s, int64_t index, uint32_t *operand,
                    int64_t *element) {
  const ft_shape *to = &s->step->shape, *from = &s->step->operand[0].shape;
  int64_t at = 0;
  for (int i = to->rank - 1; i >= 0; i--) {
    int64_t coordinate = index % to->dim[i] - s->step->attr->start[i];
    index /= to->dim[i];
    if (coordinate < 0 || coordinate >= from->dim[i]) {
      *operand = 1;
      *element = 0;
      return;
    }
    at += coordinate * s->stride[i];
  }
  *operand = 0;
  *element = at;
}

void ft_select_run(const ft_select *select, const int64_t *index, size_t count,
                   uint32_t *operand, int64_t *element) {
  for (size_t j = 0; j < count; j++) {
    if (select->step->op == FT_OP_CONCAT)
      run_concat(select, index[j], &operand[j], &element[j]);
    else
      run_pad(select, index[j], &operand[j], &element[j]);
  }
}
