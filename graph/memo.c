#include "graph/memo.h"

#include <string.h>

enum { KEPT = 1 << 20 };

void ft_memo_fini(ft_memo *memo) {
  ft_release(ft_allocator_system(), memo->entry);
  *memo = (ft_memo){0};
}

static void clear(ft_memo *memo) {
  for (size_t i = 0; i < memo->capacity; i++) memo->entry[i].index = -1;
  memo->count = 0;
}

static ft_memo_entry *slot_of(const ft_memo *memo, int64_t index) {
  uint64_t hash = (uint64_t)index * 0x9e3779b97f4a7c15ull;
  size_t at = (size_t)(hash >> 20) & (memo->capacity - 1);
  while (memo->entry[at].index >= 0 && memo->entry[at].index != index)
    at = (at + 1) & (memo->capacity - 1);
  return &memo->entry[at];
}

static ft_status grow(ft_memo *memo, size_t capacity, ft_error *error) {
  ft_memo bigger = {.capacity = capacity};
  bigger.entry = ft_allocate(ft_allocator_system(), capacity * sizeof *bigger.entry, 64);
  FT_OOM_IF(!bigger.entry, error);
  clear(&bigger);
  for (size_t i = 0; i < memo->capacity; i++)
    if (memo->entry[i].index >= 0)
      *slot_of(&bigger, memo->entry[i].index) = memo->entry[i];
  bigger.count = memo->count;
  ft_memo_fini(memo);
  *memo = bigger;
  return FT_OK;
}

ft_status ft_memo_reserve(ft_memo *memo, size_t more, ft_error *error) {
  if (memo->count + more > KEPT) clear(memo);
  size_t capacity = memo->capacity ? memo->capacity : 64;
  while (capacity < 2 * (memo->count + more)) capacity *= 2;
  return capacity > memo->capacity ? grow(memo, capacity, error) : FT_OK;
}

ft_memo_entry *ft_memo_find(ft_memo *memo, int64_t index, bool *is_new) {
  ft_memo_entry *entry = slot_of(memo, index);
  *is_new = entry->index < 0;
  if (*is_new) {
    entry->index = index;
    memo->count++;
  }
  return entry;
}
