#include "measure/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "measure/wire.h"

extern char **environ;

static const uint64_t hello_limit_ns = 10000000000u;
enum { WORKER_FD = 3, LEAVE_MS = 2000 };

// ---- starting -------------------------------------------------------------------------

static int prepare_spawn(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attr,
                         int socket) {
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  int r = posix_spawnattr_setflags(
      attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (r == 0) r = posix_spawnattr_setpgroup(attr, 0);
  if (r == 0) r = posix_spawnattr_setsigmask(attr, &none);
  if (r == 0) r = posix_spawnattr_setsigdefault(attr, &all);
  // First the socket, should it be 0 or 1. Onto itself clears close-on-exec as well.
  if (r == 0) r = posix_spawn_file_actions_adddup2(actions, socket, WORKER_FD);
  if (r == 0) r = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDWR, 0);
  if (r == 0) r = posix_spawn_file_actions_adddup2(actions, 0, 1);
  if (r == 0) r = posix_spawn_file_actions_addclosefrom_np(actions, WORKER_FD + 1);
  return r;
}

// posix_spawn is a vfork with an exec: never a fork that goes on running.
static int spawn(const char *const *argv, int socket, pid_t *out) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  int r = posix_spawn_file_actions_init(&actions);
  if (r != 0) return r;
  r = posix_spawnattr_init(&attr);
  if (r == 0) {
    r = prepare_spawn(&actions, &attr, socket);
    if (r == 0)
      r = posix_spawn(out, argv[0], &actions, &attr, (char *const *)(uintptr_t)argv,
                      environ);
    posix_spawnattr_destroy(&attr);
  }
  posix_spawn_file_actions_destroy(&actions);
  return r;
}

static ft_status greet(const ft_worker_settings *settings, const volatile int *stop,
                       int board_fd, ft_worker_process *worker, ft_arena *arena,
                       ft_error *error) {
  ft_strbuf hello = ft_strbuf_init(arena);
  ft_wire_put_u32(&hello, FT_WORKER_VERSION);
  ft_wire_put_u32(&hello, (uint32_t)getpid());
  ft_wire_put_u32(&hello, settings->threads);
  ft_wire_put_u64(&hello, settings->flush_bytes);
  ft_wire_put_u64(&hello, settings->cap_bytes);
  FT_OOM_IF(hello.failed, error);
  ft_deadline deadline = {ft_clock_ns() + hello_limit_ns, stop};
  ft_frame frame;
  ft_verdict verdict;
  ft_frame_result r = ft_worker_ask(worker, FT_FRAME_HELLO, &hello, board_fd, &deadline,
                                    arena, &frame, &verdict);
  if (r == FT_FRAME_INTERRUPTED)
    FT_FAIL(error, FT_INTERRUPTED, "stopped while a worker started");
  FT_OOM_IF(r == FT_FRAME_NO_MEMORY, error);
  if (verdict.outcome != FT_OUTCOME_OK)
    FT_FAIL(error, FT_UNAVAILABLE, "worker %s: %s", settings->argv[0], verdict.text);
  ft_wire_reader in = ft_wire_read(frame.data, frame.bytes);
  uint32_t version = ft_wire_u32(&in);
  worker->threads = ft_wire_u32(&in);
  if (!ft_wire_done(&in) || version != FT_WORKER_VERSION || worker->threads == 0)
    FT_FAIL(error, FT_UNAVAILABLE, "worker %s answers as version %u, not %d",
            settings->argv[0], version, FT_WORKER_VERSION);
  return FT_OK;
}

static ft_status start_and_greet(const ft_worker_settings *settings,
                                 const volatile int *stop, int board_fd,
                                 ft_worker_process *worker, ft_error *error) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    FT_FAIL(error, FT_IO, "socketpair: %s", strerror(errno));
  worker->socket = pair[0];
  int r = spawn(settings->argv, pair[1], &worker->pid);
  close(pair[1]);
  if (r != 0) {
    worker->pid = 0;
    FT_FAIL(error, FT_UNAVAILABLE, "cannot start the worker %s: %s", settings->argv[0],
            strerror(r));
  }
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  FT_OOM_IF(!arena, error);
  ft_status status = greet(settings, stop, board_fd, worker, arena, error);
  ft_arena_destroy(arena);
  return status;
}

