#include "measure/guarded.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { CANARY = 0xa5, LEAD_BYTES = 4096, ALIGN = 64 };
#define PAGE_BYTES ((uint64_t)4096)
#define HUGE_BYTES ((uint64_t)2 << 20)
#define GUARD_BYTES ((uint64_t)64 << 20)
#define MAX_BYTES ((uint64_t)1 << 46)

static uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}

static uint64_t alignment(uint64_t bytes) {
  return bytes >= 2 * HUGE_BYTES ? HUGE_BYTES : PAGE_BYTES;
}

uint64_t ft_guarded_cost(uint64_t bytes) {
  if (bytes > MAX_BYTES) return bytes;
  return round_up(LEAD_BYTES + round_up(bytes, ALIGN), alignment(bytes));
}

void ft_guarded_rearm(const ft_guarded *b) {
  memset(b->data - LEAD_BYTES, CANARY, LEAD_BYTES);
  memset(b->data + b->bytes, CANARY, round_up(b->bytes, ALIGN) - b->bytes);
}

ft_status ft_guarded_create(uint64_t bytes, ft_guarded *out, ft_error *error) {
  *out = (ft_guarded){0};
  if (bytes > MAX_BYTES)
    FT_FAIL(error, FT_OUT_OF_MEMORY, "a buffer of %llu bytes", (unsigned long long)bytes);
  uint64_t unit = alignment(bytes), span = round_up(bytes, ALIGN);
  ft_guarded b = {.bytes = bytes, .open_bytes = ft_guarded_cost(bytes)};
  b.total_bytes = b.open_bytes + 2 * GUARD_BYTES + unit;
  void *base = mmap(NULL, b.total_bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    FT_FAIL(error, FT_OUT_OF_MEMORY, "a buffer of %llu bytes: %s",
            (unsigned long long)bytes, strerror(errno));
  b.base = base;
  uint64_t start = round_up((uint64_t)(uintptr_t)base + GUARD_BYTES, unit);
  b.open = b.base + (start - (uint64_t)(uintptr_t)base);
  b.data = b.open + b.open_bytes - span;
  if (mprotect(b.open, b.open_bytes, PROT_READ | PROT_WRITE) != 0) {
    int why = errno;
    munmap(base, b.total_bytes);
    FT_FAIL(error, FT_OUT_OF_MEMORY, "a buffer of %llu bytes: %s",
            (unsigned long long)bytes, strerror(why));
  }
  // Only a wish: without huge pages the buffer works as well.
  if (unit == HUGE_BYTES) (void)madvise(b.open, b.open_bytes, MADV_HUGEPAGE);
  ft_guarded_rearm(&b);
  *out = b;
  return FT_OK;
}

void ft_guarded_destroy(ft_guarded *buffer) {
  if (buffer->base) munmap(buffer->base, buffer->total_bytes);
  *buffer = (ft_guarded){0};
}

void ft_guarded_protect(const ft_guarded *buffer, bool is_read_only) {
  int protection = is_read_only ? PROT_READ : PROT_READ | PROT_WRITE;
  FT_ASSERT(mprotect(buffer->open, buffer->open_bytes, protection) == 0);
}

void ft_guarded_inspect(const ft_guarded *b, uint32_t *out_past, uint32_t *out_before) {
  uint32_t slack = (uint32_t)(round_up(b->bytes, ALIGN) - b->bytes);
  *out_past = *out_before = 0;
  for (uint32_t i = 0; i < slack; i++)
    if (b->data[b->bytes + i] != CANARY) *out_past = i + 1;
  for (uint32_t i = 1; i <= LEAD_BYTES; i++)
    if (*(b->data - i) != CANARY) *out_before = i;
}
