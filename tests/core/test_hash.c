#include <criterion/criterion.h>
#include <string.h>

#include "core/hash.h"

Test(core_hash, agrees_with_the_fips_180_4_example) {
  ft_hash h = ft_hash_bytes("abc", 3);
  char text[FT_HASH_TEXT + 1];
  ft_hash_text(&h, text);
  cr_assert_str_eq(
      text, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

Test(core_hash, reads_back_what_it_writes_and_refuses_the_rest) {
  ft_hash h = ft_hash_bytes("x", 1), back;
  char text[FT_HASH_TEXT + 1];
  ft_hash_text(&h, text);
  cr_assert_eq(ft_hash_parse(text, &back), 0);
  cr_assert(ft_hash_equal(&h, &back));
  cr_assert_eq(ft_hash_parse(text + 7, &back), 0);
  text[20] = 'G';
  cr_assert_eq(ft_hash_parse(text, &back), -1);
  cr_assert(ft_hash_is_zero(&back));
  cr_assert_eq(ft_hash_parse("sha256:00", &back), -1);
}
