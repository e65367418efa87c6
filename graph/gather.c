#include "graph/gather.h"

static ft_gather make_elements(const ft_step *step, const int64_t *data_stride) {
  int64_t base[FT_MAX_RANK] = {0}, index[FT_MAX_RANK];
  ft_shape_strides(&step->shape, index);
  for (int i = 0; i < step->shape.rank; i++)
    base[i] = i == step->attr->axis ? 0 : data_stride[i];
  return (ft_gather){.index = ft_remap_affine(&step->shape, 0, index),
                     .base = ft_remap_affine(&step->shape, 0, base)};
}

static ft_gather make_slabs(const ft_step *step, const int64_t *data_stride) {
  const ft_shape *indices = &step->operand[1].shape;
  int64_t base[FT_MAX_RANK] = {0}, index[FT_MAX_RANK] = {0}, own[FT_MAX_RANK];
  int axis = step->attr->axis, after = axis + indices->rank;
  ft_shape_strides(indices, own);
  for (int i = 0; i < axis; i++) base[i] = data_stride[i];
  for (int i = 0; i < indices->rank; i++) index[axis + i] = own[i];
  for (int i = after; i < step->shape.rank; i++)
    base[i] = data_stride[i - after + axis + 1];
  return (ft_gather){.index = ft_remap_affine(&step->shape, 0, index),
                     .base = ft_remap_affine(&step->shape, 0, base)};
}

ft_gather ft_gather_make(const ft_step *step) {
  int64_t stride[FT_MAX_RANK];
  ft_shape_strides(&step->operand[0].shape, stride);
  ft_gather gather =
      step->op == FT_OP_GATHER ? make_slabs(step, stride) : make_elements(step, stride);
  gather.step = step;
  gather.limit = step->operand[0].shape.dim[step->attr->axis];
  gather.stride = stride[step->attr->axis];
  return gather;
}

static ft_status refuse(const ft_gather *g, int64_t at, int64_t index, ft_error *error) {
  int64_t position;
  ft_remap_list(&g->index, &at, 1, &position);
  FT_FAIL(error, FT_INVALID_ARGUMENT,
          "%s of '%s': index %lld at element %lld of the indices is not in [%lld, %lld)",
          ft_op_describe(g->step->op)->name, g->step->name, (long long)index,
          (long long)position, -(long long)g->limit, (long long)g->limit);
}

ft_status ft_gather_run(const ft_gather *gather, const int64_t *at, const ft_cells *found,
                        size_t count, int64_t *element, ft_error *error) {
  for (size_t j = 0; j < count; j++) {
    int64_t index = found->integer[j],
            wrapped = index < 0 ? index + gather->limit : index;
    if (wrapped < 0 || wrapped >= gather->limit) {
      // Without any element to stand for it there is no uncertain answer either.
      if (found->scale[j] == 0 || gather->limit == 0)
        return refuse(gather, at[j], index, error);
      wrapped = 0;
    }
    ft_remap_list(&gather->base, &at[j], 1, &element[j]);
    element[j] += wrapped * gather->stride;
  }
  return FT_OK;
}
