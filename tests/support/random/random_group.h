// random_group - graphs for every tactic, each from one number.
#ifndef FT_TESTS_RANDOM_RANDOM_GROUP_H
#define FT_TESTS_RANDOM_RANDOM_GROUP_H

#include "graph/group.h"

// Equal seeds give equal graphs, of at least one primitive, in |arena|. A seed falls into
// one of the families of random_group.c: pointwise work, reductions in it, norms,
// contractions, windows, or moved elements, each with other work around it.
// Seeds from RANDOM_SHORT on give graphs where f16, or bf16, is what f32 is elsewhere,
// but for some casts and inputs.
#define RANDOM_SHORT ((uint64_t)1 << 32)
ft_graph *random_graph(uint64_t seed, ft_arena *arena);

// One line per primitive, input and output of |group|, in |arena|.
const char *group_text(const ft_group *group, ft_arena *arena);

#endif
