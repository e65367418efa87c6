// board - a page of memory that runner and worker share: where the worker is, what
// killed it, and the samples so far. It survives the worker's death, and writing to it
// costs a store, so it may be used inside a timed region and in a signal handler.
//
// The worker runs code that nobody trusts: the runner takes every number from here as a
// hint and checks its range.
#ifndef FT_MEASURE_BOARD_H
#define FT_MEASURE_BOARD_H

#include <stdatomic.h>

#include "core/status.h"

enum { FT_BOARD_SAMPLES = 65536 };

typedef enum ft_phase {
  FT_PHASE_IDLE,
  FT_PHASE_LOADING,   // dlopen and its constructors
  FT_PHASE_CHECKING,  // the checked run
  FT_PHASE_TIMING,
} ft_phase;

typedef enum ft_place {
  FT_PLACE_UNKNOWN,  // |address| is in no buffer's neighbourhood
  FT_PLACE_BEFORE,   // |distance| bytes before the buffer
  FT_PLACE_INSIDE,   // at offset |distance|: a write to an input
  FT_PLACE_PAST,     // |distance| bytes past its end
} ft_place;

typedef struct ft_board {
  _Atomic uint32_t phase, program, step;
  _Atomic uint32_t crashed;  // 1: the members up to |name| are filled
  int32_t signal;
  uint32_t has_address;
  uint64_t address;
  uint32_t place;  // ft_place
  uint64_t distance;
  char name[32];  // of the buffer: "output 0", "scratch of thread 1"
  _Atomic uint32_t sample_count;
  uint64_t sample_ns[FT_BOARD_SAMPLES];
  uint8_t sample_flags[FT_BOARD_SAMPLES];
} ft_board;

// A new board in anonymous shared memory. *out_fd (close-on-exec) is the caller's.
FT_MUST_CHECK ft_status ft_board_create(ft_board **out, int *out_fd, ft_error *error);
// Maps the board behind |fd|; REFUSED when it has another size. |fd| stays the caller's.
FT_MUST_CHECK ft_status ft_board_map(int fd, ft_board **out, ft_error *error);
void ft_board_unmap(ft_board *board);  // NULL is fine
// Forgets the last job.
void ft_board_reset(ft_board *board);

#endif
