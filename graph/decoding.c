#include "graph/decoding.h"

#include <string.h>

#include "graph/attr.h"

// What a group may at most hold: far above any window, far below what hurts.
enum { MOST_NODES = 4096, MOST_OPERANDS = 64 };

typedef struct decoding {
  const uint8_t *start, *at, *end;
  ft_arena *arena;
  ft_graph *graph;
  uint32_t input_count, node_count;
  uint32_t *input;   // values
  uint32_t *result;  // [node_count] values, as far as they are made
} decoding;

static ft_status malformed(const decoding *d, const char *what, ft_error *error) {
  FT_FAIL(error, FT_REFUSED, "workload encoding, byte %zu of %zu: %s",
          (size_t)(d->at - d->start), (size_t)(d->end - d->start), what);
}

// ---- scalars --------------------------------------------------------------------------

static ft_status read_bytes(decoding *d, size_t size, const uint8_t **out,
                            ft_error *error) {
  if ((size_t)(d->end - d->at) < size) return malformed(d, "ends too early", error);
  *out = d->at;
  d->at += size;
  return FT_OK;
}

static ft_status read_u64(decoding *d, uint64_t *out, ft_error *error) {
  *out = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t *byte;
    FT_TRY(read_bytes(d, 1, &byte, error));
    if (shift == 63 && *byte > 1) break;
    *out |= (uint64_t)(*byte & 127) << shift;
    if (*byte < 128) return FT_OK;
  }
  return malformed(d, "a number of more than 64 bits", error);
}

static ft_status read_below(decoding *d, uint64_t limit, uint32_t *out, ft_error *error) {
  uint64_t value;
  FT_TRY(read_u64(d, &value, error));
  if (value >= limit) return malformed(d, "a number is too large", error);
  *out = (uint32_t)value;
  return FT_OK;
}

static ft_status read_signed(decoding *d, int64_t *out, ft_error *error) {
  uint64_t twice;
  FT_TRY(read_u64(d, &twice, error));
  *out = (int64_t)(twice >> 1);
  if (twice & 1) *out = ~*out;
  return FT_OK;
}

// A name, in |out| of |room| bytes.
static ft_status read_name(decoding *d, char *out, size_t room, ft_error *error) {
  uint32_t length;
  const uint8_t *text;
  FT_TRY(read_below(d, room, &length, error));
  FT_TRY(read_bytes(d, length, &text, error));
  memcpy(out, text, length);
  out[length] = '\0';
  return FT_OK;
}

static ft_status read_dtype(decoding *d, ft_dtype *out, ft_error *error) {
  char name[8];
  FT_TRY(read_name(d, name, sizeof name, error));
  *out = ft_dtype_from_text(name);
  return *out == FT_DTYPE_COUNT ? malformed(d, "a dtype is unknown", error) : FT_OK;
}

static ft_status read_shape(decoding *d, ft_shape *out, ft_error *error) {
  const uint8_t *rank;
  *out = (ft_shape){0};
  FT_TRY(read_bytes(d, 1, &rank, error));
  if (*rank > FT_MAX_RANK) return malformed(d, "a rank is too large", error);
  out->rank = *rank;
  for (int i = 0; i < out->rank; i++) {
    uint64_t dim;
    FT_TRY(read_u64(d, &dim, error));
    if (dim > INT64_MAX) return malformed(d, "a dim passes 2^63", error);
    out->dim[i] = (int64_t)dim;
  }
  return ft_shape_elements(out) < 0 ? malformed(d, "a shape passes 2^62 elements", error)
                                    : FT_OK;
}

static ft_status read_type(decoding *d, ft_dtype *dtype, ft_shape *shape,
                           ft_error *error) {
  FT_TRY(read_dtype(d, dtype, error));
  return read_shape(d, shape, error);
}

// ---- nodes ----------------------------------------------------------------------------

static ft_status read_op(decoding *d, ft_op *out, ft_error *error) {
  char name[32];
  FT_TRY(read_name(d, name, sizeof name, error));
  for (int op = 0; op < FT_OP_COUNT; op++)
    if (strcmp(ft_op_describe((ft_op)op)->name, name) == 0) {
      *out = (ft_op)op;
      return FT_OK;
    }
  return malformed(d, "a primitive is unknown", error);
}

