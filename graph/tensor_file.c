#include "graph/tensor_file.h"

#include "core/file.h"
#include "graph/npy.h"
#include "graph/onnx_tensor.h"

static const size_t max_bytes = (size_t)16 << 30;

ft_status ft_tensor_file_parse(const void *data, size_t size, ft_arena *arena,
                               ft_tensor *out, ft_error *error) {
  if (ft_npy_is(data, size)) return ft_npy_parse(data, size, out, error);
  if (size == 0) FT_FAIL(error, FT_REFUSED, "the file is empty");
  ft_external_files none = ft_external_files_init(NULL, arena);
  return ft_onnx_load_tensor((ft_span){data, size}, data, &none, arena, out, error);
}

ft_status ft_tensor_file_read(const char *path, ft_arena *arena, ft_tensor *out,
                              ft_error *error) {
  ft_bytes bytes;
  *out = (ft_tensor){0};
  FT_TRY(ft_file_read(path, max_bytes, arena, &bytes, error));
  ft_status status = ft_tensor_file_parse(bytes.data, bytes.size, arena, out, error);
  if (status != FT_OK) ft_error_prefix(error, "%s", path);
  return status;
}

static ft_status write_npy(const char *path, const ft_tensor *tensor, ft_arena *arena,
                           ft_error *error) {
  FT_OOM_IF(!arena, error);
  ft_strbuf file = ft_strbuf_init(arena);
  FT_TRY(ft_npy_write(tensor, &file, error));
  return ft_file_write(path, file.text, file.length, error);
}

ft_status ft_tensor_file_write(const char *path, const ft_tensor *tensor,
                               ft_error *error) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_status status = write_npy(path, tensor, arena, error);
  ft_arena_destroy(arena);
  return status;
}
