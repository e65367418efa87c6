#include "graph/fold.h"

#include "graph/dense.h"

static void store(const ft_plane *plane, void *data) {
  for (int64_t i = 0; i < plane->elements; i++) {
    if (plane->value)
      ft_element_set_f64(plane->dtype, data, i, plane->value[i]);
    else
      ft_element_set_integer(plane->dtype, data, i, plane->integer[i]);
  }
}

ft_status ft_fold_primitive(ft_op op, const ft_attr *attr, const ft_tensor *input,
                            uint32_t count, ft_dtype dtype, const ft_shape *shape,
                            ft_arena *arena, ft_tensor *out, ft_error *error) {
  ft_step step = {.op = op, .count = count, .dtype = dtype, .shape = *shape};
  if (attr) step.attr = *attr;
  ft_plane plane[3], result = {0};
  const ft_plane *in[3];
  for (uint32_t i = 0; i < count; i++) {
    step.in_shape[i] = input[i].shape;
    step.in_dtype[i] = input[i].dtype;
    plane[i] = ft_plane_from_tensor(&input[i]);
    in[i] = &plane[i];
  }
  FT_TRY(ft_dense_run(&step, in, &result, error));
  void *data;
  ft_status status = ft_tensor_alloc(dtype, shape, arena, out, &data, error);
  if (status == FT_OK) store(&result, data);
  ft_plane_release(&result);
  return status;
}
