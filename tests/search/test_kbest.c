#include "search/kbest.h"

#include <math.h>

#include "tests/search/dags.h"

static ft_arena *arena;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(search_kbest, .init = set_up, .fini = tear_down);

static ft_lattice lattice_of(const ft_dag *dag) {
  ft_lattice lattice;
  ft_error error = {0};
  ft_lattice_limits limits = ft_lattice_default_limits(8, 64);
  cr_assert_eq(
      ft_lattice_make(dag, NULL, &limits, ft_allocator_system(), arena, &lattice, &error),
      FT_OK);
  return lattice;
}

// Every set a group of its own; whole costs, so that sums are exact.
static ft_priced_lattice price(const ft_lattice *lattice, ft_rng *rng) {
  uint32_t *group = FT_NEW_ARRAY(arena, uint32_t, lattice->set_count);
  double *cost = FT_NEW_ARRAY(arena, double, lattice->set_count);
  for (uint32_t i = 0; i < lattice->set_count; i++) {
    group[i] = i;
    cost[i] = 1 + (double)ft_rng_below(rng, 1000);
  }
  return (ft_priced_lattice){lattice, group, cost};
}

typedef struct partition {
  uint64_t key;
  double ns;
} partition;

typedef struct walk {
  const ft_priced_lattice *priced;
  partition *list;
  size_t count, capacity;
} walk;

// Every path; a partition once.
static void walk_from(walk *w, uint32_t ideal, uint64_t key, double ns) {
  const ft_lattice *lattice = w->priced->lattice;
  if (ideal == lattice->ideals.count - 1) {
    for (size_t i = 0; i < w->count; i++)
      if (w->list[i].key == key) return;
    cr_assert_not(FT_GROW(arena, &w->list, w->count, &w->capacity));
    w->list[w->count++] = (partition){key, ns};
    return;
  }
  for (uint32_t s = lattice->step_at[ideal]; s < lattice->step_at[ideal + 1]; s++) {
    const ft_step *step = &lattice->step[s];
    walk_from(w, step->to, key + ft_division_key(&lattice->set[step->set], 1),
              ns + w->priced->cost_ns[step->set]);
  }
}

static int by_ns(const void *a, const void *b) {
  double x = ((const partition *)a)->ns, y = ((const partition *)b)->ns;
  return (x > y) - (x < y);
}

static void solve(const ft_priced_lattice *priced, uint32_t k, ft_path *path,
                  uint32_t *count) {
  ft_error error = {0};
  cr_assert_eq(ft_kbest_solve(priced, k, arena, path, count, &error), FT_OK);
}

Test(search_kbest, equals_the_sorted_list_of_all_partitions_on_200_random_graphs) {
  ft_rng rng = ft_rng_seed(1);
  uint32_t reordered = 0;
  for (uint32_t i = 0; i < 200; i++) {
    ft_dag dag = random_dag(arena, &rng, 1 + (uint32_t)ft_rng_below(&rng, 6), 30);
    ft_lattice lattice = lattice_of(&dag);
    ft_priced_lattice priced = price(&lattice, &rng);
    walk w = {.priced = &priced};
    walk_from(&w, 0, 0, 0);
    qsort(w.list, w.count, sizeof *w.list, by_ns);
    ft_path path[FT_KBEST_MOST], best;
    uint32_t count, k = 1 + i % FT_KBEST_MOST;
    solve(&priced, k, path, &count);
    cr_assert_eq(count, w.count < k ? w.count : k);
    ft_error error = {0};
    cr_assert_eq(ft_path_solve(&priced, arena, &best, &error), FT_OK);
    cr_assert_eq(path[0].cost.ns, best.cost.ns);
    for (uint32_t r = 0; r < count; r++) {
      cr_assert_eq(path[r].cost.ns, w.list[r].ns, "graph %u rank %u", i, r);
      uint64_t key = ft_division_key(path[r].set, path[r].set_count);
      for (uint32_t q = 0; q < r; q++)
        cr_assert_neq(key, ft_division_key(path[q].set, path[q].set_count));
    }
    reordered += lattice.ideals.count > dag.count + 1;
  }
  cr_assert_gt(reordered, 50, "else no partition had two orders");
}

Test(search_kbest, lists_what_has_no_cost_last) {
  ft_dag dag = chain_dag(arena, 3);
  ft_lattice lattice = lattice_of(&dag);
  ft_rng rng = ft_rng_seed(2);
  ft_priced_lattice priced = price(&lattice, &rng);
  for (uint32_t i = 0; i < lattice.set_count; i++)
    if (ft_set_count(lattice.set[i]) == 2) ((double *)priced.cost_ns)[i] = INFINITY;
  ft_path path[8];
  uint32_t count;
  solve(&priced, 8, path, &count);
  cr_assert_eq(count, 4);
  for (uint32_t i = 0; i < count; i++) cr_assert_eq(path[i].cost.missing, i < 2 ? 0 : 1);
}

Test(search_kbest, key_does_not_depend_on_the_order_and_tells_partitions_apart) {
  ft_set a = {0, 1}, b = {1, 1}, both = {0, 3};
  cr_assert_eq(ft_division_key((ft_set[]){a, b}, 2),
               ft_division_key((ft_set[]){b, a}, 2));
  cr_assert_neq(ft_division_key((ft_set[]){a, b}, 2), ft_division_key(&both, 1));
}
