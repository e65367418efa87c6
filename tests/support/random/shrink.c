#include "tests/support/random/shrink.h"

#include <string.h>

enum { MOST_BUILDS = 60 };

typedef struct shrinking {
  bench *b;
  const ft_candidate *candidate;
  const ft_graph *graph;
  uint64_t seed;
  uint32_t builds;
  const char *report;
} shrinking;

static bool takes(const trial *t, const char *tactic) {
  for (uint32_t i = 0; i < t->tactic_count; i++)
    if (!strcmp(t->tactic[i], tactic)) return true;
  return false;
}

// True when the kernel of |primitive[count]| fails too; then the report is of it.
static bool fails(shrinking *s, const uint32_t *primitive, uint32_t count) {
  bench *b = s->b;
  trial *t = FT_NEW(b->arena, trial);
  const char *refusal;
  if (trial_of(b, s->graph, primitive, count, s->seed, t, &refusal) || refusal ||
      !takes(t, s->candidate->tactic))
    return false;
  ft_candidate c = *s->candidate;
  c.workload = &t->workload;
  if (b->builder.check(b->builder.self, &c, b->arena)) return false;
  ft_module module;
  ft_error error;
  s->builds++;
  if (b->builder.build(b->builder.self, &c, 1, false, b->arena, &module, &error) != FT_OK)
    return false;
  trial_counts counts = {0};
  const char *wrong = trial_run(b, t, &module, &counts);
  if (wrong)
    s->report = ft_arena_printf(b->arena, "smaller: %s%s", trial_report(b, t, &c, wrong),
                                module.source);
  return wrong != NULL;
}

const char *shrink(bench *b, const trial *t, const ft_candidate *candidate) {
  const ft_group *g = &t->workload.group;
  shrinking s = {b, candidate, g->graph, t->seed, 0, "no smaller group fails\n"};
  uint32_t count = g->primitive_count;
  uint32_t *list = FT_NEW_ARRAY(b->arena, uint32_t, count);
  uint32_t *less = FT_NEW_ARRAY(b->arena, uint32_t, count);
  memcpy(list, g->primitive, count * sizeof *list);
  for (bool is_smaller = true; is_smaller && count > 1;) {
    is_smaller = false;
    for (uint32_t leave = 0; leave < count && s.builds < MOST_BUILDS && count > 1;
         leave++) {
      for (uint32_t i = 0, n = 0; i < count; i++)
        if (i != leave) less[n++] = list[i];
      if (!fails(&s, less, count - 1)) continue;
      memcpy(list, less, --count * sizeof *list);
      is_smaller = true;
      leave--;
    }
  }
  return s.report;
}