// In the order of ft_encode_op.
static ft_status read_attr(decoding *d, ft_op op, ft_attr *out, ft_error *error) {
  char to[8];
  uint64_t axes;
  const uint8_t *perm;
  *out = (ft_attr){0};
  FT_TRY(read_name(d, to, sizeof to, error));
  if (op == FT_OP_CAST) out->to = ft_dtype_from_text(to);
  if (out->to == FT_DTYPE_COUNT) return malformed(d, "a dtype is unknown", error);
  FT_TRY(read_u64(d, &axes, error));
  if (axes >> FT_MAX_RANK) return malformed(d, "an axis is too large", error);
  out->axes = (uint32_t)axes;
  FT_TRY(read_shape(d, &out->shape, error));
  FT_TRY(read_bytes(d, sizeof out->perm, &perm, error));
  memcpy(out->perm, perm, sizeof out->perm);
  for (int i = 0; i < FT_MAX_RANK; i++)
    if (perm[i] >= FT_MAX_RANK) return malformed(d, "an axis is too large", error);
  int64_t number[FT_ATTR_NUMBERS];
  int count = ft_attr_numbers(op, out, number);
  for (int i = 0; i < count; i++) FT_TRY(read_signed(d, &number[i], error));
  return ft_attr_take_numbers(op, number, out)
             ? FT_OK
             : malformed(d, "an axis is too large", error);
}

static ft_status read_immediate(decoding *d, uint32_t *out, ft_error *error) {
  ft_tensor tensor = {0};
  uint64_t bytes;
  const uint8_t *data;
  FT_TRY(read_type(d, &tensor.dtype, &tensor.shape, error));
  FT_TRY(read_u64(d, &bytes, error));
  if (ft_shape_elements(&tensor.shape) != 1 || bytes != ft_dtype_bytes(tensor.dtype))
    return malformed(d, "an immediate is not of one element", error);
  tensor.bytes = (size_t)bytes;
  FT_TRY(read_bytes(d, tensor.bytes, &data, error));
  tensor.data = ft_arena_memdup(d->arena, data, tensor.bytes);
  FT_OOM_IF(!tensor.data, error);
  return ft_graph_add_constant(d->graph, "", &tensor, out, error);
}

static ft_status read_operand(decoding *d, uint32_t made, uint32_t *out,
                              ft_error *error) {
  const uint8_t *kind;
  uint32_t position;
  ft_shape shape;
  FT_TRY(read_bytes(d, 1, &kind, error));
  if (*kind == 'C') return read_immediate(d, out, error);
  if (*kind != 'P' && *kind != 'I') return malformed(d, "an operand is unknown", error);
  bool is_inside = *kind == 'P';
  FT_TRY(read_below(d, is_inside ? made : d->input_count, &position, error));
  FT_TRY(read_shape(d, &shape, error));
  uint32_t value = is_inside ? d->result[position] : d->input[position];
  if (ft_shape_equal(&shape, &d->graph->value[value].shape)) {
    *out = value;
    return FT_OK;
  }
  return ft_graph_view(d->graph, value, &shape, out, error);
}

// The encoding does not say how many operands follow: the primitive's arity does, and for
// those that take any number the operands go on while their kinds do (a name's length,
// which begins the next node, is below every kind).
static ft_status read_operands(decoding *d, ft_op op, uint32_t made, uint32_t *value,
                               uint32_t *out_count, ft_error *error) {
  uint32_t arity = ft_op_describe(op)->arity;
  *out_count = 0;
  while (arity ? *out_count < arity : d->at < d->end && *d->at >= 'C') {
    if (*out_count == MOST_OPERANDS) return malformed(d, "too many operands", error);
    FT_TRY(read_operand(d, made, &value[(*out_count)++], error));
  }
  return *out_count ? FT_OK : malformed(d, "a primitive without operands", error);
}

