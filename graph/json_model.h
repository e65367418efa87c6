// json_model - what the files json_*.c and import_json.c share while a JSON graph is
// written down as a ModelProto. Private to graph/.
//
// The JSON road ends where the ONNX road begins: the bytes written here go through the
// same reader, the same names and the same operator table, so no rule about models is
// written twice and both roads give the same graph.
#ifndef FT_GRAPH_JSON_MODEL_H
#define FT_GRAPH_JSON_MODEL_H

#include <jansson.h>

#include "graph/importer.h"
#include "graph/proto_write.h"

// Limits of docs/graph_format.md.
enum {
  FT_JSON_MAX_DEPTH = 16,
  FT_JSON_MAX_TEXT = 4096,
  FT_JSON_MAX_NODES = 1000000,
  FT_JSON_MAX_BASE64 = 65536  // bytes that it decodes to
};

// Where we are, for error texts: "nodes[3].inputs[0]". On the stack, innermost first.
typedef struct ft_json_place {
  const struct ft_json_place *parent;
  const char *member;  // NULL: an element of the parent
  size_t index;
} ft_json_place;

typedef struct ft_json_model {
  ft_arena *arena;
  json_t *root, *dims;  // dims: a set of the declared names
  // [constants] of the outermost graph: which are drawn, not given.
  ft_import_weight *weight;
  size_t weight_count;
} ft_json_model;

#define FT_JSON_MEMBER(up, name) \
  (&(const ft_json_place){.parent = (up), .member = (name)})
#define FT_JSON_ELEMENT(up, at) (&(const ft_json_place){.parent = (up), .index = (at)})

// REFUSED unless |code| says otherwise: "PLACE: text".
ft_status ft_json_fail(const ft_json_place *place, ft_status code, ft_error *error,
                       const char *format, ...) FT_PRINTF(4, 5);
// Refuses members of |object| that |known| ("name op inputs") does not list.
FT_MUST_CHECK ft_status ft_json_check_members(const json_t *object, const char *known,
                                              const ft_json_place *place,
                                              ft_error *error);
// A member that must be a text of at most FT_JSON_MAX_TEXT bytes; |otherwise| when it is
// absent (NULL: it is required).
FT_MUST_CHECK ft_status ft_json_text_of(const json_t *object, const char *member,
                                        const char *otherwise, const ft_json_place *place,
                                        const char **out, ft_error *error);
// The same for a value at |place|.
FT_MUST_CHECK ft_status ft_json_text_value(const json_t *value,
                                           const ft_json_place *place, const char **out,
                                           ft_error *error);
// A member that must be an array; empty (NULL) when absent.
FT_MUST_CHECK ft_status ft_json_array_of(const json_t *object, const char *member,
                                         const ft_json_place *place, const json_t **out,
                                         ft_error *error);
FT_MUST_CHECK ft_status ft_json_dtype_of(const json_t *object, const ft_json_place *place,
                                         ft_dtype *out, ft_error *error);
// TensorProto.DataType.
int64_t ft_json_onnx_type(ft_dtype dtype);
// A number, or one of "nan", "inf", "-inf".
FT_MUST_CHECK ft_status ft_json_real(const json_t *value, const ft_json_place *place,
                                     double *out, ft_error *error);

// ---- json_tensor.c ------------------------------------------------------------------
// Writes {"name", "dtype", "shape", "data"} as a TensorProto. |weight| is told when the
// data is a seed or absent; NULL: it must be given.
FT_MUST_CHECK ft_status ft_json_write_tensor(ft_json_model *model, const json_t *json,
                                             const ft_json_place *place, ft_strbuf *out,
                                             ft_import_weight *weight, ft_error *error);
// ---- json_node.c --------------------------------------------------------------------
FT_MUST_CHECK ft_status ft_json_write_node(ft_json_model *model, const json_t *json,
                                           const ft_json_place *place, ft_strbuf *out,
                                           ft_error *error);
// ---- import_json.c ------------------------------------------------------------------
// Writes a graph's inputs, constants, nodes and outputs as a GraphProto.
FT_MUST_CHECK ft_status ft_json_write_graph(ft_json_model *model, const json_t *json,
                                            const ft_json_place *place, ft_strbuf *out,
                                            ft_error *error);

#endif
