// input_cache - seeded inputs kept between the workloads of one run. Many groups of a
// model read tensors of the same size: drawing and sending each one again would take
// longer than the kernel. Thread-compatible.
#ifndef FT_DAEMON_INPUT_CACHE_H
#define FT_DAEMON_INPUT_CACHE_H

#include "graph/inputs.h"

typedef struct ft_cached_input {
  ft_input_recipe recipe;
  void *data;
  size_t bytes;
} ft_cached_input;

typedef struct ft_input_cache {
  size_t count, capacity, bytes, cap_bytes;
  ft_cached_input *item;  // system allocator
} ft_input_cache;

// |cap_bytes|: everything is dropped before the cache would grow past it.
void ft_input_cache_init(ft_input_cache *cache, size_t cap_bytes);
void ft_input_cache_fini(ft_input_cache *cache);
// Drops what does not fit beside |wanted_bytes| more: every tensor handed out before is
// gone then. Call before the first ft_input_cache_get of a workload, never between.
void ft_input_cache_make_room(ft_input_cache *cache, size_t wanted_bytes);
// The tensor of |recipe| under |shape|, drawn when it is new; borrowed from the cache.
// *out_key: equal recipes, equal keys.
FT_MUST_CHECK ft_status ft_input_cache_get(ft_input_cache *cache,
                                           const ft_input_recipe *recipe,
                                           const ft_shape *shape, ft_tensor *out,
                                           uint64_t *out_key, ft_error *error);

#endif
