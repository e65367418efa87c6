// Many small models through the whole road, in one process: import, one kernel per
// operator, kernels of many models compiled together, each model run in the worker.
#ifndef FT_TESTS_CLI_BATCH_H
#define FT_TESTS_CLI_BATCH_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/default_plan.h"
#include "daemon/execute.h"
#include "tests/support/command.h"

enum { BATCH_ROOM = 2048, BATCH_KERNELS = 128 };

typedef struct batch_case {
  const char *name, *refusal, *failure;  // at most one of the two; NULL: none yet
  ft_graph *graph;
  ft_import_report report;
  ft_tensor *input;     // [graph inputs]
  ft_tensor *expected;  // [graph outputs]; NULL: only the reference judges
  ft_plan plan;
  ft_module *module;  // [groups of the plan]
} batch_case;

typedef struct batch {
  ft_arena *arena;
  ft_session session;
  uint32_t count;
  batch_case *item;
} batch;

static inline batch batch_open(void) {
  static const char *const worker[] = {FT_BINARY_DIR "/fusetune", "worker", NULL};
  batch b = {.arena = ft_arena_create(ft_allocator_system())};
  b.item = FT_NEW_ARRAY(b.arena, batch_case, BATCH_ROOM);
  ft_session_options options = {
      .store_path = ft_arena_printf(b.arena, "%s/batch.db", test_folder()),
      .cache_folder = ft_arena_printf(b.arena, "%s/cache", test_folder()),
      .worker_argv = worker};
  ft_error error;
  cr_assert_eq(ft_session_open(&options, &b.session, &error), FT_OK, "%s", error.text);
  return b;
}

static inline void batch_close(batch *b) {
  ft_session_close(&b->session);
  ft_arena_destroy(b->arena);
}

static inline batch_case *batch_add(batch *b, const char *name) {
  cr_assert_lt(b->count, BATCH_ROOM);
  batch_case *c = &b->item[b->count++];
  c->name = ft_arena_strdup(b->arena, name);
  return c;
}

// What is unsupported is refused, by name; any other error is a failure.
static inline bool batch_accept(batch *b, batch_case *c, ft_status status,
                                const ft_error *error) {
  if (status == FT_OK) return true;
  const char *text = ft_arena_strdup(b->arena, error->text);
  if (status == FT_UNSUPPORTED)
    c->refusal = text;
  else
    c->failure = ft_arena_printf(b->arena, "%s: %s", ft_status_text(status), text);
  return false;
}

// What was imported executes: a primitive without a tactic is a failure.
static inline void batch_plan(batch *b, batch_case *c) {
  ft_error error;
  if (ft_plan_default(&b->session, c->graph, b->arena, &c->plan, &error) != FT_OK) {
    c->failure = ft_arena_strdup(b->arena, error.text);
    return;
  }
  c->module = FT_NEW_ARRAY(b->arena, ft_module, c->plan.group_count);
}

// A runner that measures nothing: a kernel costs a launch and its bytes, so the cheapest
// plan is the most fused one. A library may have nothing for a kernel, which only running
// it tells; tests/codegen/kernel_onednn.c runs them.
static inline ft_status batch_price(void *self, const ft_measure_request *request,
                                    uint32_t count, ft_arena *arena, ft_trial *out,
                                    ft_error *error) {
  (void)self, (void)arena, (void)error;
  for (uint32_t i = 0; i < count; i++) {
    const ft_workload *w = request[i].candidate->workload;
    bool is_own = !ft_codegen_calls_library(request[i].candidate->tactic);
    uint64_t ns = 1000 + (w->read_bytes + w->write_bytes) / 16;
    out[i] = (ft_trial){.outcome = is_own ? FT_OUTCOME_OK : FT_OUTCOME_LAUNCH_ERROR,
                        .time = {ns, ns, ns, 9},
                        .worst = "",
                        .error = "",
                        .env = "{}"};
  }
  return FT_OK;
}

