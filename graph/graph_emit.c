// ft_graph_emit: infer, drop identities, find the equal one, fold, append.
#include <string.h>

#include "graph/attr.h"
#include "graph/builder.h"
#include "graph/fold.h"

typedef struct emission {
  ft_op op;
  ft_attr attr;  // canonical
  const uint32_t *input;
  uint32_t count;
  ft_dtype dtype;
  ft_shape shape;
} emission;

// A transpose that only moves axes of extent 1 leaves the elements in order.
static bool keeps_order(const ft_shape *in, const uint8_t *perm) {
  int last = -1;
  for (int i = 0; i < in->rank; i++) {
    if (in->dim[perm[i]] == 1) continue;
    if (perm[i] < last) return false;
    last = perm[i];
  }
  return true;
}

static bool slices_all(const ft_shape *in, const emission *e) {
  bool forward = ft_shape_equal(&e->shape, in);
  for (int i = 0; forward && i < in->rank; i++) forward = e->attr.step[i] > 0;
  return forward;
}

// True when the result is the first input's elements in their order: a view at most.
static bool is_identity(const ft_graph *graph, const emission *e) {
  const ft_value *in = &graph->value[e->input[0]];
  switch (e->op) {
    case FT_OP_COPY:
      return true;
    case FT_OP_CAST:
      return e->dtype == in->dtype;
    case FT_OP_TRANSPOSE:
      return keeps_order(&in->shape, e->attr.perm);
    case FT_OP_BROADCAST:
      return ft_shape_elements(&e->shape) == ft_shape_elements(&in->shape);
    case FT_OP_SLICE:
      return slices_all(&in->shape, e);
    case FT_OP_CONCAT:
      return e->count == 1;
    case FT_OP_PAD:
      return ft_shape_equal(&e->shape, &in->shape);
    default:
      return ft_op_describe(e->op)->class == FT_CLASS_R && e->attr.axes == 0;
  }
}

static uint64_t hash_emission(const emission *e) {
  uint64_t hash = ft_hash64(FT_HASH64_SEED, &e->op, sizeof e->op);
  hash = ft_hash64(hash, e->input, e->count * sizeof e->input[0]);
  return ft_attr_hash(hash, e->op, &e->attr);
}

static bool same_primitive(const ft_graph *graph, uint32_t value, const void *key) {
  const emission *e = key;
  const ft_value *v = &graph->value[value];
  if (v->producer == FT_NONE || v->root != value) return false;
  const ft_primitive *p = &graph->primitive[v->producer];
  return p->op == e->op && p->input_count == e->count &&
         ft_attr_equal(&p->attr, &e->attr) &&
         memcmp(p->input, e->input, e->count * sizeof e->input[0]) == 0;
}

// How many terms an element of a window or contraction has, as far as it matters.
static double terms_of(const ft_graph *graph, const emission *e) {
  const ft_shape *b = &graph->value[e->input[e->count - 1]].shape;
  double terms = 1;
  if (e->op == FT_OP_MATMUL) return (double)b->dim[b->rank - 2];
  if (e->op == FT_OP_CONV)
    for (int i = 1; i < b->rank; i++) terms *= (double)b->dim[i];
  else
    for (int i = 0; i < e->shape.rank - 2; i++) terms *= (double)e->attr.window[i];
  return terms;
}

// Bytes that folding would read and write, or terms that it would add; UINT64_MAX when
// that is too many or an input is not known.
static uint64_t fold_cost(const ft_graph *graph, const emission *e) {
  uint64_t bytes = (uint64_t)ft_shape_elements(&e->shape) * ft_dtype_bytes(e->dtype);
  ft_op_class class = ft_op_describe(e->op)->class;
  if (bytes > FT_FOLD_BYTES) return UINT64_MAX;
  if (class == FT_CLASS_S || class == FT_CLASS_M) {
    double terms = (double)bytes * terms_of(graph, e);
    if (!(terms <= FT_FOLD_COST)) return UINT64_MAX;
    bytes += (uint64_t)terms;
  }
  for (uint32_t i = 0; i < e->count; i++) {
    const ft_tensor *data = graph->value[e->input[i]].data;
    if (!data || data->bytes > FT_FOLD_COST) return UINT64_MAX;
    bytes += data->bytes;
  }
  return bytes;
}

