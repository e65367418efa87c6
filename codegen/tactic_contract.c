// Blocked matrix products and convolutions, with prologue and epilogue.
#include "codegen/contract.h"
#include "codegen/tactic.h"

static const char *const knobs[] = {"compiler", "kc",     "mc",      "mr",     "nc", "nr",
                                    "pack_a",   "pack_b", "threads", "vector", NULL};

enum { SKINNY = 8, SMALL_WORK = 1 << 18 };

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  *reason = ft_contract_refusal(ir->workload, arena);
  return *reason ? -1 : 2;
}

static int64_t bounded(const ft_schedule *schedule, const char *name) {
  int64_t value = ft_schedule_get(schedule, name, 0);
  return value > 0 && value <= 1 << 24 ? value : 0;
}

static ft_contract_choice choice_of(const ft_schedule *schedule) {
  int64_t vector = bounded(schedule, "vector");
  return (ft_contract_choice){.vector = vector <= 64 ? (uint32_t)vector : 0,
                              .mr = bounded(schedule, "mr"),
                              .nr = bounded(schedule, "nr"),
                              .mc = bounded(schedule, "mc"),
                              .nc = bounded(schedule, "nc"),
                              .kc = bounded(schedule, "kc"),
                              .packs_a = ft_schedule_get(schedule, "pack_a", 0) == 1,
                              .packs_b = ft_schedule_get(schedule, "pack_b", 0) == 1};
}

static bool is_flag(const ft_schedule *schedule, const char *name) {
  int64_t value = ft_schedule_get(schedule, name, -1);
  return value == 0 || value == 1;
}

// Sums, a row of B and an element of A are in registers at once.
static const char *register_refusal(const ft_contract_choice *c, const ft_target *target,
                                    ft_arena *arena) {
  int64_t bytes = target->vector_bytes ? target->vector_bytes : 16;
  int64_t have = bytes == 64 ? 32 : 16;
  int64_t each = (4 * (int64_t)c->vector + bytes - 1) / bytes;
  int64_t vectors = c->vector ? c->nr / (int64_t)c->vector : 0;
  int64_t need = (c->mr * vectors + vectors) * each + 1;
  if (need <= have) return NULL;
  return ft_arena_printf(arena, "%lld registers of %lld", (long long)need,
                         (long long)have);
}

static const char *check(const ft_group_ir *ir, const ft_target *target,
                         const ft_schedule *schedule, ft_arena *arena) {
  const char *wrong = ft_schedule_refusal(schedule, knobs, target, arena);
  if (wrong) return wrong;
  if (!is_flag(schedule, "pack_a")) return "pack_a is not 0 or 1";
  if (!is_flag(schedule, "pack_b")) return "pack_b is not 0 or 1";
  ft_contract_choice choice = choice_of(schedule);
  wrong = register_refusal(&choice, target, arena);
  if (wrong) return wrong;
  ft_contract contract;
  if (ft_contract_plan(ir->workload, &choice, arena, &contract, &wrong, NULL) != FT_OK)
    return "out of memory";
  return wrong;
}

static ft_status build(const ft_group_ir *ir, const ft_schedule *schedule,
                       ft_arena *arena, ft_kernel *out, ft_error *error) {
  ft_contract contract;
  const char *reason;
  ft_contract_choice choice = choice_of(schedule);
  FT_TRY(ft_contract_plan(ir->workload, &choice, arena, &contract, &reason, error));
  if (reason) FT_FAIL(error, FT_INVALID_ARGUMENT, "schedule: %s", reason);
  FT_TRY(ft_contract_build(&contract, arena, &out->kir, error));
  out->grid = contract.grid;
  out->scratch_bytes = out->kir->scratch_bytes;
  return FT_OK;
}

// ---- the space
// ----------------------------------------------------------------------------

typedef struct offering {
  const ft_group_ir *ir;
  const ft_target *target;
  ft_schedules *out;
  ft_contract problem;
  int64_t threads, lanes;
  const char *compiler;
} offering;

static bool is_offered(const ft_schedules *list, const ft_schedule *s) {
  for (uint32_t i = 0; i < list->count; i++) {
    if (ft_schedule_equal(&list->item[i], s)) return true;
  }
  return false;
}

static void offer(const offering *o, const ft_contract_choice *c) {
  ft_schedule s = {0};
  ft_schedule_set_text(&s, "compiler", o->compiler);
  ft_schedule_set(&s, "kc", c->kc);
  ft_schedule_set(&s, "mc", c->mc);
  ft_schedule_set(&s, "mr", c->mr);
  ft_schedule_set(&s, "nc", c->nc);
  ft_schedule_set(&s, "nr", c->nr);
  ft_schedule_set(&s, "pack_a", c->packs_a);
  ft_schedule_set(&s, "pack_b", c->packs_b);
  ft_schedule_set(&s, "threads", o->threads);
  ft_schedule_set(&s, "vector", c->vector);
  if (is_offered(o->out, &s)) return;
  if (!check(o->ir, o->target, &s, o->out->arena)) ft_schedules_add(o->out, &s);
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  if (!target->compiler_count) return;
  offering o = {.ir = ir,
                .target = target,
                .out = out,
                .problem = ft_contract_problem(ir->workload)};
  o.compiler = target->compiler[0].name;
  o.threads = target->threads ? target->threads : 1;
  const ft_contract *p = &o.problem;
  int64_t lanes = target->vector_bytes / 4;
  while (lanes > 1 && lanes > p->n) lanes /= 2;
  ft_contract_choice c = {.vector = (uint32_t)lanes,
                          .mr = p->m < 8 ? p->m : 8,
                          .nr = 3 * lanes <= p->n ? 3 * lanes : lanes,
                          .mc = 128,
                          .nc = 192,
                          .kc = 256,
                          .packs_a = true,
                          .packs_b = true};
  offer(&o, &c);
  if (out->count) return;
  if (ft_contract_plainest(p, out->arena, &c, NULL) != FT_OK)
    out->failed = true;
  else
    offer(&o, &c);
}

const ft_tactic ft_tactic_contract = {
    .name = "contract", .match = match, .space = space, .check = check, .build = build};
