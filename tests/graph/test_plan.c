#include "graph/plan.h"

#include <math.h>

#include "tests/support/plans.h"

static ft_arena *arena;
static ft_error error;
static ft_target target;
static ft_graph *graph;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
  target = sample_target(4);
  graph = sample_graph(4, "", arena);
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_plan, .init = set_up, .fini = tear_down);

static const char *text_of(const ft_plan *plan) {
  const char *text;
  TEST_OK(ft_plan_text(plan, "exact", arena, &text, &error));
  return text;
}

// ---- layout

Test(graph_plan, lists_inputs_constants_outputs_then_intermediates) {
  ft_plan plan = sample_plan(graph, &target, arena);
  static const struct {
    const char *name;
    ft_plan_buffer_role role;
    uint64_t bytes;
  } want[] = {{"x", FT_PLAN_INPUT, 256},
              {"w", FT_PLAN_CONSTANT, 64},
              {"c", FT_PLAN_CONSTANT, 64}};
  cr_assert_eq(plan.buffer_count, 6);
  for (int i = 0; i < 3; i++) {
    cr_assert_str_eq(graph->value[plan.buffer[i].value].name, want[i].name);
    cr_assert_eq(plan.buffer[i].role, want[i].role);
    cr_assert_eq(plan.buffer[i].bytes, want[i].bytes);
    cr_assert_eq(plan.buffer[i].offset, UINT64_MAX);
  }
  cr_assert_eq(plan.buffer[3].role, FT_PLAN_OUTPUT);
  cr_assert_eq(plan.buffer[4].role, FT_PLAN_OUTPUT);
  cr_assert_eq(plan.buffer[5].role, FT_PLAN_INTERMEDIATE);
  cr_assert_eq(plan.buffer[5].offset, 0);
  cr_assert_eq(plan.workspace_bytes, 256);
  cr_assert_eq(plan.peak_bytes, 256 + 64 + 64 + 256 + 256 + 256);
}

Test(graph_plan, an_output_that_is_an_input_a_constant_or_a_view_names_its_roots_buffer) {
  ft_plan plan = sample_plan(graph, &target, arena);
  cr_assert_eq(plan.input_buffer[0], 0);
  cr_assert_eq(plan.output_buffer[0], 3);  // y, a view of v
  cr_assert_eq(plan.output_buffer[1], 4);  // z
  cr_assert_eq(plan.output_buffer[2], 0);  // x
  cr_assert_eq(plan.output_buffer[3], 2);  // c
  json_t *json = ft_plan_json(&plan, "exact");
  json_t *y = json_array_get(json_object_get(json, "outputs"), 0);
  cr_assert_str_eq(ft_json_text(y, arena),
                   "{\"buffer\":3,\"name\":\"y\",\"shape\":[64]}");
  json_t *x = json_array_get(json_object_get(json, "inputs"), 0);
  cr_assert_str_eq(ft_json_text(x, arena),
                   "{\"buffer\":0,\"name\":\"x\",\"shape\":[4,16]}");
  json_decref(json);
}

Test(graph_plan, arguments_are_the_workloads_inputs_then_its_outputs) {
  ft_plan plan = sample_plan(graph, &target, arena);
  for (uint32_t i = 0; i < plan.group_count; i++) {
    const ft_plan_group *g = &plan.group[i];
    const ft_group *w = &g->workload.group;
    for (uint32_t k = 0; k < w->input_count; k++)
      cr_assert_eq(plan.buffer[g->argument[k]].value, w->input[k]);
    for (uint32_t k = 0; k < w->output_count; k++)
      cr_assert_eq(plan.buffer[g->argument[w->input_count + k]].value, w->output[k]);
  }
  cr_assert_eq(plan.group[0].depend_count, 0);
  cr_assert_eq(plan.group[1].depend_count, 1);
  cr_assert_eq(plan.group[1].depend[0], 0);
}

Test(graph_plan, a_workload_of_another_group_is_an_invalid_argument) {
  ft_partition partition;
  ft_workload *workload, swapped[2];
  ft_plan plan;
  sample_groups(graph, (const uint32_t[]){0, 0, 1, 1}, 2, arena, &partition, &workload);
  swapped[0] = workload[1];
  swapped[1] = workload[0];
  cr_assert_eq(ft_plan_make(&partition, swapped, &target, arena, &plan, &error),
               FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "workload 0 is not that of group 0"), "%s", error.text);
}

