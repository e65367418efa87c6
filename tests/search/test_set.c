#include <criterion/criterion.h>

#include "search/set.h"

Test(search_set, starts_at_its_lowest_primitive) {
  ft_set set = ft_set_at(10, 0x50);
  cr_assert_eq(set.first, 14);
  cr_assert_eq(set.bits, 5);
  cr_assert_eq(ft_set_count(set), 2);
  cr_assert_eq(ft_set_last(set), 16);
  cr_assert_eq(ft_set_spread(set), 3);
}

Test(search_set, has_what_it_lists_and_nothing_else) {
  ft_set set = {100, 1ull << 63 | 1ull << 7 | 1};
  uint32_t list[FT_SET_SPREAD];
  cr_assert_eq(ft_set_list(set, list), 3);
  cr_assert(list[0] == 100 && list[1] == 107 && list[2] == 163);
  uint32_t has = 0;
  for (uint32_t v = 0; v < 300; v++) has += ft_set_has(set, v);
  cr_assert_eq(has, 3);
  cr_assert(ft_set_has(set, 163));
}

Test(search_set, joins_in_either_order_up_to_64_positions_and_no_farther) {
  ft_set out = {0, 0}, other = {0, 0};
  cr_assert(ft_set_join((ft_set){5, 1}, (ft_set){68, 1}, &out));
  cr_assert(ft_set_join((ft_set){68, 1}, (ft_set){5, 1}, &other));
  cr_assert(ft_set_equal(out, other));
  cr_assert_eq(out.bits, 1ull << 63 | 1);
  cr_assert_not(ft_set_join((ft_set){5, 1}, (ft_set){69, 1}, &out));
  cr_assert_not(ft_set_join((ft_set){5, 1}, (ft_set){60, 1ull << 63 | 1}, &out));
  cr_assert(ft_set_equal(out, other), "a refused join leaves *out alone");
}