static inline ft_status batch_try_fused(batch *b, batch_case *c, ft_error *error) {
  static const char *const names[] = {"ideals", "horizontal-vertical", "unfused"};
  ft_runner runner = {.measure = batch_price};
  ft_search_options options = {.limit_ns = 1000000000u};
  ft_search_result result;
  FT_TRY(ft_search_run(c->graph, &b->session.target, &b->session.builder, &runner,
                       &options, b->arena, &result, error));
  const ft_searched_partition *p = NULL;
  for (int i = 0; i < 3 && !(p && p->is_complete); i++)
    p = ft_search_find(&result, names[i]);
  if (!p || !p->is_complete) FT_FAIL(error, FT_INTERNAL, "no complete partition");
  FT_TRY(ft_plan_make(&p->partition, p->workload, &b->session.target, b->arena, &c->plan,
                      error));
  for (uint32_t i = 0; i < c->plan.group_count; i++) {
    c->plan.group[i].tactic = result.group[p->unique[i]].best.tactic;
    c->plan.group[i].schedule = result.group[p->unique[i]].best.schedule;
  }
  return FT_OK;
}

static inline void batch_plan_fused(batch *b, batch_case *c) {
  ft_error error;
  if (batch_try_fused(b, c, &error) != FT_OK) {
    c->failure = ft_arena_strdup(b->arena, error.text);
    return;
  }
  c->module = FT_NEW_ARRAY(b->arena, ft_module, c->plan.group_count);
}

typedef struct batch_slot {
  batch_case *item;
  uint32_t group;
} batch_slot;

static inline void batch_build_some(batch *b, const batch_slot *slot, uint32_t count) {
  ft_candidate candidate[BATCH_KERNELS];
  ft_module module[BATCH_KERNELS];
  ft_error error;
  for (uint32_t i = 0; i < count; i++) {
    const ft_plan_group *g = &slot[i].item->plan.group[slot[i].group];
    candidate[i] = (ft_candidate){.workload = &g->workload,
                                  .target = &b->session.target,
                                  .tactic = g->tactic,
                                  .schedule = g->schedule};
  }
  ft_builder *builder = &b->session.builder;
  cr_assert_eq(
      builder->build(builder->self, candidate, count, false, b->arena, module, &error),
      FT_OK, "%s", error.text);
  for (uint32_t i = 0; i < count; i++) {
    batch_case *c = slot[i].item;
    c->module[slot[i].group] = module[i];
    if (module[i].outcome != FT_OUTCOME_OK)
      c->failure = ft_arena_printf(b->arena, "kernel %u (%s): %s: %.400s", slot[i].group,
                                   candidate[i].tactic,
                                   ft_outcome_text(module[i].outcome), module[i].log);
  }
}

static inline void batch_build(batch *b) {
  batch_slot slot[BATCH_KERNELS];
  uint32_t used = 0;
  for (uint32_t i = 0; i < b->count; i++) {
    batch_case *c = &b->item[i];
    if (c->refusal || c->failure) continue;
    for (uint32_t g = 0; g < c->plan.group_count; g++) {
      slot[used++] = (batch_slot){c, g};
      if (used == BATCH_KERNELS) batch_build_some(b, slot, used);
      used %= BATCH_KERNELS;
    }
  }
  if (used) batch_build_some(b, slot, used);
}

// ---- comparing ----------------------------------------------------------------------

static inline bool batch_close_enough(double actual, double expected, double scale) {
  if (isnan(expected) || isnan(actual)) return isnan(expected) && isnan(actual);
  if (actual == expected || isinf(scale)) return true;
  double tolerance = 1e-7 + 1e-3 * fabs(expected) + FT_TOLERANCE_ULPS * 0x1p-24 * scale;
  return fabs(actual - expected) <= tolerance;
}