static ft_status make_huge(ft_op second, const uint32_t *group_of, uint32_t groups) {
  ft_shape shape = SHAPE(INT64_C(1) << 30, INT64_C(1) << 29);  // 2^61 bytes
  spec t[] = {
      {.op = SPEC_INPUT, .shape = shape},
      {.op = FT_OP_EXP, .in = {0}},
      {.op = (int)second, .in = {0}},
      {.op = FT_OP_TANH, .in = {0}},
      {.op = FT_OP_ADD, .in = {1, 2}},
      {.op = FT_OP_ADD, .in = {4, 3}},
      {.op = FT_OP_REDUCE_SUM, .in = {5}, .attr = {.axes = 3}, .is_output = true}};
  ft_graph *huge = spec_build(t, 7, NULL, arena);
  ft_partition partition;
  ft_workload *workload;
  ft_plan plan;
  sample_groups(huge, group_of, groups, arena, &partition, &workload);
  return ft_plan_make(&partition, workload, &target, arena, &plan, &error);
}

Test(graph_plan, buffers_that_take_more_than_2_to_62_bytes_together_are_refused) {
  cr_assert_eq(make_huge(FT_OP_NEG, (uint32_t[]){0, 0, 0, 0, 0, 0}, 1), FT_OK, "%s",
               error.text);
  cr_assert_eq(make_huge(FT_OP_NEG, (uint32_t[]){0, 0, 1, 1, 1, 1}, 2), FT_REFUSED);
  cr_assert(strstr(error.text, "the buffers take more"), "%s", error.text);
  cr_assert_eq(make_huge(FT_OP_NEG, (uint32_t[]){0, 1, 2, 3, 3, 3}, 4), FT_REFUSED);
  cr_assert(strstr(error.text, "the intermediates take more"), "%s", error.text);
}

// ---- the workspace, checked by other means than it is made

// Positions between which |buffer| must keep its bytes, from the arguments alone.
static void find_life(const ft_plan *plan, uint32_t buffer, uint32_t *first,
                      uint32_t *last) {
  *first = UINT32_MAX;
  *last = 0;
  for (uint32_t i = 0; i < plan->group_count; i++) {
    const ft_plan_group *g = &plan->group[i];
    uint32_t count = g->workload.group.input_count + g->workload.group.output_count;
    for (uint32_t k = 0; k < count; k++) {
      if (g->argument[k] != buffer) continue;
      if (i < *first) *first = i;
      if (i > *last) *last = i;
    }
  }
}

static uint64_t check_workspace(const ft_plan *plan) {
  uint64_t sum = 0;
  for (uint32_t a = 0; a < plan->buffer_count; a++) {
    const ft_plan_buffer *x = &plan->buffer[a];
    uint32_t a_first, a_last, b_first, b_last;
    if (x->role != FT_PLAN_INTERMEDIATE) continue;
    cr_assert_eq(x->offset % 64, 0);
    cr_assert_leq(x->offset + x->bytes, plan->workspace_bytes);
    sum += (x->bytes + 63) / 64 * 64;
    find_life(plan, a, &a_first, &a_last);
    for (uint32_t b = 0; b < a; b++) {
      const ft_plan_buffer *y = &plan->buffer[b];
      if (y->role != FT_PLAN_INTERMEDIATE) continue;
      find_life(plan, b, &b_first, &b_last);
      bool live_together = a_first <= b_last && b_first <= a_last;
      bool overlap = x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
      cr_assert(!(live_together && overlap), "buffers %u and %u share bytes while live",
                a, b);
    }
  }
  cr_assert_leq(plan->workspace_bytes, sum);
  return sum;
}

// Groups grow with the primitives' producers, so that they never wait for each other.
static uint32_t random_groups(const ft_graph *g, ft_rng *rng, uint32_t *group_of) {
  uint32_t raw[SPEC_MAX], kept = 0;
  for (uint32_t p = 0; p < g->primitive_count; p++) {
    raw[p] = (uint32_t)ft_rng_below(rng, 2);
    for (uint32_t k = 0; k < g->primitive[p].input_count; k++) {
      uint32_t producer = g->value[g->primitive[p].input[k]].producer;
      if (producer == FT_NONE) continue;
      uint32_t least = raw[producer] + (uint32_t)ft_rng_below(rng, 2);
      if (raw[p] < least) raw[p] = least;
    }
  }
  for (uint32_t level = 0; level <= 2 * SPEC_MAX; level++) {
    bool used = false;
    for (uint32_t p = 0; p < g->primitive_count; p++) {
      if (raw[p] == level) group_of[p] = kept;
      used |= raw[p] == level;
    }
    kept += used;
  }
  return kept;
}

