// job - programs made ready to run in the worker: modules loaded, buffers placed,
// argument lists built. After ft_job_load nothing on the way to a launch allocates.
//
// Buffers of one job are shared between its programs when kind, size and key are equal
// (the n-th of a program with the n-th of another), never within a program.
#ifndef FT_MEASURE_JOB_H
#define FT_MEASURE_JOB_H

#include "core/arena.h"
#include "graph/program.h"
#include "measure/board.h"
#include "measure/buffer_store.h"
#include "measure/library.h"
#include "measure/pool.h"
#include "measure/wire.h"

typedef struct ft_job_program {
  ft_program program;         // as decoded
  ft_held_buffer **held;      // [buffer_count]; NULL: placed in |workspace|
  void **address;             // [buffer_count]
  ft_held_buffer *workspace;  // or NULL
  ft_launch *launch;          // [step_count]
  bool *is_library;           // [step_count]: it runs on threads of its own
  uint32_t threads;           // most of the pool's that a step uses
} ft_job_program;

typedef struct ft_job_need {
  uint32_t program, buffer;
} ft_job_need;

typedef struct ft_job_blank {
  ft_held_buffer *held;
  uint32_t class_, last_program;
  uint8_t poison;
  uint64_t key;
} ft_job_blank;

typedef struct ft_job {
  ft_arena *arena;
  ft_pool *pool;
  ft_buffer_store *store;
  ft_library *library;
  ft_board *board;
  uint32_t program_count, need_count;
  size_t blank_count, blank_capacity;
  ft_job_program *program;
  ft_job_need *need;    // inputs whose bytes are missing
  ft_job_blank *blank;  // everything that a kernel may write
  bool is_ready;        // pages are there, canaries set
} ft_job;

void ft_job_init(ft_job *job, ft_arena *arena, ft_pool *pool, ft_buffer_store *store,
                 ft_library *library, ft_board *board);
// Drops the previous job and loads the programs of a LOAD frame. REFUSED, NOT_FOUND
// (a module that does not load, with the step), OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_job_load(ft_job *job, ft_wire_reader *reader, ft_error *error);
// Copies the bytes of need |index| and makes the input read-only.
void ft_job_fill(ft_job *job, uint32_t index, const void *data);
// Poisons everything a kernel may write and sets the canaries.
void ft_job_poison(ft_job *job);
// The same if it was never done: a timed run finds its pages in place.
void ft_job_make_ready(ft_job *job);
// Runs all steps of |program|; false: a step returned non-zero, *out_step and *out_code
// say which and what.
bool ft_job_run(ft_job *job, uint32_t program, uint32_t *out_step, int32_t *out_code);
// True when no canary was touched, else |text| names the buffer and how far.
bool ft_job_inspect(const ft_job *job, char text[256]);

#endif
