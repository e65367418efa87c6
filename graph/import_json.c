// Invariants:
//  1. Nesting and size are bounded before the JSON parser sees a byte.
//  2. What is written is a ModelProto that the ONNX reader checks like any other: names,
//     order, types and operators are judged there, once for both formats.
//  3. A text or number of the file is never used as a length or a path here.
#include "graph/import_json.h"

#include <limits.h>
#include <string.h>

#include "core/file.h"
#include "graph/json_model.h"

enum { IR_VERSION = 10 };

// ---- before parsing -----------------------------------------------------------------

// The parser recurses, so depth is counted first. Braces inside texts do not count.
static ft_status check_depth(const char *text, size_t size, ft_error *error) {
  bool in_text = false;
  int depth = 0;
  for (size_t i = 0; i < size; i++) {
    char c = text[i];
    if (in_text && c == '\\') {
      i++;
      continue;
    }
    if (c == '"') in_text = !in_text;
    if (in_text) continue;
    if (c == '{' || c == '[') depth++;
    if (c == '}' || c == ']') depth--;
    if (depth > FT_JSON_MAX_DEPTH)
      FT_FAIL(error, FT_REFUSED, "nested deeper than %d at byte %zu", FT_JSON_MAX_DEPTH,
              i);
  }
  return FT_OK;
}

static void drop(void *ctx) {
  json_decref(ctx);
}

static ft_status parse(const char *text, size_t size, ft_json_model *model,
                       ft_error *error) {
  json_error_t problem;
  FT_TRY(check_depth(text, size, error));
  model->root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem);
  if (!model->root)
    FT_FAIL(error, FT_REFUSED, "no JSON: line %d, column %d: %s", problem.line,
            problem.column, problem.text);
  if (ft_arena_defer(model->arena, drop, model->root) != 0) {
    json_decref(model->root);
    FT_FAIL(error, FT_OUT_OF_MEMORY, "out of memory in %s", __func__);
  }
  return FT_OK;
}

// ---- inputs and outputs -------------------------------------------------------------

static ft_status write_dim(ft_json_model *model, const json_t *dim,
                           const ft_json_place *place, ft_strbuf *shape,
                           ft_error *error) {
  ft_strbuf out = ft_strbuf_init(model->arena);
  if (json_is_integer(dim)) {
    if (json_integer_value(dim) < 0)
      return ft_json_fail(place, FT_REFUSED, error, "is %lld",
                          (long long)json_integer_value(dim));
    ft_proto_put_varint(&out, 1, (uint64_t)json_integer_value(dim));
  } else {
    const char *name;
    FT_TRY(ft_json_text_value(dim, place, &name, error));
    if (!json_object_get(model->dims, name))
      return ft_json_fail(place, FT_REFUSED, error, "dim '%.100s' is not in 'dims'",
                          name);
    ft_proto_put_text(&out, 2, name);
  }
  ft_proto_put_message(shape, 1, &out);
  return FT_OK;
}

static ft_status write_input(ft_json_model *model, const json_t *json,
                             const ft_json_place *place, ft_strbuf *out,
                             ft_error *error) {
  const char *name;
  ft_dtype dtype;
  const json_t *dims;
  FT_TRY(ft_json_check_members(json, "name dtype shape", place, error));
  FT_TRY(ft_json_text_of(json, "name", NULL, place, &name, error));
  FT_TRY(ft_json_dtype_of(json, place, &dtype, error));
  FT_TRY(ft_json_array_of(json, "shape", place, &dims, error));
  if (!dims) return ft_json_fail(place, FT_REFUSED, error, "has no 'shape'");
  ft_strbuf shape = ft_strbuf_init(model->arena), tensor = shape, type = shape;
  const ft_json_place *at = FT_JSON_MEMBER(place, "shape");
  for (size_t i = 0; i < json_array_size(dims); i++)
    FT_TRY(
        write_dim(model, json_array_get(dims, i), FT_JSON_ELEMENT(at, i), &shape, error));
  ft_proto_put_varint(&tensor, 1, (uint64_t)ft_json_onnx_type(dtype));
  ft_proto_put_message(&tensor, 2, &shape);
  ft_proto_put_message(&type, 1, &tensor);
  ft_proto_put_text(out, 1, name);
  ft_proto_put_message(out, 2, &type);
  return FT_OK;
}

