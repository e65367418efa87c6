#include "graph/graph.h"

#include <string.h>

#include "core/rng.h"
#include "graph/builder.h"

const ft_op_info *ft_op_describe(ft_op op) {
  static const ft_op_info ops[FT_OP_COUNT] = {
#define FT_PRIMITIVE(id, text, kind, inputs) \
  [FT_OP_##id] = {.name = text, .class = FT_CLASS_##kind, .arity = inputs},
#include "graph/primitives.def"
#undef FT_PRIMITIVE
  };
  FT_ASSERT((unsigned)op < FT_OP_COUNT);
  return &ops[op];
}

// ---- the table of what was emitted ----------------------------------------------

uint32_t ft_graph_find(const ft_graph *graph, uint64_t hash, ft_graph_same *same,
                       const void *key) {
  const ft_graph_builder *b = graph->builder;
  if (!b->slot_count) return FT_NONE;
  for (uint32_t at = (uint32_t)hash;; at++) {
    const ft_graph_slot *slot = &b->slot[at & (b->slot_count - 1)];
    if (slot->value == FT_NONE) return FT_NONE;
    if (slot->hash == hash && same(graph, slot->value, key)) return slot->value;
  }
}

static void place(ft_graph_slot *slot, uint32_t count, ft_graph_slot entry) {
  uint32_t at = (uint32_t)entry.hash & (count - 1);
  while (slot[at].value != FT_NONE) at = (at + 1) & (count - 1);
  slot[at] = entry;
}

static ft_status grow_table(ft_graph *graph, ft_error *error) {
  ft_graph_builder *b = graph->builder;
  uint32_t count = b->slot_count ? b->slot_count * 2 : 64;
  ft_graph_slot *slot = FT_NEW_ARRAY(graph->arena, ft_graph_slot, count);
  FT_OOM_IF(!slot, error);
  for (uint32_t i = 0; i < count; i++) slot[i].value = FT_NONE;
  for (uint32_t i = 0; i < b->slot_count; i++)
    if (b->slot[i].value != FT_NONE) place(slot, count, b->slot[i]);
  b->slot = slot;
  b->slot_count = count;
  return FT_OK;
}

ft_status ft_graph_remember(ft_graph *graph, uint64_t hash, uint32_t value,
                            ft_error *error) {
  ft_graph_builder *b = graph->builder;
  if (b->slot_used * 2 >= b->slot_count) FT_TRY(grow_table(graph, error));
  place(b->slot, b->slot_count, (ft_graph_slot){hash, value});
  b->slot_used++;
  return FT_OK;
}

// ---- values ---------------------------------------------------------------------

const char *ft_value_text(const ft_graph *graph, uint32_t value) {
  const ft_value *v = &graph->value[value];
  const char *shape = ft_shape_text(&v->shape, graph->arena);
  const char *text = v->name[0] ? ft_arena_printf(graph->arena, "'%s' (%s %s)", v->name,
                                                  ft_dtype_text(v->dtype), shape)
                                : ft_arena_printf(graph->arena, "value %u (%s %s)", value,
                                                  ft_dtype_text(v->dtype), shape);
  return text ? text : "?";
}

ft_status ft_graph_require(const ft_graph *graph, uint32_t value, ft_error *error) {
  if (!graph->builder) FT_FAIL(error, FT_INVALID_ARGUMENT, "the graph is finished");
  if (value >= graph->value_count)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "no value %u: there are %u", value,
            graph->value_count);
  return FT_OK;
}

// Bytes are limited like elements, so that byte counts never overflow either.
static ft_status check_shape(const ft_graph *graph, const ft_value *value,
                             ft_error *error) {
  int64_t elements = value->shape.rank <= FT_MAX_RANK ? 0 : -1, bytes;
  for (int i = 0; elements == 0 && i < value->shape.rank; i++)
    if (value->shape.dim[i] < 0) elements = -1;
  if (elements == 0) elements = ft_shape_elements(&value->shape);
  int64_t size = (int64_t)ft_dtype_bytes(value->dtype);
  if (elements < 0 || __builtin_mul_overflow(elements, size, &bytes) ||
      bytes > INT64_C(1) << 62)
    FT_FAIL(error, FT_REFUSED,
            "'%s' has shape %s of %s: more than 2^62 bytes, or invalid", value->name,
            value->shape.rank <= FT_MAX_RANK ? ft_shape_text(&value->shape, graph->arena)
                                             : "of rank > 8",
            ft_dtype_text(value->dtype));
  return FT_OK;
}

