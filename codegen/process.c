#include "codegen/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/guardian.h"
#include "core/clock.h"

extern char **environ;

enum { MAX_JOBS = 64, STOP_MS = 50 };

typedef struct child {
  ft_process *process;
  pid_t pid;
  int fd, guardian;
  uint64_t started_ns;
} child;

// ---- starting
// ---------------------------------------------------------------------------

// Onto |to|, whatever |fd| is; false: errno says why.
static bool move(int fd, int to) {
  if (fd < 0 || (fd != to && dup2(fd, to) < 0)) return false;
  if (fd > 2) close(fd);
  return true;
}

// In the child of a vfork: the parent's memory is ours, so only system calls and locals.
static void become(const ft_process *p, int guardian, volatile int *code) {
  sigset_t none;
  sigemptyset(&none);
  setpgid(0, 0);
  ft_guardian_tell(guardian, getpid());
  for (int number = 1; number < NSIG; number++)
    if (number != SIGKILL && number != SIGSTOP) signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (move(open("/dev/null", O_RDONLY), 0) &&
      move(open(p->log_path, O_WRONLY | O_CREAT | O_TRUNC, 0600), 1) && dup2(1, 2) == 2)
    execve(p->argv[0], (char *const *)(uintptr_t)p->argv, environ);
  *code = errno;
  _exit(127);
}

// 0, or an errno. All signals are blocked meanwhile: a handler must not run in the child.
static int start(ft_process *p, child *out) {
  *out = (child){.process = p,
                 .fd = -1,
                 .guardian = ft_guardian_open(),
                 .started_ns = ft_clock_ns()};
  sigset_t all, before;
  sigfillset(&all);
  volatile int code = 0;
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pid_t pid = vfork();
  if (pid == 0) become(p, out->guardian, &code);
  int failure = pid < 0 ? errno : code;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  out->pid = pid;
  if (pid > 0 && failure) {
    ft_guardian_tell(out->guardian, -pid);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
  }
  if (failure) return failure;
  p->started = true;
  out->fd = pidfd_open(out->pid, 0);
  return 0;
}

// ---- ending
// -----------------------------------------------------------------------------

static void stop_group(child *c) {
  kill(-c->pid, SIGKILL);
  kill(c->pid, SIGKILL);
}

static void reap(child *c) {
  int status = 0;
  siginfo_t info;
  // First the end, then the news of it, then the name may be used again.
  while (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  ft_guardian_tell(c->guardian, -c->pid);
  while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR) {
  }
  c->process->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  c->process->wall_ns = ft_clock_ns() - c->started_ns;
  if (c->fd >= 0) close(c->fd);
}

static int wait_ms(const child *c, uint32_t count, uint64_t limit_ns) {
  uint64_t now = ft_clock_ns(), left = limit_ns;
  for (uint32_t i = 0; i < count; i++) {
    if (c[i].fd < 0) return 5;  // no descriptor to wait for: look again soon
    uint64_t used = now - c[i].started_ns;
    uint64_t rest = used < limit_ns ? limit_ns - used : 0;
    if (rest < left) left = rest;
  }
  // A signal may come between a look at the flag and the wait, so the wait is short.
  return left > STOP_MS * 1000000ull ? STOP_MS : (int)(left / 1000000) + 1;
}

// True when |c| has ended, or was made to.
static bool has_ended(child *c, const struct pollfd *fd, uint64_t limit_ns) {
  siginfo_t info = {0};
  bool ended = fd->revents != 0;
  if (c->fd < 0)
    ended =
        !waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
  if (!ended && ft_clock_ns() - c->started_ns >= limit_ns) {
    c->process->timed_out = true;
    stop_group(c);
    ended = true;
  }
  return ended;
}

// Waits for at least one; returns how many still run.
static uint32_t wait_some(child *c, uint32_t count, uint64_t limit_ns) {
  struct pollfd fds[MAX_JOBS];
  for (uint32_t i = 0; i < count; i++) fds[i] = (struct pollfd){c[i].fd, POLLIN, 0};
  if (poll(fds, count, wait_ms(c, count, limit_ns)) < 0) {
    for (uint32_t i = 0; i < count; i++) fds[i].revents = 0;
  }
  uint32_t left = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (has_ended(&c[i], &fds[i], limit_ns))
      reap(&c[i]);
    else
      c[left++] = c[i];
  }
  return left;
}

static uint32_t stop_all(child *running, uint32_t live) {
  for (uint32_t i = 0; i < live; i++) stop_group(&running[i]);
  for (uint32_t i = 0; i < live; i++) reap(&running[i]);
  return 0;
}

ft_status ft_process_run(ft_process *process, uint32_t count, uint32_t jobs,
                         uint64_t limit_ns, const volatile int *stop, ft_error *error) {
  child running[MAX_JOBS];
  uint32_t live = 0, next = 0;
  ft_status status = FT_OK;
  if (jobs < 1) jobs = 1;
  if (jobs > MAX_JOBS) jobs = MAX_JOBS;
  while (live || (next < count && status == FT_OK)) {
    if (status == FT_OK && stop && *stop) {
      status = ft_error_set(error, FT_INTERRUPTED, "interrupted while %s ran",
                            process[next ? next - 1 : 0].argv[0]);
      live = stop_all(running, live);
    }
    while (status == FT_OK && live < jobs && next < count) {
      ft_process *p = &process[next++];
      p->started = p->timed_out = false;
      int code = start(p, &running[live]);
      if (!code)
        live++;
      else
        status = ft_error_set(error, FT_UNAVAILABLE, "cannot start %s: %s", p->argv[0],
                              strerror(code));
    }
    if (live) live = wait_some(running, live, limit_ns);
  }
  return status;
}

// ---- files
// ------------------------------------------------------------------------------

char *ft_log_read(const char *path, size_t limit, ft_arena *arena) {
  FILE *file = fopen(path, "rbe");
  if (!file) return NULL;
  char *text = ft_arena_alloc_aligned(arena, limit + 1, 1);
  if (text) text[fread(text, 1, limit, file)] = '\0';
  fclose(file);
  return text;
}
