// Invariants:
//  1. A location is relative and has no ".." component, whatever it would resolve to.
//  2. No symbolic link and no magic link is followed, at any component, so what is
//     opened lies beneath the folder however the tree changes while we look.
//  3. Only regular files are opened for reading, and opening never waits (FIFOs).
//  4. offset + bytes is compared with the file's size, without overflow, before a
//     pointer is made.
#include "graph/external_data.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct ft_external_file {
  struct ft_external_file *next;
  ft_span location;
  void *data;  // NULL when the file is empty
  size_t size;
} ft_external_file;

enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY };

ft_external_files ft_external_files_init(const char *folder, ft_arena *arena) {
  return (ft_external_files){arena, folder, NULL};
}

static ft_status check_location(ft_span location, ft_error *error) {
  if (location.size == 0 || !ft_span_is_text(location))
    FT_FAIL(error, FT_REFUSED, "external data without a usable location");
  if (location.data[0] == '/')
    FT_FAIL(error, FT_REFUSED, "external data '%.*s' is an absolute path",
            FT_SPAN_SHOW(location));
  const char *at = (const char *)location.data, *end = at + location.size;
  while (at < end) {
    const char *slash = memchr(at, '/', (size_t)(end - at));
    const char *stop = slash ? slash : end;
    if (stop - at == 2 && at[0] == '.' && at[1] == '.')
      FT_FAIL(error, FT_REFUSED, "external data '%.*s' leaves the model's folder",
              FT_SPAN_SHOW(location));
    at = stop + 1;
  }
  return FT_OK;
}

static ft_status open_failed(const char *location, ft_error *error) {
  if (errno == ELOOP || errno == EXDEV || errno == ENOTDIR)
    FT_FAIL(error, FT_REFUSED,
            "external data '%s' is reached through a link or leaves the model's folder",
            location);
  FT_FAIL(error, FT_IO, "external data '%s': %s", location, strerror(errno));
}

ft_status ft_external_open_beneath(int folder, const char *location, int *out_fd,
                                   ft_error *error) {
  struct open_how how = {
      .flags = OPEN_FLAGS,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  long fd = syscall(SYS_openat2, folder, location, &how, sizeof how);
  if (fd < 0 && (errno == ENOSYS || errno == EPERM))
    return ft_external_open_walking(folder, location, out_fd, error);
  if (fd < 0) return open_failed(location, error);
  *out_fd = (int)fd;
  return FT_OK;
}

// The length of the first component; the rest starts after its slashes.
static size_t component(const char *path, const char **out_rest) {
  size_t size = strcspn(path, "/");
  *out_rest = path + size + strspn(path + size, "/");
  return size;
}

ft_status ft_external_open_walking(int folder, const char *location, int *out_fd,
                                   ft_error *error) {
  int at = dup(folder);
  const char *path = location, *rest;
  while (at >= 0 && *path) {
    char name[256];
    size_t size = component(path, &rest);
    int next = -1;
    if (size < sizeof name) {
      memcpy(name, path, size);
      name[size] = 0;
      next = openat(at, name, OPEN_FLAGS | (*rest ? O_DIRECTORY : 0));
    } else {
      errno = ENAMETOOLONG;
    }
    int saved = errno;
    close(at);
    errno = saved;
    at = next;
    path = rest;
  }
  if (at < 0) return open_failed(location, error);
  *out_fd = at;
  return FT_OK;
}

static void unmap(void *ctx) {
  ft_external_file *file = ctx;
  if (file->data) munmap(file->data, file->size);
}

static ft_status map_descriptor(int fd, ft_external_file *file, ft_error *error) {
  struct stat st;
  if (fstat(fd, &st) != 0)
    FT_FAIL(error, FT_IO, "external data '%.*s': %s", FT_SPAN_SHOW(file->location),
            strerror(errno));
  if (!S_ISREG(st.st_mode))
    FT_FAIL(error, FT_REFUSED, "external data '%.*s' is not a regular file",
            FT_SPAN_SHOW(file->location));
  file->size = (size_t)st.st_size;
  if (file->size == 0) return FT_OK;
  void *data = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED)
    FT_FAIL(error, FT_IO, "external data '%.*s' cannot be mapped: %s",
            FT_SPAN_SHOW(file->location), strerror(errno));
  file->data = data;
  return FT_OK;
}

static ft_status open_location(const char *folder, const char *location, int *out_fd,
                               ft_error *error) {
  int at = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (at < 0)
    FT_FAIL(error, FT_IO, "the model's folder '%s': %s", folder, strerror(errno));
  ft_status status = ft_external_open_beneath(at, location, out_fd, error);
  close(at);
  return status;
}

static ft_status open_file(ft_external_files *files, ft_span location,
                           ft_external_file **out, ft_error *error) {
  ft_external_file *file = FT_NEW(files->arena, ft_external_file);
  char *path = ft_arena_strndup(files->arena, (const char *)location.data, location.size);
  FT_OOM_IF(!file || !path, error);
  file->location = location;
  FT_OOM_IF(ft_arena_defer(files->arena, unmap, file), error);
  int fd;
  FT_TRY(open_location(files->folder, path, &fd, error));
  ft_status status = map_descriptor(fd, file, error);
  close(fd);
  if (status != FT_OK) return status;
  file->next = files->first;
  files->first = file;
  *out = file;
  return FT_OK;
}

static ft_external_file *find_file(const ft_external_files *files, ft_span location) {
  ft_external_file *file = files->first;
  while (file && !ft_span_equal(file->location, location)) file = file->next;
  return file;
}

ft_status ft_external_map(ft_external_files *files, ft_span location, uint64_t offset,
                          uint64_t bytes, const void **out, ft_error *error) {
  FT_TRY(check_location(location, error));
  if (!files->folder)
    FT_FAIL(error, FT_REFUSED,
            "external data '%.*s': the model came without a folder it may read from",
            FT_SPAN_SHOW(location));
  ft_external_file *file = find_file(files, location);
  if (!file) FT_TRY(open_file(files, location, &file, error));
  if (offset > file->size || bytes > file->size - offset)
    FT_FAIL(error, FT_REFUSED,
            "external data '%.*s' has %zu bytes: %llu at offset %llu pass its end",
            FT_SPAN_SHOW(location), file->size, (unsigned long long)bytes,
            (unsigned long long)offset);
  *out = file->size ? (const char *)file->data + offset : (const char *)file;
  return FT_OK;
}
