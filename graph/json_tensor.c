// A constant of a JSON graph becomes a TensorProto: values and base64 as raw_data, a file
// as external data (so the confinement is external_data.c's), a seed as no data at all.
#include <string.h>

#include "graph/json_model.h"

// ---- the shape
// --------------------------------------------------------------------------

static ft_status read_shape(const json_t *json, const ft_json_place *place, ft_shape *out,
                            ft_error *error) {
  const json_t *list;
  FT_TRY(ft_json_array_of(json, "shape", place, &list, error));
  const ft_json_place *at = FT_JSON_MEMBER(place, "shape");
  if (!list) return ft_json_fail(place, FT_REFUSED, error, "has no 'shape'");
  *out = (ft_shape){0};
  if (json_array_size(list) > FT_MAX_RANK)
    return ft_json_fail(at, FT_UNSUPPORTED, error, "rank %zu is more than %d",
                        json_array_size(list), FT_MAX_RANK);
  out->rank = (uint8_t)json_array_size(list);
  for (int i = 0; i < out->rank; i++) {
    const json_t *dim = json_array_get(list, (size_t)i);
    if (!json_is_integer(dim) || json_integer_value(dim) < 0)
      return ft_json_fail(FT_JSON_ELEMENT(at, (size_t)i), FT_REFUSED, error,
                          "is no dim of a constant");
    out->dim[i] = json_integer_value(dim);
  }
  if (ft_shape_elements(out) < 0)
    return ft_json_fail(at, FT_REFUSED, error, "has more than 2^62 elements");
  return FT_OK;
}

// ---- values
// -----------------------------------------------------------------------------

static bool fits(ft_dtype dtype, json_int_t value) {
  uint64_t stored = 0;
  ft_element_set_i64(dtype, &stored, 0, value);
  ft_tensor t = {.dtype = dtype, .data = &stored, .bytes = sizeof stored};
  return ft_tensor_get_i64(&t, 0) == value;
}

static ft_status store_value(const json_t *value, ft_dtype dtype, void *data,
                             size_t index, const ft_json_place *place, ft_error *error) {
  if (ft_dtype_is_float(dtype)) {
    double real;
    FT_TRY(ft_json_real(value, place, &real, error));
    ft_element_set_f64(dtype, data, (int64_t)index, real);
    return FT_OK;
  }
  bool is_bool = dtype == FT_BOOL && json_is_boolean(value);
  json_int_t integer = is_bool ? json_is_true(value) : json_integer_value(value);
  if (!is_bool && (!json_is_integer(value) || !fits(dtype, integer)))
    return ft_json_fail(place, FT_REFUSED, error, "is no %s", ft_dtype_text(dtype));
  ft_element_set_i64(dtype, data, (int64_t)index, integer);
  return FT_OK;
}

static ft_status write_values(ft_json_model *model, const json_t *list, ft_dtype dtype,
                              const ft_shape *shape, const ft_json_place *place,
                              ft_strbuf *out, ft_error *error) {
  size_t count = json_array_size(list);
  if (!json_is_array(list)) return ft_json_fail(place, FT_REFUSED, error, "is no array");
  if (count != (uint64_t)ft_shape_elements(shape))
    return ft_json_fail(place, FT_REFUSED, error, "has %zu values where %s needs %lld",
                        count, ft_shape_text(shape, model->arena),
                        (long long)ft_shape_elements(shape));
  uint8_t *data = ft_arena_array(model->arena, count, ft_dtype_bytes(dtype));
  FT_OOM_IF(!data, error);
  for (size_t i = 0; i < count; i++)
    FT_TRY(store_value(json_array_get(list, i), dtype, data, i, FT_JSON_ELEMENT(place, i),
                       error));
  ft_proto_put_bytes(out, 9, data, count * ft_dtype_bytes(dtype));
  return FT_OK;
}

// ---- base64
// -----------------------------------------------------------------------------

// 0 to 63; 64: padding; -1: neither.
static int sextet(char c) {
  static const char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
  const char *at = c ? strchr(digits, c) : NULL;
  return at ? (int)(at - digits) : -1;
}

// Decodes one quantum of four digits; returns its bytes (1 to 3), 0 when malformed.
static size_t decode_four(const char *text, bool is_last, uint8_t out[3]) {
  int d[4];
  for (int i = 0; i < 4; i++) d[i] = sextet(text[i]);
  size_t pad = d[3] == 64 ? d[2] == 64 ? 2 : 1 : 0;
  if (pad && !is_last) return 0;
  uint32_t bits = 0;
  for (size_t i = 0; i < 4; i++) {
    bool padded = i >= 4 - pad;
    if (d[i] < 0 || (d[i] == 64) != padded) return 0;
    bits = bits << 6 | (padded ? 0 : (uint32_t)d[i]);
  }
  for (size_t i = 0; i < 3; i++) out[i] = (uint8_t)(bits >> (16 - 8 * i));
  return 3 - pad;
}

