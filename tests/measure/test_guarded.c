#include <criterion/criterion.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include "measure/guarded.h"

static sigjmp_buf back;
static void on_fault(int number) {
  siglongjmp(back, number);
}

// True when writing there faults.
static bool faults(uint8_t *at) {
  struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  if (sigsetjmp(back, 1)) return true;
  *(volatile uint8_t *)at = 1;
  return false;
}

static const uint64_t sizes[] = {0,    1,    63,   64,      65,
                                 4000, 4096, 5000, 4 << 20, (4 << 20) + 100};
enum { SIZES = sizeof sizes / sizeof *sizes };

static ft_guarded make(uint64_t bytes) {
  ft_guarded b;
  ft_error error;
  cr_assert_eq(ft_guarded_create(bytes, &b, &error), FT_OK, "%s", error.text);
  return b;
}

Test(measure_guarded, data_is_aligned_and_its_end_is_at_the_guard) {
  for (int i = 0; i < SIZES; i++) {
    ft_guarded b = make(sizes[i]);
    cr_expect_eq((uintptr_t)b.data % 64, 0, "%llu", (unsigned long long)sizes[i]);
    if (b.bytes) memset(b.data, 7, b.bytes);
    uint32_t past, before;
    ft_guarded_inspect(&b, &past, &before);
    cr_expect(past == 0 && before == 0, "%llu", (unsigned long long)sizes[i]);
    uint64_t span = (b.bytes + 63) / 64 * 64;
    cr_expect(faults(b.data + span), "%llu", (unsigned long long)sizes[i]);
    cr_expect(faults(b.data + span + (60 << 20)));
    cr_expect(faults(b.open - 1));
    cr_expect(faults(b.open - (60 << 20)));
    ft_guarded_destroy(&b);
    ft_guarded_destroy(&b);
  }
}

Test(measure_guarded, a_stray_byte_is_seen_with_its_distance) {
  ft_guarded b = make(1001 * 4);
  uint32_t past, before;
  b.data[1001 * 4 + 11] ^= 0xff;
  ft_guarded_inspect(&b, &past, &before);
  cr_expect(past == 12 && before == 0, "%u %u", past, before);
  ft_guarded_rearm(&b);
  *(b.data - 4096) ^= 1;
  ft_guarded_inspect(&b, &past, &before);
  cr_expect(past == 0 && before == 4096, "%u %u", past, before);
  ft_guarded_rearm(&b);
  ft_guarded_inspect(&b, &past, &before);
  cr_expect(past == 0 && before == 0);
  ft_guarded_destroy(&b);
}

Test(measure_guarded, a_protected_buffer_reads_and_does_not_write) {
  ft_guarded b = make(100);
  b.data[5] = 9;
  ft_guarded_protect(&b, true);
  cr_expect_eq(b.data[5], 9);
  cr_expect(faults(b.data + 5));
  ft_guarded_protect(&b, false);
  cr_expect_not(faults(b.data + 5));
  ft_guarded_destroy(&b);
}

Test(measure_guarded, sizes_no_machine_has_are_out_of_memory) {
  const uint64_t huge[] = {UINT64_MAX, UINT64_MAX - 100, (uint64_t)1 << 62,
                           ((uint64_t)1 << 46) + 1};
  for (int i = 0; i < 4; i++) {
    ft_guarded b;
    ft_error error;
    cr_expect_eq(ft_guarded_create(huge[i], &b, &error), FT_OUT_OF_MEMORY);
    cr_expect_null(b.base);
  }
}
