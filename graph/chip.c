#include "graph/chip.h"

#include <stddef.h>
#include <string.h>

static const ft_chip chips[] = {
#define FT_CHIP(...) {__VA_ARGS__},
#include "graph/chips.def"
#undef FT_CHIP
};

const ft_chip *ft_chips(uint32_t *out_count) {
  *out_count = sizeof chips / sizeof *chips;
  return chips;
}

const ft_chip *ft_chip_find(const char *arch) {
  for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
    size_t length = strlen(chips[i].arch);
    if (strncmp(chips[i].arch, arch, length)) continue;
    const char *rest = arch + length;
    if (!*rest || ((*rest == 'a' || *rest == 'f') && !rest[1])) return &chips[i];
  }
  return NULL;
}
