// graph - one model with concrete shapes: operators as imported, primitives after
// fission, and the values between them.
//
// The importer walks the model once. For each node it opens an operator and emits
// primitives; each emit infers the shape, folds when every input is a known constant,
// and returns an existing value when the same primitive was emitted before (common
// subexpressions). So inference, folding and fission are one topological pass.
//
// Invariants after ft_graph_finish (ft_graph_check asserts them):
//  1. Primitives are in topological order: every input is an input, a constant or the
//     output of an earlier primitive.
//  2. Every primitive reaches a graph output; dead ones are gone.
//  3. value.root is a value whose own root is itself; root and view have the same
//     dtype and the same number of elements. Views cost nothing: they read the root's
//     buffer, row-major, under another shape (Reshape, Squeeze, Unsqueeze, Identity).
//  4. value.consumers of a root lists every primitive that reads it or a view of it,
//     ascending, once each.
//  5. Every shape is concrete; a value has at most 2^62 elements and 2^62 bytes, zero
//     dims counted as 1 (so strides and byte counts fit too). Others are REFUSED.
//  6. Each operator owns a run of primitives (perhaps none: folded away); a primitive
//     belongs to the operator that first asked for it.
//
// A graph is built by one thread and read-only after ft_graph_finish (then
// thread-safe). Everything lives in the arena given to ft_graph_create.
#ifndef FT_GRAPH_GRAPH_H
#define FT_GRAPH_GRAPH_H

#include "core/hash.h"
#include "graph/tensor.h"

#define FT_NONE UINT32_MAX

typedef enum ft_op {
#define FT_PRIMITIVE(id, name, class, arity) FT_OP_##id,
#include "graph/primitives.def"
#undef FT_PRIMITIVE
  FT_OP_COUNT
} ft_op;

typedef enum ft_op_class {
  FT_CLASS_E,
  FT_CLASS_I,
  FT_CLASS_R,
  FT_CLASS_S,
  FT_CLASS_M
} ft_op_class;

typedef struct ft_op_info {
  const char *name;
  ft_op_class class;
  uint8_t arity;  // 0: any number, at least one
} ft_op_info;

const ft_op_info *ft_op_describe(ft_op op);

// What a primitive needs beside its inputs; unused members are zero.
typedef struct ft_attr {
  ft_dtype to;                // CAST
  uint32_t axes;              // REDUCE_*: bit per axis
  ft_shape shape;             // BROADCAST; the output of SLICE, PAD, WINDOW_*, CONV
  uint8_t perm[FT_MAX_RANK];  // TRANSPOSE
  uint8_t axis;               // CONCAT, GATHER*
  int64_t groups;             // CONV
  // SLICE, PAD: per axis. WINDOW_*, CONV: per spatial axis (axis 2 is entry 0), |start|
  // being the padding before; |window| of CONV is in the weight's shape.
  int64_t start[FT_MAX_RANK], step[FT_MAX_RANK];
  int64_t window[FT_MAX_RANK], stride[FT_MAX_RANK], dilation[FT_MAX_RANK];
} ft_attr;

typedef enum ft_role { FT_ROLE_INPUT, FT_ROLE_CONSTANT, FT_ROLE_COMPUTED } ft_role;

typedef struct ft_value {
  const char *name;  // never NULL; views and folded values may have made-up names
  ft_dtype dtype;
  ft_shape shape;
  ft_role role;           // a view has the role of its root
  uint32_t root;          // value index; itself when it owns a buffer
  uint32_t producer;      // primitive index; FT_NONE for inputs and constants; a view
                          // carries its root's
  const ft_tensor *data;  // constants: the bytes; NULL when only the shape is known
                          // (then filled from |seed|). A view has data of its own.
  uint64_t seed;
  bool is_output;           // on roots: a graph output needs this buffer
  uint32_t consumer_count;  // on roots only, see invariant 4
  const uint32_t *consumer;
} ft_value;

typedef struct ft_primitive {
  ft_op op;
  ft_attr attr;
  uint32_t input_count;
  const uint32_t *input;  // value indices (may be views), in the graph's arena
  uint32_t output;        // value index (a root)
  uint32_t op_index;      // the operator it belongs to
} ft_primitive;

typedef struct ft_operator {
  const char *name;       // node name, or its first output's name when empty
  const char *type;       // "Gelu"
  const char *domain;     // "" is ai.onnx
  uint32_t first, count;  // primitives [first, first + count) after finish
} ft_operator;

typedef struct ft_graph_output {
  const char *name;
  uint32_t value;  // may be a view, an input or a constant
} ft_graph_output;

typedef struct ft_graph_input {
  const char *name;
  uint32_t value;
} ft_graph_input;

