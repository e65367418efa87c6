// nvrtc - CUDA text to a cubin for one architecture, without a GPU.
//
// The library is loaded at run time; nothing here needs CUDA to build. Looked for in
// lib64 and lib of $CUDA_HOME and of /usr/local/cuda, and wherever the loader looks;
// FUSETUNE_NVRTC=none says that there is none.
//
// It is loaded once, in this process, and compiles in forked children of it (forked.h), a
// child for each compile at a time: no program starts, and a compile that crashes (NVRTC
// 13.0 does, for sm_100, on one of some thousands of random kernels) or hangs is that
// kernel's outcome. Nothing is ever compiled in this process itself, so no child inherits
// a lock that is held.
#ifndef FT_CODEGEN_NVRTC_H
#define FT_CODEGEN_NVRTC_H

#include "core/arena.h"
#include "core/status.h"
#include "graph/module.h"

typedef struct ft_nvrtc ft_nvrtc;

// UNAVAILABLE: no NVRTC; the text says where it was looked for. Never unloaded. Once
// open, thread-safe; compiles run side by side.
FT_MUST_CHECK ft_status ft_nvrtc_open(const ft_allocator *allocator, ft_nvrtc **out,
                                      ft_error *error);
// Ends the children; no compile may be under way.
void ft_nvrtc_close(ft_nvrtc *nvrtc);

const char *ft_nvrtc_version(const ft_nvrtc *nvrtc);  // "13.0"; as long as |nvrtc|
bool ft_nvrtc_knows(const ft_nvrtc *nvrtc, const char *arch);
// "sm_75 sm_80 ..." in |arena|; NULL: out of memory.
const char *ft_nvrtc_archs(const ft_nvrtc *nvrtc, ft_arena *arena);

typedef struct ft_cubin {
  ft_outcome outcome;  // OK, COMPILE_ERROR, or TIMEOUT
  const char *log;     // of NVRTC and ptxas
  const void *data;    // the cubin; NULL unless OK
  size_t bytes;
  ft_static_facts facts;  // of |entry|; occupancy unknown
} ft_cubin;

// Compiles |source| for |arch| ("sm_90") and reads what ptxas says of |entry|. A source
// that does not compile, an arch that this NVRTC does not know, or a crash of NVRTC is an
// outcome: COMPILE_ERROR, and the log says which. About 100 ms a kernel. Results in
// |arena|.
FT_MUST_CHECK ft_status ft_nvrtc_compile(ft_nvrtc *nvrtc, const char *source,
                                         const char *entry, const char *arch,
                                         ft_arena *arena, ft_cubin *out, ft_error *error);
// The same, killed when it took |limit_ns| (0: never; outcome TIMEOUT), or *|stop| is set
// (INTERRUPTED; NULL: never).
FT_MUST_CHECK ft_status ft_nvrtc_compile_within(ft_nvrtc *nvrtc, const char *source,
                                                const char *entry, const char *arch,
                                                uint64_t limit_ns,
                                                const volatile int *stop, ft_arena *arena,
                                                ft_cubin *out, ft_error *error);

#endif
