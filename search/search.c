#include "search/search.h"

#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "core/strbuf.h"
#include "search/forced.h"
#include "search/run.h"
#include "search/tuning.h"

// ---- before the loop -----------------------------------------------------------

static ft_search_options with_defaults(const ft_search_options *options) {
  ft_search_options o = *options;
  if (!o.window) o.window = 16;
  if (!o.span || o.span > FT_SET_SPREAD) o.span = FT_SET_SPREAD;
  if (!o.batch) o.batch = 32;
  if (!o.allocator) o.allocator = ft_allocator_system();
  return o;
}

static void describe_refused(const ft_graph *graph, uint32_t primitive,
                             const char *reason, ft_strbuf *text) {
  const ft_primitive *p = &graph->primitive[primitive];
  const ft_operator *op = &graph->operator_[p->op_index];
  ft_strbuf_printf(text, "%s%s of %s %s: %s", text->length ? "; " : "",
                   ft_op_describe(p->op)->name, op->type, op->name, reason);
}

// Without this a search cannot end: every ideal must have a way on.
static ft_status check_singletons(ft_run *run, ft_error *error) {
  ft_strbuf text = ft_strbuf_init(run->work);
  uint32_t refused = 0;
  for (uint32_t i = 0; i < run->dag.count; i++) {
    uint32_t group;
    const char *reason;
    // One that must share its kernel is not asked alone.
    if (ft_constraints_refuse(run->catalog.constraints, (ft_set){i, 1})) continue;
    FT_TRY(ft_catalog_judge(&run->catalog, (ft_set){i, 1}, &group, &reason, error));
    if (group != FT_NONE) continue;
    refused++;
    describe_refused(run->graph, i, reason, &text);
  }
  FT_OOM_IF(text.failed, error);
  if (refused)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%u primitives have no tactic: %s", refused,
            text.text);
  return FT_OK;
}

// The operators as imported, each at its first primitive.
static ft_status list_operators(ft_run *run, uint64_t **out, ft_error *error) {
  uint64_t *whole = FT_NEW_ARRAY(run->work, uint64_t, run->dag.count);
  FT_OOM_IF(!whole, error);
  for (uint32_t i = 0; i < run->graph->operator_count; i++) {
    const ft_operator *op = &run->graph->operator_[i];
    if (!op->count || op->count > FT_SET_SPREAD) continue;
    whole[op->first] = op->count == 64 ? UINT64_MAX : (1ull << op->count) - 1;
  }
  *out = whole;
  return FT_OK;
}

static ft_status judge_lattice(ft_run *run, ft_error *error) {
  const ft_lattice *lattice = &run->lattice;
  uint32_t *group = FT_NEW_ARRAY(run->work, uint32_t, lattice->set_count);
  FT_OOM_IF(!group, error);
  for (uint32_t i = 0; i < lattice->set_count; i++)
    FT_TRY(ft_catalog_judge(&run->catalog, lattice->set[i], &group[i], NULL, error));
  run->land.group_of_set = group;
  return FT_OK;
}

static ft_status enumerate(ft_run *run, ft_error *error) {
  const ft_search_options *o = &run->options;
  ft_lattice_limits limits = ft_lattice_default_limits(o->window, o->span);
  uint64_t *whole;
  FT_TRY(ft_dag_of_graph(run->graph, run->work, &run->dag, error));
  FT_TRY(ft_catalog_create(run->graph, run->target, run->builder, run->result, run->work,
                           run->question, &run->catalog, error));
  run->catalog.predictor = o->predictor;
  FT_TRY(ft_constraints_make(run->graph, o->constraints, run->work,
                             &run->catalog.constraints, error));
  FT_TRY(check_singletons(run, error));
  FT_TRY(list_operators(run, &whole, error));
  FT_TRY(ft_lattice_make(&run->dag, whole, &limits, o->allocator, run->work,
                         &run->lattice, error));
  run->land = (ft_landscape){.graph = run->graph,
                             .dag = &run->dag,
                             .lattice = &run->lattice,
                             .catalog = &run->catalog,
                             .window = o->window,
                             .span = run->lattice.ideals.span};
  FT_TRY(judge_lattice(run, error));
  return ft_forced_check(&run->land, run->round, error);
}

