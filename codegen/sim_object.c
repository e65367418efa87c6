#include "codegen/sim_object.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "codegen/codegen_private.h"
#include "codegen/process.h"
#include "codegen/simt_work.h"
#include "core/file.h"

enum { LOG_BYTES = 64 << 10 };

// One kernel's text, and the files of its object.
typedef struct unit {
  const char *name, *text;
  const char *c_path, *so_path, *log_path;
  const char *argv[12];
  ft_sim_entry *entry;
} unit;

typedef struct batch {
  ft_codegen *codegen;
  ft_arena *arena;
  const char *compiler, *folder;
  uint32_t count;
  unit *unit;    // distinct
  uint32_t *of;  // [candidates] its unit
} batch;

// ---- printing
// ---------------------------------------------------------------------------------

static ft_status print_named(ft_kir *kir, ft_arena *arena, const char **out_name,
                             const char **out_text, ft_simt_launch *launch,
                             ft_error *error) {
  FT_TRY(ft_print_sim(kir, "ft_sim", out_text, launch, error));
  ft_hash hash = ft_hash_bytes(*out_text, strlen(*out_text));
  char hex[FT_HASH_HEX + 1];
  ft_hash_hex(&hash, hex);
  *out_name = ft_arena_printf(arena, "ft_s%.24s", hex);
  FT_OOM_IF(!*out_name, error);
  return ft_print_sim(kir, *out_name, out_text, launch, error);
}

static uint32_t unit_named(batch *b, const char *name, const char *text) {
  for (uint32_t i = 0; i < b->count; i++)
    if (!strcmp(b->unit[i].name, name)) return i;
  b->unit[b->count] = (unit){.name = name, .text = text};
  return b->count++;
}

static ft_status print_one(batch *b, const ft_candidate *candidate, uint32_t *of,
                           ft_sim_kernel *out, ft_error *error) {
  ft_emitted e;
  ft_simt_launch launch;
  ft_kernel_work work;
  const char *name, *text;
  *out = (ft_sim_kernel){0};
  FT_TRY(ft_codegen_lower(b->codegen, candidate, b->arena, &e, &out->refusal, error));
  if (out->refusal) return FT_OK;
  FT_TRY(print_named(e.kernel.kir, b->arena, &name, &text, &launch, error));
  FT_TRY(ft_simt_work_of(e.kernel.kir, &work, error));
  out->grid = launch.grid;
  out->workspace_bytes = launch.workspace_bytes;
  out->has_copies = launch.has_copies;
  out->steps = work.steps;
  *of = unit_named(b, name, text);
  return FT_OK;
}

// ---- building
// ---------------------------------------------------------------------------------

static ft_status write_unit(batch *b, unit *u, ft_error *error) {
  u->c_path = ft_arena_printf(b->arena, "%s/%s.c", b->folder, u->name);
  u->so_path = ft_arena_printf(b->arena, "%s/%s.so", b->folder, u->name);
  u->log_path = ft_arena_printf(b->arena, "%s/%s.log", b->folder, u->name);
  const char *prelude = ft_sim_prelude_for(u->text, b->arena);
  FT_OOM_IF(!u->c_path || !u->so_path || !u->log_path || !prelude, error);
  const char *text = ft_arena_printf(b->arena, "%s%s", prelude, u->text);
  FT_OOM_IF(!text, error);
  const char *argv[] = {b->compiler, "-O1",      "-std=gnu11", "-w",  "-fPIC", "-shared",
                        "-o",        u->so_path, u->c_path,    "-lm", NULL};
  memcpy(u->argv, argv, sizeof argv);
  return ft_file_write(u->c_path, text, strlen(text), error);
}

