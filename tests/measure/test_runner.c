#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "tests/measure/workbench.h"
#include "tests/support/limited.h"

static bool contains(const char *text, const char *part) {
  return strstr(text, part) != NULL;
}

// One bad program, its outcome and words of its error, then a good one.
static void ends_as(const char *entry, int64_t s2, int64_t s3, ft_outcome outcome,
                    const char *words) {
  // Limits that a busy machine does not reach; the endless ones wait for them.
  workbench w = bench_open_with((ft_runner_options){.check_limit_ns = 3000000000});
  ft_trial t = bench_trial(&w, bench_program(&w, entry, s2, s3));
  cr_expect_eq(t.outcome, outcome, "%s: %s, %s", entry, ft_outcome_text(t.outcome),
               t.error);
  cr_expect(contains(outcome == FT_OUTCOME_WRONG_RESULT ? t.worst : t.error, words),
            "%s: error '%s', worst '%s'", entry, t.error, t.worst);
  bench_still_works(&w);
  bench_close(&w);
}

Test(measure_runner, checks_and_times_a_right_program) {
  workbench w = bench_open();
  ft_trial t = bench_trial(&w, bench_program(&w, "scale", 0, 0));
  cr_assert_eq(t.outcome, FT_OUTCOME_OK, "%s%s", t.error, t.worst);
  cr_expect_eq(t.max_error_ratio, 0.0);
  cr_expect_str_empty(t.worst);
  cr_expect_str_empty(t.error);
  cr_expect_gt(t.time.median_ns, 0);
  cr_expect(t.time.low_ns <= t.time.median_ns && t.time.median_ns <= t.time.high_ns);
  cr_expect(t.sample_count >= t.time.samples && t.time.samples > 0);
  cr_expect(t.sample_flags[0] & FT_SAMPLE_WARM_UP);
  cr_expect(t.ended_at >= t.started_at);
  cr_expect(contains(t.env, "\"flush_bytes\":1048576") && contains(t.env, "\"load\":"),
            "%s", t.env);
  bench_close(&w);
}

Test(measure_runner, a_warm_trial_is_not_flushed_and_an_unchecked_one_says_so) {
  workbench w = bench_open();
  ft_trial t;
  cr_assert_eq(ft_cpu_runner_trial(w.runner, bench_program(&w, "scale", 0, 0), NULL, 0,
                                   true, w.arena, &t, &w.error),
               FT_OK);
  cr_expect_eq(t.outcome, FT_OUTCOME_OK, "%s", t.error);
  cr_expect_lt(t.max_error_ratio, 0.0);
  cr_expect(contains(t.env, "\"flush_bytes\":0"), "%s", t.env);
  bench_close(&w);
}

Test(measure_runner, a_slow_candidate_is_beaten_and_keeps_its_samples) {
  // Room for samples that a busy machine spoils.
  workbench w = bench_open_with((ft_runner_options){.max_samples = 2000});
  ft_trial t;
  cr_assert_eq(ft_cpu_runner_trial(w.runner, bench_program(&w, "scale", 0, 0),
                                   &bench_check, 1, false, w.arena, &t, &w.error),
               FT_OK);
  cr_expect_eq(t.outcome, FT_OUTCOME_BEATEN, "%s", ft_outcome_text(t.outcome));
  cr_expect(t.sample_count > 0 && t.time.median_ns > 1);
  cr_expect(contains(t.env, "\"stop\":\"beaten\""), "%s", t.env);
  bench_close(&w);
}

static void surroundings(workbench *w, const char *link, float out[5]) {
  ft_program *p = bench_program(w, "tell_surroundings", 0, 0);
  ft_module *m = FT_NEW(w->arena, ft_module);
  *m = *p->step[0].module;
  m->link = link;
  m->grid = 1;
  ft_program_step step = p->step[0];
  step.module = m;
  p->step = &step;
  void *data[1];
  ft_outcome outcome;
  char text[256] = "";
  cr_assert_eq(ft_cpu_runner_run(w->runner, p, w->arena, data, &outcome, text, &w->error),
               FT_OK, "%s", w->error.text);
  cr_assert_eq(outcome, FT_OUTCOME_OK, "%s", text);
  memcpy(out, data[0], 5 * sizeof *out);
}

