// lower - what an operator's handler sees of its node, and the words it emits with.
//
// A handler turns one ONNX node into primitives:
//
//   ft_status ft_lower_softsign(ft_lowering *l) {
//     uint32_t x = ft_lower_input(l, 0);
//     uint32_t one = ft_emit_scalar(l, x, 1);
//     return ft_lower_return(l, ft_emit2(l, FT_OP_DIV, x,
//                                        ft_emit2(l, FT_OP_ADD, one, ft_emit1(l,
//                                        FT_OP_ABS, x))));
//   }
//
// Emitting is sticky: after the first failure every ft_emit* and ft_lower_* returns at
// once (FT_NONE, or the default) and ft_lower_return returns that failure; so only
// decisions need checks. A failure of the handler's own: return ft_lower_fail(l, ...).
//   UNSUPPORTED  the node is well-formed, we do not do it: it is listed, import goes on
//   REFUSED      the node contradicts ONNX: the import ends
// The importer puts the node's name and operator before the text.
#ifndef FT_GRAPH_LOWER_H
#define FT_GRAPH_LOWER_H

#include "graph/external_data.h"
#include "graph/graph.h"
#include "graph/onnx.h"

typedef struct ft_lowering {
  ft_graph *graph;
  const ft_onnx_node *node;
  const uint8_t *file;       // the bytes that the node's spans point into
  ft_external_files *files;  // for tensors in attributes
  int64_t opset;             // of the node's domain
  ft_op primitive;           // from the operator's line
  uint32_t input_count, output_count;
  uint32_t inputs_read;   // one past the last input asked for
  const uint32_t *input;  // values; FT_NONE: absent
  // Per input: the default of an overridable initializer, else NULL.
  const ft_tensor *const *fallback;
  uint32_t *output;              // to be set; FT_NONE before
  struct ft_importer *importer;  // for operators with subgraphs (import_branch.c)
  bool is_listed;                // what is missing is on the list: outputs are unknown
  size_t *generated_bytes;       // by ft_lower_generate, in the whole model
  ft_status status;
  ft_error *error;
} ft_lowering;

typedef ft_status ft_operator_handler(ft_lowering *l);

typedef struct ft_operator_info {
  const char *name, *domain;
  int64_t first_opset;
  ft_operator_handler *handler;
  ft_op primitive;
} ft_operator_info;

// The line of operators.def for |op| at |opset|; NULL when there is none. *out_first is
// then the lowest opset that has one, or 0 when no line has this name and domain.
const ft_operator_info *ft_operator_find(ft_span op, ft_span domain, int64_t opset,
                                         int64_t *out_first);

// ---- the node ---------------------------------------------------------------------
// Sets the failure (unless there is one) and returns it.
ft_status ft_lower_fail(ft_lowering *l, ft_status code, const char *format, ...)
    FT_PRINTF(3, 4);
// A required input. Fails REFUSED when it is absent.
uint32_t ft_lower_input(ft_lowering *l, uint32_t index);
// An optional input, FT_NONE when absent.
uint32_t ft_lower_optional(ft_lowering *l, uint32_t index);
// An attribute, |otherwise| when absent. Fails REFUSED when it has another type.
int64_t ft_lower_int(ft_lowering *l, const char *name, int64_t otherwise);
float ft_lower_float(ft_lowering *l, const char *name, float otherwise);
ft_span ft_lower_text(ft_lowering *l, const char *name, const char *otherwise);
// A list attribute: *out_count is 0 and *out_given false when absent.
const int64_t *ft_lower_ints(ft_lowering *l, const char *name, size_t *out_count,
                             bool *out_given);
// The same for floats; REFUSED when absent.
const float *ft_lower_floats(ft_lowering *l, const char *name, size_t *out_count);
// The elements of an integer input that must be a known constant; fails UNSUPPORTED
// when it is computed. |what| names it in the text. At most |limit| elements.
const int64_t *ft_lower_constant_ints(ft_lowering *l, uint32_t index, const char *what,
                                      size_t limit, size_t *out_count);
