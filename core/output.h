// output - bytes to a file that appears whole, or to a stream: buffered, in constant
// memory.
//
//  1. A regular file, or a path where nothing is, is written beside and renamed at the
//     end: a reader sees the old file or the whole new one, never a half.
//  2. What is no regular file (a pipe, a terminal, /dev/null) is written to, not
//  replaced.
//  3. Every failed write is an error that names the file and the cause: a full disk, a
//     reader that went away (the caller ignores SIGPIPE).
// Thread-compatible.
#ifndef FT_CORE_OUTPUT_H
#define FT_CORE_OUTPUT_H

#include "core/arena.h"
#include "core/status.h"

enum { FT_OUTPUT_BUFFER = 64 << 10 };

typedef struct ft_output {
  int fd;                 // -1: not open
  const char *name;       // for errors
  const char *path;       // what |temporary| becomes; NULL: nothing is renamed
  const char *temporary;  // NULL: none
  size_t used;
  char *buffer;
} ft_output;

// |path| NULL or "-": standard output. Strings and buffer in |arena|.
FT_MUST_CHECK ft_status ft_output_open(const char *path, ft_arena *arena, ft_output *out,
                                       ft_error *error);
FT_MUST_CHECK ft_status ft_output_write(ft_output *output, const void *data, size_t size,
                                        ft_error *error);
// Writes what is left, and gives the file its name. Closed after it, whatever it returns.
FT_MUST_CHECK ft_status ft_output_commit(ft_output *output, ft_error *error);
// Drops it: no file is left. Fine when it was never opened (zeroed), or committed.
void ft_output_abort(ft_output *output);

#endif
