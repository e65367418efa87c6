// Constraints against brute force, and what a person reads when they cannot be kept.
#include "search/strategy.h"
#include "tests/search/fake.h"

static ft_arena *arena;
static void set_up(void) {
  arena = new_arena();
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(search_constraints, .init = set_up, .fini = tear_down);

// ---- every partition there is ----------------------------------------------------

typedef struct brute {
  const ft_graph *graph;
  const ft_constraint_spec *spec;
  fake *fake;
  uint32_t window, block[8], legal;
  double best;
  double cost[256];  // NAN: not asked yet
} brute;

static uint32_t operator_named(const ft_graph *graph, const char *name) {
  for (uint32_t i = 0; i < graph->operator_count; i++)
    if (strcmp(graph->operator_[i].name, name) == 0) return i;
  cr_assert_fail("no operator %s", name);
  return 0;
}

static uint32_t members_of(const ft_graph *graph, const char *name) {
  const ft_operator *op = &graph->operator_[operator_named(graph, name)];
  return ((1u << op->count) - 1) << op->first;
}

static uint32_t reads(const ft_graph *graph, uint32_t set) {
  uint32_t out = 0;
  for (uint32_t v = 0; v < graph->primitive_count; v++)
    for (uint32_t i = 0; set >> v & 1 && i < graph->primitive[v].input_count; i++) {
      uint32_t producer = graph->value[graph->primitive[v].input[i]].producer;
      if (producer != FT_NONE) out |= 1u << producer;
    }
  return out;
}

// A kept value is what primitive |v| computes: someone outside its block reads it.
static bool is_kept(const brute *b, uint32_t set, const char *name) {
  for (uint32_t v = 0; v < b->graph->primitive_count; v++) {
    const ft_value *value = &b->graph->value[b->graph->primitive[v].output];
    if (strcmp(value->name, name) != 0 || !(set >> v & 1)) continue;
    bool is_read_outside = value->is_output;
    for (uint32_t i = 0; i < value->consumer_count; i++)
      is_read_outside |= !(set >> value->consumer[i] & 1);
    return is_read_outside;
  }
  return true;
}

static bool keeps_to(const brute *b, uint32_t set) {
  const ft_constraint_spec *s = b->spec;
  for (uint32_t i = 0; i < s->keep_count; i++)
    if (!is_kept(b, set, s->keep[i])) return false;
  for (uint32_t i = 0; i < s->no_fuse_count; i++)
    if (set & members_of(b->graph, s->no_fuse[i].a) &&
        set & members_of(b->graph, s->no_fuse[i].b))
      return false;
  for (uint32_t i = 0; i < s->fuse_count; i++) {
    uint32_t both =
        members_of(b->graph, s->fuse[i].a) | members_of(b->graph, s->fuse[i].b);
    if (set & both && (set & both) != both) return false;
  }
  return true;
}

static bool is_connected(const ft_graph *graph, uint32_t set) {
  uint32_t met = set & -set;
  for (uint32_t before = 0; before != met;) {
    before = met;
    for (uint32_t u = 0; u < graph->primitive_count; u++)
      for (uint32_t v = 0; v < graph->primitive_count; v++) {
        if (!(met >> u & 1) || !(set >> v & 1)) continue;
        bool joins = reads(graph, 1u << v) >> u & 1 || reads(graph, 1u << u) >> v & 1;
        const ft_primitive *p = &graph->primitive[u], *q = &graph->primitive[v];
        for (uint32_t i = 0; i < p->input_count; i++)
          for (uint32_t k = 0; k < q->input_count; k++)
            joins |= p->input[i] == q->input[k];
        if (joins) met |= 1u << v;
      }
  }
  return met == set;
}

static bool is_operator(const ft_graph *graph, uint32_t set) {
  for (uint32_t i = 0; i < graph->operator_count; i++)
    if (graph->operator_[i].count && members_of(graph, graph->operator_[i].name) == set)
      return true;
  return false;
}

static double price(brute *b, uint32_t set) {
  if (!isnan(b->cost[set])) return b->cost[set];
  double *out = &b->cost[set];
  *out = INFINITY;
  bool fits =
      (uint32_t)__builtin_popcount(set) <= b->window && is_connected(b->graph, set);
  if ((!fits && !is_operator(b->graph, set)) || !keeps_to(b, set)) return *out;
  uint32_t primitive[8], count = 0;
  for (uint32_t v = 0; v < b->graph->primitive_count; v++)
    if (set >> v & 1) primitive[count++] = v;
  ft_group group;
  ft_workload workload;
  MUST(ft_group_make(b->graph, primitive, count, arena, &group, &must_error));
  MUST(ft_workload_make(&group, arena, &workload, &must_error));
  return *out =
             fake_reason(b->fake, &group) ? INFINITY : fake_best_ns(b->fake, &workload);
}

static bool is_acyclic(const brute *b, uint32_t blocks) {
  uint32_t done = 0, finished = 0, before = 1;
  while (finished != before) {
    before = finished;
    for (uint32_t i = 0; i < blocks; i++) {
      if (finished >> i & 1 || reads(b->graph, b->block[i]) & ~(done | b->block[i]))
        continue;
      finished |= 1u << i;
      done |= b->block[i];
    }
  }
  return finished == (1u << blocks) - 1;
}

static void divide(brute *b, uint32_t at, uint32_t blocks) {
  if (at == b->graph->primitive_count) {
    double sum = 0;
    for (uint32_t i = 0; i < blocks; i++) sum += price(b, b->block[i]);
    if (!isfinite(sum) || !is_acyclic(b, blocks)) return;
    b->legal++;
    if (sum < b->best) b->best = sum;
    return;
  }
  for (uint32_t i = 0; i <= blocks; i++) {
    b->block[i] |= 1u << at;
    divide(b, at + 1, i == blocks ? blocks + 1 : blocks);
    b->block[i] &= ~(1u << at);
  }
}

static const char *any_operator(const ft_graph *graph, ft_rng *rng) {
  for (;;) {
    const ft_operator *op = &graph->operator_[ft_rng_below(rng, graph->operator_count)];
    if (op->count) return op->name;
  }
}

static void draw_pairs(const ft_graph *graph, ft_rng *rng, ft_name_pair *pair,
                       uint32_t *count) {
  const char *a = any_operator(graph, rng), *b = any_operator(graph, rng);
  if (strcmp(a, b) != 0) pair[(*count)++] = (ft_name_pair){a, b};
}

static ft_constraint_spec draw(const ft_graph *graph, ft_rng *rng, uint32_t kind) {
  ft_constraint_spec spec = {0};
  uint32_t v = (uint32_t)ft_rng_below(rng, graph->primitive_count);
  if (kind & 1)
    spec.keep[spec.keep_count++] = graph->value[graph->primitive[v].output].name;
  if (kind & 2) draw_pairs(graph, rng, spec.no_fuse, &spec.no_fuse_count);
  if (kind & 4) draw_pairs(graph, rng, spec.fuse, &spec.fuse_count);
  return spec;
}

// Every partition in the result keeps to the constraints, not only the answer.
static void check_partitions(brute *b, const ft_search_result *r) {
  for (uint32_t i = 0; i < r->partition_count + r->alternative_count; i++) {
    const ft_searched_partition *p = i < r->partition_count
                                         ? &r->partition[i]
                                         : &r->alternative[i - r->partition_count];
    for (uint32_t g = 0; g < p->partition.group_count; g++) {
      uint32_t set = 0;
      for (uint32_t k = 0; k < p->partition.group[g].primitive_count; k++)
        set |= 1u << p->partition.group[g].primitive[k];
      cr_assert(keeps_to(b, set), "%s", p->strategy);
    }
  }
}

Test(search_constraints, equal_brute_force_over_the_partitions_that_keep_to_them) {
  ft_rng rng = ft_rng_seed(51);
  uint32_t impossible = 0, bound = 0;
  for (uint32_t i = 0; i < 240; i++) {
    const ft_graph *graph =
        random_graph(arena, &rng, 3 + (uint32_t)ft_rng_below(&rng, 5));
    ft_constraint_spec spec = draw(graph, &rng, 1 + i % 7);
    fake f = {.seed = i, .max_reductions = i % 3};
    ft_search_options options = {.window = 2 + i % 5, .constraints = &spec};
    brute b = {.graph = graph,
               .spec = &spec,
               .fake = &f,
               .window = options.window,
               .best = INFINITY};
    for (uint32_t k = 0; k < 256; k++) b.cost[k] = NAN;
    divide(&b, 0, 0);
    ft_search_result r;
    ft_error error = {0};
    ft_status status = fake_search(&f, graph, &options, arena, &r, &error);
    cr_assert_eq(status == FT_OK, isfinite(b.best) != 0, "graph %u: %s", i, error.text);
    if (status != FT_OK) {
      cr_assert_eq(status, FT_INVALID_ARGUMENT);
      impossible++;
      continue;
    }
    // An operator that is cut in two may leave a run that is not connected.
    double best = fmin(b.best, ft_search_find(&r, "unfused")->additive_ns);
    cr_assert_eq(ft_search_find(&r, "ideals")->additive_ns, best, "graph %u", i);
    cr_assert_eq(r.gap, 0);
    check_partitions(&b, &r);
    ft_search_options free = {.window = options.window};
    fake g = f;
    search_ok(&g, graph, &free, arena, &r);
    bound += ft_search_find(&r, "ideals")->additive_ns < b.best;
  }
  cr_assert_gt(impossible, 5);
  cr_assert_gt(bound, 30, "else they cost nothing");
}

// ---- one by one ------------------------------------------------------------------

static uint32_t groups(const ft_search_result *r, const char *strategy) {
  return ft_search_find(r, strategy)->partition.group_count;
}

Test(search_constraints, a_kept_value_ends_a_kernel) {
  const ft_graph *graph = chain(arena, 6);
  fake f = {.is_roofline = true};
  ft_constraint_spec spec = {.keep_count = 1,
                             .keep = {graph->value[graph->primitive[2].output].name}};
  ft_search_options options = {.constraints = &spec};
  ft_search_result r;
  search_ok(&f, graph, &options, arena, &r);
  const ft_searched_partition *p = ft_search_find(&r, "ideals");
  cr_assert_eq(p->partition.group_count, 2);
  cr_assert_eq(p->partition.group[0].primitive_count, 3);
  cr_assert_eq(r.refusal_count, 1);
  cr_assert_str_eq(r.refusal[0].rule, "keep");
  spec.keep[0] = "x";
  search_ok(&f, graph, &options, arena, &r);
  cr_assert_eq(groups(&r, "ideals"), 1, "an input is there anyway");
}

Test(search_constraints, outside_a_subgraph_no_two_operators_share_a_kernel) {
  const ft_graph *graph = chain(arena, 8);
  fake f = {.is_roofline = true};
  ft_constraint_spec spec = {.between = {"n2", "n5"}};
  ft_search_options options = {.constraints = &spec};
  ft_search_result r;
  search_ok(&f, graph, &options, arena, &r);
  cr_assert_eq(groups(&r, "ideals"), 5);
  cr_assert_eq(groups(&r, "horizontal-vertical"), 5);
  cr_assert_eq(groups(&r, "unfused"), 8);
  cr_assert_str_eq(r.refusal[0].rule, "subgraph");
}

Test(search_constraints, what_must_share_a_kernel_shares_it_in_every_baseline) {
  const ft_graph *graph = chain(arena, 6);
  fake f = {.seed = 3};
  ft_constraint_spec spec = {.fuse_count = 2, .fuse = {{"n1", "n3"}, {"n3", "n4"}}};
  ft_search_options options = {.constraints = &spec};
  ft_search_result r;
  search_ok(&f, graph, &options, arena, &r);
  cr_assert_eq(groups(&r, "unfused"), 3, "n0, n1 to n4, n5");
  cr_assert_eq(groups(&r, "primitive"), 3);
  for (uint32_t i = 0; i < r.partition_count; i++) cr_assert(r.partition[i].is_complete);
}

static void check_refused(const ft_constraint_spec *spec, fake *f, const ft_graph *graph,
                          uint32_t window, const char *text) {
  ft_search_options options = {.constraints = spec, .window = window};
  ft_search_result r;
  ft_error error = {0};
  cr_assert_eq(fake_search(f, graph, &options, arena, &r, &error), FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, text), "'%s' lacks '%s'", error.text, text);
}

