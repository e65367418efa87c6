// Any text as a compiler's log, for the kernel that its first line names: nothing is
// known, or every number is one that a log can have.
#include <string.h>

#include "codegen/ptxas_log.h"
#include "core/arena.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  char *name = ft_arena_strndup(arena, (const char *)data, size);  // to the first 0
  size_t length = strcspn(name, "\n");
  const char *log = name + length + (name[length] == '\n');
  name[length] = 0;
  ft_static_facts f;
  bool is_known = ft_ptxas_log_read(log, name, &f);
  const int64_t number[] = {f.registers,   f.spill_store_bytes, f.spill_load_bytes,
                            f.stack_bytes, f.shared_bytes,      f.max_threads};
  for (size_t i = 0; i < sizeof number / sizeof *number; i++)
    FT_ASSERT(is_known ? number[i] >= -1 : number[i] == -1);
  FT_ASSERT(!is_known || strstr(log, name));
  ft_arena_destroy(arena);
  return 0;
}
