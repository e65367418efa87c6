// ceilings - measures in the worker what this machine gives at most (graph/ceiling.h).
//
//  1. Displaced caches mean what they mean in a trial: the same buffer is read before
//  each
//     sample of the cold kinds, so what survives it for a kernel survives it here.
//  2. All threads of the pool take part, each on its own cpu.
//  3. Every round takes one sample of everything, so that a disturbance costs each kind a
//     sample and no kind all of them.
//  4. Where one loop may do better than another (streams, prefetching, the library's
//     memcpy), rounds take turns with them and the best counts.
#ifndef FT_MEASURE_CEILINGS_H
#define FT_MEASURE_CEILINGS_H

#include "graph/ceiling.h"
#include "measure/timing.h"

typedef struct ft_ceiling_plan {
  uint64_t limit_ns;       // no round starts after it; the first FT_CEILING_ROUNDS do
  uint64_t largest_bytes;  // most that is touched at once; 0: nothing sized is measured
  uint64_t l2_bytes;       // of one core; 0: unknown, then nothing is measured in it
  uint64_t cache_bytes;    // last level; 0: unknown
} ft_ceiling_plan;

enum { FT_CEILING_ROUNDS = 3 };  // at least

// Fills |out| (room for FT_CEILINGS_MOST), ordered by kind, then size; one row each.
// measured_at is the caller's to set. OUT_OF_MEMORY with the size.
FT_MUST_CHECK ft_status ft_ceilings_measure(ft_timing *timing,
                                            const ft_ceiling_plan *plan, ft_arena *arena,
                                            ft_ceiling *out, uint32_t *out_count,
                                            ft_error *error);

#endif