Test(search_constraints, say_why_operators_cannot_share_a_kernel) {
  const ft_graph *graph = chain(arena, 9);
  fake f = {0};
  ft_constraint_spec spec = {.fuse_count = 1, .fuse = {{"n0", "n7"}}};
  check_refused(&spec, &f, graph, 4, "they are 8 primitives, and the window is 4");
  f = (fake){.exact_size = 3};
  spec.fuse[0] = (ft_name_pair){"n0", "n1"};
  check_refused(&spec, &f, graph, 2, "'n0' and 'n1' must share a kernel, but: size");
  spec.no_fuse_count = 1;
  spec.no_fuse[0] = spec.fuse[0];
  check_refused(&spec, &f, graph, 9, "must not share a kernel, but fuse says");
}

Test(search_constraints, name_what_is_near_a_name_that_is_not_there) {
  const ft_graph *graph = chain(arena, 12);
  fake f = {0};
  ft_constraint_spec spec = {.no_fuse_count = 1, .no_fuse = {{"n3", "n33"}}};
  check_refused(&spec, &f, graph, 0, "no-fuse: no operator with kernels is called 'n33'");
  check_refused(&spec, &f, graph, 0, "near it: 'n3'");
  spec = (ft_constraint_spec){.keep_count = 1, .keep = {"y"}};
  check_refused(&spec, &f, graph, 0, "keep: no value is called 'y'");
  spec = (ft_constraint_spec){.between = {"n5", "n2"}};
  check_refused(&spec, &f, graph, 0, "nothing leads from 'n5' to 'n2'");
  spec = (ft_constraint_spec){.fuse_count = 1, .fuse = {{"n1", "n1"}}};
  check_refused(&spec, &f, graph, 0, "'n1' is named twice");
}

