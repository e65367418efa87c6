// library - the shared objects a worker has loaded, the last ones kept.
//
// A file is known by path, device, inode, size and modification time, so a rebuilt file
// that was renamed over the old one is loaded anew. Loading leaves the floating-point
// environment as it was: an object linked with -ffast-math would set flush-to-zero.
// Thread-compatible.
#ifndef FT_MEASURE_LIBRARY_H
#define FT_MEASURE_LIBRARY_H

#include "core/allocator.h"
#include "core/status.h"

enum { FT_LIBRARY_KEPT = 64 };

typedef struct ft_library ft_library;

FT_MUST_CHECK ft_status ft_library_create(const ft_allocator *allocator, ft_library **out,
                                          ft_error *error);
void ft_library_destroy(ft_library *library);
// The address of |symbol| in the object at |path|; valid until the next
// ft_library_trim. NOT_FOUND with the loader's text.
FT_MUST_CHECK ft_status ft_library_symbol(ft_library *library, const char *path,
                                          const char *symbol, void **out,
                                          ft_error *error);
// Unloads the least recently used beyond FT_LIBRARY_KEPT.
void ft_library_trim(ft_library *library);

#endif