static ft_status compile_units(batch *b, ft_error *error) {
  ft_process *process = FT_NEW_ARRAY(b->arena, ft_process, b->count);
  FT_OOM_IF(!process, error);
  for (uint32_t i = 0; i < b->count; i++) {
    FT_TRY(write_unit(b, &b->unit[i], error));
    process[i] = (ft_process){.argv = b->unit[i].argv, .log_path = b->unit[i].log_path};
  }
  const ft_compile_options *o = &b->codegen->compile;
  FT_TRY(ft_process_run(process, b->count, o->jobs, o->limit_ns, o->stop, error));
  for (uint32_t i = 0; i < b->count; i++) {
    if (process[i].exit_code == 0 && !process[i].timed_out) continue;
    const char *log = ft_log_read(b->unit[i].log_path, LOG_BYTES, b->arena);
    FT_FAIL(error, FT_INTERNAL, "a SIM print does not compile: %.300s", log ? log : "");
  }
  return FT_OK;
}

static void unload(void *library) {
  dlclose(library);
}

static ft_status load_unit(batch *b, unit *u, ft_error *error) {
  void *library = dlopen(u->so_path, RTLD_NOW | RTLD_LOCAL);
  if (!library) FT_FAIL(error, FT_INTERNAL, "a SIM object does not load: %s", dlerror());
  if (ft_arena_defer(b->arena, unload, library)) {
    dlclose(library);
    FT_FAIL(error, FT_OUT_OF_MEMORY, "out of memory in %s", __func__);
  }
  void *symbol = dlsym(library, u->name);
  if (!symbol) FT_FAIL(error, FT_INTERNAL, "a SIM object has no %s", u->name);
  memcpy(&u->entry, &symbol, sizeof symbol);
  return FT_OK;
}

static ft_status build_units(batch *b, ft_error *error) {
  FT_TRY(compile_units(b, error));
  for (uint32_t i = 0; i < b->count; i++) FT_TRY(load_unit(b, &b->unit[i], error));
  return FT_OK;
}

// What is loaded stays loaded without its file.
static void remove_files(const batch *b) {
  for (uint32_t i = 0; i < b->count; i++) {
    const char *paths[] = {b->unit[i].c_path, b->unit[i].so_path, b->unit[i].log_path};
    for (int k = 0; k < 3; k++)
      if (paths[k]) unlink(paths[k]);
  }
  rmdir(b->folder);
}

// ---- the whole
// --------------------------------------------------------------------------------

static ft_status find_compiler(batch *b, ft_error *error) {
  ft_compiler found[FT_MAX_COMPILERS];
  uint32_t count;
  FT_TRY(ft_compilers_find(b->arena, found, &count, error));
  if (count == 0)
    FT_FAIL(error, FT_UNAVAILABLE,
            "no C compiler found in PATH: install clang or gcc, or set FUSETUNE_CC");
  b->compiler = found[0].path;
  return FT_OK;
}

static ft_status make_folder(batch *b, ft_error *error) {
  // As compile.c names them, so that what a killed process leaves is swept.
  static atomic_uint serial = 1u << 24;
  b->folder = ft_arena_printf(b->arena, "%s/tmp-%ld-%u", b->codegen->compile.folder,
                              (long)getpid(), atomic_fetch_add(&serial, 1));
  FT_OOM_IF(!b->folder, error);
  return ft_folder_make(b->folder, error);
}

ft_status ft_codegen_simulate(ft_codegen *codegen, const ft_candidate *candidate,
                              uint32_t count, ft_arena *arena, ft_sim_kernel *out,
                              ft_error *error) {
  batch b = {.codegen = codegen,
             .arena = arena,
             .unit = FT_NEW_ARRAY(arena, unit, count),
             .of = FT_NEW_ARRAY(arena, uint32_t, count)};
  FT_OOM_IF(!b.unit || !b.of, error);
  for (uint32_t i = 0; i < count; i++)
    FT_TRY(print_one(&b, &candidate[i], &b.of[i], &out[i], error));
  if (b.count == 0) return FT_OK;
  FT_TRY(find_compiler(&b, error));
  FT_TRY(make_folder(&b, error));
  ft_status status = build_units(&b, error);
  remove_files(&b);
  FT_TRY(status);
  for (uint32_t i = 0; i < count; i++)
    if (!out[i].refusal) out[i].entry = b.unit[b.of[i]].entry;
  return FT_OK;
}
