// cubin - CUDA text to cubins for one architecture: in parallel, cached.
//
// Invariants:
//  1. A cubin in the cache is found by one name: the hash of the kernel's text, the
//     architecture and NVRTC's version. It was renamed there whole, after what ptxas
//     said.
//  2. Equal sources are built once. Failures are not cached.
#ifndef FT_CODEGEN_CUBIN_H
#define FT_CODEGEN_CUBIN_H

#include "codegen/nvrtc.h"
#include "core/hash.h"

typedef struct ft_cuda_source {
  const char *text, *entry;
  ft_hash body_hash;  // of the text, its entry's name left out
} ft_cuda_source;

typedef struct ft_cuda_object {
  ft_outcome outcome;     // OK, COMPILE_ERROR, TIMEOUT
  const char *path;       // of the cubin; "" unless OK
  const char *log;        // warnings and errors; "" when silent
  uint64_t build_ns;      // 0 from the cache
  ft_static_facts facts;  // occupancy unknown
} ft_cuda_object;

typedef struct ft_cubin_options {
  ft_nvrtc *nvrtc;
  const char *folder;  // absolute, exists
  const char *arch;    // "sm_90"
  uint32_t jobs;       // threads that compile; 0: one
  uint64_t limit_ns;   // for one kernel; 0: none
  const volatile int *stop;
} ft_cubin_options;

// out[i] for source[i], strings in |arena|. Errors are our own faults, and INTERRUPTED:
// what was ready is kept. About 100 ms a kernel.
FT_MUST_CHECK ft_status ft_cubins_build(const ft_cubin_options *options,
                                        const ft_cuda_source *source, uint32_t count,
                                        ft_arena *arena, ft_cuda_object *out,
                                        ft_error *error);

#endif
