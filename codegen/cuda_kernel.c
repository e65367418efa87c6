#include "codegen/cuda_kernel.h"

#include <string.h>

#include "codegen/occupancy.h"
#include "codegen/simt_work.h"

// The name that is hashed: the real one follows from the hash.
static const char unnamed[] = "ft_kernel";

ft_status ft_cuda_kernel_make(ft_kir *kir, ft_arena *arena, ft_cuda_kernel *out,
                              const char **reason, ft_error *error) {
  *out = (ft_cuda_kernel){0};
  *reason = NULL;
  ft_error why;
  const char *text;
  ft_status status = ft_print_cuda(kir, unnamed, &text, &out->launch, &why);
  if (status == FT_UNSUPPORTED) {
    *reason = ft_arena_strdup(arena, why.text);
    FT_OOM_IF(!*reason, error);
    return FT_OK;
  }
  if (status != FT_OK) FT_FAIL(error, status, "%s", why.text);
  char hex[FT_HASH_HEX + 1];
  ft_cuda_source *s = &out->source;
  s->body_hash = ft_hash_bytes(text, strlen(text));
  ft_hash_hex(&s->body_hash, hex);
  s->entry = ft_arena_printf(arena, "ft_k%.24s", hex);
  FT_OOM_IF(!s->entry, error);
  FT_TRY(ft_print_cuda(kir, s->entry, &s->text, &out->launch, error));
  return ft_simt_work_of(kir, &out->work, error);
}

// ---- after the build
// --------------------------------------------------------------------------------

// ptxas does not see what is only passed at the launch.
static uint64_t dynamic_bytes(const ft_cuda_kernel *k) {
  return k->launch.is_shared_dynamic ? k->launch.shared_bytes : 0;
}

ft_gpu_launch ft_cuda_kernel_roomiest(const ft_cuda_kernel *k, const ft_chip *chip) {
  ft_occupancy o = ft_occupancy_of(chip, k->launch.threads, 1, k->launch.shared_bytes);
  return (ft_gpu_launch){k->launch.threads, dynamic_bytes(k), o.blocks};
}

static const char *shortage(const ft_cuda_kernel *k, const ft_static_facts *facts,
                            const ft_chip *chip, ft_occupancy_limit limit,
                            ft_arena *arena) {
  if (limit == FT_LIMIT_SHARED)
    return ft_arena_printf(arena, "%lld bytes of shared memory a block, %s has %llu",
                           (long long)facts->shared_bytes, chip->arch,
                           (unsigned long long)chip->shared_per_block);
  return ft_arena_printf(arena, "%u threads of %lld registers: not one block fits (%s)",
                         k->launch.threads, (long long)facts->registers,
                         ft_occupancy_limit_text(limit));
}

ft_status ft_cuda_kernel_finish(const ft_cuda_kernel *k, const ft_cuda_object *object,
                                const ft_chip *chip, ft_arena *arena, ft_module *module,
                                ft_error *error) {
  module->outcome = object->outcome;
  module->path = object->path;
  module->log = object->log;
  module->build_ns = object->build_ns;
  if (object->outcome != FT_OUTCOME_OK) return FT_OK;
  ft_static_facts *facts = &module->facts;
  *facts = object->facts;
  facts->max_threads = k->launch.threads;  // what __launch_bounds__ says
  uint64_t dynamic = dynamic_bytes(k);
  facts->shared_bytes += (int64_t)dynamic;
  ft_occupancy o = ft_occupancy_of(chip, k->launch.threads, (uint32_t)facts->registers,
                                   (uint64_t)facts->shared_bytes);
  facts->occupancy = o.share;
  module->launch = (ft_gpu_launch){k->launch.threads, dynamic, o.blocks};
  if (o.blocks > 0) return FT_OK;
  module->outcome = FT_OUTCOME_RESOURCE_LIMIT;
  module->path = "";
  module->log = shortage(k, facts, chip, o.limit, arena);
  FT_OOM_IF(!module->log, error);
  return FT_OK;
}
