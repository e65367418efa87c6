#include "graph/partition.h"

#include "tests/support/graphs.h"
#include "tests/support/limited.h"

static ft_arena *arena;
static ft_error error;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_partition, .init = set_up, .fini = tear_down);

static ft_group group_of(const ft_graph *graph, const uint32_t *primitive,
                         uint32_t count) {
  ft_group group;
  cr_assert_eq(ft_group_make(graph, primitive, count, arena, &group, &error), FT_OK);
  return group;
}
#define GROUP(graph, ...)                          \
  group_of(graph, (const uint32_t[]){__VA_ARGS__}, \
           sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

// a1 -> a2 and b1 -> b2: primitives 0, 1 and 2, 3.
static ft_graph *two_chains(void) {
  spec t[] = {{.op = SPEC_INPUT, .shape = SHAPE(4)},
              {.op = FT_OP_EXP, .in = {0}},
              {.op = FT_OP_NEG, .in = {1}, .is_output = true},
              {.op = FT_OP_TANH, .in = {0}},
              {.op = FT_OP_ABS, .in = {3}, .is_output = true}};
  return spec_build(t, 5, NULL, arena);
}

static void expect_refusal(const ft_partition *partition, const char *text) {
  cr_assert_eq(ft_partition_check(partition, &error), FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, text), "'%s' does not say '%s'", error.text, text);
}

Test(graph_partition, convex_groups_that_wait_for_each_other_are_refused) {
  ft_graph *graph = two_chains();
  ft_group groups[] = {GROUP(graph, 0, 3), GROUP(graph, 2, 1)};
  ft_partition out;
  cr_assert_eq(ft_partition_make(graph, groups, 2, arena, &out, &error),
               FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "invariant 2"), "%s", error.text);
  expect_refusal(&(ft_partition){graph, 2, groups}, "invariant 2");
}

Test(graph_partition, orders_groups_after_their_producers_smallest_primitive_first) {
  ft_graph *graph = two_chains();
  ft_group groups[] = {GROUP(graph, 3), GROUP(graph, 1), GROUP(graph, 2),
                       GROUP(graph, 0)};
  ft_partition out;
  cr_assert_eq(ft_partition_make(graph, groups, 4, arena, &out, &error), FT_OK, "%s",
               error.text);
  for (uint32_t i = 0; i < 4; i++) cr_assert_eq(out.group[i].primitive[0], i);
}

Test(graph_partition, each_broken_invariant_is_named_with_its_primitives) {
  ft_graph *graph = two_chains();
  ft_group twice[] = {GROUP(graph, 0, 1), GROUP(graph, 1, 2, 3)};
  expect_refusal(&(ft_partition){graph, 2, twice},
                 "invariant 1: primitive 1 is in groups 0 and 1");
  ft_group missing[] = {GROUP(graph, 0, 1), GROUP(graph, 2)};
  expect_refusal(&(ft_partition){graph, 2, missing},
                 "invariant 1: primitive 3 is in no group");
  ft_group late[] = {GROUP(graph, 1), GROUP(graph, 0), GROUP(graph, 2, 3)};
  expect_refusal(&(ft_partition){graph, 3, late}, "invariant 3: primitive 1 in group 0");
  ft_group silent[] = {GROUP(graph, 0), GROUP(graph, 1), GROUP(graph, 2, 3)};
  silent[0].output_count = 0;
  expect_refusal(&(ft_partition){graph, 3, silent}, "invariant 4: primitive 0");
  ft_group mute[] = {GROUP(graph, 0, 1), GROUP(graph, 2, 3)};
  mute[1].output_count = 0;
  expect_refusal(&(ft_partition){graph, 2, mute}, "invariant 4: primitive 3");
  ft_group empty[] = {GROUP(graph, 0, 1, 2, 3), GROUP(graph, 0)};
  empty[1].primitive_count = 0;
  expect_refusal(&(ft_partition){graph, 2, empty}, "invariant 1: group 1 is empty");
}

Test(graph_partition, a_graph_without_primitives_has_the_empty_partition) {
  spec t[] = {{.op = SPEC_INPUT, .shape = SHAPE(4), .is_output = true}};
  ft_graph *graph = spec_build(t, 1, NULL, arena);
  ft_partition out;
  cr_assert_eq(ft_partition_make(graph, NULL, 0, arena, &out, &error), FT_OK, "%s",
               error.text);
}

// ---- against an independent check -----------------------------------------------

enum { MOST = 8 };

// Transitive closure of the quotient by Warshall, from the primitives' inputs alone.
static bool has_cycle(const ft_graph *graph, const uint32_t *owner, uint32_t groups) {
  bool reaches[MOST][MOST] = {{false}};
  for (uint32_t i = 0; i < graph->primitive_count; i++)
    for (uint32_t k = 0; k < graph->primitive[i].input_count; k++)
      for (uint32_t j = 0; j < graph->primitive_count; j++)
        if (graph->value[graph->primitive[i].input[k]].root ==
                graph->primitive[j].output &&
            owner[i] != owner[j])
          reaches[owner[j]][owner[i]] = true;
  for (uint32_t k = 0; k < groups; k++)
    for (uint32_t i = 0; i < groups; i++)
      for (uint32_t j = 0; j < groups; j++)
        reaches[i][j] |= reaches[i][k] && reaches[k][j];
  for (uint32_t i = 0; i < groups; i++)
    if (reaches[i][i]) return true;
  return false;
}