Test(graph_plan, no_two_live_buffers_share_bytes_in_random_plans) {
  ft_rng rng = ft_rng_seed(20);
  bool reuses = false;
  for (int round = 0; round < 400; round++) {
    spec table[SPEC_MAX];
    uint32_t group_of[SPEC_MAX];
    int count = spec_random(table, 1 + (int)ft_rng_below(&rng, 40), &rng);
    ft_graph *g = spec_build(table, count, &rng, arena);
    ft_partition partition;
    ft_workload *workload;
    ft_plan plan;
    uint32_t groups = random_groups(g, &rng, group_of);
    sample_groups(g, group_of, groups, arena, &partition, &workload);
    TEST_OK(ft_plan_make(&partition, workload, &target, arena, &plan, &error));
    reuses |= check_workspace(&plan) > plan.workspace_bytes;
    for (uint32_t i = 0; i < plan.group_count; i++)
      for (uint32_t k = 0; k < plan.group[i].depend_count; k++)
        cr_assert_lt(plan.group[i].depend[k], i);
    sample_fill(&plan);
    TEST_OK(ft_plan_seal(&plan, arena, &error));
    ft_plan again;
    const char *text = text_of(&plan);
    TEST_OK(ft_plan_parse(text, g, &target, arena, &again, &error));
    cr_assert_str_eq(text_of(&again), text);
    ft_arena_reset(arena);
  }
  cr_assert(reuses, "no plan of 400 reused a byte: the test sees nothing");
}

Test(graph_plan, zero_size_values_take_no_bytes) {
  spec t[] = {{.op = SPEC_INPUT, .shape = SHAPE(0, 8)},
              {.op = FT_OP_EXP, .in = {0}},
              {.op = FT_OP_NEG, .in = {1}, .is_output = true}};
  ft_graph *empty = spec_build(t, 3, NULL, arena);
  ft_partition partition;
  ft_workload *workload;
  ft_plan plan;
  sample_groups(empty, (const uint32_t[]){0, 1}, 2, arena, &partition, &workload);
  TEST_OK(ft_plan_make(&partition, workload, &target, arena, &plan, &error));
  cr_assert_eq(plan.workspace_bytes, 0);
  cr_assert_eq(plan.peak_bytes, 0);
  cr_assert_eq(plan.buffer[2].offset, 0);
}

// ---- the hash

Test(graph_plan, plan_id_ignores_times_and_names_and_nothing_else_that_is_asked) {
  ft_plan plan = sample_plan(graph, &target, arena), other = plan;
  other.times.tuned.median_ns++;
  other.times.additive_ns = 5;
  other.group[0].time.samples = 31;
  other.group[0].predicted_ns = -1;
  TEST_OK(ft_plan_seal(&other, arena, &error));
  cr_assert(ft_hash_equal(&other.hash, &plan.hash));
  ft_graph *renamed = sample_graph(4, "_2", arena);
  ft_plan same = sample_plan(renamed, &target, arena);
  cr_assert(ft_hash_equal(&same.hash, &plan.hash));
  other.group[1].grid++;
  TEST_OK(ft_plan_seal(&other, arena, &error));
  cr_assert(!ft_hash_equal(&other.hash, &plan.hash));
  ft_graph *longer = sample_graph(5, "", arena);
  ft_plan more = sample_plan(longer, &target, arena);
  cr_assert(!ft_hash_equal(&more.hash, &plan.hash));
}

Test(graph_plan, sealing_refuses_numbers_that_are_none) {
  static const double bad[] = {NAN, INFINITY, -1};
  for (size_t i = 0; i < 3; i++) {
    ft_plan plan = sample_plan(graph, &target, arena);
    plan.times.gap = bad[i];
    cr_assert_eq(ft_plan_seal(&plan, arena, &error), FT_INVALID_ARGUMENT);
    cr_assert(strstr(error.text, "times.gap is"), "%s", error.text);
  }
  ft_plan plan = sample_plan(graph, &target, arena);
  plan.group[1].predicted_ns = NAN;
  cr_assert_eq(ft_plan_seal(&plan, arena, &error), FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "groups[1].predicted_ns is"), "%s", error.text);
  plan.group[1].predicted_ns = 1;
  plan.group[0].time.median_ns = 0;
  cr_assert_eq(ft_plan_seal(&plan, arena, &error), FT_INVALID_ARGUMENT);
  plan.group[0].time = (ft_time){10, 11, 12, 3};
  cr_assert_eq(ft_plan_seal(&plan, arena, &error), FT_INVALID_ARGUMENT);
  plan.group[0].time = (ft_time){0};
  plan.group[0].tactic = NULL;
  cr_assert_eq(ft_plan_seal(&plan, arena, &error), FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "groups[0].tactic"), "%s", error.text);
}

