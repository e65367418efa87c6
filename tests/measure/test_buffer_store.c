#include <criterion/criterion.h>
#include <string.h>

#include "measure/buffer_store.h"

static ft_buffer_store store;
static ft_error error;
static void open_store(void) {
  ft_buffer_store_init(&store, ft_allocator_system(), 1 << 20);
}
static void close_store(void) {
  ft_buffer_store_fini(&store);
}
TestSuite(measure_buffer_store, .init = open_store, .fini = close_store);

static ft_held_buffer *input(uint64_t key, uint64_t bytes) {
  ft_held_buffer *b;
  cr_assert_eq(ft_buffer_store_input(&store, key, bytes, &b, &error), FT_OK, "%s",
               error.text);
  return b;
}
static ft_held_buffer *blank(uint64_t bytes) {
  ft_held_buffer *b;
  cr_assert_eq(ft_buffer_store_blank(&store, bytes, &b, &error), FT_OK, "%s", error.text);
  return b;
}

Test(measure_buffer_store, finds_a_filled_input_again_by_key_and_size) {
  ft_held_buffer *a = input(1, 1000);
  cr_expect_not(a->is_filled);
  a->is_filled = true;
  cr_expect_eq(input(1, 1000), a);
  cr_expect_neq(input(1, 1001), a);
  cr_expect_neq(input(2, 1000), a);
  ft_buffer_store_release_all(&store);
  cr_expect_eq(input(1, 1000), a);
  cr_expect(a->is_filled);
}

Test(measure_buffer_store, forgets_an_input_that_was_never_filled) {
  ft_held_buffer *a = input(1, 1000);
  ft_buffer_store_release_all(&store);
  cr_expect_eq(a->key, 0);
  cr_expect_not(input(1, 1000)->is_filled);
}

Test(measure_buffer_store, gives_blanks_away_once_and_reuses_them_by_size) {
  ft_held_buffer *a = blank(500), *b = blank(500);
  cr_expect_neq(a, b);
  ft_buffer_store_release_all(&store);
  ft_held_buffer *c = blank(500);
  cr_expect(c == a || c == b);
  cr_expect(blank(501) != a);
}

Test(measure_buffer_store, a_keyless_input_is_writable_again_after_its_job) {
  ft_held_buffer *a = blank(500);
  a->is_filled = true;
  ft_guarded_protect(&a->memory, true);
  ft_buffer_store_release_all(&store);
  cr_expect_not(a->is_filled);
  a->memory.data[0] = 1;  // does not fault
}

Test(measure_buffer_store, drops_the_oldest_that_nobody_holds_when_it_is_full) {
  ft_held_buffer *old = input(1, 100000), *young = input(2, 100000);
  old->is_filled = young->is_filled = true;
  ft_buffer_store_release_all(&store);
  blank(850000);
  cr_expect(input(2, 100000) == young && young->is_filled, "the young one stayed");
  ft_held_buffer *b;
  cr_expect_eq(ft_buffer_store_input(&store, 1, 100000, &b, &error), FT_OUT_OF_MEMORY,
               "the old one is gone, and what is held stays");
  cr_expect(strstr(error.text, "100000"), "%s", error.text);
}

Test(measure_buffer_store, keeps_no_more_than_a_quarter_of_its_cap_between_jobs) {
  for (uint64_t key = 1; key <= 5; key++) input(key, 100000)->is_filled = true;
  ft_buffer_store_release_all(&store);
  cr_expect_leq(store.bytes, store.cap_bytes / 4);
  cr_expect(input(5, 100000)->is_filled, "the last one stayed");
}

Test(measure_buffer_store, refuses_what_cannot_fit_at_all) {
  ft_held_buffer *b;
  cr_expect_eq(ft_buffer_store_blank(&store, 2 << 20, &b, &error), FT_OUT_OF_MEMORY);
  cr_expect_eq(ft_buffer_store_blank(&store, UINT64_MAX, &b, &error), FT_OUT_OF_MEMORY);
  cr_expect_eq(store.bytes, 0);
}
