// Which C compilers there are: clang, clang-NN, gcc, gcc-NN in PATH, or the one that
// FUSETUNE_CC names. Each is asked for its version once.
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "codegen/process.h"

enum { MAX_FOUND = 64 };

typedef struct finder {
  ft_arena *arena;
  ft_compiler found[MAX_FOUND];
  uint32_t count;
  const char *log;  // a temporary file
} finder;

// "clang", "clang-14", "gcc", "gcc-12"
static bool is_compiler_name(const char *name) {
  size_t stem = !strncmp(name, "clang", 5) ? 5 : !strncmp(name, "gcc", 3) ? 3 : 0;
  if (!stem) return false;
  if (!name[stem]) return true;
  if (name[stem] != '-' || !name[stem + 1]) return false;
  for (const char *c = name + stem + 1; *c; c++) {
    if (!isdigit((unsigned char)*c)) return false;
  }
  return true;
}

// The last word of the first line that starts with a digit: "14.0.6".
static char *version_in(char *text, ft_arena *arena) {
  text[strcspn(text, "\n")] = '\0';
  const char *version = NULL;
  for (char *save = NULL, *w = strtok_r(text, " ", &save); w;
       w = strtok_r(NULL, " ", &save)) {
    if (isdigit((unsigned char)*w)) version = w;
  }
  return version ? ft_arena_strdup(arena, version) : NULL;
}

static bool is_known(const finder *f, const char *name) {
  for (uint32_t i = 0; i < f->count; i++) {
    if (!strcmp(f->found[i].name, name)) return true;
  }
  return false;
}

// Asks |path|; something that is not a working compiler is passed over.
static ft_status ask(finder *f, const char *path, ft_error *error) {
  const char *argv[] = {path, "--version", NULL};
  ft_process p = {.argv = argv, .log_path = f->log};
  if (ft_process_run(&p, 1, 1, 10000000000ull, NULL, NULL) != FT_OK || p.exit_code != 0)
    return FT_OK;
  char *text = ft_log_read(f->log, 4096, f->arena);
  FT_OOM_IF(!text, error);
  bool is_clang = strstr(text, "clang") != NULL;
  char *version = version_in(text, f->arena);
  if (!version || f->count == MAX_FOUND) return FT_OK;
  int major = (int)strcspn(version, ".");
  const char *name =
      ft_arena_printf(f->arena, "%s-%.*s", is_clang ? "clang" : "gcc", major, version);
  char *kept = ft_arena_strdup(f->arena, path);
  FT_OOM_IF(!name || !kept, error);
  if (is_known(f, name)) return FT_OK;
  f->found[f->count++] = (ft_compiler){name, version, kept, is_clang};
  return FT_OK;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static ft_status search_folder(finder *f, const char *folder, ft_error *error) {
  DIR *dir = opendir(folder);
  if (!dir) return FT_OK;
  char *names[MAX_FOUND];
  size_t count = 0;
  for (struct dirent *entry; (entry = readdir(dir)) && count < MAX_FOUND;) {
    if (!is_compiler_name(entry->d_name)) continue;
    names[count] = ft_arena_printf(f->arena, "%s/%s", folder, entry->d_name);
    if (names[count]) count++;
  }
  closedir(dir);
  qsort(names, count, sizeof *names, by_name);
  for (size_t i = 0; i < count; i++) {
    if (!access(names[i], X_OK)) FT_TRY(ask(f, names[i], error));
  }
  return FT_OK;
}

static ft_status search_path(finder *f, const char *only, ft_error *error) {
  const char *path = getenv("PATH");
  char *copy = ft_arena_strdup(f->arena, path ? path : "/usr/local/bin:/usr/bin:/bin");
  FT_OOM_IF(!copy, error);
  for (char *save = NULL, *folder = strtok_r(copy, ":", &save); folder;
       folder = strtok_r(NULL, ":", &save)) {
    if (!only) {
      FT_TRY(search_folder(f, folder, error));
      continue;
    }
    char *full = ft_arena_printf(f->arena, "%s/%s", folder, only);
    FT_OOM_IF(!full, error);
    if (!access(full, X_OK) && !f->count) FT_TRY(ask(f, full, error));
  }
  return FT_OK;
}

// clang first, then newest first.
static int by_preference(const void *a, const void *b) {
  const ft_compiler *x = a, *y = b;
  if (x->is_clang != y->is_clang) return x->is_clang ? -1 : 1;
  long p = strtol(x->version, NULL, 10), q = strtol(y->version, NULL, 10);
  if (p != q) return p > q ? -1 : 1;
  return strcmp(x->name, y->name);
}

static ft_status find(finder *f, ft_error *error) {
  const char *only = getenv("FUSETUNE_CC");
  if (only && strchr(only, '/')) return ask(f, only, error);
  return search_path(f, only && *only ? only : NULL, error);
}

ft_status ft_compilers_find(ft_arena *arena, ft_compiler out[FT_MAX_COMPILERS],
                            uint32_t *out_count, ft_error *error) {
  *out_count = 0;
  finder *f = FT_NEW(arena, finder);
  FT_OOM_IF(!f, error);
  f->arena = arena;
  char log[] = P_tmpdir "/fusetune-version-XXXXXX";
  int fd = mkstemp(log);
  if (fd < 0) FT_FAIL(error, FT_IO, "cannot make a temporary file in %s", P_tmpdir);
  close(fd);
  f->log = log;
  ft_status status = find(f, error);
  unlink(log);
  FT_TRY(status);
  const char *only = getenv("FUSETUNE_CC");
  if (!f->count && only && *only)
    FT_FAIL(error, FT_UNAVAILABLE, "FUSETUNE_CC names %s, which is no working compiler",
            only);
  qsort(f->found, f->count, sizeof *f->found, by_preference);
  for (uint32_t i = 0; i < f->count && i < FT_MAX_COMPILERS; i++)
    out[(*out_count)++] = f->found[i];
  return FT_OK;
}
