// Random groups x random knobs against the double-precision interpreter: the first 2,000
// cases of what scripts/soak.sh runs more of (tests/support/random).
//   FT_RANDOM_CASE     this case only, and a smaller group that fails as it does
//   FT_RANDOM_SEED     other cases; FT_RANDOM_CASES  how many in each test
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/quick.h"
#include "tests/support/random/random_group.h"
#include "tests/support/random/soak.h"

static uint64_t setting(const char *name, uint64_t fallback) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : fallback;
}

static void run_cases(uint64_t first, uint64_t count, bool shrinks) {
  soak_options options = {.first = first,
                          .count = count,
                          .jobs = 1,
                          .shrinks = shrinks,
                          .both = shrinks,
                          .is_quiet = true};
  soak_counts counts = soak_run(&options);
  cr_assert_eq(counts.failures, 0, "%llu of %llu kernels failed: see above",
               (unsigned long long)counts.failures, (unsigned long long)counts.kernels);
  cr_assert_eq(counts.cases, options.count);
  cr_assert_geq(counts.kernels, options.count);
  // What is uncertain tests nothing; one huge output says little of that.
  if (options.count >= 256) cr_assert_lt(counts.uncertain, counts.elements / 8 + 1);
  cr_assert_leq(counts.parts, options.count / 2 + 1);
}

// A quarter each, so that two run at a time; a part of the first with the flags of real
// kernels.
static void run_quarter(uint64_t quarter) {
  uint64_t count = setting("FT_RANDOM_CASES", 512), real = quarter ? 0 : count / 4;
  uint64_t first = setting("FT_RANDOM_SEED", 0) + quarter * count;
  if (getenv("FT_RANDOM_CASE")) {
    if (quarter) cr_skip_test("FT_RANDOM_CASE is one case");
    run_cases(setting("FT_RANDOM_CASE", 0), 1, true);
    return;
  }
  if (real) run_cases(first, real, false);
  compile_quickly();
  run_cases(first + real, count - real, false);
}

// f16 and bf16 in memory.
Test(codegen_random, kernels_of_short_floats_agree, .timeout = 500) {
  uint64_t count = setting("FT_RANDOM_CASES", 512) / 2;
  compile_quickly();
  if (getenv("FT_RANDOM_CASE")) cr_skip_test("FT_RANDOM_CASE is one case");
  soak_options options = {.first = RANDOM_SHORT + setting("FT_RANDOM_SEED", 0),
                          .count = count,
                          .jobs = 1,
                          .is_quiet = true};
  soak_counts counts = soak_run(&options);
  cr_assert_eq(counts.failures, 0, "%llu of %llu kernels failed: see above",
               (unsigned long long)counts.failures, (unsigned long long)counts.kernels);
  cr_assert_geq(counts.kernels, options.count);
  fprintf(stderr, "%llu of %llu elements uncertain\n",
          (unsigned long long)counts.uncertain, (unsigned long long)counts.elements);
}

Test(codegen_random, kernels_of_the_first_quarter_agree, .timeout = 500) {
  run_quarter(0);
}
Test(codegen_random, kernels_of_the_second_quarter_agree, .timeout = 500) {
  run_quarter(1);
}
Test(codegen_random, kernels_of_the_third_quarter_agree, .timeout = 500) {
  run_quarter(2);
}
Test(codegen_random, kernels_of_the_last_quarter_agree, .timeout = 500) {
  run_quarter(3);
}
