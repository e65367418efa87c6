// quick - kernels for proofs by volume, compiled with -O1 instead of -O3: the text that
// is proved is the same, and takes a quarter of the time to build. Some tests of each
// suite keep the flags that kernels really get, and scripts/soak.sh has them throughout.
#ifndef FT_TESTS_SUPPORT_QUICK_H
#define FT_TESTS_SUPPORT_QUICK_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

// First line of such a test. It is a process of its own, so no other test is concerned;
// programs that it starts are.
static inline void compile_quickly(void) {
  char path[4096];
  const char *old = getenv("PATH");
  int n = snprintf(path, sizeof path, FT_SOURCE_DIR "/tests/support/quick:%s",
                   old ? old : "/usr/bin:/bin");
  cr_assert(n > 0 && (size_t)n < sizeof path);
  setenv("PATH", path, 1);
}

#endif