static ft_status write_inputs(ft_json_model *model, const json_t *json,
                              const ft_json_place *place, ft_strbuf *out,
                              ft_error *error) {
  const json_t *list;
  FT_TRY(ft_json_array_of(json, "inputs", place, &list, error));
  const ft_json_place *at = FT_JSON_MEMBER(place, "inputs");
  for (size_t i = 0; i < json_array_size(list); i++) {
    ft_strbuf input = ft_strbuf_init(model->arena);
    FT_TRY(write_input(model, json_array_get(list, i), FT_JSON_ELEMENT(at, i), &input,
                       error));
    ft_proto_put_message(out, 11, &input);
  }
  return FT_OK;
}

static ft_status write_outputs(ft_json_model *model, const json_t *json,
                               const ft_json_place *place, ft_strbuf *out,
                               ft_error *error) {
  const json_t *list;
  FT_TRY(ft_json_array_of(json, "outputs", place, &list, error));
  const ft_json_place *at = FT_JSON_MEMBER(place, "outputs");
  for (size_t i = 0; i < json_array_size(list); i++) {
    ft_strbuf output = ft_strbuf_init(model->arena);
    const char *name;
    FT_TRY(ft_json_text_value(json_array_get(list, i), FT_JSON_ELEMENT(at, i), &name,
                              error));
    ft_proto_put_text(&output, 1, name);
    ft_proto_put_message(out, 12, &output);
  }
  return FT_OK;
}

// ---- constants ----------------------------------------------------------------------

// The names of the inputs, as a set.
static ft_status input_names(ft_json_model *model, const json_t *graph, json_t **out,
                             ft_error *error) {
  const json_t *inputs = json_object_get(graph, "inputs");
  *out = json_object();
  FT_OOM_IF(!*out || ft_arena_defer(model->arena, drop, *out), error);
  for (size_t i = 0; i < json_array_size(inputs); i++) {
    const char *name =
        json_string_value(json_object_get(json_array_get(inputs, i), "name"));
    FT_OOM_IF(name && json_object_set_new(*out, name, json_true()), error);
  }
  return FT_OK;
}

// ONNX lets an input have a default of the same name; here that is a name used twice.
static ft_status write_constants(ft_json_model *model, const json_t *json,
                                 const ft_json_place *place, ft_strbuf *out,
                                 ft_error *error) {
  const json_t *list;
  json_t *inputs;
  FT_TRY(ft_json_array_of(json, "constants", place, &list, error));
  FT_TRY(input_names(model, json, &inputs, error));
  const ft_json_place *at = FT_JSON_MEMBER(place, "constants");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *constant = json_array_get(list, i);
    const ft_json_place *here = FT_JSON_ELEMENT(at, i);
    const char *name;
    ft_strbuf tensor = ft_strbuf_init(model->arena);
    FT_TRY(ft_json_text_of(constant, "name", NULL, here, &name, error));
    if (json_object_get(inputs, name))
      return ft_json_fail(here, FT_REFUSED, error, "'%.100s' is an input too", name);
    FT_TRY(ft_json_write_tensor(model, constant, here, &tensor,
                                place ? NULL : &model->weight[i], error));
    ft_proto_put_message(out, 5, &tensor);
  }
  return FT_OK;
}

// ---- order
// ------------------------------------------------------------------------------

static ft_status add_names(json_t *set, const json_t *list, const char *member,
                           ft_error *error) {
  const json_t *item;
  size_t i;
  json_array_foreach(list, i, item) {
    const char *name = json_string_value(member ? json_object_get(item, member) : item);
    FT_OOM_IF(name && json_object_set_new(set, name, json_true()), error);
  }
  return FT_OK;
}

