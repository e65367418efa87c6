// Paired ratios: what `bench` says beside the medians. Compiles no kernels.
#include <criterion/criterion.h>

#include "daemon/bench.h"

static ft_paired_ratio ratio_of(const uint64_t *time, const uint64_t *base,
                                const bool *flagged, uint32_t rounds) {
  ft_error error;
  ft_paired_ratio out;
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  cr_assert_eq(ft_paired_ratio_make(time, base, flagged, rounds, arena, &out, &error),
               FT_OK, "%s", error.text);
  ft_arena_destroy(arena);
  return out;
}

Test(daemon_bench, a_ratio_pairs_the_times_of_one_round) {
  // The machine gets ten times slower half way: medians apart would say nothing.
  uint64_t base[10], time[10];
  bool flagged[10] = {false};
  for (int i = 0; i < 10; i++) {
    base[i] = i < 5 ? 1000 : 10000;
    time[i] = 2 * base[i];
  }
  ft_paired_ratio r = ratio_of(time, base, flagged, 10);
  cr_assert_eq(r.median, 2);
  cr_assert(r.low == 2 && r.high == 2);
  cr_assert_eq(r.rounds, 10);
  cr_assert_float_eq(r.sign_p, 2.0 / 1024, 1e-12);
}

Test(daemon_bench, a_flag_of_either_leaves_the_round_out_unless_all_are_flagged) {
  uint64_t base[4] = {100, 100, 100, 100}, time[4] = {150, 150, 900, 150};
  bool flagged[4] = {false, false, true, false};
  ft_paired_ratio r = ratio_of(time, base, flagged, 4);
  cr_assert_eq(r.rounds, 3);
  cr_assert_eq(r.high, 1.5);
  for (int i = 0; i < 4; i++) flagged[i] = true;
  r = ratio_of(time, base, flagged, 4);
  cr_assert_eq(r.rounds, 4);
  cr_assert_eq(r.high, 9);
}

Test(daemon_bench, a_plan_against_itself_is_one_and_the_sign_test_says_nothing) {
  uint64_t time[9] = {5, 6, 7, 5, 6, 7, 5, 6, 7};
  bool flagged[9] = {false};
  ft_paired_ratio r = ratio_of(time, time, flagged, 9);
  cr_assert(r.median == 1 && r.low == 1 && r.high == 1);
  cr_assert_eq(r.sign_p, 1);
}
