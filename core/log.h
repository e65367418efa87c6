// log - lines on stderr, one event each: "fusetune: LEVEL: text". Thread-safe.
// Progress and results are not log lines; the CLI prints those.
#ifndef FT_CORE_LOG_H
#define FT_CORE_LOG_H

#include "core/status.h"

typedef enum ft_log_level {
  FT_LOG_ERROR,
  FT_LOG_WARN,
  FT_LOG_INFO,
  FT_LOG_DEBUG
} ft_log_level;

// Lines above |level| are dropped. The default is FT_LOG_WARN; FUSETUNE_LOG
// (error|warn|info|debug) sets it at the first line.
void ft_log_set_level(ft_log_level level);
void ft_log(ft_log_level level, const char *format, ...) FT_PRINTF(2, 3);

#endif
