// rng - seeded, portable random numbers: one seed gives one sequence on any machine.
// splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
#ifndef FT_CORE_RNG_H
#define FT_CORE_RNG_H

#include <stdint.h>

typedef struct ft_rng {
  uint64_t state;
} ft_rng;

static inline ft_rng ft_rng_seed(uint64_t seed) {
  return (ft_rng){seed};
}

static inline uint64_t ft_rng_u64(ft_rng *rng) {
  uint64_t z = (rng->state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Uniform in [0, 1), 53 bits.
static inline double ft_rng_f64(ft_rng *rng) {
  return (double)(ft_rng_u64(rng) >> 11) * 0x1.0p-53;
}

// Uniform in [0, limit), limit > 0 (multiply-shift: bias below 2^-32 for small limits).
static inline uint64_t ft_rng_below(ft_rng *rng, uint64_t limit) {
  __extension__ typedef unsigned __int128 wide;
  return (uint64_t)(((wide)ft_rng_u64(rng) * limit) >> 64);
}

#endif
