// The shape rules of the index remaps with attributes of their own.
#include "graph/infer.h"

bool ft_infer_is_shape(const ft_shape *shape) {
  bool valid = shape->rank <= FT_MAX_RANK;
  for (int i = 0; valid && i < shape->rank; i++) valid = shape->dim[i] >= 0;
  return valid;
}

static const ft_shape *shape_of(const ft_inference *in, uint32_t i) {
  return &in->graph->value[in->input[i]].shape;
}

static const char *text_of(const ft_inference *in, uint32_t i) {
  return ft_value_text(in->graph, in->input[i]);
}

// The result's shape from the attribute, of |rank|.
static ft_status take_shape(const ft_inference *in, uint8_t rank, ft_error *error) {
  if (!ft_infer_is_shape(&in->attr->shape) || in->attr->shape.rank != rank)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%s of %s to %s", ft_op_describe(in->op)->name,
            text_of(in, 0),
            ft_infer_is_shape(&in->attr->shape)
                ? ft_shape_text(&in->attr->shape, in->graph->arena)
                : "an invalid shape");
  for (int i = rank; i < FT_MAX_RANK; i++) in->attr->shape.dim[i] = 0;
  *in->out = in->attr->shape;
  return FT_OK;
}

// ---- slice ----------------------------------------------------------------------

// Where the last element of an axis comes from; false when that overflows.
static bool last_position(int64_t start, int64_t step, int64_t count, int64_t *out) {
  int64_t distance;
  return !__builtin_mul_overflow(count - 1, step, &distance) &&
         !__builtin_add_overflow(start, distance, out);
}

static ft_status check_slice(const ft_inference *in, int axis, ft_error *error) {
  int64_t *start = &in->attr->start[axis], *step = &in->attr->step[axis], last;
  int64_t count = in->out->dim[axis], dim = shape_of(in, 0)->dim[axis];
  if (*step == 0)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "slice of %s: the step of axis %d is 0",
            text_of(in, 0), axis);
  if (count == 0) *start = 0;
  if (count <= 1) *step = 1;
  if (count == 0) return FT_OK;
  if (*start < 0 || *start >= dim || !last_position(*start, *step, count, &last) ||
      last < 0 || last >= dim)
    FT_FAIL(error, FT_INVALID_ARGUMENT,
            "slice of %s: %lld elements of axis %d from %lld by %lld", text_of(in, 0),
            (long long)count, axis, (long long)*start, (long long)*step);
  return FT_OK;
}

ft_status ft_infer_slice(const ft_inference *in, ft_error *error) {
  FT_TRY(take_shape(in, shape_of(in, 0)->rank, error));
  for (int i = 0; i < FT_MAX_RANK; i++) {
    if (i < in->out->rank)
      FT_TRY(check_slice(in, i, error));
    else
      in->attr->start[i] = in->attr->step[i] = 0;
  }
  return FT_OK;
}

// ---- concat ---------------------------------------------------------------------

static ft_status check_axis(const ft_inference *in, ft_error *error) {
  if (in->attr->axis >= shape_of(in, 0)->rank)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%s of %s along axis %u",
            ft_op_describe(in->op)->name, text_of(in, 0), in->attr->axis);
  return FT_OK;
}

static bool same_but(const ft_shape *a, const ft_shape *b, int axis) {
  bool same = a->rank == b->rank;
  for (int i = 0; same && i < a->rank; i++) same = i == axis || a->dim[i] == b->dim[i];
  return same;
}

ft_status ft_infer_concat(const ft_inference *in, ft_error *error) {
  FT_TRY(check_axis(in, error));
  int axis = in->attr->axis;
  *in->out = *shape_of(in, 0);
  for (uint32_t i = 1; i < in->count; i++) {
    if (!same_but(shape_of(in, 0), shape_of(in, i), axis))
      FT_FAIL(error, FT_INVALID_ARGUMENT, "concat of %s with %s along axis %d",
              text_of(in, 0), text_of(in, i), axis);
    if (__builtin_add_overflow(in->out->dim[axis], shape_of(in, i)->dim[axis],
                               &in->out->dim[axis]))
      FT_FAIL(error, FT_REFUSED, "concat with %s is longer than 2^63", text_of(in, i));
  }
  return FT_OK;
}

// ---- pad ------------------------------------------------------------------------

ft_status ft_infer_pad(const ft_inference *in, ft_error *error) {
  const ft_shape *from = shape_of(in, 0);
  FT_TRY(take_shape(in, from->rank, error));
  if (shape_of(in, 1)->rank != 0)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "pad of %s with %s, which is no scalar",
            text_of(in, 0), text_of(in, 1));
  for (int i = 0; i < FT_MAX_RANK; i++) {
    int64_t *start = &in->attr->start[i], end;
    if (i >= from->rank) {
      *start = 0;
      continue;
    }
    if (*start < 0 || __builtin_add_overflow(*start, from->dim[i], &end) ||
        end > in->out->dim[i])
      FT_FAIL(error, FT_INVALID_ARGUMENT,
              "pad of %s: %lld before axis %d of %lld in all (negative pads are slices)",
              text_of(in, 0), (long long)*start, i, (long long)in->out->dim[i]);
  }
  return FT_OK;
}

// ---- gather ---------------------------------------------------------------------

ft_status ft_infer_gather(const ft_inference *in, ft_error *error) {
  const ft_shape *data = shape_of(in, 0), *index = shape_of(in, 1);
  FT_TRY(check_axis(in, error));
  int rank = data->rank - 1 + index->rank, axis = in->attr->axis;
  if (rank > FT_MAX_RANK)
    FT_FAIL(error, FT_REFUSED, "gather of %s at %s has rank %d", text_of(in, 0),
            text_of(in, 1), rank);
  *in->out = (ft_shape){.rank = (uint8_t)rank};
  int64_t *dim = in->out->dim;
  for (int i = 0; i < axis; i++) *dim++ = data->dim[i];
  for (int i = 0; i < index->rank; i++) *dim++ = index->dim[i];
  for (int i = axis + 1; i < data->rank; i++) *dim++ = data->dim[i];
  return FT_OK;
}

ft_status ft_infer_gather_elements(const ft_inference *in, ft_error *error) {
  const ft_shape *data = shape_of(in, 0), *index = shape_of(in, 1);
  FT_TRY(check_axis(in, error));
  bool fits = data->rank == index->rank;
  for (int i = 0; fits && i < data->rank; i++)
    fits = i == in->attr->axis || index->dim[i] <= data->dim[i];
  if (!fits)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "gather_elements of %s at %s along axis %u",
            text_of(in, 0), text_of(in, 1), in->attr->axis);
  *in->out = *index;
  return FT_OK;
}
