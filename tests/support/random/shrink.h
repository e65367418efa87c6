// shrink - a smaller group that fails as a larger one did.
#ifndef FT_TESTS_RANDOM_SHRINK_H
#define FT_TESTS_RANDOM_SHRINK_H

#include "tests/support/random/trial.h"

// Leaves out one primitive of |t|'s group after the other while the kernel of
// |candidate|'s tactic and knobs still fails; what is left gets new inputs from the same
// seed. The report of the smallest one, or a line that says none fails. At most some
// dozens of builds.
const char *shrink(bench *b, const trial *t, const ft_candidate *candidate);

#endif