ft_status ft_graph_append_value(ft_graph *graph, const ft_value *value,
                                uint32_t *out_value, ft_error *error) {
  if (!graph->builder) FT_FAIL(error, FT_INVALID_ARGUMENT, "the graph is finished");
  FT_TRY(check_shape(graph, value, error));
  FT_OOM_IF(FT_GROW(graph->arena, &graph->value, graph->value_count,
                    &graph->builder->value_capacity),
            error);
  uint32_t index = graph->value_count++;
  ft_value *v = &graph->value[index];
  *v = *value;
  for (int i = v->shape.rank; i < FT_MAX_RANK; i++) v->shape.dim[i] = 0;
  if (v->root == FT_NONE) v->root = index;
  *out_value = index;
  return FT_OK;
}

static ft_status copy_name(ft_graph *graph, const char *name, const char **out,
                           ft_error *error) {
  *out = ft_arena_strdup(graph->arena, name);
  FT_OOM_IF(!*out, error);
  return FT_OK;
}

// ---- building -------------------------------------------------------------------

ft_status ft_graph_create(ft_arena *arena, const char *name, ft_graph **out,
                          ft_error *error) {
  *out = NULL;
  ft_graph *graph = FT_NEW(arena, ft_graph);
  FT_OOM_IF(!graph, error);
  graph->arena = arena;
  graph->builder = FT_NEW(arena, ft_graph_builder);
  FT_OOM_IF(!graph->builder, error);
  graph->dims_json = "{}";
  FT_TRY(copy_name(graph, name, &graph->name, error));
  *out = graph;
  return FT_OK;
}

ft_status ft_graph_add_input(ft_graph *graph, const char *name, ft_dtype dtype,
                             const ft_shape *shape, uint32_t *out_value,
                             ft_error *error) {
  ft_value value = {.dtype = dtype,
                    .shape = *shape,
                    .root = FT_NONE,
                    .producer = FT_NONE,
                    .role = FT_ROLE_INPUT};
  FT_TRY(copy_name(graph, name, &value.name, error));
  FT_TRY(ft_graph_append_value(graph, &value, out_value, error));
  FT_OOM_IF(FT_GROW(graph->arena, &graph->input, graph->input_count,
                    &graph->builder->input_capacity),
            error);
  graph->input[graph->input_count++] = (ft_graph_input){value.name, *out_value};
  return FT_OK;
}

static uint64_t hash_tensor(const ft_tensor *tensor) {
  uint64_t hash = ft_hash64(FT_HASH64_SEED, "constant", 8);
  hash = ft_hash64(hash, &tensor->dtype, sizeof tensor->dtype);
  for (int i = 0; i < tensor->shape.rank; i++)
    hash = ft_hash64(hash, &tensor->shape.dim[i], sizeof tensor->shape.dim[i]);
  return ft_hash64(hash, tensor->data, tensor->bytes);
}

