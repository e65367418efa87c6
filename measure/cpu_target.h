// cpu_target - what this machine is.
#ifndef FT_MEASURE_CPU_TARGET_H
#define FT_MEASURE_CPU_TARGET_H

#include "graph/target.h"

// Fills all but the compilers of target "cpu" (strings in |arena|) from /proc and /sys;
// what cannot be read stays unknown. Does not seal.
FT_MUST_CHECK ft_status ft_cpu_target_probe(ft_arena *arena, ft_target *out,
                                            ft_error *error);

// Its parts, on given text (so that they can be tested without that machine).
// Known vector extensions in a "flags" or "Features" line, sorted; NULL: out of memory.
const char *ft_cpu_isa(const char *flags, ft_arena *arena, uint32_t *out_vector_bytes);
// "Intel(R) Xeon(R) Processor fam 6 model 167 step 1" from /proc/cpuinfo.
const char *ft_cpu_device(const char *cpuinfo, ft_arena *arena);
uint64_t ft_cpu_size_bytes(const char *text);  // "2048K"; 0 when it is no number
const char *ft_cpu_bracketed(char *text);      // "always [madvise] never"; cuts |text|

#endif
