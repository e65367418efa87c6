// import - a model file becomes a graph. Hostile territory: lengths are checked, depth
// is capped (FT_IMPORT_MAX_DEPTH), nothing is allocated by an unchecked number.
#ifndef FT_GRAPH_IMPORT_H
#define FT_GRAPH_IMPORT_H

#include "graph/graph.h"

enum { FT_IMPORT_MAX_DEPTH = 64 };

typedef struct ft_dim_binding {
  const char *name;  // "*" binds every symbolic dim that no other binding names
  int64_t value;
} ft_dim_binding;

// The whole shape of one graph input, in place of the declared one. Dims that are
// concrete in the model must agree; a dim name that it meets is bound by it.
typedef struct ft_input_shape {
  const char *name;
  ft_shape shape;
} ft_input_shape;

// A graph input that is known: its value is |tensor|, whose bytes must live as long as
// the graph. It is folded like an initializer, and no input any more. Dtype and concrete
// dims must be the declared ones; a dim name that it meets is bound by it.
typedef struct ft_input_constant {
  const char *name;
  ft_tensor tensor;
} ft_input_constant;

// What we cannot import, one per node; |op| is "input", "initializer" or "output" (and
// |node| its name, |opset| 0) when a tensor's dtype or rank is the reason. The list is
// complete, but for nodes that no output needs: import goes on past the first.
typedef struct ft_unsupported {
  const char *op, *domain, *node, *reason;
  int64_t opset;
} ft_unsupported;

typedef struct ft_import_options {
  uint32_t dim_count;
  const ft_dim_binding *dim;
  uint32_t input_count;
  const ft_input_shape *input;
  uint32_t constant_count;
  const ft_input_constant *constant;
} ft_import_options;

typedef struct ft_import_report {
  uint32_t unsupported_count;
  const ft_unsupported *unsupported;
  uint32_t unbound_count;      // symbolic dims without a binding
  const char *const *unbound;  // their names
} ft_import_report;

// Reads the ONNX file at |path| (mapped, weights not copied; the mapping lives as long
// as |arena|). External data is read only from beneath the model's folder. Nodes that no
// output needs are left out; the others may come in any order. Dims without a name are
// called "INPUT[axis]". An initializer that is also an input is a constant up to IR 3;
// from IR 4 on the caller may override it, so it is an input and not folded, but where an
// operator needs a constant (a shape, axes, pads) its default is taken. An If becomes the
// branch that its condition, a constant, takes. Opsets 6 to 24; IR >= 3. *report is
// always filled (in |arena|). Errors: NOT_FOUND (no such file); IO; REFUSED (malformed,
// hostile or contradictory: the text names the place); UNSUPPORTED (operators, dtypes or
// opset; report->unsupported lists all); INVALID_ARGUMENT (unbound dims: the text lists
// the names; a binding that no dim has).
FT_MUST_CHECK ft_status ft_import_onnx(const char *path, const ft_import_options *options,
                                       ft_arena *arena, ft_graph **out,
                                       ft_import_report *report, ft_error *error);
// The same from memory, which the graph borrows: it must outlive |arena|. |folder| is
// where external data may lie (NULL: none allowed).
FT_MUST_CHECK ft_status ft_import_onnx_bytes(const void *data, size_t size,
                                             const char *folder,
                                             const ft_import_options *options,
                                             ft_arena *arena, ft_graph **out,
                                             ft_import_report *report, ft_error *error);

#endif
