#include "graph/outcome.h"

#include <string.h>

static const char *const texts[FT_OUTCOME_COUNT] = {
#define X(name, text) [FT_OUTCOME_##name] = text,
    FT_OUTCOME_MAP(X)
#undef X
};

const char *ft_outcome_text(ft_outcome outcome) {
  return (unsigned)outcome < FT_OUTCOME_COUNT ? texts[outcome] : "unknown";
}

ft_outcome ft_outcome_parse(const char *text) {
  for (int i = 0; i < FT_OUTCOME_COUNT; i++)
    if (strcmp(texts[i], text) == 0) return (ft_outcome)i;
  return FT_OUTCOME_COUNT;
}

int ft_outcome_blames(ft_outcome outcome) {
  switch (outcome) {
    case FT_OUTCOME_OK:
    case FT_OUTCOME_BEATEN:
    case FT_OUTCOME_UNSTABLE:
    case FT_OUTCOME_INTERRUPTED:
    case FT_OUTCOME_PENDING:
    case FT_OUTCOME_COUNT:
      return 0;
    default:
      return 1;
  }
}