static bool same_tensor(const ft_graph *graph, uint32_t value, const void *key) {
  const ft_tensor *a = graph->value[value].data, *b = key;
  return graph->value[value].role == FT_ROLE_CONSTANT && a && a->dtype == b->dtype &&
         graph->value[value].root == value && ft_shape_equal(&a->shape, &b->shape) &&
         a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

static ft_status append_constant(ft_graph *graph, const char *name,
                                 const ft_tensor *tensor, uint32_t *out_value,
                                 ft_error *error) {
  ft_value value = {.dtype = tensor->dtype,
                    .shape = tensor->shape,
                    .root = FT_NONE,
                    .producer = FT_NONE,
                    .role = FT_ROLE_CONSTANT};
  FT_TRY(copy_name(graph, name, &value.name, error));
  value.data = ft_arena_memdup(graph->arena, tensor, sizeof *tensor);
  FT_OOM_IF(!value.data, error);
  return ft_graph_append_value(graph, &value, out_value, error);
}

ft_status ft_graph_add_constant(ft_graph *graph, const char *name,
                                const ft_tensor *tensor, uint32_t *out_value,
                                ft_error *error) {
  if (!graph->builder) FT_FAIL(error, FT_INVALID_ARGUMENT, "the graph is finished");
  int64_t elements = ft_shape_elements(&tensor->shape);
  if (elements < 0 || !tensor->data ||
      (uint64_t)elements != tensor->bytes / ft_dtype_bytes(tensor->dtype) ||
      tensor->bytes % ft_dtype_bytes(tensor->dtype))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "constant '%s' of %s %s has %zu bytes", name,
            ft_dtype_text(tensor->dtype), ft_shape_text(&tensor->shape, graph->arena),
            tensor->bytes);
  bool interned = elements <= FT_INTERN_ELEMENTS;
  uint64_t hash = interned ? hash_tensor(tensor) : 0;
  *out_value = interned ? ft_graph_find(graph, hash, same_tensor, tensor) : FT_NONE;
  if (*out_value != FT_NONE) return ft_graph_name_value(graph, *out_value, name, error);
  FT_TRY(append_constant(graph, name, tensor, out_value, error));
  return interned ? ft_graph_remember(graph, hash, *out_value, error) : FT_OK;
}

ft_status ft_graph_add_weight(ft_graph *graph, const char *name, ft_dtype dtype,
                              const ft_shape *shape, uint64_t seed, uint32_t *out_value,
                              ft_error *error) {
  ft_value value = {.dtype = dtype,
                    .shape = *shape,
                    .root = FT_NONE,
                    .producer = FT_NONE,
                    .role = FT_ROLE_CONSTANT,
                    .seed = seed};
  FT_TRY(copy_name(graph, name, &value.name, error));
  return ft_graph_append_value(graph, &value, out_value, error);
}

ft_status ft_graph_add_scalar(ft_graph *graph, ft_dtype dtype, double value,
                              uint32_t *out_value, ft_error *error) {
  ft_tensor tensor;
  void *data;
  ft_shape scalar = {0};
  FT_TRY(ft_tensor_alloc(dtype, &scalar, graph->arena, &tensor, &data, error));
  ft_element_set_f64(dtype, data, 0, value);
  return ft_graph_add_constant(graph, "", &tensor, out_value, error);
}

ft_status ft_graph_begin_operator(ft_graph *graph, const char *name, const char *type,
                                  const char *domain, ft_error *error) {
  if (!graph->builder) FT_FAIL(error, FT_INVALID_ARGUMENT, "the graph is finished");
  FT_OOM_IF(FT_GROW(graph->arena, &graph->operator_, graph->operator_count,
                    &graph->builder->operator_capacity),
            error);
  ft_operator *op = &graph->operator_[graph->operator_count];
  *op = (ft_operator){.first = graph->primitive_count};
  FT_TRY(copy_name(graph, name, &op->name, error));
  FT_TRY(copy_name(graph, type, &op->type, error));
  FT_TRY(copy_name(graph, domain, &op->domain, error));
  graph->operator_count++;
  return FT_OK;
}

ft_status ft_graph_name_value(ft_graph *graph, uint32_t value, const char *name,
                              ft_error *error) {
  FT_TRY(ft_graph_require(graph, value, error));
  if (graph->value[value].name[0]) return FT_OK;
  return copy_name(graph, name, &graph->value[value].name, error);
}

ft_status ft_graph_add_output(ft_graph *graph, const char *name, uint32_t value,
                              ft_error *error) {
  FT_TRY(ft_graph_require(graph, value, error));
  FT_OOM_IF(FT_GROW(graph->arena, &graph->output, graph->output_count,
                    &graph->builder->output_capacity),
            error);
  ft_graph_output output = {.value = value};
  FT_TRY(copy_name(graph, name, &output.name, error));
  graph->output[graph->output_count++] = output;
  graph->value[graph->value[value].root].is_output = true;
  return FT_OK;
}

