// program - kernels in order over shared buffers: what a runner executes. One
// candidate is a program of one step; a plan is a program of many.
#ifndef FT_GRAPH_PROGRAM_H
#define FT_GRAPH_PROGRAM_H

#include "graph/module.h"
#include "graph/tensor.h"

typedef enum ft_buffer_kind {
  FT_BUFFER_INPUT,         // |data| is copied in; kernels must not write it
  FT_BUFFER_OUTPUT,        // poisoned before a checked run, copied out after it
  FT_BUFFER_INTERMEDIATE,  // written by one step, read by later ones
} ft_buffer_kind;

typedef struct ft_program_buffer {
  ft_buffer_kind kind;
  ft_dtype dtype;
  ft_shape shape;
  uint64_t bytes;    // elements * size; may be 0
  const void *data;  // inputs; |bytes| of them, any alignment
  uint64_t key;      // inputs: same key = same bytes; the worker keeps what it has
  // Intermediates of a plan may overlap in time: place |offset| in one arena of
  // ft_program.workspace_bytes. UINT64_MAX: a buffer of its own.
  uint64_t offset;
} ft_program_buffer;

typedef struct ft_program_step {
  const ft_module *module;  // outcome OK
  uint32_t argument_count;
  const uint32_t *argument;  // buffer indices in ABI order (workspace excluded)
} ft_program_step;

typedef struct ft_program {
  const char *name;  // "tuned", "unfused", or the candidate's tactic
  uint32_t buffer_count, step_count;
  const ft_program_buffer *buffer;
  const ft_program_step *step;
  uint64_t workspace_bytes;
} ft_program;

#endif
