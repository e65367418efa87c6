// timing - times the programs of a job in the worker.
#ifndef FT_MEASURE_TIMING_H
#define FT_MEASURE_TIMING_H

#include "measure/copy.h"
#include "measure/job.h"
#include "measure/noise.h"
#include "measure/sampler.h"

// What stays for the life of the worker.
typedef struct ft_timing {
  ft_pool *pool;
  ft_noise *noise;
  uint64_t flush_bytes;
  ft_guarded flush;  // created at the first cold sample
  uint64_t *room;    // [FT_BOARD_SAMPLES]
} ft_timing;

FT_MUST_CHECK ft_status ft_timing_init(ft_timing *timing, ft_pool *pool,
                                       uint64_t flush_bytes, ft_arena *arena,
                                       ft_error *error);
void ft_timing_fini(ft_timing *timing);

// A step that returned non-zero.
typedef struct ft_step_failure {
  bool happened;
  uint32_t program, step;
  int32_t code;
} ft_step_failure;

// Samples program 0 onto the board. OUT_OF_MEMORY: no room for the flush buffer.
FT_MUST_CHECK ft_status ft_timing_sample(ft_timing *timing, ft_job *job,
                                         const ft_sampling *sampling, bool is_warm,
                                         ft_stop *out_stop, ft_step_failure *out_failure,
                                         ft_error *error);
enum { FT_FEWEST_ROUNDS = 9 };

// Rounds of all programs, in an order drawn anew for each; sample [round * programs +
// program] of the board. At least 9 rounds, then until |max_rounds| or |limit_ns|.
FT_MUST_CHECK ft_status ft_timing_compare(ft_timing *timing, ft_job *job,
                                          uint32_t max_rounds, uint64_t limit_ns,
                                          uint64_t seed, uint32_t *out_rounds,
                                          ft_step_failure *out_failure, ft_error *error);
// Makes the buffer whose reading displaces the caches, if it is not there; displaces
// them, as before a cold sample.
FT_MUST_CHECK ft_status ft_timing_flush_make(ft_timing *timing, ft_error *error);
void ft_timing_displace(ft_timing *timing);

// Copies with all threads, cold, with each kind of store in turn; |bytes| are read plus
// written, 0 for 4 x flush_bytes.
FT_MUST_CHECK ft_status ft_timing_copy(ft_timing *timing, uint64_t bytes,
                                       ft_copy_rate out[FT_STORES], ft_error *error);

#endif
