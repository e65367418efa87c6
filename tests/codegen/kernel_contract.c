// Blocked contractions against the double-precision interpreter.
#include "codegen/contract.h"
#include "contractions.h"
#include "graphs.h"
#include "trying.h"

static uint32_t setting(const char *name, uint32_t fallback) {
  const char *text = getenv(name);
  return text ? (uint32_t)strtoul(text, NULL, 10) : fallback;
}

static bool matches(session *s, const ft_workload *w) {
  const char *names[8], *reason;
  uint32_t count = s->builder.match(s->builder.self, w, s->arena, names, 8, &reason);
  for (uint32_t i = 0; i < count; i++) {
    if (!strcmp(names[i], "contract")) return true;
  }
  return false;
}

// ---- schedules
// ----------------------------------------------------------------------------

static ft_schedule schedule_of(const session *s, const ft_contract_choice *c) {
  ft_schedule k = {0};
  ft_schedule_set_text(&k, "compiler", s->target.compiler[0].name);
  ft_schedule_set(&k, "kc", c->kc);
  ft_schedule_set(&k, "mc", c->mc);
  ft_schedule_set(&k, "mr", c->mr);
  ft_schedule_set(&k, "nc", c->nc);
  ft_schedule_set(&k, "nr", c->nr);
  ft_schedule_set(&k, "pack_a", c->packs_a);
  ft_schedule_set(&k, "pack_b", c->packs_b);
  ft_schedule_set(&k, "threads", 2);
  ft_schedule_set(&k, "vector", c->vector);
  return k;
}

// Knobs out of the whole range: most are refused, none may fail later.
static ft_contract_choice random_choice(session *s) {
  static const int64_t columns[] = {1, 2, 4, 8, 16, 32, 48, 64};
  static const int64_t blocks[] = {1, 5, 16, 30, 48, 64, 100, 1000};
  ft_contract_choice c = {.vector = 1u << ft_rng_below(&s->rng, 6)};
  c.mr = 1 + (int64_t)ft_rng_below(&s->rng, 9);
  c.nr = columns[ft_rng_below(&s->rng, 8)];
  c.mc = blocks[ft_rng_below(&s->rng, 8)];
  c.nc = blocks[ft_rng_below(&s->rng, 8)];
  c.kc = blocks[ft_rng_below(&s->rng, 8)];
  c.packs_a = ft_rng_below(&s->rng, 2);
  c.packs_b = ft_rng_below(&s->rng, 2);
  return c;
}

static ft_candidate draw_contract(session *s, const test_case *c) {
  ft_candidate candidate = {&c->workload, &s->target, "contract", {0}};
  for (int i = 0; i < 200 && ft_rng_below(&s->rng, 100); i++) {
    ft_contract_choice choice = random_choice(s);
    candidate.schedule = schedule_of(s, &choice);
    if (!s->builder.check(s->builder.self, &candidate, s->arena)) return candidate;
  }
  ft_schedule *list;
  uint32_t count;
  cr_assert_eq(s->builder.space(s->builder.self, &c->workload, "contract", &s->target,
                                s->arena, &list, &count, NULL),
               FT_OK);
  cr_assert(count > 0 && count <= 24, "seed %llu: %u schedules",
            (unsigned long long)c->seed, count);
  candidate.schedule = list[ft_rng_below(&s->rng, count)];
  return candidate;
}

static void run_contracts(session *s, const test_case *cases, uint32_t count,
                          bool from_space) {
  ft_candidate *candidate = FT_NEW_ARRAY(s->arena, ft_candidate, count);
  ft_module *module = FT_NEW_ARRAY(s->arena, ft_module, count);
  for (uint32_t i = 0; i < count; i++) {
    candidate[i] = draw_contract(s, &cases[i]);
    if (!from_space) continue;
    ft_schedule *list;
    uint32_t schedules;
    cr_assert_eq(s->builder.space(s->builder.self, &cases[i].workload, "contract",
                                  &s->target, s->arena, &list, &schedules, NULL),
                 FT_OK);
    cr_assert(schedules > 0 && schedules <= 24, "%u schedules", schedules);
    candidate[i].schedule = list[ft_rng_below(&s->rng, schedules)];
  }
  ft_error error;
  cr_assert_eq(s->builder.build(s->builder.self, candidate, count, false, s->arena,
                                module, &error),
               FT_OK, "%s", error.text);
  for (uint32_t i = 0; i < count; i++) {
    if (getenv("FT_SHOW"))
      fprintf(stderr, "seed %llu %s\n%s\n", (unsigned long long)cases[i].seed,
              ft_schedule_json(&candidate[i].schedule, s->arena), module[i].source);
    run_case(s, &cases[i], &candidate[i], &module[i]);
  }
  s->kernels += count;
}

static void run_random(uint64_t seed, uint32_t count, bool from_space) {
  session s = session_open(seed);
  session_start(&s);
  s.is_mild = true;
  test_case *cases = FT_NEW_ARRAY(s.arena, test_case, count);
  for (uint32_t made = 0; made < count; seed++) {
    ft_graph *graph = random_contraction(seed, s.arena);
    if (!graph->primitive_count) continue;
    bool is_taken = make_case(&s, graph, 0, graph->primitive_count, seed, &cases[made]) &&
                    matches(&s, &cases[made].workload);
    s.accepted += is_taken;
    s.refused += !is_taken;
    made += is_taken;
  }
  for (uint32_t i = 0; i < count; i += 32)
    run_contracts(&s, cases + i, count - i < 32 ? count - i : 32, from_space);
  fprintf(stderr, "%u kernels, %u graphs refused\n", s.kernels, s.refused);
  cr_assert_gt(s.accepted, s.refused);
  session_close(&s);
}

Test(codegen_contract, random_groups_with_random_knobs_agree_with_the_interpreter,
     .timeout = 280) {
  run_random(setting("FT_RANDOM_SEED", 9000), setting("FT_RANDOM_KERNELS", 96), false);
}

Test(codegen_contract, random_groups_with_offered_knobs_agree_with_the_interpreter,
     .timeout = 280) {
  run_random(setting("FT_RANDOM_SEED", 77000), setting("FT_RANDOM_KERNELS", 64), true);
}
