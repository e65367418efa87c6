// simulate - the kernels of a GPU's plan in SIM: are they right, whatever order their
// threads run in? Never timed.
#ifndef FT_DAEMON_SIMULATE_H
#define FT_DAEMON_SIMULATE_H

#include "daemon/session.h"

// Of a kernel that takes more steps than this, only so many blocks run as fit, drawn from
// the seed, the first and the last always: some seconds. Kernels whose blocks wait for
// each other's results (with a workspace) always run whole.
#define FT_SIM_STEPS 4e8

typedef struct ft_simulated {
  const char *name;           // "kernel 3 (simt_gemm): 'a'"
  int64_t blocks, of_blocks;  // run, of all
  const char *fault;          // "race: buffer 3[17], ..."; NULL: none
  ft_comparison comparison;   // of elements that were written, all outputs together
} ft_simulated;

typedef struct ft_simulation {
  bool is_plan_stored;  // false: one kernel per operator, default schedules
  bool is_verified;     // no fault, and all that was compared is within tolerance
  uint32_t kernel_count;
  const ft_simulated *kernel;
} ft_simulation;

// Runs each kernel of the target's stored plan (of one kernel per operator, where there
// is none, and for target sim) on inputs of its own, drawn from |seed| as a trial's are,
// and compares up to 4,096 elements of each output with the reference. INVALID_ARGUMENT:
// the target's kernels are not a GPU's.
FT_MUST_CHECK ft_status ft_session_simulate(ft_session *session, const ft_model *model,
                                            uint64_t seed, ft_arena *arena,
                                            ft_simulation *out, ft_error *error);

#endif
