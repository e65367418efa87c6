// A node of a JSON graph becomes a NodeProto. The JSON type of an attribute is its ONNX
// type; where that is not enough ("alpha": 1, an empty list) an object with one member
// says it: {"float": 1}, {"ints": []}.
#include <string.h>

#include "graph/json_model.h"

typedef ft_status attribute_writer(ft_json_model *model, const json_t *value,
                                   const ft_json_place *place, ft_strbuf *out,
                                   ft_error *error);

static ft_status write_int(ft_json_model *model, const json_t *value,
                           const ft_json_place *place, ft_strbuf *out, ft_error *error) {
  (void)model;
  if (!json_is_integer(value))
    return ft_json_fail(place, FT_REFUSED, error, "is no integer");
  ft_proto_put_varint(out, 3, (uint64_t)json_integer_value(value));
  return FT_OK;
}

static ft_status write_float(ft_json_model *model, const json_t *value,
                             const ft_json_place *place, ft_strbuf *out,
                             ft_error *error) {
  (void)model;
  double real;
  FT_TRY(ft_json_real(value, place, &real, error));
  ft_proto_put_float(out, 2, (float)real);
  return FT_OK;
}

static ft_status write_string(ft_json_model *model, const json_t *value,
                              const ft_json_place *place, ft_strbuf *out,
                              ft_error *error) {
  (void)model;
  const char *text;
  FT_TRY(ft_json_text_value(value, place, &text, error));
  ft_proto_put_text(out, 4, text);
  return FT_OK;
}

static ft_status write_tensor(ft_json_model *model, const json_t *value,
                              const ft_json_place *place, ft_strbuf *out,
                              ft_error *error) {
  ft_strbuf tensor = ft_strbuf_init(model->arena);
  FT_TRY(ft_json_write_tensor(model, value, place, &tensor, NULL, error));
  ft_proto_put_message(out, 5, &tensor);
  return FT_OK;
}

static ft_status write_graph(ft_json_model *model, const json_t *value,
                             const ft_json_place *place, ft_strbuf *out,
                             ft_error *error) {
  ft_strbuf graph = ft_strbuf_init(model->arena);
  FT_TRY(
      ft_json_check_members(value, "name inputs outputs constants nodes", place, error));
  FT_TRY(ft_json_write_graph(model, value, place, &graph, error));
  ft_proto_put_message(out, 6, &graph);
  return FT_OK;
}

static ft_status write_floats(ft_json_model *model, const json_t *value,
                              const ft_json_place *place, ft_strbuf *out,
                              ft_error *error) {
  (void)model;
  for (size_t i = 0; i < json_array_size(value); i++) {
    double real;
    FT_TRY(
        ft_json_real(json_array_get(value, i), FT_JSON_ELEMENT(place, i), &real, error));
    ft_proto_put_float(out, 7, (float)real);
  }
  return FT_OK;
}

static ft_status write_ints(ft_json_model *model, const json_t *value,
                            const ft_json_place *place, ft_strbuf *out, ft_error *error) {
  (void)model;
  for (size_t i = 0; i < json_array_size(value); i++) {
    const json_t *element = json_array_get(value, i);
    if (!json_is_integer(element))
      return ft_json_fail(FT_JSON_ELEMENT(place, i), FT_REFUSED, error, "is no integer");
    ft_proto_put_varint(out, 8, (uint64_t)json_integer_value(element));
  }
  return FT_OK;
}

static ft_status write_strings(ft_json_model *model, const json_t *value,
                               const ft_json_place *place, ft_strbuf *out,
                               ft_error *error) {
  (void)model;
  for (size_t i = 0; i < json_array_size(value); i++) {
    const char *text;
    FT_TRY(ft_json_text_value(json_array_get(value, i), FT_JSON_ELEMENT(place, i), &text,
                              error));
    ft_proto_put_text(out, 9, text);
  }
  return FT_OK;
}

typedef struct attribute_kind {
  const char *name;
  ft_onnx_attribute_type type;
  bool is_list;
  attribute_writer *write;
} attribute_kind;

