// target - the device with its software, and the signature a plan is valid for.
#ifndef FT_GRAPH_TARGET_H
#define FT_GRAPH_TARGET_H

#include "core/hash.h"
#include "graph/tensor.h"

enum { FT_MAX_COMPILERS = 8 };

typedef struct ft_compiler {
  const char *name;     // "clang-14", "gcc-12": the knob value
  const char *version;  // "14.0.6": the first line's version, as the compiler prints it
  const char *path;     // how to run it; not part of the signature
  bool is_clang;
} ft_compiler;

// Strings are never NULL ("" = unknown); numbers 0 = unknown.
typedef struct ft_target {
  const char *name;       // "cpu", "sm_90", "sim", as typed
  const char *kind;       // "cpu" | "cuda" | "arch" (no device: predicted) | "sim"
  const char *device;     // "Intel(R) Xeon(R) Processor fam 6 model 167 step 1"; of an
                          // arch the product whose numbers predictions take
  const char *isa;        // sorted, space-separated vector extensions: "avx2 avx512f fma"
  uint32_t units;         // cores
  uint32_t threads;       // threads the pool may use (affinity counted)
  uint32_t vector_bytes;  // widest vector register: 16, 32, 64
  uint64_t memory_bytes;
  uint64_t cache_bytes;  // last-level cache
  uint64_t l2_bytes;     // per core
  const char *driver, *toolkit;
  uint32_t compiler_count;
  ft_compiler compiler[FT_MAX_COMPILERS];
  const char *libraries;    // that tactics can call: "onednn-2.6.3", "" = none
  const char *numerics;     // "f32-accumulate deterministic"
  const char *power_class;  // huge pages setting and frequency governor
  ft_hash signature;        // of ft_target_json, set by ft_target_seal
} ft_target;

// True when kernels for it are in the shape of a GPU.
bool ft_target_is_gpu(const ft_target *target);

// The key fields as compact JSON with sorted keys, in |arena|; NULL when out of memory.
// memory_bytes is rounded down to whole GiB (it moves by a few MB at each boot).
const char *ft_target_json(const ft_target *target, ft_arena *arena);
FT_MUST_CHECK ft_status ft_target_seal(ft_target *target, ft_error *error);

#endif
