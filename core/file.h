// file - small files, read and written whole.
#ifndef FT_CORE_FILE_H
#define FT_CORE_FILE_H

#include "core/arena.h"

typedef struct ft_bytes {
  const void *data;
  size_t size;
} ft_bytes;

// The whole of |path| in |arena|, with a NUL after it that |size| does not count.
// REFUSED when it is larger than |max_bytes| or not a regular file; NOT_FOUND; IO.
FT_MUST_CHECK ft_status ft_file_read(const char *path, size_t max_bytes, ft_arena *arena,
                                     ft_bytes *out, ft_error *error);
// Writes beside |path| and renames, so that a reader sees the old file or the new one.
FT_MUST_CHECK ft_status ft_file_write(const char *path, const void *data, size_t size,
                                      ft_error *error);
// mkdir -p with mode 0700 for what is made.
FT_MUST_CHECK ft_status ft_folder_make(const char *path, ft_error *error);

#endif
