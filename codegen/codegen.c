#include "codegen/codegen.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/compile.h"
#include "codegen/prelude.h"
#include "codegen/print_c.h"
#include "codegen/process.h"
#include "codegen/sweep.h"
#include "codegen/tactic.h"
#include "core/file.h"

struct ft_codegen {
  const ft_allocator *allocator;
  ft_arena *arena;
  const ft_target *target;
  ft_compile_options compile;
  bool test_tactics;
};

// A candidate as text, with what its launch needs.
typedef struct emitted {
  ft_source source;
  ft_kernel kernel;
} emitted;

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
  if (codegen) ft_arena_destroy(codegen->arena);
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
    // The refusal of the tactic made for such groups says most.
    bool is_meant = ir->refusal ? !strcmp(list[i]->name, "loop")
                                : !ir->reduced == !strcmp(list[i]->name, "pointwise");
    if (fit < 0 && is_meant && fit > closest) {
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

// *reason is set when the candidate cannot work.
static ft_status make_text(const ft_codegen *codegen, const ft_candidate *candidate,
                           ft_arena *arena, emitted *out, const char **reason,
                           ft_error *error) {
  ft_group_ir *ir;
  *out = (emitted){0};
  FT_TRY(make_ir(candidate->workload, arena, &ir, error));
  *reason = refusal(codegen, candidate, ir, arena);
  if (*reason) return FT_OK;
  const ft_tactic *tactic = tactic_named(codegen, candidate->tactic);
  FT_TRY(tactic->build(ir, &candidate->schedule, arena, &out->kernel, error));
  out->source.body = out->kernel.body;
  if (out->kernel.kir) FT_TRY(ft_print_c(out->kernel.kir, &out->source.body, error));
  out->source.prelude = ft_prelude_for(out->source.body, arena);
  out->source.compiler = ft_schedule_compiler(&candidate->schedule, candidate->target);
  out->source.link = out->kernel.link;
  FT_OOM_IF(!out->source.prelude || !ft_source_seal(&out->source, arena), error);
  return FT_OK;
}

// A kernel's source as people see it: who made it, from what, and the whole text.
static const char *full_text(const ft_candidate *candidate, const emitted *e,
                             ft_arena *arena) {
  char hash[FT_HASH_TEXT + 1];
  ft_hash_text(&candidate->workload->hash, hash);
  const char *schedule = ft_schedule_json(&candidate->schedule, arena);
  const char *function = ft_source_function(&e->source, arena);
  if (!schedule || !function) return NULL;
  return ft_arena_printf(arena,
                         "// fusetune " FT_VERSION
                         ", codegen %d, ABI ft-cpu-1\n"
                         "// workload %s\n// tactic %s, schedule %s\n"
                         "// blocks %u, scratch %llu bytes, workspace %llu bytes\n%s%s",
                         FT_CODEGEN_VERSION, hash, candidate->tactic, schedule,
                         e->kernel.grid, (unsigned long long)e->kernel.scratch_bytes,
                         (unsigned long long)e->kernel.workspace_bytes, e->source.prelude,
                         function);
}

static ft_status emit(void *self, const ft_candidate *candidate, ft_arena *arena,
                      const char **out_source, ft_hash *out_body_hash, ft_error *error) {
  emitted e;
  const char *reason;
  FT_TRY(make_text(self, candidate, arena, &e, &reason, error));
  if (reason) FT_FAIL(error, FT_INVALID_ARGUMENT, "%s: %s", candidate->tactic, reason);
  *out_source = full_text(candidate, &e, arena);
  FT_OOM_IF(!*out_source, error);
  *out_body_hash = e.source.body_hash;
  return FT_OK;
}

// ---- build
// -----------------------------------------------------------------------------------

static ft_static_facts unknown_facts(void) {
  return (ft_static_facts){-1, -1, -1, -1, -1, -1, -1};
}

static ft_status describe(const ft_candidate *candidate, const emitted *e,
                          ft_arena *arena, ft_module *out, ft_error *error) {
  out->source = full_text(candidate, e, arena);
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

static ft_status build(void *self, const ft_candidate *candidate, uint32_t count,
                       bool alone, ft_arena *arena, ft_module *out, ft_error *error) {
  ft_codegen *codegen = self;
  ft_source *source = FT_NEW_ARRAY(arena, ft_source, count);
  uint32_t *of = FT_NEW_ARRAY(arena, uint32_t, count);
  ft_object *object = FT_NEW_ARRAY(arena, ft_object, count);
  FT_OOM_IF(!source || !of || !object, error);
  uint32_t sources = 0;
  for (uint32_t i = 0; i < count; i++) {
    emitted e;
    const char *reason;
    FT_TRY(make_text(codegen, &candidate[i], arena, &e, &reason, error));
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

ft_builder ft_codegen_builder(ft_codegen *codegen) {
  return (ft_builder){codegen, match, space, check, emit, build};
}