static ft_status read_node(decoding *d, uint32_t position, ft_error *error) {
  ft_op op;
  ft_attr attr;
  ft_dtype dtype;
  ft_shape shape;
  const uint8_t *is_output;
  uint32_t operand[MOST_OPERANDS], count;
  FT_TRY(read_op(d, &op, error));
  FT_TRY(read_attr(d, op, &attr, error));
  FT_TRY(read_type(d, &dtype, &shape, error));
  FT_TRY(read_bytes(d, 1, &is_output, error));
  bool is_needed = *is_output != 0;
  FT_TRY(read_operands(d, op, position, operand, &count, error));
  const char *name = ft_arena_printf(d->arena, "p%u", position);
  FT_OOM_IF(!name, error);
  FT_TRY(ft_graph_begin_operator(d->graph, name, ft_op_describe(op)->name, "", error));
  uint32_t *result = &d->result[position];
  FT_TRY(ft_graph_emit(d->graph, op, operand, count, &attr, result, error));
  const ft_value *made = &d->graph->value[*result];
  if (made->dtype != dtype || !ft_shape_equal(&made->shape, &shape))
    return malformed(d, "a result is not of its type", error);
  return is_needed ? ft_graph_add_output(d->graph, name, *result, error) : FT_OK;
}

// ---- the whole ------------------------------------------------------------------------

static ft_status read_inputs(decoding *d, ft_error *error) {
  FT_TRY(read_below(d, (uint64_t)(d->end - d->at) + 1, &d->input_count, error));
  d->input = FT_NEW_ARRAY(d->arena, uint32_t, d->input_count);
  FT_OOM_IF(!d->input, error);
  for (uint32_t i = 0; i < d->input_count; i++) {
    ft_dtype dtype;
    ft_shape shape;
    FT_TRY(read_type(d, &dtype, &shape, error));
    const char *name = ft_arena_printf(d->arena, "input_%u", i);
    FT_OOM_IF(!name, error);
    FT_TRY(ft_graph_add_input(d->graph, name, dtype, &shape, &d->input[i], error));
  }
  return FT_OK;
}

static ft_status read_graph(decoding *d, ft_error *error) {
  static const char magic[] = "ft-workload-1";
  const uint8_t *start;
  FT_TRY(read_bytes(d, strlen(magic), &start, error));
  if (memcmp(start, magic, strlen(magic)) != 0)
    return malformed(d, "is no workload", error);
  FT_TRY(read_inputs(d, error));
  FT_TRY(read_below(d, MOST_NODES + 1, &d->node_count, error));
  d->result = FT_NEW_ARRAY(d->arena, uint32_t, d->node_count);
  FT_OOM_IF(!d->result, error);
  for (uint32_t i = 0; i < d->node_count; i++) FT_TRY(read_node(d, i, error));
  return d->at == d->end ? FT_OK : malformed(d, "bytes are left over", error);
}

// Emitting may fold, share or drop: then these bytes were never a group of a graph.
static ft_status make_workload(const decoding *d, ft_workload *out, ft_error *error) {
  const ft_graph *graph = d->graph;
  uint32_t *all = FT_NEW_ARRAY(d->arena, uint32_t, graph->primitive_count);
  FT_OOM_IF(!all, error);
  for (uint32_t i = 0; i < graph->primitive_count; i++) all[i] = i;
  ft_group *group = FT_NEW(d->arena, ft_group);
  FT_OOM_IF(!group, error);
  FT_TRY(ft_group_make(graph, all, graph->primitive_count, d->arena, group, error));
  FT_TRY(ft_workload_make(group, d->arena, out, error));
  ft_workload given = {.encoding = d->start,
                       .encoding_bytes = (size_t)(d->end - d->start)};
  if (!ft_workload_equal(out, &given))
    return malformed(d, "no group has this encoding", error);
  return FT_OK;
}

ft_status ft_workload_decode(const void *encoding, size_t bytes, ft_arena *arena,
                             ft_graph **out_graph, ft_workload *out, ft_error *error) {
  decoding d = {.start = encoding, .at = encoding, .arena = arena};
  d.end = d.start + bytes;
  *out_graph = NULL;
  *out = (ft_workload){0};
  FT_TRY(ft_graph_create(arena, "workload", &d.graph, error));
  ft_status status = read_graph(&d, error);
  if (status == FT_OK) status = ft_graph_finish(d.graph, error);
  if (status == FT_OK && d.graph->primitive_count != d.node_count)
    status = malformed(&d, "no group has this encoding", error);
  if (status == FT_OK) status = make_workload(&d, out, error);
  // What a graph would not take, a store must not hold.
  if (status == FT_INVALID_ARGUMENT || status == FT_UNSUPPORTED) {
    (void)ft_error_prefix(error, "workload encoding");
    if (error) error->code = FT_REFUSED;
    return FT_REFUSED;
  }
  if (status == FT_OK) *out_graph = d.graph;
  return status;
}
