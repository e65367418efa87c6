// wire - a bounded, zero-copy reader of protobuf's wire format.
//
// A cursor over bytes that somebody else owns; nothing is copied and nothing is
// allocated. Everything read is a view into those bytes and lives as long as they do.
// Thread-compatible. Errors: REFUSED; the text names the message and the byte offset
// in the file.
// Source: protobuf.dev/programming-guides/encoding.
#ifndef FT_GRAPH_WIRE_H
#define FT_GRAPH_WIRE_H

#include "core/status.h"

typedef struct ft_span {
  const uint8_t *data;
  size_t size;
} ft_span;

// Two printf arguments for "%.*s"; at most 200 bytes are shown.
#define FT_SPAN_SHOW(span)                      \
  (int)((span).size < 200 ? (span).size : 200), \
      (span).size ? (const char *)(span).data : ""

bool ft_span_equal(ft_span a, ft_span b);
bool ft_span_is(ft_span span, const char *text);
// True for UTF-8 without NUL: what a protobuf string that becomes a C string must be.
bool ft_span_is_text(ft_span span);

typedef enum ft_wire_type {
  FT_WIRE_VARINT = 0,
  FT_WIRE_FIXED64 = 1,
  FT_WIRE_BYTES = 2,  // a length, then so many bytes: strings, messages, packed scalars
  FT_WIRE_FIXED32 = 5
} ft_wire_type;

typedef struct ft_wire {
  const uint8_t *at, *end;
  const uint8_t *file;  // offsets in error texts count from here
  const char *message;  // for error texts: "NodeProto"
  uint32_t depth;       // messages around this one
} ft_wire;

typedef struct ft_wire_field {
  uint32_t number;  // 0: the message has ended
  ft_wire_type type;
  uint64_t value;  // VARINT, and the bits of FIXED32 and FIXED64
  ft_span bytes;   // BYTES
} ft_wire_field;

// A cursor over a whole file, or over a span that was cut from |file| before.
ft_wire ft_wire_open(ft_span bytes, const uint8_t *file, const char *message);
// A cursor over a message inside |parent|. Refuses more than FT_IMPORT_MAX_DEPTH levels.
FT_MUST_CHECK ft_status ft_wire_enter(const ft_wire *parent, ft_span bytes,
                                      const char *message, ft_wire *out, ft_error *error);
// The next field, or number 0 at the end.
FT_MUST_CHECK ft_status ft_wire_next(ft_wire *wire, ft_wire_field *out, ft_error *error);
// Byte offset of the cursor in the file.
size_t ft_wire_offset(const ft_wire *wire);

// The scalars of one occurrence of a repeated field: packed, or a single one.
typedef struct ft_wire_scalars {
  ft_wire wire;
  ft_wire_type element;
  uint64_t single;
  bool is_packed, is_done;
} ft_wire_scalars;

// Refuses a field that is neither packed nor of |element| type.
FT_MUST_CHECK ft_status ft_wire_scalars_open(const ft_wire *wire,
                                             const ft_wire_field *field,
                                             ft_wire_type element, ft_wire_scalars *out,
                                             ft_error *error);
// *out_more is false, and *out_value unchanged, at the end.
FT_MUST_CHECK ft_status ft_wire_scalars_next(ft_wire_scalars *scalars,
                                             uint64_t *out_value, bool *out_more,
                                             ft_error *error);

#endif
