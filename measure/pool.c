// Invariants:
//  1. A task is published by a release store of each helper's ticket; everything the
//     task needs was written before it.
//  2. Only the owner writes |task|, and only while |pending| is 0.
//  3. A thread sleeps only after it announced so (sleeping = 1) and looked again; who
//     wakes it stores first and looks at |sleeping| afterwards (both sequentially
//     consistent), so no wake-up is lost.
//  4. |resting| shortens a wait and changes nothing else: who spins looks at it, who
//     sleeps is woken by its ticket.
//  5. Helpers with an index >= task.threads are not woken and do not touch the task.
#include "measure/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"

enum { LINE = 64, MAX_THREADS = 1024, CHUNKS_PER_THREAD = 32 };
// Longer than it takes to wake a thread (50 us and more in a virtual machine): otherwise
// the one that was woken finds the other one asleep, and so on for ever.
static const uint64_t spin_ns = 200000;
#define STACK_BYTES ((size_t)8 << 20)  // what the main thread has: a kernel may use it

typedef struct task {
  void (*run)(struct ft_pool *pool, uint32_t thread);
  const ft_launch *launch;
  void (*call)(void *ctx, uint32_t thread);
  void *ctx;
  uint32_t threads;
  uint64_t chunk;
} task;

typedef struct helper {
  _Alignas(LINE) atomic_uint ticket;  // futex word
  atomic_uint sleeping;
  pthread_t id;
  struct ft_pool *pool;
  uint32_t index;
  int cpu;
} helper;

struct ft_pool {
  _Alignas(LINE) atomic_uint_fast64_t next_block;
  _Alignas(LINE) atomic_uint pending;  // futex word: helpers still at work
  atomic_uint owner_sleeping;
  _Alignas(LINE) atomic_int result;
  atomic_bool closing;
  atomic_bool resting;
  _Alignas(LINE) task task;
  const ft_allocator *allocator;
  uint32_t threads;  // helpers + 1
  uint32_t spins;    // before a thread sleeps
  uint32_t started;  // helpers running
  helper *helpers;   // [threads]; 0 is the owner and has no thread
};

static void futex_wait(atomic_uint *word, unsigned expected) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// How many rounds of wait_change last spin_ns: a pause takes 40 to 140 cycles.
static uint32_t count_spins(void) {
  enum { ROUNDS = 256, TRIES = 5 };
  uint64_t best = UINT64_MAX;
  for (int try = 0; try < TRIES; try++) {
    uint64_t start = ft_clock_ns();
    for (int i = 0; i < ROUNDS; i++) relax();
    uint64_t ns = ft_clock_ns() - start;
    if (ns < best) best = ns;
  }
  return (uint32_t)(spin_ns * ROUNDS / (best ? best : 1));
}

// Returns when *word is not |old|.
static unsigned wait_change(const ft_pool *pool, atomic_uint *word, unsigned old,
                            atomic_uint *sleeping) {
  for (uint32_t i = 0; i < pool->spins; i++) {
    if (atomic_load_explicit(&pool->resting, memory_order_relaxed)) break;
    unsigned now = atomic_load_explicit(word, memory_order_acquire);
    if (now != old) return now;
    relax();
  }
  for (;;) {
    atomic_store(sleeping, 1);
    unsigned now = atomic_load(word);
    if (now == old) futex_wait(word, old);
    atomic_store(sleeping, 0);
    now = atomic_load(word);
    if (now != old) return now;
  }
}

static cpu_set_t only(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)cpu, &set);
  return set;
}

static void finish(ft_pool *pool) {
  if (atomic_fetch_sub(&pool->pending, 1) == 1 && atomic_load(&pool->owner_sleeping))
    futex_wake(&pool->pending);
}

static void *helper_main(void *argument) {
  helper *self = argument;
  ft_pool *pool = self->pool;
  unsigned seen = 0;
  for (;;) {
    seen = wait_change(pool, &self->ticket, seen, &self->sleeping);
    if (atomic_load(&pool->closing)) return NULL;
    pool->task.run(pool, self->index);
    finish(pool);
  }
}

static void wait_idle(ft_pool *pool) {
  unsigned pending = atomic_load_explicit(&pool->pending, memory_order_acquire);
  while (pending)
    pending = wait_change(pool, &pool->pending, pending, &pool->owner_sleeping);
}

static void ring(helper *h) {
  atomic_fetch_add(&h->ticket, 1);
  if (atomic_load(&h->sleeping)) futex_wake(&h->ticket);
}

static void dispatch(ft_pool *pool, uint32_t threads) {
  pool->task.threads = threads;
  atomic_store_explicit(&pool->resting, false, memory_order_relaxed);
  atomic_store(&pool->pending, threads - 1);
  for (uint32_t i = 1; i < threads; i++) ring(&pool->helpers[i]);
  pool->task.run(pool, 0);
  wait_idle(pool);
}

static void run_blocks(ft_pool *pool, uint32_t thread) {
  const ft_launch *l = pool->task.launch;
  void *scratch = l->scratch ? l->scratch[thread] : NULL;
  uint64_t chunk = pool->task.chunk;
  for (;;) {
    uint64_t first =
        atomic_fetch_add_explicit(&pool->next_block, chunk, memory_order_relaxed);
    if (first >= l->grid) return;
    uint64_t end = first + chunk < l->grid ? first + chunk : l->grid;
    for (uint64_t block = first; block < end; block++) {
      int32_t r = l->entry(l->buffers, l->scalars, (uint32_t)block, thread, scratch);
      if (r == 0) continue;
      int none = 0;
      atomic_compare_exchange_strong(&pool->result, &none, r);
      atomic_store(&pool->next_block, l->grid);  // the rest is pointless
      return;
    }
  }
}

