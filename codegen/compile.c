#include "codegen/compile.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codegen/prelude.h"
#include "codegen/process.h"
#include "core/file.h"
#include "core/strbuf.h"

enum { PACK = 32, MAX_ARGUMENTS = 32, LOG_BYTES = 64 << 10 };

#define SIGNATURE                                                   \
  "(void *const *buffers, const int64_t *scalars, uint32_t block, " \
  "uint32_t thread, void *scratch)"

#define COMMON_FLAGS                                                                   \
  "-O3 -march=native -fopenmp-simd -fno-math-errno -ffp-contract=fast -std=c11 -fPIC " \
  "-shared -s -w"
#define WIDE_FLAG " -mprefer-vector-width=512"
#define GCC_FLAG " -fno-trapping-math"

// One run of a compiler.
typedef struct unit {
  const ft_compiler *compiler;
  const char *link;
  uint32_t count;
  uint32_t source[PACK];
  const char *c_path, *so_path, *log_path;
  const char *argv[MAX_ARGUMENTS];
} unit;

typedef struct batch {
  const ft_compile_options *options;
  const ft_source *source;
  uint32_t count;
  ft_arena *arena;
  ft_object *out;
  const char **path;  // [count] where each object belongs
  const char *temporary;
  uint32_t units_made;
} batch;

// ---- sources
// ----------------------------------------------------------------------------

bool ft_source_seal(ft_source *source, ft_arena *arena) {
  const char *text = ft_arena_printf(arena, "%s%s", source->prelude, source->body);
  if (!text) return false;
  source->body_hash = ft_hash_bytes(text, strlen(text));
  char hex[FT_HASH_HEX + 1];
  ft_hash_hex(&source->body_hash, hex);
  source->entry = ft_arena_printf(arena, "ft_k%.24s", hex);
  return source->entry != NULL;
}

const char *ft_source_function(const ft_source *source, ft_arena *arena) {
  return ft_arena_printf(arena, "int32_t %s" SIGNATURE " %s", source->entry,
                         source->body);
}

const char *ft_compile_flags(const ft_compiler *compiler, const ft_target *target) {
  bool is_wide = target->vector_bytes >= 64;
  if (compiler->is_clang) return is_wide ? COMMON_FLAGS WIDE_FLAG : COMMON_FLAGS;
  return is_wide ? COMMON_FLAGS GCC_FLAG WIDE_FLAG : COMMON_FLAGS GCC_FLAG;
}

const char *ft_compile_flags_with(const ft_compiler *compiler, const ft_target *target,
                                  const char *link, ft_arena *arena) {
  const char *flags = ft_compile_flags(compiler, target);
  return link ? ft_arena_printf(arena, "%s -l%s", flags, link) : flags;
}

// ---- the cache
// ------------------------------------------------------------------------------

static const char *object_path(const batch *b, const ft_source *s) {
  char hex[FT_HASH_HEX + 1];
  ft_hash_hex(&s->body_hash, hex);
  const ft_target *t = b->options->target;
  const char *flags = ft_compile_flags_with(s->compiler, t, s->link, b->arena);
  if (!flags) return NULL;
  const char *key =
      ft_arena_printf(b->arena, "%s\n%s\n%s\n%s\n%s\n%s\n%s%s%s", hex, s->compiler->name,
                      s->compiler->version, flags, t->device ? t->device : "",
                      t->isa ? t->isa : "", b->options->alone ? "alone" : "packed",
                      s->link ? "\n" : "", s->link && t->libraries ? t->libraries : "");
  if (!key) return NULL;
  ft_hash hash = ft_hash_bytes(key, strlen(key));
  ft_hash_hex(&hash, hex);
  return ft_arena_printf(b->arena, "%s/%s.so", b->options->folder, hex);
}

static bool is_cached(const char *path) {
  struct stat info;
  return !stat(path, &info) && S_ISREG(info.st_mode) && info.st_size > 0;
}

// Gives |from| the name |to| too, in one step.
static ft_status publish(const batch *b, const char *from, const char *to, uint32_t index,
                         ft_error *error) {
  const char *step = ft_arena_printf(b->arena, "%s/link%u", b->temporary, index);
  FT_OOM_IF(!step, error);
  unlink(step);
  if (link(from, step) || rename(step, to))
    FT_FAIL(error, FT_IO, "cannot put %s into the cache: %s", to, strerror(errno));
  return FT_OK;
}

