// chip - what is published of a GPU: what a multiprocessor holds, and how fast its
// largest usual product is. For targets without a device: nothing here was measured.
#ifndef FT_GRAPH_CHIP_H
#define FT_GRAPH_CHIP_H

#include <stdint.h>

typedef struct ft_chip {
  const char *arch;     // "sm_90"
  const char *product;  // whose numbers these are: "H100 SXM"
  uint32_t units;       // multiprocessors
  uint32_t threads_per_unit, blocks_per_unit;
  uint32_t registers_per_unit;
  uint64_t shared_per_unit, shared_per_block, shared_reserved;  // bytes
  uint64_t memory_bytes, l2_bytes;
  double dram_bytes_per_s, clock_hz;
  // Begun by a unit in one clock: fused multiply-adds of fp32 and fp64, and functions of
  // the special units (exp2, reciprocal, ...).
  uint32_t fma, fma64, special;
} ft_chip;

// Static; NULL: no numbers for |arch|. Suffixes (sm_90a) are those of their base.
const ft_chip *ft_chip_find(const char *arch);
// All of them, in the order of chips.def.
const ft_chip *ft_chips(uint32_t *out_count);

#endif
