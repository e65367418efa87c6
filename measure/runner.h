// runner - runs programs in a worker process and says how long they take.
//
// What makes a time trustworthy (numbered: the tests name them):
//  1. Correct before fast: a program's outputs are checked, in poisoned buffers between
//     guard pages, before the first timed run; inputs are read-only during that run.
//  2. The timed region holds launches only: buffers, threads and code are ready before.
//  3. Warm-up runs until two in a row agree within 10 % (at most 5 or 20 % of the
//     budget); they are kept, flagged.
//  4. Cold by default: before each sample every cache level the kernel could profit from
//     is displaced by reading a clean buffer of ft_runner_options.flush_bytes.
//  5. A sample in which a pool thread was off its cpu for over 2 % is flagged and leaves
//     the median (measure/noise.h).
//  6. Samples are taken until the 95 % interval of the median is within +-2 %, or the
//     sample or time limit is met; a candidate whose low end is above |beaten_ns| stops
//     early as BEATEN.
//  7. What kills the worker is blamed on the program it was told to run, once; the next
//     program gets a new worker.
#ifndef FT_MEASURE_RUNNER_H
#define FT_MEASURE_RUNNER_H

#include "core/status.h"
#include "graph/ceiling.h"
#include "graph/interpreter.h"
#include "graph/program.h"
#include "graph/target.h"
#include "graph/trial.h"
#include "measure/copy.h"

typedef struct ft_cpu_runner ft_cpu_runner;

typedef struct ft_runner_options {
  const char *const *worker_argv;  // NULL-terminated; NULL: {"/proc/self/exe", "worker"}
  uint64_t flush_bytes;            // 0: 2 x last-level cache, between 8 MiB and 128 MiB
  uint32_t min_samples, max_samples;  // 0: 5 and 50
  uint64_t trial_limit_ns;            // wall limit of one trial's timing; 0: 2 s
  uint64_t check_limit_ns;   // wall limit of one checked run, load included; 0: 10 s
  const volatile int *stop;  // set by a signal handler: leave soon with FT_INTERRUPTED
} ft_runner_options;

// Starts no process yet. Thread-compatible; the worker dies with the thread that made
// the call which started it. |options| is copied, |worker_argv| and |stop| are borrowed
// for the runner's life; NULL: defaults. |target| (borrowed for the call, NULL: unknown)
// tells threads, cache and memory; three quarters of the memory is what one worker may
// take. INVALID_ARGUMENT: more than 65,536 samples.
FT_MUST_CHECK ft_status ft_cpu_runner_create(const ft_runner_options *options,
                                             const ft_target *target,
                                             const ft_allocator *allocator,
                                             ft_cpu_runner **out, ft_error *error);
void ft_cpu_runner_destroy(ft_cpu_runner *runner);
// From now on: check_limit_ns of ft_runner_options (0: the one it was created with).
void ft_cpu_runner_limit_checks(ft_cpu_runner *runner, uint64_t check_limit_ns);
// From now on: trial_limit_ns and max_samples of ft_runner_options (0: the defaults).
void ft_cpu_runner_limit_trials(ft_cpu_runner *runner, uint64_t trial_limit_ns,
                                uint32_t max_samples);

// Compares a program's outputs with what they should be. |output[i]|: bytes of the i-th
// FT_BUFFER_OUTPUT of the program. Fills *out and |worst| (a sentence, when wrong).
typedef struct ft_output_check {
  void *ctx;
  ft_status (*compare)(void *ctx, const void *const *output, ft_comparison *out,
                       char worst[256], ft_error *error);
} ft_output_check;

// Checks (unless |check| is NULL) and times |program|. *out in |arena|, always filled;
// a bad program is an outcome. |is_warm|: no displacement between samples. |beaten_ns|
// 0: nothing to beat. More threads than the pool has count as all of them. An input of
// key 0 is sent anew for each trial.
// out->env: {"cache_bytes","flush_bytes","load","pool","stop","threads"}; cache as the
// system reports it, flush 0 when warm, load of the last minute, pool: threads it has,
// threads: most that a step used, stop: why sampling ended ("" when it did not begin).
// TIMEOUT and CRASH keep the samples that were taken.
// Errors: our own faults, FT_INTERRUPTED, UNAVAILABLE (no worker), INVALID_ARGUMENT (a
// program that contradicts itself; the text says where); *out is then INTERRUPTED.
FT_MUST_CHECK ft_status ft_cpu_runner_trial(
    ft_cpu_runner *runner, const ft_program *program, const ft_output_check *check,
    uint64_t beaten_ns, bool is_warm, ft_arena *arena, ft_trial *out, ft_error *error);

// Runs |program| once in guarded, poisoned buffers and copies its outputs: out_data[i]
// (in |arena|) is the i-th FT_BUFFER_OUTPUT. *out_outcome OK or what happened, with
// |error_text|.
FT_MUST_CHECK ft_status ft_cpu_runner_run(ft_cpu_runner *runner,
                                          const ft_program *program, ft_arena *arena,
                                          void **out_data, ft_outcome *out_outcome,
                                          char error_text[256], ft_error *error);

// Interleaved comparison: in each round every program runs once, in an order that is
// drawn anew from |seed|, after a flush. Stops after |max_rounds| or |limit_ns| (at least
// 9 rounds: with fewer a sign test cannot tell much); one untimed run of each comes
// first. Buffers of equal kind, size and key are shared. All programs must have run OK.
// When the worker dies, complete rounds are kept.
typedef struct ft_compare_result {
  uint32_t rounds, programs;
  const uint64_t *time_ns;  // [round * programs + program]
  const uint8_t *flags;     // sample flags, same layout
  ft_outcome outcome;       // OK, or how the worker died
  uint32_t culprit;         // the program it died in
} ft_compare_result;
FT_MUST_CHECK ft_status ft_cpu_runner_compare(ft_cpu_runner *runner,
                                              const ft_program *const *program,
                                              uint32_t count, uint32_t max_rounds,
                                              uint64_t limit_ns, uint64_t seed,
                                              ft_arena *arena, ft_compare_result *out,
                                              ft_error *error);

// Copy bandwidth seen by this runner's pool with all threads, cold, with each kind of
// store, over |bytes| read plus written (0: 4 x flush_bytes). Under 1 s by default.
FT_MUST_CHECK ft_status ft_cpu_runner_copy_ceiling(ft_cpu_runner *runner, uint64_t bytes,
                                                   ft_copy_rate out[FT_STORES],
                                                   ft_error *error);

// What this machine gives at most, measured by the runner's pool: |out| has room for
// FT_CEILINGS_MOST. |limit_ns| 0: 2.5 s; three rounds (some 0.6 s) are run in any case.
// Takes at most an eighth of the memory. UNAVAILABLE: the worker could not; |arena| is
// for the conversation.
FT_MUST_CHECK ft_status ft_cpu_runner_ceilings(ft_cpu_runner *runner, uint64_t limit_ns,
                                               ft_arena *arena, ft_ceiling *out,
                                               uint32_t *out_count, ft_error *error);

// The worker's own main: serves frames on descriptor |fd| until it closes. Returns the
// exit code. Called by the hidden verb `fusetune worker` and by the tests' worker.
int ft_worker_main(int fd);

#endif
