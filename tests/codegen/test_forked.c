#include "codegen/forked.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/support/sanitized.h"

static ft_arena *arena;
static ft_forked *forked;
static ft_forked_end end;
static ft_error error;

static void teardown(void) {
  ft_forked_close(forked);
  ft_arena_destroy(arena);
}

// ---- what a child can be told
// ----------------------------------------------------------------

static int answered;  // by this child

static unsigned sockets_held(void) {
  unsigned count = 0;
  struct stat info;
  for (int i = 0; i < 256; i++) count += !fstat(i, &info) && S_ISSOCK(info.st_mode);
  return count;
}

static bool obey(void *ctx, ft_bytes request, ft_arena *own, ft_bytes *answer) {
  const char *word = request.data;
  char *text = ft_arena_alloc(own, 300000);
  int length = 0;
  (void)ctx;
  if (!strcmp(word, "crash") || (!strcmp(word, "crash later") && answered > 0))
    raise(SIGSEGV);
  if (!strcmp(word, "leave")) return false;
  if (!strcmp(word, "exit")) _exit(0);
  while (!strcmp(word, "hang")) pause();
  if (!strcmp(word, "write much")) {
    memset(text, 'x', 300000);
    length = 300000;
  } else if (!strcmp(word, "count")) {
    length = snprintf(text, 100, "%d", answered);
  } else if (!strcmp(word, "sockets")) {
    length = snprintf(text, 100, "%u", sockets_held());
  } else if (!strcmp(word, "pid")) {
    length = snprintf(text, 100, "%d", (int)getpid());
  } else {
    length = snprintf(text, 300000, "%zu bytes", request.size);
  }
  answered++;
  *answer = (ft_bytes){text, (size_t)length};
  return true;
}

static void setup(void) {
  arena = ft_arena_create(ft_allocator_system());
  cr_assert_eq(
      ft_forked_open(ft_allocator_system(), obey, NULL, 1 << 20, &forked, &error), FT_OK);
}

TestSuite(codegen_forked, .init = setup, .fini = teardown, .timeout = 60);

static ft_forked_way tell(const char *word) {
  ft_forked_call call = {.request = {word, strlen(word) + 1}};
  cr_assert_eq(ft_forked_run(forked, &call, arena, &end, &error), FT_OK, "%s",
               error.text);
  return end.way;
}

static int told(const char *word) {
  cr_assert_eq(tell(word), FT_FORKED_ANSWERED);
  return atoi(ft_arena_strndup(arena, end.answer.data, end.answer.size));
}

Test(codegen_forked, requests_and_answers_come_whole) {
  cr_assert_eq(told("hello"), 6);
  char *much = ft_arena_alloc(arena, 1000001);
  memset(much, 'y', 1000000);
  much[1000000] = '\0';
  cr_assert_eq(told(much), 1000001);
  cr_assert_eq(tell("write much"), FT_FORKED_ANSWERED);
  cr_assert_eq(end.answer.size, 300000);
  cr_assert_eq(((const char *)end.answer.data)[299999], 'x');
  cr_assert_eq(told(""), 1);
}

Test(codegen_forked, a_child_is_kept_and_what_it_changes_stays_in_it) {
  for (int i = 0; i < 3; i++) cr_assert_eq(told("count"), i);
  cr_assert_eq(answered, 0);
}

Test(codegen_forked, a_crash_is_named_and_the_next_call_answered) {
  cr_assert_eq(tell("crash"), FT_FORKED_KILLED);
  cr_assert_eq(end.signal, SIGSEGV);
  cr_assert_eq(tell("leave"), FT_FORKED_LEFT);
  cr_assert_eq(tell("exit"), FT_FORKED_LEFT);
  cr_assert_eq(told("count"), 0);
}

Test(codegen_forked, a_crash_that_an_earlier_call_may_have_caused_is_tried_anew) {
  cr_assert_eq(told("count"), 0);
  cr_assert_eq(tell("crash later"), FT_FORKED_ANSWERED);
  cr_assert_eq(told("count"), 1);  // the new child has answered that
  cr_assert_eq(tell("crash"), FT_FORKED_KILLED);
}

