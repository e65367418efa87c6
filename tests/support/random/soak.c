#include "tests/support/random/soak.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/support/random/random_group.h"
#include "tests/support/random/shrink.h"
#include "tests/support/random/trial.h"

enum {
  BATCH = 32,
  MOST_JOBS = 64,
  MOST_TRIES = 16,
  BUILD_SECONDS = 900,
  RUN_SECONDS = 60
};

// What a batch's process leaves behind, whatever becomes of it.
typedef struct slip {
  uint64_t at;         // the case it is at
  char doing[512];     // and what it does there
  char group[4096];    // with which group
  soak_counts counts;  // of this process
} slip;

typedef struct batch {
  pid_t process;  // 0: free
  uint64_t next, end;
  char folder[96];
  slip *slip;
} batch;

typedef struct soaking {
  const soak_options *options;
  soak_counts counts;
  char folder[64];
  uint64_t next, began_ns, told_ns;
  uint32_t folders;
  uint32_t jobs;
  batch batch[MOST_JOBS];  // not shared: a child would overwrite them
} soaking;

// ---- in the batch's process ----------------------------------------------------------

static void say(const char *text) {
  size_t length = strlen(text);
  if (write(STDERR_FILENO, text, length) != (ssize_t)length) abort();
}

static void note(slip *s, uint64_t at, const char *doing, const char *tactic,
                 const char *schedule) {
  s->at = at;
  snprintf(s->doing, sizeof s->doing, "%s %s %s", doing, tactic, schedule);
}

static void count_kernel(soak_counts *counts, const char *tactic) {
  counts->kernels++;
  for (int i = 0; i < SOAK_TACTICS; i++) {
    if (counts->tactic[i].name[0] && strcmp(counts->tactic[i].name, tactic)) continue;
    snprintf(counts->tactic[i].name, sizeof counts->tactic[i].name, "%s", tactic);
    counts->tactic[i].kernels++;
    return;
  }
}

static void count_failure(soak_counts *counts, uint64_t at) {
  if (counts->failures < SOAK_NAMED) counts->failed[counts->failures] = at;
  counts->failures++;
}

typedef struct attempts {
  trial trial[BATCH];
  uint32_t of[BATCH * MOST_TRIES];  // the trial of candidate i
  ft_candidate candidate[BATCH * MOST_TRIES];
  ft_module module[BATCH * MOST_TRIES];
  uint32_t trials, candidates;
} attempts;

static void fail(bench *b, slip *s, const trial *t, const ft_candidate *candidate,
                 const char *wrong, bool shrinks) {
  count_failure(&s->counts, t->seed);
  say(trial_report(b, t, candidate, wrong));
  if (!shrinks || !candidate) return;
  note(s, t->seed, "shrinking for", candidate->tactic, "");
  say(shrink(b, t, candidate));
}

static void make_attempts(bench *b, slip *s, uint64_t first, uint64_t end,
                          const soak_options *options, attempts *a) {
  for (uint64_t at = first; at < end; at++) {
    trial *t = &a->trial[a->trials++];
    note(s, at, "making", "", "");
    alarm(BUILD_SECONDS);
    const char *wrong = trial_make(b, at, t);
    ft_candidate *drawn = &a->candidate[a->candidates];
    uint32_t count = 0;
    if (!wrong) count = trial_draw(b, t, options->both, drawn, &wrong);
    if (wrong) {
      fail(b, s, t, count ? &drawn[count - 1] : NULL, wrong, false);
      count = 0;
    }
    for (uint32_t i = 0; i < count; i++) a->of[a->candidates + i] = a->trials - 1;
    a->candidates += count;
    s->counts.cases++;
    s->counts.parts += t->is_part;
  }
}

static void run_attempts(bench *b, slip *s, const soak_options *options, attempts *a) {
  for (uint32_t i = 0; i < a->candidates; i++) {
    const trial *t = &a->trial[a->of[i]];
    const ft_candidate *c = &a->candidate[i];
    trial_counts counts = {0};
    note(s, t->seed, "running", c->tactic, ft_schedule_json(&c->schedule, b->arena));
    snprintf(s->group, sizeof s->group, "%s", group_text(&t->workload.group, b->arena));
    alarm(RUN_SECONDS);
    const char *wrong = trial_run(b, t, &a->module[i], &counts);
    alarm(BUILD_SECONDS);
    count_kernel(&s->counts, c->tactic);
    s->counts.elements += counts.elements;
    s->counts.uncertain += counts.uncertain;
    if (wrong) fail(b, s, t, c, wrong, options->shrinks);
  }
}

// The target belongs to the block of BATCH cases, so that a case means one kernel.
static void run_batch(slip *s, const char *folder, uint64_t first, uint64_t end,
                      const soak_options *options) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  bench b;
  bench_open(first / BATCH, folder, 1, arena, &b);
  attempts *a = FT_NEW(arena, attempts);
  make_attempts(&b, s, first, end, options, a);
  note(s, first, "building the batch from here", "", "");
  ft_error error;
  if (b.builder.build(b.builder.self, a->candidate, a->candidates, false, arena,
                      a->module, &error) != FT_OK) {
    say(error.text);
    abort();
  }
  run_attempts(&b, s, options, a);
  bench_close(&b);
  ft_arena_destroy(arena);
}

// ---- around it ------------------------------------------------------------------------

static void *shared(size_t bytes) {
  void *map =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) abort();
  return map;
}

