// plans - a small graph, target and plan for the tests of graph/plan and db/.
#ifndef FT_TESTS_SUPPORT_PLANS_H
#define FT_TESTS_SUPPORT_PLANS_H

#include "graph/plan.h"
#include "tests/support/graphs.h"

#define TEST_OK(call) cr_assert_eq((call), FT_OK, "%s", error.text)

static inline ft_target sample_target(uint32_t threads) {
  ft_target target = {.name = "cpu",
                      .kind = "cpu",
                      .device = "Test CPU",
                      .isa = "avx2 fma",
                      .units = 4,
                      .threads = threads,
                      .vector_bytes = 32,
                      .memory_bytes = UINT64_C(8) << 30,
                      .cache_bytes = 1 << 20,
                      .driver = "",
                      .toolkit = "",
                      .compiler_count = 1,
                      .compiler = {{"clang-14", "14.0.6", "/usr/bin/clang-14", true}},
                      .libraries = "",
                      .numerics = "f32-accumulate deterministic",
                      .power_class = "madvise"};
  ft_error error;
  TEST_OK(ft_target_seal(&target, &error));
  return target;
}

// What the importer does: the model's key, with its dims bound to |n|.
static inline void sample_key(ft_graph *graph, const char *encoding, int n) {
  graph->symbolic_encoding = encoding;
  graph->symbolic_encoding_bytes = strlen(encoding);
  graph->symbolic_hash = ft_hash_bytes(encoding, strlen(encoding));
  graph->dims_json = ft_arena_printf(graph->arena, "{\"N\":%d}", n);
}

// x [n, 16], a weight w [16] of which the shape is known, a constant c [16];
//   0 t = x + w   1 u = exp t   2 v = u * c   3 z = -u
// outputs: y = v as [n * 16], z, x itself, c itself. |suffix| ends the names.
static inline ft_graph *sample_graph(int n, const char *suffix, ft_arena *arena) {
  ft_error error;
  ft_graph *g;
  uint32_t x, w, c, t, u, v, y, z;
  ft_shape matrix = SHAPE(n, 16), row = SHAPE(16), flat = SHAPE(n * 16);
  float *data = ft_arena_alloc(arena, 64);
  for (int i = 0; i < 16; i++) data[i] = (float)i;
  ft_tensor *constant = FT_NEW(arena, ft_tensor);
  *constant = (ft_tensor){FT_F32, row, data, 64};
#define NAME(text) ft_arena_printf(arena, text "%s", suffix)
  TEST_OK(ft_graph_create(arena, NAME("sample"), &g, &error));
  TEST_OK(ft_graph_add_input(g, NAME("x"), FT_F32, &matrix, &x, &error));
  TEST_OK(ft_graph_add_weight(g, NAME("w"), FT_F32, &row, 7, &w, &error));
  TEST_OK(ft_graph_add_constant(g, NAME("c"), constant, &c, &error));
  TEST_OK(ft_graph_begin_operator(g, NAME("Add_0"), "Add", "", &error));
  TEST_OK(ft_graph_emit(g, FT_OP_ADD, (uint32_t[]){x, w}, 2, NULL, &t, &error));
  TEST_OK(ft_graph_begin_operator(g, NAME("Exp_1"), "Exp", "", &error));
  TEST_OK(ft_graph_emit(g, FT_OP_EXP, &t, 1, NULL, &u, &error));
  TEST_OK(ft_graph_begin_operator(g, NAME("Mul_2"), "Mul", "", &error));
  TEST_OK(ft_graph_emit(g, FT_OP_MUL, (uint32_t[]){u, c}, 2, NULL, &v, &error));
  TEST_OK(ft_graph_begin_operator(g, NAME("Neg_3"), "Neg", "", &error));
  TEST_OK(ft_graph_emit(g, FT_OP_NEG, &u, 1, NULL, &z, &error));
  TEST_OK(ft_graph_view(g, v, &flat, &y, &error));
  TEST_OK(ft_graph_add_output(g, NAME("y"), y, &error));
  TEST_OK(ft_graph_add_output(g, NAME("z"), z, &error));
  TEST_OK(ft_graph_add_output(g, NAME("x_out"), x, &error));
  TEST_OK(ft_graph_add_output(g, NAME("c_out"), c, &error));
#undef NAME
  TEST_OK(ft_graph_finish(g, &error));
  sample_key(g, "sample graph", n);
  return g;
}

// group_of[p]: which group primitive p is in, 0 .. groups - 1, in any order.
static inline void sample_groups(const ft_graph *graph, const uint32_t *group_of,
                                 uint32_t groups, ft_arena *arena,
                                 ft_partition *partition, ft_workload **workload) {
  ft_error error;
  ft_group *group = FT_NEW_ARRAY(arena, ft_group, groups);
  uint32_t *list = FT_NEW_ARRAY(arena, uint32_t, graph->primitive_count);
  for (uint32_t g = 0; g < groups; g++) {
    uint32_t count = 0;
    for (uint32_t p = 0; p < graph->primitive_count; p++)
      if (group_of[p] == g) list[count++] = p;
    TEST_OK(ft_group_make(graph, list, count, arena, &group[g], &error));
  }
  TEST_OK(ft_partition_make(graph, group, groups, arena, partition, &error));
  *workload = FT_NEW_ARRAY(arena, ft_workload, groups);
  for (uint32_t g = 0; g < groups; g++)
    TEST_OK(ft_workload_make(&partition->group[g], arena, &(*workload)[g], &error));
}

static inline void sample_fill(ft_plan *plan) {
  static const int64_t scalar[] = {768, -1};
  plan->strategy = "ideals";
  plan->window = 16;
  plan->span = 64;
  for (uint32_t i = 0; i < plan->group_count; i++) {
    ft_plan_group *g = &plan->group[i];
    g->tactic = "S1";
    ft_schedule_set(&g->schedule, "vector", 8);
    ft_schedule_set_text(&g->schedule, "compiler", "clang-14");
    g->entry = "ft_g0";
    g->body_hash = ft_hash_bytes(&i, sizeof i);
    g->source_hash = ft_hash_bytes("source", 6);
    g->binary_hash = ft_hash_bytes("binary", 6);
    g->grid = 12;
    g->threads = 2;
    g->scratch_bytes = 128;
    g->scalar_count = 2;
    g->scalar = scalar;
    g->time = (ft_time){1000 + i, 990, 1100, 30};
    g->predicted_ns = 1234.5;
    g->roofline_ns = i ? 0.1 : -1;
    g->facts.registers = 16;
    g->facts.spill_load_bytes = 8;
  }
  plan->times = (ft_plan_times){.tuned = {2000, 1990, 2010, 30},
                                .unfused = {3000, 2990, 3010, 30},
                                .additive_ns = 2001.0,
                                .bound_ns = 2001.0,
                                .measured_at = UINT64_C(1767225600) * 1000000000};
}

// The sample's groups {0, 1} and {2, 3}; sealed.
static inline ft_plan sample_plan(const ft_graph *graph, const ft_target *target,
                                  ft_arena *arena) {
  ft_error error;
  ft_partition partition;
  ft_workload *workload;
  ft_plan plan;
  sample_groups(graph, (const uint32_t[]){0, 0, 1, 1}, 2, arena, &partition, &workload);
  TEST_OK(ft_plan_make(&partition, workload, target, arena, &plan, &error));
  sample_fill(&plan);
  TEST_OK(ft_plan_seal(&plan, arena, &error));
  return plan;
}

#endif
