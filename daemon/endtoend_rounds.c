// Rounds of whole plans, and the decision.
#include <string.h>

#include "daemon/endtoend_private.h"
#include "measure/statistics.h"

static ft_status column_time(const ft_compare_result *r, uint32_t column, ft_arena *arena,
                             uint64_t **out_sample, ft_time *out, ft_error *error) {
  uint64_t *sample = FT_NEW_ARRAY(arena, uint64_t, r->rounds);
  uint8_t *flags = FT_NEW_ARRAY(arena, uint8_t, r->rounds);
  FT_OOM_IF(!sample || !flags, error);
  for (uint32_t i = 0; i < r->rounds; i++) {
    sample[i] = r->time_ns[(size_t)i * r->programs + column];
    flags[i] = r->flags[(size_t)i * r->programs + column];
  }
  *out_sample = sample;
  *out = ft_median_unflagged(sample, flags, r->rounds, arena);
  return FT_OK;
}

static uint32_t list_distinct(const ft_contender *contender, uint32_t count,
                              uint32_t out[FT_CONTENDERS]) {
  uint32_t distinct = 0;
  for (uint32_t i = 0; i < count; i++)
    if (contender[i].is_present && contender[i].same_as == i) out[distinct++] = i;
  return distinct;
}

static ft_status need_contenders(const ft_contender *contender, uint32_t distinct,
                                 ft_error *error) {
  if (distinct > 0) return FT_OK;
  FT_FAIL(error, FT_INTERNAL, "no plan ran correctly; tuned: %s; unfused: %s",
          contender[FT_PLAN_TUNED].absence, contender[FT_PLAN_UNFUSED].absence);
}

static ft_status compare_distinct(ft_session *s, const ft_contender *contender,
                                  uint32_t max_rounds, uint64_t limit_ns, uint64_t seed,
                                  ft_arena *arena, ft_rounds *out, ft_error *error) {
  const ft_program *program[FT_CONTENDERS];
  for (uint32_t i = 0; i < out->distinct; i++)
    program[i] = &contender[out->column[i]].program;
  FT_TRY(ft_cpu_runner_compare(s->runner, program, out->distinct, max_rounds, limit_ns,
                               seed, arena, &out->comparison, error));
  if (out->comparison.outcome != FT_OUTCOME_OK)
    FT_FAIL(error, FT_INTERNAL, "the %s plan ended as %s in the comparison",
            program[out->comparison.culprit]->name,
            ft_outcome_text(out->comparison.outcome));
  return FT_OK;
}

ft_status ft_contenders_compare(ft_session *s, const ft_contender *contender,
                                uint32_t count, uint32_t max_rounds, uint64_t limit_ns,
                                uint64_t seed, ft_arena *arena, ft_rounds *out,
                                ft_error *error) {
  memset(out, 0, sizeof *out);
  out->distinct = list_distinct(contender, count, out->column);
  FT_TRY(need_contenders(contender, out->distinct, error));
  FT_TRY(compare_distinct(s, contender, max_rounds, limit_ns, seed, arena, out, error));
  for (uint32_t i = 0; i < out->distinct; i++)
    FT_TRY(column_time(&out->comparison, i, arena, &out->sample[out->column[i]],
                       &out->time[out->column[i]], error));
  for (uint32_t i = 0; i < count; i++) {
    if (!contender[i].is_present) continue;
    out->time[i] = out->time[contender[i].same_as];
    out->sample[i] = out->sample[contender[i].same_as];
  }
  return FT_OK;
}

// ---- the decision ---------------------------------------------------------------------

typedef struct stages {
  ft_session *session;
  const ft_contender *contender;
  const uint32_t *column;
  ft_deadlines deadlines;
  uint64_t seed;
  uint32_t rounds;
} stages;

// The rounds without which nothing can be said are owed: they may use the grace.
static uint64_t stages_left(void *ctx) {
  const stages *st = ctx;
  bool is_owed = st->rounds < FT_CONTEST_FEWEST;
  return ft_left_ns(is_owed ? st->deadlines.grace_ns : st->deadlines.budget_ns);
}

static ft_status run_stage(void *ctx, const uint32_t *column, uint32_t count,
                           uint32_t rounds, ft_arena *arena, ft_compare_result *out,
                           ft_error *error) {
  stages *st = ctx;
  const ft_program *program[FT_CONTENDERS];
  for (uint32_t i = 0; i < count; i++)
    program[i] = &st->contender[st->column[column[i]]].program;
  FT_TRY(ft_cpu_runner_compare(st->session->runner, program, count, rounds,
                               stages_left(st), st->seed++, arena, out, error));
  st->rounds += out->rounds;
  return FT_OK;
}

static uint32_t column_of(const uint32_t *column, uint32_t distinct, uint32_t contender) {
  for (uint32_t i = 0; i < distinct; i++)
    if (column[i] == contender) return i;
  return FT_CONTEST_NOBODY;
}

static ft_status hold_contest(stages *st, uint32_t distinct, ft_arena *arena,
                              ft_decision *out, ft_error *error) {
  const ft_contender *contender = st->contender;
  uint32_t base = column_of(st->column, distinct, contender[FT_PLAN_UNFUSED].same_as),
           incumbent =
               column_of(st->column, distinct, contender[FT_PLAN_INCUMBENT].same_as);
  if (!contender[FT_PLAN_UNFUSED].is_present || base == FT_CONTEST_NOBODY) base = 0;
  if (!contender[FT_PLAN_INCUMBENT].is_present) incumbent = FT_CONTEST_NOBODY;
  double round_ns = 0;
  for (uint32_t i = 0; i < distinct; i++)
    round_ns += ft_plan_additive_ns(&contender[st->column[i]].plan) + FT_FLUSH_NS;
  ft_contest_runner runner = {st, run_stage, stages_left};
  return ft_contest_run(&runner, distinct, base, incumbent, (uint64_t)round_ns, arena,
                        &out->contest, error);
}

ft_status ft_contenders_decide(ft_session *s, const ft_contender contender[FT_CONTENDERS],
                               const ft_deadlines *deadlines, uint64_t seed,
                               ft_arena *arena, ft_decision *out, ft_error *error) {
  memset(out, 0, sizeof *out);
  uint32_t distinct = list_distinct(contender, FT_CONTENDERS, out->column);
  FT_TRY(need_contenders(contender, distinct, error));
  stages st = {s, contender, out->column, *deadlines, seed, 0};
  FT_TRY(hold_contest(&st, distinct, arena, out, error));
  FT_TRY(ft_contest_decide(&out->contest, arena, &out->verdict, error));
  out->served = out->column[out->verdict.served];
  for (uint32_t i = 0; i < distinct; i++)
    FT_TRY(ft_contest_time(&out->contest, i, arena, &out->time[out->column[i]], error));
  for (uint32_t i = 0; i < FT_CONTENDERS; i++)
    if (contender[i].is_present) out->time[i] = out->time[contender[i].same_as];
  return FT_OK;
}