static void start(const soaking *s, batch *b) {
  memset(b->slip, 0, sizeof *b->slip);
  b->slip->at = b->next;
  fflush(NULL);
  b->process = fork();
  if (b->process < 0) abort();
  if (b->process) return;
  signal(SIGALRM, SIG_DFL);
  run_batch(b->slip, b->folder, b->next, b->end, s->options);
  _exit(0);
}

static void remove_folder(const char *folder) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command)) say("soak: cannot remove its folder\n");
}

static void add_counts(soak_counts *to, const soak_counts *from) {
  to->cases += from->cases;
  to->kernels += from->kernels;
  to->parts += from->parts;
  to->elements += from->elements;
  to->uncertain += from->uncertain;
  for (uint64_t i = 0; i < from->failures; i++)
    count_failure(to, i < SOAK_NAMED ? from->failed[i] : 0);
  for (int i = 0; i < SOAK_TACTICS && from->tactic[i].name[0]; i++)
    for (int j = 0; j < SOAK_TACTICS; j++) {
      if (to->tactic[j].name[0] && strcmp(to->tactic[j].name, from->tactic[i].name))
        continue;
      memcpy(to->tactic[j].name, from->tactic[i].name, sizeof to->tactic[j].name);
      to->tactic[j].kernels += from->tactic[i].kernels;
      break;
    }
}

static void report_death(soaking *s, const batch *b, int status) {
  enum { ROOM = sizeof b->slip->group + 1024 };
  char text[ROOM], how[64];
  if (WIFSIGNALED(status))
    snprintf(how, sizeof how, "signal %d (%s)", WTERMSIG(status),
             WTERMSIG(status) == SIGALRM ? "it hung" : strsignal(WTERMSIG(status)));
  else
    snprintf(how, sizeof how, "exit code %d", WEXITSTATUS(status));
  unsigned long long at = b->slip->at;
  snprintf(text, sizeof text,
           "case %llu: died of %s while %s\n%s"
           "  rerun: scripts/soak.sh --case %llu, or FT_RANDOM_CASE=%llu\n",
           at, how, b->slip->doing, b->slip->group, at, at);
  say(text);
  count_failure(&s->counts, at);
}

// After a death the batch goes on behind the case that was its end.
static void finish(soaking *s, batch *b, int status) {
  bool is_whole = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  add_counts(&s->counts, &b->slip->counts);
  if (!is_whole) report_death(s, b, status);
  b->next = is_whole ? b->end : b->slip->at + 1;
  if (b->next < b->end) {
    start(s, b);
    return;
  }
  remove_folder(b->folder);
  b->process = 0;
}

static bool is_over(const soaking *s) {
  const soak_options *o = s->options;
  double minutes = (double)(ft_clock_ns() - s->began_ns) / 60e9;
  return s->next >= o->first + o->count || (o->minutes > 0 && minutes >= o->minutes);
}

static void start_next(soaking *s, batch *b) {
  uint64_t last = s->options->first + s->options->count;
  b->next = s->next;
  b->end = (s->next / BATCH + 1) * BATCH;
  if (b->end > last) b->end = last;
  s->next = b->end;
  snprintf(b->folder, sizeof b->folder, "%s/%u", s->folder, s->folders++);
  start(s, b);
}

static void tell(soaking *s, bool is_end) {
  uint64_t now = ft_clock_ns();
  if (s->options->is_quiet || (!is_end && now - s->told_ns < 10000000000ull)) return;
  s->told_ns = now;
  printf("%llu cases, %llu kernels, %llu failures, %.0f s\n",
         (unsigned long long)s->counts.cases, (unsigned long long)s->counts.kernels,
         (unsigned long long)s->counts.failures, (double)(now - s->began_ns) / 1e9);
  fflush(stdout);
}

static batch *batch_of(soaking *s, pid_t process) {
  for (uint32_t i = 0; i < s->jobs; i++)
    if (s->batch[i].process == process) return &s->batch[i];
  return NULL;
}

// Waits for one of the batches, none other's children.
static void wait_one(soaking *s) {
  for (;;) {
    for (uint32_t i = 0; i < s->jobs; i++) {
      int status;
      pid_t process = s->batch[i].process;
      if (!process || waitpid(process, &status, WNOHANG) != process) continue;
      finish(s, batch_of(s, process), status);
      return;
    }
    usleep(5000);
  }
}

static bool any_runs(const soaking *s) {
  for (uint32_t i = 0; i < s->jobs; i++)
    if (s->batch[i].process) return true;
  return false;
}

soak_counts soak_run(const soak_options *options) {
  soaking s = {.options = options, .next = options->first, .began_ns = ft_clock_ns()};
  strcpy(s.folder, P_tmpdir "/fusetune-soak-XXXXXX");
  if (!mkdtemp(s.folder)) abort();
  s.jobs = options->jobs < MOST_JOBS ? options->jobs : MOST_JOBS;
  slip *slips = shared(s.jobs * sizeof *slips);
  for (uint32_t i = 0; i < s.jobs; i++) s.batch[i].slip = &slips[i];
  do {
    for (uint32_t i = 0; i < s.jobs; i++)
      if (!s.batch[i].process && !is_over(&s)) start_next(&s, &s.batch[i]);
    if (any_runs(&s)) wait_one(&s);
    tell(&s, false);
  } while (any_runs(&s) || !is_over(&s));
  tell(&s, true);
  munmap(slips, s.jobs * sizeof *slips);
  remove_folder(s.folder);
  return s.counts;
}
