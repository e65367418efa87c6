#include "tests/support/command.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct stream {
  int fd;
  char *text;
  size_t length;
} stream;

static void drain(stream *s) {
  char chunk[4096];
  ssize_t n = read(s->fd, chunk, sizeof chunk);
  if (n <= 0) {
    close(s->fd);
    s->fd = -1;
    return;
  }
  s->text = realloc(s->text, s->length + (size_t)n + 1);
  cr_assert_not_null(s->text);
  memcpy(s->text + s->length, chunk, (size_t)n);
  s->length += (size_t)n;
  s->text[s->length] = '\0';
}

static long now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void start_child(const char *const *argv, const char *const *environment, int out,
                        int err) {
  int null = open("/dev/null", O_RDONLY);
  dup2(null, 0);
  dup2(out, 1);
  dup2(err, 2);
  for (int fd = 3; fd < 256; fd++) close(fd);
  for (; environment && *environment; environment++) putenv((char *)(size_t)*environment);
  execvp(argv[0], (char *const *)(size_t)argv);
  _exit(127);
}

static void watch(stream *out, stream *err, pid_t pid, long limit_ms, long interrupt_ms) {
  long start = now_ms();
  int interrupted = interrupt_ms <= 0;
  while (out->fd >= 0 || err->fd >= 0) {
    struct pollfd fds[2] = {{out->fd, POLLIN, 0}, {err->fd, POLLIN, 0}};
    poll(fds, 2, 20);
    long age = now_ms() - start;
    if (!interrupted && age >= interrupt_ms) {
      kill(pid, SIGINT);
      interrupted = 1;
    }
    if (age > limit_ms) kill(pid, SIGKILL);
    if (fds[0].revents) drain(out);
    if (fds[1].revents) drain(err);
  }
}

test_command test_command_run(const char *const *argv, const char *const *environment,
                              int limit_s, int interrupt_after_ms) {
  int out[2], err[2], status;
  cr_assert(pipe(out) == 0 && pipe(err) == 0);
  pid_t pid = fork();
  cr_assert_geq(pid, 0);
  if (pid == 0) start_child(argv, environment, out[1], err[1]);
  close(out[1]);
  close(err[1]);
  stream streams[2] = {{out[0], calloc(1, 1), 0}, {err[0], calloc(1, 1), 0}};
  watch(&streams[0], &streams[1], pid, limit_s * 1000L, interrupt_after_ms);
  cr_assert_eq(waitpid(pid, &status, 0), pid);
  return (test_command){.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                        .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                        .out = streams[0].text,
                        .err = streams[1].text};
}

void test_command_free(test_command *command) {
  free(command->out);
  free(command->err);
}

static char folder[64];

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *ftw) {
  (void)st;
  (void)type;
  (void)ftw;
  return remove(path);
}

static void remove_folder(void) {
  nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *test_folder(void) {
  if (*folder) return folder;
  strcpy(folder, "/tmp/fusetune-test-XXXXXX");
  cr_assert_not_null(mkdtemp(folder));
  atexit(remove_folder);
  return folder;
}