Test(graph_plan, is_predicted_while_a_group_has_no_time) {
  ft_plan plan = sample_plan(graph, &target, arena);
  cr_assert_str_eq(ft_plan_status(&plan), "measured");
  plan.group[1].time = (ft_time){0};
  cr_assert_str_eq(ft_plan_status(&plan), "predicted");
}

// ---- JSON

Test(graph_plan, the_json_is_canonical_and_says_what_formats_says) {
  ft_plan plan = sample_plan(graph, &target, arena);
  const char *text = text_of(&plan);
  json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
  cr_assert_str_eq(ft_json_text(json, arena), text);
  static const char *const want[] = {
      "\"abi\":\"ft-cpu-1\"",
      "\"dims\":{\"N\":4}",
      "\"guards\":[{\"dim\":\"N\",\"max\":4,\"min\":4,\"multiple_of\":1}]",
      "\"match\":{\"differs\":[],\"level\":\"exact\"}",
      "\"measured_at\":\"2026-01-01T00:00:00Z\"",
      "\"numerics\":{\"accumulate\":\"f32\",\"deterministic\":true,\"tf32\":false}",
      "\"primitive\":{},\"tuned\":{\"high_ns\":2010,\"low_ns\":1990,\"median_ns\":2000,"
      "\"samples\":30}",
      "\"primitives\":[{\"id\":0,\"node\":\"Add_0\",\"op\":\"add\"},{\"id\":1,"
      "\"node\":\"Exp_1\",\"op\":\"exp\"}]",
      "\"schedule\":{\"compiler\":\"clang-14\",\"vector\":8}",
      "\"resources\":{\"occupancy\":null,\"registers\":16,\"shared_bytes\":null,"
      "\"spill_bytes\":8}",
      "\"status\":\"measured\"",
      "{\"buffer\":1,\"recipe\":{\"op\":\"seed\",\"seed\":7},\"sha256\":null}",
      "\"recipe\":{\"args\":[\"c\"],\"op\":\"initializer\"}"};
  for (size_t i = 0; i < sizeof want / sizeof *want; i++)
    cr_assert(strstr(text, want[i]), "no %s in %s", want[i], text);
  ft_hash constant = ft_hash_bytes(graph->value[plan.buffer[2].value].data->data, 64);
  char hex[FT_HASH_HEX + 1];
  ft_hash_hex(&constant, hex);
  cr_assert(strstr(text, hex));
  json_decref(json);
}

Test(graph_plan, what_is_read_back_is_written_the_same) {
  ft_plan plan = sample_plan(graph, &target, arena), back;
  const char *text = text_of(&plan);
  TEST_OK(ft_plan_parse(text, graph, &target, arena, &back, &error));
  cr_assert_str_eq(text_of(&back), text);
  cr_assert(ft_hash_equal(&back.hash, &plan.hash));
  cr_assert(ft_schedule_equal(&back.group[0].schedule, &plan.group[0].schedule));
  cr_assert_eq(back.group[1].time.median_ns, 1001);
  cr_assert_eq(back.times.measured_at, plan.times.measured_at);
  cr_assert_str_eq(back.strategy, "ideals");
}

Test(graph_plan, a_plan_is_read_for_a_model_with_other_names_and_gets_those) {
  ft_plan plan = sample_plan(graph, &target, arena), back;
  ft_graph *renamed = sample_graph(4, "_2", arena);
  TEST_OK(ft_plan_parse(text_of(&plan), renamed, &target, arena, &back, &error));
  cr_assert(strstr(text_of(&back), "\"node\":\"Add_0_2\""));
  cr_assert(ft_hash_equal(&back.hash, &plan.hash));
}

Test(graph_plan, names_that_are_not_utf8_do_not_stop_a_plan) {
  ft_graph *odd = sample_graph(4, "\xff\xfe", arena);
  ft_plan plan = sample_plan(odd, &target, arena), back;
  TEST_OK(ft_plan_parse(text_of(&plan), odd, &target, arena, &back, &error));
  cr_assert(strstr(text_of(&back), "\"node\":\"Add_0??\""));
}