static int32_t run_alone(const ft_launch *l) {
  void *scratch = l->scratch ? l->scratch[0] : NULL;
  for (uint32_t block = 0; block < l->grid; block++) {
    int32_t r = l->entry(l->buffers, l->scalars, block, 0, scratch);
    if (r != 0) return r;
  }
  return 0;
}

int32_t ft_pool_launch(ft_pool *pool, const ft_launch *launch) {
  uint32_t threads = launch->threads < pool->threads ? launch->threads : pool->threads;
  if (threads > launch->grid) threads = launch->grid;
  if (threads <= 1) return run_alone(launch);
  uint64_t chunk = launch->grid / ((uint64_t)threads * CHUNKS_PER_THREAD);
  pool->task.run = run_blocks;
  pool->task.launch = launch;
  pool->task.chunk = chunk ? chunk : 1;
  atomic_store_explicit(&pool->next_block, 0, memory_order_relaxed);
  atomic_store_explicit(&pool->result, 0, memory_order_relaxed);
  dispatch(pool, threads);
  return atomic_load(&pool->result);
}

static void run_call(ft_pool *pool, uint32_t thread) {
  pool->task.call(pool->task.ctx, thread);
}

void ft_pool_each(ft_pool *pool, void (*call)(void *ctx, uint32_t thread), void *ctx) {
  pool->task.run = run_call;
  pool->task.call = call;
  pool->task.ctx = ctx;
  dispatch(pool, pool->threads);
}

void ft_pool_rest(ft_pool *pool) {
  atomic_store_explicit(&pool->resting, true, memory_order_relaxed);
}

// Best effort, both: an unpinned caller is right too, only noisier.
void ft_pool_unpin(ft_pool *pool) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (uint32_t i = 0; i < pool->threads; i++)
    if (pool->helpers[i].cpu >= 0) CPU_SET((size_t)pool->helpers[i].cpu, &set);
  if (CPU_COUNT(&set) > 0) (void)sched_setaffinity(0, sizeof set, &set);
}

void ft_pool_pin(ft_pool *pool) {
  if (pool->helpers[0].cpu < 0) return;
  cpu_set_t set = only(pool->helpers[0].cpu);
  (void)sched_setaffinity(0, sizeof set, &set);
}

uint32_t ft_pool_threads(const ft_pool *pool) {
  return pool->threads;
}

int ft_pool_cpu(const ft_pool *pool, uint32_t thread) {
  return pool->helpers[thread].cpu;
}

// Allowed cpus, at most |room|; at least 1 (cpu -1: not pinned). The one we are on is
// first: a thread that moves to a busy cpu can wait there for a second.
static uint32_t allowed_cpus(int *out, uint32_t room) {
  cpu_set_t set;
  uint32_t count = 0;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE && count < room; i++)
      if (CPU_ISSET((size_t)i, &set)) out[count++] = i;
  int here = sched_getcpu();
  for (uint32_t i = 1; i < count; i++) {
    if (out[i] != here) continue;
    out[i] = out[0];
    out[0] = here;
  }
  if (count == 0) out[count++] = -1;
  return count;
}

static int start(helper *h) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return -1;
  int r = pthread_attr_setstacksize(&attributes, STACK_BYTES);
  if (r == 0 && h->cpu >= 0) {
    cpu_set_t set = only(h->cpu);
    r = pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
  }
  if (r == 0) r = pthread_create(&h->id, &attributes, helper_main, h);
  pthread_attr_destroy(&attributes);
  return r;
}

static ft_status start_helpers(ft_pool *pool, const int *cpu, uint32_t cpus,
                               ft_error *error) {
  for (uint32_t i = 0; i < pool->threads; i++) {
    helper *h = &pool->helpers[i];
    h->pool = pool;
    h->index = i;
    h->cpu = i < cpus ? cpu[i] : -1;
    if (i == 0) continue;
    int r = start(h);
    if (r != 0) FT_FAIL(error, FT_INTERNAL, "thread %u of the pool: %s", i, strerror(r));
    pool->started++;
  }
  return FT_OK;
}

ft_status ft_pool_create(const ft_allocator *allocator, uint32_t max_threads,
                         ft_pool **out, ft_error *error) {
  int cpu[MAX_THREADS];
  uint32_t cpus = allowed_cpus(cpu, MAX_THREADS);
  uint32_t threads = max_threads ? max_threads : cpus;
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  *out = NULL;
  ft_pool *pool = ft_allocate(allocator, sizeof *pool, LINE);
  FT_OOM_IF(!pool, error);
  memset(pool, 0, sizeof *pool);
  pool->allocator = allocator;
  pool->threads = threads;
  pool->spins = count_spins();
  pool->helpers = ft_allocate(allocator, threads * sizeof(helper), LINE);
  if (!pool->helpers) {
    ft_release(allocator, pool);
    FT_FAIL(error, FT_OUT_OF_MEMORY, "out of memory for %u threads", threads);
  }
  memset(pool->helpers, 0, threads * sizeof(helper));
  ft_status status = start_helpers(pool, cpu, cpus, error);
  if (status != FT_OK) {
    ft_pool_destroy(pool);
    return status;
  }
  ft_pool_pin(pool);
  *out = pool;
  return FT_OK;
}

void ft_pool_destroy(ft_pool *pool) {
  if (!pool) return;
  atomic_store(&pool->closing, true);
  for (uint32_t i = 1; i <= pool->started; i++) ring(&pool->helpers[i]);
  for (uint32_t i = 1; i <= pool->started; i++) pthread_join(pool->helpers[i].id, NULL);
  ft_release(pool->allocator, pool->helpers);
  ft_release(pool->allocator, pool);
}
