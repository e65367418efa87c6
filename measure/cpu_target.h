// cpu_target - what this machine is.
#ifndef FT_MEASURE_CPU_TARGET_H
#define FT_MEASURE_CPU_TARGET_H

#include "graph/target.h"

// Fills all but the compilers of target "cpu" (strings in |arena|) from /proc and /sys;
// what cannot be read stays unknown. Does not seal.
FT_MUST_CHECK ft_status ft_cpu_target_probe(ft_arena *arena, ft_target *out,
                                            ft_error *error);

#endif
