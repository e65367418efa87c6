#include "graph/onnx.h"

#include <string.h>

#include "graph/onnx_check.h"

// Everything below runs on bytes that ft_onnx_check has accepted: wire types of known
// fields are right. The wire reader checks bounds again all the same.

static ft_status count_item(uint32_t *items, ft_error *error) {
  if (++*items > FT_ONNX_MAX_ITEMS)
    FT_FAIL(error, FT_REFUSED, "the model lists more than %d things", FT_ONNX_MAX_ITEMS);
  return FT_OK;
}

// How often each of |numbers| occurs.
static ft_status count_fields(ft_wire wire, const uint32_t *numbers, uint32_t kinds,
                              uint32_t *counts, uint32_t *items, ft_error *error) {
  memset(counts, 0, kinds * sizeof *counts);
  for (;;) {
    ft_wire_field field;
    FT_TRY(ft_wire_next(&wire, &field, error));
    if (!field.number) return FT_OK;
    for (uint32_t k = 0; k < kinds; k++) {
      if (field.number != numbers[k]) continue;
      FT_TRY(count_item(items, error));
      counts[k]++;
    }
  }
}

static float float_of_bits(uint64_t bits) {
  uint32_t word = (uint32_t)bits;
  float value;
  memcpy(&value, &word, sizeof value);
  return value;
}

static ft_status read_attribute(ft_wire wire, ft_onnx_attribute *out, ft_error *error) {
  out->message = (ft_span){wire.at, (size_t)(wire.end - wire.at)};
  out->file = wire.file;
  for (;;) {
    ft_wire_field field;
    FT_TRY(ft_wire_next(&wire, &field, error));
    switch (field.number) {
      case 0:
        return FT_OK;
      case 1:
        out->name = field.bytes;
        break;
      case 2:
        out->f = float_of_bits(field.value);
        break;
      case 3:
        out->i = (int64_t)field.value;
        break;
      case 4:
        out->s = field.bytes;
        break;
      case 5:
        out->t = field.bytes;
        break;
      case 6:
        out->g = field.bytes;
        break;
      case 20:
        out->type = (int64_t)field.value;
        break;
      default:
        break;
    }
  }
}

typedef struct node_lists {
  ft_span *input, *output;
  ft_onnx_attribute *attribute;
} node_lists;

static ft_status allocate_lists(ft_wire wire, ft_onnx_node *node, node_lists *lists,
                                ft_arena *arena, uint32_t *items, ft_error *error) {
  static const uint32_t numbers[] = {1, 2, 5};
  uint32_t counts[3];
  FT_TRY(count_fields(wire, numbers, 3, counts, items, error));
  node->input = lists->input = FT_NEW_ARRAY(arena, ft_span, counts[0]);
  node->output = lists->output = FT_NEW_ARRAY(arena, ft_span, counts[1]);
  node->attribute = lists->attribute = FT_NEW_ARRAY(arena, ft_onnx_attribute, counts[2]);
  FT_OOM_IF(!lists->input || !lists->output || !lists->attribute, error);
  return FT_OK;
}

static ft_status read_node_field(const ft_wire *wire, const ft_wire_field *field,
                                 ft_onnx_node *node, node_lists *lists, ft_error *error) {
  switch (field->number) {
    case 1:
      lists->input[node->input_count++] = field->bytes;
      return FT_OK;
    case 2:
      lists->output[node->output_count++] = field->bytes;
      return FT_OK;
    case 3:
      node->name = field->bytes;
      return FT_OK;
    case 4:
      node->op = field->bytes;
      return FT_OK;
    case 7:
      node->domain = field->bytes;
      return FT_OK;
    case 5: {
      ft_wire inner;
      FT_TRY(ft_wire_enter(wire, field->bytes, "AttributeProto", &inner, error));
      return read_attribute(inner, &lists->attribute[node->attribute_count++], error);
    }
    default:
      return FT_OK;
  }
}

static bool is_default_domain(ft_span domain) {
  return domain.size == 0 || ft_span_is(domain, "ai.onnx");
}