Test(measure_runner, a_library_finds_every_cpu_when_it_is_loaded_and_does_not_spin) {
  cpu_set_t set;
  cr_assert_eq(sched_getaffinity(0, sizeof set, &set), 0);
  float all = (float)CPU_COUNT(&set), with[5], without[5];
  workbench w = bench_open();
  surroundings(&w, "dnnl", with);
  bench_close(&w);
  w = bench_open();
  surroundings(&w, NULL, without);
  bench_close(&w);
  cr_expect_eq(with[0], all);
  cr_expect_eq(without[0], 1);
  for (int i = 0; i < 2; i++) {
    const float *y = i ? with : without;
    cr_expect_eq(y[1], 1, "the caller is pinned");
    cr_expect_eq(y[2], all);
    cr_expect_eq(y[3], all);
    cr_expect_eq(y[4], 1);
  }
}

Test(measure_runner, a_null_write_is_a_crash_with_signal_address_and_step) {
  ends_as("null_write", 0, 0, FT_OUTCOME_CRASH, "SIGSEGV at address 0x0 in step 0");
}
Test(measure_runner, a_write_to_an_input_is_a_crash_that_names_it) {
  ends_as("write_input", 0, 0, FT_OUTCOME_CRASH, "12 bytes inside input 0");
}
Test(measure_runner, a_far_write_past_an_output_is_a_crash_that_names_it) {
  ends_as("stray", 4, BENCH_ELEMENTS * 4 + 100000, FT_OUTCOME_CRASH,
          "100000 bytes past output 0");
}
Test(measure_runner, a_far_write_before_an_output_is_a_crash_that_names_it) {
  ends_as("stray", 4, -1000000, FT_OUTCOME_CRASH, "1000000 bytes before output 0");
}
Test(measure_runner, a_near_write_past_an_output_is_a_wrong_result) {
  ends_as("stray", 12, BENCH_ELEMENTS * 4, FT_OUTCOME_WRONG_RESULT,
          "wrote 12 bytes past output 0");
}
Test(measure_runner, a_near_write_before_an_output_is_a_wrong_result) {
  ends_as("stray", 4, -16, FT_OUTCOME_WRONG_RESULT, "wrote 16 bytes before output 0");
}
Test(measure_runner, an_endless_loop_is_a_timeout) {
  ends_as("forever", 0, 0, FT_OUTCOME_TIMEOUT, "over the time limit in step 0");
}
Test(measure_runner, not_a_number_is_a_wrong_result) {
  ends_as("not_a_number", 0, 0, FT_OUTCOME_WRONG_RESULT, "output 0 at 0: got");
}
Test(measure_runner, an_unwritten_half_is_a_wrong_result) {
  ends_as("half", 0, 0, FT_OUTCOME_WRONG_RESULT, "output 0 at 500: got");
}
Test(measure_runner, a_refusing_entry_is_a_launch_error_with_step_and_code) {
  ends_as("refuse", 0, 0, FT_OUTCOME_LAUNCH_ERROR, "step 0 (refuse) returned 7");
}
Test(measure_runner, a_missing_symbol_is_a_launch_error) {
  ends_as("no_such_entry", 0, 0, FT_OUTCOME_LAUNCH_ERROR, "no symbol 'no_such_entry'");
}
Test(measure_runner, a_division_by_zero_is_a_crash_with_its_signal) {
  ends_as("divide_by_zero", 0, 0, FT_OUTCOME_CRASH, "SIGFPE in step 0");
}
Test(measure_runner, an_abort_is_a_crash_with_its_signal) {
  ends_as("call_abort", 0, 0, FT_OUTCOME_CRASH, "SIGABRT in step 0");
}
Test(measure_runner, an_exit_is_a_crash_with_its_code) {
  ends_as("call_exit", 0, 0, FT_OUTCOME_CRASH, "exited with code 3 in step 0");
}
Test(measure_runner, a_stack_overflow_is_a_crash_on_the_alternate_stack) {
  ends_as("stack_overflow", 0, 0, FT_OUTCOME_CRASH, "SIGSEGV at address");
}
Test(measure_runner, a_kill_from_elsewhere_is_a_crash_with_its_signal) {
  ends_as("kill_nine", 0, 0, FT_OUTCOME_CRASH, "SIGKILL in step 0");
}
Test(measure_runner, a_crash_on_a_helper_thread_is_a_crash) {
  ends_as("crash_on_helper", 0, 0, FT_OUTCOME_CRASH, "SIGSEGV at address 0x10");
}
Test(measure_runner, a_kernel_that_writes_to_the_socket_breaks_the_protocol) {
  ends_as("babble", 0, 0, FT_OUTCOME_CRASH, "broke the protocol");
}
Test(measure_runner, a_kernel_that_closes_the_socket_is_killed) {
  ends_as("close_socket", 0, 0, FT_OUTCOME_CRASH, "SIGKILL");
}
Test(measure_runner, a_crash_while_timing_says_so) {
  // One grid of 16 blocks and 2 threads counts calls racily: far above the checked run.
  ends_as("crash_later", 20, 0, FT_OUTCOME_CRASH, "timing step 0");
}

