// `unfused` needs one kernel per operator: no norm or softmax may be cut into its parts.
#include <criterion/criterion.h>
#include <string.h>

#include "codegen/codegen.h"
#include "daemon/default_plan.h"
#include "graph/import.h"
#include "measure/cpu_target.h"
#include "tests/support/command.h"
#include "tests/support/onnx_writer.h"

static ft_arena *arena;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(daemon_default_plan, .init = set_up, .fini = tear_down);

typedef struct operator_case {
  const char *op, *inputs;  // x is [4,6,6,8]; s is [channels]
  int64_t opset, channels;
  const char *attribute;
  int64_t value;
} operator_case;

static const operator_case cases[] = {
    {"Softmax", "x", 13, 0, "axis", -1},
    {"Softmax", "x", 13, 0, "axis", 1},
    {"Softmax", "x", 9, 0, "axis", 2},
    {"LogSoftmax", "x", 13, 0, "axis", 1},
    {"Hardmax", "x", 13, 0, "axis", 1},
    {"LayerNormalization", "x,s,s", 17, 8, "axis", -1},
    {"InstanceNormalization", "x,s,s", 17, 6, NULL, 0},
    {"GroupNormalization", "x,s,s", 21, 6, "num_groups", 2},
    {"RMSNormalization", "x,s", 23, 8, "axis", -1},
    {"BatchNormalization", "x,s,s,s,s", 15, 6, NULL, 0},
    {"LpNormalization", "x", 13, 0, "axis", 1},
    {"LRN", "x", 13, 0, "size", 3},
    {"MeanVarianceNormalization", "x", 13, 0, NULL, 0},
    {"ReduceLogSumExp", "x", 13, 0, "keepdims", 1},
    {"Gelu", "x", 20, 0, NULL, 0},
};

static ft_graph *graph_of(const operator_case *c) {
  static const float scale[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  onnx_file f = onnx_begin(arena, c->opset);
  onnx_input(&f, "x", ONNX_FLOAT, "4,6,6,8");
  onnx_output(&f, "y", ONNX_FLOAT, NULL);
  char dims[8];
  snprintf(dims, sizeof dims, "%d", (int)c->channels);
  if (c->channels) onnx_floats(&f, "s", dims, scale, (size_t)c->channels);
  ft_strbuf attributes = ft_strbuf_init(arena);
  if (c->attribute) onnx_attr_int(&attributes, c->attribute, c->value);
  onnx_node(&f, c->op, c->inputs, "y", &attributes);
  ft_strbuf bytes = onnx_end(&f);
  ft_graph *graph;
  ft_import_report report;
  ft_import_options options = {.dim_count = 0};
  ft_error error;
  cr_assert_eq(ft_import_onnx_bytes(bytes.text, bytes.length, NULL, &options, arena,
                                    &graph, &report, &error),
               FT_OK, "%s: %s", c->op, error.text);
  return graph;
}

static void open_codegen(ft_session *s, const char *libraries) {
  ft_error error;
  *s = (ft_session){.arena = arena};
  cr_assert_eq(ft_cpu_target_probe(arena, &s->target, &error), FT_OK, "%s", error.text);
  cr_assert_eq(
      ft_compilers_find(arena, s->target.compiler, &s->target.compiler_count, &error),
      FT_OK, "%s", error.text);
  s->target.libraries = libraries;
  cr_assert_eq(ft_target_seal(&s->target, &error), FT_OK);
  ft_codegen_options options = {.cache_folder = test_folder()};
  cr_assert_eq(
      ft_codegen_create(&options, &s->target, ft_allocator_system(), &s->codegen, &error),
      FT_OK, "%s", error.text);
  s->builder = ft_codegen_builder(s->codegen);
}

Test(daemon_default_plan, each_norm_and_softmax_operator_is_one_kernel) {
  ft_session s;
  ft_error error;
  open_codegen(&s, "");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ft_graph *graph = graph_of(&cases[i]);
    ft_plan plan;
    cr_assert_eq(ft_plan_default(&s, graph, arena, &plan, &error), FT_OK, "%s: %s",
                 cases[i].op, error.text);
    cr_assert_gt(graph->primitive_count, 0, "%s folded away", cases[i].op);
    cr_assert_eq(plan.group_count, 1, "%s (opset %d) takes %u kernels", cases[i].op,
                 (int)cases[i].opset, plan.group_count);
  }
  ft_codegen_destroy(s.codegen);
}

// What was not measured must run, and a library may have nothing for a layout.
Test(daemon_default_plan, calls_no_library) {
  ft_session s;
  ft_error error;
  open_codegen(&s, "onednn-2.6.3");
  onnx_file f = onnx_begin(arena, 13);
  onnx_input(&f, "a", ONNX_FLOAT, "4,5");
  onnx_input(&f, "b", ONNX_FLOAT, "5,6");
  onnx_output(&f, "y", ONNX_FLOAT, NULL);
  onnx_node(&f, "MatMul", "a,b", "y", NULL);
  ft_strbuf bytes = onnx_end(&f);
  ft_graph *graph;
  ft_import_report report;
  ft_import_options options = {.dim_count = 0};
  cr_assert_eq(ft_import_onnx_bytes(bytes.text, bytes.length, NULL, &options, arena,
                                    &graph, &report, &error),
               FT_OK, "%s", error.text);
  ft_plan plan;
  cr_assert_eq(ft_plan_default(&s, graph, arena, &plan, &error), FT_OK, "%s", error.text);
  const char *names[8], *reason;
  bool is_offered = false;
  uint32_t count =
      s.builder.match(s.builder.self, &plan.group[0].workload, arena, names, 8, &reason);
  for (uint32_t i = 0; i < count; i++) is_offered |= !strcmp(names[i], "onednn");
  cr_assert(is_offered);
  cr_assert_str_neq(plan.group[0].tactic, "onednn");
  ft_codegen_destroy(s.codegen);
}
