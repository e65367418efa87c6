#include "search/ideal.h"

#include "tests/search/dags.h"

static ft_arena *arena;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(search_ideal, .init = set_up, .fini = tear_down);

static ft_ideals ideals_of(const ft_dag *dag, uint32_t span) {
  ft_ideals ideals;
  ft_error error = {0};
  bool complete;
  cr_assert_eq(ft_ideals_make(dag, span, 1u << 20, arena, &ideals, &complete, &error),
               FT_OK);
  cr_assert(complete);
  return ideals;
}

Test(search_ideal, counts_one_more_than_the_length_for_a_chain) {
  for (uint32_t n = 0; n <= 200; n += 25) {
    ft_dag dag = chain_dag(arena, n);
    cr_assert_eq(ideals_of(&dag, 64).count, n + 1);
  }
}

Test(search_ideal, counts_the_ideals_of_a_diamond_as_six) {
  ft_dag dag = diamond_dag(arena);
  cr_assert_eq(ideals_of(&dag, 64).count, 6);
}

Test(search_ideal, counts_two_to_the_n_for_an_antichain) {
  for (uint32_t n = 1; n <= 14; n++) {
    ft_dag dag = make_dag(arena, n, NULL, 0, NULL, 0);
    cr_assert_eq(ideals_of(&dag, 64).count, 1u << n);
  }
}

Test(search_ideal, counts_the_product_for_two_chains_side_by_side) {
  // 0 -> 2 -> 4 ... and 1 -> 3 -> 5 ...: (5 + 1) * (7 + 1)
  ft_dag_pair edge[] = {{0, 2}, {2, 4}, {4, 6}, {6, 8},  {1, 3},
                        {3, 5}, {5, 7}, {7, 9}, {9, 10}, {10, 11}};
  ft_dag dag = make_dag(arena, 12, edge, 10, NULL, 0);
  cr_assert_eq(ideals_of(&dag, 64).count, 48);
}

// Down-closed sets of <= 12 primitives within a span, the slow way.
static uint32_t slow_count(const ft_dag *dag, uint32_t span) {
  uint32_t count = 0;
  for (uint32_t set = 0; set < 1u << dag->count; set++) {
    bool is_ideal = true;
    for (uint32_t v = 0; v < dag->count; v++)
      for (uint32_t i = dag->producer_at[v]; i < dag->producer_at[v + 1]; i++)
        if ((set >> v & 1) && !(set >> dag->producer[i] & 1)) is_ideal = false;
    uint32_t low = (uint32_t)__builtin_ctz(~set);
    if (low < dag->count && set >> low >= 1ull << span) is_ideal = false;
    count += is_ideal;
  }
  return count;
}

Test(search_ideal, finds_all_within_a_span_and_no_other_on_random_graphs) {
  ft_rng rng = ft_rng_seed(4);
  for (uint32_t i = 0; i < 100; i++) {
    ft_dag dag = random_dag(arena, &rng, 12, 5 + i % 30);
    for (uint32_t span = 1; span <= 12; span++)
      cr_assert_eq(ideals_of(&dag, span).count, slow_count(&dag, span));
  }
}

Test(search_ideal, lists_by_size_from_nothing_to_everything) {
  ft_rng rng = ft_rng_seed(5);
  ft_dag dag = random_dag(arena, &rng, 100, 30);
  ft_ideals ideals = ideals_of(&dag, 64);
  for (uint32_t i = 1; i < ideals.count; i++)
    cr_assert_geq(ft_ideal_size(ideals.ideal[i]), ft_ideal_size(ideals.ideal[i - 1]));
  cr_assert_eq(ft_ideal_size(ideals.ideal[0]), 0);
  cr_assert_eq(ideals.ideal[ideals.count - 1].low, 100);
  for (uint32_t i = 0; i < ideals.count; i++)
    cr_assert_eq(ft_ideals_find(&ideals, ideals.ideal[i]), i);
  cr_assert_eq(ft_ideals_find(&ideals, (ft_ideal){50, 1ull << 63}), UINT32_MAX);
}

Test(search_ideal, stops_at_the_limit_and_says_that_it_is_not_complete) {
  ft_dag dag = make_dag(arena, 60, NULL, 0, NULL, 0);
  ft_ideals ideals;
  ft_error error = {0};
  bool complete = true;
  cr_assert_eq(ft_ideals_make(&dag, 64, 1000, arena, &ideals, &complete, &error), FT_OK);
  cr_assert_not(complete);
}

Test(search_ideal, moves_its_low_past_everything_covered) {
  ft_ideal all = ft_ideal_add((ft_ideal){7, UINT64_MAX << 1}, 1);
  cr_assert(all.low == 71 && all.mask == 0);
  ft_ideal some = ft_ideal_add((ft_ideal){7, 0x16}, 1);  // 7 8 9 and 11 covered
  cr_assert(some.low == 10 && some.mask == 2);
  ft_ideal hole = ft_ideal_add((ft_ideal){7, 0x16}, 8);
  cr_assert(hole.low == 7 && hole.mask == 0x1e);
}
