#include "graph/plane.h"

#include <string.h>

static const double zeros[FT_PLANE_CHUNK];

ft_plane ft_plane_from_tensor(const ft_tensor *tensor) {
  return (ft_plane){.dtype = tensor->dtype,
                    .elements = ft_shape_elements(&tensor->shape),
                    .tensor = *tensor};
}

static void *column(int64_t elements) {
  int overflow = 0;
  size_t bytes = ft_checked_mul((size_t)elements, 8, &overflow);
  return overflow ? NULL : ft_allocate(ft_allocator_system(), bytes ? bytes : 8, 64);
}

ft_status ft_plane_create(ft_dtype dtype, int64_t elements, ft_plane *out,
                          ft_error *error) {
  *out = (ft_plane){.dtype = dtype, .elements = elements};
  bool is_float = ft_dtype_is_float(dtype);
  if (is_float) {
    out->value = column(elements);
    out->scale = column(elements);
  } else {
    out->integer = column(elements);
  }
  if (is_float ? out->value && out->scale : out->integer != NULL) return FT_OK;
  ft_plane_release(out);
  FT_FAIL(error, FT_OUT_OF_MEMORY, "out of memory for %lld elements of the reference",
          (long long)elements);
}

void ft_plane_release(ft_plane *plane) {
  ft_release(ft_allocator_system(), plane->value);
  ft_release(ft_allocator_system(), plane->scale);
  ft_release(ft_allocator_system(), plane->integer);
  plane->value = plane->scale = NULL;
  plane->integer = NULL;
  if (!plane->bytes) return;
  ft_release(ft_allocator_system(), plane->bytes);
  plane->bytes = NULL;
  plane->tensor.data = NULL;
}

ft_status ft_plane_create_tensor(ft_dtype dtype, const ft_shape *shape, ft_plane *out,
                                 ft_error *error) {
  int overflow = 0;
  size_t bytes =
      ft_checked_mul((size_t)ft_shape_elements(shape), ft_dtype_bytes(dtype), &overflow);
  void *data =
      overflow ? NULL : ft_allocate(ft_allocator_system(), bytes ? bytes : 1, 64);
  FT_OOM_IF(!data, error);
  ft_tensor tensor = {.dtype = dtype, .shape = *shape, .data = data, .bytes = bytes};
  *out = ft_plane_from_tensor(&tensor);
  out->bytes = data;
  return FT_OK;
}

// ---- reading --------------------------------------------------------------------

int64_t ft_tensor_integer(const ft_tensor *tensor, int64_t index) {
  if (tensor->dtype != FT_U64) return ft_tensor_get_i64(tensor, index);
  int64_t bits;
  memcpy(&bits, (const char *)tensor->data + (size_t)index * 8, 8);
  return bits;
}

void ft_element_set_integer(ft_dtype dtype, void *data, int64_t index, int64_t value) {
  if (dtype == FT_U64)
    memcpy((char *)data + (size_t)index * 8, &value, 8);
  else
    ft_element_set_i64(dtype, data, index, value);
}

static double f32_at(const ft_tensor *tensor, int64_t index) {
  float x;
  memcpy(&x, (const char *)tensor->data + (size_t)index * 4, 4);
  return (double)x;
}

#define FILL(into, expression) \
  for (size_t j = 0; j < count; j++) (into)[j] = (expression)

static void gather_tensor(const ft_tensor *tensor, const int64_t *index, size_t count,
                          const ft_cells *out) {
  memset(out->scale, 0, count * sizeof out->scale[0]);
  if (tensor->dtype == FT_F32)
    FILL(out->value, f32_at(tensor, index[j]));
  else if (ft_dtype_is_float(tensor->dtype))
    FILL(out->value, ft_tensor_get_f64(tensor, index[j]));
  else
    FILL(out->integer, ft_tensor_integer(tensor, index[j]));
}

void ft_plane_gather(const ft_plane *plane, const int64_t *index, size_t count,
                     const ft_cells *out) {
  if (plane->tensor.data) {
    gather_tensor(&plane->tensor, index, count, out);
    return;
  }
  if (plane->value)
    FILL(out->value, plane->value[index[j]]);
  else
    FILL(out->integer, plane->integer[index[j]]);
  FILL(out->scale, plane->scale ? plane->scale[index[j]] : 0);
}

ft_cells ft_plane_read(const ft_plane *plane, int64_t start, size_t count,
                       ft_chunk *chunk) {
  ft_cells cells = {chunk->value, (double *)(uintptr_t)zeros, chunk->integer};
  const ft_tensor *tensor = &plane->tensor;
  if (tensor->data) {
    if (tensor->dtype == FT_F32)
      FILL(chunk->value, f32_at(tensor, start + (int64_t)j));
    else if (ft_dtype_is_float(tensor->dtype))
      FILL(chunk->value, ft_tensor_get_f64(tensor, start + (int64_t)j));
    else
      FILL(chunk->integer, ft_tensor_integer(tensor, start + (int64_t)j));
    return cells;
  }
  if (plane->value) cells.value = plane->value + start;
  if (plane->integer) cells.integer = plane->integer + start;
  if (plane->scale) cells.scale = plane->scale + start;
  return cells;
}

ft_status ft_plane_doubt(ft_plane *plane, int64_t start, const double *scale,
                         size_t count, ft_error *error) {
  bool any = plane->scale != NULL;
  for (size_t j = 0; j < count && !any; j++) any = scale[j] > 0;
  if (!any) return FT_OK;
  if (!plane->scale) {
    size_t bytes = (size_t)plane->elements * sizeof *plane->scale;
    plane->scale = ft_allocate(ft_allocator_system(), bytes, 64);
    FT_OOM_IF(!plane->scale, error);
    memset(plane->scale, 0, bytes);
  }
  memcpy(plane->scale + start, scale, count * sizeof *scale);
  return FT_OK;
}
