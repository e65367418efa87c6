// occupancy - how many blocks of a kernel a multiprocessor holds at a time, and why no
// more.
//
// Formula: registers are handed out per warp in units of 256, a quarter of them to each
// of four schedulers; shared memory in units of 128 bytes, with a part that the system
// reserves. It agrees with cuda_occupancy.h of CUDA 13.0 (checked by a test with that
// header's results).
#ifndef FT_CODEGEN_OCCUPANCY_H
#define FT_CODEGEN_OCCUPANCY_H

#include <stdbool.h>

#include "graph/chip.h"

typedef enum ft_occupancy_limit {
  FT_LIMIT_THREADS,
  FT_LIMIT_BLOCKS,
  FT_LIMIT_REGISTERS,
  FT_LIMIT_SHARED
} ft_occupancy_limit;

typedef struct ft_occupancy {
  uint32_t blocks, warps;  // per multiprocessor; 0: the kernel cannot be launched
  double share;            // of the warps that it could hold
  ft_occupancy_limit limit;
} ft_occupancy;

// |registers| per thread, |shared_bytes| per block (static and dynamic).
ft_occupancy ft_occupancy_of(const ft_chip *chip, uint32_t threads, uint32_t registers,
                             uint64_t shared_bytes);
const char *ft_occupancy_limit_text(ft_occupancy_limit limit);

#endif
