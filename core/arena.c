#include "core/arena.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK_BYTES = 64 * 1024 };

typedef struct block {
  struct block *next;
  size_t size;
} block;

typedef struct deferred {
  struct deferred *next;
  void (*call)(void *ctx);
  void *ctx;
} deferred;

struct ft_arena {
  const ft_allocator *allocator;
  block *blocks;
  char *cursor, *end;
  deferred *calls;
  size_t bytes;
};

ft_arena *ft_arena_create(const ft_allocator *allocator) {
  ft_arena *arena = ft_allocate(allocator, sizeof *arena, 0);
  if (!arena) return NULL;
  memset(arena, 0, sizeof *arena);
  arena->allocator = allocator;
  return arena;
}

void ft_arena_reset(ft_arena *arena) {
  while (arena->calls) {
    deferred *d = arena->calls;
    arena->calls = d->next;
    d->call(d->ctx);
  }
  while (arena->blocks) {
    block *b = arena->blocks;
    arena->blocks = b->next;
    ft_release(arena->allocator, b);
  }
  arena->cursor = arena->end = NULL;
  arena->bytes = 0;
}

void ft_arena_destroy(ft_arena *arena) {
  if (!arena) return;
  ft_arena_reset(arena);
  ft_release(arena->allocator, arena);
}

static char *align_up(char *p, size_t align) {
  uintptr_t rest = (uintptr_t)p & (align - 1);
  return rest ? p + (align - rest) : p;
}

static block *add_block(ft_arena *arena, size_t total, bool is_zeroed) {
  block *b = is_zeroed ? ft_allocate_zeroed(arena->allocator, total)
                       : ft_allocate(arena->allocator, total, 0);
  if (!b) return NULL;
  b->size = total;
  b->next = arena->blocks;
  arena->blocks = b;
  arena->bytes += total;
  return b;
}

// A big request gets a block of its own and leaves the current one in use.
static void *alloc_apart(ft_arena *arena, size_t size, size_t align) {
  block *b = add_block(arena, sizeof *b + align + size, true);
  return b ? align_up((char *)b + sizeof *b, align) : NULL;
}

void *ft_arena_alloc_aligned(ft_arena *arena, size_t size, size_t align) {
  FT_ASSERT(align && (align & (align - 1)) == 0);
  if (size > SIZE_MAX / 2) return NULL;
  char *p = arena->cursor ? align_up(arena->cursor, align) : NULL;
  if (!p || p > arena->end || (size_t)(arena->end - p) < size) {
    if (sizeof(block) + align + size > BLOCK_BYTES / 4)
      return alloc_apart(arena, size, align);
    block *b = add_block(arena, BLOCK_BYTES, false);
    if (!b) return NULL;
    arena->end = (char *)b + BLOCK_BYTES;
    p = align_up((char *)b + sizeof *b, align);
  }
  arena->cursor = p + size;
  return memset(p, 0, size);
}

void *ft_arena_alloc(ft_arena *arena, size_t size) {
  return ft_arena_alloc_aligned(arena, size, 16);
}

void *ft_arena_array(ft_arena *arena, size_t count, size_t size) {
  int overflow = 0;
  size_t bytes = ft_checked_mul(count, size, &overflow);
  return overflow ? NULL : ft_arena_alloc(arena, bytes);
}

char *ft_arena_strndup(ft_arena *arena, const char *text, size_t length) {
  char *copy = ft_arena_alloc_aligned(arena, length + 1, 1);
  if (copy) memcpy(copy, text, length);
  return copy;
}

char *ft_arena_strdup(ft_arena *arena, const char *text) {
  return ft_arena_strndup(arena, text, strlen(text));
}

void *ft_arena_memdup(ft_arena *arena, const void *data, size_t size) {
  void *copy = ft_arena_alloc(arena, size);
  if (copy && size) memcpy(copy, data, size);
  return copy;
}

char *ft_arena_printf(ft_arena *arena, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (length < 0) return NULL;
  char *text = ft_arena_alloc_aligned(arena, (size_t)length + 1, 1);
  if (!text) return NULL;
  va_start(args, format);
  vsnprintf(text, (size_t)length + 1, format, args);
  va_end(args);
  return text;
}

int ft_arena_defer(ft_arena *arena, void (*call)(void *ctx), void *ctx) {
  deferred *d = FT_NEW(arena, deferred);
  if (!d) return -1;
  d->call = call;
  d->ctx = ctx;
  d->next = arena->calls;
  arena->calls = d;
  return 0;
}

size_t ft_arena_bytes(const ft_arena *arena) {
  return arena->bytes;
}

int ft_arena_grow(ft_arena *arena, void **items, size_t count, size_t *capacity,
                  size_t item_size) {
  if (count < *capacity) return 0;
  size_t grown = *capacity ? *capacity * 2 : 8;
  void *copy = ft_arena_array(arena, grown, item_size);
  if (!copy) return -1;
  if (count) memcpy(copy, *items, count * item_size);
  *items = copy;
  *capacity = grown;
  return 0;
}
