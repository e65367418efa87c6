#include "measure/buffer_store.h"

#include <string.h>

enum { IDLE_SHARE = 4 };

void ft_buffer_store_init(ft_buffer_store *store, const ft_allocator *allocator,
                          uint64_t cap_bytes) {
  *store = (ft_buffer_store){.allocator = allocator, .cap_bytes = cap_bytes};
}

static void drop(ft_buffer_store *store, ft_held_buffer *victim) {
  ft_held_buffer **link = &store->first;
  while (*link != victim) link = &(*link)->next;
  *link = victim->next;
  store->bytes -= victim->memory.open_bytes;
  ft_guarded_destroy(&victim->memory);
  ft_release(store->allocator, victim);
}

void ft_buffer_store_fini(ft_buffer_store *store) {
  while (store->first) drop(store, store->first);
}

// Drops the free buffer that was used longest ago; false when all are held.
static bool drop_oldest(ft_buffer_store *store) {
  ft_held_buffer *oldest = NULL;
  for (ft_held_buffer *b = store->first; b; b = b->next)
    if (!b->holds && (!oldest || b->stamp < oldest->stamp)) oldest = b;
  if (oldest) drop(store, oldest);
  return oldest != NULL;
}

static bool make_room(ft_buffer_store *store, uint64_t bytes) {
  if (bytes > store->cap_bytes) return false;
  while (store->bytes > store->cap_bytes - bytes)
    if (!drop_oldest(store)) return false;
  return true;
}

static ft_status add(ft_buffer_store *store, uint64_t bytes, ft_held_buffer **out,
                     ft_error *error) {
  uint64_t cost = ft_guarded_cost(bytes);
  if (!make_room(store, cost))
    FT_FAIL(error, FT_OUT_OF_MEMORY,
            "a buffer of %llu bytes does not fit: %llu of %llu bytes are in use",
            (unsigned long long)bytes, (unsigned long long)store->bytes,
            (unsigned long long)store->cap_bytes);
  ft_held_buffer *b = ft_allocate(store->allocator, sizeof *b, 0);
  FT_OOM_IF(!b, error);
  memset(b, 0, sizeof *b);
  ft_status status = ft_guarded_create(bytes, &b->memory, error);
  if (status != FT_OK) {
    ft_release(store->allocator, b);
    return status;
  }
  store->bytes += b->memory.open_bytes;
  b->next = store->first;
  store->first = b;
  *out = b;
  return FT_OK;
}

static ft_held_buffer *hold(ft_buffer_store *store, ft_held_buffer *b) {
  b->holds++;
  b->stamp = ++store->clock;
  return b;
}

ft_status ft_buffer_store_blank(ft_buffer_store *store, uint64_t bytes,
                                ft_held_buffer **out, ft_error *error) {
  ft_held_buffer *b = store->first;
  while (b && (b->holds || b->key || b->memory.bytes != bytes)) b = b->next;
  if (!b) FT_TRY(add(store, bytes, &b, error));
  *out = hold(store, b);
  return FT_OK;
}

ft_status ft_buffer_store_input(ft_buffer_store *store, uint64_t key, uint64_t bytes,
                                ft_held_buffer **out, ft_error *error) {
  FT_ASSERT(key != 0);
  ft_held_buffer *b = store->first;
  while (b && (b->key != key || b->memory.bytes != bytes)) b = b->next;
  if (!b) {
    FT_TRY(ft_buffer_store_blank(store, bytes, &b, error));
    b->holds--;
    b->key = key;
  }
  *out = hold(store, b);
  return FT_OK;
}

void ft_buffer_store_release_all(ft_buffer_store *store) {
  for (ft_held_buffer *b = store->first; b; b = b->next) {
    b->holds = 0;
    if (b->key && b->is_filled) continue;
    // A job that ended before its inputs came, or an input without a key: the memory is
    // still good, the contents belong to nobody.
    if (b->is_filled) ft_guarded_protect(&b->memory, false);
    b->key = 0;
    b->is_filled = false;
  }
  while (store->bytes > store->cap_bytes / IDLE_SHARE) drop_oldest(store);
}
