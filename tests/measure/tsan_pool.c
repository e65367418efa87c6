// The pool under ThreadSanitizer; started by test_pool.c (Criterion does not run under
// it). Exit code 0: every block ran exactly once and no race was seen.
#include <stdio.h>
#include <string.h>

#include "measure/pool.h"

enum { BLOCKS = 500, ROUNDS = 400 };
static int ran[BLOCKS];  // plain on purpose: a block that two threads run is a race
static int each[64];

static int32_t mark(void *const *buffers, const int64_t *scalars, uint32_t block,
                    uint32_t thread, void *scratch) {
  (void)buffers, (void)thread, (void)scratch;
  ran[block]++;
  return scalars[0] && block == 17 ? 5 : 0;
}

static void note(void *ctx, uint32_t thread) {
  (void)ctx;
  each[thread]++;
}

int main(void) {
  ft_pool *pool;
  ft_error error;
  if (ft_pool_create(ft_allocator_system(), 4, &pool, &error) != FT_OK) return 2;
  for (int round = 0; round < ROUNDS; round++) {
    int64_t fails = round % 7 == 0;
    uint32_t grid = 1 + (uint32_t)(round * 37) % BLOCKS;
    ft_launch l = {mark, NULL, &fails, NULL, grid, 1 + (uint32_t)round % 5};
    memset(ran, 0, sizeof ran);
    int32_t r = ft_pool_launch(pool, &l);
    if (r != (fails && grid > 17 ? 5 : 0)) return 3;
    for (uint32_t b = 0; r == 0 && b < BLOCKS; b++)
      if (ran[b] != (b < grid)) return 4;
    if (round % 3 == 0) ft_pool_rest(pool);
    ft_pool_each(pool, note, NULL);
  }
  for (int t = 0; t < 4; t++)
    if (each[t] != ROUNDS) return 5;
  ft_pool_destroy(pool);
  return 0;
}
