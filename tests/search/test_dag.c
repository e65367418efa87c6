#include "tests/search/dags.h"
#include "tests/search/fake.h"

Test(search_dag, lists_each_edge_once_and_in_order) {
  ft_arena *arena = new_arena();
  ft_dag_pair edge[] = {{1, 3}, {0, 3}, {1, 3}, {0, 2}, {2, 3}, {0, 3}};
  ft_dag dag = make_dag(arena, 4, edge, 6, NULL, 0);
  cr_assert_eq(dag.producer_at[3] - dag.producer_at[2], 1);
  cr_assert_eq(dag.producer_at[4] - dag.producer_at[3], 3);
  const uint32_t *of3 = &dag.producer[dag.producer_at[3]];
  cr_assert(of3[0] == 0 && of3[1] == 1 && of3[2] == 2);
  cr_assert_eq(dag.consumer_at[1] - dag.consumer_at[0], 2);
  const uint32_t *of0 = &dag.consumer[dag.consumer_at[0]];
  cr_assert(of0[0] == 2 && of0[1] == 3);
  ft_arena_destroy(arena);
}

Test(search_dag, refuses_a_pair_that_does_not_go_up_or_leaves_the_graph) {
  ft_arena *arena = new_arena();
  ft_dag dag;
  ft_error error = {0};
  ft_dag_pair down = {2, 1}, self = {1, 1}, far = {1, 3};
  cr_assert_eq(ft_dag_make(3, &down, 1, NULL, 0, arena, &dag, &error),
               FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "2 -> 1"), "%s", error.text);
  cr_assert_eq(ft_dag_make(3, &self, 1, NULL, 0, arena, &dag, &error),
               FT_INVALID_ARGUMENT);
  cr_assert_eq(ft_dag_make(3, NULL, 0, &far, 1, arena, &dag, &error),
               FT_INVALID_ARGUMENT);
  ft_arena_destroy(arena);
}

// Ancestors that need a chain within the 64 positions before v, the slow way.
static uint64_t slow_ancestors(const ft_dag *dag, uint32_t v) {
  uint8_t seen[128];
  uint64_t back = 0;
  for (uint32_t u = v > 64 ? v - 64 : 0; u < v; u++)
    if (ft_dag_reaches(dag, u, v, seen)) back |= 1ull << (64 - (v - u));
  return back;
}

Test(search_dag, near_words_agree_with_the_lists_and_with_reachability) {
  ft_rng rng = ft_rng_seed(3);
  for (uint32_t round = 0; round < 20; round++) {
    ft_arena *arena = new_arena();
    ft_dag dag = random_dag(arena, &rng, 100, 2);
    for (uint32_t v = 0; v < 100; v++) {
      cr_assert_eq(dag.ancestor_back[v], slow_ancestors(&dag, v));
      for (uint32_t u = v > 63 ? v - 63 : 0; u < v; u++) {
        uint64_t back = ft_dag_back_from(dag.producer_back[v], v, u);
        cr_assert_eq(back & 1, has_edge(&dag, u, v));
        uint64_t below = ft_dag_back_from(dag.neighbour_back[v], v, u) & 1;
        uint64_t above = ft_dag_front_from(dag.neighbour_front[u], u, u) >> (v - u) & 1;
        cr_assert_eq(below, above);
        cr_assert(!has_edge(&dag, u, v) || below);
      }
    }
    ft_arena_destroy(arena);
  }
}

Test(search_dag, sees_edges_through_views_and_an_input_read_twice_once) {
  ft_arena *arena = new_arena();
  sketch s = sketch_new(arena);
  uint32_t x = input(&s, "x"), e = op1(&s, FT_OP_EXP, x, 0), view;
  ft_shape flat = {.rank = 1, .dim = {64 * 32}};
  MUST(ft_graph_view(s.graph, e, &flat, &view, &must_error));
  output(&s, op1(&s, FT_OP_MUL, view, view));
  const ft_graph *graph = finish(&s);
  ft_dag dag;
  MUST(ft_dag_of_graph(graph, arena, &dag, &must_error));
  cr_assert_eq(dag.count, 2);
  cr_assert_eq(dag.producer_at[2], 1);
  cr_assert(has_edge(&dag, 0, 1));
  ft_arena_destroy(arena);
}

Test(search_dag, readers_of_one_buffer_are_neighbours_but_readers_of_an_immediate_not) {
  ft_arena *arena = new_arena();
  sketch s = sketch_new(arena);
  uint32_t x = input(&s, "x"), y = input(&s, "y"), z = input(&s, "z"), half;
  MUST(ft_graph_add_scalar(s.graph, FT_F32, 0.5, &half, &must_error));
  output(&s, op1(&s, FT_OP_EXP, x, 0));
  output(&s, op1(&s, FT_OP_TANH, x, 0));
  output(&s, op1(&s, FT_OP_MUL, y, half));
  output(&s, op1(&s, FT_OP_MUL, z, half));
  ft_dag dag;
  MUST(ft_dag_of_graph(finish(&s), arena, &dag, &must_error));
  cr_assert(are_neighbours(&dag, 0, 1));
  cr_assert_not(are_neighbours(&dag, 2, 3));
  cr_assert_not(are_neighbours(&dag, 1, 2));
  ft_arena_destroy(arena);
}
