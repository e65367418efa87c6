#include "graph/proto_write.h"

#include <string.h>

#include "graph/wire.h"

static void put_number(ft_strbuf *out, uint64_t value) {
  uint8_t bytes[10];
  size_t size = 0;
  do {
    bytes[size++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    value >>= 7;
  } while (value);
  ft_strbuf_addn(out, bytes, size);
}

static void put_key(ft_strbuf *out, uint32_t field, ft_wire_type type) {
  put_number(out, (uint64_t)field << 3 | (uint64_t)type);
}

void ft_proto_put_varint(ft_strbuf *out, uint32_t field, uint64_t value) {
  put_key(out, field, FT_WIRE_VARINT);
  put_number(out, value);
}

void ft_proto_put_float(ft_strbuf *out, uint32_t field, float value) {
  put_key(out, field, FT_WIRE_FIXED32);
  ft_strbuf_addn(out, &value, sizeof value);
}

void ft_proto_put_bytes(ft_strbuf *out, uint32_t field, const void *data, size_t size) {
  put_key(out, field, FT_WIRE_BYTES);
  put_number(out, size);
  if (size) ft_strbuf_addn(out, data, size);
}

void ft_proto_put_text(ft_strbuf *out, uint32_t field, const char *text) {
  ft_proto_put_bytes(out, field, text, strlen(text));
}

void ft_proto_put_message(ft_strbuf *out, uint32_t field, const ft_strbuf *message) {
  if (message->failed) out->failed = true;
  ft_proto_put_bytes(out, field, message->text, message->length);
}
