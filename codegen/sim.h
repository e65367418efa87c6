// sim - runs SIM prints: is this SIMT program right, whatever order its threads run in?
//
// Checked at every access (the first violation is kept, the run goes on with zeros):
//  1. bounds: the index is inside the buffer, and a vector access is aligned to its size;
//  2. races: a cell of shared, global or workspace memory that one thread writes is not
//     read or written by another before a barrier of their block; by another block only
//     in the body of a grid-done, and when its block wrote it before it arrived there;
//  3. initialised: nothing is read from shared memory, outputs or the workspace that this
//     launch did not write (registers start as NaN, or as a large number);
//  4. uniform: all threads of a block agree on conditions and bounds around barriers and
//     shuffles;
//  5. ends: the loops of a block take at most |fuel| steps;
//  6. waited: nobody, the copying thread included, touches what an asynchronous copy goes
//     to before the thread has waited for it. Copies land at once, or as late as they
//     may: run a kernel that has copies both ways;
//  7. counted: every counter of a grid-done is back at 0 when the launch ends.
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
  FT_SIM_UNWAITED,
  FT_SIM_UNCOUNTED,
  FT_SIM_FAULTS
} ft_sim_fault;

// Who touched a cell last. A stamp is block * 2^40 + epoch * 2^12 + thread + 1; 0:
// nobody. Two readers, unequal, so that whoever writes differs from one of them. The
// printed text has the same structs: keep them equal.
typedef struct ft_sim_cell {
  uint64_t writer, reader, other;
  uint32_t is_set;      // since its allocation
  uint32_t is_awaited;  // a copy to it is under way
} ft_sim_cell;

// What the printed text sees of a launch: the text has the same struct.
typedef struct ft_sim_state ft_sim_state;
struct ft_sim_state {
  uint64_t block, epoch, fuel;
  int32_t fault;    // ft_sim_fault, the first
  uint32_t buffer;  // of the kernel IR
  int64_t index;    // element
  uint64_t thread, other;
  // [ABI position] shadows: NULL for inputs; the workspace has one for each byte.
  ft_sim_cell *const *cell;
  // [block] how many of its epochs this block sees; NULL outside of a grid-done's body.
  uint64_t *seen;
  // Counts this block in counter[index] of |count| elements; 1: it is the last of |of|.
  int32_t (*arrive)(ft_sim_state *state, int32_t *counter, uint32_t buffer, int64_t count,
                    int64_t index, int64_t of);
  // Copies |bytes| (NULL: zeros) to |lanes| cells, which are awaited now; makes a batch
  // of the thread's copies; waits until at most |batches| of them are under way.
  void (*copy)(ft_sim_state *state, void *to, ft_sim_cell *cell, const void *from,
               int64_t lanes, int64_t bytes, uint64_t thread);
  void (*commit)(ft_sim_state *state, uint64_t thread);
  void (*wait)(ft_sim_state *state, int64_t batches, uint64_t thread);
};

typedef int32_t ft_sim_entry(void *const *buffers, ft_sim_state *state, uint64_t block);

typedef struct ft_sim_result {
  ft_sim_fault fault;
  int32_t code;    // what the kernel returned: FT_KERNEL_BAD_INDEX, 0
  char text[160];  // "race: buffer 3[17], block 0, threads 5 and 37"
} ft_sim_result;

// When the bytes of an asynchronous copy arrive.
typedef enum ft_sim_landing {
  FT_SIM_EARLY,  // at the copy: shows that somebody still reads what was there
  FT_SIM_LATE,   // at the wait that covers it: shows that nobody waits
  FT_SIM_LANDINGS
} ft_sim_landing;

typedef struct ft_sim_call {
  ft_sim_entry *entry;
  int64_t grid;
  void *const *buffers;  // in ABI order: inputs, outputs, the workspace if there is one
  const int64_t *count;  // elements of inputs and outputs
  uint32_t inputs;       // initialised, must not be written
  uint32_t outputs;
  uint64_t workspace_bytes;  // 0 before the first launch; give it as it is to the next
  uint64_t seed;             // of the order of blocks
  uint64_t fuel;             // steps of a block's loops; 0: 2^30
  ft_sim_landing landing;
} ft_sim_call;

// Runs all blocks in random order, until one has a fault or returns a code.
// INVALID_ARGUMENT: more than 2^24 blocks, which a stamp has no room for. OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_sim_run(const ft_sim_call *call, ft_arena *arena,
                                   ft_sim_result *out, ft_error *error);

// The same by hand, for some of the blocks. |cell|, NULL: made here; else zeros, as
// ft_sim_state says. The state lives in the arena, |call| must outlive it.
FT_MUST_CHECK ft_status ft_sim_open(const ft_sim_call *call, ft_sim_cell *const *cell,
                                    ft_arena *arena, ft_sim_state **out, ft_error *error);
// What the kernel returned. |state->fault| and its neighbours say what went wrong.
int32_t ft_sim_block(ft_sim_state *state, uint64_t block);
const char *ft_sim_fault_text(ft_sim_fault fault);

// The C text that every SIM print starts with: pieces, until NULL.
extern const char *const ft_sim_prelude[];

#endif