// ---- solving -------------------------------------------------------------------

ft_status ft_run_price(ft_run *run, const ft_division *division, ft_path_cost *out,
                       ft_error *error) {
  *out = (ft_path_cost){0};
  for (uint32_t i = 0; i < division->count; i++) {
    uint32_t group;
    FT_TRY(ft_catalog_judge(&run->catalog, division->set[i], &group, NULL, error));
    FT_ASSERT(group != FT_NONE);
    *out = ft_path_add(*out, run->catalog.group[group].cost_ns);
  }
  return FT_OK;
}

static ft_status keep_division(ft_run *run, const ft_division *from, ft_division *out,
                               ft_error *error) {
  size_t bytes = from->count * sizeof *from->set;
  *out = (ft_division){from->count, ft_arena_memdup(run->work, from->set, bytes),
                       ft_arena_strdup(run->work, from->note)};
  FT_OOM_IF(!out->set || !out->note, error);
  return FT_OK;
}

// Takes |division| when it costs less than the best so far.
static ft_status challenge(ft_run *run, ft_contender *contender,
                           const ft_division *division, ft_error *error) {
  ft_path_cost cost;
  FT_TRY(ft_run_price(run, division, &cost, error));
  if (contender->best.set && !ft_path_is_less(cost, contender->cost)) return FT_OK;
  contender->cost = cost;
  return keep_division(run, division, &contender->best, error);
}

static ft_status divide(ft_run *run, uint32_t strategy, bool is_hopeful, ft_division *out,
                        ft_error *error) {
  run->land.is_hopeful = is_hopeful;
  return ft_strategies[strategy].divide(&run->land, run->round, out, error);
}

static ft_status solve_one(ft_run *run, uint32_t strategy, ft_error *error) {
  ft_contender *contender = &run->contender[strategy];
  FT_TRY(divide(run, strategy, true, &contender->latest, error));
  if (!contender->first.set)
    FT_TRY(keep_division(run, &contender->latest, &contender->first, error));
  if (contender->best.set)
    FT_TRY(ft_run_price(run, &contender->best, &contender->cost, error));
  FT_TRY(challenge(run, contender, &contender->first, error));
  FT_TRY(challenge(run, contender, &contender->latest, error));
  if (!ft_strategies[strategy].is_baseline) return FT_OK;
  ft_division sober;
  FT_TRY(divide(run, strategy, false, &sober, error));
  return challenge(run, contender, &sober, error);
}

static ft_status solve(ft_run *run, ft_error *error) {
  ft_arena_reset(run->round);
  for (uint32_t i = 0; i < FT_STRATEGY_COUNT; i++) FT_TRY(solve_one(run, i, error));
  // The answer is never worse than what it has to beat.
  for (uint32_t i = 0; i < FT_STRATEGY_COUNT; i++)
    FT_TRY(challenge(run, &run->contender[FT_STRATEGY_ideals], &run->contender[i].best,
                     error));
  return FT_OK;
}

// ---- measuring -----------------------------------------------------------------

static ft_status rank_division(ft_run *run, const ft_division *division, uint8_t rank,
                               uint8_t *of_group, ft_error *error) {
  for (uint32_t i = 0; i < division->count; i++) {
    uint32_t group;
    FT_TRY(ft_catalog_judge(&run->catalog, division->set[i], &group, NULL, error));
    FT_ASSERT(group != FT_NONE);
    if (rank < of_group[group]) of_group[group] = rank;
  }
  return FT_OK;
}

// uses[group]: the most instances in one division so far.
static ft_status count_uses(ft_run *run, const ft_division *division, uint32_t *uses,
                            ft_error *error) {
  uint32_t *here = FT_NEW_ARRAY(run->round, uint32_t, run->catalog.group_count);
  FT_OOM_IF(!here, error);
  for (uint32_t i = 0; i < division->count; i++) {
    uint32_t group;
    FT_TRY(ft_catalog_judge(&run->catalog, division->set[i], &group, NULL, error));
    if (++here[group] > uses[group]) uses[group] = here[group];
  }
  return FT_OK;
}

