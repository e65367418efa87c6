#include "graph/fold.h"

#include <string.h>

#include "graph/dense.h"

static void store(const ft_plane *plane, void *data) {
  if (plane->tensor.data) {
    memcpy(data, plane->tensor.data, plane->tensor.bytes);
    return;
  }
  for (int64_t i = 0; i < plane->elements; i++) {
    if (plane->value)
      ft_element_set_f64(plane->dtype, data, i, plane->value[i]);
    else
      ft_element_set_integer(plane->dtype, data, i, plane->integer[i]);
  }
}

static ft_status run(const ft_step *step, const ft_plane *const *in, ft_arena *arena,
                     ft_tensor *out, ft_error *error) {
  ft_plane result = {0};
  FT_TRY(ft_dense_run(step, in, &result, error));
  void *data;
  ft_status status = ft_tensor_alloc(step->dtype, &step->shape, arena, out, &data, error);
  if (status == FT_OK) store(&result, data);
  ft_plane_release(&result);
  return status;
}

ft_status ft_fold_primitive(ft_op op, const ft_attr *attr, const ft_tensor *input,
                            uint32_t count, ft_dtype dtype, const ft_shape *shape,
                            ft_arena *arena, ft_tensor *out, ft_error *error) {
  static const ft_attr none;
  ft_operand *operand = FT_NEW_ARRAY(arena, ft_operand, count);
  ft_plane *plane = FT_NEW_ARRAY(arena, ft_plane, count);
  const ft_plane **in = FT_NEW_ARRAY(arena, const ft_plane *, count);
  FT_OOM_IF(!operand || !plane || !in, error);
  for (uint32_t i = 0; i < count; i++) {
    operand[i] = (ft_operand){input[i].dtype, input[i].shape};
    plane[i] = ft_plane_from_tensor(&input[i]);
    in[i] = &plane[i];
  }
  ft_step step = {.op = op,
                  .name = "a constant",
                  .attr = attr ? attr : &none,
                  .count = count,
                  .operand = operand,
                  .dtype = dtype,
                  .shape = *shape};
  return run(&step, in, arena, out, error);
}