static ft_status read_node(ft_wire wire, ft_onnx_node *out, ft_arena *arena,
                           uint32_t *items, ft_error *error) {
  node_lists lists;
  FT_TRY(allocate_lists(wire, out, &lists, arena, items, error));
  for (;;) {
    ft_wire_field field;
    FT_TRY(ft_wire_next(&wire, &field, error));
    if (!field.number) break;
    FT_TRY(read_node_field(&wire, &field, out, &lists, error));
  }
  if (is_default_domain(out->domain)) out->domain = (ft_span){0};
  return FT_OK;
}

// Reads the name of a TensorProto (field 8, the message is the tensor itself) or of a
// ValueInfoProto (field 1, the message is its type, field 2).
static ft_status read_entry(ft_wire wire, bool is_tensor, ft_onnx_entry *out,
                            ft_error *error) {
  if (is_tensor) out->message = (ft_span){wire.at, (size_t)(wire.end - wire.at)};
  for (;;) {
    ft_wire_field field;
    FT_TRY(ft_wire_next(&wire, &field, error));
    if (!field.number) return FT_OK;
    if (field.number == (is_tensor ? 8u : 1u)) out->name = field.bytes;
    if (field.number == 2 && !is_tensor) out->message = field.bytes;
  }
}

typedef struct graph_lists {
  ft_onnx_node *node;
  ft_onnx_entry *initializer, *input, *output;
} graph_lists;

static ft_status allocate_graph(ft_wire wire, ft_onnx_model *model, graph_lists *lists,
                                ft_arena *arena, uint32_t *items, ft_error *error) {
  static const uint32_t numbers[] = {1, 5, 11, 12};
  uint32_t counts[4];
  FT_TRY(count_fields(wire, numbers, 4, counts, items, error));
  model->node = lists->node = FT_NEW_ARRAY(arena, ft_onnx_node, counts[0]);
  model->initializer = lists->initializer = FT_NEW_ARRAY(arena, ft_onnx_entry, counts[1]);
  model->input = lists->input = FT_NEW_ARRAY(arena, ft_onnx_entry, counts[2]);
  model->output = lists->output = FT_NEW_ARRAY(arena, ft_onnx_entry, counts[3]);
  FT_OOM_IF(!lists->node || !lists->initializer || !lists->input || !lists->output,
            error);
  return FT_OK;
}

static ft_status read_graph_field(const ft_wire *wire, const ft_wire_field *field,
                                  ft_onnx_model *model, graph_lists *lists,
                                  ft_arena *arena, uint32_t *items, ft_error *error) {
  ft_wire inner;
  if (field->number == 2) model->name = field->bytes;
  if (field->number == 15) model->sparse_count++;
  if (field->number != 1 && field->number != 5 && field->number != 11 &&
      field->number != 12)
    return FT_OK;
  FT_TRY(ft_wire_enter(wire, field->bytes, "GraphProto entry", &inner, error));
  switch (field->number) {
    case 1:
      return read_node(inner, &lists->node[model->node_count++], arena, items, error);
    case 5:
      return read_entry(inner, true, &lists->initializer[model->initializer_count++],
                        error);
    case 11:
      return read_entry(inner, false, &lists->input[model->input_count++], error);
    default:
      return read_entry(inner, false, &lists->output[model->output_count++], error);
  }
}

static ft_status read_graph(ft_wire wire, ft_onnx_model *model, ft_arena *arena,
                            uint32_t *items, ft_error *error) {
  graph_lists lists;
  FT_TRY(allocate_graph(wire, model, &lists, arena, items, error));
  for (;;) {
    ft_wire_field field;
    FT_TRY(ft_wire_next(&wire, &field, error));
    if (!field.number) return FT_OK;
    FT_TRY(read_graph_field(&wire, &field, model, &lists, arena, items, error));
  }
}

static ft_status read_opset(ft_wire wire, ft_onnx_opset *out, ft_error *error) {
  for (;;) {
    ft_wire_field field;
    FT_TRY(ft_wire_next(&wire, &field, error));
    if (!field.number) break;
    if (field.number == 1) out->domain = field.bytes;
    if (field.number == 2) out->version = (int64_t)field.value;
  }
  if (is_default_domain(out->domain)) out->domain = (ft_span){0};
  return FT_OK;
}