static ft_status make_hints(ft_run *run, ft_tuning_hints *out, ft_error *error) {
  size_t groups = run->catalog.group_count;
  uint8_t *rank = FT_NEW_ARRAY(run->round, uint8_t, groups);
  uint32_t *uses = FT_NEW_ARRAY(run->round, uint32_t, groups);
  FT_OOM_IF(!rank || !uses, error);
  memset(rank, UINT8_MAX, groups);
  for (uint8_t i = 0; i < FT_STRATEGY_COUNT; i++) {
    const ft_contender *c = &run->contender[i];
    if (ft_strategies[i].is_tuned) FT_TRY(count_uses(run, &c->best, uses, error));
    if (!ft_strategies[i].is_baseline) continue;
    FT_TRY(rank_division(run, &c->first, i, rank, error));
    FT_TRY(rank_division(run, &c->best, i, rank, error));
    FT_TRY(rank_division(run, &c->latest, i, rank, error));
  }
  ft_path_cost best = run->contender[FT_STRATEGY_ideals].cost;
  *out = (ft_tuning_hints){rank, uses, best.missing ? INFINITY : best.ns,
                           run->options.is_exhaustive};
  return FT_OK;
}

// *out_is_done: there is nothing left that could change the answer.
static ft_status measure(ft_run *run, bool *out_is_done, ft_error *error) {
  uint32_t room = ft_budget_room(&run->budget, ft_clock_ns(), run->options.batch), count;
  ft_tuning_hints hints;
  ft_pick *pick = FT_NEW_ARRAY(run->round, ft_pick, room);
  FT_OOM_IF(!pick, error);
  FT_TRY(make_hints(run, &hints, error));
  FT_TRY(ft_tuning_pick(&run->land, &hints, room, run->round, pick, &count, out_is_done,
                        error));
  if (!count) return FT_OK;
  run->rounds++;
  return ft_tuning_measure(&run->catalog, run->runner, pick, count, run->round,
                           &run->budget, error);
}

static void tell(const ft_run *run, const char *phase) {
  if (!run->options.progress) return;
  ft_path_cost best = run->contender[FT_STRATEGY_ideals].cost;
  ft_search_progress p = {.phase = phase,
                          .groups = run->catalog.legal_sets,
                          .unique = (uint32_t)run->catalog.group_count,
                          .best_additive_ns = best.missing ? 0 : best.ns,
                          .elapsed_ns = ft_clock_ns() - run->budget.start_ns,
                          .limit_ns = run->options.limit_ns};
  for (size_t i = 0; i < run->catalog.group_count; i++) {
    p.measured += run->catalog.group[i].is_measured;
    p.trials += run->catalog.group[i].tried;
    p.candidates += run->catalog.group[i].space;
  }
  run->options.progress(run->options.progress_ctx, &p);
}

// ---- confirming ------------------------------------------------------------------

static ft_status add_unconfirmed(ft_run *run, const ft_set *set, uint32_t sets,
                                 uint8_t *seen, uint32_t *out, uint32_t *out_count,
                                 ft_error *error) {
  for (uint32_t k = 0; k < sets; k++) {
    uint32_t group;
    FT_TRY(ft_catalog_judge(&run->catalog, set[k], &group, NULL, error));
    const ft_catalog_group *g = &run->catalog.group[group];
    if (seen[group]++ || !g->is_measured || g->is_confirmed) continue;
    out[(*out_count)++] = group;
  }
  return FT_OK;
}

// The path if every unconfirmed group were as fast as the low end of its interval: the
// first look at a group on it may have been unlucky.
static ft_status solve_hopefully(ft_run *run, ft_path *out, ft_error *error) {
  size_t groups = run->catalog.group_count;
  double *cost_ns = FT_NEW_ARRAY(run->round, double, groups);
  FT_OOM_IF(!cost_ns, error);
  for (size_t i = 0; i < groups; i++) {
    const ft_catalog_group *g = &run->catalog.group[i];
    cost_ns[i] =
        g->is_measured && !g->is_confirmed ? (double)g->trial.time.low_ns : g->cost_ns;
  }
  ft_priced_lattice priced = {run->land.lattice, run->land.group_of_set, cost_ns};
  return ft_path_solve(&priced, run->round, out, error);
}

