// work - what every kernel for a workload must at least do: bytes that it cannot but read
// and write, operations that it cannot but compute.
//
// What is asked of a group's outputs is followed back to its inputs. Counted is what
// shapes alone force:
//  - an element that no output depends on is not read (SLICE, strides past a window), nor
//    is what only data can decide: GATHER's table, the branches of WHERE, AND and OR;
//  - what is equal along an axis by BROADCAST is computed once;
//  - convolutions do not multiply padding; a window works once per element it covers;
//  - contractions take 2 m n k: Strassen's and Winograd's tricks are not credited (a
//  kernel
//    that used them would raise the alarm, and the ceiling with it);
//  - moving, comparing, rounding, integers and 16-bit floats count no operations: they
//  may
//    run beside the floating-point units, or in half of one.
#ifndef FT_COST_MODEL_WORK_H
#define FT_COST_MODEL_WORK_H

#include "graph/group.h"

typedef struct ft_work {
  double read_bytes, write_bytes;
  double product_flops;  // of contractions: half are multiplications
  double flops;          // all, those included
} ft_work;

// Finite, >= 0, and at most the workload's read_bytes and write_bytes; |scratch| is for
// the call. All zero when |scratch| is out of memory: nothing is known then. A few
// microseconds; quadratic in the group's primitives.
ft_work ft_work_of(const ft_workload *workload, ft_arena *scratch);

#endif