// Reads the model's own fields; *out_graph is the last graph (a singular field).
static ft_status read_model(ft_wire wire, ft_onnx_model *out, ft_onnx_opset *opsets,
                            ft_span *out_graph, ft_error *error) {
  for (;;) {
    ft_wire_field field;
    ft_wire inner;
    FT_TRY(ft_wire_next(&wire, &field, error));
    switch (field.number) {
      case 0:
        return FT_OK;
      case 1:
        out->ir_version = (int64_t)field.value;
        break;
      case 7:
        *out_graph = field.bytes;
        break;
      case 8:
        FT_TRY(ft_wire_enter(&wire, field.bytes, "OperatorSetIdProto", &inner, error));
        FT_TRY(read_opset(inner, &opsets[out->opset_count++], error));
        break;
      default:
        break;
    }
  }
}

ft_status ft_onnx_open(ft_span file, ft_arena *arena, ft_onnx_model *out,
                       ft_error *error) {
  *out = (ft_onnx_model){.file = file.data};
  FT_TRY(ft_onnx_check(file, error));
  static const uint32_t numbers[] = {7, 8};
  uint32_t counts[2];
  ft_wire wire = ft_wire_open(file, file.data, "ModelProto"), inner;
  FT_TRY(count_fields(wire, numbers, 2, counts, &out->items, error));
  if (counts[0] == 0) FT_FAIL(error, FT_REFUSED, "the file has no GraphProto");
  ft_onnx_opset *opsets = FT_NEW_ARRAY(arena, ft_onnx_opset, counts[1]);
  FT_OOM_IF(!opsets, error);
  out->opset = opsets;
  ft_span graph = {0};
  FT_TRY(read_model(wire, out, opsets, &graph, error));
  FT_TRY(ft_wire_enter(&wire, graph, "GraphProto", &inner, error));
  return read_graph(inner, out, arena, &out->items, error);
}

ft_status ft_onnx_open_graph(ft_onnx_model *outer, const ft_onnx_attribute *attribute,
                             ft_arena *arena, ft_onnx_model *out, ft_error *error) {
  *out = (ft_onnx_model){.file = outer->file,
                         .ir_version = outer->ir_version,
                         .opset_count = outer->opset_count,
                         .opset = outer->opset};
  ft_wire wire = ft_wire_open(attribute->g, outer->file, "GraphProto");
  return read_graph(wire, out, arena, &outer->items, error);
}

char *ft_span_copy(ft_span span, ft_arena *arena) {
  const char *text = span.size ? (const char *)span.data : "";
  return ft_arena_strndup(arena, text, span.size);
}

int64_t ft_onnx_opset_of(const ft_onnx_model *model, ft_span domain) {
  for (uint32_t i = 0; i < model->opset_count; i++)
    if (ft_span_equal(model->opset[i].domain, domain)) return model->opset[i].version;
  return 0;
}

const ft_onnx_attribute *ft_onnx_find_attribute(const ft_onnx_node *node,
                                                const char *name) {
  for (uint32_t i = 0; i < node->attribute_count; i++)
    if (ft_span_is(node->attribute[i].name, name)) return &node->attribute[i];
  return NULL;
}

// Calls for every scalar of field |number|: counts when |out| is NULL, else stores.
static ft_status each_scalar(const ft_onnx_attribute *attribute, uint32_t number,
                             ft_wire_type element, uint64_t *out, size_t *out_count,
                             ft_error *error) {
  ft_wire wire = ft_wire_open(attribute->message, attribute->file, "AttributeProto");
  *out_count = 0;
  for (;;) {
    ft_wire_field field;
    ft_wire_scalars scalars;
    FT_TRY(ft_wire_next(&wire, &field, error));
    if (!field.number) return FT_OK;
    if (field.number != number) continue;
    FT_TRY(ft_wire_scalars_open(&wire, &field, element, &scalars, error));
    for (bool more = true;;) {
      uint64_t value = 0;
      FT_TRY(ft_wire_scalars_next(&scalars, &value, &more, error));
      if (!more) break;
      if (out) out[*out_count] = value;
      ++*out_count;
    }
  }
}

