#include "search/path.h"

#include <math.h>

#include "tests/search/dags.h"

static ft_arena *arena;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(search_path, .init = set_up, .fini = tear_down);

// A chain of three; groups by set: the cost of set i is cost[i].
typedef struct fixture {
  ft_lattice lattice;
  uint32_t group[64];
  double cost[64];
} fixture;

static fixture make(const ft_dag *dag) {
  fixture f;
  ft_error error = {0};
  ft_lattice_limits limits = ft_lattice_default_limits(8, 64);
  cr_assert_eq(ft_lattice_make(dag, NULL, &limits, ft_allocator_system(), arena,
                               &f.lattice, &error),
               FT_OK);
  cr_assert_leq(f.lattice.set_count, 64);
  for (uint32_t i = 0; i < f.lattice.set_count; i++) {
    f.group[i] = i;
    f.cost[i] = 10;
  }
  return f;
}

static double *cost_of(fixture *f, uint32_t first, uint64_t bits) {
  for (uint32_t i = 0; i < f->lattice.set_count; i++)
    if (ft_set_equal(f->lattice.set[i], (ft_set){first, bits})) return &f->cost[i];
  cr_assert_fail("no such set");
  return NULL;
}

static ft_path solve(const fixture *f) {
  ft_path path;
  ft_error error = {0};
  ft_priced_lattice priced = {&f->lattice, f->group, f->cost};
  cr_assert_eq(ft_path_solve(&priced, arena, &path, &error), FT_OK);
  return path;
}

Test(search_path, of_equal_sums_takes_the_one_with_fewer_groups) {
  ft_dag dag = chain_dag(arena, 3);
  fixture f = make(&dag);
  *cost_of(&f, 0, 7) = 30;
  ft_path path = solve(&f);
  cr_assert_eq(path.cost.ns, 20, "two groups of 10 beat one of 30");
  *cost_of(&f, 0, 7) = 20;
  cr_assert_eq(solve(&f).set_count, 1);
}

Test(search_path, a_group_without_a_cost_loses_to_any_sum_that_has_one) {
  ft_dag dag = chain_dag(arena, 3);
  fixture f = make(&dag);
  for (uint32_t i = 0; i < f.lattice.set_count; i++) f.cost[i] = INFINITY;
  cr_assert_eq(solve(&f).cost.missing, 1, "the fewest that can be");
  *cost_of(&f, 0, 1) = *cost_of(&f, 1, 1) = *cost_of(&f, 2, 1) = 1e9;
  ft_path path = solve(&f);
  cr_assert_eq(path.cost.missing, 0);
  cr_assert_eq(path.cost.ns, 3e9);
}

Test(search_path, does_not_pass_what_is_not_legal) {
  ft_dag dag = chain_dag(arena, 3);
  fixture f = make(&dag);
  for (uint32_t i = 0; i < f.lattice.set_count; i++)
    if (ft_set_count(f.lattice.set[i]) == 3) f.group[i] = UINT32_MAX;
  cr_assert_eq(solve(&f).set_count, 2);
}

Test(search_path, lists_its_sets_in_an_order_in_which_they_can_run) {
  ft_rng rng = ft_rng_seed(15);
  ft_dag dag = random_dag(arena, &rng, 5, 30);
  fixture f = make(&dag);
  for (uint32_t i = 0; i < f.lattice.set_count; i++)
    f.cost[i] = (double)ft_rng_below(&rng, 100);
  ft_path path = solve(&f);
  ft_ideal at = {0, 0};
  for (uint32_t i = 0; i < path.set_count; i++) {
    uint32_t member[FT_SET_SPREAD], count = ft_set_list(path.set[i], member);
    for (uint32_t k = 0; k < count; k++) {
      cr_assert_geq(member[k], at.low);
      at = ft_ideal_add(at, 1ull << (member[k] - at.low));
    }
    cr_assert_neq(ft_ideals_find(&f.lattice.ideals, at), UINT32_MAX);
  }
  cr_assert_eq(at.low, 5);
}

Test(search_path, through_a_group_is_the_cheapest_path_that_uses_it) {
  ft_dag dag = chain_dag(arena, 3);
  fixture f = make(&dag);
  *cost_of(&f, 0, 7) = 5;
  *cost_of(&f, 1, 1) = 1;
  double through[64];
  ft_error error = {0};
  ft_priced_lattice priced = {&f.lattice, f.group, f.cost};
  cr_assert_eq(ft_path_through(&priced, f.lattice.set_count, arena, through, &error),
               FT_OK);
  cr_assert_eq(through[cost_of(&f, 0, 7) - f.cost], 5);
  cr_assert_eq(through[cost_of(&f, 1, 1) - f.cost], 21);
  cr_assert_eq(through[cost_of(&f, 0, 3) - f.cost], 20);
  *cost_of(&f, 0, 1) = INFINITY;
  cr_assert_eq(ft_path_through(&priced, f.lattice.set_count, arena, through, &error),
               FT_OK);
  cr_assert(isinf(through[cost_of(&f, 1, 1) - f.cost]));
}
