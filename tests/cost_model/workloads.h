// workloads - one group of a whole table (tests/support/graphs.h) for the tests of
// cost_model/.
#ifndef FT_TESTS_COST_MODEL_WORKLOADS_H
#define FT_TESTS_COST_MODEL_WORKLOADS_H

#include "graph/group.h"
#include "tests/support/graphs.h"

static inline ft_workload *workload_of(const spec *table, int count, ft_arena *arena) {
  ft_error error;
  ft_group group;
  ft_graph *graph = spec_build(table, count, NULL, arena);
  uint32_t *all = FT_NEW_ARRAY(arena, uint32_t, graph->primitive_count);
  for (uint32_t i = 0; i < graph->primitive_count; i++) all[i] = i;
  cr_assert_eq(ft_group_make(graph, all, graph->primitive_count, arena, &group, &error),
               FT_OK, "%s", error.text);
  ft_workload *workload = FT_NEW(arena, ft_workload);
  cr_assert_eq(ft_workload_make(&group, arena, workload, &error), FT_OK, "%s",
               error.text);
  return workload;
}
#define WORKLOAD(arena, ...)               \
  workload_of((const spec[]){__VA_ARGS__}, \
              (int)(sizeof((const spec[]){__VA_ARGS__}) / sizeof(spec)), arena)

#define INPUT(...) \
  { .op = SPEC_INPUT, .shape = SHAPE(__VA_ARGS__) }

#endif
