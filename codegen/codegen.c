#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/codegen_private.h"
#include "codegen/prelude.h"
#include "codegen/print_c.h"
#include "codegen/process.h"
#include "codegen/sweep.h"
#include "core/file.h"

// ---- life
// --------------------------------------------------------------------------------

static ft_status fill(ft_codegen *codegen, const ft_codegen_options *options,
                      ft_error *error) {
  char absolute[PATH_MAX];
  FT_TRY(ft_folder_make(options->cache_folder, error));
  if (!realpath(options->cache_folder, absolute))
    FT_FAIL(error, FT_IO, "cannot resolve folder %s", options->cache_folder);
  codegen->compile.folder = ft_arena_strdup(codegen->arena, absolute);
  FT_OOM_IF(!codegen->compile.folder, error);
  ft_cache_sweep(absolute);
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  codegen->compile.target = codegen->target;
  codegen->compile.jobs = options->jobs ? options->jobs : cores > 0 ? (uint32_t)cores : 1;
  codegen->compile.limit_ns =
      options->compile_limit_ns ? options->compile_limit_ns : 60000000000ull;
  codegen->compile.stop = options->stop;
  codegen->test_tactics = options->test_tactics;
  return FT_OK;
}

ft_status ft_codegen_create(const ft_codegen_options *options, const ft_target *target,
                            const ft_allocator *allocator, ft_codegen **out,
                            ft_error *error) {
  *out = NULL;
  if (!options->cache_folder || !*options->cache_folder)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "cache_folder is empty");
  ft_arena *arena = ft_arena_create(allocator);
  ft_codegen *codegen = arena ? FT_NEW(arena, ft_codegen) : NULL;
  if (!codegen) {
    ft_arena_destroy(arena);
    FT_OOM_IF(true, error);
  }
  codegen->allocator = allocator;
  codegen->arena = arena;
  codegen->target = target;
  ft_status status = fill(codegen, options, error);
  if (status == FT_OK)
    *out = codegen;
  else
    ft_arena_destroy(arena);
  return status;
}

void ft_codegen_destroy(ft_codegen *codegen) {
  if (!codegen) return;
  ft_nvrtc_close(codegen->nvrtc);
  ft_arena_destroy(codegen->arena);
}

// ---- match, space, check
// -----------------------------------------------------------------

static bool has_library(const ft_target *target, const char *name) {
  const char *at = target->libraries ? target->libraries : "";
  size_t length = strlen(name);
  for (; (at = strstr(at, name)); at += length)  // "onednn-2.6.3"
    if (at[length] == '-') return true;
  return false;
}

static bool is_offered(const ft_codegen *codegen, const ft_tactic *tactic) {
  if (tactic->is_gpu != ft_target_is_gpu(codegen->target)) return false;
  if (tactic->is_test && !codegen->test_tactics) return false;
  return !tactic->library || has_library(codegen->target, tactic->library);
}

static const ft_tactic *tactic_named(const ft_codegen *codegen, const char *name) {
  const ft_tactic *tactic = ft_tactic_find(name);
  return tactic && is_offered(codegen, tactic) ? tactic : NULL;
}

bool ft_codegen_calls_library(const char *name) {
  const ft_tactic *tactic = ft_tactic_find(name);
  return tactic && tactic->library;
}

// Keeps |names| sorted by |fits|, best first; equal ones in order of arrival.
static uint32_t insert_name(const char **names, double *fits, uint32_t count,
                            uint32_t room, const char *name, double fit) {
  uint32_t at = count;
  while (at > 0 && fits[at - 1] < fit) at--;
  if (at == room) return count;
  uint32_t kept = count < room ? count + 1 : room;
  for (uint32_t i = kept - 1; i > at; i--) {
    names[i] = names[i - 1];
    fits[i] = fits[i - 1];
  }
  names[at] = name;
  fits[at] = fit;
  return kept;
}

// The group's IR; of a group that has none only why.
static ft_status make_ir(const ft_workload *workload, ft_arena *arena, ft_group_ir **out,
                         ft_error *error) {
  const char *reason;
  FT_TRY(ft_group_ir_make(workload, arena, out, &reason, error));
  if (*out) return FT_OK;
  *out = FT_NEW(arena, ft_group_ir);
  FT_OOM_IF(!*out, error);
  (*out)->workload = workload;
  (*out)->refusal = reason;
  return FT_OK;
}

