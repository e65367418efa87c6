#include "graph/ceiling.h"

#include <string.h>

#define RATE FT_UNIT_RATE
#define FLOPS FT_UNIT_FLOPS
#define TIME FT_UNIT_TIME

static const struct {
  const char *name;
  ft_ceiling_unit unit;
} kinds[] = {
#define FT_CEILING(id, name, unit) {name, unit},
#include "graph/ceilings.def"
#undef FT_CEILING
};

const char *ft_ceiling_name(ft_ceiling_kind kind) {
  return kinds[kind].name;
}

ft_ceiling_unit ft_ceiling_unit_of(ft_ceiling_kind kind) {
  return kinds[kind].unit;
}

const char *ft_ceiling_unit_text(ft_ceiling_unit unit) {
  static const char *const text[] = {"bytes/s", "flops/s", "ns"};
  return text[unit];
}

bool ft_ceiling_find(const char *name, ft_ceiling_kind *out) {
  for (int i = 0; i < FT_CEILING_KINDS; i++) {
    if (strcmp(kinds[i].name, name) != 0) continue;
    *out = (ft_ceiling_kind)i;
    return true;
  }
  return false;
}

bool ft_ceiling_is_better(ft_ceiling_kind kind, double a, double b) {
  return kinds[kind].unit == TIME ? a < b : a > b;
}
