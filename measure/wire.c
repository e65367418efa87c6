#include "measure/wire.h"

#include <string.h>

static void put(ft_strbuf *out, uint64_t value, size_t bytes) {
  uint8_t text[8];
  for (size_t i = 0; i < bytes; i++) text[i] = (uint8_t)(value >> (8 * i));
  ft_strbuf_addn(out, text, bytes);
}

void ft_wire_put_u8(ft_strbuf *out, uint8_t value) {
  put(out, value, 1);
}
void ft_wire_put_u32(ft_strbuf *out, uint32_t value) {
  put(out, value, 4);
}
void ft_wire_put_u64(ft_strbuf *out, uint64_t value) {
  put(out, value, 8);
}

void ft_wire_put_text(ft_strbuf *out, const char *text) {
  size_t length = strlen(text);
  if (length > UINT32_MAX) {
    out->failed = true;
    return;
  }
  ft_wire_put_u32(out, (uint32_t)length);
  ft_strbuf_addn(out, text, length);
}

ft_wire_reader ft_wire_read(const void *data, size_t bytes) {
  static const uint8_t nothing[1];
  const uint8_t *start = data ? data : nothing;
  return (ft_wire_reader){start, start + (data ? bytes : 0), false};
}

static size_t left(const ft_wire_reader *reader) {
  return (size_t)(reader->end - reader->cursor);
}

static uint64_t take(ft_wire_reader *reader, size_t bytes) {
  if (reader->failed || left(reader) < bytes) {
    reader->failed = true;
    return 0;
  }
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; i++) value |= (uint64_t)reader->cursor[i] << (8 * i);
  reader->cursor += bytes;
  return value;
}

uint8_t ft_wire_u8(ft_wire_reader *reader) {
  return (uint8_t)take(reader, 1);
}
uint32_t ft_wire_u32(ft_wire_reader *reader) {
  return (uint32_t)take(reader, 4);
}
uint64_t ft_wire_u64(ft_wire_reader *reader) {
  return take(reader, 8);
}

uint32_t ft_wire_count(ft_wire_reader *reader, size_t item_bytes) {
  uint32_t count = ft_wire_u32(reader);
  if (reader->failed || count > left(reader) / item_bytes) {
    reader->failed = true;
    return 0;
  }
  return count;
}

const char *ft_wire_text_view(ft_wire_reader *reader, uint32_t *out_length) {
  uint32_t length = ft_wire_count(reader, 1);
  const char *start = (const char *)reader->cursor;
  *out_length = 0;
  if (reader->failed || memchr(start, '\0', length)) {
    reader->failed = true;
    return "";
  }
  reader->cursor += length;
  *out_length = length;
  return start;
}

const char *ft_wire_text(ft_wire_reader *reader, ft_arena *arena) {
  uint32_t length;
  const char *start = ft_wire_text_view(reader, &length);
  const char *copy = ft_arena_strndup(arena, start, length);
  if (!copy) reader->failed = true;
  return copy ? copy : "";
}

bool ft_wire_done(const ft_wire_reader *reader) {
  return !reader->failed && reader->cursor == reader->end;
}
