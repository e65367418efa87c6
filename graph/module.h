// module - a built kernel: what codegen hands to measure.
#ifndef FT_GRAPH_MODULE_H
#define FT_GRAPH_MODULE_H

#include "core/hash.h"
#include "graph/outcome.h"

// What the compiler tells about a kernel. -1 = unknown.
typedef struct ft_static_facts {
  int64_t registers, spill_store_bytes, spill_load_bytes, stack_bytes, shared_bytes;
  int64_t max_threads;
  double occupancy;
} ft_static_facts;

// What a kernel in the shape of a GPU does, counted over all its threads from its
// statements, without running it (codegen/simt_work.h); all 0: not counted.
typedef struct ft_kernel_work {
  double load_sectors, store_sectors;  // 32 bytes of global memory, each time a warp asks
  double
      wavefronts;  // turns of the units' load-store paths, for global and shared memory
  double operations;    // of fp32, shorter floats and integers; a fused pair counts once
  double operations64;  // of fp64
  double specials;      // functions that the special units begin
  double steps;         // statements' elements in all: what running it in SIM takes
  double bytes_in_flight;  // most that one thread asks for before it uses any of it
} ft_kernel_work;

// How to launch a kernel of ABI ft-cuda-1; all 0 for the CPU's.
typedef struct ft_gpu_launch {
  uint32_t block_threads;
  uint64_t dynamic_shared_bytes;  // to be passed; above 48 KiB to be allowed, too
  uint32_t resident_blocks;       // on one multiprocessor
} ft_gpu_launch;

// ABI ft-cuda-1: extern "C" __global__ ENTRY(int *status, buffers in ABI order, and the
// workspace when there is one), a one-dimensional grid. *status is 0 before, and after a
// launch that went well. The workspace is as in ft-cpu-1.
//
// ABI ft-cpu-1: int32_t ENTRY(void *const *buffers, const int64_t *scalars,
//                             uint32_t block, uint32_t thread, void *scratch).
// Blocks [0, grid) are independent, any order, any thread. |buffers|: the workload's
// inputs, then outputs, then one workspace pointer when workspace_bytes > 0. 0 is
// success; anything else fails the run and is reported. The workspace belongs to one step
// of one program: it is 64-byte aligned, zero before the first launch, and keeps what a
// launch leaves for the next one (kernels leave their counters zero); launches of one
// step never overlap. A kernel that calls a library (|link|) has one block and keeps what
// it made for it until its object is unloaded; the library's threads are its own.
typedef struct ft_module {
  ft_outcome outcome;   // FT_OUTCOME_OK, COMPILE_ERROR, TIMEOUT (compiler), ...
  ft_hash body_hash;    // of the kernel's body text: the cache key
  ft_hash source_hash;  // of |source|
  const char *source;   // compilable text of this kernel alone, banner included
  const char *entry;    // symbol in |path|
  const char *path;     // shared object or cubin; "" when outcome is not OK
  const char *compiler, *flags;
  const char *link;        // library that it calls: "dnnl"; NULL: none
  const char *log;         // compiler output, "" when silent
  uint64_t build_ns;       // its share when several were built in one go
  uint32_t grid;           // number of blocks, >= 1
  uint32_t threads;        // how many threads share the work, >= 1: the pool's, or, with
                           // |link|, the library's; 0: a GPU's kernel
  uint64_t scratch_bytes;  // per thread, 64-byte aligned, contents undefined
  uint64_t workspace_bytes;  // one per step; see above
  uint32_t scalar_count;
  const int64_t *scalar;
  ft_static_facts facts;
  ft_gpu_launch launch;
  ft_kernel_work work;
} ft_module;

#endif
