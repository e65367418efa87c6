// Whole runs on targets without a device. Those for sm_NN skip without NVRTC.
#include "daemon/export_plan.h"
#include "daemon/simulate.h"
#include "sessions.h"

#define MOST_TRIALS 40

static bool has_nvrtc(void) {
  ft_session session;
  ft_error error;
  ft_session_options options = {
      .target = "sm_90",
      .store_path = ft_arena_printf(ft_arena_create(ft_allocator_system()), "%s/probe.db",
                                    test_folder())};
  ft_status status = ft_session_open(&options, &session, &error);
  ft_session_close(&session);
  if (status == FT_UNAVAILABLE) fprintf(stderr, "skipped: %s\n", error.text);
  return status == FT_OK;
}

// The chain model on |target|; store and cache of the test's folder.
static fixture open_on(const char *target, const char *cache, const char *store) {
  return fixture_open_as(
      chain_model,
      (fixture_wish){.target = target, .cache = cache, .store = store, .jobs = 2});
}

static ft_answer predict(fixture *f) {
  ft_answer answer;
  ft_error error;
  ft_tune_options options = {.limit_ns = 600000000000u, .max_trials = MOST_TRIALS};
  cr_assert_eq(
      ft_session_tune(&f->session, &f->model, &options, f->arena, &answer, &error), FT_OK,
      "%s", error.text);
  return answer;
}

static ft_status query(fixture *f, ft_answer *out, ft_error *error) {
  return ft_session_query(&f->session, &f->model, f->arena, out, error);
}

static int64_t rows(fixture *f, const char *table) {
  int64_t count;
  ft_error error;
  cr_assert_eq(ft_store_count(f->session.store, table, &count, &error), FT_OK);
  return count;
}

static const char *text_of(json_t *json, ft_arena *arena) {
  const char *text = ft_json_text(json, arena);
  json_decref(json);
  return text;
}

Test(kernel_predict, a_plan_without_a_device_is_predicted_everywhere) {
  if (!has_nvrtc()) cr_skip_test("no NVRTC");
  fixture f = open_on("sm_90", "cache", "store.db");
  ft_answer tuned = predict(&f), found;
  ft_error error;
  cr_assert_eq(query(&f, &found, &error), FT_OK, "%s", error.text);
  const ft_answer *answers[] = {&tuned, &found};
  for (int i = 0; i < 2; i++) {
    json_t *json = ft_answer_json(answers[i]), *group;
    size_t index;
    cr_assert_str_eq(json_string_value(json_object_get(json, "status")), "predicted");
    cr_assert_str_eq(json_string_value(json_object_get(json, "match")), "exact");
    cr_assert_eq(json_object_size(json_object_get(json, "tuned")), 0);
    cr_assert_gt(json_real_value(json_object_get(json, "additive_ns")), 0);
    json_array_foreach(json_object_get(json, "groups"), index, group) {
      json_t *r = json_object_get(group, "resources");
      cr_assert_gt(json_integer_value(json_object_get(r, "registers")), 0);
      cr_assert_gt(json_real_value(json_object_get(r, "occupancy")), 0);
      cr_assert(json_is_integer(json_object_get(r, "spill_bytes")));
      cr_assert_eq(json_object_size(json_object_get(group, "time")), 0);
      cr_assert_gt(json_real_value(json_object_get(group, "predicted_ns")), 0);
      cr_assert(json_is_null(json_object_get(group, "trial")));
    }
    json_decref(json);
  }
  cr_assert(ft_hash_equal(&tuned.plan->hash, &found.plan->hash));
  cr_assert_eq(rows(&f, "trial"), 0);
  cr_assert_eq(rows(&f, "build"), 0);
  cr_assert_eq(rows(&f, "comparison"), 0);
  fixture_close(&f);
}

Test(kernel_predict, fusing_three_pointwise_operators_is_predicted_to_be_faster) {
  if (!has_nvrtc()) cr_skip_test("no NVRTC");
  fixture f = open_on("sm_80", "cache", "store.db");
  ft_answer a = predict(&f);
  cr_assert_eq(a.served, FT_PLAN_TUNED);
  cr_assert_eq(a.plan->group_count, 1);
  cr_assert_lt(2 * a.predicted_ns[FT_PLAN_TUNED], a.predicted_ns[FT_PLAN_UNFUSED]);
  cr_assert_eq(a.plan->times.additive_ns, a.predicted_ns[FT_PLAN_TUNED]);
  cr_assert_leq(a.plan->times.bound_ns, a.plan->times.additive_ns);
  fixture_close(&f);
}

