// forked - a function in a child of this process, without a program of its own: what it
// breaks, or never ends, breaks nothing else, and what it says comes back as bytes.
//
// The child has this process's memory as it was, and one thread. |run| may call only what
// no other thread of this process is in the middle of at the time (a library that is only
// ever used in such children, say). It reads |ctx|; what it changes stays in the child.
#ifndef FT_CODEGEN_FORKED_H
#define FT_CODEGEN_FORKED_H

#include "core/arena.h"
#include "core/file.h"

typedef struct ft_forked_call {
  void (*run)(void *ctx, int fd);  // writes its answer to |fd|
  void *ctx;
  uint64_t limit_ns;         // then it is killed; 0: never
  const volatile int *stop;  // set: it is killed; NULL: never
  size_t most_bytes;         // of the answer
} ft_forked_call;

typedef struct ft_forked_end {
  ft_bytes answer;  // in the arena; what came before it ended
  bool timed_out;
  int signal;  // that ended it; 0: it ended by itself
} ft_forked_end;

// Thread-safe. The child is gone when this returns, and never outlives this thread: the
// kernel kills it. IO: no process or pipe; INTERRUPTED; REFUSED: more than |most_bytes|.
FT_MUST_CHECK ft_status ft_forked_run(const ft_forked_call *call, ft_arena *arena,
                                      ft_forked_end *out, ft_error *error);

// For |run|: false when nobody reads any more.
bool ft_forked_write(int fd, const void *data, size_t bytes);

#endif