Test(graph_plan, one_plan_has_one_id_whoever_found_it) {
  ft_plan plan = sample_plan(graph, &target, arena), other = plan;
  other.strategy = "horizontal-vertical";
  other.window = 3;
  other.window_saturated = true;
  TEST_OK(ft_plan_seal(&other, arena, &error));
  cr_assert(ft_hash_equal(&plan.hash, &other.hash));
  other.group[0].tactic = "other";
  TEST_OK(ft_plan_seal(&other, arena, &error));
  cr_assert_not(ft_hash_equal(&plan.hash, &other.hash));
}

Test(graph_plan, unknown_members_are_ignored) {
  ft_plan plan = sample_plan(graph, &target, arena), back;
  json_t *json = ft_plan_json(&plan, "exact");
  json_object_set_new(json, "artifacts", json_pack("{s:s}", "sha256:00", "AAAA"));
  json_object_set_new(json_array_get(json_object_get(json, "groups"), 0), "later",
                      json_integer(1));
  TEST_OK(ft_plan_parse(ft_json_text(json, arena), graph, &target, arena, &back, &error));
  cr_assert_str_eq(text_of(&back), text_of(&plan));
  json_decref(json);
}

// One change of the sample's text and what the refusal must name.
typedef struct mutation {
  const char *from, *to, *names;
} mutation;

static char *replaced(const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  cr_assert(at, "the plan has no %s: %s", from, text);
  return ft_arena_printf(arena, "%.*s%s%s", (int)(at - text), text, to,
                         at + strlen(from));
}

static void expect_refused(const char *text, const char *names) {
  ft_plan out;
  ft_status status = ft_plan_parse(text, graph, &target, arena, &out, &error);
  cr_assert_eq(status, FT_REFUSED, "status %d for %s", status, text);
  cr_assert(strstr(error.text, names), "'%s' does not name '%s'", error.text, names);
  cr_assert_eq(out.group_count, 0);
}