// Measured but not yet confirmed groups of the answer, and, while there is time, of the
// other partitions and of what could still become the answer.
static ft_status list_unconfirmed(ft_run *run, bool only_answer, uint32_t *out,
                                  uint32_t *out_count, ft_error *error) {
  uint8_t *seen = FT_NEW_ARRAY(run->round, uint8_t, run->catalog.group_count);
  FT_OOM_IF(!seen, error);
  *out_count = 0;
  for (uint32_t i = 0; i < FT_STRATEGY_COUNT; i++) {
    const ft_division *best = &run->contender[i].best;
    if (only_answer && i != FT_STRATEGY_ideals) continue;
    FT_TRY(add_unconfirmed(run, best->set, best->count, seen, out, out_count, error));
  }
  if (only_answer) return FT_OK;
  ft_path hopeful;
  FT_TRY(solve_hopefully(run, &hopeful, error));
  return add_unconfirmed(run, hopeful.set, hopeful.set_count, seen, out, out_count,
                         error);
}

static ft_status confirm_groups(ft_run *run, const uint32_t *group, uint32_t count,
                                ft_error *error) {
  ft_measure_request *request = FT_NEW_ARRAY(run->round, ft_measure_request, count);
  ft_trial *trial = FT_NEW_ARRAY(run->round, ft_trial, count);
  FT_OOM_IF(!request || !trial, error);
  for (uint32_t i = 0; i < count; i++) {
    const ft_catalog_group *g = &run->catalog.group[group[i]];
    request[i] = (ft_measure_request){.candidate = &g->candidate[g->best],
                                      .is_confirmation = true};
    trial[i].outcome = FT_OUTCOME_PENDING;
  }
  ft_status status =
      run->runner->measure(run->runner->self, request, count, run->round, trial, error);
  if (status != FT_OK && status != FT_INTERRUPTED) return status;
  for (uint32_t i = 0; i < count; i++)
    if (trial[i].outcome != FT_OUTCOME_PENDING &&
        trial[i].outcome != FT_OUTCOME_INTERRUPTED)
      FT_TRY(ft_catalog_confirm(&run->catalog, group[i], &trial[i], error));
  run->looks += count;
  return status;
}

// Says whether the budget was over |extra_ns| ago.
static bool is_over(const ft_run *run, uint64_t extra_ns) {
  uint64_t limit = run->options.limit_ns;
  return limit && ft_clock_ns() - run->budget.start_ns > limit + extra_ns;
}

// A few at a time, so that the clock is looked at; a late one ends where it is.
static ft_status confirm_list(ft_run *run, const uint32_t *group, uint32_t count,
                              uint64_t extra_ns, ft_error *error) {
  enum { AT_A_TIME = 8 };
  for (uint32_t i = 0; i < count && (i == 0 || !is_over(run, extra_ns)); i += AT_A_TIME) {
    uint32_t n = count - i < AT_A_TIME ? count - i : AT_A_TIME;
    FT_TRY(confirm_groups(run, group + i, n, error));
  }
  return FT_OK;
}

// Each round confirms at least one more candidate, so the rounds end. Once the time is up
// only the answer's own groups are still confirmed, for a sixteenth of it: an answer of
// hundreds of kernels would otherwise take as long again.
static ft_status confirm(ft_run *run, ft_error *error) {
  uint64_t grace_ns = run->options.limit_ns / 16;
  for (;;) {
    uint32_t *group = FT_NEW_ARRAY(run->round, uint32_t, run->catalog.group_count);
    FT_OOM_IF(!group, error);
    uint32_t count;
    bool is_late = is_over(run, 0);
    FT_TRY(list_unconfirmed(run, is_late, group, &count, error));
    if (count == 0 || is_over(run, grace_ns)) return FT_OK;
    tell(run, "confirm");
    ft_status status = confirm_list(run, group, count, is_late ? grace_ns : 0, error);
    if (status != FT_OK && status != FT_INTERRUPTED) return status;
    FT_TRY(solve(run, error));
    if (status != FT_OK) return status;
  }
}

// Without the baseline there is nothing to serve: its groups get a first look whatever
// the time.
static ft_status owes_baseline(ft_run *run, bool *out, ft_error *error) {
  const ft_division *unfused = &run->contender[FT_STRATEGY_unfused].best;
  *out = false;
  for (uint32_t i = 0; i < unfused->count && !*out; i++) {
    uint32_t group;
    FT_TRY(ft_catalog_judge(&run->catalog, unfused->set[i], &group, NULL, error));
    const ft_catalog_group *g = &run->catalog.group[group];
    *out = g->next == 0 && !ft_catalog_is_spent(g);
  }
  return FT_OK;
}

