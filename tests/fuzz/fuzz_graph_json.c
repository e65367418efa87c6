// Any bytes as a JSON graph: an error or a graph that keeps its invariants, never a
// crash.
#include "graph/import_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const ft_dim_binding star = {"*", 3};
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_graph *graph;
  ft_import_report report;
  ft_error error = {0};
  ft_import_options options = {.dim_count = 1, .dim = &star};
  ft_status status =
      ft_import_json_bytes(data, size, NULL, &options, arena, &graph, &report, &error);
  if (status == FT_OK)
    ft_graph_check(graph);
  else
    FT_ASSERT(error.text[0] && !graph);
  ft_arena_destroy(arena);
  return 0;
}
