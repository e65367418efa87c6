// launch - runs a built kernel in this process: every block once, in a shuffled order,
// over buffers that end at a guard page, with read-only inputs and poisoned outputs.
// Where it reads or writes beyond a buffer the process dies; so soak.h forks.
#ifndef FT_TESTS_RANDOM_LAUNCH_H
#define FT_TESTS_RANDOM_LAUNCH_H

#include "graph/group.h"
#include "graph/module.h"

// Runs |module| for |group| with one tensor per input; out[i] gets the bytes of output i,
// in |arena|. NULL, or what went wrong, in |arena|. *out_code is what the entry returned.
const char *launch(const ft_module *module, const ft_group *group, const ft_tensor *input,
                   uint64_t seed, ft_arena *arena, ft_tensor *out, int32_t *out_code);

#endif
