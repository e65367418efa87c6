#include "core/allocator.h"

#include <stdlib.h>
#include <string.h>

static void *system_allocate(void *ctx, size_t size, size_t align) {
  (void)ctx;
  void *block = NULL;
  if (align < sizeof(void *)) align = sizeof(void *);
  return posix_memalign(&block, align, size) == 0 ? block : NULL;
}

static void *system_allocate_zeroed(void *ctx, size_t size) {
  (void)ctx;
  return calloc(1, size);
}

static void system_release(void *ctx, void *block) {
  (void)ctx;
  free(block);
}

const ft_allocator *ft_allocator_system(void) {
  static const ft_allocator system = {NULL, system_allocate, system_release,
                                      system_allocate_zeroed};
  return &system;
}

void *ft_allocate(const ft_allocator *allocator, size_t size, size_t align) {
  return allocator->allocate(allocator->ctx, size ? size : 1, align ? align : 16);
}

void *ft_allocate_zeroed(const ft_allocator *allocator, size_t size) {
  if (allocator->allocate_zeroed)
    return allocator->allocate_zeroed(allocator->ctx, size ? size : 1);
  void *block = ft_allocate(allocator, size, 0);
  return block ? memset(block, 0, size) : NULL;
}

void ft_release(const ft_allocator *allocator, void *block) {
  if (block) allocator->release(allocator->ctx, block);
}

size_t ft_checked_mul(size_t count, size_t size, int *overflow) {
  size_t product;
  if (__builtin_mul_overflow(count, size, &product)) {
    *overflow = 1;
    return 0;
  }
  return product;
}
