// sim_object - candidates for a GPU as SIM prints that can be called (codegen/sim.h):
// built by this machine's C compiler, loaded into this process.
//
// In this process: the text is ours, and checks every access before it makes it.
#ifndef FT_CODEGEN_SIM_OBJECT_H
#define FT_CODEGEN_SIM_OBJECT_H

#include "codegen/codegen.h"
#include "codegen/sim.h"

typedef struct ft_sim_kernel {
  const char *refusal;  // NULL, or why the candidate has no kernel
  ft_sim_entry *entry;  // as long as the arena
  int64_t grid;
  uint64_t workspace_bytes;
  bool has_copies;  // asynchronous ones: run it with both landings
  double steps;     // statements' elements, about: what running all blocks takes
} ft_sim_kernel;

// out[i] for candidate[i], of a GPU's target. Equal kernels are built once, all in
// parallel; about a second each. UNAVAILABLE: no C compiler. INTERNAL: a print that does
// not compile.
FT_MUST_CHECK ft_status ft_codegen_simulate(ft_codegen *codegen,
                                            const ft_candidate *candidate, uint32_t count,
                                            ft_arena *arena, ft_sim_kernel *out,
                                            ft_error *error);

#endif
