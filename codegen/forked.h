// forked - a function in children of this process, without a program of their own: what
// it breaks, or never ends, breaks nothing else, and what it says comes back as bytes.
//
// A child is forked when a call finds none idle, with this process's memory as it then
// was and one thread, and kept for later calls: a fork costs by the size of this process,
// and what |run| warms up stays warm. |run| may call only what no other thread of this
// process is ever in the middle of (a library that is only used in such children, say).
//
// Invariants: 1. a child ends when this process does, even amid a call: its socket hangs
// up. 2. No child holds a sibling's socket. 3. Nothing is blamed on a call that an
// earlier one may have broken: a crash in a child that has answered before is tried again
// in a new one.
#ifndef FT_CODEGEN_FORKED_H
#define FT_CODEGEN_FORKED_H

#include "core/arena.h"
#include "core/file.h"

typedef struct ft_forked ft_forked;

// In the child; |arena| is emptied after each call. False ends the child without an
// answer.
typedef bool ft_forked_function(void *ctx, ft_bytes request, ft_arena *arena,
                                ft_bytes *answer);

// Forks nothing yet. |ctx| is read in children only, as it is when they are forked; it
// must outlive |*out|. An answer has at most |most_bytes|.
FT_MUST_CHECK ft_status ft_forked_open(const ft_allocator *allocator,
                                       ft_forked_function *run, void *ctx,
                                       size_t most_bytes, ft_forked **out,
                                       ft_error *error);
// No call may be under way. Its children are gone when this returns.
void ft_forked_close(ft_forked *forked);

typedef struct ft_forked_call {
  ft_bytes request;
  uint64_t limit_ns;         // then the child is killed; 0: never
  const volatile int *stop;  // set: the child is killed; NULL: never
} ft_forked_call;

typedef enum ft_forked_way {
  FT_FORKED_ANSWERED,
  FT_FORKED_LATE,
  FT_FORKED_KILLED,  // by |signal|
  FT_FORKED_LEFT,    // it exited
} ft_forked_way;

typedef struct ft_forked_end {
  ft_forked_way way;
  ft_bytes answer;  // in the arena
  int signal;
} ft_forked_end;

// Thread-safe; calls run side by side, a child each. IO: no process or socket;
// INTERRUPTED; REFUSED: an answer of more than |most_bytes|. The next call can be made
// after any of them.
FT_MUST_CHECK ft_status ft_forked_run(ft_forked *forked, const ft_forked_call *call,
                                      ft_arena *arena, ft_forked_end *out,
                                      ft_error *error);

#endif
