// Invariants:
//  1. A length from the file is compared with the bytes that are there before it is used.
//  2. The header is read by one scanner that never looks past its end.
//  3. Header and data together are the file: nothing is missing, nothing left over.
#include "graph/npy.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the data is little endian and is used in place");

static const char magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};
enum { MAGIC = sizeof magic, ALIGN = 64, MAX_TEXT = 64 };

static const struct {
  const char *descr;  // without the byte order
  ft_dtype dtype;
} kinds[] = {{"f4", FT_F32}, {"f8", FT_F64}, {"f2", FT_F16}, {"b1", FT_BOOL},
             {"i1", FT_I8},  {"i2", FT_I16}, {"i4", FT_I32}, {"i8", FT_I64},
             {"u1", FT_U8},  {"u2", FT_U16}, {"u4", FT_U32}, {"u8", FT_U64}};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

bool ft_npy_is(const void *data, size_t size) {
  return size >= MAGIC && memcmp(data, magic, MAGIC) == 0;
}

// ---- the header: a Python dict of three known members -----------------------------

typedef struct scanner {
  const char *at, *end;
} scanner;

static void skip_space(scanner *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t')) s->at++;
}

static bool take(scanner *s, char wanted) {
  skip_space(s);
  if (s->at == s->end || *s->at != wanted) return false;
  s->at++;
  return true;
}

static bool take_word(scanner *s, const char *word) {
  size_t size = strlen(word);
  skip_space(s);
  if ((size_t)(s->end - s->at) < size || memcmp(s->at, word, size) != 0) return false;
  s->at += size;
  return true;
}

static bool take_text(scanner *s, char out[MAX_TEXT]) {
  skip_space(s);
  if (s->at == s->end || (*s->at != '\'' && *s->at != '"')) return false;
  char quote = *s->at++;
  size_t size = 0;
  while (s->at < s->end && *s->at != quote && size < MAX_TEXT - 1) out[size++] = *s->at++;
  out[size] = '\0';
  return take(s, quote);
}

static bool take_number(scanner *s, int64_t *out) {
  skip_space(s);
  bool has_digits = false;
  for (*out = 0; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
    has_digits = true;
    if (__builtin_mul_overflow(*out, 10, out) ||
        __builtin_add_overflow(*out, *s->at - '0', out))
      return false;
  }
  return has_digits;
}

static ft_status malformed(const char *what, ft_error *error) {
  FT_FAIL(error, FT_REFUSED, "not a NumPy header: %s", what);
}

static ft_status read_dtype(scanner *s, ft_dtype *out, ft_error *error) {
  char descr[MAX_TEXT];
  skip_space(s);
  if (s->at < s->end && *s->at == '[')
    FT_FAIL(error, FT_UNSUPPORTED, "a structured dtype");
  if (!take_text(s, descr)) return malformed("'descr' is no text", error);
  if (descr[0] == '>') FT_FAIL(error, FT_REFUSED, "dtype '%s' is big endian", descr);
  for (int i = 0; i < KIND_COUNT && descr[0]; i++)
    if (strcmp(descr + 1, kinds[i].descr) == 0) {
      *out = kinds[i].dtype;
      bool one_byte = ft_dtype_bytes(*out) == 1;
      if (descr[0] == '<' || (one_byte && descr[0] == '|')) return FT_OK;
    }
  FT_FAIL(error, FT_UNSUPPORTED, "dtype '%s'", descr);
}

static ft_status read_order(scanner *s, ft_error *error) {
  if (take_word(s, "False")) return FT_OK;
  if (!take_word(s, "True")) return malformed("'fortran_order' is no bool", error);
  FT_FAIL(error, FT_REFUSED, "Fortran order: save it with numpy.ascontiguousarray");
}

static ft_status read_shape(scanner *s, ft_shape *out, ft_error *error) {
  *out = (ft_shape){0};
  if (!take(s, '(')) return malformed("'shape' is no tuple", error);
  while (!take(s, ')')) {
    int64_t dim;
    if (!take_number(s, &dim)) return malformed("a dim is no number", error);
    if (out->rank == FT_MAX_RANK)
      FT_FAIL(error, FT_UNSUPPORTED, "rank above %d", FT_MAX_RANK);
    out->dim[out->rank++] = dim;
    if (take(s, ',')) continue;
    if (!take(s, ')')) return malformed("'shape' does not end", error);
    break;
  }
  return FT_OK;
}

static ft_status read_member(scanner *s, const char *name, ft_tensor *out, unsigned *seen,
                             ft_error *error) {
  static const char *const names[] = {"descr", "fortran_order", "shape"};
  unsigned which = 0;
  while (which < 3 && strcmp(name, names[which]) != 0) which++;
  if (which == 3) FT_FAIL(error, FT_REFUSED, "an unknown member '%s'", name);
  if (*seen & 1u << which) FT_FAIL(error, FT_REFUSED, "member '%s' twice", name);
  *seen |= 1u << which;
  if (which == 0) return read_dtype(s, &out->dtype, error);
  return which == 1 ? read_order(s, error) : read_shape(s, &out->shape, error);
}

