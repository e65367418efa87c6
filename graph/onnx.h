// onnx - a model file as views into its bytes.
//
// ft_onnx_open checks the structure of the whole file once (every known message, every
// nested graph) and lists nodes, tensors and values as small structs whose spans point
// into the file; no weight is read or copied. Spans live as long as the file's bytes,
// arrays as long as the arena. Read-only, so thread-safe after ft_onnx_open.
// Errors: REFUSED (malformed, deeper than FT_IMPORT_MAX_DEPTH, more than
// FT_ONNX_MAX_ITEMS listed things; the text names message and byte), OUT_OF_MEMORY.
#ifndef FT_GRAPH_ONNX_H
#define FT_GRAPH_ONNX_H

#include "core/arena.h"
#include "graph/tensor.h"
#include "graph/wire.h"

// Nodes, attributes, operands, tensors and values together. Bounds the memory that a
// file of tiny messages can ask for: about 100 bytes each here, 700 as primitives.
enum { FT_ONNX_MAX_ITEMS = 1 << 19 };

// AttributeProto.AttributeType
typedef enum ft_onnx_attribute_type {
  FT_ONNX_FLOAT = 1,
  FT_ONNX_INT = 2,
  FT_ONNX_STRING = 3,
  FT_ONNX_TENSOR = 4,
  FT_ONNX_GRAPH = 5,
  FT_ONNX_FLOATS = 6,
  FT_ONNX_INTS = 7,
  FT_ONNX_STRINGS = 8
} ft_onnx_attribute_type;

typedef struct ft_onnx_attribute {
  ft_span name, message;
  const uint8_t *file;
  int64_t type;  // ft_onnx_attribute_type, or a number we have no name for
  int64_t i;
  float f;
  ft_span s, t, g;  // s: bytes of the string; t: a TensorProto; g: a GraphProto
} ft_onnx_attribute;

typedef struct ft_onnx_node {
  ft_span name, op, domain;  // domain "" is ai.onnx (both spellings)
  uint32_t input_count, output_count, attribute_count;
  const ft_span *input, *output;  // names; an empty one is an absent optional
  const ft_onnx_attribute *attribute;
} ft_onnx_node;

// A named tensor or value, not decoded yet.
typedef struct ft_onnx_entry {
  ft_span name, message;  // a TensorProto or a TypeProto
} ft_onnx_entry;

typedef struct ft_onnx_opset {
  ft_span domain;
  int64_t version;
} ft_onnx_opset;

typedef struct ft_onnx_model {
  const uint8_t *file;
  int64_t ir_version;
  ft_span name;
  uint32_t opset_count, node_count, initializer_count, input_count, output_count;
  uint32_t sparse_count;
  uint32_t items;  // listed so far, of FT_ONNX_MAX_ITEMS
  const ft_onnx_opset *opset;
  const ft_onnx_node *node;
  const ft_onnx_entry *initializer;     // TensorProto
  const ft_onnx_entry *input, *output;  // TypeProto
} ft_onnx_model;

FT_MUST_CHECK ft_status ft_onnx_open(ft_span file, ft_arena *arena, ft_onnx_model *out,
                                     ft_error *error);
// The graph inside an attribute of a node of |outer|, as a model with the same opsets.
// Its items count in outer->items.
FT_MUST_CHECK ft_status ft_onnx_open_graph(ft_onnx_model *outer,
                                           const ft_onnx_attribute *attribute,
                                           ft_arena *arena, ft_onnx_model *out,
                                           ft_error *error);
// A NUL-terminated copy; NULL when out of memory.
char *ft_span_copy(ft_span span, ft_arena *arena);
// The version of |domain| that the model imports; 0 when it does not.
int64_t ft_onnx_opset_of(const ft_onnx_model *model, ft_span domain);
// The attribute called |name|, or NULL.
const ft_onnx_attribute *ft_onnx_find_attribute(const ft_onnx_node *node,
                                                const char *name);
// The numbers of an INTS or FLOATS attribute, in |arena|.
FT_MUST_CHECK ft_status ft_onnx_read_ints(const ft_onnx_attribute *attribute,
                                          ft_arena *arena, const int64_t **out,
                                          size_t *out_count, ft_error *error);
FT_MUST_CHECK ft_status ft_onnx_read_floats(const ft_onnx_attribute *attribute,
                                            ft_arena *arena, const float **out,
                                            size_t *out_count, ft_error *error);

// ---- types ------------------------------------------------------------------------
typedef enum ft_onnx_dim_kind {
  FT_DIM_UNKNOWN,  // nothing, or -1
  FT_DIM_VALUE,
  FT_DIM_NAMED
} ft_onnx_dim_kind;

typedef struct ft_onnx_dim {
  ft_onnx_dim_kind kind;
  int64_t value;
  ft_span name;
} ft_onnx_dim;

typedef struct ft_onnx_type {
  bool is_tensor, has_shape;
  int64_t element;  // data_type number
  uint32_t rank;    // as the file says: dims from FT_MAX_RANK on are not kept
  ft_onnx_dim dim[FT_MAX_RANK];
} ft_onnx_type;

FT_MUST_CHECK ft_status ft_onnx_read_type(ft_span message, const uint8_t *file,
                                          ft_onnx_type *out, ft_error *error);

#endif
