#include "measure/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fenv.h>
#include <string.h>
#include <sys/stat.h>

typedef struct object {
  void *handle;
  dev_t device;
  ino_t inode;
  off_t size;
  struct timespec modified;
  uint64_t stamp;
  struct object *next;
  char path[];
} object;

struct ft_library {
  const ft_allocator *allocator;
  object *first;
  uint32_t count;
  uint64_t clock;
};

ft_status ft_library_create(const ft_allocator *allocator, ft_library **out,
                            ft_error *error) {
  *out = ft_allocate(allocator, sizeof **out, 0);
  FT_OOM_IF(!*out, error);
  **out = (ft_library){.allocator = allocator};
  return FT_OK;
}

static void unload(ft_library *library, object *victim) {
  object **link = &library->first;
  while (*link != victim) link = &(*link)->next;
  *link = victim->next;
  library->count--;
  dlclose(victim->handle);
  ft_release(library->allocator, victim);
}

void ft_library_destroy(ft_library *library) {
  if (!library) return;
  while (library->first) unload(library, library->first);
  ft_release(library->allocator, library);
}

static bool is_same(const object *o, const char *path, const struct stat *st) {
  return o->device == st->st_dev && o->inode == st->st_ino && o->size == st->st_size &&
         o->modified.tv_sec == st->st_mtim.tv_sec &&
         o->modified.tv_nsec == st->st_mtim.tv_nsec && strcmp(o->path, path) == 0;
}

// The loader looks names up before it looks at files: an older file of this name must
// go first.
static void unload_path(ft_library *library, const char *path) {
  object *o = library->first;
  while (o && strcmp(o->path, path) != 0) o = o->next;
  if (o) unload(library, o);
}

static ft_status load(ft_library *library, const char *path, const struct stat *st,
                      object **out, ft_error *error) {
  size_t length = strlen(path) + 1;
  object *o = ft_allocate(library->allocator, sizeof *o + length, 0);
  FT_OOM_IF(!o, error);
  *o = (object){.device = st->st_dev,
                .inode = st->st_ino,
                .size = st->st_size,
                .modified = st->st_mtim};
  memcpy(o->path, path, length);
  unload_path(library, path);
  fenv_t before;
  fegetenv(&before);
  o->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  fesetenv(&before);
  if (!o->handle) {
    ft_release(library->allocator, o);
    FT_FAIL(error, FT_NOT_FOUND, "cannot load: %s", dlerror());
  }
  o->next = library->first;
  library->first = o;
  library->count++;
  *out = o;
  return FT_OK;
}

ft_status ft_library_symbol(ft_library *library, const char *path, const char *symbol,
                            void **out, ft_error *error) {
  struct stat st;
  *out = NULL;
  if (stat(path, &st) != 0)
    FT_FAIL(error, FT_NOT_FOUND, "cannot load %s: %s", path, strerror(errno));
  object *o = library->first;
  while (o && !is_same(o, path, &st)) o = o->next;
  if (!o) FT_TRY(load(library, path, &st, &o, error));
  o->stamp = ++library->clock;
  *out = dlsym(o->handle, symbol);
  if (!*out) FT_FAIL(error, FT_NOT_FOUND, "no symbol '%s' in %s", symbol, path);
  return FT_OK;
}

void ft_library_trim(ft_library *library) {
  while (library->count > FT_LIBRARY_KEPT) {
    object *oldest = library->first;
    for (object *o = oldest; o; o = o->next)
      if (o->stamp < oldest->stamp) oldest = o;
    unload(library, oldest);
  }
}