ft_status ft_onnx_read_ints(const ft_onnx_attribute *attribute, ft_arena *arena,
                            const int64_t **out, size_t *out_count, ft_error *error) {
  FT_TRY(each_scalar(attribute, 8, FT_WIRE_VARINT, NULL, out_count, error));
  uint64_t *values = FT_NEW_ARRAY(arena, uint64_t, *out_count);
  FT_OOM_IF(!values, error);
  *out = (const int64_t *)values;
  return each_scalar(attribute, 8, FT_WIRE_VARINT, values, out_count, error);
}

ft_status ft_onnx_read_floats(const ft_onnx_attribute *attribute, ft_arena *arena,
                              const float **out, size_t *out_count, ft_error *error) {
  FT_TRY(each_scalar(attribute, 7, FT_WIRE_FIXED32, NULL, out_count, error));
  uint64_t *bits = FT_NEW_ARRAY(arena, uint64_t, *out_count);
  float *values = FT_NEW_ARRAY(arena, float, *out_count);
  FT_OOM_IF(!bits || !values, error);
  FT_TRY(each_scalar(attribute, 7, FT_WIRE_FIXED32, bits, out_count, error));
  for (size_t i = 0; i < *out_count; i++) values[i] = float_of_bits(bits[i]);
  *out = values;
  return FT_OK;
}

static ft_status read_dim(ft_wire wire, ft_onnx_dim *out, ft_error *error) {
  for (;;) {
    ft_wire_field field;
    FT_TRY(ft_wire_next(&wire, &field, error));
    if (!field.number) return FT_OK;
    int64_t value = (int64_t)field.value;  // some exporters write -1 for "any"
    if (field.number == 1)
      *out = (ft_onnx_dim){.kind = value == -1 ? FT_DIM_UNKNOWN : FT_DIM_VALUE,
                           .value = value};
    if (field.number == 2)
      *out = (ft_onnx_dim){.kind = field.bytes.size ? FT_DIM_NAMED : FT_DIM_UNKNOWN,
                           .name = field.bytes};
  }
}

static ft_status read_shape(ft_wire wire, ft_onnx_type *out, ft_error *error) {
  out->has_shape = true;
  out->rank = 0;
  for (;;) {
    ft_wire_field field;
    ft_wire inner;
    FT_TRY(ft_wire_next(&wire, &field, error));
    if (!field.number) return FT_OK;
    if (field.number != 1) continue;
    FT_TRY(
        ft_wire_enter(&wire, field.bytes, "TensorShapeProto.Dimension", &inner, error));
    ft_onnx_dim dim = {0};
    FT_TRY(read_dim(inner, &dim, error));
    if (out->rank < FT_MAX_RANK) out->dim[out->rank] = dim;
    out->rank++;
  }
}

static ft_status read_tensor_type(ft_wire wire, ft_onnx_type *out, ft_error *error) {
  for (;;) {
    ft_wire_field field;
    ft_wire inner;
    FT_TRY(ft_wire_next(&wire, &field, error));
    if (!field.number) return FT_OK;
    if (field.number == 1) out->element = (int64_t)field.value;
    if (field.number != 2) continue;
    FT_TRY(ft_wire_enter(&wire, field.bytes, "TensorShapeProto", &inner, error));
    FT_TRY(read_shape(inner, out, error));
  }
}

ft_status ft_onnx_read_type(ft_span message, const uint8_t *file, ft_onnx_type *out,
                            ft_error *error) {
  *out = (ft_onnx_type){0};
  ft_wire wire = ft_wire_open(message, file, "TypeProto");
  for (;;) {
    ft_wire_field field;
    ft_wire inner;
    FT_TRY(ft_wire_next(&wire, &field, error));
    if (!field.number) return FT_OK;
    bool is_type = field.number == 1 || field.number == 4 || field.number == 5 ||
                   field.number == 8 || field.number == 9;
    if (!is_type) continue;
    *out = (ft_onnx_type){.is_tensor = field.number == 1};
    if (!out->is_tensor) continue;
    FT_TRY(ft_wire_enter(&wire, field.bytes, "TypeProto.Tensor", &inner, error));
    FT_TRY(read_tensor_type(inner, out, error));
  }
}
