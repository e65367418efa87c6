// onnx_check - is the file, all the way down, made of ONNX's messages?
#ifndef FT_GRAPH_ONNX_CHECK_H
#define FT_GRAPH_ONNX_CHECK_H

#include "graph/wire.h"

// Walks every known message of a ModelProto once; weights are stepped over, not read.
// Recursion is bounded by FT_IMPORT_MAX_DEPTH. Errors: REFUSED.
FT_MUST_CHECK ft_status ft_onnx_check(ft_span file, ft_error *error);

#endif
