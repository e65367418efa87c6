#include "daemon/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "daemon/endtoend.h"
#include "graph/inputs.h"
#include "measure/statistics.h"

static const uint64_t default_limit_ns = 60000000000u;
enum { DEFAULT_ROUNDS = 60 };

typedef struct bench {
  ft_session *session;
  const ft_model *model;
  ft_bench_options options;
  ft_arena *arena;
  const ft_tensor *input;
  ft_contender contender[FT_PLAN_KINDS];
  int64_t plan_id[FT_PLAN_KINDS];
  ft_rounds decision;
  ft_bench_result *out;
} bench;

// ---- the stored plans -----------------------------------------------------------------

static int kind_of(const char *role) {
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++)
    if (strcmp(role, ft_plan_kind_text((ft_plan_kind)kind)) == 0) return kind;
  return -1;
}

// Two roles may hold one plan: it runs once.
static void find_twin(bench *b, int kind) {
  ft_contender *c = &b->contender[kind];
  for (int other = 0; other < FT_PLAN_KINDS; other++) {
    const ft_contender *o = &b->contender[other];
    if (other == kind || !o->is_present || o->same_as != (ft_plan_kind)other) continue;
    if (ft_hash_equal(&b->out->side[other].plan, &b->out->side[kind].plan))
      c->same_as = (ft_plan_kind)other;
  }
}

static ft_status load(bench *b, const ft_stored_plan *stored, int kind, ft_error *error) {
  ft_contender *c = &b->contender[kind];
  ft_bench_side *side = &b->out->side[kind];
  ft_session *s = b->session;
  b->plan_id[kind] = stored->id;
  if (stored->is_served) b->out->served = (ft_plan_kind)kind;
  FT_TRY(ft_plan_parse(stored->body, b->model->graph, &s->target, b->arena, &c->plan,
                       error));
  side->plan = c->plan.hash;
  if (*stored->quarantined) {
    c->absence = ft_arena_printf(b->arena, "quarantined: %s", stored->quarantined);
    FT_OOM_IF(!c->absence, error);
    return FT_OK;
  }
  ft_plan built = c->plan;
  built.group = ft_arena_memdup(b->arena, c->plan.group,
                                c->plan.group_count * sizeof *c->plan.group);
  FT_OOM_IF(!built.group && c->plan.group_count > 0, error);
  FT_TRY(ft_plan_build(s, &built, false, b->arena, &c->module, error));
  FT_TRY(ft_plan_program(&built, ft_plan_kind_text((ft_plan_kind)kind), c->module,
                         b->input, b->arena, &c->program, error));
  c->is_present = true;
  find_twin(b, kind);
  return FT_OK;
}

static ft_status load_all(bench *b, ft_error *error) {
  ft_stored_plan *stored;
  uint32_t count;
  FT_TRY(ft_session_query(b->session, b->model, b->arena, &b->out->answer, error));
  FT_TRY(ft_store_last_plans(b->session->store, b->model->graph, &b->session->target,
                             b->arena, &stored, &count, error));
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++) {
    b->contender[kind].same_as = (ft_plan_kind)kind;
    b->contender[kind].absence = "the last run stored none";
  }
  for (uint32_t i = 0; i < count; i++) {
    int kind = kind_of(stored[i].role);
    if (kind >= 0 && !b->contender[kind].is_present)
      FT_TRY(load(b, &stored[i], kind, error));
  }
  return FT_OK;
}

static ft_status make_inputs(bench *b, ft_error *error) {
  const ft_graph *graph = b->model->graph;
  ft_tensor *input = FT_NEW_ARRAY(b->arena, ft_tensor, graph->input_count);
  FT_OOM_IF(!input, error);
  b->input = input;
  return ft_graph_random_inputs(graph, b->options.seed, b->arena, input, error);
}

// ---- ratios ---------------------------------------------------------------------------

