#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "graph/tensor_file.h"

// What a person waits after Ctrl-C, at most: compilers and the worker are stopped at
// once, but an import, a walk over a large lattice or a reference runs to its end. What
// was measured is in the store already, so leaving there loses nothing: the trial that
// was running is found pending by the next run, which makes it interrupted.
enum { PATIENCE_MS = 800 };

static volatile int stop_flag;
static bool wants_json;

static void say(int fd, const char *text) {
  (void)!write(fd, text, strlen(text));
}

static void on_alarm(int number) {
  (void)number;
  say(STDERR_FILENO, "fusetune: interrupted: everything measured is saved\n");
  if (wants_json)
    say(STDOUT_FILENO,
        "{\"error\":{\"code\":\"interrupted\",\"hint\":\"the same command goes on where "
        "this one stopped\",\"message\":\"everything measured is saved\","
        "\"unsupported\":[]}}\n");
  _exit(FT_EXIT_INTERRUPTED);
}

static void on_signal(int number) {
  (void)number;
  if (stop_flag) _exit(FT_EXIT_INTERRUPTED);
  stop_flag = 1;
  const struct itimerval patience = {.it_value = {.tv_usec = PATIENCE_MS * 1000}};
  setitimer(ITIMER_REAL, &patience, NULL);
}

const volatile int *ft_cli_stop_flag(void) {
  return &stop_flag;
}

static void watch_signals(bool json) {
  struct sigaction action = {.sa_handler = on_signal}, alarm = {.sa_handler = on_alarm};
  wants_json = json;
  sigaction(SIGALRM, &alarm, NULL);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

int ft_cli_exit_code(ft_status status) {
  switch (status) {
    case FT_OK:
      return FT_EXIT_OK;
    case FT_INVALID_ARGUMENT:
      return FT_EXIT_USAGE;
    case FT_NOT_FOUND:
      return FT_EXIT_NOT_FOUND;
    case FT_REFUSED:
    case FT_UNSUPPORTED:
      return FT_EXIT_REFUSED;
    case FT_INTERRUPTED:
      return FT_EXIT_INTERRUPTED;
    default:
      return FT_EXIT_FAILED;
  }
}

static bool has_shape(const ft_cli_options *o, const char *name) {
  for (uint32_t i = 0; i < o->input_count; i++)
    if (strcmp(o->input[i].name, name) == 0) return true;
  return false;
}

static ft_status read_files(ft_cli_context *c, ft_error *error) {
  ft_cli_options *o = &c->options;
  for (uint32_t i = 0; i < o->file_count; i++) {
    ft_input_file *file = &c->file[i];
    file->name = o->file[i].name;
    FT_TRY(ft_tensor_file_read(o->file[i].path, c->arena, &file->tensor, error));
    if (has_shape(o, file->name)) continue;
    if (o->input_count == FT_MAX_DIM_OPTIONS)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "more than %d inputs given",
              FT_MAX_DIM_OPTIONS);
    o->input[o->input_count++] = (ft_input_shape){file->name, file->tensor.shape};
  }
  return FT_OK;
}

static ft_status load_model(ft_cli_context *c, ft_error *error) {
  FT_TRY(read_files(c, error));
  if (!c->options.model) return FT_OK;
  ft_import_options import = {.dim_count = c->options.dim_count,
                              .dim = c->options.dim,
                              .input_count = c->options.input_count,
                              .input = c->options.input};
  FT_TRY(ft_model_load(c->options.model, &import, c->arena, &c->model, error));
  return ft_model_constrain(&c->model, &c->options.constraints, c->arena, error);
}

static int open_model(ft_cli_context *c) {
  ft_error error;
  watch_signals(c->options.json);
  c->arena = ft_arena_create(ft_allocator_system());
  if (!c->arena) {
    fprintf(stderr, "fusetune: out of memory\n");
    return FT_EXIT_FAILED;
  }
  if (load_model(c, &error) != FT_OK) return ft_cli_fail(&c->options, &c->model, &error);
  return -1;
}

int ft_cli_open_store(ft_cli_context *c) {
  int code = open_model(c);
  if (code >= 0) return code;
  const char *path =
      c->options.store ? c->options.store : ft_store_default_path(c->arena);
  ft_error error;
  ft_status status =
      path ? ft_store_open(path, ft_allocator_system(), &c->session.store, &error)
           : ft_error_set(&error, FT_OUT_OF_MEMORY, "out of memory");
  return status == FT_OK ? -1 : ft_cli_fail(&c->options, NULL, &error);
}

int ft_cli_open(ft_cli_context *c) {
  int code = open_model(c);
  if (code >= 0) return code;
  ft_error error;
  ft_session_options session = {.target = c->options.target,
                                .store_path = c->options.store,
                                .cache_folder = c->options.cache,
                                .jobs = c->options.jobs,
                                .threads = c->options.threads,
                                .allow = c->options.allow,
                                .stop = &stop_flag};
  if (ft_session_open(&session, &c->session, &error) != FT_OK)
    return ft_cli_fail(&c->options, NULL, &error);
  return -1;
}

void ft_cli_close(ft_cli_context *c) {
  ft_session_close(&c->session);
  ft_arena_destroy(c->arena);
}
