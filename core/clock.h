// clock - one monotonic clock for durations, one wall clock for records.
#ifndef FT_CORE_CLOCK_H
#define FT_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

uint64_t ft_clock_ns(void);       // CLOCK_MONOTONIC
uint64_t ft_clock_unix_ns(void);  // CLOCK_REALTIME
// Writes "2026-01-01T00:00:00Z" and NUL.
void ft_clock_iso8601(uint64_t unix_ns, char out[21]);

// Reads a date or a time of UTC: "2026-01-01", "2026-01-01T00:00[:00][Z]" (a blank may
// stand for the T). False: it is none of these, or before 1970.
bool ft_clock_parse(const char *text, uint64_t *out_unix_ns);

#endif
