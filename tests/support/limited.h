// limited - an allocator that gives |left| blocks and then fails.
#ifndef FT_TESTS_SUPPORT_LIMITED_H
#define FT_TESTS_SUPPORT_LIMITED_H

#include "core/allocator.h"

typedef struct limited {
  int left, live;
} limited;

static inline void *limited_allocate(void *ctx, size_t size, size_t align) {
  limited *l = ctx;
  if (l->left-- <= 0) return NULL;
  l->live++;
  return ft_allocate(ft_allocator_system(), size, align);
}

static inline void limited_release(void *ctx, void *block) {
  ((limited *)ctx)->live--;
  ft_release(ft_allocator_system(), block);
}

// Borrows |l|, which counts what is live.
static inline ft_allocator limited_allocator(limited *l) {
  return (ft_allocator){
      .ctx = l, .allocate = limited_allocate, .release = limited_release};
}

#endif
