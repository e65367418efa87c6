// process - run programs, several at a time, with a wall limit and what they printed.
#ifndef FT_CODEGEN_PROCESS_H
#define FT_CODEGEN_PROCESS_H

#include "core/arena.h"

typedef struct ft_process {
  const char *const *argv;  // argv[0] is the path; NULL-terminated
  const char *log_path;     // stdout and stderr go there
  // results
  bool started, timed_out;
  int exit_code;  // -1: killed by a signal
  uint64_t wall_ns;
} ft_process;

// Runs all, at most |jobs| at a time; each has its own process group, which is killed
// after |limit_ns|, and when this process dies (codegen/guardian.h). UNAVAILABLE when one
// does not start (missing, no rights); the others are then waited for. INTERRUPTED within
// some hundredths of a second once *|stop| is not 0 (NULL: never): all groups are killed
// and reaped, and what did not start never will. Thread-safe.
FT_MUST_CHECK ft_status ft_process_run(ft_process *process, uint32_t count, uint32_t jobs,
                                       uint64_t limit_ns, const volatile int *stop,
                                       ft_error *error);

// The first |limit| bytes of a file, NUL-terminated, in |arena|; NULL when it cannot be
// read.
char *ft_log_read(const char *path, size_t limit, ft_arena *arena);

#endif
