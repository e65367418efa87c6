// set - primitives that lie within 64 positions of the topological order, as one word.
//
// A group of the search is such a set. The empty set does not occur: bit 0 of |bits|
// is always set, so equal sets are equal members. Plain data; everything is O(1) but
// ft_set_list.
#ifndef FT_SEARCH_SET_H
#define FT_SEARCH_SET_H

#include "core/hash.h"
#include "core/status.h"

enum { FT_SET_SPREAD = 64 };

typedef struct ft_set {
  uint32_t first;  // its lowest primitive
  uint64_t bits;   // bit i: primitive first + i
} ft_set;

// The set whose bit i stands for primitive base + i; |bits| != 0.
static inline ft_set ft_set_at(uint32_t base, uint64_t bits) {
  int skip = __builtin_ctzll(bits);
  return (ft_set){base + (uint32_t)skip, bits >> skip};
}

static inline uint32_t ft_set_count(ft_set set) {
  return (uint32_t)__builtin_popcountll(set.bits);
}

static inline uint32_t ft_set_last(ft_set set) {
  return set.first + 63 - (uint32_t)__builtin_clzll(set.bits);
}

// Positions from its lowest to its highest primitive, both counted: 1 for a singleton.
static inline uint32_t ft_set_spread(ft_set set) {
  return ft_set_last(set) - set.first + 1;
}

static inline bool ft_set_has(ft_set set, uint32_t primitive) {
  return primitive >= set.first && primitive - set.first < FT_SET_SPREAD &&
         (set.bits >> (primitive - set.first) & 1);
}

static inline bool ft_set_equal(ft_set a, ft_set b) {
  return a.first == b.first && a.bits == b.bits;
}

// The union; false (and *out untouched) when it spreads over more than 64 positions.
static inline bool ft_set_join(ft_set a, ft_set b, ft_set *out) {
  ft_set low = a.first <= b.first ? a : b, high = a.first <= b.first ? b : a;
  if (ft_set_last(high) - low.first >= FT_SET_SPREAD) return false;
  *out = (ft_set){low.first, low.bits | high.bits << (high.first - low.first)};
  return true;
}

// Writes its primitives, ascending, to out[ft_set_count(set)]; returns how many.
static inline uint32_t ft_set_list(ft_set set, uint32_t out[FT_SET_SPREAD]) {
  uint32_t count = 0;
  for (uint64_t rest = set.bits; rest; rest &= rest - 1)
    out[count++] = set.first + (uint32_t)__builtin_ctzll(rest);
  return count;
}

static inline uint64_t ft_set_hash(ft_set set) {
  uint64_t word[2] = {set.first, set.bits};
  return ft_hash64(FT_HASH64_SEED, word, sizeof word);
}

#endif
