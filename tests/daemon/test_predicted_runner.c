// The predicted runner on a builder that builds nothing.
#include "daemon/predicted_runner.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/cost_model/workloads.h"

static ft_arena *arena;
static ft_workload *workload;
static ft_module module[4];
static ft_builder builder;
static ft_predicted_runner runner;
static ft_error error;

static ft_status build(void *self, const ft_candidate *candidate, uint32_t count,
                       bool alone, ft_arena *scratch, ft_module *out, ft_error *e) {
  (void)self;
  (void)candidate;
  (void)scratch;
  (void)e;
  cr_assert(alone && count <= 4);
  memcpy(out, module, count * sizeof *out);
  return FT_OK;
}

static ft_module ok_module(void) {
  return (ft_module){.outcome = FT_OUTCOME_OK,
                     .log = "",
                     .grid = 1056,
                     .launch = {.block_threads = 256, .resident_blocks = 8},
                     .work = {.bytes_in_flight = 32}};
}

static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
  workload =
      WORKLOAD(arena, INPUT(1024, 1024), {.op = FT_OP_NEG, .in = {0}, .is_output = true});
  builder = (ft_builder){.build = build};
  for (int i = 0; i < 4; i++) module[i] = ok_module();
  cr_assert_eq(ft_predicted_runner_init(&builder, ft_chip_find("sm_90"), &runner, &error),
               FT_OK);
}
static void tear_down(void) {
  ft_predicted_runner_fini(&runner);
  ft_arena_destroy(arena);
}
TestSuite(predicted_runner, .init = set_up, .fini = tear_down);

static ft_status ask(uint32_t count, ft_trial *out) {
  ft_candidate candidate = {.workload = workload, .tactic = "simt_pointwise"};
  ft_measure_request request[4];
  for (uint32_t i = 0; i < count; i++)
    request[i] = (ft_measure_request){.candidate = &candidate};
  ft_runner table = ft_predicted_runner_table(&runner);
  return table.measure(table.self, request, count, arena, out, &error);
}

Test(predicted_runner, a_prediction_never_looks_like_a_measurement) {
  ft_trial trial;
  cr_assert_eq(ask(1, &trial), FT_OK);
  cr_assert_eq(trial.outcome, FT_OUTCOME_OK);
  cr_assert_gt(trial.predicted_ns, 0);
  cr_assert(trial.time.median_ns == 0 && trial.time.samples == 0);
  cr_assert(trial.sample_count == 0 && trial.max_error_ratio < 0);
  cr_assert_eq(ft_trial_ns(&trial), trial.predicted_ns);
}

Test(predicted_runner, tells_candidates_apart_and_says_the_same_again) {
  ft_trial first[2], second[2];
  module[1].work.bytes_in_flight = 2;
  cr_assert_eq(ask(2, first), FT_OK);
  cr_assert_eq(ask(2, second), FT_OK);
  cr_assert_lt(first[0].predicted_ns, first[1].predicted_ns);
  for (int i = 0; i < 2; i++) cr_assert_eq(first[i].predicted_ns, second[i].predicted_ns);
  cr_assert_eq(runner.asked, 4);
  cr_assert_eq(runner.outcome[FT_OUTCOME_OK], 4);
}

Test(predicted_runner, what_does_not_build_or_fit_is_an_outcome_without_a_prediction) {
  ft_trial trial[3];
  module[0].outcome = FT_OUTCOME_COMPILE_ERROR;
  module[0].log = "kernel.cu(3): error";
  module[1].outcome = FT_OUTCOME_RESOURCE_LIMIT;
  module[1].log = "not one block fits";
  module[2].workspace_bytes = 4097;
  runner.max_workspace_bytes = 4096;
  cr_assert_eq(ask(3, trial), FT_OK);
  cr_assert_eq(trial[0].outcome, FT_OUTCOME_COMPILE_ERROR);
  cr_assert_str_eq(trial[0].error, "kernel.cu(3): error");
  cr_assert_eq(trial[1].outcome, FT_OUTCOME_RESOURCE_LIMIT);
  cr_assert_eq(trial[2].outcome, FT_OUTCOME_RESOURCE_LIMIT);
  cr_assert(strstr(trial[2].error, "4097"), "%s", trial[2].error);
  for (int i = 0; i < 3; i++) cr_assert_eq(ft_trial_ns(&trial[i]), 0);
}

Test(predicted_runner, leaves_when_told_to_and_blames_nobody) {
  static volatile int stop = 1;
  ft_trial trial[2];
  runner.stop = &stop;
  cr_assert_eq(ask(2, trial), FT_INTERRUPTED);
  cr_assert_eq(trial[1].outcome, FT_OUTCOME_INTERRUPTED);
  cr_assert_eq(runner.asked, 0);
}
