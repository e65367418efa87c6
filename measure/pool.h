// pool - threads that run the blocks of a launch.
//
// One thread per allowed cpu, pinned; thread 0 is the caller. Blocks are handed out by
// an atomic counter. A thread that waits spins for 200 microseconds, then sleeps in a
// futex, so back-to-back launches cost about a microsecond and an idle pool costs
// nothing. One block, or one thread, is a plain loop in the caller.
//
// One owner: create, launch, each and destroy are called by one thread.
#ifndef FT_MEASURE_POOL_H
#define FT_MEASURE_POOL_H

#include "core/allocator.h"
#include "core/status.h"

typedef int32_t (*ft_kernel_entry)(void *const *buffers, const int64_t *scalars,
                                   uint32_t block, uint32_t thread, void *scratch);

typedef struct ft_launch {
  ft_kernel_entry entry;
  void *const *buffers;
  const int64_t *scalars;
  void *const *scratch;  // one per thread of the pool, or NULL
  uint32_t grid;         // blocks, >= 1
  uint32_t threads;      // >= 1; more than the pool has counts as all
} ft_launch;

typedef struct ft_pool ft_pool;

// |max_threads| 0: as many as allowed cpus. Pins the calling thread too. INTERNAL when
// a thread cannot be started.
FT_MUST_CHECK ft_status ft_pool_create(const ft_allocator *allocator,
                                       uint32_t max_threads, ft_pool **out,
                                       ft_error *error);
void ft_pool_destroy(ft_pool *pool);
uint32_t ft_pool_threads(const ft_pool *pool);
// The cpu that |thread| is pinned to; -1: none.
int ft_pool_cpu(const ft_pool *pool, uint32_t thread);

// Runs every block once; 0, or the first non-zero result (the blocks after it may not
// have run). Allocates nothing and takes no lock.
int32_t ft_pool_launch(ft_pool *pool, const ft_launch *launch);
// The helpers sleep, until the next launch or each, instead of spinning for it: what is
// run meanwhile has threads of its own.
void ft_pool_rest(ft_pool *pool);
// The owner may run on every cpu of the pool, and on its own again: threads that are made
// meanwhile, and libraries that look for cpus when they are loaded, find them all.
void ft_pool_unpin(ft_pool *pool);
void ft_pool_pin(ft_pool *pool);
// Calls |call| once on each thread of the pool.
void ft_pool_each(ft_pool *pool, void (*call)(void *ctx, uint32_t thread), void *ctx);

#endif