// The tactic whose refusal says most of a group.
static bool is_meant(const ft_tactic *tactic, const ft_group_ir *ir) {
  const char *name = tactic->is_gpu ? tactic->name + strlen("simt_") : tactic->name;
  return ir->refusal ? !strcmp(name, "loop") : !ir->reduced == !strcmp(name, "pointwise");
}

static uint32_t match(void *self, const ft_workload *workload, ft_arena *arena,
                      const char **out, uint32_t room, const char **reason) {
  const ft_codegen *codegen = self;
  enum { MOST = 32 };
  double fits[MOST];
  ft_group_ir *ir;
  ft_error error;
  uint32_t count = 0, tactics;
  *reason = "";
  if (make_ir(workload, arena, &ir, &error) != FT_OK) {
    *reason = "out of memory";
    return 0;
  }
  if (room > MOST) room = MOST;
  const ft_tactic *const *list = ft_tactics(&tactics);
  double closest = -2;
  for (uint32_t i = 0; i < tactics; i++) {
    if (!is_offered(codegen, list[i])) continue;
    const char *why = NULL;
    double fit = list[i]->match(ir, arena, &why);
    if (fit >= 0) count = insert_name(out, fits, count, room, list[i]->name, fit);
    if (fit < 0 && is_meant(list[i], ir) && fit > closest) {
      closest = fit;
      *reason = why ? why : "out of memory";
    }
  }
  return count;
}

static ft_status find_tactic(const ft_codegen *codegen, const char *name,
                             const ft_tactic **out, ft_error *error) {
  *out = tactic_named(codegen, name);
  if (!*out) FT_FAIL(error, FT_INVALID_ARGUMENT, "no tactic %s", name);
  return FT_OK;
}

static ft_status space(void *self, const ft_workload *workload, const char *name,
                       const ft_target *target, ft_arena *arena, ft_schedule **out,
                       uint32_t *out_count, ft_error *error) {
  const ft_tactic *tactic;
  ft_group_ir *ir;
  *out_count = 0;
  FT_TRY(find_tactic(self, name, &tactic, error));
  FT_TRY(make_ir(workload, arena, &ir, error));
  const char *reason = NULL;
  if (tactic->match(ir, arena, &reason) < 0)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%s: %s", name,
            reason ? reason : "out of memory");
  ft_schedules list = {.arena = arena};
  tactic->space(ir, target, &list);
  FT_OOM_IF(list.failed, error);
  *out = list.item;
  *out_count = list.count;
  return FT_OK;
}

static const char *refusal(const ft_codegen *codegen, const ft_candidate *candidate,
                           const ft_group_ir *ir, ft_arena *arena) {
  const ft_tactic *tactic = tactic_named(codegen, candidate->tactic);
  if (!tactic) return ft_arena_printf(arena, "no tactic %s", candidate->tactic);
  const char *reason = NULL;
  if (tactic->match(ir, arena, &reason) < 0) return reason;
  return tactic->check(ir, candidate->target, &candidate->schedule, arena);
}

static const char *check(void *self, const ft_candidate *candidate, ft_arena *arena) {
  ft_group_ir *ir;
  ft_error error;
  if (make_ir(candidate->workload, arena, &ir, &error) != FT_OK) return "out of memory";
  return refusal(self, candidate, ir, arena);
}

// ---- emit
// -----------------------------------------------------------------------------------

ft_status ft_codegen_lower(const ft_codegen *codegen, const ft_candidate *candidate,
                           ft_arena *arena, ft_emitted *out, const char **reason,
                           ft_error *error) {
  ft_group_ir *ir;
  *out = (ft_emitted){0};
  FT_TRY(make_ir(candidate->workload, arena, &ir, error));
  *reason = refusal(codegen, candidate, ir, arena);
  if (*reason) return FT_OK;
  const ft_tactic *tactic = tactic_named(codegen, candidate->tactic);
  return tactic->build(ir, &candidate->schedule, arena, &out->kernel, error);
}

