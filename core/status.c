#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *ft_status_text(ft_status code) {
  static const char *const texts[] = {
#define X(name, text) text,
      FT_STATUS_MAP(X)
#undef X
  };
  return (unsigned)code < FT_STATUS_COUNT ? texts[code] : "unknown status";
}

ft_status ft_error_set(ft_error *error, ft_status code, const char *format, ...) {
  if (!error) return code;
  error->code = code;
  va_list args;
  va_start(args, format);
  vsnprintf(error->text, sizeof error->text, format, args);
  va_end(args);
  return code;
}

ft_status ft_error_prefix(ft_error *error, const char *format, ...) {
  if (!error) return FT_INTERNAL;
  char old[sizeof error->text];
  memcpy(old, error->text, sizeof old);
  va_list args;
  va_start(args, format);
  int used = vsnprintf(error->text, sizeof error->text, format, args);
  va_end(args);
  size_t room = used < 0 || (size_t)used >= sizeof error->text
                    ? 0
                    : sizeof error->text - (size_t)used - 1;
  if (room > 2) {
    memcpy(error->text + used, ": ", 3);
    strncat(error->text, old, room - 2);
  }
  return error->code;
}

void ft_assert_failed(const char *condition, const char *file, int line) {
  fprintf(stderr, "fusetune: broken invariant: %s (%s:%d)\n", condition, file, line);
  abort();
}
