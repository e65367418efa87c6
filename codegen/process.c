#include "codegen/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"

extern char **environ;

enum { MAX_JOBS = 64 };

typedef struct child {
  ft_process *process;
  pid_t pid;
  int fd;
  uint64_t started_ns;
} child;

static int set_up(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes,
                  const ft_process *p) {
  sigset_t none;
  sigemptyset(&none);
  int code = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
  if (!code)
    code = posix_spawn_file_actions_addopen(actions, 1, p->log_path,
                                            O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (!code) code = posix_spawn_file_actions_adddup2(actions, 1, 2);
  if (!code) code = posix_spawnattr_setpgroup(attributes, 0);
  if (!code) code = posix_spawnattr_setsigmask(attributes, &none);
  if (!code)
    code = posix_spawnattr_setflags(attributes,
                                    POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  return code;
}

// 0, or an errno.
static int start(ft_process *p, child *out) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  if (posix_spawn_file_actions_init(&actions)) return ENOMEM;
  if (posix_spawnattr_init(&attributes)) {
    posix_spawn_file_actions_destroy(&actions);
    return ENOMEM;
  }
  *out = (child){.process = p, .fd = -1, .started_ns = ft_clock_ns()};
  int code = set_up(&actions, &attributes, p);
  if (!code)
    code = posix_spawn(&out->pid, p->argv[0], &actions, &attributes,
                       (char *const *)(uintptr_t)p->argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (code) return code;
  p->started = true;
  out->fd = pidfd_open(out->pid, 0);
  return 0;
}

static void stop(child *c) {
  c->process->timed_out = true;
  kill(-c->pid, SIGKILL);
  kill(c->pid, SIGKILL);
}

static void reap(child *c) {
  int status = 0;
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
  return left > 1000000000ull ? 1000 : (int)(left / 1000000) + 1;
}

// True when |c| has ended, or was made to.
static bool has_ended(child *c, const struct pollfd *fd, uint64_t limit_ns) {
  siginfo_t info = {0};
  bool ended = fd->revents != 0;
  if (c->fd < 0)
    ended =
        !waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
  if (!ended && ft_clock_ns() - c->started_ns >= limit_ns) {
    stop(c);
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

ft_status ft_process_run(ft_process *process, uint32_t count, uint32_t jobs,
                         uint64_t limit_ns, ft_error *error) {
  child running[MAX_JOBS];
  uint32_t live = 0, next = 0;
  ft_status status = FT_OK;
  if (jobs < 1) jobs = 1;
  if (jobs > MAX_JOBS) jobs = MAX_JOBS;
  while (live || (next < count && status == FT_OK)) {
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
