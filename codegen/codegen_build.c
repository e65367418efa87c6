// Kernels to objects: C by compilers as processes, CUDA by NVRTC in this one.
#include <string.h>

#include "codegen/codegen_private.h"

static ft_static_facts unknown_facts(void) {
  return (ft_static_facts){-1, -1, -1, -1, -1, -1, -1};
}

static ft_status describe(const ft_candidate *candidate, const ft_emitted *e,
                          ft_arena *arena, ft_module *out, ft_error *error) {
  out->source = ft_codegen_full_text(candidate, e, arena);
  FT_OOM_IF(!out->source, error);
  out->source_hash = ft_hash_bytes(out->source, strlen(out->source));
  out->body_hash = e->source.body_hash;
  out->entry = e->source.entry;
  out->compiler = e->source.compiler->name;
  out->flags =
      ft_compile_flags_with(e->source.compiler, candidate->target, e->source.link, arena);
  FT_OOM_IF(!out->flags, error);
  out->link = e->source.link;
  out->grid = e->kernel.grid;
  out->threads = (uint32_t)ft_schedule_get(&candidate->schedule, "threads", 1);
  out->scratch_bytes = e->kernel.scratch_bytes;
  out->workspace_bytes = e->kernel.workspace_bytes;
  return FT_OK;
}

static void refuse_module(ft_module *out, const char *reason) {
  *out = (ft_module){.outcome = FT_OUTCOME_COMPILE_ERROR,
                     .source = "",
                     .entry = "",
                     .path = "",
                     .compiler = "",
                     .flags = "",
                     .log = reason,
                     .grid = 1,
                     .threads = 1,
                     .facts = unknown_facts()};
}

// ---- for the CPU
// --------------------------------------------------------------------------------

static ft_status build_cpu(ft_codegen *codegen, const ft_candidate *candidate,
                           uint32_t count, bool alone, ft_arena *arena, ft_module *out,
                           ft_error *error) {
  ft_source *source = FT_NEW_ARRAY(arena, ft_source, count);
  uint32_t *of = FT_NEW_ARRAY(arena, uint32_t, count);
  ft_object *object = FT_NEW_ARRAY(arena, ft_object, count);
  FT_OOM_IF(!source || !of || !object, error);
  uint32_t sources = 0;
  for (uint32_t i = 0; i < count; i++) {
    ft_emitted e;
    const char *reason;
    FT_TRY(ft_codegen_print(codegen, &candidate[i], arena, &e, &reason, error));
    refuse_module(&out[i], reason);
    if (reason) continue;
    FT_TRY(describe(&candidate[i], &e, arena, &out[i], error));
    of[sources] = i;
    source[sources++] = e.source;
  }
  ft_compile_options options = codegen->compile;
  options.alone = alone;
  FT_TRY(ft_compile(&options, source, sources, arena, object, error));
  for (uint32_t i = 0; i < sources; i++) {
    ft_module *m = &out[of[i]];
    m->outcome = object[i].outcome;
    m->path = object[i].path;
    m->log = object[i].log;
    m->build_ns = object[i].build_ns;
  }
  return FT_OK;
}

// ---- for a GPU
// ----------------------------------------------------------------------------------

static ft_status find_chip(const ft_codegen *codegen, const ft_chip **out,
                           ft_error *error) {
  const ft_target *t = codegen->target;
  *out = ft_chip_find(t->name);
  if (strcmp(t->kind, "arch") != 0 || !*out)
    FT_FAIL(error, FT_UNAVAILABLE, "nothing is built for target %s", t->name);
  return FT_OK;
}

static ft_status open_nvrtc(ft_codegen *codegen, const ft_chip **out_chip,
                            ft_error *error) {
  FT_TRY(find_chip(codegen, out_chip, error));
  if (codegen->nvrtc) return FT_OK;
  return ft_nvrtc_open(codegen->allocator, &codegen->nvrtc, error);
}

static ft_module outline_of(const ft_emitted *e) {
  return (ft_module){.body_hash = e->cuda.source.body_hash,
                     .entry = e->cuda.source.entry,
                     .path = "",
                     .log = "",
                     .grid = e->kernel.grid,
                     .workspace_bytes = e->kernel.workspace_bytes,
                     .facts = unknown_facts(),
                     .work = e->cuda.work};
}

