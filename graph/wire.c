// Invariants:
//  1. Only bytes in [at, end) are read, and |at| never passes |end|.
//  2. A varint is at most 10 bytes and its value fits 64 bits.
//  3. A length is compared with what remains before anything is done with it.
//  4. Each successful ft_wire_next moves the cursor forward, so every loop over a
//     message ends.
//  5. Groups (wire types 3 and 4) are refused: no ONNX message has one, and they are
//     the only construct that needs a stack to skip.
//  6. A cursor is never deeper than FT_IMPORT_MAX_DEPTH, so recursion over messages
//     is bounded by it whatever the file says.
#include "graph/wire.h"

#include <string.h>

#include "graph/import.h"

bool ft_span_equal(ft_span a, ft_span b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool ft_span_is(ft_span span, const char *text) {
  return ft_span_equal(span, (ft_span){(const uint8_t *)text, strlen(text)});
}

// Bytes that follow a lead byte, or -1.
static int utf8_rest(uint8_t lead) {
  if (lead < 0x80) return 0;
  if (lead >= 0xc2 && lead <= 0xdf) return 1;
  if (lead >= 0xe0 && lead <= 0xef) return 2;
  if (lead >= 0xf0 && lead <= 0xf4) return 3;
  return -1;
}

// Overlong forms, surrogates and values above U+10FFFF show in the second byte.
static bool utf8_second_fits(uint8_t lead, uint8_t second) {
  switch (lead) {
    case 0xe0:
      return second >= 0xa0;
    case 0xed:
      return second <= 0x9f;
    case 0xf0:
      return second >= 0x90;
    case 0xf4:
      return second <= 0x8f;
    default:
      return true;
  }
}

bool ft_span_is_text(ft_span span) {
  for (size_t i = 0; i < span.size;) {
    uint8_t lead = span.data[i++];
    int rest = utf8_rest(lead);
    if (lead == 0 || rest < 0 || (size_t)rest > span.size - i) return false;
    if (rest > 0 && !utf8_second_fits(lead, span.data[i])) return false;
    for (; rest > 0; rest--)
      if ((span.data[i++] & 0xc0) != 0x80) return false;
  }
  return true;
}

ft_wire ft_wire_open(ft_span bytes, const uint8_t *file, const char *message) {
  const uint8_t *end = bytes.size ? bytes.data + bytes.size : bytes.data;
  return (ft_wire){bytes.data, end, file, message, 0};
}

size_t ft_wire_offset(const ft_wire *wire) {
  return (size_t)(wire->at - wire->file);
}

static size_t remaining(const ft_wire *wire) {
  return (size_t)(wire->end - wire->at);
}

ft_status ft_wire_enter(const ft_wire *parent, ft_span bytes, const char *message,
                        ft_wire *out, ft_error *error) {
  *out = ft_wire_open(bytes, parent->file, message);
  out->depth = parent->depth + 1;
  if (out->depth > FT_IMPORT_MAX_DEPTH)
    FT_FAIL(error, FT_REFUSED, "%s at byte %zu is nested deeper than %d messages",
            message, ft_wire_offset(out), FT_IMPORT_MAX_DEPTH);
  return FT_OK;
}

static ft_status read_varint(ft_wire *wire, uint64_t *out, ft_error *error) {
  uint64_t value = 0;
  size_t start = ft_wire_offset(wire);
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (wire->at == wire->end)
      FT_FAIL(error, FT_REFUSED, "%s: the number at byte %zu is cut off", wire->message,
              start);
    uint8_t byte = *wire->at++;
    if (shift == 63 && byte > 1) break;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *out = value;
      return FT_OK;
    }
  }
  FT_FAIL(error, FT_REFUSED, "%s: the number at byte %zu does not fit 64 bits",
          wire->message, start);
}

static ft_status read_fixed(ft_wire *wire, size_t size, uint64_t *out, ft_error *error) {
  if (remaining(wire) < size)
    FT_FAIL(error, FT_REFUSED, "%s: %zu bytes are cut off at byte %zu", wire->message,
            size, ft_wire_offset(wire));
  *out = 0;
  for (size_t i = 0; i < size; i++) *out |= (uint64_t)wire->at[i] << (8 * i);
  wire->at += size;
  return FT_OK;
}

static ft_status read_bytes(ft_wire *wire, ft_span *out, ft_error *error) {
  uint64_t size = 0;
  FT_TRY(read_varint(wire, &size, error));
  if (size > remaining(wire))
    FT_FAIL(error, FT_REFUSED,
            "%s: a length of %llu bytes at byte %zu where only %zu remain", wire->message,
            (unsigned long long)size, ft_wire_offset(wire), remaining(wire));
  *out = (ft_span){wire->at, (size_t)size};
  wire->at += size;
  return FT_OK;
}

static ft_status read_value(ft_wire *wire, ft_wire_field *out, ft_error *error) {
  switch ((int)out->type) {
    case FT_WIRE_VARINT:
      return read_varint(wire, &out->value, error);
    case FT_WIRE_FIXED64:
      return read_fixed(wire, 8, &out->value, error);
    case FT_WIRE_FIXED32:
      return read_fixed(wire, 4, &out->value, error);
    case FT_WIRE_BYTES:
      return read_bytes(wire, &out->bytes, error);
    default:
      FT_FAIL(error, FT_REFUSED, "%s: field %u before byte %zu has wire type %d",
              wire->message, out->number, ft_wire_offset(wire), (int)out->type);
  }
}

ft_status ft_wire_next(ft_wire *wire, ft_wire_field *out, ft_error *error) {
  *out = (ft_wire_field){0};
  if (wire->at == wire->end) return FT_OK;
  uint64_t key = 0;
  size_t start = ft_wire_offset(wire);
  FT_TRY(read_varint(wire, &key, error));
  if (key >> 3 == 0 || key >> 32 != 0)
    FT_FAIL(error, FT_REFUSED, "%s: field number %llu at byte %zu", wire->message,
            (unsigned long long)(key >> 3), start);
  out->number = (uint32_t)(key >> 3);
  out->type = (ft_wire_type)(key & 7);
  return read_value(wire, out, error);
}

ft_status ft_wire_scalars_open(const ft_wire *wire, const ft_wire_field *field,
                               ft_wire_type element, ft_wire_scalars *out,
                               ft_error *error) {
  if (field->type != element && field->type != FT_WIRE_BYTES)
    FT_FAIL(error, FT_REFUSED, "%s: field %u before byte %zu has wire type %d, not %d",
            wire->message, field->number, ft_wire_offset(wire), (int)field->type,
            (int)element);
  *out = (ft_wire_scalars){.wire = *wire, .element = element, .single = field->value};
  out->is_packed = field->type == FT_WIRE_BYTES;
  if (out->is_packed) out->wire = ft_wire_open(field->bytes, wire->file, wire->message);
  return FT_OK;
}

ft_status ft_wire_scalars_next(ft_wire_scalars *scalars, uint64_t *out_value,
                               bool *out_more, ft_error *error) {
  *out_more = !scalars->is_done;
  if (!scalars->is_packed) {
    if (!scalars->is_done) *out_value = scalars->single;
    scalars->is_done = true;
    return FT_OK;
  }
  *out_more = scalars->wire.at != scalars->wire.end;
  if (!*out_more) return FT_OK;
  ft_wire_field field = {.number = 1, .type = scalars->element};
  FT_TRY(read_value(&scalars->wire, &field, error));
  *out_value = field.value;
  return FT_OK;
}
