// Any bytes as a NumPy file: an error, or a tensor that is written and read again.
#include "graph/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ft_tensor tensor, again;
  ft_error error = {0};
  if (ft_npy_parse(data, size, &tensor, &error) != FT_OK) {
    FT_ASSERT(error.text[0]);
    return 0;
  }
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_strbuf file = ft_strbuf_init(arena);
  FT_ASSERT(ft_npy_write(&tensor, &file, &error) == FT_OK);
  FT_ASSERT(ft_npy_parse(file.text, file.length, &again, &error) == FT_OK);
  FT_ASSERT(ft_shape_equal(&tensor.shape, &again.shape) && tensor.bytes == again.bytes);
  ft_arena_destroy(arena);
  return 0;
}