ft_status ft_codegen_outline(const ft_codegen *codegen, const ft_candidate *candidate,
                             ft_arena *arena, ft_module *out, ft_error *error) {
  const ft_chip *chip;
  ft_emitted e;
  const char *reason;
  FT_TRY(find_chip(codegen, &chip, error));
  FT_TRY(ft_codegen_print(codegen, candidate, arena, &e, &reason, error));
  refuse_module(out, reason);
  if (reason) return FT_OK;
  *out = outline_of(&e);
  out->outcome = FT_OUTCOME_OK;
  out->launch = ft_cuda_kernel_roomiest(&e.cuda, chip);
  return FT_OK;
}

static ft_status describe_gpu(const ft_candidate *candidate, const ft_emitted *e,
                              ft_arena *arena, ft_module *out, ft_error *error) {
  const ft_target *t = candidate->target;
  *out = outline_of(e);
  out->source = ft_codegen_full_text(candidate, e, arena);
  out->compiler = t->compiler_count ? t->compiler[0].name : "nvrtc";
  out->flags = ft_arena_printf(arena, "-arch=%s", t->name);
  FT_OOM_IF(!out->source || !out->flags, error);
  out->source_hash = ft_hash_bytes(out->source, strlen(out->source));
  return FT_OK;
}

// The candidates that have text: kernel[i] is of candidate of[i].
typedef struct printed {
  uint32_t count;
  uint32_t *of;
  ft_cuda_kernel *kernel;
  ft_cuda_source *source;
} printed;

static ft_status print_all(ft_codegen *codegen, const ft_candidate *candidate,
                           uint32_t count, ft_arena *arena, ft_module *out, printed *p,
                           ft_error *error) {
  p->count = 0;
  p->of = FT_NEW_ARRAY(arena, uint32_t, count);
  p->kernel = FT_NEW_ARRAY(arena, ft_cuda_kernel, count);
  p->source = FT_NEW_ARRAY(arena, ft_cuda_source, count);
  FT_OOM_IF(!p->of || !p->kernel || !p->source, error);
  for (uint32_t i = 0; i < count; i++) {
    ft_emitted e;
    const char *reason;
    FT_TRY(ft_codegen_print(codegen, &candidate[i], arena, &e, &reason, error));
    refuse_module(&out[i], reason);
    if (reason) continue;
    FT_TRY(describe_gpu(&candidate[i], &e, arena, &out[i], error));
    p->of[p->count] = i;
    p->kernel[p->count] = e.cuda;
    p->source[p->count++] = e.cuda.source;
  }
  return FT_OK;
}

static ft_status build_gpu(ft_codegen *codegen, const ft_candidate *candidate,
                           uint32_t count, ft_arena *arena, ft_module *out,
                           ft_error *error) {
  const ft_chip *chip;
  printed p;
  FT_TRY(open_nvrtc(codegen, &chip, error));
  FT_TRY(print_all(codegen, candidate, count, arena, out, &p, error));
  ft_cuda_object *object = FT_NEW_ARRAY(arena, ft_cuda_object, p.count);
  FT_OOM_IF(!object, error);
  ft_cubin_options options = {.nvrtc = codegen->nvrtc,
                              .folder = codegen->compile.folder,
                              .arch = codegen->target->name,
                              .jobs = codegen->compile.jobs,
                              .limit_ns = codegen->compile.limit_ns,
                              .stop = codegen->compile.stop};
  FT_TRY(ft_cubins_build(&options, p.source, p.count, arena, object, error));
  for (uint32_t i = 0; i < p.count; i++)
    FT_TRY(ft_cuda_kernel_finish(&p.kernel[i], &object[i], chip, arena, &out[p.of[i]],
                                 error));
  return FT_OK;
}

ft_status ft_codegen_build(void *self, const ft_candidate *candidate, uint32_t count,
                           bool alone, ft_arena *arena, ft_module *out, ft_error *error) {
  ft_codegen *codegen = self;
  if (ft_target_is_gpu(codegen->target))
    return build_gpu(codegen, candidate, count, arena, out, error);
  return build_cpu(codegen, candidate, count, alone, arena, out, error);
}
