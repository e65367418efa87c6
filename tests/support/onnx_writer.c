#include "tests/support/onnx_writer.h"

#include <stdlib.h>
#include <string.h>

void pb_varint(ft_strbuf *out, uint64_t value) {
  uint8_t bytes[10];
  size_t size = 0;
  do {
    bytes[size++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    value >>= 7;
  } while (value);
  ft_strbuf_addn(out, bytes, size);
}

static void key(ft_strbuf *out, uint32_t field, unsigned type) {
  pb_varint(out, (uint64_t)field << 3 | type);
}

void pb_int(ft_strbuf *out, uint32_t field, int64_t value) {
  key(out, field, 0);
  pb_varint(out, (uint64_t)value);
}

void pb_float(ft_strbuf *out, uint32_t field, float value) {
  key(out, field, 5);
  ft_strbuf_addn(out, &value, sizeof value);
}

void pb_bytes(ft_strbuf *out, uint32_t field, const void *data, size_t size) {
  key(out, field, 2);
  pb_varint(out, size);
  ft_strbuf_addn(out, data, size);
}

void pb_text(ft_strbuf *out, uint32_t field, const char *text) {
  pb_bytes(out, field, text, strlen(text));
}

void pb_message(ft_strbuf *out, uint32_t field, const ft_strbuf *inner) {
  pb_bytes(out, field, inner->text, inner->length);
}

onnx_file onnx_begin(ft_arena *arena, int64_t opset) {
  return (onnx_file){arena, 8, opset, ft_strbuf_init(arena), ft_strbuf_init(arena)};
}

// The next piece of a comma-separated list, or NULL.
static const char *next_piece(ft_arena *arena, const char **list) {
  if (!*list) return NULL;
  const char *comma = strchr(*list, ',');
  size_t size = comma ? (size_t)(comma - *list) : strlen(*list);
  const char *piece = ft_arena_strndup(arena, *list, size);
  *list = comma ? comma + 1 : NULL;
  return piece;
}

static bool is_number(const char *text) {
  return (*text >= '0' && *text <= '9') || *text == '-';
}

static ft_strbuf shape_message(ft_arena *arena, const char *dims) {
  ft_strbuf shape = ft_strbuf_init(arena);
  if (*dims == 0) return shape;
  const char *piece;
  while ((piece = next_piece(arena, &dims))) {
    ft_strbuf dim = ft_strbuf_init(arena);
    if (is_number(piece))
      pb_int(&dim, 1, strtoll(piece, NULL, 10));
    else if (strcmp(piece, "?") != 0)
      pb_text(&dim, 2, piece);
    pb_message(&shape, 1, &dim);
  }
  return shape;
}

static void value_info(onnx_file *file, uint32_t field, const char *name, int data_type,
                       const char *dims) {
  ft_strbuf tensor = ft_strbuf_init(file->arena), type = tensor, info = tensor;
  pb_int(&tensor, 1, data_type);
  if (dims) {
    ft_strbuf shape = shape_message(file->arena, dims);
    pb_message(&tensor, 2, &shape);
  }
  pb_message(&type, 1, &tensor);
  pb_text(&info, 1, name);
  pb_message(&info, 2, &type);
  pb_message(&file->graph, field, &info);
}

void onnx_input(onnx_file *file, const char *name, int type, const char *dims) {
  value_info(file, 11, name, type, dims);
}

void onnx_output(onnx_file *file, const char *name, int type, const char *dims) {
  value_info(file, 12, name, type, dims);
}

ft_strbuf onnx_tensor(ft_arena *arena, const char *name, int type, const char *dims,
                      const void *raw, size_t bytes) {
  ft_strbuf tensor = ft_strbuf_init(arena);
  const char *piece;
  while (*dims && (piece = next_piece(arena, &dims))) {
    pb_int(&tensor, 1, strtoll(piece, NULL, 10));
    if (!dims) break;
  }
  pb_int(&tensor, 2, type);
  if (name) pb_text(&tensor, 8, name);
  if (raw) pb_bytes(&tensor, 9, raw, bytes);
  return tensor;
}

void onnx_initializer(onnx_file *file, const ft_strbuf *tensor) {
  pb_message(&file->graph, 5, tensor);
}

void onnx_floats(onnx_file *file, const char *name, const char *dims, const float *data,
                 size_t count) {
  ft_strbuf tensor =
      onnx_tensor(file->arena, name, ONNX_FLOAT, dims, data, count * sizeof *data);
  onnx_initializer(file, &tensor);
}

void onnx_ints(onnx_file *file, const char *name, const char *dims, const int64_t *data,
               size_t count) {
  ft_strbuf tensor =
      onnx_tensor(file->arena, name, ONNX_INT64, dims, data, count * sizeof *data);
  onnx_initializer(file, &tensor);
}

void onnx_scalar(onnx_file *file, const char *name, float value) {
  onnx_floats(file, name, "", &value, 1);
}

static ft_strbuf attribute(ft_strbuf *attributes, const char *name, int type) {
  ft_strbuf one = ft_strbuf_init(attributes->arena);
  pb_text(&one, 1, name);
  pb_int(&one, 20, type);
  return one;
}

void onnx_attr_int(ft_strbuf *attributes, const char *name, int64_t value) {
  ft_strbuf one = attribute(attributes, name, 2);
  pb_int(&one, 3, value);
  pb_message(attributes, 5, &one);
}

void onnx_attr_float(ft_strbuf *attributes, const char *name, float value) {
  ft_strbuf one = attribute(attributes, name, 1);
  pb_float(&one, 2, value);
  pb_message(attributes, 5, &one);
}

void onnx_attr_text(ft_strbuf *attributes, const char *name, const char *value) {
  ft_strbuf one = attribute(attributes, name, 3);
  pb_text(&one, 4, value);
  pb_message(attributes, 5, &one);
}

void onnx_attr_ints(ft_strbuf *attributes, const char *name, const int64_t *values,
                    size_t count) {
  ft_strbuf one = attribute(attributes, name, 7);
  for (size_t i = 0; i < count; i++) pb_int(&one, 8, values[i]);
  pb_message(attributes, 5, &one);
}

void onnx_attr_floats(ft_strbuf *attributes, const char *name, const float *values,
                      size_t count) {
  ft_strbuf one = attribute(attributes, name, 6);
  for (size_t i = 0; i < count; i++) pb_float(&one, 7, values[i]);
  pb_message(attributes, 5, &one);
}

void onnx_attr_tensor(ft_strbuf *attributes, const char *name, const ft_strbuf *tensor) {
  ft_strbuf one = attribute(attributes, name, 4);
  pb_message(&one, 5, tensor);
  pb_message(attributes, 5, &one);
}

void onnx_attr_graph(ft_strbuf *attributes, const char *name, const onnx_file *graph) {
  ft_strbuf one = attribute(attributes, name, 5);
  pb_message(&one, 6, &graph->graph);
  pb_message(attributes, 5, &one);
}

static void operands(ft_strbuf *node, uint32_t field, const char *names) {
  const char *piece;
  if (*names == 0) return;
  while ((piece = next_piece(node->arena, &names))) pb_text(node, field, piece);
}

void onnx_node(onnx_file *file, const char *op, const char *inputs, const char *outputs,
               const ft_strbuf *attributes) {
  ft_strbuf node = ft_strbuf_init(file->arena);
  operands(&node, 1, inputs);
  operands(&node, 2, outputs);
  const char *first = outputs;
  const char *colons = strstr(op, "::");
  pb_text(&node, 3,
          ft_arena_printf(file->arena, "n_%s", next_piece(file->arena, &first)));
  pb_text(&node, 4, colons ? colons + 2 : op);
  if (colons) pb_text(&node, 7, ft_arena_strndup(file->arena, op, (size_t)(colons - op)));
  if (attributes) ft_strbuf_addn(&node, attributes->text, attributes->length);
  pb_message(&file->graph, 1, &node);
}

void onnx_import_domain(onnx_file *file, const char *domain, int64_t version) {
  ft_strbuf opset = ft_strbuf_init(file->arena);
  pb_text(&opset, 1, domain);
  pb_int(&opset, 2, version);
  pb_message(&file->extra, 8, &opset);
}

ft_strbuf onnx_end(const onnx_file *file) {
  ft_strbuf model = ft_strbuf_init(file->arena), opset = model;
  pb_int(&opset, 2, file->opset);
  pb_int(&model, 1, file->ir_version);
  pb_message(&model, 8, &opset);
  pb_message(&model, 7, &file->graph);
  ft_strbuf_addn(&model, file->extra.text, file->extra.length);
  return model;
}