typedef struct ft_graph {
  ft_arena *arena;
  const char *name;
  uint32_t value_count, primitive_count, operator_count, input_count, output_count;
  ft_value *value;
  ft_primitive *primitive;
  ft_operator *operator_;   // all imported nodes, in file order
  ft_graph_input *input;    // in file order, initializers excluded
  ft_graph_output *output;  // in file order
  uint32_t live_operators;  // operators with primitives: the `operators` of decisions.md
  ft_hash symbolic_hash;    // of the unbound model (names, weights excluded); set by the
                            // importer
  ft_hash bound_hash;       // of the primitives with concrete shapes; set by finish
  const void *symbolic_encoding;  // what symbolic_hash is the hash of
  size_t symbolic_encoding_bytes;
  const char *dims_json;  // {"N":8}: sorted keys, compact; set by the importer. What its
                          // plans must keep to comes first, as "#constraints"
  struct ft_graph_builder *builder;  // NULL after finish
} ft_graph;

// ---- building -------------------------------------------------------------------
// All return FT_OK or: OUT_OF_MEMORY; INVALID_ARGUMENT / REFUSED with the values'
// names and shapes. After an error the graph must not be used.

FT_MUST_CHECK ft_status ft_graph_create(ft_arena *arena, const char *name, ft_graph **out,
                                        ft_error *error);
FT_MUST_CHECK ft_status ft_graph_add_input(ft_graph *graph, const char *name,
                                           ft_dtype dtype, const ft_shape *shape,
                                           uint32_t *out_value, ft_error *error);
// |tensor| is copied, its bytes are borrowed for the life of the graph. Constants of up
// to 64 elements with equal dtype, shape and bytes are one value (under the first name).
FT_MUST_CHECK ft_status ft_graph_add_constant(ft_graph *graph, const char *name,
                                              const ft_tensor *tensor,
                                              uint32_t *out_value, ft_error *error);
// A weight of which only the shape is known; its bytes are drawn from |seed|.
FT_MUST_CHECK ft_status ft_graph_add_weight(ft_graph *graph, const char *name,
                                            ft_dtype dtype, const ft_shape *shape,
                                            uint64_t seed, uint32_t *out_value,
                                            ft_error *error);
// Rank-0 f32/i64/... constant of |dtype| with this value.
FT_MUST_CHECK ft_status ft_graph_add_scalar(ft_graph *graph, ft_dtype dtype, double value,
                                            uint32_t *out_value, ft_error *error);

// Primitives emitted from now on belong to this operator.
FT_MUST_CHECK ft_status ft_graph_begin_operator(ft_graph *graph, const char *name,
                                                const char *type, const char *domain,
                                                ft_error *error);
// Emits |op| on |input[count]|; |attr| may be NULL. *out_value is a new value, an
// equal one emitted before, or a constant when everything folded (results up to
// 1 MiB, 64 MiB read and written or terms added in all; past that they stay primitives; a
// known index out of range is INVALID_ARGUMENT). An identity returns its input or a view
// of it: COPY, a CAST to the same dtype, a TRANSPOSE or BROADCAST that leaves the
// elements in their order, a SLICE of everything, a CONCAT of one, a PAD by nothing, a
// reduction over no axes or over extents of 1 (axes of extent 1 are dropped from
// attr.axes). INVALID_ARGUMENT before the first operator.
FT_MUST_CHECK ft_status ft_graph_emit(ft_graph *graph, ft_op op, const uint32_t *input,
                                      uint32_t count, const ft_attr *attr,
                                      uint32_t *out_value, ft_error *error);
// The same elements, row-major, under another shape with as many elements.
FT_MUST_CHECK ft_status ft_graph_view(ft_graph *graph, uint32_t value,
                                      const ft_shape *shape, uint32_t *out_value,
                                      ft_error *error);
// Gives |value| a name people know (the model's), unless it has one.
FT_MUST_CHECK ft_status ft_graph_name_value(ft_graph *graph, uint32_t value,
                                            const char *name, ft_error *error);
FT_MUST_CHECK ft_status ft_graph_add_output(ft_graph *graph, const char *name,
                                            uint32_t value, ft_error *error);
// Drops what is dead (graph inputs stay), renumbers, names the unnamed, fills consumers
// and bound_hash. That is the hash of inputs' and outputs' types, and of the primitives
// in their order: names and the bytes of floating-point constants of more than 64
// elements are not in it; an equal graph whose nodes come in another order may hash
// differently.
FT_MUST_CHECK ft_status ft_graph_finish(ft_graph *graph, ft_error *error);

// ---- reading --------------------------------------------------------------------
// Asserts the invariants above; aborts on a broken one.
void ft_graph_check(const ft_graph *graph);
// True when the value is a constant of one element with known bytes: kernels take it
// as an immediate, never as an argument.
bool ft_value_is_immediate(const ft_graph *graph, uint32_t value);
// The known bytes of a constant, or those drawn from its seed (uniform in
// [-0.5, 0.5) for floats, [0, 4) for integers), in |arena|.
FT_MUST_CHECK ft_status ft_graph_constant_data(const ft_graph *graph, uint32_t value,
                                               ft_arena *arena, ft_tensor *out,
                                               ft_error *error);

#endif