// ONNX files may be read in any order of nodes; a JSON graph says what it means.
static ft_status check_order(ft_json_model *model, ft_error *error) {
  const json_t *nodes = json_object_get(model->root, "nodes"), *node;
  json_t *later = json_object(), *known = json_object();
  FT_OOM_IF(!later || ft_arena_defer(model->arena, drop, later), error);
  FT_OOM_IF(!known || ft_arena_defer(model->arena, drop, known), error);
  FT_TRY(add_names(known, json_object_get(model->root, "inputs"), "name", error));
  FT_TRY(add_names(known, json_object_get(model->root, "constants"), "name", error));
  size_t i, k;
  json_array_foreach(nodes, i, node) {
    FT_TRY(add_names(later, json_object_get(node, "outputs"), NULL, error));
  }
  json_array_foreach(nodes, i, node) {
    const json_t *inputs = json_object_get(node, "inputs"), *input;
    const ft_json_place *at =
        FT_JSON_MEMBER(FT_JSON_ELEMENT(FT_JSON_MEMBER(NULL, "nodes"), i), "inputs");
    json_array_foreach(inputs, k, input) {
      const char *name = json_string_value(input);
      if (*name && !json_object_get(known, name) && json_object_get(later, name))
        return ft_json_fail(FT_JSON_ELEMENT(at, k), FT_REFUSED, error,
                            "'%.100s' comes later: a cycle, or nodes that are not sorted",
                            name);
    }
    FT_TRY(add_names(known, json_object_get(node, "outputs"), NULL, error));
  }
  return FT_OK;
}

// ---- the graph ------------------------------------------------------------------------

static ft_status write_nodes(ft_json_model *model, const json_t *json,
                             const ft_json_place *place, ft_strbuf *out,
                             ft_error *error) {
  const json_t *list;
  FT_TRY(ft_json_array_of(json, "nodes", place, &list, error));
  const ft_json_place *at = FT_JSON_MEMBER(place, "nodes");
  if (json_array_size(list) > FT_JSON_MAX_NODES)
    return ft_json_fail(at, FT_REFUSED, error, "%zu nodes, at most %d",
                        json_array_size(list), FT_JSON_MAX_NODES);
  for (size_t i = 0; i < json_array_size(list); i++) {
    ft_strbuf node = ft_strbuf_init(model->arena);
    FT_TRY(ft_json_write_node(model, json_array_get(list, i), FT_JSON_ELEMENT(at, i),
                              &node, error));
    ft_proto_put_message(out, 1, &node);
  }
  return FT_OK;
}

ft_status ft_json_write_graph(ft_json_model *model, const json_t *json,
                              const ft_json_place *place, ft_strbuf *out,
                              ft_error *error) {
  const char *name;
  FT_TRY(ft_json_text_of(json, "name", "", place, &name, error));
  ft_proto_put_text(out, 2, name);
  FT_TRY(write_inputs(model, json, place, out, error));
  FT_TRY(write_constants(model, json, place, out, error));
  FT_TRY(write_nodes(model, json, place, out, error));
  return write_outputs(model, json, place, out, error);
}

static ft_status read_dims(ft_json_model *model, ft_error *error) {
  const json_t *list;
  FT_TRY(ft_json_array_of(model->root, "dims", NULL, &list, error));
  model->dims = json_object();
  FT_OOM_IF(!model->dims || ft_arena_defer(model->arena, drop, model->dims), error);
  const ft_json_place *at = FT_JSON_MEMBER(NULL, "dims");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *name;
    FT_TRY(ft_json_text_value(json_array_get(list, i), FT_JSON_ELEMENT(at, i), &name,
                              error));
    if (json_object_get(model->dims, name) || !*name)
      return ft_json_fail(FT_JSON_ELEMENT(at, i), FT_REFUSED, error,
                          *name ? "'%.100s' is declared twice" : "a dim without a name",
                          name);
    FT_OOM_IF(json_object_set_new(model->dims, name, json_true()), error);
  }
  return FT_OK;
}

// ---- the model ------------------------------------------------------------------------

