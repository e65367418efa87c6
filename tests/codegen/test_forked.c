#include "codegen/forked.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ft_arena *arena;

static void setup(void) {
  arena = ft_arena_create(ft_allocator_system());
}

static void teardown(void) {
  ft_arena_destroy(arena);
}

TestSuite(codegen_forked, .init = setup, .fini = teardown, .timeout = 60);

static void say_hello(void *ctx, int fd) {
  const char *text = ctx;
  (void)ft_forked_write(fd, text, strlen(text));
}

static void say_much(void *ctx, int fd) {
  char block[1000];
  memset(block, 'x', sizeof block);
  for (int i = 0; i < 300; i++)
    if (!ft_forked_write(fd, block, sizeof block)) return;
  *(int *)ctx = 1;  // in the child's memory only
}

static void crash(void *ctx, int fd) {
  say_hello(ctx, fd);
  raise(SIGSEGV);
}

static void hang(void *ctx, int fd) {
  (void)ctx, (void)fd;
  for (;;) pause();
}

static ft_status fork_it(ft_forked_call call, ft_forked_end *out, ft_error *error) {
  if (!call.most_bytes) call.most_bytes = 1 << 20;
  return ft_forked_run(&call, arena, out, error);
}

Test(codegen_forked, an_answer_comes_back_whole) {
  ft_forked_end end;
  ft_error error;
  int touched = 0;
  cr_assert_eq(fork_it((ft_forked_call){.run = say_hello, .ctx = "hello"}, &end, &error),
               FT_OK, "%s", error.text);
  cr_assert_eq(end.answer.size, 5);
  cr_assert_arr_eq(end.answer.data, "hello", 5);
  cr_assert(!end.timed_out && !end.signal);
  cr_assert_eq(fork_it((ft_forked_call){.run = say_much, .ctx = &touched}, &end, &error),
               FT_OK);
  cr_assert_eq(end.answer.size, 300000);
  cr_assert_eq(touched, 0);
}

Test(codegen_forked, a_crash_is_named_and_what_was_said_before_it_kept) {
  ft_forked_end end;
  ft_error error;
  cr_assert_eq(fork_it((ft_forked_call){.run = crash, .ctx = "so far"}, &end, &error),
               FT_OK);
  cr_assert_eq(end.signal, SIGSEGV);
  cr_assert_eq(end.answer.size, 6);
}

Test(codegen_forked, what_never_ends_is_killed_at_its_limit_or_when_told) {
  ft_forked_end end;
  ft_error error;
  cr_assert_eq(fork_it((ft_forked_call){.run = hang, .limit_ns = 1000000}, &end, &error),
               FT_OK);
  cr_assert(end.timed_out && !end.signal);
  volatile int stop = 1;
  cr_assert_eq(fork_it((ft_forked_call){.run = hang, .stop = &stop}, &end, &error),
               FT_INTERRUPTED);
}

Test(codegen_forked, an_answer_that_is_too_long_is_refused) {
  ft_forked_end end;
  ft_error error;
  int touched;
  ft_forked_call call = {.run = say_much, .ctx = &touched, .most_bytes = 1000};
  cr_assert_eq(fork_it(call, &end, &error), FT_REFUSED);
  cr_assert_str_eq(error.text, "a child's answer of more than 1000 bytes");
  call.most_bytes = 300001;
  cr_assert_eq(fork_it(call, &end, &error), FT_OK);
}

// How many pipes the child could write to.
static void count_pipes(void *ctx, int fd) {
  unsigned char count = 0;
  (void)ctx;
  for (int i = 0; i < 256; i++) {
    struct stat info;
    int flags = fcntl(i, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_WRONLY && !fstat(i, &info))
      count = (unsigned char)(count + (S_ISFIFO(info.st_mode) ? 1 : 0));
  }
  (void)ft_forked_write(fd, &count, 1);
}

static void *count_often(void *most) {
  ft_arena *own = ft_arena_create(ft_allocator_system());
  ft_forked_call call = {.run = count_pipes, .most_bytes = 16};
  for (int i = 0; i < 100; i++) {
    ft_forked_end end;
    ft_error error;
    unsigned char *out = most;
    if (ft_forked_run(&call, own, &end, &error) != FT_OK || end.answer.size != 1)
      *out = 255;
    else if (*(const unsigned char *)end.answer.data > *out)
      *out = *(const unsigned char *)end.answer.data;
  }
  ft_arena_destroy(own);
  return NULL;
}

// It would keep the sibling's answer from ending until it ends itself.
Test(codegen_forked, no_child_holds_the_pipe_of_a_sibling) {
  enum { THREADS = 4 };
  pthread_t thread[THREADS];
  unsigned char most[THREADS] = {0};
  ft_forked_end end;
  ft_error error;
  cr_assert_eq(fork_it((ft_forked_call){.run = count_pipes}, &end, &error), FT_OK);
  unsigned char alone = *(const unsigned char *)end.answer.data;
  for (int i = 0; i < THREADS; i++)
    cr_assert_eq(pthread_create(&thread[i], NULL, count_often, &most[i]), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  for (int i = 0; i < THREADS; i++) cr_assert_eq(most[i], alone, "%d", most[i]);
}
