// quick - kernels for proofs by volume, compiled with -O1 (gcc; its 12 has an internal
// error at -O0) or -O0 (clang) instead of -O3: the text that is proved is the same, and
// takes a quarter of the time to build. Some tests of each suite keep the flags that
// kernels really get; FT_REAL_FLAGS=1: all do, as in scripts/soak.sh.
#ifndef FT_TESTS_SUPPORT_QUICK_H
#define FT_TESTS_SUPPORT_QUICK_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// First line of such a test. It is a process of its own, so no other test is concerned;
// programs that it starts are.
static inline void compile_quickly(void) {
  static const char folder[] = FT_SOURCE_DIR "/tests/support/quick:";
  char path[4096];
  const char *old = getenv("PATH");
  if (getenv("FT_REAL_FLAGS") || (old && !strncmp(old, folder, sizeof folder - 1)))
    return;
  int n = snprintf(path, sizeof path, "%s%s", folder, old ? old : "/usr/bin:/bin");
  cr_assert(n > 0 && (size_t)n < sizeof path);
  setenv("PATH", path, 1);
}

#endif
