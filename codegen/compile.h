// compile - kernels to shared objects: packed, in parallel, cached.
//
// Invariants:
//  1. An object in the cache is found by one name: the hash of the kernel's text, the
//     compiler with its version, the flags, the machine's instruction set, and, where
//     it is linked with a library, the libraries' versions. It was renamed or linked
//     there whole.
//  2. The symbol of a kernel comes from the hash of its body, so packing kernels into one
//     unit renames nothing and changes no result: they share only static functions.
//  3. When a packed unit does not compile, its kernels are compiled one by one: only the
//     guilty fail. Failures are not cached.
#ifndef FT_CODEGEN_COMPILE_H
#define FT_CODEGEN_COMPILE_H

#include "graph/module.h"
#include "graph/target.h"

// A kernel's text. |body| starts with its brace.
typedef struct ft_source {
  const char *prelude, *body;
  const char *entry;  // ft_k.. from body_hash
  ft_hash body_hash;  // of prelude and body
  const char *link;   // NULL or the library that it needs; others are not in its unit
  const ft_compiler *compiler;
} ft_source;

typedef struct ft_object {
  ft_outcome outcome;  // OK, COMPILE_ERROR, TIMEOUT
  const char *path;    // "" unless OK
  const char *log;
  uint64_t build_ns;  // 0 from the cache
} ft_object;

typedef struct ft_compile_options {
  const char *folder;  // absolute, exists
  const ft_target *target;
  uint32_t jobs;
  uint64_t limit_ns;
  bool alone;                // each in an object of its own
  const volatile int *stop;  // set: leave soon with FT_INTERRUPTED; NULL: never
} ft_compile_options;

// Fills body_hash and entry from prelude and body. False: out of memory.
bool ft_source_seal(ft_source *source, ft_arena *arena);
// The function alone, without prelude.
const char *ft_source_function(const ft_source *source, ft_arena *arena);
// The flags |compiler| gets for |target|: part of the key.
const char *ft_compile_flags(const ft_compiler *compiler, const ft_target *target);
// The same with what |link| (may be NULL) adds, in |arena|; NULL: out of memory.
const char *ft_compile_flags_with(const ft_compiler *compiler, const ft_target *target,
                                  const char *link, ft_arena *arena);

// out[i] for source[i], strings in |arena|. Errors are our own faults (no compiler, no
// space), and INTERRUPTED: compilers were killed, objects that were ready are kept. Equal
// sources are built once.
FT_MUST_CHECK ft_status ft_compile(const ft_compile_options *options,
                                   const ft_source *source, uint32_t count,
                                   ft_arena *arena, ft_object *out, ft_error *error);

#endif
