// external_data - the bytes of a tensor that lie in a file beside the model.
//
// A file is opened once per ft_external_files and mapped read-only; the mappings live
// as long as the arena. Thread-compatible.
// Errors: REFUSED (the location leaves the folder, is no regular file, ends too early;
// the text names the location), IO, OUT_OF_MEMORY, UNSUPPORTED never.
// Known limit: a file that shrinks while it is mapped ends the process with SIGBUS.
#ifndef FT_GRAPH_EXTERNAL_DATA_H
#define FT_GRAPH_EXTERNAL_DATA_H

#include "core/arena.h"
#include "graph/wire.h"

typedef struct ft_external_files {
  ft_arena *arena;
  const char *folder;  // NULL: external data is refused
  struct ft_external_file *first;
} ft_external_files;

ft_external_files ft_external_files_init(const char *folder, ft_arena *arena);
// |bytes| bytes at |offset| of the file |location| beneath the folder.
FT_MUST_CHECK ft_status ft_external_map(ft_external_files *files, ft_span location,
                                        uint64_t offset, uint64_t bytes, const void **out,
                                        ft_error *error);

// Opens |location| beneath |folder|, following no symbolic link: with one openat2, or,
// where the kernel has none, component by component. *out_fd is the caller's to close.
typedef ft_status ft_external_opener(int folder, const char *location, int *out_fd,
                                     ft_error *error);
ft_external_opener ft_external_open_beneath;
ft_external_opener ft_external_open_walking;

#endif
