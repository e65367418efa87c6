#include "core/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ft_status io_error(ft_error *error, const char *what, const char *name) {
  return ft_error_set(error, FT_IO, "cannot %s %s: %s", what, name, strerror(errno));
}

static bool is_replaced(const char *path) {
  struct stat info;
  return stat(path, &info) != 0 || S_ISREG(info.st_mode);
}

static ft_status open_file(const char *path, ft_arena *arena, ft_output *out,
                           ft_error *error) {
  out->name = path;
  if (is_replaced(path)) {
    out->temporary = ft_arena_printf(arena, "%s.%ld.tmp", path, (long)getpid());
    FT_OOM_IF(!out->temporary, error);
    out->path = path;
    out->fd = open(out->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (out->fd < 0) out->temporary = NULL;
  } else {
    out->fd = open(path, O_WRONLY | O_CLOEXEC);
  }
  return out->fd < 0 ? io_error(error, "create", path) : FT_OK;
}

ft_status ft_output_open(const char *path, ft_arena *arena, ft_output *out,
                         ft_error *error) {
  *out = (ft_output){.fd = -1};
  out->buffer = ft_arena_alloc(arena, FT_OUTPUT_BUFFER);
  FT_OOM_IF(!out->buffer, error);
  if (path && strcmp(path, "-") != 0) return open_file(path, arena, out, error);
  out->name = "standard output";
  out->fd = STDOUT_FILENO;
  return FT_OK;
}

static ft_status flush(ft_output *o, ft_error *error) {
  size_t size = o->used;
  o->used = 0;
  for (size_t done = 0; done < size;) {
    ssize_t n = write(o->fd, o->buffer + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(error, "write", o->name);
    done += (size_t)n;
  }
  return FT_OK;
}

ft_status ft_output_write(ft_output *o, const void *data, size_t size, ft_error *error) {
  const char *from = data;
  while (size > 0) {
    size_t room = FT_OUTPUT_BUFFER - o->used, part = size < room ? size : room;
    memcpy(o->buffer + o->used, from, part);
    o->used += part;
    from += part;
    size -= part;
    if (o->used == FT_OUTPUT_BUFFER) FT_TRY(flush(o, error));
  }
  return FT_OK;
}

// A disk may say that it is full as late as here.
static ft_status publish(ft_output *o, ft_error *error) {
  FT_TRY(flush(o, error));
  if (!o->temporary) return FT_OK;
  if (fsync(o->fd) != 0) return io_error(error, "write", o->name);
  int failed = close(o->fd);
  o->fd = -1;
  if (failed || rename(o->temporary, o->path) != 0)
    return io_error(error, "write", o->name);
  o->temporary = NULL;
  return FT_OK;
}

ft_status ft_output_commit(ft_output *o, ft_error *error) {
  ft_status status = publish(o, error);
  ft_output_abort(o);
  return status;
}

void ft_output_abort(ft_output *o) {
  if (!o->buffer) return;
  if (o->fd >= 0 && o->fd != STDOUT_FILENO) close(o->fd);
  if (o->temporary) unlink(o->temporary);
  *o = (ft_output){.fd = -1};
}
