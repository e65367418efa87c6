// lattice - every way to go from one ideal to a larger one by a connected set.
//
// Sets are found by growth: from an ideal, a set starts as one uncovered primitive with
// all it still needs, and takes a neighbour (an edge, or a buffer read by both) with all
// that one needs. Each connected set whose union with the ideal is an ideal is met this
// way and no other; legality plays no part, for a set may be legal though none of its
// parts is (a norm, say). It is judged afterwards (search/catalog.h), once per set.
//
// Bounds, all of them counted, never timed:
//   window  most primitives in a set
//   span    positions a set, and an ideal, may reach over
//   sets_per_ideal  the first that many in breadth-first order; the rest is dropped and
//                   |is_cut| says so
//   ideals, steps, sets  of the whole lattice; when one is passed the span is halved
//                   and the search for sets starts again (span 1 always fits)
// An operator as imported is always a set where it may start, though it be larger than
// the window or not connected: so the unfused partition is a path, and mixes with others.
#ifndef FT_SEARCH_LATTICE_H
#define FT_SEARCH_LATTICE_H

#include "search/ideal.h"

typedef struct ft_lattice_limits {
  uint32_t window;          // >= 1
  uint32_t span;            // 1 .. 64
  uint32_t sets_per_ideal;  // >= 1
  uint32_t ideals, steps, sets;
} ft_lattice_limits;

// search.h's defaults: large enough for exact answers on graphs of narrow width,
// small enough for a second or two and some tens of megabytes on any.
ft_lattice_limits ft_lattice_default_limits(uint32_t window, uint32_t span);

typedef struct ft_step {
  uint32_t set;  // index into ft_lattice.set
  uint32_t to;   // ideal, of a larger size, so of a larger index
} ft_step;

typedef struct ft_lattice {
  ft_ideals ideals;
  uint32_t set_count, step_count;
  const ft_set *set;        // each once, in order of discovery
  const uint32_t *step_at;  // [ideals.count + 1] steps of an ideal
  const ft_step *step;
  bool is_cut;  // sets_per_ideal was reached, or the span was halved
} ft_lattice;

// |whole| [dag->count]: at an operator's first primitive its set (bit 0 is that
// primitive), elsewhere 0; NULL: none. Result in |arena|. Errors: OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_lattice_make(const ft_dag *dag, const uint64_t *whole,
                                        const ft_lattice_limits *limits,
                                        const ft_allocator *allocator, ft_arena *arena,
                                        ft_lattice *out, ft_error *error);

#endif