static ft_status is_close_enough(ft_run *run, bool *out, ft_error *error) {
  ft_path_cost best = run->contender[FT_STRATEGY_ideals].cost;
  *out = false;
  if (!(run->options.until_gap > 0) || best.missing) return FT_OK;
  double bound_ns;
  FT_TRY(ft_run_bound(run, run->round, &bound_ns, error));
  *out = best.ns - bound_ns <= run->options.until_gap * best.ns;
  return FT_OK;
}

// *out is NULL to go on.
static ft_status reason_to_stop(ft_run *run, const char **out, ft_error *error) {
  bool is_close, owes;
  *out = ft_budget_stop(&run->budget, ft_clock_ns());
  FT_TRY(is_close_enough(run, &is_close, error));
  if (!*out && is_close) *out = "gap";
  if (!*out || strcmp(*out, "trials") == 0) return FT_OK;
  FT_TRY(owes_baseline(run, &owes, error));
  if (owes) *out = NULL;
  return FT_OK;
}

// ---- the loop ------------------------------------------------------------------

static ft_status measure_rounds(ft_run *run, ft_error *error) {
  for (;;) {
    FT_TRY(reason_to_stop(run, &run->stop_reason, error));
    if (run->stop_reason) return FT_OK;
    bool is_done;
    ft_status status = measure(run, &is_done, error);
    if (status != FT_OK && status != FT_INTERRUPTED) return status;
    if (status == FT_OK && is_done) {
      run->stop_reason = "complete";
      return FT_OK;
    }
    FT_TRY(solve(run, error));
    tell(run, "measure");
    if (status != FT_OK) return status;
  }
}

// A confirmation may show that the answer was lucky; then others get their chance, until
// nothing changes. Each turn confirms or tries candidates that no turn did before.
static ft_status measure_and_confirm(ft_run *run, ft_error *error) {
  for (uint64_t before = UINT64_MAX; before != run->looks;) {
    before = run->looks;
    FT_TRY(measure_rounds(run, error));
    if (!run->options.confirm) return FT_OK;
    FT_TRY(confirm(run, error));
    if (strcmp(run->stop_reason, "complete") != 0) return FT_OK;
  }
  return FT_OK;
}

static ft_status search(ft_run *run, ft_search_result *out, ft_error *error) {
  FT_TRY(enumerate(run, error));
  FT_TRY(solve(run, error));
  tell(run, "groups");
  ft_status status = measure_and_confirm(run, error);
  if (status != FT_OK && status != FT_INTERRUPTED) return status;
  if (status == FT_INTERRUPTED) run->stop_reason = "interrupted";
  FT_TRY(ft_run_report(run, out, error));
  return status;
}

static uint64_t measuring_limit_ns(const ft_search_options *options) {
  return options->confirm ? options->limit_ns - options->limit_ns / 5 : options->limit_ns;
}

ft_status ft_search_run(const ft_graph *graph, const ft_target *target,
                        const ft_builder *builder, const ft_runner *runner,
                        const ft_search_options *options, ft_arena *arena,
                        ft_search_result *out, ft_error *error) {
  *out = (ft_search_result){.stop_reason = "failed"};
  ft_run run = {.graph = graph,
                .target = target,
                .builder = builder,
                .runner = runner,
                .options = with_defaults(options),
                .result = arena};
  run.budget = (ft_budget){.start_ns = ft_clock_ns(),
                           .limit_ns = measuring_limit_ns(&run.options),
                           .max_trials = run.options.max_trials};
  run.work = ft_arena_create(run.options.allocator);
  run.question = ft_arena_create(run.options.allocator);
  run.round = ft_arena_create(run.options.allocator);
  ft_status status;
  if (run.work && run.question && run.round)
    status = search(&run, out, error);
  else
    status = ft_error_set(error, FT_OUT_OF_MEMORY, "out of memory in %s", __func__);
  ft_arena_destroy(run.round);
  ft_arena_destroy(run.question);
  ft_arena_destroy(run.work);
  return status;
}
