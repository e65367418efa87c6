#include "codegen/forked.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"

enum { GLANCE_MS = 20, FIRST_BYTES = 1 << 16 };

// A sibling that is forked while this end is open would hold it too, and keep the answer
// from ending: pipe, fork and close are one step.
static pthread_mutex_t forking = PTHREAD_MUTEX_INITIALIZER;

typedef struct reader {
  const ft_forked_call *call;
  ft_arena *arena;
  int fd;
  pid_t child;
  uint64_t end_ns;  // 0: never
  char *data;
  size_t size, room;
} reader;

// ---- in the child
// ----------------------------------------------------------------------------

bool ft_forked_write(int fd, const void *data, size_t bytes) {
  const char *at = data;
  while (bytes) {
    ssize_t n = write(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= (size_t)n;
  }
  return true;
}

// Ctrl-C is for the parent, which then kills it; a crash leaves no core file behind.
static void prepare_child(pid_t parent) {
  const struct rlimit none = {0, 0};
  struct sigaction by_default = {.sa_handler = SIG_DFL},
                   ignored = {.sa_handler = SIG_IGN};
  static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    sigaction(faults[i], &by_default, NULL);
  sigaction(SIGINT, &ignored, NULL);
  sigaction(SIGPIPE, &ignored, NULL);
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

// ---- in the parent
// ---------------------------------------------------------------------------

static ft_status start_alone(reader *r, ft_error *error) {
  int ends[2];
  pid_t parent = getpid();
  if (pipe2(ends, O_CLOEXEC)) FT_FAIL(error, FT_IO, "no pipe: %s", strerror(errno));
  r->child = fork();
  if (r->child == 0) {
    close(ends[0]);
    prepare_child(parent);
    r->call->run(r->call->ctx, ends[1]);
    _exit(0);
  }
  int reason = errno;
  close(ends[1]);
  r->fd = ends[0];
  if (r->child > 0) return FT_OK;
  close(r->fd);
  FT_FAIL(error, FT_IO, "no process: %s", strerror(reason));
}

static ft_status start(reader *r, ft_error *error) {
  pthread_mutex_lock(&forking);
  ft_status status = start_alone(r, error);
  pthread_mutex_unlock(&forking);
  return status;
}

static ft_status make_room(reader *r, ft_error *error) {
  if (r->size < r->room) return FT_OK;
  if (r->room >= r->call->most_bytes)
    FT_FAIL(error, FT_REFUSED, "a child's answer of more than %zu bytes",
            r->call->most_bytes);
  size_t room = r->room ? 2 * r->room : FIRST_BYTES;
  if (room > r->call->most_bytes) room = r->call->most_bytes;
  char *grown = ft_arena_alloc(r->arena, room);
  FT_OOM_IF(!grown, error);
  if (r->size) memcpy(grown, r->data, r->size);
  r->data = grown;
  r->room = room;
  return FT_OK;
}

// *out_more: the child may still say something.
static ft_status read_some(reader *r, bool *out_more, ft_error *error) {
  FT_TRY(make_room(r, error));
  ssize_t n = read(r->fd, r->data + r->size, r->room - r->size);
  *out_more = n > 0 || (n < 0 && errno == EINTR);
  if (n > 0) r->size += (size_t)n;
  return FT_OK;
}

static ft_status listen_to(reader *r, bool *out_timed_out, ft_error *error) {
  for (bool has_more = true; has_more;) {
    if (r->call->stop && *r->call->stop) FT_FAIL(error, FT_INTERRUPTED, "interrupted");
    *out_timed_out = r->end_ns && ft_clock_ns() > r->end_ns;
    if (*out_timed_out) return FT_OK;
    struct pollfd wait = {.fd = r->fd, .events = POLLIN};
    if (poll(&wait, 1, GLANCE_MS) > 0) FT_TRY(read_some(r, &has_more, error));
  }
  return FT_OK;
}

ft_status ft_forked_run(const ft_forked_call *call, ft_arena *arena, ft_forked_end *out,
                        ft_error *error) {
  *out = (ft_forked_end){0};
  reader r = {.call = call, .arena = arena};
  if (call->limit_ns) r.end_ns = ft_clock_ns() + call->limit_ns;
  FT_TRY(start(&r, error));
  ft_status status = listen_to(&r, &out->timed_out, error);
  close(r.fd);
  if (status != FT_OK || out->timed_out) kill(r.child, SIGKILL);
  int state = 0;
  while (waitpid(r.child, &state, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(state) && !out->timed_out) out->signal = WTERMSIG(state);
  out->answer = (ft_bytes){r.data, r.size};
  return status;
}
