// ceiling - the best a target was ever seen to do at one thing: moving so many bytes,
// computing, launching. measure/ measures them, the store keeps them, cost_model/ makes
// bounds of them.
#ifndef FT_GRAPH_CEILING_H
#define FT_GRAPH_CEILING_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ft_ceiling_kind {
#define FT_CEILING(id, name, unit) FT_CEILING_##id,
#include "graph/ceilings.def"
#undef FT_CEILING
  FT_CEILING_KINDS
} ft_ceiling_kind;

typedef enum ft_ceiling_unit {
  FT_UNIT_RATE,   // bytes per second
  FT_UNIT_FLOPS,  // operations per second
  FT_UNIT_TIME,   // nanoseconds; less is better
} ft_ceiling_unit;

typedef struct ft_ceiling {
  ft_ceiling_kind kind;
  uint64_t bytes;        // touched in all; 0: the kind has no size
  double best, median;   // in the kind's unit; finite, > 0
  uint32_t samples;      // taken so far; |median| is of the last measurement
  bool is_raised;        // |best| is what a trial showed, not a measurement of its own
  uint64_t measured_at;  // unix ns
} ft_ceiling;

enum { FT_CEILINGS_MOST = 64 };  // that one target has

const char *ft_ceiling_name(ft_ceiling_kind kind);  // static
ft_ceiling_unit ft_ceiling_unit_of(ft_ceiling_kind kind);
const char *ft_ceiling_unit_text(ft_ceiling_unit unit);  // "bytes/s", "flops/s", "ns"
// False when there is no such name.
bool ft_ceiling_find(const char *name, ft_ceiling_kind *out);
// True when |a| is a higher ceiling of |kind| than |b|: a larger rate, a shorter time.
bool ft_ceiling_is_better(ft_ceiling_kind kind, double a, double b);

#endif
