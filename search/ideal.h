// ideal - down-closed sets of primitives: the states of the search.
//
// A partition runs as a chain of order ideals, each the one before plus a group
// (search_and_codegen 2): so the shortest path over ideals is the best partition, and
// every path has an acyclic quotient. An ideal is coded by its lowest missing primitive
// |low| and the covered ones above it; those lie within |span| positions of |low| (its
// own counted), which is the one thing the code gives up.
#ifndef FT_SEARCH_IDEAL_H
#define FT_SEARCH_IDEAL_H

#include "search/dag.h"
#include "search/set.h"

typedef struct ft_ideal {
  uint32_t low;   // all below are covered, itself is not; == count: everything is covered
  uint64_t mask;  // bit i: low + i is covered; bit 0 is never set
} ft_ideal;

// All ideals within a span, by size, each size in order of discovery. [0] is empty,
// the last one is everything.
typedef struct ft_ideals {
  uint32_t count, span;
  const ft_ideal *ideal;
  const uint32_t *slot;  // open addressing, FT_NONE is free
  uint32_t slot_mask;
} ft_ideals;

// The ideal with |bits| (bit i: low + i, none covered yet) added.
ft_ideal ft_ideal_add(ft_ideal ideal, uint64_t bits);
uint32_t ft_ideal_size(ft_ideal ideal);
// Positions of the window at |ideal|: the bits from low to min(low + span, count).
uint64_t ft_ideal_window(ft_ideal ideal, uint32_t span, uint32_t count);

// Enumerates them, in |arena|. 1 <= span <= 64, limit >= 1. *out_complete is false (and
// *out unspecified) when there are more than |limit|. Errors: OUT_OF_MEMORY.
// O(ideals * span).
FT_MUST_CHECK ft_status ft_ideals_make(const ft_dag *dag, uint32_t span, uint32_t limit,
                                       ft_arena *arena, ft_ideals *out,
                                       bool *out_complete, ft_error *error);
// Its index, or FT_NONE.
uint32_t ft_ideals_find(const ft_ideals *ideals, ft_ideal ideal);

#endif