ft_status ft_paired_ratio_make(const uint64_t *time, const uint64_t *base,
                               const bool *is_flagged, uint32_t rounds, ft_arena *arena,
                               ft_paired_ratio *out, ft_error *error) {
  static const double unit = 1e6;
  *out = (ft_paired_ratio){0};
  uint64_t *ratio = FT_NEW_ARRAY(arena, uint64_t, rounds);
  uint64_t *a = FT_NEW_ARRAY(arena, uint64_t, rounds);
  uint64_t *b = FT_NEW_ARRAY(arena, uint64_t, rounds);
  FT_OOM_IF(!ratio || !a || !b, error);
  uint32_t clean = 0;
  for (uint32_t i = 0; i < rounds; i++) clean += !is_flagged[i];
  for (uint32_t i = 0; i < rounds; i++) {
    if ((clean > 0 && is_flagged[i]) || base[i] == 0) continue;
    a[out->rounds] = time[i];
    b[out->rounds] = base[i];
    ratio[out->rounds++] = (uint64_t)llround(unit * ((double)time[i] / (double)base[i]));
  }
  out->sign_p = ft_sign_test(a, b, out->rounds);
  ft_time median = ft_median_ns(ratio, out->rounds);
  out->median = (double)median.median_ns / unit;
  out->low = (double)median.low_ns / unit;
  out->high = (double)median.high_ns / unit;
  return FT_OK;
}

static uint32_t column_of(const ft_rounds *d, ft_plan_kind kind) {
  uint32_t column = 0;
  while (column + 1 < d->distinct && d->column[column] != kind) column++;
  return column;
}

static ft_status pair(const bench *b, ft_plan_kind kind, ft_paired_ratio *out,
                      ft_error *error) {
  const ft_rounds *d = &b->decision;
  const ft_compare_result *r = &d->comparison;
  uint32_t one = column_of(d, b->contender[kind].same_as),
           two = column_of(d, b->contender[b->out->served].same_as);
  bool *is_flagged = FT_NEW_ARRAY(b->arena, bool, r->rounds);
  FT_OOM_IF(!is_flagged, error);
  for (uint32_t i = 0; i < r->rounds; i++)
    is_flagged[i] = r->flags[(size_t)i * r->programs + one] ||
                    r->flags[(size_t)i * r->programs + two];
  return ft_paired_ratio_make(d->sample[kind], d->sample[b->out->served], is_flagged,
                              r->rounds, b->arena, out, error);
}

static ft_status fill_sides(bench *b, ft_error *error) {
  ft_plan_kind served = b->out->served;
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++) {
    ft_bench_side *side = &b->out->side[kind];
    const ft_contender *c = &b->contender[kind];
    side->is_present = c->is_present;
    side->absence = c->is_present ? "" : c->absence;
    if (!c->is_present) continue;
    side->is_served_plan = c->same_as == b->contender[served].same_as;
    FT_TRY(pair(b, (ft_plan_kind)kind, &side->ratio, error));
  }
  return FT_OK;
}

// ---- the run --------------------------------------------------------------------------

static const char *request_json(const bench *b) {
  json_t *o = json_pack(
      "{s:s, s:s, s:s, s:I, s:I, s:I}", "verb", "bench", "model", b->model->path, "dims",
      b->model->graph->dims_json, "limit_ns", (json_int_t)b->options.limit_ns, "rounds",
      (json_int_t)b->options.rounds, "seed", (json_int_t)b->options.seed);
  const char *text = ft_json_text(o, b->arena);
  json_decref(o);
  return text;
}

// The rounds under a run of their own, once they are all there.
static ft_status save(bench *b, ft_error *error) {
  ft_session *s = b->session;
  int64_t graph_id, run_id;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  ft_run_record run = {.seed = b->options.seed, .version = FT_VERSION, .host = host};
  run.request = request_json(b);
  FT_OOM_IF(!run.request, error);
  FT_TRY(ft_store_target(s->store, &s->target, &run.target_id, error));
  FT_TRY(ft_store_graph(s->store, b->model->graph, &graph_id, &run.binding_id, error));
  FT_TRY(ft_store_run_begin(s->store, &run, &run_id, error));
  int64_t column_id[FT_PLAN_KINDS];
  for (uint32_t i = 0; i < b->decision.distinct; i++)
    column_id[i] = b->plan_id[b->decision.column[i]];
  const ft_compare_result *r = &b->decision.comparison;
  FT_TRY(ft_store_comparison_save(s->store, run_id, column_id, b->decision.distinct,
                                  r->rounds, r->time_ns, r->flags, error));
  return ft_store_run_end(s->store, run_id, "complete", error);
}

