// sim_parts - what the sim*.c files share: a launch with what its kernel does not see.
// Private to them.
//
// sim.c runs blocks and counts them; sim_copy.c has the copies under way; sim_prelude.c
// the text that checks accesses.
#ifndef FT_CODEGEN_SIM_PARTS_H
#define FT_CODEGEN_SIM_PARTS_H

#include "codegen/sim.h"

// A block that was counted and not last yet.
typedef struct ft_sim_arrival {
  const int32_t *counter;
  uint32_t buffer;
  int64_t index;
  uint64_t block, epoch;
} ft_sim_arrival;

typedef struct ft_sim_copies ft_sim_copies;

typedef struct ft_sim_launch {
  ft_sim_state state;  // first: one is cast to the other
  const ft_sim_call *call;
  ft_arena *arena;
  ft_sim_arrival *arrival;
  size_t arrival_count, arrival_capacity;
  uint64_t *seen;         // [block]
  ft_sim_copies *copies;  // NULL before the first
  bool is_out_of_memory;
} ft_sim_launch;

// As the functions of ft_sim_state say.
void ft_sim_copy_start(ft_sim_state *state, void *to, ft_sim_cell *cell, const void *from,
                       int64_t lanes, int64_t bytes, uint64_t thread);
void ft_sim_copy_commit(ft_sim_state *state, uint64_t thread);
void ft_sim_copy_wait(ft_sim_state *state, int64_t batches, uint64_t thread);
// A block ends: its memory is gone, and so are the copies to it.
void ft_sim_copy_forget(ft_sim_launch *launch);

#endif
