// sim - runs SIM prints: is this SIMT program right, whatever order its threads run in?
//
// Checked at every access (the first violation is kept, the run goes on with zeros):
//  1. bounds: the index is inside the buffer, and a vector access is aligned to its size;
//  2. races: a cell of shared or global memory that one thread writes is not read or
//     written by another before a barrier of their block; never by another block;
//  3. initialised: nothing is read from shared memory or outputs that was not written
//     (registers start as NaN, or as a large number);
//  4. uniform: all threads of a block agree on conditions and bounds around barriers and
//     shuffles;
//  5. ends: the loops of a block take at most 2^24 steps.
#ifndef FT_CODEGEN_SIM_H
#define FT_CODEGEN_SIM_H

#include "core/arena.h"
#include "core/status.h"

typedef enum ft_sim_fault {
  FT_SIM_FINE,
  FT_SIM_BOUNDS,
  FT_SIM_MISALIGNED,
  FT_SIM_RACE,
  FT_SIM_UNINITIALISED,
  FT_SIM_DIVERGENT,
  FT_SIM_ENDLESS,
  FT_SIM_FAULTS
} ft_sim_fault;

// Who touched a cell last. A stamp is block * 2^40 + epoch * 2^12 + thread + 1; 0:
// nobody. Two readers, unequal, so that whoever writes differs from one of them. The
// printed text has the same structs: keep them equal.
typedef struct ft_sim_cell {
  uint64_t writer, reader, other;
} ft_sim_cell;

typedef struct ft_sim_state {
  uint64_t block, epoch, fuel;
  int32_t fault;    // ft_sim_fault, the first
  uint32_t buffer;  // of the kernel IR
  int64_t index;    // element
  uint64_t thread, other;
  ft_sim_cell *const *cell;  // [ABI position] of global buffers
  const int64_t *count;      // [ABI position] elements
} ft_sim_state;

typedef int32_t ft_sim_entry(void *const *buffers, ft_sim_state *state, uint64_t block);

typedef struct ft_sim_result {
  ft_sim_fault fault;
  int32_t code;    // what the kernel returned: FT_KERNEL_BAD_INDEX, 0
  char text[160];  // "race: buffer 3[17], block 0, threads 5 and 37"
} ft_sim_result;

// Runs |entry| for blocks [0, grid) in an order drawn from |seed|. |buffers| and |count|
// (elements) in ABI order; the first |inputs| are initialised and must not be written.
// INVALID_ARGUMENT: more than 2^24 blocks, which a stamp has no room for. OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_sim_run(ft_sim_entry *entry, int64_t grid,
                                   void *const *buffers, const int64_t *count,
                                   uint32_t inputs, uint32_t outputs, uint64_t seed,
                                   ft_arena *arena, ft_sim_result *out, ft_error *error);
const char *ft_sim_fault_text(ft_sim_fault fault);

// The C text that every SIM print starts with.
extern const char ft_sim_prelude[];

#endif