// Runs the groups in order with a set of what is available.
static bool runs(const ft_partition *partition) {
  const ft_graph *graph = partition->graph;
  bool available[SPEC_MAX] = {false};
  for (uint32_t i = 0; i < graph->value_count; i++)
    available[i] = graph->value[i].role != FT_ROLE_COMPUTED;
  for (uint32_t g = 0; g < partition->group_count; g++) {
    const ft_group *group = &partition->group[g];
    for (uint32_t i = 0; i < group->input_count; i++)
      if (!available[group->input[i]]) return false;
    for (uint32_t i = 0; i < group->output_count; i++) available[group->output[i]] = true;
  }
  for (uint32_t i = 0; i < graph->output_count; i++)
    if (!available[graph->value[graph->output[i].value].root]) return false;
  return true;
}

static uint32_t make_groups(const ft_graph *graph, const uint32_t *owner, ft_group *out) {
  uint32_t count = 0;
  for (uint32_t g = 0; g < MOST; g++) {
    uint32_t member[MOST], members = 0;
    for (uint32_t i = 0; i < graph->primitive_count; i++)
      if (owner[i] == g) member[members++] = i;
    if (members) out[count++] = group_of(graph, member, members);
  }
  return count;
}

Test(graph_partition, agrees_with_brute_force_on_300_random_graphs) {
  ft_rng rng = ft_rng_seed(9);
  spec table[SPEC_MAX];
  int accepted = 0, refused = 0;
  for (int i = 0; i < 300; i++) {
    int count = spec_random(table, 2 + (int)ft_rng_below(&rng, MOST - 1), &rng);
    ft_graph *graph = spec_build(table, count, &rng, arena);
    for (int trial = 0; trial < 20; trial++) {
      uint32_t owner[MOST], most = 1 + (uint32_t)ft_rng_below(&rng, MOST);
      for (uint32_t p = 0; p < graph->primitive_count; p++)
        owner[p] = (uint32_t)ft_rng_below(&rng, most);
      ft_group groups[MOST];
      uint32_t made = make_groups(graph, owner, groups);
      ft_partition out;
      ft_status status = ft_partition_make(graph, groups, made, arena, &out, &error);
      bool cyclic = has_cycle(graph, owner, MOST);
      cr_assert_eq(status, cyclic ? FT_INVALID_ARGUMENT : FT_OK, "graph %d: %s", i,
                   error.text);
      accepted += !cyclic, refused += cyclic;
      if (cyclic) continue;
      cr_assert(runs(&out), "graph %d", i);
      // As given (by number of group) it is legal exactly when it runs.
      ft_partition given = {graph, made, groups};
      cr_assert_eq(ft_partition_check(&given, &error) == FT_OK, runs(&given));
    }
  }
  cr_assert(accepted > 1000 && refused > 500, "%d accepted, %d refused", accepted,
            refused);
}

// ---- faults ---------------------------------------------------------------------

// A partition of |graph| into single primitives, each with its workload and extract.
static ft_status divide(const ft_graph *graph, ft_arena *own) {
  ft_group *groups = FT_NEW_ARRAY(own, ft_group, graph->primitive_count);
  FT_OOM_IF(!groups, &error);
  for (uint32_t i = 0; i < graph->primitive_count; i++) {
    ft_workload workload;
    ft_graph *alone;
    FT_TRY(ft_group_make(graph, &i, 1, own, &groups[i], &error));
    FT_TRY(ft_workload_make(&groups[i], own, &workload, &error));
    FT_TRY(ft_group_extract(&groups[i], own, &alone, &error));
  }
  ft_partition out;
  return ft_partition_make(graph, groups, graph->primitive_count, own, &out, &error);
}

Test(graph_partition, every_failed_allocation_on_the_way_is_a_clean_out_of_memory) {
  ft_rng rng = ft_rng_seed(11);
  spec table[SPEC_MAX];
  ft_graph *graph = spec_build(table, spec_random(table, 60, &rng), NULL, arena);
  int n = 1, failures = 0;
  for (ft_status status = FT_OUT_OF_MEMORY; status != FT_OK; n++) {
    limited l = {.left = n};
    ft_allocator allocator = limited_allocator(&l);
    ft_arena *own = ft_arena_create(&allocator);
    cr_assert(own);
    status = divide(graph, own);
    cr_assert(status == FT_OK || status == FT_OUT_OF_MEMORY, "%s", error.text);
    failures += status != FT_OK;
    ft_arena_destroy(own);
    cr_assert_eq(l.live, 0, "with %d allocations allowed", n);
    cr_assert_lt(n, 1000);
  }
  cr_assert_gt(failures, 2);
}
