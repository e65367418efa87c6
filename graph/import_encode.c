// The canonical bytes of the unbound model. Names do not enter; numbers are little
// endian.
//
//   input     'I' u8 dtype, u8 rank, per dim: 'd' i64 or 's' u32 (symbols are numbered
//             as they are met)
//   constant  'C' u8 dtype, u8 rank, i64 dims, u8 has_bytes, bytes   at its first use
//   node      'N' text op, text domain, i64 opset, u32 inputs, u32 each (FT_NONE:
//   absent),
//             u32 outputs, u32 each, u32 attributes, each: text name, i64 type, payload;
//             attributes sorted by name; u32 captures, u32 each: what subgraphs, whose
//             bytes are their payload, read from outside
//   output    'O' u32
//   graph     'G' u32 inputs, nodes, outputs   of an attribute
//   text      u32 length, bytes
//
// Values are numbered as they are met: inputs, then constants and results in node
// order. The bytes of a large float constant (a weight) stay out.
#include <stdlib.h>
#include <string.h>

#include "core/strbuf.h"
#include "graph/importer.h"
#include "graph/onnx_tensor.h"

enum { SMALL_ELEMENTS = 64 };

typedef struct encoder {
  ft_importer *im;
  ft_strbuf bytes;
  uint32_t next_code;
} encoder;

static void put_u8(encoder *e, unsigned value) {
  uint8_t byte = (uint8_t)value;
  ft_strbuf_addn(&e->bytes, &byte, 1);
}

static void put_u32(encoder *e, uint32_t value) {
  ft_strbuf_addn(&e->bytes, &value, sizeof value);
}

static void put_i64(encoder *e, int64_t value) {
  ft_strbuf_addn(&e->bytes, &value, sizeof value);
}

static void put_span(encoder *e, ft_span span) {
  put_u32(e, (uint32_t)span.size);
  if (span.size) ft_strbuf_addn(&e->bytes, span.data, span.size);
}

static void put_shape(encoder *e, ft_dtype dtype, const ft_shape *shape) {
  put_u8(e, dtype);
  put_u8(e, shape->rank);
  for (int i = 0; i < shape->rank; i++) put_i64(e, shape->dim[i]);
}

static void put_constant(encoder *e, const ft_tensor *tensor) {
  bool has_bytes = !ft_dtype_is_float(tensor->dtype) ||
                   ft_shape_elements(&tensor->shape) <= SMALL_ELEMENTS;
  put_u8(e, 'C');
  put_shape(e, tensor->dtype, &tensor->shape);
  put_u8(e, has_bytes);
  if (has_bytes) ft_strbuf_addn(&e->bytes, tensor->data, tensor->bytes);
}

// Its bytes are drawn: they stay out, however few.
static void put_weight(encoder *e, const ft_value *weight) {
  put_u8(e, 'C');
  put_shape(e, weight->dtype, &weight->shape);
  put_u8(e, 0);
}

static ft_status put_input(encoder *e, uint32_t input, ft_error *error) {
  ft_importer *im = e->im;
  ft_span span = im->model.input[input].name;
  ft_import_name *name = ft_import_find(im, span);
  if (name->source != FT_SOURCE_INPUT) return FT_OK;
  ft_onnx_type type;
  FT_TRY(ft_onnx_read_type(im->model.input[input].message, im->model.file, &type, error));
  put_u8(e, 'I');
  put_u8(e, ft_dtype_from_onnx(type.element));
  put_u8(e, type.rank);
  for (uint32_t axis = 0; axis < type.rank; axis++) {
    uint32_t symbol;
    FT_TRY(ft_import_symbol_of(im, span, &type.dim[axis], axis, &symbol, error));
    put_u8(e, symbol == FT_NONE ? 'd' : 's');
    if (symbol == FT_NONE)
      put_i64(e, type.dim[axis].value);
    else
      put_u32(e, symbol);
  }
  name->code = e->next_code++;
  return FT_OK;
}

// ---- attributes -------------------------------------------------------------------

static ft_status put_tensor(encoder *e, ft_span message, ft_error *error) {
  ft_importer *im = e->im;
  ft_tensor tensor;
  FT_TRY(
      ft_onnx_load_tensor(message, im->model.file, im->files, im->arena, &tensor, error));
  put_constant(e, &tensor);
  return FT_OK;
}

static ft_status put_ints(encoder *e, const ft_onnx_attribute *a, ft_error *error) {
  const int64_t *values;
  size_t count;
  FT_TRY(ft_onnx_read_ints(a, e->im->arena, &values, &count, error));
  put_u32(e, (uint32_t)count);
  ft_strbuf_addn(&e->bytes, values, count * sizeof *values);
  return FT_OK;
}

static ft_status put_floats(encoder *e, const ft_onnx_attribute *a, ft_error *error) {
  const float *values;
  size_t count;
  FT_TRY(ft_onnx_read_floats(a, e->im->arena, &values, &count, error));
  put_u32(e, (uint32_t)count);
  ft_strbuf_addn(&e->bytes, values, count * sizeof *values);
  return FT_OK;
}

