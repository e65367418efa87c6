#include "search/lattice.h"

#include "tests/search/dags.h"

static ft_arena *arena;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(search_lattice, .init = set_up, .fini = tear_down);

static ft_lattice make(const ft_dag *dag, const uint64_t *whole,
                       const ft_lattice_limits *limits) {
  ft_lattice lattice;
  ft_error error = {0};
  cr_assert_eq(
      ft_lattice_make(dag, whole, limits, ft_allocator_system(), arena, &lattice, &error),
      FT_OK);
  return lattice;
}

static bool is_connected(const ft_dag *dag, uint32_t set) {
  uint32_t met = set & -set, before = 0;
  while (met != before) {
    before = met;
    for (uint32_t a = 0; a < dag->count; a++)
      for (uint32_t b = a + 1; b < dag->count; b++) {
        if (!(set >> a & 1) || !(set >> b & 1) || !are_neighbours(dag, a, b)) continue;
        if ((met >> a | met >> b) & 1) met |= 1u << a | 1u << b;
      }
  }
  return met == set;
}

static bool is_down_closed(const ft_dag *dag, uint32_t set) {
  for (uint32_t v = 0; v < dag->count; v++)
    for (uint32_t i = dag->producer_at[v]; i < dag->producer_at[v + 1]; i++)
      if ((set >> v & 1) && !(set >> dag->producer[i] & 1)) return false;
  return true;
}

// Connected sets whose union with |from| is an ideal, the slow way.
static uint32_t slow_steps(const ft_dag *dag, uint32_t from, uint32_t window) {
  uint32_t count = 0;
  for (uint32_t set = 1; set < 1u << dag->count; set++)
    count += !(set & from) && (uint32_t)__builtin_popcount(set) <= window &&
             is_down_closed(dag, from | set) && is_connected(dag, set);
  return count;
}

Test(search_lattice, meets_every_connected_step_once_on_random_graphs) {
  ft_rng rng = ft_rng_seed(6);
  for (uint32_t i = 0; i < 40; i++) {
    ft_dag dag = random_dag(arena, &rng, 9, 10 + i % 30);
    ft_lattice_limits limits = ft_lattice_default_limits(1 + i % 9, 64);
    ft_lattice lattice = make(&dag, NULL, &limits);
    cr_assert_not(lattice.is_cut);
    for (uint32_t k = 0; k < lattice.ideals.count; k++) {
      ft_ideal ideal = lattice.ideals.ideal[k];
      uint32_t from = ((1u << ideal.low) - 1) | (uint32_t)(ideal.mask << ideal.low);
      cr_assert_eq(lattice.step_at[k + 1] - lattice.step_at[k],
                   slow_steps(&dag, from, limits.window));
    }
  }
}

Test(search_lattice, steps_lead_where_their_set_says) {
  ft_rng rng = ft_rng_seed(7);
  ft_dag dag = random_dag(arena, &rng, 80, 25);
  ft_lattice_limits limits = ft_lattice_default_limits(5, 64);
  ft_lattice lattice = make(&dag, NULL, &limits);
  for (uint32_t i = 0; i < lattice.ideals.count; i++)
    for (uint32_t s = lattice.step_at[i]; s < lattice.step_at[i + 1]; s++) {
      uint32_t to = lattice.step[s].to;
      cr_assert_gt(to, i);
      cr_assert_eq(ft_ideal_size(lattice.ideals.ideal[to]),
                   ft_ideal_size(lattice.ideals.ideal[i]) +
                       ft_set_count(lattice.set[lattice.step[s].set]));
    }
}

Test(search_lattice, holds_each_set_once) {
  ft_rng rng = ft_rng_seed(8);
  ft_dag dag = random_dag(arena, &rng, 12, 20);
  ft_lattice_limits limits = ft_lattice_default_limits(6, 64);
  ft_lattice lattice = make(&dag, NULL, &limits);
  cr_assert_gt(lattice.step_count, lattice.set_count);
  for (uint32_t i = 0; i < lattice.set_count; i++)
    for (uint32_t k = 0; k < i; k++)
      cr_assert_not(ft_set_equal(lattice.set[i], lattice.set[k]));
}

Test(search_lattice, chain_of_n_with_window_w_has_a_step_per_start_and_length) {
  ft_dag dag = chain_dag(arena, 100);
  ft_lattice_limits limits = ft_lattice_default_limits(4, 64);
  ft_lattice lattice = make(&dag, NULL, &limits);
  cr_assert_eq(lattice.step_count, 97 * 4 + 3 + 2 + 1);
  cr_assert_eq(lattice.set_count, lattice.step_count);
}

Test(search_lattice, offers_an_operator_larger_than_the_window_and_one_in_two_pieces) {
  ft_dag dag = chain_dag(arena, 6);
  uint64_t whole[6] = {0x1f, 0, 0, 0, 0, 1};
  ft_lattice_limits limits = ft_lattice_default_limits(2, 1);
  ft_lattice lattice = make(&dag, whole, &limits);
  cr_assert_eq(lattice.set_count, 7);
  ft_dag apart = make_dag(arena, 2, NULL, 0, NULL, 0);
  uint64_t both[2] = {3, 0};
  limits = ft_lattice_default_limits(8, 64);
  lattice = make(&apart, both, &limits);
  cr_assert_eq(lattice.set_count, 3);
  cr_assert_not(lattice.is_cut);
}

Test(search_lattice, halves_the_span_until_a_wide_graph_fits_and_says_so) {
  ft_dag dag = make_dag(arena, 100, NULL, 0, NULL, 0);
  ft_lattice_limits limits = ft_lattice_default_limits(8, 64);
  ft_lattice lattice = make(&dag, NULL, &limits);
  cr_assert(lattice.is_cut);
  cr_assert_leq(lattice.ideals.count, limits.ideals);
  cr_assert_eq(lattice.ideals.span, 8);
  cr_assert_eq(lattice.ideals.ideal[lattice.ideals.count - 1].low, 100);
}

Test(search_lattice, drops_sets_beyond_the_limit_of_an_ideal_and_says_so) {
  // 16 readers of one buffer: every subset is connected.
  ft_dag_pair sibling[120];
  uint32_t siblings = 0;
  for (uint32_t a = 0; a < 16; a++)
    for (uint32_t b = a + 1; b < 16; b++) sibling[siblings++] = (ft_dag_pair){a, b};
  ft_dag dag = make_dag(arena, 16, NULL, 0, sibling, siblings);
  ft_lattice_limits limits = ft_lattice_default_limits(16, 8);
  limits.sets_per_ideal = 20;
  ft_lattice lattice = make(&dag, NULL, &limits);
  cr_assert(lattice.is_cut);
  cr_assert_eq(lattice.ideals.span, 8);
  for (uint32_t i = 0; i < lattice.ideals.count; i++)
    cr_assert_leq(lattice.step_at[i + 1] - lattice.step_at[i], 20);
  // Every primitive can still be taken alone.
  uint32_t alone = 0;
  for (uint32_t i = 0; i < lattice.set_count; i++)
    alone += ft_set_count(lattice.set[i]) == 1;
  cr_assert_eq(alone, 16);
}

Test(search_lattice, a_limit_of_one_step_still_leaves_a_way_through) {
  ft_dag dag = chain_dag(arena, 30);
  ft_lattice_limits limits = ft_lattice_default_limits(4, 64);
  limits.steps = 1;
  ft_lattice lattice = make(&dag, NULL, &limits);
  cr_assert(lattice.is_cut);
  cr_assert_eq(lattice.ideals.span, 1);
  cr_assert_eq(lattice.step_count, 30);
}
