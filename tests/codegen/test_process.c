#include "codegen/process.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "codegen/sweep.h"
#include "tests/support/command.h"
#include "tests/support/processes.h"

static char pid_path[300], log_path[300];
static volatile int stop;

// A driver that starts a process of its own and waits for it, as compilers do.
static ft_process driver(const char *argv[4]) {
  static char script[1000];
  snprintf(pid_path, sizeof pid_path, "%s/pid", test_folder());
  snprintf(log_path, sizeof log_path, "%s/log", test_folder());
  snprintf(script, sizeof script, "sleep 1000 & echo $! > %s.tmp; mv %s.tmp %s; wait",
           pid_path, pid_path, pid_path);
  argv[0] = "/bin/sh", argv[1] = "-c", argv[2] = script, argv[3] = NULL;
  return (ft_process){.argv = argv, .log_path = log_path};
}

static void *stop_once_it_runs(void *out) {
  *(long *)out = number_in(pid_path);
  stop = 1;
  return NULL;
}

Test(codegen_process, a_stop_kills_the_whole_group_and_is_interrupted, .timeout = 60) {
  const char *argv[4];
  ft_process p = driver(argv);
  ft_error error;
  pthread_t thread;
  long grandchild = 0;
  cr_assert_eq(pthread_create(&thread, NULL, stop_once_it_runs, &grandchild), 0);
  ft_status status = ft_process_run(&p, 1, 1, 600000000000u, &stop, &error);
  pthread_join(thread, NULL);
  cr_assert_eq(status, FT_INTERRUPTED);
  cr_assert(strstr(error.text, "/bin/sh"), "%s", error.text);
  cr_assert_gt(grandchild, 0);
  cr_assert(process_ends(grandchild), "process %ld lives on", grandchild);
}

Test(codegen_process, what_was_not_started_when_the_stop_came_never_is) {
  const char *const argv[] = {"/bin/true", NULL};
  char path[300];
  snprintf(path, sizeof path, "%s/log", test_folder());
  ft_process p[2] = {{.argv = argv, .log_path = path}, {.argv = argv, .log_path = path}};
  ft_error error;
  stop = 1;
  cr_assert_eq(ft_process_run(p, 2, 1, 1000000000u, &stop, &error), FT_INTERRUPTED);
  cr_assert(!p[0].started && !p[1].started);
}

Test(codegen_process, a_killed_parent_takes_drivers_and_their_children_along,
     .timeout = 60) {
  const char *argv[4];
  ft_process p = driver(argv);
  pid_t parent = fork();
  cr_assert_geq(parent, 0);
  if (parent == 0) {
    ft_error error;
    _exit(ft_process_run(&p, 1, 1, 600000000000u, NULL, &error) == FT_OK ? 0 : 1);
  }
  long grandchild = number_in(pid_path);
  cr_assert_gt(grandchild, 0);
  cr_assert(process_is_there(grandchild));
  kill(parent, SIGKILL);
  cr_assert_eq(waitpid(parent, NULL, 0), parent);
  cr_assert(process_ends(grandchild), "process %ld lives on", grandchild);
}

Test(codegen_process, a_limit_kills_the_whole_group_and_says_so, .timeout = 60) {
  const char *argv[4];
  ft_process p = driver(argv);
  ft_error error;
  cr_assert_eq(ft_process_run(&p, 1, 1, 500000000u, NULL, &error), FT_OK, "%s",
               error.text);
  cr_assert(p.started && p.timed_out);
  cr_assert_eq(p.exit_code, -1);
  long grandchild = number_in(pid_path);
  cr_assert(process_ends(grandchild), "process %ld lives on", grandchild);
}

Test(codegen_process, exit_codes_and_output_are_kept_and_a_missing_program_is_named) {
  const char *const argv[] = {"/bin/sh", "-c", "echo out; echo err >&2; exit 3", NULL};
  const char *const missing[] = {"/nonexistent/cc", NULL};
  char path[300];
  snprintf(path, sizeof path, "%s/log", test_folder());
  ft_process p = {.argv = argv, .log_path = path};
  ft_error error;
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  cr_assert_eq(ft_process_run(&p, 1, 4, 60000000000u, NULL, &error), FT_OK);
  cr_assert_eq(p.exit_code, 3);
  cr_assert_str_eq(ft_log_read(path, 100, arena), "out\nerr\n");
  ft_arena_destroy(arena);
  p = (ft_process){.argv = missing, .log_path = path};
  cr_assert_eq(ft_process_run(&p, 1, 1, 1000000000u, NULL, &error), FT_UNAVAILABLE);
  cr_assert(strstr(error.text, "/nonexistent/cc"), "%s", error.text);
  cr_assert(!p.started);
}

// ---- what the dead left

static void make_folder(const char *name, bool is_old, char path[400]) {
  snprintf(path, 400, "%s/%s", test_folder(), name);
  cr_assert_eq(mkdir(path, 0700), 0);
  char file[440];
  snprintf(file, sizeof file, "%s/0", path);
  cr_assert_eq(mkdir(file, 0700), 0);
  struct timespec times[2] = {{.tv_sec = time(NULL) - (is_old ? 7200 : 0)}};
  times[1] = times[0];
  cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

Test(codegen_sweep, only_old_folders_of_processes_that_are_gone_are_removed) {
  char name[64], dead[400], fresh[400], mine[400], other[400];
  make_folder("tmp-2147483000-0", true, dead);
  make_folder("tmp-2147483000-1", false, fresh);
  snprintf(name, sizeof name, "tmp-%d-0", (int)getpid());
  make_folder(name, true, mine);
  make_folder("tmp-2147483000-0x", true, other);
  ft_cache_sweep(test_folder());
  cr_assert_neq(access(dead, F_OK), 0);
  cr_assert_eq(access(fresh, F_OK), 0);
  cr_assert_eq(access(mine, F_OK), 0);
  cr_assert_eq(access(other, F_OK), 0);
}
