// Test only: kernels that misbehave, one way per value of the knob "fault". They fill
// output 0 with zeros first where that makes the fault plainer.
#include <string.h>

#include "codegen/expressions.h"
#include "codegen/print_c.h"
#include "codegen/tactic.h"

static const char *const knobs[] = {"compiler", "fault", "threads", NULL};

// What the body does, with OUT the first output as bytes and BYTES its size.
static const struct {
  const char *name, *text;
} faults[] = {
    // Works once, when its output is checked, and never again: too fast to be true.
    {"lazy", NULL},
    {"segfault", "  *(volatile int *)8 = 1;\n"},
    {"hang", "  for (volatile int i = 0;; i = 1) {\n  }\n"},
    {"overrun", "  for (int64_t i = 0; i < bytes + (8 << 20); i++) out[i] = 1;\n"},
    {"overrun_few", "  for (int64_t i = 0; i < bytes + 4; i++) out[i] = 1;\n"},
    {"nan", "  for (int64_t i = 0; i < bytes; i++) out[i] = 255;\n"},
    {"error", "  return 7;\n"},
    {"partial", "  for (int64_t i = 0; i < bytes / 2; i++) out[i] = 0;\n"},
    {"no_compile", "  this does not compile;\n"},
    // Right for a relu, two thousand times over.
    {"slow",
     "  const volatile float *x = buffers[0];\n"
     "  volatile float *y = (volatile float *)out;\n"
     "  for (int again = 0; again < 2000; again++)\n"
     "    for (int64_t i = 0; i < bytes / 4; i++) y[i] = x[i] > 0 ? x[i] : 0;\n"},
};

enum { FAULTS = sizeof faults / sizeof *faults };

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  (void)arena;
  *reason = ir->output_count ? NULL : "fault needs an output";
  return *reason ? -1 : 0;
}

// The default schedule of the pointwise tactic, which the lazy kernel is made of.
static bool find_pointwise(const ft_group_ir *ir, const ft_target *target,
                           ft_arena *arena, ft_schedule *out) {
  const char *reason;
  ft_schedules all = {.arena = arena};
  if (ft_tactic_pointwise.match(ir, arena, &reason) < 0) return false;
  ft_tactic_pointwise.space(ir, target, &all);
  if (all.count) *out = all.item[0];
  return all.count > 0;
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  for (int i = 0; i < FAULTS && target->compiler_count; i++) {
    ft_schedule s = {0}, whole;
    if (!faults[i].text && !find_pointwise(ir, target, out->arena, &whole)) continue;
    ft_schedule_set_text(&s, "compiler", target->compiler[0].name);
    ft_schedule_set_text(&s, "fault", faults[i].name);
    ft_schedule_set(&s, "threads", 1);
    ft_schedules_add(out, &s);
  }
}

// FAULTS: none.
static int fault_of(const ft_schedule *schedule) {
  const char *name = ft_schedule_get_text(schedule, "fault");
  int i = 0;
  while (i < FAULTS && (!name || strcmp(faults[i].name, name) != 0)) i++;
  return i;
}

static const char *check(const ft_group_ir *ir, const ft_target *target,
                         const ft_schedule *schedule, ft_arena *arena) {
  const char *wrong = ft_schedule_refusal(schedule, knobs, target, arena);
  if (wrong) return wrong;
  int fault = fault_of(schedule);
  if (fault == FAULTS) return "fault is unknown";
  ft_schedule whole;
  bool can = faults[fault].text || find_pointwise(ir, target, arena, &whole);
  return can ? NULL : "a lazy fault needs the pointwise tactic";
}

// The pointwise tactic's kernel, whose blocks return at once when their part of output 0
// holds something already: four bytes in the middle of which not all bits are set, as
// they are in the poison of floats.
static ft_status build_lazy(const ft_group_ir *ir, ft_arena *arena, ft_kernel *out,
                            ft_error *error) {
  // Any target: only its vectors and threads matter here, and the least will do.
  const ft_target plain = {.vector_bytes = 16,
                           .threads = 1,
                           .compiler_count = 1,
                           .compiler = {{.name = "any", .is_clang = true}}};
  const ft_access *access = &ir->output[0].access;
  int64_t bytes = access->count * (int64_t)ft_dtype_bytes(access->dtype);
  ft_schedule schedule;
  const char *body;
  if (!find_pointwise(ir, &plain, arena, &schedule))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "a lazy fault needs the pointwise tactic");
  FT_TRY(ft_tactic_pointwise.build(ir, &schedule, arena, out, error));
  FT_TRY(ft_print_c(out->kir, &body, error));
  out->kir = NULL;
  out->body = ft_arena_printf(
      arena,
      "{\n  const volatile uint8_t *out = (const uint8_t *)buffers[%u] +"
      " (2 * block + 1) * %lldll / %u / 8 * 4;\n"
      "  if ((out[0] & out[1] & out[2] & out[3]) != 255) return 0;\n%s",
      access->argument, (long long)bytes, out->grid, body + strcspn(body, "{") + 1);
  FT_OOM_IF(!out->body, error);
  return FT_OK;
}

static ft_status build(const ft_group_ir *ir, const ft_schedule *schedule,
                       ft_arena *arena, ft_kernel *out, ft_error *error) {
  int fault = fault_of(schedule);
  if (fault == FAULTS) FT_FAIL(error, FT_INVALID_ARGUMENT, "schedule: no such fault");
  if (!faults[fault].text) return build_lazy(ir, arena, out, error);
  const ft_access *access = &ir->output[0].access;
  *out = (ft_kernel){.grid = 1};
  out->body = ft_arena_printf(
      arena,
      "{\n  (void)scalars, (void)block, (void)thread, (void)scratch;\n"
      "  volatile uint8_t *out = buffers[%u];\n"
      "  const int64_t bytes = %lld;\n  (void)out, (void)bytes;\n%s  return 0;\n}\n",
      access->argument,
      (long long)(access->count * (int64_t)ft_dtype_bytes(access->dtype)),
      faults[fault].text);
  FT_OOM_IF(!out->body, error);
  return FT_OK;
}

const ft_tactic ft_tactic_fault = {.name = "fault",
                                   .is_test = true,
                                   .match = match,
                                   .space = space,
                                   .check = check,
                                   .build = build};
