#include <criterion/criterion.h>
#include <string.h>

#include "core/rng.h"
#include "core/status.h"
#include "core/strbuf.h"

Test(core_status, prefix_keeps_the_code_and_never_overflows) {
  ft_error e;
  cr_assert_eq(ft_error_set(&e, FT_REFUSED, "dim %d is %d", 2, -1), FT_REFUSED);
  cr_assert_eq(ft_error_prefix(&e, "node '%s'", "Add_3"), FT_REFUSED);
  cr_assert_str_eq(e.text, "node 'Add_3': dim 2 is -1");
  for (int i = 0; i < 200; i++)
    cr_assert_eq(ft_error_prefix(&e, "level %d", i), FT_REFUSED);
  cr_assert_lt(strlen(e.text), sizeof e.text);
}

Test(core_status, a_null_error_is_allowed) {
  cr_assert_eq(ft_error_set(NULL, FT_IO, "x"), FT_IO);
}

Test(core_strbuf, grows_past_any_first_guess) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_strbuf b = ft_strbuf_init(arena);
  for (int i = 0; i < 5000; i++) ft_strbuf_printf(&b, "%d,", i % 10);
  cr_assert_eq(b.length, 10000);
  cr_assert_eq(strlen(b.text), 10000);
  cr_assert_not(b.failed);
  ft_arena_destroy(arena);
}

Test(core_rng, one_seed_gives_one_sequence) {
  ft_rng a = ft_rng_seed(1);
  // Reference values of splitmix64 with seed 1, as in the published C code.
  cr_assert_eq(ft_rng_u64(&a), 0x910a2dec89025cc1ull);
  cr_assert_eq(ft_rng_u64(&a), 0xbeeb8da1658eec67ull);
  for (int i = 0; i < 1000; i++) {
    cr_assert_lt(ft_rng_below(&a, 7), 7);
    double x = ft_rng_f64(&a);
    cr_assert(x >= 0 && x < 1);
  }
}