static ft_status put_graph(encoder *e, const ft_onnx_attribute *a, ft_error *error);

static ft_status put_attribute(encoder *e, const ft_onnx_attribute *a, ft_error *error) {
  put_span(e, a->name);
  put_i64(e, a->type);
  switch (a->type) {
    case FT_ONNX_FLOAT:
      ft_strbuf_addn(&e->bytes, &a->f, sizeof a->f);
      return FT_OK;
    case FT_ONNX_INT:
      put_i64(e, a->i);
      return FT_OK;
    case FT_ONNX_STRING:
      put_span(e, a->s);
      return FT_OK;
    case FT_ONNX_TENSOR:
      return put_tensor(e, a->t, error);
    case FT_ONNX_FLOATS:
      return put_floats(e, a, error);
    case FT_ONNX_INTS:
      return put_ints(e, a, error);
    case FT_ONNX_GRAPH:
      return put_graph(e, a, error);
    default:
      put_span(e, a->message);
      return FT_OK;
  }
}

static int by_name(const void *left, const void *right) {
  const ft_onnx_attribute *a = *(const ft_onnx_attribute *const *)left;
  const ft_onnx_attribute *b = *(const ft_onnx_attribute *const *)right;
  size_t size = a->name.size < b->name.size ? a->name.size : b->name.size;
  int order = size ? memcmp(a->name.data, b->name.data, size) : 0;
  return order ? order : (a->name.size > b->name.size) - (a->name.size < b->name.size);
}

static ft_status put_attributes(encoder *e, const ft_onnx_node *node, ft_error *error) {
  uint32_t count = node->attribute_count;
  const ft_onnx_attribute **sorted =
      FT_NEW_ARRAY(e->im->arena, const ft_onnx_attribute *, count);
  FT_OOM_IF(!sorted, error);
  for (uint32_t i = 0; i < count; i++) sorted[i] = &node->attribute[i];
  qsort(sorted, count, sizeof *sorted, by_name);
  put_u32(e, count);
  for (uint32_t i = 0; i < count; i++) {
    if (i && ft_span_equal(sorted[i]->name, sorted[i - 1]->name))
      FT_FAIL(error, FT_REFUSED, "node '%.*s' (%.*s) has attribute '%.*s' twice",
              FT_SPAN_SHOW(node->name), FT_SPAN_SHOW(node->op),
              FT_SPAN_SHOW(sorted[i]->name));
    FT_TRY(put_attribute(e, sorted[i], error));
  }
  return FT_OK;
}

// ---- nodes ------------------------------------------------------------------------

// The scope that declares |name|.
static const ft_importer *owner_of(const ft_importer *im, const ft_import_name *name) {
  while (im && !(name >= im->name && name < im->name + im->name_count)) im = im->outer;
  return im;
}

// A constant of a branch, which may not be the one that was taken.
static ft_status put_initializer(encoder *e, const ft_import_name *name,
                                 ft_error *error) {
  const ft_importer *owner = owner_of(e->im, name);
  if (!owner || name->source != FT_SOURCE_INITIALIZER)
    FT_FAIL(error, FT_INTERNAL, "'%.*s' has no value to encode",
            FT_SPAN_SHOW(name->name));
  ft_span message = owner->model.initializer[name->index].message;
  ft_tensor tensor;
  ft_status status = ft_onnx_load_tensor(message, owner->model.file, owner->files,
                                         owner->arena, &tensor, error);
  if (status == FT_OK) put_constant(e, &tensor);
  if (status != FT_UNSUPPORTED) return status;
  put_u8(e, 'C');
  put_span(e, message);
  return FT_OK;
}

// A constant is written where it is first needed.
static ft_status code_of(encoder *e, ft_import_name *name, uint32_t *out,
                         ft_error *error) {
  *out = name->code;
  if (name->code != FT_NONE) return FT_OK;
  *out = name->code = e->next_code++;
  if (name->value == FT_NONE) return put_initializer(e, name, error);
  const ft_value *value = &e->im->graph->value[name->value];
  if (value->data)
    put_constant(e, value->data);
  else
    put_weight(e, value);
  return FT_OK;
}

static ft_status put_captures(encoder *e, const ft_onnx_node *node, ft_error *error) {
  const ft_import_captures *captures = &e->im->capture[node - e->im->model.node];
  uint32_t *codes = FT_NEW_ARRAY(e->im->arena, uint32_t, captures->count);
  FT_OOM_IF(!codes, error);
  for (size_t i = 0; i < captures->count; i++)
    FT_TRY(code_of(e, ft_import_find(e->im, captures->name[i]), &codes[i], error));
  put_u32(e, (uint32_t)captures->count);
  for (size_t i = 0; i < captures->count; i++) put_u32(e, codes[i]);
  return FT_OK;
}

