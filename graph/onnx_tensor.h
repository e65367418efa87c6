// onnx_tensor - a TensorProto becomes a tensor.
//
// raw_data, packed float_data and double_data, and external data are used where they
// lie; other typed data are decoded into the arena, never before their number was
// found equal to the product of the dims. So memory is bounded by the file's size.
// Errors: REFUSED (contradictory or hostile), UNSUPPORTED (a dtype or rank we do not
// have), IO, OUT_OF_MEMORY; the text names the tensor.
#ifndef FT_GRAPH_ONNX_TENSOR_H
#define FT_GRAPH_ONNX_TENSOR_H

#include "graph/external_data.h"
#include "graph/tensor.h"

// |message| lies in |file|; |files| serves external data. *out borrows from all three.
FT_MUST_CHECK ft_status ft_onnx_load_tensor(ft_span message, const uint8_t *file,
                                            ft_external_files *files, ft_arena *arena,
                                            ft_tensor *out, ft_error *error);

#endif
