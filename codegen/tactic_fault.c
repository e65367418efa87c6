// Test only: kernels that misbehave, one way per value of the knob "fault". They fill
// output 0 with zeros first where that makes the fault plainer.
#include <string.h>

#include "codegen/expressions.h"
#include "codegen/tactic.h"

static const char *const knobs[] = {"compiler", "fault", "threads", NULL};

// What the body does, with OUT the first output as bytes and BYTES its size.
static const struct {
  const char *name, *text;
} faults[] = {
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

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  (void)ir;
  for (int i = 0; i < FAULTS && target->compiler_count; i++) {
    ft_schedule s = {0};
    ft_schedule_set_text(&s, "compiler", target->compiler[0].name);
    ft_schedule_set_text(&s, "fault", faults[i].name);
    ft_schedule_set(&s, "threads", 1);
    ft_schedules_add(out, &s);
  }
}

static const char *text_of(const ft_schedule *schedule) {
  const char *name = ft_schedule_get_text(schedule, "fault");
  for (int i = 0; name && i < FAULTS; i++) {
    if (!strcmp(faults[i].name, name)) return faults[i].text;
  }
  return NULL;
}

static const char *check(const ft_group_ir *ir, const ft_target *target,
                         const ft_schedule *schedule, ft_arena *arena) {
  (void)ir;
  const char *wrong = ft_schedule_refusal(schedule, knobs, target, arena);
  return wrong ? wrong : text_of(schedule) ? NULL : "fault is unknown";
}

static ft_status build(const ft_group_ir *ir, const ft_schedule *schedule,
                       ft_arena *arena, ft_kernel *out, ft_error *error) {
  const ft_access *access = &ir->output[0].access;
  *out = (ft_kernel){.grid = 1};
  out->body = ft_arena_printf(
      arena,
      "{\n  (void)scalars, (void)block, (void)thread, (void)scratch;\n"
      "  volatile uint8_t *out = buffers[%u];\n"
      "  const int64_t bytes = %lld;\n  (void)out, (void)bytes;\n%s  return 0;\n}\n",
      access->argument,
      (long long)(access->count * (int64_t)ft_dtype_bytes(access->dtype)),
      text_of(schedule));
  FT_OOM_IF(!out->body, error);
  return FT_OK;
}

const ft_tactic ft_tactic_fault = {.name = "fault",
                                   .is_test = true,
                                   .match = match,
                                   .space = space,
                                   .check = check,
                                   .build = build};