static ft_status read_header(scanner *s, ft_tensor *out, ft_error *error) {
  unsigned seen = 0;
  char name[MAX_TEXT];
  if (!take(s, '{')) return malformed("no dict", error);
  while (!take(s, '}')) {
    if (!take_text(s, name) || !take(s, ':')) return malformed("no member name", error);
    FT_TRY(read_member(s, name, out, &seen, error));
    if (take(s, ',')) continue;
    if (!take(s, '}')) return malformed("the dict does not end", error);
    break;
  }
  skip_space(s);
  if (s->at != s->end) return malformed("text after the dict", error);
  return seen == 7 ? FT_OK : malformed("a member is missing", error);
}

// The header's length, and where it begins.
static ft_status find_header(const uint8_t *data, size_t size, size_t *out_at,
                             size_t *out_size, ft_error *error) {
  if (!ft_npy_is(data, size) || size < MAGIC + 4)
    FT_FAIL(error, FT_REFUSED, "not a NumPy file");
  unsigned major = data[MAGIC], minor = data[MAGIC + 1];
  if (major < 1 || major > 2 || minor != 0)
    FT_FAIL(error, FT_UNSUPPORTED, "NumPy format %u.%u: 1.0 and 2.0 are read", major,
            minor);
  size_t width = major == 1 ? 2 : 4;
  *out_at = MAGIC + 2 + width;
  if (size < *out_at) FT_FAIL(error, FT_REFUSED, "the header is cut off");
  *out_size = 0;
  for (size_t i = 0; i < width; i++) *out_size |= (size_t)data[MAGIC + 2 + i] << (8 * i);
  if (*out_size > size - *out_at)
    FT_FAIL(error, FT_REFUSED, "a header of %zu bytes in a file of %zu", *out_size, size);
  return FT_OK;
}

static ft_status check_bytes(const ft_tensor *t, ft_error *error) {
  int64_t elements = ft_shape_elements(&t->shape);
  if (elements < 0) FT_FAIL(error, FT_REFUSED, "the shape has more than 2^62 elements");
  size_t each = ft_dtype_bytes(t->dtype);
  if (t->bytes % each != 0 || t->bytes / each != (uint64_t)elements)
    FT_FAIL(error, FT_REFUSED, "%zu bytes of data where the shape needs %lld of %zu",
            t->bytes, (long long)elements, each);
  const uint8_t *bytes = t->data;
  for (size_t i = 0; t->dtype == FT_BOOL && i < t->bytes; i++)
    if (bytes[i] > 1) FT_FAIL(error, FT_REFUSED, "element %zu is no bool", i);
  return FT_OK;
}

ft_status ft_npy_parse(const void *data, size_t size, ft_tensor *out, ft_error *error) {
  *out = (ft_tensor){0};
  size_t at, header;
  FT_TRY(find_header(data, size, &at, &header, error));
  const char *text = (const char *)data + at;
  scanner s = {text, text + header};
  FT_TRY(read_header(&s, out, error));
  out->data = text + header;
  out->bytes = size - at - header;
  return check_bytes(out, error);
}

// ---- writing ------------------------------------------------------------------------

static const char *descr_of(ft_dtype dtype) {
  for (int i = 0; i < KIND_COUNT; i++)
    if (kinds[i].dtype == dtype) return kinds[i].descr;
  return NULL;
}

ft_status ft_npy_write(const ft_tensor *tensor, ft_strbuf *out, ft_error *error) {
  const char *descr = descr_of(tensor->dtype);
  if (!descr)
    FT_FAIL(error, FT_UNSUPPORTED, "NumPy has no %s", ft_dtype_text(tensor->dtype));
  ft_strbuf text = ft_strbuf_init(out->arena);
  ft_strbuf_printf(&text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                   ft_dtype_bytes(tensor->dtype) == 1 ? '|' : '<', descr);
  for (int i = 0; i < tensor->shape.rank; i++)
    ft_strbuf_printf(&text, "%s%lld%s", i ? " " : "", (long long)tensor->shape.dim[i],
                     i + 1 < tensor->shape.rank || i == 0 ? "," : "");
  ft_strbuf_add(&text, "), }");
  while ((MAGIC + 4 + text.length + 1) % ALIGN != 0 && !text.failed)
    ft_strbuf_add(&text, " ");
  ft_strbuf_add(&text, "\n");
  uint8_t length[4] = {1, 0, (uint8_t)text.length, (uint8_t)(text.length >> 8)};
  ft_strbuf_addn(out, magic, MAGIC);
  ft_strbuf_addn(out, length, sizeof length);
  ft_strbuf_addn(out, text.text, text.length);
  if (tensor->bytes) ft_strbuf_addn(out, tensor->data, tensor->bytes);
  FT_OOM_IF(text.failed || out->failed, error);
  return FT_OK;
}
