#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ft_status io_error(ft_error *error, const char *what, const char *path) {
  return ft_error_set(error, errno == ENOENT ? FT_NOT_FOUND : FT_IO, "%s '%s': %s", what,
                      path, strerror(errno));
}

static int read_all(int fd, char *data, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = read(fd, data + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return -1;
    done += (size_t)n;
  }
  return 0;
}

static int write_all(int fd, const char *data, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = write(fd, data + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return -1;
    done += (size_t)n;
  }
  return 0;
}

ft_status ft_file_read(const char *path, size_t max_bytes, ft_arena *arena, ft_bytes *out,
                       ft_error *error) {
  *out = (ft_bytes){0};
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return io_error(error, "cannot open", path);
  struct stat st;
  ft_status status = FT_OK;
  char *data = NULL;
  if (fstat(fd, &st) != 0) {
    status = io_error(error, "cannot read", path);
  } else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max_bytes) {
    status = ft_error_set(error, FT_REFUSED, "'%s' is %s", path,
                          S_ISREG(st.st_mode) ? "too large" : "not a regular file");
  } else if (!(data = ft_arena_alloc(arena, (size_t)st.st_size + 1))) {
    status = ft_error_set(error, FT_OUT_OF_MEMORY, "out of memory reading '%s'", path);
  } else if (read_all(fd, data, (size_t)st.st_size) != 0) {
    status = ft_error_set(error, FT_IO, "'%s' got shorter while it was read", path);
  } else {
    *out = (ft_bytes){data, (size_t)st.st_size};
  }
  close(fd);
  return status;
}

ft_status ft_file_write(const char *path, const void *data, size_t size,
                        ft_error *error) {
  char temporary[PATH_MAX];
  int length = snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
  if (length < 0 || (size_t)length >= sizeof temporary)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "path too long: '%s'", path);
  int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return io_error(error, "cannot create", temporary);
  int failed = write_all(fd, data, size);
  failed |= close(fd);
  if (failed || rename(temporary, path) != 0) {
    ft_status status = io_error(error, "cannot write", path);
    unlink(temporary);
    return status;
  }
  return FT_OK;
}

ft_status ft_folder_make(const char *path, ft_error *error) {
  char partial[PATH_MAX];
  size_t length = strlen(path);
  if (length == 0 || length >= sizeof partial)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "bad folder path '%.200s'", path);
  memcpy(partial, path, length + 1);
  for (char *p = partial + 1;; p++) {
    if (*p != '/' && *p != '\0') continue;
    char end = *p;
    *p = '\0';
    if (mkdir(partial, 0700) != 0 && errno != EEXIST)
      return io_error(error, "cannot make folder", partial);
    *p = end;
    if (end == '\0') return FT_OK;
  }
}
