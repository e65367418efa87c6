// Blocked matrix products and convolutions, with prologue and epilogue.
#include <string.h>

#include "codegen/contract.h"
#include "codegen/tactic.h"

static const char *const knobs[] = {"compiler", "kc",     "mc",      "mr",     "nc", "nr",
                                    "pack_a",   "pack_b", "threads", "vector", NULL};

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

// Products below SMALL run on one thread, below MIDDLE also on one.
enum { SMALL = 1 << 20, MIDDLE = 1 << 22, SKINNY = 8, MOST = 24 };

typedef struct offering {
  const ft_group_ir *ir;
  const ft_target *target;
  ft_schedules *out;
  ft_contract problem;
  ft_contract_choice least;  // what always works: its blocks are no larger than needed
  bool must_a, must_b;
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
  if (o->out->count == MOST || is_offered(o->out, &s)) return;
  if (!check(o->ir, o->target, &s, o->out->arena)) ft_schedules_add(o->out, &s);
}

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static int64_t parts(int64_t whole, int64_t part) {
  return (whole + part - 1) / part;
}

// Rows and vectors in registers.
typedef struct pattern {
  int64_t rows, vectors;
} pattern;

// Whether |blocks| keep all threads busy to the end, or nearly.
static bool is_balanced(const offering *o, int64_t blocks) {
  int64_t rounds = parts(blocks, o->threads);
  return rounds >= 2 && (double)(rounds * o->threads) <= 1.12 * (double)blocks;
}

// Smaller blocks until the threads have equal shares.
static void share(const offering *o, ft_contract_choice *c) {
  const ft_contract *q = &o->problem;
  int64_t rows = o->must_b ? o->least.mc : 1, columns = o->must_a ? o->least.nc : 1;
  c->mc = smaller(larger(larger(c->mc, c->mr), rows), q->m);
  c->nc = smaller(larger(larger(c->nc, c->nr), columns), q->n);
  while (!is_balanced(o, q->batches * parts(q->m, c->mc) * parts(q->n, c->nc))) {
    int64_t narrow = parts(c->nc, 2), low = parts(c->mc, 2);
    if (narrow >= larger(c->nr, columns) && c->nc > c->nr)
      c->nc = narrow;
    else if (low >= larger(2 * c->mr, rows))
      c->mc = low;
    else
      return;
  }
}

// Blocks for |p|: as large as |mc|, |nc|, |kc|, when the threads can share them.
static ft_contract_choice blocks_of(const offering *o, pattern p, int64_t mc, int64_t nc,
                                    int64_t kc) {
  const ft_contract *q = &o->problem;
  ft_contract_choice c = {.vector = (uint32_t)o->lanes, .packs_b = true};
  c.mr = smaller(p.rows, q->m);
  c.nr = smaller(p.vectors, q->n / o->lanes) * o->lanes;
  c.mc = mc;
  c.nc = nc;
  c.kc = larger(smaller(kc, q->k), 1);
  c.packs_a = o->must_a;
  share(o, &c);
  return c;
}

// What is computed, over what must be: the edges overlap.
static double waste(const offering *o, pattern p) {
  const ft_contract *q = &o->problem;
  ft_contract_choice c = blocks_of(o, p, q->m, q->n, q->k);
  return (double)(parts(q->m, c.mr) * c.mr) / (double)q->m *
         (double)(parts(q->n, c.nr) * c.nr) / (double)q->n;
}

// The patterns that fill the registers, least waste first, else in this order.
static void order_patterns(const offering *o, pattern out[3]) {
  static const pattern many[] = {{8, 3}, {12, 2}, {6, 4}},
                       few[] = {{6, 2}, {4, 3}, {4, 2}};
  for (int i = 0; i < 3; i++) {
    pattern p = o->target->vector_bytes == 64 ? many[i] : few[i];
    int at = i;
    for (; at > 0 && waste(o, p) < 0.97 * waste(o, out[at - 1]); at--)
      out[at] = out[at - 1];
    out[at] = p;
  }
}

