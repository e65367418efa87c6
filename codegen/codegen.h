// codegen - group to kernel: matches a skeleton, builds kernel IR, prints C, compiles.
//
// Adding a tactic: one file (tactic_NAME.c with match, space, check, build) and one line
// in codegen/tactics.def.
#ifndef FT_CODEGEN_CODEGEN_H
#define FT_CODEGEN_CODEGEN_H

#include "graph/evaluator.h"

// Part of every key: raise it when the text printed for any candidate changes.
#define FT_CODEGEN_VERSION 3

// What an entry returns when an index of a gather is out of range: nothing was read with
// it, outputs are unfinished; and, of the tactic onednn, that plus the library's
// dnnl_status_t when a call failed (103: no implementation but its slow reference one).
enum { FT_KERNEL_BAD_INDEX = 2, FT_KERNEL_ONEDNN = 100 };

typedef struct ft_codegen ft_codegen;

typedef struct ft_codegen_options {
  const char *cache_folder;   // built objects; created when missing
  uint32_t jobs;              // compiler processes at a time; 0 = number of cores
  uint64_t compile_limit_ns;  // wall limit of one compiler process; 0 = 60 s
  const volatile int *stop;   // set: builds leave soon with FT_INTERRUPTED; borrowed
  bool test_tactics;          // also offer the tactics that misbehave (tests only)
} ft_codegen_options;

// Thread-compatible. Keeps a copy of |options|; borrows |target| (its compilers).
FT_MUST_CHECK ft_status ft_codegen_create(const ft_codegen_options *options,
                                          const ft_target *target,
                                          const ft_allocator *allocator, ft_codegen **out,
                                          ft_error *error);
void ft_codegen_destroy(ft_codegen *codegen);
// The builder table over |codegen|; valid as long as it.
ft_builder ft_codegen_builder(ft_codegen *codegen);

// What is known of a kernel for a GPU before it is compiled: grid, launch, workspace and
// work; source, path and facts are not, and launch.resident_blocks is what would fit if
// registers were free. Outcome COMPILE_ERROR with the reason: it has no kernel. Some
// milliseconds. UNAVAILABLE: the target is no chip.
FT_MUST_CHECK ft_status ft_codegen_outline(const ft_codegen *codegen,
                                           const ft_candidate *candidate, ft_arena *arena,
                                           ft_module *out, ft_error *error);

// The C compilers of this machine (clang, clang-NN, gcc, gcc-NN in PATH, or only the one
// FUSETUNE_CC names), clang first; each asked for its version once. Strings in |arena|.
FT_MUST_CHECK ft_status ft_compilers_find(ft_arena *arena,
                                          ft_compiler out[FT_MAX_COMPILERS],
                                          uint32_t *out_count, ft_error *error);

// True when kernels of |tactic| call a library, which may turn out to have nothing for
// them; all others run.
bool ft_codegen_calls_library(const char *tactic);

// The libraries that tactics can call, for ft_target.libraries: "onednn-2.6.3", "" when
// there are none (or FUSETUNE_LIBRARIES is "none"). *out_reason is why there are none, ""
// otherwise. Asks |compiler| for the version in dnnl.h, and whether it finds the library;
// that header and library agree is looked at by the kernels. Strings in |arena|.
FT_MUST_CHECK ft_status ft_libraries_find(const ft_compiler *compiler, ft_arena *arena,
                                          const char **out, const char **out_reason,
                                          ft_error *error);

#endif
