// bank_conflicts - how shared memory answers a warp: each access of a kernel to it, and
// how many passes the access takes.
//
// Shared memory has 32 banks of a 4-byte word each. An access takes as many passes as
// there are distinct words in the bank that has most of them: its |degree|. Accesses of 8
// and 16 bytes are answered for half and a quarter of a warp at a time, and are counted
// for such a part; so 1 is the best at every width, and 32 the worst.
//
// Nothing is run: the addresses are evaluated for the 32 lanes of each warp of block 0,
// in the first FT_BANK_TURNS iterations of each loop around the access, without the lanes
// that a guard keeps out. The degree is the worst of these.
#ifndef FT_CODEGEN_BANK_CONFLICTS_H
#define FT_CODEGEN_BANK_CONFLICTS_H

#include "codegen/kir.h"

enum { FT_BANK_TURNS = 4 };

typedef struct ft_bank_access {
  uint32_t buffer;
  bool is_store;
  uint32_t bytes;   // that a lane moves at once, as the CUDA text has it
  uint32_t count;   // accesses of |bytes| one after the other
  uint32_t degree;  // 1 to 32; 0: no lane got there, or the address depends on data
} ft_bank_access;

// The loads from, stores and copies to shared memory of |kir| (well formed) in the order
// of its statements, in |arena|. Cost: threads / 32 * FT_BANK_TURNS^depth evaluations of
// each address in |depth| loops. OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_bank_conflicts_count(const ft_kir *kir, ft_arena *arena,
                                                ft_bank_access **out, uint32_t *out_count,
                                                ft_error *error);

#endif
