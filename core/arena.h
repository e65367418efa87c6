// arena - things that die together.
//
// Lifetimes are arenas: request (until the answer is printed), workload (until the next
// one's turn), generation (one batch of candidates); ARCHITECTURE.md has the table.
// Thread-compatible: one thread at a time.
#ifndef FT_CORE_ARENA_H
#define FT_CORE_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "core/allocator.h"
#include "core/status.h"

typedef struct ft_arena ft_arena;

// NULL when out of memory. Borrows |allocator|.
ft_arena *ft_arena_create(const ft_allocator *allocator);
// Runs the deferred calls, last first, then frees everything. NULL is fine.
void ft_arena_destroy(ft_arena *arena);
// As destroy, but the arena can be used again.
void ft_arena_reset(ft_arena *arena);

// Zeroed memory aligned to 16 (or |align|); lives until reset. NULL when exhausted.
// A request of 0 bytes gives a valid pointer.
void *ft_arena_alloc(ft_arena *arena, size_t size);
void *ft_arena_alloc_aligned(ft_arena *arena, size_t size, size_t align);
// count * size with the overflow checked (NULL on overflow).
void *ft_arena_array(ft_arena *arena, size_t count, size_t size);
char *ft_arena_strdup(ft_arena *arena, const char *text);
char *ft_arena_strndup(ft_arena *arena, const char *text, size_t length);
void *ft_arena_memdup(ft_arena *arena, const void *data, size_t size);
char *ft_arena_printf(ft_arena *arena, const char *format, ...) FT_PRINTF(2, 3);

// Calls |call|(|ctx|) at reset or destroy, last deferred first. 0, or -1 when out of
// memory (then |call| was not kept).
int ft_arena_defer(ft_arena *arena, void (*call)(void *ctx), void *ctx);

// Bytes taken from the allocator now.
size_t ft_arena_bytes(const ft_arena *arena);

#define FT_NEW(arena, type) ((type *)ft_arena_alloc((arena), sizeof(type)))
#define FT_NEW_ARRAY(arena, type, count) \
  ((type *)ft_arena_array((arena), (count), sizeof(type)))

// Makes room for one more element in the arena array |*items| (the old block is
// left to the arena). Doubles; 0, or -1 when out of memory.
//   if (FT_GROW(arena, &list, count, &capacity)) -> out of memory
#define FT_GROW(arena, items, count, capacity) \
  ft_arena_grow((arena), (void **)(items), (count), (capacity), sizeof(**(items)))
int ft_arena_grow(ft_arena *arena, void **items, size_t count, size_t *capacity,
                  size_t item_size);

#endif
