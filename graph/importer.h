// importer - what the files import*.c share while one model becomes a graph. Private
// to graph/.
#ifndef FT_GRAPH_IMPORTER_H
#define FT_GRAPH_IMPORTER_H

#include "graph/import.h"
#include "graph/lower.h"

typedef enum ft_import_source {
  FT_SOURCE_INPUT,
  FT_SOURCE_BOUND,  // an input that the caller made a constant
  FT_SOURCE_INITIALIZER,
  FT_SOURCE_NODE
} ft_import_source;

// One name of the model. A value exists once it was needed (initializers) or its node
// was lowered; an unknown one hangs on something unsupported.
typedef struct ft_import_name {
  ft_span name;
  ft_import_source source;
  uint32_t index;  // of the input, initializer or node
  bool is_live, is_unknown;
  uint32_t value;     // FT_NONE: none yet
  uint32_t code;      // its number in the encoding; FT_NONE: none yet
  uint32_t fallback;  // of an input: the initializer with its default, or FT_NONE
  const ft_tensor *fallback_data;  // once it was needed
} ft_import_name;

typedef struct ft_import_symbol {
  const char *name;  // "N", or "x[0]" for a dim without a name
  int64_t value;     // -1: unbound
} ft_import_symbol;

// A float weight of a JSON graph whose bytes are drawn, not given.
typedef struct ft_import_weight {
  bool is_drawn;
  ft_dtype dtype;
  ft_shape shape;
  uint64_t seed;
} ft_import_weight;

// Symbols are few and are searched one by one.
enum { FT_IMPORT_MAX_SYMBOLS = 1024 };

// Names that a node's subgraphs read from outside.
typedef struct ft_import_captures {
  ft_span *name;
  size_t count, capacity;
} ft_import_captures;

// What the scopes of one import have in common.
typedef struct ft_import_shared {
  ft_unsupported *unsupported;
  size_t unsupported_count, unsupported_capacity;
  size_t generated_bytes;
  uint32_t items;  // of FT_ONNX_MAX_ITEMS, subgraphs included
} ft_import_shared;

// One scope: the model, or the branch of an If that is taken.
typedef struct ft_importer {
  ft_arena *arena;
  ft_graph *graph;
  ft_onnx_model model;
  const ft_import_options *options;
  ft_external_files *files;
  const ft_import_weight *weight;  // [initializers]; NULL: all have bytes
  ft_import_report *report;
  ft_import_shared *shared;
  const struct ft_importer *outer;  // the scope around; NULL for the model
  // names, and an open-addressing table of indices into them
  ft_import_name *name;
  uint32_t name_count, slot_count, *slot;
  bool *node_is_live;
  uint32_t *order;              // [node_count] node indices, producers first
  ft_import_captures *capture;  // [node_count]
  ft_import_symbol *symbol;
  size_t symbol_count, symbol_capacity;
} ft_importer;

// ---- import.c ---------------------------------------------------------------------
// A ModelProto in memory, as ft_import_onnx_bytes takes it.
typedef struct ft_import_model {
  const void *data;
  size_t size;
  const char *folder;
  const ft_import_weight *weight;  // [initializers]; NULL: all have bytes
} ft_import_model;
FT_MUST_CHECK ft_status ft_import_model_read(const ft_import_model *source,
                                             const ft_import_options *options,
                                             ft_arena *arena, ft_graph **out,
                                             ft_import_report *report, ft_error *error);
// Names from a file end up in the text, the text on somebody's terminal.
void ft_import_clean_text(ft_error *error);
// The folder of the file at |path|; NULL when out of memory.
const char *ft_import_folder_of(const char *path, ft_arena *arena);

// ---- import_names.c ---------------------------------------------------------------
// Registers every name, checks that each is produced once, orders the nodes and marks
// what the outputs need. Nodes keep their order where it is topological.
FT_MUST_CHECK ft_status ft_import_resolve(ft_importer *im, ft_error *error);
// In this scope, or the nearest around; NULL when the model has no such name.
ft_import_name *ft_import_find(const ft_importer *im, ft_span name);
// A scope for the graph in |attribute|, inside |outer|, not resolved yet.
FT_MUST_CHECK ft_status ft_import_enter(const ft_importer *outer,
                                        const ft_onnx_attribute *attribute,
                                        ft_importer *out, ft_error *error);

// ---- import_dims.c ----------------------------------------------------------------
// Binds the symbolic dims of the inputs and adds the inputs to the graph.
FT_MUST_CHECK ft_status ft_import_inputs(ft_importer *im, ft_error *error);
// The symbol of dim |axis| of input |input|; FT_NONE when the dim is a number.
FT_MUST_CHECK ft_status ft_import_symbol_of(ft_importer *im, ft_span input,
                                            const ft_onnx_dim *dim, uint32_t axis,
                                            uint32_t *out, ft_error *error);
// Adds the outputs; refuses a declared shape that is not the inferred one.
FT_MUST_CHECK ft_status ft_import_outputs(ft_importer *im, ft_error *error);

// ---- import_nodes.c ---------------------------------------------------------------
FT_MUST_CHECK ft_status ft_import_nodes(ft_importer *im, ft_error *error);
// Lists nodes that no line of operators.def fits, those of subgraphs too, lowering
// nothing.
FT_MUST_CHECK ft_status ft_import_list_unsupported(ft_importer *im, ft_error *error);
// Makes the value of an initializer, or of a bound input, if there is none yet.
FT_MUST_CHECK ft_status ft_import_load(ft_importer *im, ft_import_name *name,
                                       ft_error *error);
FT_MUST_CHECK ft_status ft_import_add_unsupported(ft_importer *im, const char *op,
                                                  ft_span domain, int64_t opset,
                                                  ft_span node, const char *reason,
                                                  ft_error *error);
// True for the dtypes that primitives compute in.
bool ft_import_is_native(ft_dtype dtype);
// "float16" for numbers of TensorProto.DataType that we have no dtype for too.
const char *ft_onnx_type_text(int64_t number);

// ---- import_encode.c --------------------------------------------------------------
// Fills the graph's symbolic_encoding, symbolic_hash and dims_json.
FT_MUST_CHECK ft_status ft_import_encode(ft_importer *im, ft_error *error);

#endif
