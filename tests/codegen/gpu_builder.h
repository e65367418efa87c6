// A builder for a target without a device, in a folder of its own.
#ifndef FT_TESTS_CODEGEN_GPU_BUILDER_H
#define FT_TESTS_CODEGEN_GPU_BUILDER_H

#include "codegen/arch_target.h"
#include "graphs.h"
#include "running.h"

typedef struct gpu_builder {
  ft_arena *arena;
  ft_target target;
  const char *folder;
  ft_codegen *codegen;
  ft_builder builder;
} gpu_builder;

static inline void gpu_builder_start(gpu_builder *b, bool test_tactics) {
  ft_error error;
  b->folder = cache_make(b->arena);
  ft_codegen_options options = {
      .cache_folder = b->folder, .jobs = 2, .test_tactics = test_tactics};
  cr_assert_eq(
      ft_codegen_create(&options, &b->target, ft_allocator_system(), &b->codegen, &error),
      FT_OK, "%s", error.text);
  b->builder = ft_codegen_builder(b->codegen);
}

// |name|: "sim", or an architecture; false, with the reason printed: no NVRTC.
static inline bool gpu_builder_open(gpu_builder *b, const char *name, bool test_tactics) {
  ft_error error;
  *b = (gpu_builder){.arena = ft_arena_create(ft_allocator_system())};
  ft_status status = ft_arch_target(name, b->arena, &b->target, &error);
  if (status == FT_UNAVAILABLE) {
    fprintf(stderr, "skipped: %s\n", error.text);
    ft_arena_destroy(b->arena);
    return false;
  }
  cr_assert_eq(status, FT_OK, "%s", error.text);
  gpu_builder_start(b, test_tactics);
  return true;
}

static inline void gpu_builder_close(gpu_builder *b) {
  ft_codegen_destroy(b->codegen);
  cache_remove(b->folder, b->arena);
  ft_arena_destroy(b->arena);
}

static inline uint32_t gpu_match(gpu_builder *b, const ft_workload *w, const char **names,
                                 const char **reason) {
  return b->builder.match(b->builder.self, w, b->arena, names, 8, reason);
}

static inline uint32_t gpu_space(gpu_builder *b, const ft_workload *w, const char *tactic,
                                 ft_schedule **out) {
  uint32_t count;
  ft_error error;
  cr_assert_eq(b->builder.space(b->builder.self, w, tactic, &b->target, b->arena, out,
                                &count, &error),
               FT_OK, "%s", error.text);
  return count;
}

#endif
