#include <criterion/criterion.h>
#include <string.h>

#include "search/budget.h"

Test(search_budget, without_limits_never_stops_and_gives_whole_batches) {
  ft_budget b = {.start_ns = 5};
  ft_budget_spend(&b, 1000000, 1000000000);
  cr_assert_null(ft_budget_stop(&b, UINT64_MAX));
  cr_assert_eq(ft_budget_room(&b, UINT64_MAX, 32), 32);
}

Test(search_budget, stops_at_the_last_trial_and_names_it) {
  ft_budget b = {.max_trials = 40};
  ft_budget_spend(&b, 32, 1);
  cr_assert_null(ft_budget_stop(&b, 10));
  cr_assert_eq(ft_budget_room(&b, 10, 32), 8);
  ft_budget_spend(&b, 8, 1);
  cr_assert_str_eq(ft_budget_stop(&b, 10), "trials");
}

Test(search_budget, stops_when_the_time_is_over_and_names_it) {
  ft_budget b = {.start_ns = 100, .limit_ns = 50};
  cr_assert_null(ft_budget_stop(&b, 149));
  cr_assert_str_eq(ft_budget_stop(&b, 150), "time");
}

Test(search_budget, gives_no_more_than_the_time_left_is_good_for) {
  ft_budget b = {.limit_ns = 1000};
  cr_assert_eq(ft_budget_room(&b, 0, 32), 8, "the pace is not known yet");
  ft_budget_spend(&b, 8, 399);  // 49 ns each
  cr_assert_eq(ft_budget_room(&b, 400, 32), 12);
  cr_assert_eq(ft_budget_room(&b, 999, 32), 1, "one may always be tried");
  cr_assert_eq(ft_budget_room(&b, 5000, 32), 1);
}

Test(search_budget, takes_a_clock_before_the_start_as_no_time_spent) {
  ft_budget b = {.start_ns = 100, .limit_ns = 50};
  cr_assert_null(ft_budget_stop(&b, 10));
}