ft_status ft_worker_start(const ft_worker_settings *settings, const volatile int *stop,
                          ft_worker_process *out, ft_error *error) {
  *out = (ft_worker_process){.socket = -1};
  int board_fd;
  FT_TRY(ft_board_create(&out->board, &board_fd, error));
  ft_status status = start_and_greet(settings, stop, board_fd, out, error);
  close(board_fd);
  if (status != FT_OK) ft_worker_kill(out);
  return status;
}

bool ft_worker_is_alive(const ft_worker_process *worker) {
  if (worker->pid <= 0) return false;
  siginfo_t info = {0};
  return waitid(P_PID, (id_t)worker->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != worker->pid;
}

// ---- ending ---------------------------------------------------------------------------

static int reap(ft_worker_process *worker) {
  int state = 0;
  while (waitpid(worker->pid, &state, 0) < 0)
    if (errno != EINTR) return 0;
  return state;
}

static void forget(ft_worker_process *worker) {
  if (worker->socket >= 0) close(worker->socket);
  ft_board_unmap(worker->board);
  *worker = (ft_worker_process){.socket = -1, .threads = worker->threads};
}

// The group first (a kernel may have forked), then the worker itself, should it have
// died before it became a leader.
static int kill_and_reap(ft_worker_process *worker) {
  kill(-worker->pid, SIGKILL);
  kill(worker->pid, SIGKILL);
  return reap(worker);
}

void ft_worker_kill(ft_worker_process *worker) {
  if (worker->pid > 0) (void)kill_and_reap(worker);
  if (worker->board || worker->socket >= 0) forget(worker);
}

void ft_worker_stop(ft_worker_process *worker) {
  if (worker->pid > 0) {
    shutdown(worker->socket, SHUT_WR);
    // It reads the end of the stream and leaves; its own end closes when it is done.
    struct pollfd p = {.fd = worker->socket, .events = POLLRDHUP};
    while (poll(&p, 1, LEAVE_MS) < 0 && errno == EINTR) continue;
    // Grace for its last steps (a leak check, say) ends with the first reap that works.
    for (int i = 0; i < LEAVE_MS / 10; i++) {
      pid_t gone = waitpid(worker->pid, NULL, WNOHANG);
      if (gone == worker->pid || (gone < 0 && errno != EINTR)) {
        worker->pid = 0;
        break;
      }
      poll(NULL, 0, 10);
    }
  }
  ft_worker_kill(worker);
}

// ---- why it died ----------------------------------------------------------------------

static const char *phase_text(uint32_t phase) {
  static const char *const texts[] = {"between runs", "while loading", "in", "timing"};
  return phase < 4 ? texts[phase] : "somewhere in";
}

static void describe_place(const ft_board *board, char *out, size_t size) {
  static const char *const texts[] = {"", "before", "inside", "past"};
  char name[sizeof board->name];
  memcpy(name, board->name, sizeof name);
  name[sizeof name - 1] = '\0';
  uint32_t place = board->place;
  if (place == FT_PLACE_UNKNOWN || place > FT_PLACE_PAST)
    out[0] = '\0';
  else
    snprintf(out, size, ": %llu bytes %s %s", (unsigned long long)board->distance,
             texts[place], name);
}

static void describe_death(const ft_board *board, int state, char out[256]) {
  char address[40] = "", place[96] = "";
  uint32_t phase = board->phase;
  if (WIFEXITED(state)) {
    snprintf(out, 256, "the worker exited with code %d %s step %u", WEXITSTATUS(state),
             phase_text(phase), board->step);
    return;
  }
  int number = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
  const char *name = sigabbrev_np(number);
  if (board->crashed && board->signal == number) {
    if (board->has_address) {
      snprintf(address, sizeof address, " at address 0x%llx",
               (unsigned long long)board->address);
      describe_place(board, place, sizeof place);
    }
  }
  snprintf(out, 256, "SIG%s%s %s step %u%s", name ? name : "?", address,
           phase_text(phase), board->step, place);
}

// ---- asking ---------------------------------------------------------------------------

// The socket closes before the process is gone, and its own end is the one to report.
// A kernel may also have closed the socket and live on: then it is killed.
static void await_end(const ft_worker_process *worker) {
  for (int i = 0; i < LEAVE_MS && ft_worker_is_alive(worker); i++) poll(NULL, 0, 1);
}

// The worker is gone or must go: fills the verdict and reaps.
static void bury(ft_worker_process *worker, ft_frame_result result, const char *why,
                 ft_verdict *verdict) {
  static const ft_outcome outcomes[] = {[FT_FRAME_CLOSED] = FT_OUTCOME_CRASH,
                                        [FT_FRAME_TIMED_OUT] = FT_OUTCOME_TIMEOUT,
                                        [FT_FRAME_INTERRUPTED] = FT_OUTCOME_INTERRUPTED,
                                        [FT_FRAME_BROKEN] = FT_OUTCOME_CRASH,
                                        [FT_FRAME_NO_MEMORY] = FT_OUTCOME_INTERRUPTED};
  verdict->outcome = outcomes[result];
  if (result == FT_FRAME_CLOSED) {
    await_end(worker);
    describe_death(worker->board, kill_and_reap(worker), verdict->text);
    worker->pid = 0;
    return;
  }
  if (result == FT_FRAME_TIMED_OUT)
    snprintf(verdict->text, sizeof verdict->text, "over the time limit %s step %u",
             phase_text(worker->board->phase), worker->board->step);
  if (result == FT_FRAME_BROKEN)
    snprintf(verdict->text, sizeof verdict->text, "the worker broke the protocol: %s",
             why);
  (void)kill_and_reap(worker);
  worker->pid = 0;
}

static bool read_failure(const ft_frame *reply, ft_verdict *verdict) {
  ft_wire_reader in = ft_wire_read(reply->data, reply->bytes);
  uint32_t outcome = ft_wire_u32(&in), length;
  bool is_damaged = ft_wire_u8(&in) != 0;
  const char *text = ft_wire_text_view(&in, &length);
  if (!ft_wire_done(&in) || outcome == FT_OUTCOME_OK || outcome >= FT_OUTCOME_COUNT ||
      length >= sizeof verdict->text)
    return false;
  verdict->outcome = (ft_outcome)outcome;
  verdict->is_damaged = is_damaged;
  snprintf(verdict->text, sizeof verdict->text, "%.*s", (int)length, text);
  return true;
}

ft_frame_result ft_worker_ask(ft_worker_process *worker, ft_frame_type type,
                              const ft_strbuf *payload, int pass_fd,
                              const ft_deadline *deadline, ft_arena *arena,
                              ft_frame *reply, ft_verdict *verdict) {
  *verdict = (ft_verdict){.outcome = FT_OUTCOME_OK};
  *reply = (ft_frame){.fd = -1};
  char text[128];
  ft_frame_result r = ft_frame_send(worker->socket, type, payload->text, payload->length,
                                    pass_fd, deadline, text);
  if (r == FT_FRAME_OK)
    r = ft_frame_receive(worker->socket, deadline, arena, reply, text);
  if (reply->fd >= 0) close(reply->fd);  // no reply carries one
  reply->fd = -1;
  if (r == FT_FRAME_OK && reply->type != FT_FRAME_DONE &&
      (reply->type != FT_FRAME_FAILED || !read_failure(reply, verdict))) {
    r = FT_FRAME_BROKEN;
    snprintf(text, sizeof text, "a reply that is neither done nor failed");
  }
  if (r != FT_FRAME_OK) bury(worker, r, text, verdict);
  return r;
}
