// check - is a group's output right? References come from graph/interpreter.
#ifndef FT_MEASURE_CHECK_H
#define FT_MEASURE_CHECK_H

#include "measure/runner.h"

// Prepared once per workload and input set. Outputs of up to |full_elements| elements
// are compared whole; of larger ones 4,096 random elements (seeded) and every edge (the
// first and last 64 elements, and those around every multiple of the largest power of
// two that divides nothing: the last row's ends). Elements still holding poison are
// searched for in the whole output. References above |limit_ns| of work shrink the
// sample, never below 64 elements.
typedef struct ft_group_check ft_group_check;
FT_MUST_CHECK ft_status ft_group_check_create(const ft_group *group,
                                              const ft_tensor *input, uint64_t seed,
                                              int64_t full_elements, uint64_t limit_ns,
                                              ft_arena *arena, ft_group_check **out,
                                              ft_error *error);
// For ft_cpu_runner_trial; valid as long as the arena.
ft_output_check ft_group_check_outputs(ft_group_check *check);

// The byte that fills what was not written yet. Floats: every element is then a NaN that
// no arithmetic makes. The rest: -1 would be an answer people expect, so another byte.
enum { FT_POISON_BYTE = 0xff, FT_POISON_INTEGER_BYTE = 0xfb };
static inline uint8_t ft_poison_byte(ft_dtype dtype) {
  return ft_dtype_is_float(dtype) ? FT_POISON_BYTE : FT_POISON_INTEGER_BYTE;
}

#endif
