#include "graph/group.h"

#include "tests/support/graphs.h"

static ft_arena *arena;
static ft_error error;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_group, .init = set_up, .fini = tear_down);

static ft_group make(const ft_graph *graph, const uint32_t *primitive, uint32_t count) {
  ft_group group;
  cr_assert_eq(ft_group_make(graph, primitive, count, arena, &group, &error), FT_OK, "%s",
               error.text);
  return group;
}

// x -> exp -> e; view of e -> neg -> n (output); e * 2 -> m (output)
static ft_graph *fork_with_a_view(void) {
  static spec table[] = {{.op = SPEC_INPUT},
                         {.op = FT_OP_EXP, .in = {0}},
                         {.op = SPEC_VIEW, .in = {1}},
                         {.op = FT_OP_NEG, .in = {2}, .is_output = true},
                         {.op = SPEC_SCALAR, .value = 2},
                         {.op = FT_OP_MUL, .in = {1, 4}, .is_output = true}};
  table[0].shape = SHAPE(4, 8);
  table[2].shape = SHAPE(32);
  return spec_build(table, 6, NULL, arena);
}

Test(graph_group, finds_inputs_and_outputs_by_root_and_leaves_immediates_out) {
  ft_graph *graph = fork_with_a_view();
  ft_group last = make(graph, (uint32_t[]){2, 1}, 2);
  uint32_t e = graph->primitive[0].output;
  cr_assert(last.input_count == 1 && last.input[0] == e);
  cr_assert_eq(last.output_count, 2);
  cr_assert(last.primitive[0] == 1 && last.primitive[1] == 2, "topological order");
  ft_group first = make(graph, (uint32_t[]){0}, 1);
  cr_assert(first.input[0] == graph->input[0].value && first.output[0] == e);
}

Test(graph_group, a_value_read_only_inside_is_no_output) {
  ft_graph *graph = fork_with_a_view();
  ft_group all = make(graph, (uint32_t[]){0, 1, 2}, 3);
  cr_assert_eq(all.output_count, 2);
  cr_assert_neq(all.output[0], graph->primitive[0].output);
  ft_group two = make(graph, (uint32_t[]){0, 1}, 2);
  cr_assert_eq(two.output_count, 2, "exp is read by the third primitive");
}

Test(graph_group, refuses_no_primitives_unknown_ones_and_duplicates) {
  ft_graph *graph = fork_with_a_view();
  ft_group group;
  uint32_t twice[] = {1, 1}, unknown[] = {3};
  cr_assert_eq(ft_group_make(graph, twice, 0, arena, &group, &error),
               FT_INVALID_ARGUMENT);
  cr_assert_eq(ft_group_make(graph, unknown, 1, arena, &group, &error),
               FT_INVALID_ARGUMENT);
  cr_assert_eq(ft_group_make(graph, twice, 2, arena, &group, &error),
               FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "primitive 1 is in the group twice"), "%s", error.text);
}

static ft_workload workload(const ft_group *group) {
  ft_workload out;
  cr_assert_eq(ft_workload_make(group, arena, &out, &error), FT_OK, "%s", error.text);
  return out;
}

static ft_group whole(const ft_graph *graph) {
  uint32_t *all = FT_NEW_ARRAY(arena, uint32_t, graph->primitive_count);
  for (uint32_t i = 0; i < graph->primitive_count; i++) all[i] = i;
  return make(graph, all, graph->primitive_count);
}

Test(graph_group, the_extracted_graph_is_the_same_workload) {
  ft_rng rng = ft_rng_seed(3);
  spec table[SPEC_MAX];
  for (int i = 0; i < 100; i++) {
    ft_graph *graph = spec_build(table, spec_random(table, 12, &rng), NULL, arena),
             *alone;
    uint32_t member[4], from = (uint32_t)ft_rng_below(&rng, graph->primitive_count);
    uint32_t count = 0;
    for (uint32_t p = from; p < graph->primitive_count && count < 4; p++)
      member[count++] = p;
    ft_group group = make(graph, member, count);
    ft_workload a = workload(&group);
    cr_assert_eq(ft_group_extract(&a.group, arena, &alone, &error), FT_OK, "%s",
                 error.text);
    ft_graph_check(alone);
    cr_assert_eq(alone->input_count, group.input_count);
    cr_assert_eq(alone->output_count, group.output_count);
    ft_group again = whole(alone);
    ft_workload b = workload(&again);
    cr_assert(ft_workload_equal(&a, &b), "graph %d", i);
  }
}

Test(graph_group, extraction_keeps_views_immediates_and_output_shapes) {
  ft_graph *graph = fork_with_a_view(), *alone;
  ft_group group = whole(graph);
  cr_assert_eq(ft_group_extract(&group, arena, &alone, &error), FT_OK, "%s", error.text);
  ft_graph_check(alone);
  cr_assert_eq(alone->primitive_count, 3);
  ft_shape flat = SHAPE(32), square = SHAPE(4, 8);
  cr_assert(ft_shape_equal(&alone->value[alone->output[0].value].shape, &flat));
  cr_assert(ft_shape_equal(&alone->value[alone->output[1].value].shape, &square));
  cr_assert(ft_value_is_immediate(alone, alone->primitive[2].input[1]));
  cr_assert_str_eq(alone->input[0].name, "v0");
}
