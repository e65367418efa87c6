#include "graph/ceiling.h"

#include <criterion/criterion.h>

Test(graph_ceiling, names_are_found_and_lead_back) {
  for (int i = 0; i < FT_CEILING_KINDS; i++) {
    ft_ceiling_kind kind = FT_CEILING_KINDS;
    cr_assert(ft_ceiling_find(ft_ceiling_name((ft_ceiling_kind)i), &kind));
    cr_assert_eq(kind, (ft_ceiling_kind)i);
  }
  ft_ceiling_kind kind;
  cr_assert_not(ft_ceiling_find("reads", &kind));
  cr_assert_not(ft_ceiling_find("", &kind));
}

Test(graph_ceiling, more_of_a_rate_and_less_of_a_time_are_better) {
  cr_assert(ft_ceiling_is_better(FT_CEILING_READ, 2, 1));
  cr_assert_not(ft_ceiling_is_better(FT_CEILING_READ, 1, 1));
  cr_assert(ft_ceiling_is_better(FT_CEILING_LAUNCH, 1, 2));
  cr_assert_not(ft_ceiling_is_better(FT_CEILING_LAUNCH, 2, 1));
}
