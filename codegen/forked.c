#include "codegen/forked.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"

// A library may keep a little of each call: after so many answers a child is replaced.
enum { GLANCE_MS = 20, MOST_ANSWERS = 1000 };

typedef struct child {
  struct child *next;
  pid_t pid;
  int fd;
  uint32_t answers;
  bool is_busy;
} child;

struct ft_forked {
  const ft_allocator *allocator;
  ft_forked_function *run;
  void *ctx;
  size_t most_bytes;
  pthread_mutex_t lock;  // of the list, of forking, and of closing a socket (invariant 2)
  child *children;
};

// ---- in the child
// ----------------------------------------------------------------------------

static bool receive(int fd, void *data, size_t bytes) {
  char *at = data;
  while (bytes) {
    ssize_t n = read(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= (size_t)n;
  }
  return true;
}

static bool say(int fd, const void *data, size_t bytes) {
  const char *at = data;
  while (bytes) {
    ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= (size_t)n;
  }
  return true;
}

static bool say_bytes(int fd, ft_bytes bytes) {
  uint64_t size = bytes.size;
  return say(fd, &size, sizeof size) && say(fd, bytes.data, bytes.size);
}

// Ctrl-C is for the parent, which then kills it; a crash leaves no core file behind.
static void prepare_child(const ft_forked *f) {
  const struct rlimit none = {0, 0};
  struct sigaction by_default = {.sa_handler = SIG_DFL},
                   ignored = {.sa_handler = SIG_IGN};
  static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM, SIGIO};
  sigset_t blocked;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    sigaction(faults[i], &by_default, NULL);
  sigaction(SIGINT, &ignored, NULL);
  sigemptyset(&blocked);
  sigprocmask(SIG_SETMASK, &blocked, NULL);
  setrlimit(RLIMIT_CORE, &none);
  for (const child *c = f->children; c; c = c->next) close(c->fd);
}

// While |is_wanted|, SIGIO ends this child when the other end is closed: until it has its
// answer, the parent sends nothing that could be a reason too.
static void end_with_parent(int fd, bool is_wanted) {
  int flags = fcntl(fd, F_GETFL);
  fcntl(fd, F_SETFL, is_wanted ? flags | O_ASYNC : flags & ~O_ASYNC);
  struct pollfd gone = {.fd = fd, .events = POLLIN};
  if (is_wanted && poll(&gone, 1, 0) > 0) _exit(1);  // it was closed before
}

static bool answer_one(const ft_forked *f, int fd) {
  uint64_t size;
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  if (!arena || !receive(fd, &size, sizeof size)) return false;
  char *request = ft_arena_alloc(arena, size + 1);
  if (!request || !receive(fd, request, size)) return false;
  end_with_parent(fd, true);
  ft_bytes answer = {"", 0};
  bool has_answer = f->run(f->ctx, (ft_bytes){request, size}, arena, &answer);
  end_with_parent(fd, false);
  has_answer = has_answer && say_bytes(fd, answer);
  ft_arena_destroy(arena);
  return has_answer;
}

// ---- the children
// ----------------------------------------------------------------------------

static ft_status start(ft_forked *f, child *c, ft_error *error) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
    FT_FAIL(error, FT_IO, "no socket: %s", strerror(errno));
  c->pid = fork();
  if (c->pid == 0) {
    close(ends[0]);
    prepare_child(f);
    fcntl(ends[1], F_SETOWN, getpid());
    while (answer_one(f, ends[1])) continue;
    _exit(1);
  }
  int reason = errno;
  close(ends[1]);
  c->fd = ends[0];
  if (c->pid > 0) return FT_OK;
  close(c->fd);
  FT_FAIL(error, FT_IO, "no process: %s", strerror(reason));
}

static ft_status add(ft_forked *f, child **out, ft_error *error) {
  child *c = ft_allocate(f->allocator, sizeof *c, 0);
  FT_OOM_IF(!c, error);
  *c = (child){.is_busy = true};
  ft_status status = start(f, c, error);
  if (status != FT_OK) {
    ft_release(f->allocator, c);
    return status;
  }
  c->next = f->children;
  f->children = *out = c;
  return FT_OK;
}

static ft_status take(ft_forked *f, bool must_be_new, child **out, ft_error *error) {
  ft_status status = FT_OK;
  pthread_mutex_lock(&f->lock);
  child *c = must_be_new ? NULL : f->children;
  while (c && c->is_busy) c = c->next;
  if (c) c->is_busy = true;
  *out = c;
  if (!c) status = add(f, out, error);
  pthread_mutex_unlock(&f->lock);
  return status;
}

