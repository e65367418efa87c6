// crash - leaves a note on the board when a kernel kills the worker.
//
// Handles SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT and SIGTRAP on an alternate stack:
// signal, address, and which buffer is nearby. Then the process dies of that signal, so
// the runner sees the truth even when the note is damaged.
#ifndef FT_MEASURE_CRASH_H
#define FT_MEASURE_CRASH_H

#include "core/arena.h"
#include "measure/board.h"
#include "measure/buffer_store.h"
#include "measure/pool.h"

// Once per process. |board| and |store| must outlive it; alternate stacks for every
// thread of |pool| come from |arena|.
FT_MUST_CHECK ft_status ft_crash_install(ft_board *board, const ft_buffer_store *store,
                                         ft_pool *pool, ft_arena *arena, ft_error *error);
// Takes the alternate stacks away again (before |arena| goes).
void ft_crash_uninstall(ft_pool *pool);

#endif