// ---- units
// ------------------------------------------------------------------------------------

static const char *unit_text(const batch *b, const unit *u) {
  ft_strbuf functions = ft_strbuf_init(b->arena);
  for (uint32_t i = 0; i < u->count; i++) {
    const char *function = ft_source_function(&b->source[u->source[i]], b->arena);
    if (!function) return NULL;
    ft_strbuf_add(&functions, function);
  }
  const char *prelude = ft_prelude_for(functions.text, b->arena);
  if (!prelude || functions.failed) return NULL;
  return ft_arena_printf(b->arena, "%s%s", prelude, functions.text);
}

static bool fill_arguments(batch *b, unit *u) {
  char *flags =
      ft_arena_strdup(b->arena, ft_compile_flags(u->compiler, b->options->target));
  if (!flags) return false;
  uint32_t n = 0;
  u->argv[n++] = u->compiler->path;
  for (char *save = NULL, *w = strtok_r(flags, " ", &save); w;
       w = strtok_r(NULL, " ", &save)) {
    FT_ASSERT(n < MAX_ARGUMENTS - 8);
    u->argv[n++] = w;
  }
  u->argv[n++] = "-o";
  u->argv[n++] = u->so_path;
  u->argv[n++] = u->c_path;
  u->argv[n++] = "-Wl,--build-id=none";
  u->argv[n++] = "-Wl,--as-needed";
  u->argv[n++] = "-lm";
  if (!u->link) return true;
  u->argv[n] = ft_arena_printf(b->arena, "-l%s", u->link);
  return u->argv[n] != NULL;
}

static ft_status prepare_unit(batch *b, unit *u, ft_error *error) {
  // The file is called unit.c wherever it is: its name is in the object.
  const char *folder = ft_arena_printf(b->arena, "%s/%u", b->temporary, b->units_made++);
  FT_OOM_IF(!folder, error);
  FT_TRY(ft_folder_make(folder, error));
  u->c_path = ft_arena_printf(b->arena, "%s/unit.c", folder);
  u->so_path = ft_arena_printf(b->arena, "%s/unit.so", folder);
  u->log_path = ft_arena_printf(b->arena, "%s/log", folder);
  const char *text = unit_text(b, u);
  FT_OOM_IF(!u->c_path || !u->so_path || !u->log_path || !text, error);
  FT_OOM_IF(!fill_arguments(b, u), error);
  return ft_file_write(u->c_path, text, strlen(text), error);
}

static ft_status take_unit(batch *b, const unit *u, const ft_process *p,
                           ft_error *error) {
  const char *log = ft_log_read(u->log_path, LOG_BYTES, b->arena);
  ft_outcome outcome = p->timed_out        ? FT_OUTCOME_TIMEOUT
                       : p->exit_code == 0 ? FT_OUTCOME_OK
                                           : FT_OUTCOME_COMPILE_ERROR;
  for (uint32_t i = 0; i < u->count; i++) {
    uint32_t s = u->source[i];
    b->out[s] = (ft_object){outcome, "", log ? log : "", p->wall_ns / u->count};
    if (outcome != FT_OUTCOME_OK) continue;
    FT_TRY(publish(b, u->so_path, b->path[s], s, error));
    b->out[s].path = b->path[s];
  }
  return FT_OK;
}

static ft_status run_units(batch *b, unit *units, uint32_t count, ft_error *error) {
  if (!count) return FT_OK;
  ft_process *process = FT_NEW_ARRAY(b->arena, ft_process, count);
  FT_OOM_IF(!process, error);
  for (uint32_t i = 0; i < count; i++) {
    FT_TRY(prepare_unit(b, &units[i], error));
    process[i].argv = units[i].argv;
    process[i].log_path = units[i].log_path;
  }
  FT_TRY(ft_process_run(process, count, b->options->jobs, b->options->limit_ns,
                        b->options->stop, error));
  for (uint32_t i = 0; i < count; i++)
    FT_TRY(take_unit(b, &units[i], &process[i], error));
  return FT_OK;
}

// ---- a batch
// --------------------------------------------------------------------------------------

// The first source that is built to the same object.
static uint32_t first_like(const batch *b, uint32_t index) {
  uint32_t i = 0;
  while (strcmp(b->path[i], b->path[index])) i++;
  return i;
}