Test(graph_plan, each_member_that_does_not_fit_is_refused_by_name) {
  static const mutation table[] = {
      {"fusetune-plan/1", "fusetune-plan/2", "format"},
      {"\"format\":", "\"farmat\":", "format is missing"},
      {"\"graph\":\"sha256:", "\"graph\":\"sha257:", "graph is no hash"},
      {"\"binding\":\"sha256:", "\"binding\":null,\"b\":\"", "binding"},
      {"\"N\":4}", "\"N\":5}", "dims.N: is 5, must be 4"},
      {"\"max\":4", "\"max\":9", "guards[0].max"},
      {"\"signature\":\"sha256:", "\"signature\":\"", ""},
      {"\"name\":\"cpu\"", "\"name\":\"gpu\"", "target.name"},
      {"\"abi\":\"ft-cpu-1\"", "\"abi\":\"ft-cpu-2\"", "abi"},
      {"\"tf32\":false", "\"tf32\":true", "numerics.tf32"},
      {"\"status\":\"measured\"", "\"status\":\"predicted\"", "status"},
      {"\"peak_bytes\":1152", "\"peak_bytes\":1", "peak_bytes: is 1, must be 1152"},
      {"\"workspace_bytes\":256", "\"workspace_bytes\":255", "workspace_bytes"},
      {"\"role\":\"input\"", "\"role\":\"output\"", "buffers[0].role"},
      {"\"dtype\":\"f32\"", "\"dtype\":\"f16\"", "buffers[0].dtype"},
      {"\"offset\":0", "\"offset\":64", "buffers[5].offset"},
      {"\"strides\":[16,1]", "\"strides\":[1,4]", "buffers[0].strides[0]"},
      {"\"arguments\":[", "\"arguments\":[0,", "groups[0].arguments"},
      {"\"depends\":[0]", "\"depends\":[1]", "groups[1].depends[0]"},
      {"\"id\":0,\"node\"", "\"id\":1,\"node\"", "groups[0].primitives"},
      {"\"id\":0,\"node\"", "\"id\":2,\"node\"", "groups[0].workload"},
      {"\"id\":0,\"node\"", "\"id\":4,\"node\"", "no primitive 4"},
      {"\"id\":0,\"node\"", "\"id\":-1,\"node\"", "groups[0].primitives[0].id is -1"},
      {"\"id\":0,\"node\"", "\"id\":4294967296,\"node\"", "groups[0].primitives[0].id"},
      {"\"id\":0,\"node\"", "\"id\":0.5,\"node\"", "primitives[0].id is not an integer"},
      {"\"op\":\"add\"", "\"op\":\"sub\"", "groups[0].primitives[0].op"},
      {"\"workload\":\"sha256:", "\"workload\":\"x", "groups[0].workload"},
      {"\"tactic\":\"S1\"", "\"tactic\":\"S2\"", "plan_id"},
      {"\"tactic\":\"S1\"", "\"tactic\":\"\"", "groups[0].tactic"},
      {"\"vector\":8", "\"vector\":[8]", "groups[0].schedule"},
      {"\"vector\":8", "\"vector\":16", "plan_id"},
      {"\"entry\":\"ft_g0\"", "\"entry\":7", "groups[0].entry is not a string"},
      {"\"entry\":\"ft_g0\"", "\"entry\":\"system\"", "plan_id"},
      {"\"grid\":[12,1,1]", "\"grid\":[-1,1,1]", "groups[0].launch.grid[0]"},
      {"\"grid\":[12,1,1]", "\"grid\":[12,2,1]", "groups[0].launch.grid[1]"},
      {"\"grid\":[12,1,1]", "\"grid\":[13,1,1]", "plan_id"},
      {"\"grid\":[12,1,1]", "\"grid\":{}", "grid is not a list"},
      {"\"scalars\":[768,-1]", "\"scalars\":[768.5]", "groups[0].scalars[0]"},
      {"\"scratch_bytes\":128", "\"scratch_bytes\":-1", "groups[0].scratch_bytes"},
      {"\"link\":[]", "\"link\":[\"evil\"]", "plan_id"},
      {"\"link\":[]", "\"link\":[7]", "groups[0].link[0] is not a library's name"},
      {"\"link\":[]", "\"link\":[\"a\",\"b\"]", "groups[0].link"},
      {"\"registers\":16", "\"registers\":\"16\"", "groups[0].resources.registers"},
      {"\"low_ns\":990", "\"low_ns\":9990", "groups[0].time"},
      {"\"gap\":0.0", "\"gap\":-0.5", "times.gap"},
      {"\"gap\":0.0", "\"gap\":1e999", "position"},
      {"2026-01-01T00", "2026-13-01T00", "times.measured_at"},
      {"2026-01-01T00", "2026-02-31T00", "times.measured_at"},
      {"\"window\":16", "\"window\":-16", "window is -16"},
      {"\"window_saturated\":false", "\"window_saturated\":0", "window_saturated"},
      {"\"strategy\":\"ideals\"", "\"strategy\":null", "strategy is not a string"},
      {"\"inputs\":[{\"buffer\":0", "\"inputs\":[{\"buffer\":1", "inputs[0].buffer"},
      {"\"outputs\":[{\"buffer\":3", "\"outputs\":[{\"buffer\":4", "outputs[0].buffer"},
      {"\"shape\":[64]", "\"shape\":[65]", "outputs[0].shape"},
      {"\"plan_id\":\"sha256:", "\"plan_id\":\"", ""},
      {"\"abi\":", "\"abi\":\"ft-cpu-1\",\"abi\":", "duplicate"}};
  ft_plan plan = sample_plan(graph, &target, arena);
  const char *text = text_of(&plan);
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (!*table[i].names) continue;
    expect_refused(replaced(text, table[i].from, table[i].to), table[i].names);
  }
}

Test(graph_plan, the_library_that_a_kernel_calls_is_kept) {
  ft_plan plan = sample_plan(graph, &target, arena), back;
  const char *without = text_of(&plan);
  plan.group[1].link = "dnnl";
  cr_assert_eq(ft_plan_seal(&plan, arena, &error), FT_OK);
  const char *text = text_of(&plan);
  cr_assert(strstr(text, "\"link\":[\"dnnl\"]"));
  cr_assert_str_neq(text, without);
  cr_assert_eq(ft_plan_parse(text, graph, &target, arena, &back, &error), FT_OK, "%s",
               error.text);
  cr_assert_null(back.group[0].link);
  cr_assert_str_eq(back.group[1].link, "dnnl");
}

Test(graph_plan, every_member_is_needed) {
  ft_plan plan = sample_plan(graph, &target, arena);
  json_t *whole = ft_plan_json(&plan, "exact"), *value;
  const char *key;
  int tried = 0;
  json_object_foreach(whole, key, value) {
    json_t *less = json_deep_copy(whole);
    json_object_del(less, key);
    expect_refused(ft_json_text(less, arena), key);
    json_decref(less);
    tried++;
  }
  cr_assert_eq(tried, 23);
  json_t *groups = json_object_get(whole, "groups");
  json_object_foreach(json_array_get(groups, 1), key, value) {
    json_t *less = json_deep_copy(whole);
    json_object_del(json_array_get(json_object_get(less, "groups"), 1), key);
    expect_refused(ft_json_text(less, arena), key);
    json_decref(less);
  }
  json_decref(whole);
}

