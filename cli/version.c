#include "cli/version.h"

#include <stdio.h>

#include "cli/cli.h"
#include "measure/cpu_target.h"

static ft_status probe(ft_arena *arena, ft_target *target, ft_error *error) {
  FT_TRY(ft_cpu_target_probe(arena, target, error));
  FT_TRY(ft_compilers_find(arena, target->compiler, &target->compiler_count, error));
  const char *reason;
  if (target->compiler_count)
    FT_TRY(ft_libraries_find(&target->compiler[0], arena, &target->libraries, &reason,
                             error));
  return ft_target_seal(target, error);
}

static void print_target(const ft_target *t) {
  char signature[FT_HASH_TEXT + 1];
  ft_hash_text(&t->signature, signature);
  printf("target     %s (%s)\ndevice     %s\nisa        %s\n", t->name, t->kind,
         t->device, t->isa);
  printf("units      %u\nthreads    %u\ncache      %llu bytes\nmemory     %llu bytes\n",
         t->units, t->threads, (unsigned long long)t->cache_bytes,
         (unsigned long long)t->memory_bytes);
  for (uint32_t i = 0; i < t->compiler_count; i++)
    printf("compiler   %s %s (%s)\n", t->compiler[i].name, t->compiler[i].version,
           t->compiler[i].path);
  printf("driver     %s\ntoolkit    %s\nlibraries  %s\nnumerics   %s\npower      %s\n",
         *t->driver ? t->driver : "none", *t->toolkit ? t->toolkit : "none",
         *t->libraries ? t->libraries : "none", t->numerics, t->power_class);
  printf("signature  %s\n", signature);
}

int ft_cli_print_version(void) {
  ft_error error;
  ft_target target;
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  printf("fusetune   " FT_VERSION
         "\ncodegen    %d\nplan       fusetune-plan/1\n"
         "abi        ft-cpu-1\n",
         FT_CODEGEN_VERSION);
  bool ok = arena && probe(arena, &target, &error) == FT_OK;
  if (ok)
    print_target(&target);
  else
    fprintf(stderr, "fusetune: cannot probe the target: %s\n",
            arena ? error.text : "out of memory");
  ft_arena_destroy(arena);
  return ok ? FT_EXIT_OK : FT_EXIT_FAILED;
}