Test(search_constraints, text_is_the_same_in_any_order_and_empty_for_none) {
  ft_constraint_spec none = {0};
  cr_assert_str_eq(ft_constraint_spec_text(&none, arena), "");
  ft_constraint_spec a = {.keep_count = 3,
                          .keep = {"b\"", "a", "a"},
                          .fuse_count = 1,
                          .fuse = {{"q", "p"}},
                          .between = {"z", "y"},
                          .is_deterministic = true,
                          .max_workspace_bytes = 64};
  ft_constraint_spec b = a;
  b.keep[0] = "a";
  b.keep[1] = "b\"";
  b.fuse[0] = (ft_name_pair){"p", "q"};
  const char *expected =
      "{\"deterministic\":true,\"fuse\":[[\"p\",\"q\"]],\"keep\":[\"a\",\"b\\\"\"],"
      "\"max_workspace_bytes\":64,\"subgraph\":[\"z\",\"y\"]}";
  cr_assert_str_eq(ft_constraint_spec_text(&a, arena), expected);
  cr_assert_str_eq(ft_constraint_spec_text(&b, arena), expected);
}

Test(search_constraints, deterministic_refuses_schedules_with_atomics) {
  ft_constraint_spec spec = {.is_deterministic = true};
  const ft_constraints *c;
  MUST(ft_constraints_make(chain(arena, 2), &spec, arena, &c, &must_error));
  ft_candidate plain = {0}, atomic = {0};
  ft_schedule_set(&plain.schedule, "atomics", 0);
  ft_schedule_set(&atomic.schedule, "atomics", 1);
  cr_assert(ft_constraints_admit(c, &plain));
  cr_assert_not(ft_constraints_admit(c, &atomic));
  cr_assert(ft_constraints_admit(NULL, &atomic));
}
