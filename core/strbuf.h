// strbuf - text that grows, in an arena.
#ifndef FT_CORE_STRBUF_H
#define FT_CORE_STRBUF_H

#include "core/arena.h"

typedef struct ft_strbuf {
  ft_arena *arena;
  char *text;  // NUL-terminated once anything was added; "" before
  size_t length, capacity;
  bool failed;  // an allocation failed: text is cut short; check once at the end
} ft_strbuf;

ft_strbuf ft_strbuf_init(ft_arena *arena);
void ft_strbuf_add(ft_strbuf *buffer, const char *text);
void ft_strbuf_addn(ft_strbuf *buffer, const void *data, size_t size);
void ft_strbuf_printf(ft_strbuf *buffer, const char *format, ...) FT_PRINTF(2, 3);

#endif