static bool is_equal(const char *a, const char *b) {
  return a == b || (a && b && !strcmp(a, b));
}

static bool takes(const unit *u, const ft_source *source, uint32_t pack) {
  return u->compiler == source->compiler && u->count < pack &&
         is_equal(u->link, source->link);
}

// Units of |pack| at most, one compiler and one library each, of the sources that
// |is_wanted|.
static uint32_t divide(const batch *b, const bool *is_wanted, uint32_t pack,
                       unit *units) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < b->count; i++) {
    if (!is_wanted[i]) continue;
    uint32_t u = 0;
    while (u < count && !takes(&units[u], &b->source[i], pack)) u++;
    if (u == count)
      units[count++] =
          (unit){.compiler = b->source[i].compiler, .link = b->source[i].link};
    units[u].source[units[u].count++] = i;
  }
  return count;
}

static ft_status build_wanted(batch *b, bool *is_wanted, uint32_t wanted,
                              ft_error *error) {
  unit *units = FT_NEW_ARRAY(b->arena, unit, wanted);
  FT_OOM_IF(!units, error);
  uint32_t jobs = b->options->jobs ? b->options->jobs : 1;
  uint32_t pack = b->options->alone ? 1 : (wanted + jobs - 1) / jobs;
  uint32_t count = divide(b, is_wanted, pack < PACK ? pack : PACK, units);
  FT_TRY(run_units(b, units, count, error));
  // Whose fault was it? One by one.
  uint32_t again = 0;
  for (uint32_t u = 0; u < count; u++) {
    for (uint32_t i = 0; i < units[u].count; i++) {
      uint32_t s = units[u].source[i];
      is_wanted[s] = units[u].count > 1 && b->out[s].outcome != FT_OUTCOME_OK;
      again += is_wanted[s];
    }
  }
  if (!again) return FT_OK;
  unit *single = FT_NEW_ARRAY(b->arena, unit, again);
  FT_OOM_IF(!single, error);
  return run_units(b, single, divide(b, is_wanted, 1, single), error);
}

static void remove_temporary(const batch *b) {
  char path[4200];
  static const char *const names[] = {"unit.c", "unit.so", "log"};
  for (uint32_t i = 0; i < b->units_made; i++) {
    for (int k = 0; k < 3; k++) {
      snprintf(path, sizeof path, "%s/%u/%s", b->temporary, i, names[k]);
      unlink(path);
    }
    snprintf(path, sizeof path, "%s/%u", b->temporary, i);
    rmdir(path);
  }
  rmdir(b->temporary);
}

static ft_status build_missing(batch *b, ft_error *error) {
  bool *is_wanted = FT_NEW_ARRAY(b->arena, bool, b->count);
  FT_OOM_IF(!is_wanted, error);
  uint32_t wanted = 0;
  for (uint32_t i = 0; i < b->count; i++) {
    if (first_like(b, i) != i) continue;
    b->out[i] = (ft_object){FT_OUTCOME_OK, b->path[i], "", 0};
    is_wanted[i] = !is_cached(b->path[i]);
    wanted += is_wanted[i];
  }
  if (!wanted) return FT_OK;
  static atomic_uint serial;
  b->temporary = ft_arena_printf(b->arena, "%s/tmp-%ld-%u", b->options->folder,
                                 (long)getpid(), atomic_fetch_add(&serial, 1));
  FT_OOM_IF(!b->temporary, error);
  FT_TRY(ft_folder_make(b->temporary, error));
  ft_status status = build_wanted(b, is_wanted, wanted, error);
  remove_temporary(b);
  return status;
}

ft_status ft_compile(const ft_compile_options *options, const ft_source *source,
                     uint32_t count, ft_arena *arena, ft_object *out, ft_error *error) {
  batch b = {
      .options = options, .source = source, .count = count, .arena = arena, .out = out};
  b.path = FT_NEW_ARRAY(arena, const char *, count);
  FT_OOM_IF(!b.path, error);
  for (uint32_t i = 0; i < count; i++) {
    b.path[i] = object_path(&b, &source[i]);
    FT_OOM_IF(!b.path[i], error);
  }
  FT_TRY(build_missing(&b, error));
  for (uint32_t i = 0; i < count; i++) out[i] = out[first_like(&b, i)];
  return FT_OK;
}
