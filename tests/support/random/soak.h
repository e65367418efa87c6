// soak - many trials, in batches, each in a process of its own: a kernel that crashes or
// hangs is one failure with its case, and the next batch goes on.
#ifndef FT_TESTS_RANDOM_SOAK_H
#define FT_TESTS_RANDOM_SOAK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct soak_options {
  uint64_t first, count;  // cases [first, first + count)
  uint32_t jobs;          // processes at a time, at least 1
  double minutes;         // start no batch after this; 0: no limit
  bool both;              // per tactic a schedule of its space and knobs outside it
  bool shrinks;           // look for a smaller group that fails too
  bool is_quiet;          // no line per progress
} soak_options;

enum { SOAK_TACTICS = 16, SOAK_NAMED = 32 };

typedef struct soak_counts {
  uint64_t cases, kernels, parts, failures;
  uint64_t elements, uncertain;  // compared
  struct {
    char name[32];
    uint64_t kernels;
  } tactic[SOAK_TACTICS];
  uint64_t failed[SOAK_NAMED];  // the first cases that failed
} soak_counts;

// Runs them; failures go to stderr as they come. Equal options give equal cases.
soak_counts soak_run(const soak_options *options);

#endif
