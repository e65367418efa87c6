#include "core/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static atomic_int level_set = -1;

static int level_from_environment(void) {
  const char *text = getenv("FUSETUNE_LOG");
  for (int i = 0; text && i < 4; i++)
    if (strcmp(text, level_names[i]) == 0) return i;
  return FT_LOG_WARN;
}

void ft_log_set_level(ft_log_level level) {
  atomic_store(&level_set, (int)level);
}

void ft_log(ft_log_level level, const char *format, ...) {
  int limit = atomic_load(&level_set);
  if (limit < 0) atomic_store(&level_set, limit = level_from_environment());
  if ((int)level > limit) return;
  char line[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  fprintf(stderr, "fusetune: %s: %s\n", level_names[level], line);
}
