// allocator - where memory comes from. The only file that calls malloc.
//
// Tests pass an allocator that fails on call n; everything else passes
// ft_allocator_system().
#ifndef FT_CORE_ALLOCATOR_H
#define FT_CORE_ALLOCATOR_H

#include <stddef.h>

typedef struct ft_allocator {
  void *ctx;
  void *(*allocate)(void *ctx, size_t size, size_t align);  // NULL when exhausted
  void (*release)(void *ctx, void *block);                  // NULL is a no-op
  // Zeroed, aligned to 16. NULL: |allocate| and a memset. A heap gives large blocks as
  // pages that are zero already: what is never touched then costs nothing.
  void *(*allocate_zeroed)(void *ctx, size_t size);
} ft_allocator;

// The process heap; thread-safe; never NULL.
const ft_allocator *ft_allocator_system(void);

// |size| bytes aligned to |align| (a power of two, 0 means 16), not zeroed.
// Returns NULL when |size| is 0-overflowing or memory is exhausted. Never call with
// an unchecked number from a file.
void *ft_allocate(const ft_allocator *allocator, size_t size, size_t align);
void *ft_allocate_zeroed(const ft_allocator *allocator, size_t size);  // aligned to 16
void ft_release(const ft_allocator *allocator, void *block);

// count * size, or 0 with *overflow = 1.
size_t ft_checked_mul(size_t count, size_t size, int *overflow);

#endif
