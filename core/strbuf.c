#include "core/strbuf.h"

#include <stdio.h>
#include <string.h>

ft_strbuf ft_strbuf_init(ft_arena *arena) {
  static char empty[1];
  return (ft_strbuf){.arena = arena, .text = empty};
}

static bool reserve(ft_strbuf *b, size_t more) {
  if (b->failed) return false;
  size_t need = b->length + more + 1;
  if (need <= b->capacity) return true;
  size_t grown = b->capacity ? b->capacity * 2 : 256;
  while (grown < need) grown *= 2;
  char *text = ft_arena_alloc_aligned(b->arena, grown, 1);
  if (!text) {
    b->failed = true;
    return false;
  }
  memcpy(text, b->text, b->length);
  b->text = text;
  b->capacity = grown;
  return true;
}

void ft_strbuf_addn(ft_strbuf *b, const void *data, size_t size) {
  if (!reserve(b, size)) return;
  memcpy(b->text + b->length, data, size);
  b->length += size;
  b->text[b->length] = '\0';
}

void ft_strbuf_add(ft_strbuf *b, const char *text) {
  ft_strbuf_addn(b, text, strlen(text));
}

void ft_strbuf_printf(ft_strbuf *b, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (length < 0 || !reserve(b, (size_t)length)) return;
  va_start(args, format);
  vsnprintf(b->text + b->length, (size_t)length + 1, format, args);
  va_end(args);
  b->length += (size_t)length;
}
