// buffer_store - the worker's guarded buffers, kept between jobs.
//
// Inputs are found again by (key, bytes), so a tuning run sends each input once; the
// rest is reused by size, so their pages stay. What no job holds is dropped, oldest
// first, when it takes over a quarter of the cap, or when a job needs the room.
// Thread-compatible.
#ifndef FT_MEASURE_BUFFER_STORE_H
#define FT_MEASURE_BUFFER_STORE_H

#include "core/allocator.h"
#include "measure/guarded.h"

typedef struct ft_held_buffer {
  ft_guarded memory;
  uint64_t key;    // 0: not an input, or one nobody can ask for again
  bool is_filled;  // holds the bytes of |key|
  uint32_t holds;  // by the current job
  uint64_t stamp;
  char name[32];  // for people: "input 3"
  struct ft_held_buffer *next;
} ft_held_buffer;

typedef struct ft_buffer_store {
  const ft_allocator *allocator;
  uint64_t cap_bytes, bytes;
  uint64_t clock;
  ft_held_buffer *first;
} ft_buffer_store;

void ft_buffer_store_init(ft_buffer_store *store, const ft_allocator *allocator,
                          uint64_t cap_bytes);
void ft_buffer_store_fini(ft_buffer_store *store);
// An input of |key| (nonzero), filled or not, writable when not filled; held.
// OUT_OF_MEMORY when it does not fit beside what is held.
FT_MUST_CHECK ft_status ft_buffer_store_input(ft_buffer_store *store, uint64_t key,
                                              uint64_t bytes, ft_held_buffer **out,
                                              ft_error *error);
// A writable buffer with old contents that nobody else holds; held.
FT_MUST_CHECK ft_status ft_buffer_store_blank(ft_buffer_store *store, uint64_t bytes,
                                              ft_held_buffer **out, ft_error *error);
// The current job is over: nothing is held any more.
void ft_buffer_store_release_all(ft_buffer_store *store);

#endif