// ---- views ----------------------------------------------------------------------

typedef struct view_key {
  uint32_t root;
  ft_shape shape;
} view_key;

static bool same_view(const ft_graph *graph, uint32_t value, const void *key) {
  const view_key *view = key;
  const ft_value *v = &graph->value[value];
  return v->root == view->root && v->root != value &&
         ft_shape_equal(&v->shape, &view->shape);
}

static uint64_t hash_view(const view_key *key) {
  uint64_t hash = ft_hash64(FT_HASH64_SEED, "view", 4);
  hash = ft_hash64(hash, &key->root, sizeof key->root);
  for (int i = 0; i < key->shape.rank; i++)
    hash = ft_hash64(hash, &key->shape.dim[i], sizeof key->shape.dim[i]);
  return hash;
}

static ft_status append_view(ft_graph *graph, const view_key *key, uint32_t *out_value,
                             ft_error *error) {
  ft_value view = graph->value[key->root];
  view.name = "";
  view.shape = key->shape;
  view.is_output = false;
  if (view.data) {
    ft_tensor *tensor = ft_arena_memdup(graph->arena, view.data, sizeof *tensor);
    FT_OOM_IF(!tensor, error);
    tensor->shape = key->shape;
    view.data = tensor;
  }
  return ft_graph_append_value(graph, &view, out_value, error);
}

ft_status ft_graph_view(ft_graph *graph, uint32_t value, const ft_shape *shape,
                        uint32_t *out_value, ft_error *error) {
  FT_TRY(ft_graph_require(graph, value, error));
  view_key key = {graph->value[value].root, *shape};
  const ft_shape *root_shape = &graph->value[key.root].shape;
  bool valid = shape->rank <= FT_MAX_RANK;
  for (int i = 0; valid && i < shape->rank; i++) valid = shape->dim[i] >= 0;
  if (!valid || ft_shape_elements(shape) != ft_shape_elements(root_shape))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%s cannot be viewed as %s",
            ft_value_text(graph, value),
            valid ? ft_shape_text(shape, graph->arena) : "an invalid shape");
  if (ft_shape_equal(shape, root_shape)) {
    *out_value = key.root;
    return FT_OK;
  }
  uint64_t hash = hash_view(&key);
  *out_value = ft_graph_find(graph, hash, same_view, &key);
  if (*out_value != FT_NONE) return FT_OK;
  FT_TRY(append_view(graph, &key, out_value, error));
  return ft_graph_remember(graph, hash, *out_value, error);
}

// ---- constants ------------------------------------------------------------------

bool ft_value_is_immediate(const ft_graph *graph, uint32_t value) {
  const ft_value *v = &graph->value[value];
  return v->role == FT_ROLE_CONSTANT && v->data && ft_shape_elements(&v->shape) == 1;
}

static void draw(ft_dtype dtype, void *data, int64_t elements, uint64_t seed) {
  ft_rng rng = ft_rng_seed(seed);
  for (int64_t i = 0; i < elements; i++) {
    if (ft_dtype_is_float(dtype))
      ft_element_set_f64(dtype, data, i, ft_rng_f64(&rng) - 0.5);
    else
      ft_element_set_i64(dtype, data, i,
                         (int64_t)ft_rng_below(&rng, dtype == FT_BOOL ? 2 : 4));
  }
}

ft_status ft_graph_constant_data(const ft_graph *graph, uint32_t value, ft_arena *arena,
                                 ft_tensor *out, ft_error *error) {
  const ft_value *v = &graph->value[value];
  if (v->role != FT_ROLE_CONSTANT)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "'%s' is not a constant", v->name);
  if (v->data) {
    *out = *v->data;
    return FT_OK;
  }
  void *data;
  FT_TRY(ft_tensor_alloc(v->dtype, &v->shape, arena, out, &data, error));
  draw(v->dtype, data, ft_shape_elements(&v->shape), v->seed);
  return FT_OK;
}
