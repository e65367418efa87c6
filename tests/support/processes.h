// processes - whether a process that a test knows by its id is still there.
#ifndef FT_TESTS_SUPPORT_PROCESSES_H
#define FT_TESTS_SUPPORT_PROCESSES_H

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

// A zombie is gone: whoever adopted it has not looked yet.
static inline bool process_is_there(long pid) {
  char path[64], state = 'Z';
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  FILE *file = fopen(path, "re");
  if (!file) return false;
  if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 'Z';
  fclose(file);
  return state != 'Z' && state != 'X';
}

// Waits for its end, ten seconds at most.
static inline bool process_ends(long pid) {
  for (int i = 0; i < 1000 && process_is_there(pid); i++) usleep(10000);
  return !process_is_there(pid);
}

// The number in |path| once it is there, ten seconds at most; 0 then.
static inline long number_in(const char *path) {
  for (int i = 0; i < 1000; i++) {
    long number = 0;
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%ld\n", &number) != 1) number = 0;
    if (file) fclose(file);
    if (number) return number;
    usleep(10000);
  }
  return 0;
}

#endif