Test(kernel_predict, two_runs_from_nothing_give_the_same_bytes) {
  if (!has_nvrtc()) cr_skip_test("no NVRTC");
  const char *text[2];
  fixture f[2] = {open_on("sm_90", "cache1", "one.db"),
                  open_on("sm_90", "cache2", "two.db")};
  for (int i = 0; i < 2; i++) {
    ft_error error;
    ft_answer a = predict(&f[i]);
    cr_assert_eq(ft_plan_text(a.plan, "exact", f[i].arena, &text[i], &error), FT_OK);
  }
  cr_assert_str_eq(text[0], text[1]);
  for (int i = 0; i < 2; i++) fixture_close(&f[i]);
}

Test(kernel_predict, a_predicted_plan_is_not_served_for_cpu_and_changes_no_plan_there) {
  if (!has_nvrtc()) cr_skip_test("no NVRTC");
  fixture gpu = open_on("sm_90", "cache", "store.db");
  predict(&gpu);
  fixture_close(&gpu);
  fixture cpu = open_on("cpu", "cache", "store.db");
  ft_answer before, after;
  ft_error error;
  cr_assert_eq(query(&cpu, &before, &error), FT_NOT_FOUND);
  cr_assert(strstr(error.text, "sm_90"), "%s", error.text);
  fixture_tune(&cpu);
  cr_assert_eq(query(&cpu, &before, &error), FT_OK, "%s", error.text);
  const char *text = text_of(ft_answer_json(&before), cpu.arena);
  fixture again = open_on("sm_90", "cache", "store.db");
  predict(&again);
  fixture_close(&again);
  cr_assert_eq(query(&cpu, &after, &error), FT_OK, "%s", error.text);
  cr_assert_str_eq(ft_plan_status(after.plan), "measured");
  cr_assert_str_eq(text_of(ft_answer_json(&after), cpu.arena), text);
  fixture_close(&cpu);
}

static ft_hash hash_file(fixture *f, const char *folder, const char *name) {
  ft_bytes bytes;
  ft_error error;
  const char *path = ft_arena_printf(f->arena, "%s/%s", folder, name);
  cr_assert_eq(ft_file_read(path, 1 << 24, f->arena, &bytes, &error), FT_OK, "%s",
               error.text);
  return ft_hash_bytes(bytes.data, bytes.size);
}

Test(kernel_predict, its_files_have_the_hashes_that_the_plan_says) {
  if (!has_nvrtc()) cr_skip_test("no NVRTC");
  fixture f = open_on("sm_90", "cache", "store.db");
  const char *folder = ft_arena_printf(f.arena, "%s/plan", test_folder());
  ft_answer a = predict(&f);
  ft_error error;
  uint32_t files;
  cr_assert_eq(ft_export_plan(&f.session, &f.model, folder, f.arena, &files, &error),
               FT_OK, "%s", error.text);
  cr_assert_eq(files, 1 + 2 * a.plan->group_count);
  ft_hash source = hash_file(&f, folder, "kernel_00.cu"),
          binary = hash_file(&f, folder, "kernel_00.cubin");
  cr_assert(ft_hash_equal(&source, &a.plan->group[0].source_hash));
  cr_assert(ft_hash_equal(&binary, &a.plan->group[0].binary_hash));
  hash_file(&f, folder, "plan.json");
  fixture_close(&f);
}

// A product, a sum along rows and what follows: registers and waves matter.
static ft_strbuf product_model(ft_arena *arena) {
  onnx_file f = onnx_begin(arena, 13);
  onnx_input(&f, "x", ONNX_FLOAT, "N,96");
  onnx_input(&f, "w", ONNX_FLOAT, "96,130");
  onnx_output(&f, "y", ONNX_FLOAT, "N,130");
  onnx_node(&f, "MatMul", "x,w", "p", NULL);
  onnx_node(&f, "Softmax", "p", "y", NULL);
  return onnx_end(&f);
}

// The candidates of the group of |count| primitives from |first| on; how many kernels.
static uint32_t compare_with_floors(fixture *f, uint32_t first, uint32_t count) {
  uint32_t *primitive = FT_NEW_ARRAY(f->arena, uint32_t, count), kernels = 0;
  for (uint32_t i = 0; i < count; i++) primitive[i] = first + i;
  ft_session *s = &f->session;
  ft_group group;
  ft_workload w;
  ft_error error;
  const char *tactic[8], *reason;
  cr_assert_eq(ft_group_make(f->model.graph, primitive, count, f->arena, &group, &error),
               FT_OK);
  cr_assert_eq(ft_workload_make(&group, f->arena, &w, &error), FT_OK);
  uint32_t tactics = s->builder.match(s->builder.self, &w, f->arena, tactic, 8, &reason);
  for (uint32_t t = 0; t < tactics; t++) {
    ft_schedule *schedule;
    uint32_t space;
    cr_assert_eq(s->builder.space(s->builder.self, &w, tactic[t], &s->target, f->arena,
                                  &schedule, &space, &error),
                 FT_OK);
    for (uint32_t i = 0; i < space; i += 3, kernels++) {
      ft_candidate c = {&w, &s->target, tactic[t], schedule[i]};
      ft_module m;
      double floor_ns;
      cr_assert_eq(s->predictor.floors(s->predictor.self, &c, 1, &floor_ns, &error),
                   FT_OK, "%s", error.text);
      cr_assert_eq(s->builder.build(s->builder.self, &c, 1, true, f->arena, &m, &error),
                   FT_OK, "%s", error.text);
      if (m.outcome != FT_OUTCOME_OK) continue;
      double ns = ft_gpu_predict(s->chip, &w, &m, f->arena).ns;
      cr_expect_leq(floor_ns, ns, "%s %s", tactic[t],
                    ft_schedule_json(&c.schedule, f->arena));
      cr_expect_geq(floor_ns, ft_gpu_bound_ns(s->chip, &w, f->arena));
    }
  }
  return kernels;
}

