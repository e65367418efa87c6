#include "measure/crash.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define STACK_BYTES ((size_t)64 << 10)

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
enum { SIGNALS = sizeof signals / sizeof *signals };

// What the handler may read; set before it is installed.
static ft_board *the_board;
static const ft_buffer_store *the_store;

static bool locate(const ft_held_buffer *b, const uint8_t *at) {
  const ft_guarded *m = &b->memory;
  if (at < m->base || at >= m->base + m->total_bytes) return false;
  if (at < m->data) {
    the_board->place = FT_PLACE_BEFORE;
    the_board->distance = (uint64_t)(m->data - at);
  } else if (at < m->data + m->bytes) {
    the_board->place = FT_PLACE_INSIDE;
    the_board->distance = (uint64_t)(at - m->data);
  } else {
    the_board->place = FT_PLACE_PAST;
    the_board->distance = (uint64_t)(at - (m->data + m->bytes));
  }
  memcpy(the_board->name, b->name, sizeof the_board->name);
  return true;
}

static bool has_fault_address(int signal, const siginfo_t *info) {
  return (signal == SIGSEGV || signal == SIGBUS) && info->si_code > 0;
}

static void die(int signal_number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal_number);
  signal(signal_number, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  raise(signal_number);
  _exit(128 + signal_number);
}

static void handle(int signal_number, siginfo_t *info, void *context) {
  (void)context;
  // The first thread writes; another one that crashes meanwhile waits for the end.
  static atomic_uint taken;
  if (atomic_exchange(&taken, 1))
    for (;;) pause();
  the_board->signal = signal_number;
  the_board->place = FT_PLACE_UNKNOWN;
  the_board->has_address = has_fault_address(signal_number, info);
  if (the_board->has_address) {
    const uint8_t *at = info->si_addr;
    the_board->address = (uint64_t)(uintptr_t)at;
    for (const ft_held_buffer *b = the_store->first; b; b = b->next)
      if (b->holds && locate(b, at)) break;
  }
  atomic_store(&the_board->crashed, 1);
  die(signal_number);
}

typedef struct stacks {
  char *memory;
  atomic_uint failed;
} stacks;

static void set_stack(void *ctx, uint32_t thread) {
  stacks *s = ctx;
  stack_t stack = {.ss_sp = s->memory + thread * STACK_BYTES, .ss_size = STACK_BYTES};
  if (sigaltstack(&stack, NULL) != 0) atomic_fetch_add(&s->failed, 1);
}

static void drop_stack(void *ctx, uint32_t thread) {
  (void)ctx;
  (void)thread;
  stack_t stack = {.ss_flags = SS_DISABLE};
  (void)sigaltstack(&stack, NULL);
}

ft_status ft_crash_install(ft_board *board, const ft_buffer_store *store, ft_pool *pool,
                           ft_arena *arena, ft_error *error) {
  stacks s = {.memory = ft_arena_alloc(arena, ft_pool_threads(pool) * STACK_BYTES)};
  FT_OOM_IF(!s.memory, error);
  ft_pool_each(pool, set_stack, &s);
  if (s.failed) FT_FAIL(error, FT_INTERNAL, "sigaltstack failed on %u threads", s.failed);
  the_board = board;
  the_store = store;
  struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigfillset(&action.sa_mask);
  for (int i = 0; i < SIGNALS; i++)
    if (sigaction(signals[i], &action, NULL) != 0)
      FT_FAIL(error, FT_INTERNAL, "sigaction of signal %d failed", signals[i]);
  return FT_OK;
}

void ft_crash_uninstall(ft_pool *pool) {
  for (int i = 0; i < SIGNALS; i++) signal(signals[i], SIG_DFL);
  ft_pool_each(pool, drop_stack, NULL);
}
