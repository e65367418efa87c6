// check - is a group's output right? References come from graph/interpreter.
#ifndef FT_MEASURE_CHECK_H
#define FT_MEASURE_CHECK_H

#include "measure/runner.h"

// Prepared once per workload and input set; |group| and |input| (with its bytes) must
// live as long as the check. Outputs of up to |full_elements| elements (at least 4,096)
// are compared whole. Of larger ones: the first and last 64 elements, both ends of 64
// rows of the last axis (the first, the last and random ones), and 4,096 random elements,
// all drawn from |seed|. In the whole output, elements that still hold poison are
// searched for; the first 64 are compared with their reference, because poison may be
// right. References stop when they took |limit_ns| (shared by the outputs), never below
// 64 elements per output. Where computing the whole group in dense order is foretold to
// take less time than that (graph/reference_cost.h: sums of many terms), every element
// has a reference instead.
typedef struct ft_group_check ft_group_check;
FT_MUST_CHECK ft_status ft_group_check_create(const ft_group *group,
                                              const ft_tensor *input, uint64_t seed,
                                              int64_t full_elements, uint64_t limit_ns,
                                              ft_arena *arena, ft_group_check **out,
                                              ft_error *error);
// For ft_cpu_runner_trial; valid as long as the arena.
ft_output_check ft_group_check_outputs(ft_group_check *check);

// One element that is compared: a float is right within |tolerance| of |expected|, others
// when they are |integer|; an infinite tolerance takes any answer.
typedef struct ft_checked_element {
  int64_t index;  // row-major
  double expected, tolerance;
  int64_t integer;
} ft_checked_element;
// The elements of output |output| (of the group), ascending, in |arena|.
FT_MUST_CHECK ft_status ft_group_check_elements(const ft_group_check *check,
                                                uint32_t output, ft_arena *arena,
                                                ft_checked_element **out,
                                                uint32_t *out_count, ft_error *error);

// The byte that fills what was not written yet. Floats: every element is then a NaN that
// no arithmetic makes. The rest: -1 would be an answer people expect, so another byte.
enum { FT_POISON_BYTE = 0xff, FT_POISON_INTEGER_BYTE = 0xfb };
static inline uint8_t ft_poison_byte(ft_dtype dtype) {
  return ft_dtype_is_float(dtype) ? FT_POISON_BYTE : FT_POISON_INTEGER_BYTE;
}

#endif