Test(graph_plan, text_that_is_no_plan_is_refused) {
  expect_refused("", "position");
  expect_refused("[]", "not an object");
  expect_refused("{}", "format");
  expect_refused("{\"format\":", "position");
  expect_refused("nonsense", "position");
  char *deep = ft_arena_alloc(arena, 200001);
  memset(deep, '[', 200000);
  expect_refused(deep, "depth");
}

Test(graph_plan, groups_that_repeat_lose_or_misorder_primitives_are_refused) {
  ft_plan plan = sample_plan(graph, &target, arena);
  json_t *json = ft_plan_json(&plan, "exact");
  json_t *groups = json_object_get(json, "groups");
  json_t *first = json_deep_copy(json_array_get(groups, 0));
  json_array_append(groups, first);
  expect_refused(ft_json_text(json, arena), "primitive 0 is in groups 0 and 2");
  json_array_remove(groups, 0);
  expect_refused(ft_json_text(json, arena), "groups[0] is out of order");
  json_array_remove(groups, 1);
  expect_refused(ft_json_text(json, arena), "primitive 0 is in no group");
  json_t *ids = json_array();
  for (int i = 0; i < 100; i++) json_array_append_new(ids, json_pack("{s:i}", "id", 0));
  json_object_set_new(json_array_get(groups, 0), "primitives", ids);
  expect_refused(ft_json_text(json, arena), "primitives has 100 items");
  json_array_clear(groups);
  for (int i = 0; i < 100; i++) json_array_append(groups, first);
  expect_refused(ft_json_text(json, arena), "100 groups for 4 primitives");
  json_decref(first);
  json_decref(json);
}

Test(graph_plan, groups_that_wait_for_each_other_are_refused) {
  spec t[] = {{.op = SPEC_INPUT, .shape = SHAPE(4)},
              {.op = FT_OP_EXP, .in = {0}},
              {.op = FT_OP_NEG, .in = {1}, .is_output = true},
              {.op = FT_OP_TANH, .in = {0}},
              {.op = FT_OP_ABS, .in = {3}, .is_output = true}};
  graph = spec_build(t, 5, NULL, arena);
  ft_partition partition;
  ft_workload *workload, crossed;
  ft_plan plan;
  sample_groups(graph, (const uint32_t[]){0, 0, 1, 1}, 2, arena, &partition, &workload);
  TEST_OK(ft_plan_make(&partition, workload, &target, arena, &plan, &error));
  sample_fill(&plan);
  TEST_OK(ft_plan_seal(&plan, arena, &error));
  json_t *json = ft_plan_json(&plan, "exact");
  static const uint32_t pair[2][2] = {{0, 3}, {2, 1}};
  for (size_t i = 0; i < 2; i++) {
    ft_group group;
    char hash[FT_HASH_TEXT + 1];
    TEST_OK(ft_group_make(graph, pair[i], 2, arena, &group, &error));
    TEST_OK(ft_workload_make(&group, arena, &crossed, &error));
    ft_hash_text(&crossed.hash, hash);
    json_t *it = json_array_get(json_object_get(json, "groups"), i);
    json_object_set_new(it, "workload", json_string(hash));
    json_object_set_new(
        it, "primitives",
        json_pack("[{s:i},{s:i}]", "id", (int)pair[i][0], "id", (int)pair[i][1]));
  }
  expect_refused(ft_json_text(json, arena), "groups: invariant 2");
  json_decref(json);
}

Test(graph_plan, a_plan_for_another_graph_or_target_is_refused) {
  ft_plan plan = sample_plan(graph, &target, arena), out;
  const char *text = text_of(&plan);
  ft_target other = sample_target(8);
  cr_assert_eq(ft_plan_parse(text, graph, &other, arena, &out, &error), FT_REFUSED);
  cr_assert(strstr(error.text, "target.signature"), "%s", error.text);
  ft_graph *longer = sample_graph(5, "", arena);
  cr_assert_eq(ft_plan_parse(text, longer, &target, arena, &out, &error), FT_REFUSED);
  cr_assert(strstr(error.text, "binding"), "%s", error.text);
  sample_key(longer, "another", 4);
  cr_assert_eq(ft_plan_parse(text, longer, &target, arena, &out, &error), FT_REFUSED);
  cr_assert(strstr(error.text, "graph is sha256:"), "%s", error.text);
}

// ---- memory