// rtol 1e-3 and atol 1e-7 as ONNX's own runner has them, plus the reference's tolerance
// for what rounding alone may do; other dtypes exactly.
static inline const char *batch_compare_expected(batch *b, const ft_tensor *actual,
                                                 const ft_tensor *expected,
                                                 const ft_reference *reference) {
  if (actual->dtype != expected->dtype ||
      !ft_shape_equal(&actual->shape, &expected->shape))
    return ft_arena_printf(
        b->arena, "is %s %s, expected %s %s", ft_dtype_text(actual->dtype),
        ft_shape_text(&actual->shape, b->arena), ft_dtype_text(expected->dtype),
        ft_shape_text(&expected->shape, b->arena));
  int64_t elements = ft_shape_elements(&actual->shape);
  for (int64_t i = 0; i < elements; i++) {
    bool is_right;
    if (ft_dtype_is_float(actual->dtype))
      is_right = batch_close_enough(ft_tensor_get_f64(actual, i),
                                    ft_tensor_get_f64(expected, i), reference->scale[i]);
    else
      is_right = ft_tensor_get_i64(actual, i) == ft_tensor_get_i64(expected, i);
    if (!is_right)
      return ft_arena_printf(b->arena, "element %lld of %s is %.9g, expected %.9g",
                             (long long)i, ft_shape_text(&actual->shape, b->arena),
                             ft_tensor_get_f64(actual, i),
                             ft_tensor_get_f64(expected, i));
  }
  return NULL;
}

static inline const char *batch_compare_output(batch *b, const batch_case *c, uint32_t k,
                                               const ft_tensor *actual,
                                               const ft_reference *reference) {
  ft_comparison found;
  ft_comparison_init(&found);
  ft_compare_tensor(actual, reference, &found);
  if (!(found.max_ratio <= 1))
    return ft_arena_printf(b->arena, "element %lld is %.9g, the reference says %.9g",
                           (long long)found.worst_index, found.worst_value,
                           found.worst_expected);
  return c->expected ? batch_compare_expected(b, actual, &c->expected[k], reference)
                     : NULL;
}

static inline ft_status batch_run_case(batch *b, batch_case *c, ft_error *error) {
  ft_execution run;
  ft_reference *reference = FT_NEW_ARRAY(b->arena, ft_reference, c->graph->output_count);
  FT_TRY(ft_plan_execute(&b->session, &c->plan, c->module, c->input, false, b->arena,
                         &run, error));
  if (run.outcome != FT_OUTCOME_OK) {
    c->failure =
        ft_arena_printf(b->arena, "%s: %s", ft_outcome_text(run.outcome), run.failure);
    return FT_OK;
  }
  FT_TRY(ft_interpret_graph(c->graph, c->input, b->arena, reference, error));
  for (uint32_t k = 0; k < c->graph->output_count && !c->failure; k++) {
    ft_tensor actual;
    FT_TRY(ft_plan_output(&c->plan, &run, c->input, k, b->arena, &actual, error));
    const char *wrong = batch_compare_output(b, c, k, &actual, &reference[k]);
    if (wrong)
      c->failure =
          ft_arena_printf(b->arena, "output '%s': %s", c->graph->output[k].name, wrong);
  }
  return FT_OK;
}

static inline void batch_run(batch *b) {
  for (uint32_t i = 0; i < b->count; i++) {
    batch_case *c = &b->item[i];
    ft_error error;
    if (c->refusal || c->failure) continue;
    // Too late to refuse: what was imported and planned must run.
    if (batch_run_case(b, c, &error) != FT_OK)
      c->failure = ft_arena_strdup(b->arena, error.text);
  }
}

typedef struct batch_score {
  uint32_t passed, failed, refused;
} batch_score;

// Prints each failure, and each refusal when |list_refused| is set.
static inline batch_score batch_report(const batch *b, bool list_refused) {
  batch_score score = {0};
  for (uint32_t i = 0; i < b->count; i++) {
    const batch_case *c = &b->item[i];
    if (c->failure) {
      score.failed++;
      fprintf(stderr, "FAILED  %s: %s\n", c->name, c->failure);
    } else if (c->refusal) {
      score.refused++;
      if (list_refused) fprintf(stderr, "refused %s: %s\n", c->name, c->refusal);
    } else {
      score.passed++;
    }
  }
  fprintf(stderr, "%u passed, %u failed, %u refused\n", score.passed, score.failed,
          score.refused);
  return score;
}

#endif
