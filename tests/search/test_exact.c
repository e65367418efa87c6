// The search against brute force: every set partition of small graphs.
#include "tests/search/fake.h"

typedef struct brute {
  const ft_graph *graph;
  uint32_t count, window;
  uint32_t reads[8], joins[8];  // direct producers; neighbours of any kind
  double cost[256];             // of each set of primitives; infinite: not legal
  double best;
  uint32_t block[8];
  uint32_t complete, cyclic;
} brute;

static bool share_a_buffer(const ft_graph *graph, uint32_t u, uint32_t v) {
  const ft_primitive *p = &graph->primitive[u], *q = &graph->primitive[v];
  for (uint32_t i = 0; i < p->input_count; i++)
    for (uint32_t k = 0; k < q->input_count; k++) {
      uint32_t a = graph->value[p->input[i]].root, b = graph->value[q->input[k]].root;
      if (a == b && !ft_value_is_immediate(graph, p->input[i])) return true;
    }
  return false;
}

static void find_neighbours(brute *b) {
  for (uint32_t v = 0; v < b->count; v++) {
    const ft_primitive *p = &b->graph->primitive[v];
    for (uint32_t i = 0; i < p->input_count; i++) {
      uint32_t u = b->graph->value[p->input[i]].producer;
      if (u == FT_NONE) continue;
      b->reads[v] |= 1u << u;
      b->joins[v] |= 1u << u;
      b->joins[u] |= 1u << v;
    }
    for (uint32_t u = 0; u < b->count; u++)
      if (u != v && share_a_buffer(b->graph, u, v)) b->joins[v] |= 1u << u;
  }
}

static bool is_connected(const brute *b, uint32_t set) {
  uint32_t met = set & -set, before = 0;
  while (met != before) {
    before = met;
    for (uint32_t v = 0; v < b->count; v++)
      if (met >> v & 1) met |= b->joins[v] & set;
  }
  return met == set;
}

static bool is_operator(const brute *b, uint32_t set) {
  for (uint32_t i = 0; i < b->graph->operator_count; i++) {
    const ft_operator *op = &b->graph->operator_[i];
    if (op->count && set == ((1u << op->count) - 1) << op->first) return true;
  }
  return false;
}

static double price(const brute *b, const fake *f, uint32_t set, ft_arena *arena) {
  bool fits = (uint32_t)__builtin_popcount(set) <= b->window && is_connected(b, set);
  if (!fits && !is_operator(b, set)) return INFINITY;
  uint32_t primitive[8], count = 0;
  for (uint32_t v = 0; v < b->count; v++)
    if (set >> v & 1) primitive[count++] = v;
  ft_group group;
  ft_workload workload;
  MUST(ft_group_make(b->graph, primitive, count, arena, &group, &must_error));
  MUST(ft_workload_make(&group, arena, &workload, &must_error));
  return fake_reason(f, &group) ? INFINITY : fake_best_ns(f, &workload);
}

static bool is_acyclic(const brute *b, uint32_t blocks) {
  uint32_t done = 0, finished = 0;
  while (finished != (1u << blocks) - 1) {
    uint32_t before = finished;
    for (uint32_t i = 0; i < blocks; i++) {
      uint32_t needs = 0;
      for (uint32_t v = 0; v < b->count; v++)
        if (b->block[i] >> v & 1) needs |= b->reads[v];
      if (finished >> i & 1 || (needs & ~(done | b->block[i]))) continue;
      finished |= 1u << i;
      done |= b->block[i];
    }
    if (finished == before) return false;
  }
  return true;
}

static void divide(brute *b, uint32_t at, uint32_t blocks) {
  if (at == b->count) {
    double sum = 0;
    for (uint32_t i = 0; i < blocks; i++) sum += b->cost[b->block[i]];
    if (!isfinite(sum)) return;
    b->complete++;
    if (!is_acyclic(b, blocks)) {
      b->cyclic++;
    } else if (sum < b->best) {
      b->best = sum;
    }
    return;
  }
  for (uint32_t i = 0; i <= blocks; i++) {
    b->block[i] |= 1u << at;
    divide(b, at + 1, i == blocks ? blocks + 1 : blocks);
    b->block[i] &= ~(1u << at);
  }
}

