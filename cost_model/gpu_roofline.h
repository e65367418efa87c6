// gpu_roofline - how long a kernel may take on a chip that is not here, from what is
// published of the chip, what the compiler says of the kernel, and what its statements
// do.
//
//   predicted = launch + max over the roofs of work / (peak * efficiency)
//   bound     = launch + the same over the compulsory work, with efficiency 1
//
// Roofs: DRAM (each operand once), the second-level cache (what the warps ask for), the
// load-store paths, fp32 and integer operations, fp64, special functions. Efficiency:
//  - all: the last wave of blocks may be partly empty; a grid smaller than the chip
//  leaves
//    multiprocessors idle;
//  - DRAM: bytes in flight, by Little's law: what a thread asks for at once, times the
//    threads that fit (occupancy) or that there are, against 9.5 ns of bandwidth on each
//    multiprocessor;
//  - operations: a multiprocessor with fewer threads than lanes leaves lanes idle.
// A guess: nothing here was measured, and clocks, caches and overlap are not modelled. It
// orders candidates and plans; only a measurement tells which is fastest.
//
// Sources: bytes in flight, nvFuser's csrc/scheduler/utils.cpp (9.5 ns on H100 and H200);
// launch of 1 us and a second-level cache 2.5 times as fast as DRAM, XLA's
// gpu_performance_model_base.cc; rates, graph/chips.def.
#ifndef FT_COST_MODEL_GPU_ROOFLINE_H
#define FT_COST_MODEL_GPU_ROOFLINE_H

#include "graph/chip.h"
#include "graph/evaluator.h"

#define FT_GPU_LAUNCH_NS 1000.0

typedef enum ft_gpu_roof {
  FT_ROOF_DRAM,
  FT_ROOF_CACHE,
  FT_ROOF_ACCESS,
  FT_ROOF_OPERATIONS,
  FT_ROOF_OPERATIONS64,
  FT_ROOF_SPECIALS,
  FT_ROOFS
} ft_gpu_roof;
const char *ft_gpu_roof_text(ft_gpu_roof roof);  // "DRAM"

typedef struct ft_gpu_prediction {
  double ns;                 // finite, at least the bound
  double roof_ns[FT_ROOFS];  // launch left out
  ft_gpu_roof binding;
} ft_gpu_prediction;

// |module| is built (launch, facts and work are known) and can be launched on |chip|.
ft_gpu_prediction ft_gpu_predict(const ft_chip *chip, const ft_workload *workload,
                                 const ft_module *module, ft_arena *scratch);

// What ft_gpu_predict will not go below once |module| is built: it was not yet, and its
// launch.resident_blocks is the most that can be (ft_codegen_outline in codegen/codegen.h
// says so).
double ft_gpu_floor_ns(const ft_chip *chip, const ft_workload *workload,
                       const ft_module *module, ft_arena *scratch);

// What no kernel for |workload| can beat on |chip|, if its published rates are its rates.
// 0: it moves nothing.
double ft_gpu_bound_ns(const ft_chip *chip, const ft_workload *workload,
                       ft_arena *scratch);

// The bounds as a predictor. predict says the bound too: what a candidate takes is only
// known once it is built. |self|: an ft_gpu_bounds that must live as long.
typedef struct ft_gpu_bounds {
  const ft_chip *chip;
  ft_arena *scratch;  // reset by each question
} ft_gpu_bounds;
ft_predictor ft_gpu_predictor(ft_gpu_bounds *bounds);

#endif