static void give_back(ft_forked *f, child *c) {
  pthread_mutex_lock(&f->lock);
  c->is_busy = false;
  pthread_mutex_unlock(&f->lock);
}

// The signal that ended it before this did; 0: none.
static int end(ft_forked *f, child *c, bool by_force) {
  pthread_mutex_lock(&f->lock);
  child **link = &f->children;
  while (*link != c) link = &(*link)->next;
  *link = c->next;
  close(c->fd);
  pthread_mutex_unlock(&f->lock);
  if (by_force) kill(c->pid, SIGKILL);
  int state = 0;
  while (waitpid(c->pid, &state, 0) < 0 && errno == EINTR) continue;
  ft_release(f->allocator, c);
  return !by_force && WIFSIGNALED(state) ? WTERMSIG(state) : 0;
}

ft_status ft_forked_open(const ft_allocator *allocator, ft_forked_function *run,
                         void *ctx, size_t most_bytes, ft_forked **out, ft_error *error) {
  *out = ft_allocate(allocator, sizeof **out, 0);
  FT_OOM_IF(!*out, error);
  **out = (ft_forked){
      .allocator = allocator, .run = run, .ctx = ctx, .most_bytes = most_bytes};
  pthread_mutex_init(&(*out)->lock, NULL);
  return FT_OK;
}

void ft_forked_close(ft_forked *f) {
  if (!f) return;
  while (f->children) end(f, f->children, true);
  pthread_mutex_destroy(&f->lock);
  ft_release(f->allocator, f);
}

// ---- a call
// ----------------------------------------------------------------------------------

typedef struct listener {
  const ft_forked_call *call;
  uint64_t end_ns;  // 0: never
  int fd;
  ft_forked_way way;
} listener;

// Until |bytes| are there, or l->way says why they never will be.
static ft_status listen_for(listener *l, void *data, size_t bytes, ft_error *error) {
  char *at = data;
  while (bytes && l->way == FT_FORKED_ANSWERED) {
    if (l->call->stop && *l->call->stop) FT_FAIL(error, FT_INTERRUPTED, "interrupted");
    if (l->end_ns && ft_clock_ns() > l->end_ns) l->way = FT_FORKED_LATE;
    struct pollfd wait = {.fd = l->fd, .events = POLLIN};
    if (l->way == FT_FORKED_LATE || poll(&wait, 1, GLANCE_MS) <= 0) continue;
    ssize_t n = read(l->fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      l->way = FT_FORKED_LEFT;
    } else {
      at += n;
      bytes -= (size_t)n;
    }
  }
  return FT_OK;
}

static ft_status talk(listener *l, size_t most_bytes, ft_arena *arena, ft_bytes *out,
                      ft_error *error) {
  uint64_t size;
  if (!say_bytes(l->fd, l->call->request)) l->way = FT_FORKED_LEFT;
  FT_TRY(listen_for(l, &size, sizeof size, error));
  if (l->way != FT_FORKED_ANSWERED) return FT_OK;
  if (size > most_bytes)
    FT_FAIL(error, FT_REFUSED, "a child's answer has more than %zu bytes", most_bytes);
  char *answer = ft_arena_alloc(arena, size + 1);
  FT_OOM_IF(!answer, error);
  *out = (ft_bytes){answer, size};
  return listen_for(l, answer, size, error);
}

static ft_status run_in(ft_forked *f, child *c, const ft_forked_call *call,
                        ft_arena *arena, ft_forked_end *out, ft_error *error) {
  listener l = {.call = call, .fd = c->fd};
  if (call->limit_ns) l.end_ns = ft_clock_ns() + call->limit_ns;
  ft_status status = talk(&l, f->most_bytes, arena, &out->answer, error);
  out->way = l.way;
  if (status == FT_OK && l.way == FT_FORKED_ANSWERED && ++c->answers < MOST_ANSWERS) {
    give_back(f, c);
    return FT_OK;
  }
  out->signal = end(f, c, status != FT_OK || l.way != FT_FORKED_LEFT);
  if (out->signal) out->way = FT_FORKED_KILLED;
  return status;
}

ft_status ft_forked_run(ft_forked *f, const ft_forked_call *call, ft_arena *arena,
                        ft_forked_end *out, ft_error *error) {
  for (bool must_be_new = false;; must_be_new = true) {
    child *c;
    *out = (ft_forked_end){0};
    FT_TRY(take(f, must_be_new, &c, error));
    bool is_new = c->answers == 0;
    FT_TRY(run_in(f, c, call, arena, out, error));
    if (is_new || out->way == FT_FORKED_ANSWERED || out->way == FT_FORKED_LATE)
      return FT_OK;
  }
}
