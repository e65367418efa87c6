// nvrtc - CUDA text to a cubin for one architecture, in this process, without a GPU.
//
// The library is loaded at run time; nothing here needs CUDA to build. Looked for in
// $CUDA_HOME/lib64, /usr/local/cuda/lib64 and wherever the loader looks.
#ifndef FT_CODEGEN_NVRTC_H
#define FT_CODEGEN_NVRTC_H

#include "core/arena.h"
#include "core/status.h"
#include "graph/module.h"

typedef struct ft_nvrtc ft_nvrtc;

// UNAVAILABLE: no NVRTC; the text says where it was looked for. Never unloaded.
// Thread-compatible.
FT_MUST_CHECK ft_status ft_nvrtc_open(const ft_allocator *allocator, ft_nvrtc **out,
                                      ft_error *error);
void ft_nvrtc_close(ft_nvrtc *nvrtc);

typedef struct ft_cubin {
  ft_outcome outcome;  // OK or COMPILE_ERROR
  const char *log;     // of NVRTC and ptxas
  const void *data;    // the cubin; NULL unless OK
  size_t bytes;
  ft_static_facts facts;  // of |entry|; occupancy unknown
} ft_cubin;

// Compiles |source| for |arch| ("sm_90") and reads what ptxas says of |entry|. A source
// that does not compile, or an arch that this NVRTC does not know, is an outcome. About
// 100 ms a kernel. Results in |arena|.
FT_MUST_CHECK ft_status ft_nvrtc_compile(ft_nvrtc *nvrtc, const char *source,
                                         const char *entry, const char *arch,
                                         ft_arena *arena, ft_cubin *out, ft_error *error);

#endif
