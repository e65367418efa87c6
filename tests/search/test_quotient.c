#include "search/quotient.h"

#include "tests/search/dags.h"

static ft_arena *arena;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(search_quotient, .init = set_up, .fini = tear_down);

static ft_quotient quotient_of(const ft_dag *dag) {
  ft_quotient q;
  ft_error error = {0};
  cr_assert_eq(ft_quotient_make(dag, arena, &q, &error), FT_OK);
  return q;
}

Test(search_quotient, finds_the_way_around_in_a_diamond) {
  ft_dag dag = make_dag(arena, 3, (ft_dag_pair[]){{0, 1}, {1, 2}, {0, 2}}, 3, NULL, 0);
  ft_quotient q = quotient_of(&dag);
  cr_assert(ft_quotient_has_edge(&q, 0, 2));
  cr_assert(ft_quotient_has_detour(&q, 0, 2));
  cr_assert_not(ft_quotient_has_detour(&q, 0, 1));
  cr_assert_not(ft_quotient_has_detour(&q, 2, 0));
  ft_quotient_unite(&q, 0, 1);
  cr_assert_not(ft_quotient_has_detour(&q, 0, 2));
}

// a1=0 b1=1 a2=2 b2=3: once {a1,b2} is a part, {b1,a2} would wait for it and it for them.
Test(search_quotient, sees_the_cycle_that_two_convex_pairs_would_make) {
  ft_dag dag = make_dag(arena, 4, (ft_dag_pair[]){{0, 2}, {1, 3}}, 2, NULL, 0);
  ft_quotient q = quotient_of(&dag);
  cr_assert_not(ft_quotient_has_detour(&q, 1, 2));
  ft_quotient_unite(&q, 0, 3);
  cr_assert(ft_quotient_has_detour(&q, 1, 2));
}

Test(search_quotient, gathers_a_set_into_the_part_of_its_lowest) {
  ft_dag dag = chain_dag(arena, 6);
  ft_quotient q = quotient_of(&dag);
  ft_quotient_gather(&q, (ft_set){2, 0xb});
  cr_assert(q.owner[2] == 2 && q.owner[3] == 2 && q.owner[4] == 4 && q.owner[5] == 2);
  cr_assert_eq(q.part[2].bits, 0xb);
}

// Merges at random; a third part lies between two exactly when uniting them would leave
// no order to run in.
static bool has_order(const ft_quotient *q) {
  uint8_t done[16] = {0};
  for (uint32_t round = 0; round < q->dag->count; round++)
    for (uint32_t p = 0; p < q->dag->count; p++) {
      bool ready = q->owner[p] == p;
      for (uint32_t v = 0; v < q->dag->count; v++)
        for (uint32_t i = q->dag->producer_at[v]; i < q->dag->producer_at[v + 1]; i++) {
          uint32_t from = q->owner[q->dag->producer[i]];
          if (q->owner[v] == p && from != p && !done[from]) ready = false;
        }
      if (ready) done[p] = 1;
    }
  for (uint32_t p = 0; p < q->dag->count; p++)
    if (q->owner[p] == p && !done[p]) return false;
  return true;
}

Test(search_quotient, a_detour_is_exactly_what_makes_a_merge_cyclic) {
  ft_rng rng = ft_rng_seed(9);
  uint32_t refused = 0, merged = 0;
  for (uint32_t i = 0; i < 200; i++) {
    ft_dag dag = random_dag(arena, &rng, 12, 15);
    ft_quotient q = quotient_of(&dag);
    for (uint32_t k = 0; k < 20; k++) {
      uint32_t a = q.owner[ft_rng_below(&rng, 12)], b = q.owner[ft_rng_below(&rng, 12)];
      if (a >= b) continue;
      bool detour = ft_quotient_has_detour(&q, a, b) || ft_quotient_has_detour(&q, b, a);
      ft_quotient next = quotient_of(&dag);
      for (uint32_t v = 0; v < 12; v++) {
        if (q.owner[v] == v) ft_quotient_gather(&next, q.part[v]);
      }
      ft_quotient_unite(&next, a, b);
      cr_assert_eq(has_order(&next), !detour);
      if (!detour) q = next;
      detour ? refused++ : merged++;
    }
  }
  cr_assert_gt(refused, 50);
  cr_assert_gt(merged, 50);
}

Test(search_quotient, keeps_an_order_in_which_the_parts_can_run) {
  ft_rng rng = ft_rng_seed(10);
  for (uint32_t i = 0; i < 100; i++) {
    ft_dag dag = random_dag(arena, &rng, 40, 6);
    ft_quotient q = quotient_of(&dag);
    for (uint32_t k = 0; k < 60; k++) {
      uint32_t a = q.owner[ft_rng_below(&rng, 40)], b = q.owner[ft_rng_below(&rng, 40)];
      if (a >= b || ft_quotient_has_detour(&q, a, b) || ft_quotient_has_detour(&q, b, a))
        continue;
      ft_quotient_unite(&q, a, b);
      for (uint32_t v = 0; v < 40; v++) {
        uint32_t part = q.owner[v];
        cr_assert_eq(q.order[q.at[part]], part);
        for (uint32_t e = dag.producer_at[v]; e < dag.producer_at[v + 1]; e++) {
          uint32_t from = q.owner[dag.producer[e]];
          cr_assert(from == part || q.at[from] < q.at[part]);
        }
      }
    }
  }
}