// UNSUPPORTED, from here or from the hook, means: keep the primitive.
static ft_status fold(ft_graph *graph, const emission *e, uint32_t *out_value,
                      ft_error *error) {
  ft_tensor result;
  uint64_t cost = fold_cost(graph, e);
  if (cost > FT_FOLD_COST || graph->builder->fold_cost + cost > FT_FOLD_TOTAL)
    return FT_UNSUPPORTED;
  ft_tensor *input = FT_NEW_ARRAY(graph->arena, ft_tensor, e->count);
  FT_OOM_IF(!input, error);
  for (uint32_t i = 0; i < e->count; i++) input[i] = *graph->value[e->input[i]].data;
  FT_TRY(ft_fold_primitive(e->op, &e->attr, input, e->count, e->dtype, &e->shape,
                           graph->arena, &result, error));
  graph->builder->fold_cost += cost;
  return ft_graph_add_constant(graph, "", &result, out_value, error);
}

static ft_status append(ft_graph *graph, const emission *e, uint32_t *out_value,
                        ft_error *error) {
  if (!graph->operator_count)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%s emitted before any operator began",
            ft_op_describe(e->op)->name);
  const uint32_t *input =
      ft_arena_memdup(graph->arena, e->input, e->count * sizeof e->input[0]);
  FT_OOM_IF(!input, error);
  FT_OOM_IF(FT_GROW(graph->arena, &graph->primitive, graph->primitive_count,
                    &graph->builder->primitive_capacity),
            error);
  ft_value value = {.name = "",
                    .dtype = e->dtype,
                    .shape = e->shape,
                    .root = FT_NONE,
                    .role = FT_ROLE_COMPUTED,
                    .producer = graph->primitive_count};
  FT_TRY(ft_graph_append_value(graph, &value, out_value, error));
  ft_primitive *p = &graph->primitive[graph->primitive_count++];
  *p = (ft_primitive){.op = e->op,
                      .attr = e->attr,
                      .input_count = e->count,
                      .input = input,
                      .output = *out_value,
                      .op_index = graph->operator_count - 1};
  return FT_OK;
}

static ft_status make(ft_graph *graph, const emission *e, uint64_t hash,
                      uint32_t *out_value, ft_error *error) {
  ft_status folded = fold(graph, e, out_value, error);
  if (folded != FT_UNSUPPORTED) return folded;
  FT_TRY(append(graph, e, out_value, error));
  return ft_graph_remember(graph, hash, *out_value, error);
}

ft_status ft_graph_emit(ft_graph *graph, ft_op op, const uint32_t *input, uint32_t count,
                        const ft_attr *attr, uint32_t *out_value, ft_error *error) {
  emission e = {.op = op, .input = input, .count = count};
  FT_TRY(ft_primitive_infer(graph, op, input, count, attr, &e.attr, &e.dtype, &e.shape,
                            error));
  // |input| may be |out_value|: nothing is written there before all is read.
  if (is_identity(graph, &e)) {
    uint32_t same = input[0];
    if (!ft_shape_equal(&e.shape, &graph->value[same].shape))
      return ft_graph_view(graph, same, &e.shape, out_value, error);
    *out_value = same;
    return FT_OK;
  }
  uint64_t hash = hash_emission(&e);
  uint32_t found = ft_graph_find(graph, hash, same_primitive, &e);
  if (found == FT_NONE) FT_TRY(make(graph, &e, hash, &found, error));
  *out_value = found;
  return FT_OK;
}