Test(measure_runner, samples_taken_before_the_time_limit_are_kept) {
  workbench w = bench_open_with(
      (ft_runner_options){.trial_limit_ns = 3000000000,
                          .check_limit_ns = 1000000000,  // what a sample gets beyond it
                          .max_samples = 5000});
  ft_program *p = bench_program(&w, "forever_later", 16 * 8, 0);
  ft_module *m = bench_module(&w, "forever_later", 16, 1, 3, BENCH_ELEMENTS, 16 * 3, 0);
  ((ft_program_step *)(uintptr_t)p->step)->module = m;
  ft_trial t = bench_trial(&w, p);
  cr_expect_eq(t.outcome, FT_OUTCOME_TIMEOUT, "%s", ft_outcome_text(t.outcome));
  cr_expect_eq(t.sample_count, 2, "%u", t.sample_count);
  cr_expect(contains(t.error, "timing step 0"), "%s", t.error);
  bench_still_works(&w);
  bench_close(&w);
}

Test(measure_runner, a_module_that_does_not_load_is_a_launch_error_with_the_reason) {
  workbench w = bench_open();
  const char *path = ft_arena_printf(w.arena, "%s.txt", w.object);
  FILE *file = fopen(path, "we");
  fputs("this is no shared object\n", file);
  fclose(file);
  ft_program *p = bench_program(&w, "scale", 0, 0);
  ((ft_module *)(uintptr_t)p->step[0].module)->path = path;
  ft_trial t = bench_trial(&w, p);
  cr_expect_eq(t.outcome, FT_OUTCOME_LAUNCH_ERROR);
  cr_expect(contains(t.error, "step 0: cannot load"), "%s", t.error);
  ((ft_module *)(uintptr_t)p->step[0].module)->path = "/no/such/object.so";
  t = bench_trial(&w, p);
  cr_expect_eq(t.outcome, FT_OUTCOME_LAUNCH_ERROR);
  cr_expect(contains(t.error, "No such file"), "%s", t.error);
  bench_still_works(&w);
  bench_close(&w);
}

Test(measure_runner, a_buffer_beyond_memory_is_out_of_memory) {
  workbench w = bench_open();
  ft_program *p = bench_program(&w, "nothing", 0, 0);
  ((ft_program_buffer *)(uintptr_t)p->buffer)[1].bytes = (uint64_t)1 << 44;
  ft_trial t;
  cr_assert_eq(ft_cpu_runner_trial(w.runner, p, NULL, 0, false, w.arena, &t, &w.error),
               FT_OK);
  cr_expect_eq(t.outcome, FT_OUTCOME_OUT_OF_MEMORY, "%s", ft_outcome_text(t.outcome));
  cr_expect(contains(t.error, "17592186044416"), "%s", t.error);
  bench_still_works(&w);
  bench_close(&w);
}

