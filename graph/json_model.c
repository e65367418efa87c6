#include "graph/json_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Appends "nodes[3].inputs" to |text|; returns its length.
static size_t describe(const ft_json_place *place, char *text, size_t size) {
  if (!place) return 0;
  size_t used = describe(place->parent, text, size);
  if (used >= size) return used;
  int more = place->member ? snprintf(text + used, size - used, "%s%s", used ? "." : "",
                                      place->member)
                           : snprintf(text + used, size - used, "[%zu]", place->index);
  return used + (size_t)more;
}

ft_status ft_json_fail(const ft_json_place *place, ft_status code, ft_error *error,
                       const char *format, ...) {
  char where[256] = "", text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (describe(place, where, sizeof where) == 0) FT_FAIL(error, code, "%s", text);
  FT_FAIL(error, code, "%s: %s", where, text);
}

static bool lists(const char *known, const char *name) {
  size_t length = strlen(name);
  for (const char *at = known; length && (at = strstr(at, name)); at++)
    if ((at == known || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
  return false;
}

ft_status ft_json_check_members(const json_t *object, const char *known,
                                const ft_json_place *place, ft_error *error) {
  if (!json_is_object(object))
    return ft_json_fail(place, FT_REFUSED, error, "is no object");
  const char *name;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)object, name, value) {
    if (!lists(known, name))
      return ft_json_fail(place, FT_REFUSED, error, "unknown member '%.100s'", name);
  }
  return FT_OK;
}

ft_status ft_json_text_value(const json_t *value, const ft_json_place *place,
                             const char **out, ft_error *error) {
  if (!json_is_string(value)) return ft_json_fail(place, FT_REFUSED, error, "is no text");
  if (json_string_length(value) > FT_JSON_MAX_TEXT)
    return ft_json_fail(place, FT_REFUSED, error, "a text of %zu bytes, at most %d",
                        json_string_length(value), FT_JSON_MAX_TEXT);
  *out = json_string_value(value);
  return FT_OK;
}

ft_status ft_json_text_of(const json_t *object, const char *member, const char *otherwise,
                          const ft_json_place *place, const char **out, ft_error *error) {
  const json_t *value = json_object_get(object, member);
  *out = otherwise;
  if (value) return ft_json_text_value(value, FT_JSON_MEMBER(place, member), out, error);
  if (!otherwise) return ft_json_fail(place, FT_REFUSED, error, "has no '%s'", member);
  return FT_OK;
}

ft_status ft_json_array_of(const json_t *object, const char *member,
                           const ft_json_place *place, const json_t **out,
                           ft_error *error) {
  *out = json_object_get(object, member);
  if (*out && !json_is_array(*out))
    return ft_json_fail(FT_JSON_MEMBER(place, member), FT_REFUSED, error, "is no array");
  return FT_OK;
}

ft_status ft_json_dtype_of(const json_t *object, const ft_json_place *place,
                           ft_dtype *out, ft_error *error) {
  const char *text;
  FT_TRY(ft_json_text_of(object, "dtype", NULL, place, &text, error));
  *out = ft_dtype_from_text(text);
  if (*out == FT_DTYPE_COUNT)
    return ft_json_fail(FT_JSON_MEMBER(place, "dtype"), FT_REFUSED, error,
                        "unknown dtype '%.40s'", text);
  return FT_OK;
}

int64_t ft_json_onnx_type(ft_dtype dtype) {
  static const int64_t number[FT_DTYPE_COUNT] = {
#define FT_DTYPE(name, text, onnx, bytes, kind) [FT_##name] = onnx,
#include "graph/dtypes.def"
#undef FT_DTYPE
  };
  return number[dtype];
}

ft_status ft_json_real(const json_t *value, const ft_json_place *place, double *out,
                       ft_error *error) {
  static const struct {
    const char *text;
    double value;
  } words[] = {{"nan", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}};
  for (size_t i = 0; json_is_string(value) && i < sizeof words / sizeof *words; i++)
    if (strcmp(json_string_value(value), words[i].text) == 0) {
      *out = words[i].value;
      return FT_OK;
    }
  if (!json_is_number(value))
    return ft_json_fail(place, FT_REFUSED, error,
                        "is no number, nor \"nan\", \"inf\" or \"-inf\"");
  *out = json_number_value(value);
  return FT_OK;
}
