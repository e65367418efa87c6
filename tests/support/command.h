// command - runs a program and keeps what it printed.
#ifndef FT_TESTS_SUPPORT_COMMAND_H
#define FT_TESTS_SUPPORT_COMMAND_H

#include <stddef.h>

typedef struct test_command {
  int exit_code;  // -1: killed by a signal or by the limit
  int signal;
  char *out, *err;  // NUL-terminated; free with test_command_free
} test_command;

// Runs |argv| (NULL-terminated, found in PATH). Killed after |limit_s| seconds.
// |interrupt_after_ms| > 0: gets SIGINT after that time. |environment|: "NAME=VALUE"
// entries to add, NULL-terminated, or NULL.
test_command test_command_run(const char *const *argv, const char *const *environment,
                              int limit_s, int interrupt_after_ms);
void test_command_free(test_command *command);

// A fresh folder for this test, removed at exit; static storage.
const char *test_folder(void);

#endif
