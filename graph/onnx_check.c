// Invariants, once this has passed:
//  1. Every known field of every message has the wire type that ONNX gives it.
//  2. Every string that becomes a name is UTF-8 without NUL.
//  3. No message is nested deeper than FT_IMPORT_MAX_DEPTH.
//  4. Packed numbers end where their field ends.
#include "graph/onnx_check.h"

typedef enum message_id {
#define FT_ONNX_MESSAGE(id, name) M_##id,
#define FT_ONNX_FIELD(id, number, kind, inner)
#include "graph/onnx_fields.def"
#undef FT_ONNX_MESSAGE
#undef FT_ONNX_FIELD
} message_id;

typedef enum field_kind {
  UNKNOWN,
  VARINT,
  FLOAT,
  TEXT,
  BLOB,
  VARINTS,
  FLOATS,
  DOUBLES,
  MESSAGE
} field_kind;

static const char *const message_names[] = {
#define FT_ONNX_MESSAGE(id, name) name,
#define FT_ONNX_FIELD(id, number, kind, inner)
#include "graph/onnx_fields.def"
#undef FT_ONNX_MESSAGE
#undef FT_ONNX_FIELD
};

typedef struct field_info {
  field_kind kind;
  message_id inner;
} field_info;

enum { MAX_FIELD = 25 };  // the highest number in onnx_fields.def

static const field_info fields[][MAX_FIELD + 1] = {
#define FT_ONNX_MESSAGE(id, name)
#define FT_ONNX_FIELD(id, number, kind, inner) [M_##id][number] = {kind, M_##inner},
#include "graph/onnx_fields.def"
#undef FT_ONNX_MESSAGE
#undef FT_ONNX_FIELD
};

static const ft_wire_type element_types[] = {
    [VARINT] = FT_WIRE_VARINT,   [FLOAT] = FT_WIRE_FIXED32,  [TEXT] = FT_WIRE_BYTES,
    [BLOB] = FT_WIRE_BYTES,      [VARINTS] = FT_WIRE_VARINT, [FLOATS] = FT_WIRE_FIXED32,
    [DOUBLES] = FT_WIRE_FIXED64, [MESSAGE] = FT_WIRE_BYTES,
};

static bool may_be_packed(field_kind kind) {
  return kind == VARINTS || kind == FLOATS || kind == DOUBLES;
}

// Each varint of at most ten bytes, the last one complete.
static bool are_varints(ft_span bytes) {
  size_t run = 0;
  for (size_t i = 0; i < bytes.size; i++) {
    run = bytes.data[i] & 0x80 ? run + 1 : 0;
    if (run == 10) return false;
  }
  return run == 0;
}

static bool are_packed(field_kind kind, ft_span bytes) {
  if (kind == VARINTS) return are_varints(bytes);
  return bytes.size % (kind == FLOATS ? 4 : 8) == 0;
}

static ft_status check_field(const ft_wire *wire, const ft_wire_field *field,
                             const field_info *info, ft_error *error) {
  if (field->type != element_types[info->kind] &&
      !(may_be_packed(info->kind) && field->type == FT_WIRE_BYTES))
    FT_FAIL(error, FT_REFUSED, "%s: field %u before byte %zu has wire type %d",
            wire->message, field->number, ft_wire_offset(wire), (int)field->type);
  if (may_be_packed(info->kind) && field->type == FT_WIRE_BYTES &&
      !are_packed(info->kind, field->bytes))
    FT_FAIL(error, FT_REFUSED,
            "%s: the packed numbers in field %u before byte %zu end "
            "inside a number",
            wire->message, field->number, ft_wire_offset(wire));
  if (info->kind == TEXT && !ft_span_is_text(field->bytes))
    FT_FAIL(error, FT_REFUSED, "%s: the string in field %u before byte %zu is not UTF-8",
            wire->message, field->number, ft_wire_offset(wire));
  return FT_OK;
}

static ft_status check_message(ft_wire *wire, message_id message, ft_error *error) {
  for (;;) {
    ft_wire_field field;
    FT_TRY(ft_wire_next(wire, &field, error));
    if (!field.number) return FT_OK;
    if (field.number > MAX_FIELD) continue;
    const field_info *info = &fields[message][field.number];
    if (info->kind == UNKNOWN) continue;
    FT_TRY(check_field(wire, &field, info, error));
    if (info->kind != MESSAGE) continue;
    ft_wire inner;
    FT_TRY(ft_wire_enter(wire, field.bytes, message_names[info->inner], &inner, error));
    FT_TRY(check_message(&inner, info->inner, error));
  }
}

ft_status ft_onnx_check(ft_span file, ft_error *error) {
  ft_wire wire = ft_wire_open(file, file.data, message_names[M_MODEL]);
  return check_message(&wire, M_MODEL, error);
}