static brute solve(const ft_graph *graph, const fake *f, uint32_t window,
                   ft_arena *arena) {
  brute b = {.graph = graph,
             .count = graph->primitive_count,
             .window = window,
             .best = INFINITY};
  find_neighbours(&b);
  for (uint32_t set = 1; set < 1u << b.count; set++)
    b.cost[set] = price(&b, f, set, arena);
  divide(&b, 0, 0);
  return b;
}

Test(search_exact, equals_brute_force_over_all_partitions_on_300_random_graphs) {
  ft_rng rng = ft_rng_seed(1);
  uint32_t cyclic = 0, beaten_greedy = 0;
  for (uint32_t i = 0; i < 300; i++) {
    ft_arena *arena = new_arena();
    const ft_graph *graph =
        random_graph(arena, &rng, 1 + (uint32_t)ft_rng_below(&rng, 8));
    fake f = {.seed = i, .schedules = 1 + i % 3, .max_reductions = i % 3};
    ft_search_options options = {.window = 1 + (uint32_t)ft_rng_below(&rng, 8)};
    brute b = solve(graph, &f, options.window, arena);
    ft_search_result r;
    search_ok(&f, graph, &options, arena, &r);
    const ft_searched_partition *ideals = ft_search_find(&r, "ideals");
    cr_assert(ideals->is_complete);
    cr_assert_eq(ideals->additive_ns, b.best, "graph %u: %f, brute force %f", i,
                 ideals->additive_ns, b.best);
    cr_assert_eq(r.bound_ns, b.best);
    cr_assert_eq(r.gap, 0);
    cyclic += b.cyclic;
    beaten_greedy +=
        ideals->additive_ns < ft_search_find(&r, "horizontal-vertical")->additive_ns;
    ft_arena_destroy(arena);
  }
  // The test means something only if there was something to get wrong.
  cr_assert_gt(cyclic, 100);
  cr_assert_gt(beaten_greedy, 10);
}

Test(search_exact, equals_brute_force_when_some_kernels_fail) {
  ft_rng rng = ft_rng_seed(2);
  for (uint32_t i = 0; i < 100; i++) {
    ft_arena *arena = new_arena();
    const ft_graph *graph = random_graph(arena, &rng, 6);
    fake f = {.seed = i, .schedules = 3, .fail_percent = 30};
    ft_search_options options = {.window = 4};
    brute b = solve(graph, &f, options.window, arena);
    ft_search_result r;
    search_ok(&f, graph, &options, arena, &r);
    const ft_searched_partition *ideals = ft_search_find(&r, "ideals");
    cr_assert_eq(ideals->is_complete, isfinite(b.best));
    cr_assert_eq(ideals->additive_ns, b.best, "graph %u", i);
    cr_assert_eq(r.gap, isfinite(b.best) ? 0 : 1);
    ft_arena_destroy(arena);
  }
}

// a1->a2, b1->b2, a1 and b2 share x, b1 and a2 share y: the crosswise pairs are convex
// and would wait for each other.
Test(search_exact, does_not_fuse_two_pairs_that_wait_for_each_other) {
  ft_arena *arena = new_arena();
  sketch s = sketch_new(arena);
  uint32_t x = input(&s, "x"), y = input(&s, "y");
  uint32_t a1 = op1(&s, FT_OP_EXP, x, 0), b1 = op1(&s, FT_OP_TANH, y, 0);
  uint32_t a2 = op1(&s, FT_OP_MUL, a1, y), b2 = op1(&s, FT_OP_SUB, b1, x);
  output(&s, a2);
  output(&s, b2);
  const ft_graph *graph = finish(&s);
  // Both pairs would be by far the cheapest: everything else costs its bytes.
  for (uint64_t seed = 0; seed < 50; seed++) {
    fake f = {.seed = seed};
    ft_search_options options = {.window = 2};
    brute b = solve(graph, &f, 2, arena);
    ft_search_result r;
    search_ok(&f, graph, &options, arena, &r);
    cr_assert_gt(b.cyclic, 0);
    cr_assert_eq(ft_search_find(&r, "ideals")->additive_ns, b.best);
  }
  ft_arena_destroy(arena);
}