Test(kernel_predict, no_kernel_is_predicted_below_its_floor) {
  if (!has_nvrtc()) cr_skip_test("no NVRTC");
  fixture f = fixture_open_as(product_model, (fixture_wish){.target = "sm_90"});
  uint32_t all = f.model.graph->primitive_count, kernels = 0;
  for (uint32_t i = 0; i < all; i++) kernels += compare_with_floors(&f, i, 1);
  kernels += compare_with_floors(&f, 1, all - 1);
  cr_assert_gt(kernels, 20);
  fixture_close(&f);
}

Test(kernel_predict, floors_leave_when_they_are_told_to) {
  if (!has_nvrtc()) cr_skip_test("no NVRTC");
  fixture f = open_on("sm_90", "cache", "store.db");
  volatile int stop = 1;
  ft_outline_predictor p;
  ft_error error;
  ft_candidate never_looked_at = {0};
  double ns;
  cr_assert_eq(
      ft_outline_predictor_init(&p, f.session.chip, f.session.codegen, &stop, &error),
      FT_OK);
  ft_predictor table = ft_outline_predictor_table(&p);
  cr_assert_eq(table.floors(table.self, &never_looked_at, 1, &ns, &error),
               FT_INTERRUPTED);
  ft_outline_predictor_fini(&p);
  fixture_close(&f);
}

Test(kernel_predict, its_kernels_are_right_in_sim) {
  if (!has_nvrtc()) cr_skip_test("no NVRTC");
  fixture f = open_on("sm_90", "cache", "store.db");
  ft_answer a = predict(&f);
  ft_simulation s;
  ft_error error;
  cr_assert_eq(ft_session_simulate(&f.session, &f.model, 3, f.arena, &s, &error), FT_OK,
               "%s", error.text);
  cr_assert(s.is_plan_stored && s.is_verified);
  cr_assert_eq(s.kernel_count, a.plan->group_count);
  cr_assert_eq(s.kernel[0].blocks, s.kernel[0].of_blocks);
  cr_assert_gt(s.kernel[0].comparison.compared, 0);
  fixture_close(&f);
}

Test(kernel_predict, sim_needs_no_plan_and_no_nvrtc) {
  setenv("FUSETUNE_NVRTC", "none", 1);
  fixture f = open_on("sim", "cache", "store.db");
  ft_simulation s;
  ft_error error;
  cr_assert_eq(ft_session_simulate(&f.session, &f.model, 1, f.arena, &s, &error), FT_OK,
               "%s", error.text);
  cr_assert(!s.is_plan_stored && s.is_verified);
  cr_assert_eq(s.kernel_count, 3);
  for (uint32_t i = 0; i < 3; i++) {
    cr_assert_null(s.kernel[i].fault, "%s", s.kernel[i].fault);
    cr_assert_eq(s.kernel[i].comparison.compared, 37 * 48);
  }
  fixture_close(&f);
}

Test(kernel_predict, a_cpu_session_has_no_sim_and_sim_no_tuning) {
  fixture f = open_on("cpu", "cache", "store.db");
  ft_simulation s;
  ft_answer a;
  ft_error error;
  ft_tune_options options = {.limit_ns = 1000000000u};
  cr_assert_eq(ft_session_simulate(&f.session, &f.model, 1, f.arena, &s, &error),
               FT_INVALID_ARGUMENT);
  fixture_close(&f);
  fixture g = open_on("sim", "cache", "store.db");
  cr_assert_eq(ft_session_tune(&g.session, &g.model, &options, g.arena, &a, &error),
               FT_INVALID_ARGUMENT);
  cr_assert_eq(ft_session_replay(&g.session, &g.model, &options, g.arena, &a, &error),
               FT_INVALID_ARGUMENT);
  fixture_close(&g);
}