static ft_status put_node(encoder *e, const ft_onnx_node *node, ft_error *error) {
  ft_importer *im = e->im;
  uint32_t *codes = FT_NEW_ARRAY(im->arena, uint32_t, node->input_count);
  FT_OOM_IF(!codes, error);
  for (uint32_t i = 0; i < node->input_count; i++) {
    codes[i] = FT_NONE;
    if (node->input[i].size)
      FT_TRY(code_of(e, ft_import_find(im, node->input[i]), &codes[i], error));
  }
  put_u8(e, 'N');
  put_span(e, node->op);
  put_span(e, node->domain);
  put_i64(e, ft_onnx_opset_of(&im->model, node->domain));
  put_u32(e, node->input_count);
  for (uint32_t i = 0; i < node->input_count; i++) put_u32(e, codes[i]);
  put_u32(e, node->output_count);
  for (uint32_t i = 0; i < node->output_count; i++) {
    bool is_named = node->output[i].size != 0;
    if (is_named) ft_import_find(im, node->output[i])->code = e->next_code++;
    put_u32(e, is_named ? e->next_code - 1 : FT_NONE);
  }
  FT_TRY(put_attributes(e, node, error));
  return put_captures(e, node, error);
}

static bool is_constant_node(const ft_onnx_node *node) {
  return node->domain.size == 0 && ft_span_is(node->op, "Constant");
}

// The live nodes, then the outputs, of the scope at hand. A branch's own Constant nodes
// are written like any other: only the model's have values.
static ft_status put_body(encoder *e, ft_error *error) {
  ft_importer *im = e->im;
  for (uint32_t i = 0; i < im->model.node_count; i++) {
    const ft_onnx_node *node = &im->model.node[im->order[i]];
    if (im->node_is_live[im->order[i]] && (im->outer || !is_constant_node(node)))
      FT_TRY(put_node(e, node, error));
  }
  for (uint32_t i = 0; i < im->model.output_count; i++) {
    uint32_t code;
    FT_TRY(code_of(e, ft_import_find(im, im->model.output[i].name), &code, error));
    put_u8(e, 'O');
    put_u32(e, code);
  }
  return FT_OK;
}

// The graph of an attribute: its inputs are numbers only, names from outside keep theirs.
static ft_status put_graph(encoder *e, const ft_onnx_attribute *a, ft_error *error) {
  ft_importer scope, *outer = e->im;
  FT_TRY(ft_import_enter(outer, a, &scope, error));
  FT_TRY(ft_import_resolve(&scope, error));
  put_u8(e, 'G');
  put_u32(e, scope.model.input_count);
  for (uint32_t i = 0; i < scope.model.input_count; i++)
    ft_import_find(&scope, scope.model.input[i].name)->code = e->next_code++;
  e->im = &scope;
  ft_status status = put_body(e, error);
  e->im = outer;
  return status;
}

static ft_status put_model(encoder *e, ft_error *error) {
  for (uint32_t i = 0; i < e->im->model.input_count; i++) FT_TRY(put_input(e, i, error));
  return put_body(e, error);
}

// ---- dims_json --------------------------------------------------------------------

static int by_symbol_name(const void *left, const void *right) {
  const ft_import_symbol *a = left, *b = right;
  return strcmp(a->name, b->name);
}

static void put_json_text(ft_strbuf *json, const char *text) {
  ft_strbuf_add(json, "\"");
  for (; *text; text++) {
    if (*text == '"' || *text == '\\')
      ft_strbuf_printf(json, "\\%c", *text);
    else if ((unsigned char)*text < 0x20)
      ft_strbuf_printf(json, "\\u%04x", (unsigned char)*text);
    else
      ft_strbuf_addn(json, text, 1);
  }
  ft_strbuf_add(json, "\"");
}

// Sorts the symbols: run this last.
static ft_status put_dims(ft_importer *im, ft_error *error) {
  ft_strbuf json = ft_strbuf_init(im->arena);
  if (im->symbol_count)
    qsort(im->symbol, im->symbol_count, sizeof *im->symbol, by_symbol_name);
  ft_strbuf_add(&json, "{");
  for (size_t i = 0; i < im->symbol_count; i++) {
    if (i) ft_strbuf_add(&json, ",");
    put_json_text(&json, im->symbol[i].name);
    ft_strbuf_printf(&json, ":%lld", (long long)im->symbol[i].value);
  }
  ft_strbuf_add(&json, "}");
  FT_OOM_IF(json.failed, error);
  im->graph->dims_json = json.text;
  return FT_OK;
}

ft_status ft_import_encode(ft_importer *im, ft_error *error) {
  encoder e = {im, ft_strbuf_init(im->arena), 0};
  FT_TRY(put_model(&e, error));
  FT_OOM_IF(e.bytes.failed, error);
  im->graph->symbolic_encoding = e.bytes.text;
  im->graph->symbolic_encoding_bytes = e.bytes.length;
  im->graph->symbolic_hash = ft_hash_bytes(e.bytes.text, e.bytes.length);
  return put_dims(im, error);
}
