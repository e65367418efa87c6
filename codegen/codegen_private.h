// codegen_private - shared by the codegen*.c files.
#ifndef FT_CODEGEN_CODEGEN_PRIVATE_H
#define FT_CODEGEN_CODEGEN_PRIVATE_H

#include "codegen/codegen.h"
#include "codegen/compile.h"
#include "codegen/cuda_kernel.h"
#include "codegen/tactic.h"

struct ft_codegen {
  const ft_allocator *allocator;
  ft_arena *arena;
  const ft_target *target;
  ft_compile_options compile;
  ft_nvrtc *nvrtc;  // opened by the first build for an architecture
  bool test_tactics;
};

// A candidate as text, with what its launch needs: C for the CPU, or CUDA.
typedef struct ft_emitted {
  ft_kernel kernel;
  ft_source source;     // of the CPU
  ft_cuda_kernel cuda;  // of a GPU
} ft_emitted;

// The candidate's kernel IR in out->kernel, nothing printed. *reason is set when the
// candidate cannot work.
FT_MUST_CHECK ft_status ft_codegen_lower(const ft_codegen *codegen,
                                         const ft_candidate *candidate, ft_arena *arena,
                                         ft_emitted *out, const char **reason,
                                         ft_error *error);
// The same, printed.
FT_MUST_CHECK ft_status ft_codegen_print(const ft_codegen *codegen,
                                         const ft_candidate *candidate, ft_arena *arena,
                                         ft_emitted *out, const char **reason,
                                         ft_error *error);
// A kernel's source as people see it: who made it, from what, and the whole text. NULL:
// out of memory.
const char *ft_codegen_full_text(const ft_candidate *candidate, const ft_emitted *e,
                                 ft_arena *arena);

// ft_builder.build
FT_MUST_CHECK ft_status ft_codegen_build(void *self, const ft_candidate *candidate,
                                         uint32_t count, bool alone, ft_arena *arena,
                                         ft_module *out, ft_error *error);

#endif