static int allocations_left, live;
static void *counted(size_t size) {
  if (allocations_left-- <= 0) return NULL;
  live++;
  return malloc(size);
}
static void uncounted(void *block) {
  live -= block != NULL;
  free(block);
}

Test(graph_plan, every_failing_allocation_of_json_is_an_error_and_leaks_nothing) {
  ft_plan plan = sample_plan(graph, &target, arena), back;
  const char *text = text_of(&plan), *again;
  json_set_alloc_funcs(counted, uncounted);
  bool done = false;
  int n = 0;
  for (; !done; n++) {
    allocations_left = n;
    ft_status status = ft_plan_parse(text, graph, &target, arena, &back, &error);
    if (status == FT_OK) status = ft_plan_text(&back, "exact", arena, &again, &error);
    done = status == FT_OK;
    // jansson's scanner reports some of its failed allocations as bad syntax.
    bool is_syntax = status == FT_REFUSED && strstr(error.text, "position");
    cr_assert(done || is_syntax || status == FT_OUT_OF_MEMORY, "allocation %d: %s", n,
              error.text);
    cr_assert_eq(live, 0, "allocation %d left %d blocks", n, live);
  }
  cr_assert_str_eq(again, text);
  cr_assert_gt(n, 100);
}

// ---- the program

Test(graph_plan, the_program_has_the_plans_buffers_and_the_constants_bytes) {
  ft_plan plan = sample_plan(graph, &target, arena);
  ft_module module[2] = {{.outcome = FT_OUTCOME_OK}, {.outcome = FT_OUTCOME_OK}};
  float x[64] = {1, 2, 3};
  ft_tensor input = {FT_F32, SHAPE(4, 16), x, sizeof x};
  ft_program program, again;
  TEST_OK(ft_plan_program(&plan, "tuned", module, &input, arena, &program, &error));
  cr_assert_eq(program.buffer_count, plan.buffer_count);
  cr_assert_eq(program.step_count, 2);
  cr_assert_eq(program.workspace_bytes, 256);
  cr_assert_eq(program.buffer[0].data, (const void *)x);
  cr_assert_eq(program.buffer[1].kind, FT_BUFFER_INPUT);
  ft_tensor w;
  TEST_OK(ft_graph_constant_data(graph, plan.buffer[1].value, arena, &w, &error));
  cr_assert_arr_eq(program.buffer[1].data, w.data, 64);
  cr_assert_eq(program.buffer[3].kind, FT_BUFFER_OUTPUT);
  cr_assert_eq(program.buffer[5].kind, FT_BUFFER_INTERMEDIATE);
  cr_assert_eq(program.buffer[5].offset, 0);
  cr_assert_eq(program.step[1].argument, plan.group[1].argument);
  TEST_OK(ft_plan_program(&plan, "again", module, &input, arena, &again, &error));
  for (uint32_t i = 0; i < 3; i++)
    cr_assert_eq(again.buffer[i].key, program.buffer[i].key, "buffer %u", i);
  x[63] = 1;
  TEST_OK(ft_plan_program(&plan, "other", module, &input, arena, &again, &error));
  cr_assert_neq(again.buffer[0].key, program.buffer[0].key);
}

Test(graph_plan, a_program_needs_kernels_that_built_and_inputs_that_fit) {
  ft_plan plan = sample_plan(graph, &target, arena);
  ft_module module[2] = {{.outcome = FT_OUTCOME_OK},
                         {.outcome = FT_OUTCOME_COMPILE_ERROR}};
  float x[64] = {0};
  ft_tensor input = {FT_F32, SHAPE(4, 16), x, sizeof x};
  ft_program program;
  cr_assert_eq(ft_plan_program(&plan, "t", module, &input, arena, &program, &error),
               FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "group 1 has no kernel: compile_error"), "%s", error.text);
  input.shape = SHAPE(16, 4);
  cr_assert_eq(ft_plan_program(&plan, "t", module, &input, arena, &program, &error),
               FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "input 0 'x'"), "%s", error.text);
}

Test(graph_plan, content_keys_depend_on_every_byte_and_on_the_length) {
  unsigned char bytes[41] = {0};
  uint64_t zero = ft_content_key(bytes, 41);
  cr_assert_neq(zero, ft_content_key(bytes, 40));
  for (int i = 0; i < 41; i++) {
    bytes[i] = 1;
    cr_assert_neq(ft_content_key(bytes, 41), zero, "byte %d", i);
    bytes[i] = 0;
  }
  (void)ft_content_key(NULL, 0);
}