Test(codegen_forked, what_never_ends_is_killed_at_its_limit_or_when_told) {
  ft_forked_call call = {.request = {"hang", 5}, .limit_ns = 1000000};
  cr_assert_eq(ft_forked_run(forked, &call, arena, &end, &error), FT_OK);
  cr_assert_eq(end.way, FT_FORKED_LATE);
  volatile int stop = 1;
  call = (ft_forked_call){.request = {"hang", 5}, .stop = &stop};
  cr_assert_eq(ft_forked_run(forked, &call, arena, &end, &error), FT_INTERRUPTED);
  cr_assert_eq(told("count"), 0);
}

Test(codegen_forked, an_answer_that_is_too_long_is_refused) {
  ft_forked *small;
  ft_forked_call call = {.request = {"write much", 11}};
  cr_assert_eq(ft_forked_open(ft_allocator_system(), obey, NULL, 299999, &small, &error),
               FT_OK);
  cr_assert_eq(ft_forked_run(small, &call, arena, &end, &error), FT_REFUSED);
  cr_assert_str_eq(error.text, "a child's answer has more than 299999 bytes");
  call.request = (ft_bytes){"hello", 6};
  cr_assert_eq(ft_forked_run(small, &call, arena, &end, &error), FT_OK);
  ft_forked_close(small);
}

// ---- side by side
// ----------------------------------------------------------------------------

static void *count_often(void *most) {
  ft_arena *own = ft_arena_create(ft_allocator_system());
  for (int i = 0; i < 100; i++) {
    static const char *const words[] = {"sockets", "crash"};
    const char *word = words[i % 10 == 9];
    ft_forked_call call = {.request = {word, strlen(word) + 1}};
    ft_forked_end came;
    ft_error why;
    int *out = most;
    if (ft_forked_run(forked, &call, own, &came, &why) != FT_OK) *out = 999;
    if (came.way != FT_FORKED_ANSWERED) continue;
    int held = atoi(ft_arena_strndup(own, came.answer.data, came.answer.size));
    if (held > *out) *out = held;
  }
  ft_arena_destroy(own);
  return NULL;
}

// It would keep the sibling alive when this process ends. Crashes make that children come
// and go meanwhile.
Test(codegen_forked, no_child_holds_the_socket_of_a_sibling) {
  enum { THREADS = 4 };
  if (IS_SANITIZED)
    cr_skip_test("ASan's heap may be locked for ever in a child of several threads");
  pthread_t thread[THREADS];
  int most[THREADS] = {0}, alone = told("sockets");
  for (int i = 0; i < THREADS; i++)
    cr_assert_eq(pthread_create(&thread[i], NULL, count_often, &most[i]), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  for (int i = 0; i < THREADS; i++) cr_assert_eq(most[i], alone, "%d", most[i]);
}

// ---- ends
// ------------------------------------------------------------------------------------

Test(codegen_forked, closing_ends_the_children) {
  int pid = told("pid");
  cr_assert_eq(kill(pid, 0), 0);
  ft_forked_close(forked);
  forked = NULL;
  cr_assert_neq(kill(pid, 0), 0);
}

static void *hang_in(void *ignored) {
  ft_forked_call call = {.request = {"hang", 5}};
  return ft_forked_run(forked, &call, arena, &end, &error) == FT_OK ? ignored : NULL;
}

// The pids of an idle child and of one amid a call, from a process that is killed then.
static void die_amid_calls(int out) {
  pthread_t thread;
  int pid[2] = {told("pid"), 0};
  if (pthread_create(&thread, NULL, hang_in, NULL)) _exit(1);
  for (uint64_t start = ft_clock_ns(); ft_clock_ns() - start < 300000000;) usleep(1000);
  pid[1] = told("pid");
  if (write(out, pid, sizeof pid) != sizeof pid) _exit(1);
  raise(SIGKILL);
}

Test(codegen_forked, children_end_when_their_parent_is_killed_even_amid_a_call) {
  int ends[2], pid[2], state;
  cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);  // orphans are ours
  cr_assert_eq(pipe(ends), 0);
  pid_t parent = fork();
  if (parent == 0) die_amid_calls(ends[1]);
  close(ends[1]);
  cr_assert_eq(read(ends[0], pid, sizeof pid), (ssize_t)sizeof pid);
  cr_assert_eq(waitpid(parent, &state, 0), parent);
  cr_assert_neq(pid[0], pid[1], "the first one hangs: another answered");
  for (int i = 0; i < 2; i++) cr_assert_eq(waitpid(pid[i], &state, 0), pid[i]);
}