static const attribute_kind kinds[] = {
    {"float", FT_ONNX_FLOAT, false, write_float},
    {"int", FT_ONNX_INT, false, write_int},
    {"string", FT_ONNX_STRING, false, write_string},
    {"tensor", FT_ONNX_TENSOR, false, write_tensor},
    {"graph", FT_ONNX_GRAPH, false, write_graph},
    {"floats", FT_ONNX_FLOATS, true, write_floats},
    {"ints", FT_ONNX_INTS, true, write_ints},
    {"strings", FT_ONNX_STRINGS, true, write_strings},
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

static const char *list_kind(const json_t *list) {
  const json_t *element;
  size_t i;
  const char *kind = "ints";
  if (json_is_string(json_array_get(list, 0))) return "strings";
  json_array_foreach(list, i, element) {
    if (json_is_real(element)) kind = "floats";
  }
  return kind;
}

// The type that the JSON value has by itself.
static const char *plain_kind(const json_t *value) {
  switch (json_typeof(value)) {
    case JSON_INTEGER:
      return "int";
    case JSON_REAL:
      return "float";
    case JSON_STRING:
      return "string";
    case JSON_ARRAY:
      return json_array_size(value) ? list_kind(value) : NULL;
    case JSON_OBJECT:
      return json_object_get(value, "dtype") ? "tensor" : NULL;
    default:
      return NULL;
  }
}

static const attribute_kind *find_kind(const char *name) {
  for (int i = 0; name && i < KIND_COUNT; i++)
    if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
  return NULL;
}

// Splits {"float": 1} into its type and its value.
static const attribute_kind *stated_kind(const json_t **value) {
  if (!json_is_object(*value) || json_object_size(*value) != 1) return NULL;
  void *member = json_object_iter((json_t *)(uintptr_t)*value);
  const attribute_kind *kind = find_kind(json_object_iter_key(member));
  if (kind) *value = json_object_iter_value(member);
  return kind;
}

static ft_status write_attribute(ft_json_model *model, const char *name,
                                 const json_t *value, const ft_json_place *place,
                                 ft_strbuf *out, ft_error *error) {
  const attribute_kind *kind = stated_kind(&value);
  if (!kind) kind = find_kind(plain_kind(value));
  if (!kind)
    return ft_json_fail(place, FT_REFUSED, error,
                        "has no type: write {\"ints\": []} or the like");
  if (kind->is_list && !json_is_array(value))
    return ft_json_fail(place, FT_REFUSED, error, "is no array");
  ft_strbuf attribute = ft_strbuf_init(model->arena);
  ft_proto_put_text(&attribute, 1, name);
  ft_proto_put_varint(&attribute, 20, (uint64_t)kind->type);
  FT_TRY(kind->write(model, value, place, &attribute, error));
  ft_proto_put_message(out, 5, &attribute);
  return FT_OK;
}

static ft_status write_attributes(ft_json_model *model, const json_t *json,
                                  const ft_json_place *place, ft_strbuf *out,
                                  ft_error *error) {
  json_t *attributes = json_object_get(json, "attributes"), *value;
  const ft_json_place *at = FT_JSON_MEMBER(place, "attributes");
  if (attributes && !json_is_object(attributes))
    return ft_json_fail(at, FT_REFUSED, error, "is no object");
  const char *name;
  json_object_foreach(attributes, name, value) {
    if (strlen(name) > FT_JSON_MAX_TEXT)
      return ft_json_fail(at, FT_REFUSED, error, "a name of more than %d bytes",
                          FT_JSON_MAX_TEXT);
    FT_TRY(write_attribute(model, name, value, FT_JSON_MEMBER(at, name), out, error));
  }
  return FT_OK;
}

static ft_status write_names(const json_t *json, const char *member, uint32_t field,
                             const ft_json_place *place, ft_strbuf *out,
                             ft_error *error) {
  const json_t *list;
  FT_TRY(ft_json_array_of(json, member, place, &list, error));
  const ft_json_place *at = FT_JSON_MEMBER(place, member);
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *name;
    FT_TRY(ft_json_text_value(json_array_get(list, i), FT_JSON_ELEMENT(at, i), &name,
                              error));
    ft_proto_put_text(out, field, name);
  }
  return FT_OK;
}

ft_status ft_json_write_node(ft_json_model *model, const json_t *json,
                             const ft_json_place *place, ft_strbuf *out,
                             ft_error *error) {
  const char *name, *op, *domain;
  FT_TRY(ft_json_check_members(json, "name op domain inputs outputs attributes", place,
                               error));
  FT_TRY(ft_json_text_of(json, "name", "", place, &name, error));
  FT_TRY(ft_json_text_of(json, "op", NULL, place, &op, error));
  FT_TRY(ft_json_text_of(json, "domain", "", place, &domain, error));
  FT_TRY(write_names(json, "inputs", 1, place, out, error));
  FT_TRY(write_names(json, "outputs", 2, place, out, error));
  ft_proto_put_text(out, 3, name);
  ft_proto_put_text(out, 4, op);
  if (*domain) ft_proto_put_text(out, 7, domain);
  return write_attributes(model, json, place, out, error);
}
