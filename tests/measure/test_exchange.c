#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "measure/board.h"
#include "measure/exchange.h"

static ft_error error;

Test(measure_exchange, both_sides_see_the_same_bytes) {
  ft_exchange a, b;
  cr_assert_eq(ft_exchange_create("test", 5000, &a, &error), FT_OK, "%s", error.text);
  cr_assert_eq(ft_exchange_open(dup(a.fd), 5000, &b, &error), FT_OK, "%s", error.text);
  cr_expect(a.bytes == 8192 && b.bytes == 8192 && a.data != b.data);
  a.data[4999] = 42;
  cr_expect_eq(b.data[4999], 42);
  ft_exchange_close(&a);
  cr_expect_eq(b.data[4999], 42);
  ft_exchange_close(&b);
  ft_exchange_close(&b);
}

Test(measure_exchange, its_size_cannot_be_changed) {
  ft_exchange a;
  cr_assert_eq(ft_exchange_create("test", 5000, &a, &error), FT_OK);
  cr_expect_neq(ftruncate(a.fd, 0), 0);
  cr_expect_neq(ftruncate(a.fd, 1 << 20), 0);
  ft_exchange_close(&a);
}

Test(measure_exchange, unsealed_or_small_memory_is_refused) {
  ft_exchange b;
  int fd = memfd_create("loose", MFD_CLOEXEC);
  cr_assert_eq(ftruncate(fd, 8192), 0);
  cr_expect_eq(ft_exchange_open(fd, 100, &b, &error), FT_REFUSED);
  cr_expect(b.fd == -1 && close(fd) != 0, "it took the descriptor");
  ft_exchange a;
  cr_assert_eq(ft_exchange_create("test", 100, &a, &error), FT_OK);
  cr_expect_eq(ft_exchange_open(dup(a.fd), 5000, &b, &error), FT_REFUSED);
  ft_exchange_close(&a);
}

Test(measure_exchange, an_impossible_size_is_out_of_memory) {
  ft_exchange a;
  cr_expect_eq(ft_exchange_create("test", UINT64_MAX, &a, &error), FT_OUT_OF_MEMORY);
  cr_expect_eq(ft_exchange_create("test", (uint64_t)1 << 62, &a, &error),
               FT_OUT_OF_MEMORY);
  cr_expect_eq(a.fd, -1);
}

Test(measure_exchange, a_board_is_shared_and_nothing_else_is_a_board) {
  ft_board *a, *b;
  int fd;
  cr_assert_eq(ft_board_create(&a, &fd, &error), FT_OK, "%s", error.text);
  cr_assert_eq(ft_board_map(fd, &b, &error), FT_OK, "%s", error.text);
  b->sample_ns[FT_BOARD_SAMPLES - 1] = 7;
  b->sample_count = 3;
  cr_expect(a->sample_ns[FT_BOARD_SAMPLES - 1] == 7 && a->sample_count == 3);
  ft_board_reset(a);
  cr_expect_eq(b->sample_count, 0);
  ft_board_unmap(b);
  ft_board_unmap(a);
  close(fd);
  ft_exchange small;
  cr_assert_eq(ft_exchange_create("test", 100, &small, &error), FT_OK);
  cr_expect_eq(ft_board_map(small.fd, &b, &error), FT_REFUSED);
  ft_exchange_close(&small);
}
