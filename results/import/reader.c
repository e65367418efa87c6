// One import, timed, in a process of its own: reader ours|protobuf-c MODEL [DIM]
// Prints nanoseconds and the peak of resident memory in KiB beyond what the process had
// before, both for that one call.
#include <onnx-ml.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/file.h"
#include "graph/import.h"

// VmHWM and VmRSS of /proc/self/status, KiB.
static long status_kib(const char *key) {
  char line[256];
  long value = -1;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, key, strlen(key)) == 0) value = atol(line + strlen(key));
  if (file) fclose(file);
  return value;
}

static int import(const char *path, int64_t dim, ft_arena *arena) {
  ft_dim_binding star = {"*", dim};
  ft_import_options options = {.dim_count = 1, .dim = &star};
  ft_graph *graph;
  ft_import_report report;
  ft_error error;
  if (ft_import_onnx(path, &options, arena, &graph, &report, &error) == FT_OK) return 0;
  fprintf(stderr, "%s\n", error.text);
  return 1;
}

static int unpack(const char *path, ft_arena *arena) {
  ft_bytes file;
  ft_error error;
  if (ft_file_read(path, (size_t)1 << 31, arena, &file, &error) != FT_OK) return 1;
  return onnx__model_proto__unpack(NULL, file.size, file.data) ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  long before = status_kib("VmRSS:");
  uint64_t start = ft_clock_ns();
  int failed = strcmp(argv[1], "ours") == 0
                   ? import(argv[2], argc > 3 ? atoll(argv[3]) : 1, arena)
                   : unpack(argv[2], arena);
  uint64_t end = ft_clock_ns();
  printf("%llu %ld\n", (unsigned long long)(end - start), status_kib("VmHWM:") - before);
  return failed;
}
