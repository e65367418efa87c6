// Kernels for a GPU that are wrong on purpose, for tests: each says so in another way.
#include "codegen/tactic.h"

typedef enum fault { RACE, BOUNDS, SHARED, FAULTS } fault;
enum { THREADS = 64, TOO_MANY = 80000 };

static const ft_value *output_of(const ft_group_ir *ir) {
  const ft_group *g = &ir->workload->group;
  return &g->graph->value[g->output[0]];
}

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  (void)arena;
  *reason = output_of(ir)->dtype == FT_F32 ? NULL : "faults are for f32";
  return *reason ? -1 : 0;
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  (void)ir;
  (void)target;
  for (int64_t i = 0; i < FAULTS; i++) {
    ft_schedule s = {0};
    ft_schedule_set(&s, "fault", i);
    ft_schedules_add(out, &s);
  }
}

static const char *check(const ft_group_ir *ir, const ft_target *target,
                         const ft_schedule *schedule, ft_arena *arena) {
  (void)ir;
  (void)target;
  (void)arena;
  int64_t value = ft_schedule_get(schedule, "fault", -1);
  return value >= 0 && value < FAULTS && schedule->count == 1 ? NULL : "no such fault";
}

// All threads write the first element of |shared|; one past the end of the output.
static void put_fault(ft_kir *kir, ft_kir_block *at, const ft_group_ir *ir, fault which,
                      ft_kir_id thread) {
  const ft_group *g = &ir->workload->group;
  int64_t count = ft_shape_elements(&output_of(ir)->shape);
  uint32_t out = ft_kir_global(kir, FT_F32, count, g->input_count, true);
  uint32_t shared = ft_kir_shared(kir, at, FT_F32, which == SHARED ? TOO_MANY : THREADS);
  ft_kir_id one = ft_kir_element(kir, at, (ft_kir_type){FT_F32, 1}, 0);
  ft_kir_id zero = ft_kir_number(kir, 0), past = ft_kir_number(kir, count);
  ft_kir_store(kir, at, shared, one, which == RACE ? zero : thread, 1, FT_KIR_CACHED);
  ft_kir_id got = ft_kir_load(kir, at, shared, 1, which == RACE ? zero : thread, 1);
  ft_kir_store(kir, at, out, got, which == BOUNDS ? past : zero, 1, FT_KIR_CACHED);
}

static ft_status build(const ft_group_ir *ir, const ft_schedule *schedule,
                       ft_arena *arena, ft_kernel *out, ft_error *error) {
  ft_kir *kir = ft_kir_create(arena);
  FT_OOM_IF(!kir, error);
  ft_kir_id zero = ft_kir_number(kir, 0), one = ft_kir_number(kir, 1);
  ft_kir_stmt *grid = ft_kir_for(kir, FT_KIR_GRID, zero, one, one);
  ft_kir_stmt *threads =
      ft_kir_for(kir, FT_KIR_THREAD, zero, ft_kir_number(kir, THREADS), one);
  put_fault(kir, &threads->body, ir, (fault)ft_schedule_get(schedule, "fault", 0),
            threads->value);
  ft_kir_append(&grid->body, threads);
  ft_kir_append(&kir->body, grid);
  FT_OOM_IF(kir->failed, error);
  out->kir = kir;
  return FT_OK;
}

const ft_tactic ft_tactic_simt_fault = {.name = "simt_fault",
                                        .is_test = true,
                                        .is_gpu = true,
                                        .match = match,
                                        .space = space,
                                        .check = check,
                                        .build = build};