static ft_status answer(bench *b, ft_error *error) {
  ft_plan *plan = ft_arena_memdup(b->arena, b->out->answer.plan, sizeof *plan);
  FT_OOM_IF(!plan, error);
  const ft_time *time = b->decision.time;
  plan->times.tuned = time[b->out->served];
  plan->times.unfused = time[FT_PLAN_UNFUSED];
  plan->times.primitive = time[FT_PLAN_PRIMITIVE];
  plan->times.greedy = time[FT_PLAN_GREEDY];
  plan->times.measured_at = ft_clock_unix_ns();
  b->out->answer.plan = plan;
  b->out->rounds = b->decision.comparison.rounds;
  b->out->tuned_time = time[FT_PLAN_TUNED];
  return fill_sides(b, error);
}

static ft_status compare(bench *b, ft_error *error) {
  ft_session *s = b->session;
  static const ft_deadlines never = {UINT64_MAX, UINT64_MAX};
  FT_TRY(ft_contenders_check(s, b->model->graph, b->input, b->options.seed, &never,
                             b->arena, b->contender, FT_PLAN_KINDS, error));
  const ft_contender *served = &b->contender[b->out->served];
  if (!served->is_present)
    FT_FAIL(error, FT_INTERNAL, "the served plan (%s) did not run: %s",
            ft_plan_kind_text(b->out->served), served->absence);
  return ft_contenders_compare(s, b->contender, FT_PLAN_KINDS, b->options.rounds,
                               b->options.limit_ns, b->options.seed, b->arena,
                               &b->decision, error);
}

ft_status ft_session_bench(ft_session *session, const ft_model *model,
                           const ft_bench_options *options, ft_arena *arena,
                           ft_bench_result *out, ft_error *error) {
  memset(out, 0, sizeof *out);
  bench *b = FT_NEW(arena, bench);
  FT_OOM_IF(!b, error);
  *b = (bench){.session = session,
               .model = model,
               .options = *options,
               .arena = arena,
               .out = out};
  if (b->options.limit_ns == 0) b->options.limit_ns = default_limit_ns;
  if (b->options.rounds == 0) b->options.rounds = DEFAULT_ROUNDS;
  FT_TRY(make_inputs(b, error));
  FT_TRY(load_all(b, error));
  if (model->graph->primitive_count == 0)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "'%s' folds to constants: nothing to time",
            model->path);
  FT_TRY(compare(b, error));
  FT_TRY(save(b, error));
  return answer(b, error);
}

// ---- as JSON --------------------------------------------------------------------------

static json_t *ratio_json(const ft_bench_side *side) {
  const ft_paired_ratio *r = &side->ratio;
  return json_pack("{s:f, s:f, s:f, s:f, s:I, s:b}", "ratio", r->median, "low", r->low,
                   "high", r->high, "sign_test_p", r->sign_p, "rounds",
                   (json_int_t)r->rounds, "same_plan", (int)side->is_served_plan);
}

json_t *ft_bench_json(const ft_bench_result *result) {
  json_t *o = ft_answer_json(&result->answer);
  if (!o) return NULL;
  json_t *ratios = json_object(), *plans = json_object(), *absent = json_object();
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++) {
    const ft_bench_side *side = &result->side[kind];
    const char *role = ft_plan_kind_text((ft_plan_kind)kind);
    char id[FT_HASH_TEXT + 1];
    ft_hash_text(&side->plan, id);
    if (!ft_hash_is_zero(&side->plan)) json_object_set_new(plans, role, json_string(id));
    if (!side->is_present) json_object_set_new(absent, role, json_string(side->absence));
    if (side->is_present && kind != (int)result->served)
      json_object_set_new(ratios, role, ratio_json(side));
  }
  json_object_set_new(o, "ratios", ratios);
  json_object_set_new(o, "plans", plans);
  json_object_set_new(o, "absent", absent);
  json_object_set_new(o, "rounds", json_integer(result->rounds));
  json_object_set_new(o, "served", json_string(ft_plan_kind_text(result->served)));
  json_object_del(o, "refusals");
  return o;
}