Test(measure_runner, two_steps_share_an_intermediate_at_an_offset) {
  workbench w = bench_open();
  ft_program *p = bench_program(&w, "scale", 0, 0);
  ft_program_buffer b[3] = {p->buffer[0],
                            bench_buffer(FT_BUFFER_INTERMEDIATE, BENCH_ELEMENTS, NULL, 0),
                            p->buffer[1]};
  b[1].offset = 128;
  ft_module *add = bench_module(&w, "add_one", 1, 1, 0, BENCH_ELEMENTS, 0, 0);
  add->scratch_bytes = add->workspace_bytes = BENCH_ELEMENTS * 4;
  ft_module *scale = bench_module(&w, "scale", 16, 2, 1, BENCH_ELEMENTS, 0, 0);
  const uint32_t first[] = {0, 1}, second[] = {1, 2};
  const ft_program_step steps[] = {{add, 2, first}, {scale, 2, second}};
  ft_program two = {.name = "two",
                    .buffer_count = 3,
                    .step_count = 2,
                    .buffer = b,
                    .step = steps,
                    .workspace_bytes = 128 + BENCH_ELEMENTS * 4 + 60};
  ft_trial t = bench_trial(&w, &two);  // 2 (x + 1) + 1 = 2 x + 3
  cr_expect_eq(t.outcome, FT_OUTCOME_OK, "%s%s", t.error, t.worst);
  bench_close(&w);
}

Test(measure_runner, each_step_finds_its_workspace_as_it_left_it_and_zero_at_first) {
  workbench w = bench_open();
  ft_program *p = bench_program(&w, "scale", 0, 0);
  ft_program_step steps[2];
  const uint32_t arguments[] = {0, 1};
  for (int i = 0; i < 2; i++) {
    ft_module *m = bench_module(&w, "scale_in_last", 16, 2, 3, BENCH_ELEMENTS, 16, 1 + i);
    m->workspace_bytes = 8;
    steps[i] = (ft_program_step){m, 2, arguments};
  }
  ft_program both = *p;
  both.step_count = 2;
  both.step = steps;
  for (int run = 0; run < 2; run++) {
    ft_trial t = bench_trial(&w, &both);
    cr_expect_eq(t.outcome, FT_OUTCOME_OK, "%s%s", t.error, t.worst);
    cr_expect_gt(t.sample_count, 1);
  }
  bench_close(&w);
}

Test(measure_runner, buffers_of_no_bytes_run) {
  workbench w = bench_open();
  ft_module *m = bench_module(&w, "scale", 1, 1, 3, 0, 0, 0);
  ft_program *p = bench_program_of(&w, m, 0);
  int64_t none = 0;
  ft_output_check check = {&none, bench_compare};
  ft_trial t;
  cr_assert_eq(ft_cpu_runner_trial(w.runner, p, &check, 0, false, w.arena, &t, &w.error),
               FT_OK);
  cr_expect_eq(t.outcome, FT_OUTCOME_OK, "%s%s", t.error, t.worst);
  bench_close(&w);
}

Test(measure_runner, run_gives_the_outputs_or_the_reason) {
  workbench w = bench_open();
  void *data[1];
  ft_outcome outcome;
  char text[256];
  ft_program *p = bench_program(&w, "scale", 0, 0);
  cr_assert_eq(ft_cpu_runner_run(w.runner, p, w.arena, data, &outcome, text, &w.error),
               FT_OK);
  cr_assert_eq(outcome, FT_OUTCOME_OK, "%s", text);
  for (int i = 0; i < BENCH_ELEMENTS; i++)
    cr_assert_eq(((float *)data[0])[i], (float)(2 * i + 3));
  p = bench_program(&w, "stray", 3, BENCH_ELEMENTS * 4);
  cr_assert_eq(ft_cpu_runner_run(w.runner, p, w.arena, data, &outcome, text, &w.error),
               FT_OK);
  cr_expect_eq(outcome, FT_OUTCOME_WRONG_RESULT);
  cr_expect_str_eq(text, "wrote 3 bytes past output 0");
  bench_close(&w);
}

Test(measure_runner, an_input_is_sent_once_per_key_and_again_to_a_new_worker) {
  workbench w = bench_open();
  ft_program *p = bench_program(&w, "scale", 0, 0);
  bench_trial(&w, p);
  // The bytes under the key are the ones that came first: the runner did not look.
  float *x = (float *)(uintptr_t)p->buffer[0].data;
  memset(x, 0, BENCH_ELEMENTS * 4);
  cr_expect_eq(bench_trial(&w, p).outcome, FT_OUTCOME_OK);
  bench_trial(&w, bench_program(&w, "null_write", 0, 0));
  cr_expect_eq(bench_trial(&w, p).outcome, FT_OUTCOME_WRONG_RESULT);
  bench_close(&w);
}