static ft_status put_opset(ft_json_model *model, const char *domain,
                           const json_t *version, const ft_json_place *place,
                           ft_strbuf *out, ft_error *error) {
  ft_strbuf opset = ft_strbuf_init(model->arena);
  if (!json_is_integer(version) || json_integer_value(version) < 1)
    return ft_json_fail(place, FT_REFUSED, error, "is no opset");
  ft_proto_put_text(&opset, 1, domain);
  ft_proto_put_varint(&opset, 2, (uint64_t)json_integer_value(version));
  ft_proto_put_message(out, 8, &opset);
  return FT_OK;
}

static ft_status write_opsets(ft_json_model *model, ft_strbuf *out, ft_error *error) {
  const json_t *opset = json_object_get(model->root, "opset");
  FT_TRY(put_opset(model, "", opset, FT_JSON_MEMBER(NULL, "opset"), out, error));
  json_t *domains = json_object_get(model->root, "domains"), *version;
  const ft_json_place *at = FT_JSON_MEMBER(NULL, "domains");
  if (domains && !json_is_object(domains))
    return ft_json_fail(at, FT_REFUSED, error, "is no object");
  const char *domain;
  json_object_foreach(domains, domain, version) {
    FT_TRY(put_opset(model, domain, version, FT_JSON_MEMBER(at, domain), out, error));
  }
  return FT_OK;
}

static ft_status check_format(const ft_json_model *model, ft_error *error) {
  const char *format;
  if (!json_is_object(model->root)) FT_FAIL(error, FT_REFUSED, "no JSON object");
  FT_TRY(ft_json_text_of(model->root, "format", NULL, NULL, &format, error));
  if (strcmp(format, "fusetune-graph/1") != 0)
    FT_FAIL(error, FT_REFUSED, "format '%.100s': fusetune-graph/1 is read", format);
  return ft_json_check_members(
      model->root, "format name opset domains dims inputs outputs constants nodes", NULL,
      error);
}

static ft_status write_model(ft_json_model *model, ft_strbuf *out, ft_error *error) {
  FT_TRY(check_format(model, error));
  FT_TRY(read_dims(model, error));
  model->weight_count = json_array_size(json_object_get(model->root, "constants"));
  model->weight = FT_NEW_ARRAY(model->arena, ft_import_weight, model->weight_count);
  FT_OOM_IF(!model->weight, error);
  ft_strbuf graph = ft_strbuf_init(model->arena);
  ft_proto_put_varint(out, 1, IR_VERSION);
  FT_TRY(write_opsets(model, out, error));
  FT_TRY(ft_json_write_graph(model, model->root, NULL, &graph, error));
  FT_TRY(check_order(model, error));
  ft_proto_put_message(out, 7, &graph);
  FT_OOM_IF(out->failed, error);
  return FT_OK;
}

static ft_status convert(const char *text, size_t size, ft_json_model *model,
                         ft_strbuf *out, ft_error *error) {
  FT_TRY(parse(text, size, model, error));
  return write_model(model, out, error);
}

ft_status ft_import_json_bytes(const void *data, size_t size, const char *folder,
                               const ft_import_options *options, ft_arena *arena,
                               ft_graph **out, ft_import_report *report,
                               ft_error *error) {
  ft_json_model model = {.arena = arena};
  ft_strbuf bytes = ft_strbuf_init(arena);
  *out = NULL;
  *report = (ft_import_report){0};
  ft_status status = convert(data, size, &model, &bytes, error);
  if (status != FT_OK) {
    ft_import_clean_text(error);
    return status;
  }
  ft_import_model source = {bytes.text, bytes.length, folder, model.weight};
  return ft_import_model_read(&source, options, arena, out, report, error);
}

ft_status ft_import_json(const char *path, const ft_import_options *options,
                         ft_arena *arena, ft_graph **out, ft_import_report *report,
                         ft_error *error) {
  ft_bytes file;
  *out = NULL;
  *report = (ft_import_report){0};
  FT_TRY(ft_file_read(path, INT_MAX, arena, &file, error));
  const char *folder = ft_import_folder_of(path, arena);
  FT_OOM_IF(!folder, error);
  ft_status status = ft_import_json_bytes(file.data, file.size, folder, options, arena,
                                          out, report, error);
  if (status != FT_OK) ft_error_prefix(error, "%s", path);
  return status;
}