// Input |index| when its elements are known: a constant, or an overridable initializer's
// default. NULL when it is absent or computed.
const ft_tensor *ft_lower_known(ft_lowering *l, uint32_t index);
// ft_lower_known, or UNSUPPORTED ("|what| is not a constant") and NULL.
const ft_tensor *ft_lower_require(ft_lowering *l, uint32_t index, const char *what);
// As ft_lower_constant_ints, of a float input.
const double *ft_lower_constant_floats(ft_lowering *l, uint32_t index, const char *what,
                                       size_t limit, size_t *out_count);
// An axis in [0, rank) from one that may count from the end. Fails REFUSED outside.
int ft_lower_axis(ft_lowering *l, int64_t axis, int rank);
// Dtype and shape of a value; {0} after a failure.
ft_dtype ft_lower_dtype(const ft_lowering *l, uint32_t value);
ft_shape ft_lower_shape_of(const ft_lowering *l, uint32_t value);

// ---- emitting ---------------------------------------------------------------------
uint32_t ft_emit(ft_lowering *l, ft_op op, const uint32_t *input, uint32_t count,
                 const ft_attr *attr);
uint32_t ft_emit1(ft_lowering *l, ft_op op, uint32_t a);
uint32_t ft_emit2(ft_lowering *l, ft_op op, uint32_t a, uint32_t b);
uint32_t ft_emit_where(ft_lowering *l, uint32_t condition, uint32_t a, uint32_t b);
// A scalar constant of the dtype of |like|.
uint32_t ft_emit_scalar(ft_lowering *l, uint32_t like, double value);
uint32_t ft_emit_cast(ft_lowering *l, uint32_t a, ft_dtype to);
uint32_t ft_emit_view(ft_lowering *l, uint32_t a, const ft_shape *shape);
uint32_t ft_emit_broadcast(ft_lowering *l, uint32_t a, const ft_shape *shape);
// Reduced axes stay as extent 1.
uint32_t ft_emit_reduce(ft_lowering *l, ft_op op, uint32_t a, uint32_t axes);
// Sum times 1/n over the axes; integers divide.
uint32_t ft_emit_mean(ft_lowering *l, uint32_t a, uint32_t axes);

// A constant that is not in the file: fill the zeroed elements, then ft_emit_constant.
// Fails UNSUPPORTED when |elements| take more than 16 MiB, or all of the model 64 MiB:
// a hostile file could ask for any number. NULL after a failure.
void *ft_lower_generate(ft_lowering *l, ft_dtype dtype, const ft_shape *shape,
                        ft_tensor *out);
uint32_t ft_emit_constant(ft_lowering *l, const ft_tensor *tensor);
// 0, 1, ... count - 1 of |dtype| along |axis| of a value of |rank|.
uint32_t ft_emit_iota(ft_lowering *l, ft_dtype dtype, int64_t count, int axis, int rank);
// |count| elements along |axis|: start, start + step, ...; in range.
uint32_t ft_emit_slice(ft_lowering *l, uint32_t a, int axis, int64_t start, int64_t step,
                       int64_t count);
// The elements index[0 .. count) along |axis|; in range. A run of them is a slice.
uint32_t ft_emit_pick(ft_lowering *l, uint32_t a, int axis, const int64_t *index,
                      int64_t count);
// Views a vector so that it lies on |axis| of a value of |rank|.
uint32_t ft_emit_place(ft_lowering *l, uint32_t vector, int axis, int rank);

// Output |index| is |value|.
void ft_lower_set(ft_lowering *l, uint32_t index, uint32_t value);
// Output 0 is |value|; the status of the whole.
ft_status ft_lower_return(ft_lowering *l, uint32_t value);

// ---- the handlers -----------------------------------------------------------------
#define FT_OPERATOR(name, domain, opset, handler, primitive) ft_operator_handler handler;
#include "graph/operators.def"
#undef FT_OPERATOR

#endif
