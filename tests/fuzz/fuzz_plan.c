// Any text, read as a plan of one small graph: refused, or a plan that is written and
// read again as the same bytes. With FT_FUZZ_SEED=FILE it writes that graph's own plan
// there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/plan.h"

static ft_arena *forever;
static ft_target target;
static ft_graph *graph;

static void must(ft_status status, const ft_error *error) {
  if (status == FT_OK) return;
  fprintf(stderr, "%s\n", error->text);
  abort();
}

static uint32_t emit(ft_op op, uint32_t a, uint32_t b) {
  ft_error error;
  uint32_t input[2] = {a, b}, out;
  must(ft_graph_begin_operator(graph, "node", "Test", "", &error), &error);
  must(ft_graph_emit(graph, op, input, ft_op_describe(op)->arity, NULL, &out, &error),
       &error);
  return out;
}

// x [2, 8] and a weight w [8]; t = x + w, u = exp t, y = u * w, z = -t.
static void make_graph(void) {
  ft_error error;
  uint32_t x, w;
  ft_shape matrix = {2, {2, 8}}, row = {1, {8}};
  must(ft_graph_create(forever, "fuzz", &graph, &error), &error);
  must(ft_graph_add_input(graph, "x", FT_F32, &matrix, &x, &error), &error);
  must(ft_graph_add_weight(graph, "w", FT_F32, &row, 7, &w, &error), &error);
  uint32_t t = emit(FT_OP_ADD, x, w);
  must(ft_graph_add_output(graph, "y", emit(FT_OP_MUL, emit(FT_OP_EXP, t, t), w), &error),
       &error);
  must(ft_graph_add_output(graph, "z", emit(FT_OP_NEG, t, t), &error), &error);
  must(ft_graph_finish(graph, &error), &error);
  graph->symbolic_hash = ft_hash_bytes("fuzz", 4);
  graph->dims_json = "{\"N\":2}";
}

static void make_target(void) {
  ft_error error;
  target = (ft_target){.name = "cpu",
                       .kind = "cpu",
                       .device = "d",
                       .isa = "",
                       .driver = "",
                       .toolkit = "",
                       .libraries = "",
                       .power_class = "",
                       .numerics = "f32-accumulate deterministic"};
  must(ft_target_seal(&target, &error), &error);
}

static void write_seed(const char *path) {
  ft_error error;
  ft_group group[2];
  ft_workload workload[2];
  ft_partition partition;
  ft_plan plan;
  const char *text;
  for (uint32_t i = 0; i < 2; i++)
    must(ft_group_make(graph, (const uint32_t[]){2 * i, 2 * i + 1}, 2, forever, &group[i],
                       &error),
         &error);
  must(ft_partition_make(graph, group, 2, forever, &partition, &error), &error);
  for (uint32_t i = 0; i < 2; i++)
    must(ft_workload_make(&partition.group[i], forever, &workload[i], &error), &error);
  must(ft_plan_make(&partition, workload, &target, forever, &plan, &error), &error);
  plan.strategy = "ideals";
  for (uint32_t i = 0; i < 2; i++) {
    plan.group[i].tactic = "S1";
    plan.group[i].entry = "k";
    plan.group[i].time = (ft_time){10, 9, 11, 30};
    ft_schedule_set(&plan.group[i].schedule, "vector", 8);
  }
  must(ft_plan_seal(&plan, forever, &error), &error);
  must(ft_plan_text(&plan, "exact", forever, &text, &error), &error);
  FILE *file = fopen(path, "w");
  if (!file || fputs(text, file) < 0 || fclose(file) != 0) abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  forever = ft_arena_create(ft_allocator_system());
  make_graph();
  make_target();
  const char *seed = getenv("FT_FUZZ_SEED");
  if (seed) write_seed(seed);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ft_error error;
  ft_plan plan, again;
  const char *text, *same;
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  char *json = ft_arena_strndup(arena, (const char *)data, size);
  if (ft_plan_parse(json, graph, &target, arena, &plan, &error) == FT_OK) {
    must(ft_plan_text(&plan, "exact", arena, &text, &error), &error);
    must(ft_plan_parse(text, graph, &target, arena, &again, &error), &error);
    must(ft_plan_text(&again, "exact", arena, &same, &error), &error);
    if (strcmp(text, same) != 0) abort();
  }
  ft_arena_destroy(arena);
  return 0;
}
