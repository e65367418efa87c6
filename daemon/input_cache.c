#include "daemon/input_cache.h"

#include <string.h>

#include "core/hash.h"

void ft_input_cache_init(ft_input_cache *cache, size_t cap_bytes) {
  memset(cache, 0, sizeof *cache);
  cache->cap_bytes = cap_bytes;
}

static void drop_all(ft_input_cache *cache) {
  for (size_t i = 0; i < cache->count; i++)
    ft_release(ft_allocator_system(), cache->item[i].data);
  cache->count = cache->bytes = 0;
}

void ft_input_cache_fini(ft_input_cache *cache) {
  drop_all(cache);
  ft_release(ft_allocator_system(), cache->item);
  memset(cache, 0, sizeof *cache);
}

void ft_input_cache_make_room(ft_input_cache *cache, size_t wanted_bytes) {
  if (cache->bytes + wanted_bytes > cache->cap_bytes) drop_all(cache);
}

static bool same_recipe(const ft_input_recipe *a, const ft_input_recipe *b) {
  return a->dtype == b->dtype && a->elements == b->elements && a->seed == b->seed &&
         memcmp(&a->low, &b->low, sizeof a->low) == 0 &&
         memcmp(&a->high, &b->high, sizeof a->high) == 0;
}

static uint64_t recipe_key(const ft_input_recipe *r) {
  uint64_t key = ft_hash64(FT_HASH64_SEED, &r->dtype, sizeof r->dtype);
  key = ft_hash64(key, &r->elements, sizeof r->elements);
  key = ft_hash64(key, &r->low, sizeof r->low);
  key = ft_hash64(key, &r->high, sizeof r->high);
  return ft_hash64(key, &r->seed, sizeof r->seed);
}

static ft_status grow(ft_input_cache *cache, ft_error *error) {
  if (cache->count < cache->capacity) return FT_OK;
  size_t capacity = cache->capacity ? 2 * cache->capacity : 16;
  ft_cached_input *item = ft_allocate(ft_allocator_system(), capacity * sizeof *item, 0);
  FT_OOM_IF(!item, error);
  if (cache->count) memcpy(item, cache->item, cache->count * sizeof *item);
  ft_release(ft_allocator_system(), cache->item);
  cache->item = item;
  cache->capacity = capacity;
  return FT_OK;
}

static ft_status add(ft_input_cache *cache, const ft_input_recipe *recipe, size_t bytes,
                     ft_cached_input **out, ft_error *error) {
  FT_TRY(grow(cache, error));
  void *data = ft_allocate(ft_allocator_system(), bytes, 64);
  if (!data)
    FT_FAIL(error, FT_OUT_OF_MEMORY, "no memory for an input of %zu bytes", bytes);
  ft_fill_random(recipe->dtype, data, recipe->elements, recipe->low, recipe->high,
                 recipe->seed);
  *out = &cache->item[cache->count++];
  **out = (ft_cached_input){*recipe, data, bytes};
  cache->bytes += bytes;
  return FT_OK;
}

ft_status ft_input_cache_get(ft_input_cache *cache, const ft_input_recipe *recipe,
                             const ft_shape *shape, ft_tensor *out, uint64_t *out_key,
                             ft_error *error) {
  ft_cached_input *found = NULL;
  for (size_t i = 0; i < cache->count && !found; i++)
    if (same_recipe(&cache->item[i].recipe, recipe)) found = &cache->item[i];
  // Shapes of a graph have at most 2^62 bytes, so the product cannot overflow.
  size_t bytes = (size_t)recipe->elements * ft_dtype_bytes(recipe->dtype);
  if (!found) FT_TRY(add(cache, recipe, bytes, &found, error));
  *out = (ft_tensor){recipe->dtype, *shape, found->data, bytes};
  *out_key = recipe_key(recipe);
  return FT_OK;
}