// The usual blocks come first; what differs from them follows, by how often it won.
static void offer_blocks(const offering *o) {
  pattern p[3];
  order_patterns(o, p);
  const ft_contract *q = &o->problem;
  int64_t nr = p[0].vectors * o->lanes;
  ft_contract_choice first = blocks_of(o, p[0], 256, 4 * nr, 256), c = first;
  offer(o, &first);
  c = blocks_of(o, p[0], 128, 2 * nr, 512);
  offer(o, &c);
  c = first;
  c.packs_b = o->must_b;
  offer(o, &c);
  c = blocks_of(o, p[1], 256, 4 * nr, 256);
  offer(o, &c);
  c = blocks_of(o, p[0], 256, 4 * nr, 768);
  offer(o, &c);
  c = first;
  c.mc = larger(c.mc, parts(q->m, o->threads));  // packs B as rarely as possible
  offer(o, &c);
  c = blocks_of(o, p[2], 256, 4 * nr, 256);
  offer(o, &c);
  c = blocks_of(o, p[1], 512, 8 * nr, 256);
  c.packs_a = true;
  offer(o, &c);
}

// Few rows: B is streamed once, some terms of all columns at a time, and not packed.
static void offer_stream(const offering *o) {
  const ft_contract *q = &o->problem;
  int64_t vectors = smaller(q->m == 1 ? 4 : 26 / q->m - 1, q->n / o->lanes);
  static const int64_t terms[] = {16, 8, 64};
  for (int i = 0; i < 3; i++) {
    ft_contract_choice c = {.vector = (uint32_t)o->lanes, .mr = q->m, .mc = q->m};
    c.nr = larger(vectors, 1) * o->lanes;
    c.nc = larger(parts(q->n, o->threads), c.nr);
    c.kc = smaller(terms[i], q->k);
    c.packs_a = o->must_a;
    offer(o, &c);
  }
  ft_contract_choice c = blocks_of(o, (pattern){8, 3}, 8, 12 * o->lanes, 256);
  c.packs_b = false;
  offer(o, &c);
}

static bool prepare(offering *o) {
  ft_arena *arena = o->out->arena;
  o->problem = ft_contract_problem(o->ir->workload);
  const ft_contract *p = &o->problem;
  return ft_contract_plainest(p, arena, &o->least, NULL) == FT_OK &&
         ft_contract_must_pack(p, 0, arena, &o->must_a, NULL) == FT_OK &&
         ft_contract_must_pack(p, 1, arena, &o->must_b, NULL) == FT_OK;
}

static void offer_all(offering *o) {
  const ft_contract *p = &o->problem;
  int64_t widest = larger(o->target->vector_bytes / 4, 4);
  for (o->lanes = widest; o->lanes >= 1 && !o->out->count; o->lanes /= 2) {
    if (o->lanes > p->n) continue;
    if (p->m <= SKINNY && !o->must_b)
      offer_stream(o);
    else
      offer_blocks(o);
  }
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  if (!target->compiler_count) return;
  offering o = {.ir = ir, .target = target, .out = out};
  o.compiler = target->compiler[0].name;
  o.threads = target->threads ? target->threads : 1;
  if (!prepare(&o)) {
    out->failed = true;
    return;
  }
  const ft_contract *p = &o.problem;
  double work = (double)p->batches * (double)p->m * (double)p->n * (double)p->k;
  int64_t all = o.threads;
  if (work < SMALL) o.threads = 1;
  if (!p->is_empty && p->k) offer_all(&o);
  if (!out->count) offer(&o, &o.least);
  if (work < SMALL / 8 || work > MIDDLE || all == 1) return;
  // A launch may take as long as the work: the same blocks, the other way.
  ft_schedule other = out->item[0];
  for (uint32_t i = 0; i < other.count; i++) {
    if (!strcmp(other.knob[i].name, "threads"))
      other.knob[i].value = o.threads == 1 ? all : 1;
  }
  ft_schedules_add(out, &other);
}

const ft_tactic ft_tactic_contract = {
    .name = "contract", .match = match, .space = space, .check = check, .build = build};
