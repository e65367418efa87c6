// worker_process - the runner's side of one worker: start, ask, kill, tell why it died.
//
// A worker is started by exec, in a process group of its own, with the socket as
// descriptor 3 and nothing else inherited but stderr. It dies with the thread that
// started it. Thread-compatible.
#ifndef FT_MEASURE_WORKER_PROCESS_H
#define FT_MEASURE_WORKER_PROCESS_H

#include <sys/types.h>

#include "core/strbuf.h"
#include "graph/outcome.h"
#include "measure/board.h"
#include "measure/frame.h"
#include "measure/protocol.h"

typedef struct ft_worker_settings {
  const char *const *argv;
  uint32_t threads;  // 0: all allowed
  uint64_t flush_bytes, cap_bytes;
} ft_worker_settings;

typedef struct ft_worker_process {
  pid_t pid;  // 0: not running
  int socket;
  ft_board *board;
  uint32_t threads;  // of its pool, or of the last one's
} ft_worker_process;

// What became of a request. OK: |reply| holds the DONE payload. Else the outcome that
// the program is blamed for, or INTERRUPTED, with |text|.
typedef struct ft_verdict {
  ft_outcome outcome;
  bool is_damaged;  // the worker's own memory may be: replace it
  char text[256];
} ft_verdict;

// UNAVAILABLE when the program is missing or does not answer like a worker within 10 s;
// INTERRUPTED when *stop was set. Nothing is left running then.
FT_MUST_CHECK ft_status ft_worker_start(const ft_worker_settings *settings,
                                        const volatile int *stop, ft_worker_process *out,
                                        ft_error *error);
// False when it has died meanwhile (or never ran).
bool ft_worker_is_alive(const ft_worker_process *worker);
// Asks it to leave, waits a moment, kills it. A stopped one is fine.
void ft_worker_stop(ft_worker_process *worker);
// SIGKILL to its process group, and reaps it. A stopped one is fine.
void ft_worker_kill(ft_worker_process *worker);

// Sends |type| and waits for the reply (payload in |arena|). OK: the worker answered, and
// lives. Anything else: it is gone, and reaped; *verdict says what the program is blamed
// for, INTERRUPTED when it is not to blame (stopped, or our memory is out). The board
// stays readable. |pass_fd| stays yours; -1: none.
ft_frame_result ft_worker_ask(ft_worker_process *worker, ft_frame_type type,
                              const ft_strbuf *payload, int pass_fd,
                              const ft_deadline *deadline, ft_arena *arena,
                              ft_frame *reply, ft_verdict *verdict);

#endif
