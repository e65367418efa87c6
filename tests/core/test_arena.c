#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "core/arena.h"
#include "tests/support/limited.h"

Test(core_arena, gives_zeroed_memory_at_the_alignment_asked_for) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  for (size_t align = 1; align <= 4096; align *= 2) {
    unsigned char *p = ft_arena_alloc_aligned(arena, 100, align);
    cr_assert_eq((uintptr_t)p % align, 0, "align %zu", align);
    for (int i = 0; i < 100; i++) cr_assert_eq(p[i], 0);
    memset(p, 0xff, 100);
  }
  ft_arena_destroy(arena);
}

// Blocks of its own included, from a heap that gives back what was used before, and from
// an allocator that cannot zero.
Test(core_arena, zeroes_what_was_used_before) {
  limited l = {.left = 1000};
  ft_allocator limits = limited_allocator(&l);
  const ft_allocator *from[] = {ft_allocator_system(), &limits};
  for (int i = 0; i < 2; i++) {
    ft_arena *arena = ft_arena_create(from[i]);
    for (int round = 0; round < 20; round++) {
      size_t size = (size_t)100 << (round % 10);
      unsigned char *p = ft_arena_alloc(arena, size);
      for (size_t k = 0; k < size; k++) cr_assert_eq(p[k], 0, "%zu of %zu", k, size);
      memset(p, 0xff, size);
      if (round % 3 == 0) ft_arena_reset(arena);
    }
    ft_arena_destroy(arena);
  }
}

Test(core_arena, refuses_a_count_whose_bytes_overflow) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  cr_assert_null(ft_arena_array(arena, SIZE_MAX / 2, 8));
  cr_assert_null(ft_arena_alloc(arena, SIZE_MAX - 8));
  ft_arena_destroy(arena);
}

static int order[3], calls;
static void note(void *ctx) {
  order[calls++] = *(int *)ctx;
}

Test(core_arena, runs_deferred_calls_last_first_and_once) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  int ids[3] = {0, 1, 2};
  for (int i = 0; i < 3; i++) cr_assert_eq(ft_arena_defer(arena, note, &ids[i]), 0);
  ft_arena_reset(arena);
  ft_arena_destroy(arena);
  cr_assert_eq(calls, 3);
  cr_assert(order[0] == 2 && order[1] == 1 && order[2] == 0);
}

Test(core_arena, grow_keeps_what_was_there) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  int *list = NULL;
  size_t capacity = 0;
  for (size_t i = 0; i < 1000; i++) {
    cr_assert_eq(FT_GROW(arena, &list, i, &capacity), 0);
    list[i] = (int)i;
  }
  for (int i = 0; i < 1000; i++) cr_assert_eq(list[i], i);
  ft_arena_destroy(arena);
}

Test(core_arena, returns_null_and_leaks_nothing_when_any_allocation_fails) {
  for (int n = 0; n < 8; n++) {
    limited l = {.left = n};
    ft_allocator a = limited_allocator(&l);
    ft_arena *arena = ft_arena_create(&a);
    for (int i = 0; arena && i < 6; i++) (void)ft_arena_alloc(arena, 40000);
    ft_arena_destroy(arena);
    cr_assert_eq(l.live, 0, "with %d allocations allowed", n);
  }
}
