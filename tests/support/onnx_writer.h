// onnx_writer - small ONNX files in memory, so that tests need no python.
//
// A byte string is an ft_strbuf. Names in lists are split at commas: "x,,y" is x, an
// absent operand, y. Everything lives in the arena given to onnx_begin.
#ifndef FT_TESTS_SUPPORT_ONNX_WRITER_H
#define FT_TESTS_SUPPORT_ONNX_WRITER_H

#include "core/strbuf.h"

// ---- protobuf ---------------------------------------------------------------------
void pb_varint(ft_strbuf *out, uint64_t value);
void pb_int(ft_strbuf *out, uint32_t field, int64_t value);
void pb_float(ft_strbuf *out, uint32_t field, float value);
void pb_bytes(ft_strbuf *out, uint32_t field, const void *data, size_t size);
void pb_text(ft_strbuf *out, uint32_t field, const char *text);
void pb_message(ft_strbuf *out, uint32_t field, const ft_strbuf *inner);

// ---- onnx -------------------------------------------------------------------------
enum { ONNX_FLOAT = 1, ONNX_INT32 = 6, ONNX_INT64 = 7, ONNX_BOOL = 9, ONNX_DOUBLE = 11 };

typedef struct onnx_file {
  ft_arena *arena;
  int64_t ir_version, opset;
  ft_strbuf graph, extra;  // extra: appended to the ModelProto
} onnx_file;

onnx_file onnx_begin(ft_arena *arena, int64_t opset);
// |dims|: "N,3" (names are symbolic, "?" is unknown), "" a scalar, NULL no shape.
void onnx_input(onnx_file *file, const char *name, int type, const char *dims);
void onnx_output(onnx_file *file, const char *name, int type, const char *dims);
// A TensorProto. |raw| NULL: none.
ft_strbuf onnx_tensor(ft_arena *arena, const char *name, int type, const char *dims,
                      const void *raw, size_t bytes);
void onnx_initializer(onnx_file *file, const ft_strbuf *tensor);
void onnx_floats(onnx_file *file, const char *name, const char *dims, const float *data,
                 size_t count);
void onnx_ints(onnx_file *file, const char *name, const char *dims, const int64_t *data,
               size_t count);
// A float32 scalar initializer.
void onnx_scalar(onnx_file *file, const char *name, float value);

// Attributes of one node: start with ft_strbuf_init(arena), pass to onnx_node.
void onnx_attr_int(ft_strbuf *attributes, const char *name, int64_t value);
void onnx_attr_float(ft_strbuf *attributes, const char *name, float value);
void onnx_attr_text(ft_strbuf *attributes, const char *name, const char *value);
void onnx_attr_ints(ft_strbuf *attributes, const char *name, const int64_t *values,
                    size_t count);
void onnx_attr_floats(ft_strbuf *attributes, const char *name, const float *values,
                      size_t count);
void onnx_attr_tensor(ft_strbuf *attributes, const char *name, const ft_strbuf *tensor);
// The nodes, initializers and outputs of |graph| as a subgraph.
void onnx_attr_graph(ft_strbuf *attributes, const char *name, const onnx_file *graph);
// |op| may be "domain::Op". |attributes| may be NULL. The node is called "n_" + the
// first output.
void onnx_node(onnx_file *file, const char *op, const char *inputs, const char *outputs,
               const ft_strbuf *attributes);
// Also imports |domain| at |version|.
void onnx_import_domain(onnx_file *file, const char *domain, int64_t version);
// The bytes of the file.
ft_strbuf onnx_end(const onnx_file *file);

#endif