Test(measure_runner, the_callers_mistakes_are_errors_that_name_the_place) {
  workbench w = bench_open();
  ft_trial t;
  ft_program *p = bench_program(&w, "scale", 0, 0);
  ((uint32_t *)(uintptr_t)p->step[0].argument)[1] = 9;
  cr_expect_eq(ft_cpu_runner_trial(w.runner, p, NULL, 0, false, w.arena, &t, &w.error),
               FT_INVALID_ARGUMENT);
  cr_expect(contains(w.error.text, "step 0, argument 1 is buffer 9 of 2"), "%s",
            w.error.text);
  cr_expect_eq(t.outcome, FT_OUTCOME_INTERRUPTED);
  p = bench_program(&w, "scale", 0, 0);
  ((ft_program_buffer *)(uintptr_t)p->buffer)[0].data = NULL;
  cr_expect_eq(ft_cpu_runner_trial(w.runner, p, NULL, 0, false, w.arena, &t, &w.error),
               FT_INVALID_ARGUMENT);
  p = bench_program(&w, "scale", 0, 0);
  ft_program_buffer *b = (ft_program_buffer *)(uintptr_t)p->buffer;
  b[1].kind = FT_BUFFER_INTERMEDIATE;
  b[1].offset = 64;
  cr_expect_eq(ft_cpu_runner_trial(w.runner, p, NULL, 0, false, w.arena, &t, &w.error),
               FT_INVALID_ARGUMENT);
  bench_close(&w);
}

Test(measure_runner, a_missing_or_mute_worker_is_unavailable) {
  const char *const missing[] = {"/no/such/worker", NULL};
  const char *const mute[] = {"/bin/true", NULL};
  const char *const *const argvs[] = {missing, mute};
  for (int i = 0; i < 2; i++) {
    workbench w = bench_open_with((ft_runner_options){.worker_argv = argvs[i]});
    ft_trial t;
    cr_expect_eq(ft_cpu_runner_trial(w.runner, bench_program(&w, "scale", 0, 0), NULL, 0,
                                     false, w.arena, &t, &w.error),
                 FT_UNAVAILABLE);
    cr_expect(contains(w.error.text, argvs[i][0]), "%s", w.error.text);
    bench_close(&w);
  }
}

// ---- stopping -------------------------------------------------------------------------

static volatile int stop;
static void set_stop(int number) {
  (void)number;
  stop = 1;
}

// Children of this process that still exist.
static int count_children(void) {
  char path[64], text[4096] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
  FILE *file = fopen(path, "re");
  if (!file) return -1;
  size_t got = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  int count = 0;
  for (size_t i = 0; i < got; i++) count += text[i] == ' ';
  return count;
}

Test(measure_runner, the_stop_flag_interrupts_a_trial_and_leaves_no_process) {
  workbench w = bench_open_with((ft_runner_options){.stop = &stop});
  signal(SIGALRM, set_stop);
  bench_still_works(&w);
  cr_expect_leq(count_children(), 1);
  alarm(1);
  ft_trial t;
  cr_expect_eq(ft_cpu_runner_trial(w.runner, bench_program(&w, "forever", 0, 0), NULL, 0,
                                   false, w.arena, &t, &w.error),
               FT_INTERRUPTED);
  cr_expect_eq(t.outcome, FT_OUTCOME_INTERRUPTED);
  cr_expect_leq(count_children(), 0);
  cr_expect_eq(ft_cpu_runner_trial(w.runner, bench_program(&w, "scale", 0, 0), NULL, 0,
                                   false, w.arena, &t, &w.error),
               FT_INTERRUPTED);
  stop = 0;
  bench_still_works(&w);
  bench_close(&w);
}

// The pids of our children as text; false when the system does not tell.
static bool read_children(char *out, size_t room) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
  FILE *file = fopen(path, "re");
  bool is_there = file && fgets(out, (int)room, file);
  if (file) fclose(file);
  return is_there;
}

static void *kill_worker_soon(void *unused) {
  (void)unused;
  char text[256] = "";
  usleep(300000);
  if (read_children(text, sizeof text)) kill((pid_t)strtol(text, NULL, 10), SIGKILL);
  return NULL;
}

