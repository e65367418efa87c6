// The guardian of a process.
//
//  1. It holds nothing of its parent but one end of a socket: the end of that stream is
//     the parent's death, since the other end is closed on exec.
//  2. It has a session of its own, so a Ctrl-C or a kill of the parent's group misses it.
//  3. A group is announced by its leader before exec and taken back before it is reaped,
//     so what is listed cannot be somebody else's process id.
#include "codegen/guardian.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_GROUPS = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ours = -1;  // our end
static pid_t guardian, owner;

static void kill_groups(const pid_t *group, unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    kill(-group[i], SIGKILL);
    kill(group[i], SIGKILL);  // should it have died before it became a leader
  }
}

// Runs after a fork of a process that may have threads: async-signal-safe calls only.
static void watch(int fd) {
  pid_t group[MOST_GROUPS], told;
  unsigned count = 0;
  for (;;) {
    ssize_t n = recv(fd, &told, sizeof told, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n != sizeof told) break;
    if (told > 0 && count < MOST_GROUPS) group[count++] = told;
    for (unsigned i = 0; told < 0 && i < count; i++)
      if (group[i] == -told) group[i--] = group[--count];
  }
  kill_groups(group, count);
}

static void become_guardian(int fd) {
  setsid();
  for (int number = 1; number < NSIG; number++) signal(number, SIG_IGN);
  if (fd != 0) dup2(fd, 0);
  close_range(1, ~0u, 0);
  watch(0);
  _exit(0);
}

static void start(void) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return;
  guardian = fork();
  if (guardian == 0) become_guardian(pair[1]);
  close(pair[1]);
  if (guardian < 0) {
    close(pair[0]);
    return;
  }
  ours = pair[0];
  owner = getpid();
}

// Also after a fork of ours: the parent's guardian would wait for both of us to end.
static int is_on_guard(void) {
  if (ours < 0 || owner != getpid()) return 0;
  return waitpid(guardian, NULL, WNOHANG) == 0;
}

int ft_guardian_open(void) {
  pthread_mutex_lock(&lock);
  if (!is_on_guard()) {
    if (ours >= 0) close(ours);
    ours = -1;
    start();
  }
  int fd = ours;
  pthread_mutex_unlock(&lock);
  return fd;
}

void ft_guardian_tell(int fd, pid_t pid) {
  if (fd >= 0) (void)!send(fd, &pid, sizeof pid, MSG_NOSIGNAL);
}
