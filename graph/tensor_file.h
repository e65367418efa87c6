// tensor_file - one tensor from a file beside the model: NumPy's NPY, or a serialized
// TensorProto (the .pb of ONNX test data). The content tells which.
#ifndef FT_GRAPH_TENSOR_FILE_H
#define FT_GRAPH_TENSOR_FILE_H

#include "graph/tensor.h"

// *out in |arena|. Errors name the file: NOT_FOUND, IO, REFUSED (malformed; external data
// in a TensorProto; more than 16 GiB), UNSUPPORTED (a dtype or rank we do not have).
FT_MUST_CHECK ft_status ft_tensor_file_read(const char *path, ft_arena *arena,
                                            ft_tensor *out, ft_error *error);
// The same from |size| bytes at |data|, which *out may borrow. Texts name no file.
FT_MUST_CHECK ft_status ft_tensor_file_parse(const void *data, size_t size,
                                             ft_arena *arena, ft_tensor *out,
                                             ft_error *error);
// Writes |tensor| as an NPY file at |path|.
FT_MUST_CHECK ft_status ft_tensor_file_write(const char *path, const ft_tensor *tensor,
                                             ft_error *error);

#endif
