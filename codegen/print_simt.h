// print_simt - a kernel with its threads: as CUDA C, and as SIM, plain C that checks it.
//
// Both prints walk the same tree and differ in a table of words, so what SIM proves holds
// for the CUDA text.
//
// CUDA: header-free C for NVRTC, one block of the grid per iteration of the grid loop,
//   extern "C" __global__ NAME(int *status, buffers in ABI order, workspace).
//   The workspace is there when the kernel has one; its parts lie at their offsets.
//   16-byte accesses where the index is proven divisible; 32-bit indices unless a buffer
//   or the launch needs more. Registers are capped by __launch_bounds__ only.
// SIM: a function of one block (codegen/sim.h says what it checks). Each stretch without
//   barriers and shuffles runs for one thread after the other; what lives longer than its
//   stretch is an array over the threads.
#ifndef FT_CODEGEN_PRINT_SIMT_H
#define FT_CODEGEN_PRINT_SIMT_H

#include "codegen/kir.h"

// What launching the kernel takes; read off the kernel.
typedef struct ft_simt_launch {
  int64_t grid;
  uint32_t threads;       // a block; 1 when there is no thread loop
  uint64_t shared_bytes;  // static, or dynamic when above 48 KiB; branches of which a
                          // block takes one share bytes
  bool is_shared_dynamic;
  uint64_t workspace_bytes;  // 0 before the first launch, kept between them
  bool has_wide_index;
  bool has_copies;  // SIM: to be run with both landings
} ft_simt_launch;

// In the kernel's arena; equal kernels give equal bytes. CUDA: the whole text. SIM: the
// function alone, so that many can share a unit, after what ft_sim_prelude_for gives for
// all of them. UNSUPPORTED: scratch memory, a dtype without kernels, or a copy whose
// alignment nothing proves. INTERNAL: not well formed.
FT_MUST_CHECK ft_status ft_print_cuda(ft_kir *kir, const char *name,
                                      const char **out_text, ft_simt_launch *out_launch,
                                      ft_error *error);
FT_MUST_CHECK ft_status ft_print_sim(ft_kir *kir, const char *name, const char **out_text,
                                     ft_simt_launch *out_launch, ft_error *error);

// NULL: out of memory.
const char *ft_sim_prelude_for(const char *bodies, ft_arena *arena);

#endif