Test(measure_runner, a_worker_killed_in_mid_trial_is_a_crash_with_the_signal) {
  workbench w = bench_open();
  pthread_t killer;
  char text[256];
  bench_still_works(&w);
  if (!read_children(text, sizeof text)) cr_skip_test("no /proc/self/task/*/children");
  cr_assert_eq(pthread_create(&killer, NULL, kill_worker_soon, NULL), 0);
  ft_trial t = bench_trial(&w, bench_program(&w, "wait_for_ever", 0, 0));
  pthread_join(killer, NULL);
  cr_expect_eq(t.outcome, FT_OUTCOME_CRASH, "%s", ft_outcome_text(t.outcome));
  cr_expect(contains(t.error, "SIGKILL in step 0"), "%s", t.error);
  bench_still_works(&w);
  bench_close(&w);
}

Test(measure_runner, a_worker_that_died_idle_is_blamed_on_nobody) {
  workbench w = bench_open();
  char text[256];
  bench_still_works(&w);
  if (!read_children(text, sizeof text)) cr_skip_test("no /proc/self/task/*/children");
  pid_t worker = (pid_t)strtol(text, NULL, 10);
  kill(worker, SIGKILL);
  siginfo_t info;
  cr_assert_eq(waitid(P_PID, (id_t)worker, &info, WEXITED | WNOWAIT), 0);
  bench_still_works(&w);
  bench_close(&w);
}

Test(measure_runner, out_of_our_memory_is_an_error_that_blames_nobody) {
  workbench w = bench_open();
  // A kilobyte of scalars per step: several blocks of the arena.
  ft_program *p = bench_program(&w, "scale", 0, 0);
  ft_module *m = (ft_module *)(uintptr_t)p->step[0].module;
  int64_t *many = FT_NEW_ARRAY(w.arena, int64_t, 20000);
  many[0] = 3;
  many[1] = BENCH_ELEMENTS;
  m->scalar = many;
  m->scalar_count = 20000;
  ft_status status = FT_OUT_OF_MEMORY;
  int n = 0;
  for (; status == FT_OUT_OF_MEMORY && n < 100; n++) {
    limited l = {.left = n};
    ft_allocator limits = limited_allocator(&l);
    ft_arena *arena = ft_arena_create(&limits);
    if (!arena) continue;
    ft_trial t;
    status =
        ft_cpu_runner_trial(w.runner, p, &bench_check, 0, false, arena, &t, &w.error);
    cr_expect_eq(t.outcome, status == FT_OK ? FT_OUTCOME_OK : FT_OUTCOME_INTERRUPTED,
                 "%d allocations: %s, %s", n, ft_outcome_text(t.outcome), t.error);
    ft_arena_destroy(arena);
  }
  cr_expect_eq(status, FT_OK, "%s", w.error.text);
  cr_expect_gt(n, 4);
  bench_still_works(&w);
  bench_close(&w);
}

Test(measure_runner, a_timeout_kills_what_the_kernel_forked_too) {
  workbench w = bench_open_with((ft_runner_options){.check_limit_ns = 3000000000});
  ft_trial t = bench_trial(&w, bench_program(&w, "leave_child", 0, 0));
  cr_expect_eq(t.outcome, FT_OUTCOME_TIMEOUT, "%s", ft_outcome_text(t.outcome));
  // Its group is gone: nobody holds the socket, so a new worker works and leaves.
  bench_still_works(&w);
  bench_close(&w);
}

static int open_descriptors(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (readdir(folder)) count++;
  closedir(folder);
  return count;
}

static int shared_mappings(void) {
  int count = 0;
  char line[512];
  FILE *file = fopen("/proc/self/maps", "re");
  while (fgets(line, sizeof line, file)) count += contains(line, "memfd:fusetune");
  fclose(file);
  return count;
}

Test(measure_runner, two_hundred_trials_leak_no_descriptor_and_no_mapping) {
  workbench w = bench_open_with((ft_runner_options){.max_samples = 1, .min_samples = 1});
  bench_still_works(&w);
  int before = open_descriptors(), mapped = shared_mappings();
  for (int i = 0; i < 200; i++) {
    const char *entry = i % 20 == 19 ? "null_write" : "scale";
    bench_trial(&w, bench_program(&w, entry, 0, 0));
  }
  bench_still_works(&w);
  cr_expect_eq(open_descriptors(), before);
  cr_expect_eq(shared_mappings(), mapped);
  bench_close(&w);
  cr_expect_lt(open_descriptors(), before);
  cr_expect_eq(shared_mappings(), 0);
}