static ft_status write_base64(ft_json_model *model, const json_t *value,
                              const ft_json_place *place, ft_strbuf *out,
                              ft_error *error) {
  size_t size = json_string_length(value), used = 0;
  const char *text = json_string_value(value);
  if (!text || size % 4 != 0)
    return ft_json_fail(place, FT_REFUSED, error, "is no base64");
  if (size / 4 * 3 > FT_JSON_MAX_BASE64 + 2)
    return ft_json_fail(place, FT_REFUSED, error, "holds more than %d bytes: use a file",
                        FT_JSON_MAX_BASE64);
  uint8_t *data = ft_arena_alloc(model->arena, size / 4 * 3);
  FT_OOM_IF(!data, error);
  for (size_t i = 0; i < size; i += 4) {
    size_t more = decode_four(text + i, i + 4 == size, data + used);
    if (more == 0)
      return ft_json_fail(place, FT_REFUSED, error, "is no base64 at %zu", i);
    used += more;
  }
  if (used > FT_JSON_MAX_BASE64)
    return ft_json_fail(place, FT_REFUSED, error, "holds more than %d bytes: use a file",
                        FT_JSON_MAX_BASE64);
  ft_proto_put_bytes(out, 9, data, used);
  return FT_OK;
}

// ---- files and seeds
// ----------------------------------------------------------------------

static void put_entry(ft_json_model *model, const char *key, const char *value,
                      ft_strbuf *out) {
  ft_strbuf entry = ft_strbuf_init(model->arena);
  ft_proto_put_text(&entry, 1, key);
  ft_proto_put_text(&entry, 2, value);
  ft_proto_put_message(out, 13, &entry);
}

static ft_status put_count(ft_json_model *model, const json_t *data, const char *member,
                           const char *key, const ft_json_place *place, ft_strbuf *out,
                           ft_error *error) {
  const json_t *value = json_object_get(data, member);
  if (!value) return FT_OK;
  if (!json_is_integer(value) || json_integer_value(value) < 0)
    return ft_json_fail(FT_JSON_MEMBER(place, member), FT_REFUSED, error,
                        "is no byte count");
  char *text =
      ft_arena_printf(model->arena, "%lld", (long long)json_integer_value(value));
  FT_OOM_IF(!text, error);
  put_entry(model, key, text, out);
  return FT_OK;
}

static ft_status write_file(ft_json_model *model, const json_t *data,
                            const ft_json_place *place, ft_strbuf *out, ft_error *error) {
  const char *file;
  FT_TRY(ft_json_text_of(data, "file", NULL, place, &file, error));
  put_entry(model, "location", file, out);
  FT_TRY(put_count(model, data, "offset", "offset", place, out, error));
  FT_TRY(put_count(model, data, "bytes", "length", place, out, error));
  ft_proto_put_varint(out, 14, 1);
  return FT_OK;
}

// A weight without a seed gets one from its name, so that two of them differ.
static ft_status draw(const json_t *seed, const char *name, ft_dtype dtype,
                      const ft_shape *shape, const ft_json_place *place,
                      ft_import_weight *weight, ft_error *error) {
  if (!weight)
    return ft_json_fail(place, FT_REFUSED, error, "needs its data: values, file, base64");
  if (dtype != FT_F32)
    return ft_json_fail(place, FT_UNSUPPORTED, error,
                        "a %s weight needs its data: only f32 is drawn from a seed",
                        ft_dtype_text(dtype));
  if (seed && (!json_is_integer(seed) || json_integer_value(seed) < 0))
    return ft_json_fail(place, FT_REFUSED, error, "the seed is no integer from 0 on");
  *weight =
      (ft_import_weight){.is_drawn = true,
                         .dtype = dtype,
                         .shape = *shape,
                         .seed = seed ? (uint64_t)json_integer_value(seed)
                                      : ft_hash64(FT_HASH64_SEED, name, strlen(name))};
  return FT_OK;
}

static ft_status write_data(ft_json_model *model, const json_t *json, const char *name,
                            ft_dtype dtype, const ft_shape *shape,
                            const ft_json_place *place, ft_strbuf *out,
                            ft_import_weight *weight, ft_error *error) {
  const json_t *data = json_object_get(json, "data");
  const ft_json_place *at = FT_JSON_MEMBER(place, "data");
  if (!data) return draw(NULL, name, dtype, shape, place, weight, error);
  FT_TRY(ft_json_check_members(data, "values file offset bytes base64 seed", at, error));
  const json_t *values = json_object_get(data, "values");
  const json_t *base64 = json_object_get(data, "base64");
  const json_t *seed = json_object_get(data, "seed");
  const json_t *file = json_object_get(data, "file");
  if (!!values + !!base64 + !!seed + !!file != 1)
    return ft_json_fail(at, FT_REFUSED, error,
                        "needs exactly one of values, file, base64 and seed");
  if (values)
    return write_values(model, values, dtype, shape, FT_JSON_MEMBER(at, "values"), out,
                        error);
  if (base64)
    return write_base64(model, base64, FT_JSON_MEMBER(at, "base64"), out, error);
  if (seed) return draw(seed, name, dtype, shape, at, weight, error);
  return write_file(model, data, at, out, error);
}

ft_status ft_json_write_tensor(ft_json_model *model, const json_t *json,
                               const ft_json_place *place, ft_strbuf *out,
                               ft_import_weight *weight, ft_error *error) {
  ft_dtype dtype;
  ft_shape shape;
  const char *name;
  FT_TRY(ft_json_check_members(json, "name dtype shape data", place, error));
  FT_TRY(ft_json_text_of(json, "name", "", place, &name, error));
  FT_TRY(ft_json_dtype_of(json, place, &dtype, error));
  FT_TRY(read_shape(json, place, &shape, error));
  for (int i = 0; i < shape.rank; i++)
    ft_proto_put_varint(out, 1, (uint64_t)shape.dim[i]);
  ft_proto_put_varint(out, 2, (uint64_t)ft_json_onnx_type(dtype));
  ft_proto_put_text(out, 8, name);
  return write_data(model, json, name, dtype, &shape, place, out, weight, error);
}
