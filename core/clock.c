#include "core/clock.h"

#include <string.h>
#include <time.h>

static uint64_t read_clock(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t ft_clock_ns(void) {
  return read_clock(CLOCK_MONOTONIC);
}
uint64_t ft_clock_unix_ns(void) {
  return read_clock(CLOCK_REALTIME);
}

void ft_clock_iso8601(uint64_t unix_ns, char out[21]) {
  time_t seconds = (time_t)(unix_ns / 1000000000u);
  struct tm tm;
  gmtime_r(&seconds, &tm);
  if (strftime(out, 21, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0) memcpy(out, "", 1);
}

bool ft_clock_parse(const char *text, uint64_t *out_unix_ns) {
  static const char *const forms[] = {
      "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%MZ",
      "%Y-%m-%dT%H:%M",     "%Y-%m-%d %H:%M",    "%Y-%m-%d"};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    struct tm tm = {0};
    const char *end = strptime(text, forms[i], &tm);
    if (!end || *end) continue;
    time_t seconds = timegm(&tm);
    if (seconds < 0 || seconds > 8000000000) return false;
    *out_unix_ns = (uint64_t)seconds * 1000000000u;
    return true;
  }
  return false;
}
