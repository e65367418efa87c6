// Any bytes, read as a workload's encoding: refused, or a group that is encoded to the
// very same bytes.
#include <stdlib.h>
#include <string.h>

#include "graph/decoding.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ft_error error;
  ft_graph *graph;
  ft_workload workload;
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  if (ft_workload_decode(data, size, arena, &graph, &workload, &error) == FT_OK) {
    ft_graph_check(graph);
    if (workload.encoding_bytes != size || memcmp(workload.encoding, data, size) != 0)
      abort();
  } else if (error.code != FT_REFUSED && error.code != FT_OUT_OF_MEMORY) {
    abort();
  }
  ft_arena_destroy(arena);
  return 0;
}