static ft_status print_cpu(const ft_candidate *candidate, ft_arena *arena,
                           ft_emitted *out, ft_error *error) {
  out->source.body = out->kernel.body;
  if (out->kernel.kir) FT_TRY(ft_print_c(out->kernel.kir, &out->source.body, error));
  out->source.prelude = ft_prelude_for(out->source.body, arena);
  out->source.compiler = ft_schedule_compiler(&candidate->schedule, candidate->target);
  out->source.link = out->kernel.link;
  FT_OOM_IF(!out->source.prelude || !ft_source_seal(&out->source, arena), error);
  return FT_OK;
}

static ft_status print_gpu(ft_arena *arena, ft_emitted *out, const char **reason,
                           ft_error *error) {
  FT_TRY(ft_cuda_kernel_make(out->kernel.kir, arena, &out->cuda, reason, error));
  if (*reason) return FT_OK;
  out->kernel.grid = (uint32_t)out->cuda.launch.grid;
  return FT_OK;
}

ft_status ft_codegen_print(const ft_codegen *codegen, const ft_candidate *candidate,
                           ft_arena *arena, ft_emitted *out, const char **reason,
                           ft_error *error) {
  FT_TRY(ft_codegen_lower(codegen, candidate, arena, out, reason, error));
  if (*reason) return FT_OK;
  return ft_target_is_gpu(codegen->target) ? print_gpu(arena, out, reason, error)
                                           : print_cpu(candidate, arena, out, error);
}

static const char *launch_text(const ft_emitted *e, ft_arena *arena) {
  unsigned long long workspace = e->kernel.workspace_bytes;
  const ft_simt_launch *l = &e->cuda.launch;
  if (e->cuda.source.text)
    return ft_arena_printf(arena,
                           "// blocks %u of %u threads, %llu bytes of %s shared memory, "
                           "workspace %llu bytes",
                           e->kernel.grid, l->threads,
                           (unsigned long long)l->shared_bytes,
                           l->is_shared_dynamic ? "dynamic" : "static", workspace);
  return ft_arena_printf(arena, "// blocks %u, scratch %llu bytes, workspace %llu bytes",
                         e->kernel.grid, (unsigned long long)e->kernel.scratch_bytes,
                         workspace);
}

const char *ft_codegen_full_text(const ft_candidate *candidate, const ft_emitted *e,
                                 ft_arena *arena) {
  char hash[FT_HASH_TEXT + 1];
  ft_hash_text(&candidate->workload->hash, hash);
  bool is_cuda = e->cuda.source.text != NULL;
  const char *schedule = ft_schedule_json(&candidate->schedule, arena);
  const char *launch = launch_text(e, arena);
  const char *function =
      is_cuda ? e->cuda.source.text : ft_source_function(&e->source, arena);
  if (!schedule || !function || !launch) return NULL;
  return ft_arena_printf(arena,
                         "// fusetune " FT_VERSION
                         ", codegen %d, ABI %s\n"
                         "// workload %s\n// tactic %s, schedule %s\n%s\n%s%s",
                         FT_CODEGEN_VERSION, is_cuda ? "ft-cuda-1" : "ft-cpu-1", hash,
                         candidate->tactic, schedule, launch,
                         is_cuda ? "" : e->source.prelude, function);
}

static ft_status emit(void *self, const ft_candidate *candidate, ft_arena *arena,
                      const char **out_source, ft_hash *out_body_hash, ft_error *error) {
  ft_emitted e;
  const char *reason;
  FT_TRY(ft_codegen_print(self, candidate, arena, &e, &reason, error));
  if (reason) FT_FAIL(error, FT_INVALID_ARGUMENT, "%s: %s", candidate->tactic, reason);
  *out_source = ft_codegen_full_text(candidate, &e, arena);
  FT_OOM_IF(!*out_source, error);
  *out_body_hash = e.cuda.source.text ? e.cuda.source.body_hash : e.source.body_hash;
  return FT_OK;
}

ft_builder ft_codegen_builder(ft_codegen *codegen) {
  return (ft_builder){codegen, match, space, check, emit, ft_codegen_build};
}