// A process that owns a runner whose worker is busy for ever dies of SIGKILL.
Test(measure_runner, the_worker_dies_with_its_runner) {
  int note[2];
  cr_assert_eq(pipe(note), 0);
  pid_t owner = fork();
  if (owner == 0) {
    // A held write end: the worker inherits nothing, so end of file means we are gone.
    workbench w = bench_open_with((ft_runner_options){.check_limit_ns = UINT64_MAX});
    bench_still_works(&w);
    char text[64] = "";
    if (!read_children(text, sizeof text)) _exit(1);
    if (write(note[1], text, sizeof text) != sizeof text) _exit(1);
    (void)bench_trial(&w, bench_program(&w, "forever", 0, 0));
    _exit(0);
  }
  close(note[1]);
  char text[64] = "";
  ssize_t got = read(note[0], text, sizeof text);
  close(note[0]);
  if (got <= 0) cr_skip_test("no /proc/self/task/*/children");
  pid_t worker = (pid_t)strtol(text, NULL, 10);
  cr_assert(worker > 0 && kill(worker, 0) == 0, "worker %d", (int)worker);
  usleep(50000);
  kill(owner, SIGKILL);
  waitpid(owner, NULL, 0);
  // Orphans are reaped by init; until then a zombie still answers kill(0).
  bool is_gone = false;
  for (int i = 0; i < 500 && !is_gone; i++) {
    char path[64], state[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)worker);
    FILE *file = fopen(path, "re");
    is_gone = !file || !fgets(state, sizeof state, file) || contains(state, ") Z ");
    if (file) fclose(file);
    if (!is_gone) usleep(10000);
  }
  cr_expect(is_gone);
}

// ---- many programs --------------------------------------------------------------------

Test(measure_runner, compare_gives_rounds_times_programs_samples) {
  workbench w = bench_open();
  const ft_program *programs[3];
  for (int i = 0; i < 3; i++) programs[i] = bench_program(&w, "scale", i, 0);
  ft_compare_result r;
  cr_assert_eq(ft_cpu_runner_compare(w.runner, programs, 3, 7, UINT64_MAX, 42, w.arena,
                                     &r, &w.error),
               FT_OK, "%s", w.error.text);
  cr_assert_eq(r.outcome, FT_OUTCOME_OK);
  cr_expect_eq(r.rounds, 7);
  cr_expect_eq(r.programs, 3);
  for (uint32_t i = 0; i < r.rounds * r.programs; i++) cr_expect_gt(r.time_ns[i], 0);
  cr_assert_eq(
      ft_cpu_runner_compare(w.runner, programs, 3, 100, 0, 42, w.arena, &r, &w.error),
      FT_OK);
  cr_expect_eq(r.rounds, 9, "nine rounds whatever the limit, not %u", r.rounds);
  bench_close(&w);
}

Test(measure_runner, compare_names_the_program_it_died_in) {
  workbench w = bench_open();
  const ft_program *programs[3];
  for (int i = 0; i < 3; i++)
    programs[i] = bench_program(&w, i == 1 ? "crash_later" : "scale", 50, 0);
  ft_compare_result r;
  cr_assert_eq(ft_cpu_runner_compare(w.runner, programs, 3, 1000, UINT64_MAX, 42, w.arena,
                                     &r, &w.error),
               FT_OK, "%s", w.error.text);
  cr_expect_eq(r.outcome, FT_OUTCOME_CRASH, "%s", ft_outcome_text(r.outcome));
  cr_expect_eq(r.culprit, 1);
  bench_still_works(&w);
  bench_close(&w);
}

Test(measure_runner, copying_has_a_ceiling_for_each_kind_of_store) {
  workbench w = bench_open_with((ft_runner_options){.flush_bytes = 4 << 20});
  static const uint64_t sizes[] = {0, 1, 1000, 1 << 20};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    ft_copy_rate rate[FT_STORES];
    cr_assert_eq(ft_cpu_runner_copy_ceiling(w.runner, sizes[i], rate, &w.error), FT_OK,
                 "%s", w.error.text);
    for (int kind = 0; kind < FT_STORES; kind++) {
      cr_expect_gt(rate[kind].median, 0);
      cr_expect_geq(rate[kind].best, rate[kind].median);
    }
  }
  bench_still_works(&w);
  bench_close(&w);
}
