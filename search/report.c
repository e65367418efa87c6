// From contenders to a result: partitions with their workloads, the certificate, the
// refusals. Every partition goes through ft_partition_make, which proves it legal.
#include <math.h>
#include <string.h>

#include "search/kbest.h"
#include "search/refusal.h"
#include "search/run.h"

static void report_group(const ft_catalog_group *group, ft_searched_group *out) {
  *out = (ft_searched_group){.workload = *group->workload,
                             .instances = group->instances,
                             .is_measured = group->is_measured,
                             .trial = group->trial,
                             .cost_ns = group->cost_ns,
                             .trials = group->tried,
                             .space = group->space,
                             .roofline_ns = group->bound_ns};
  if (group->is_measured) out->best = group->candidate[group->best];
}

static ft_status report_groups(ft_run *run, ft_search_result *out, ft_error *error) {
  const ft_catalog *catalog = &run->catalog;
  out->group_count = (uint32_t)catalog->group_count;
  out->group = FT_NEW_ARRAY(run->result, ft_searched_group, out->group_count);
  FT_OOM_IF(!out->group, error);
  for (uint32_t i = 0; i < out->group_count; i++) {
    report_group(&catalog->group[i], &out->group[i]);
    out->trials += out->group[i].trials;
    out->measured_count += out->group[i].is_measured;
  }
  return FT_OK;
}

// ---- one partition -------------------------------------------------------------

typedef struct listing {
  ft_group *group;        // [count] in the division's order
  ft_workload *workload;  // [count] likewise
  uint32_t *unique;       // [count] likewise
  uint32_t *at;           // [primitives] position of a group by its first primitive
} listing;

static ft_status list_division(ft_run *run, const ft_division *division, listing *out,
                               ft_error *error) {
  uint32_t count = division->count;
  *out = (listing){.group = FT_NEW_ARRAY(run->work, ft_group, count),
                   .workload = FT_NEW_ARRAY(run->work, ft_workload, count),
                   .unique = FT_NEW_ARRAY(run->work, uint32_t, count),
                   .at = FT_NEW_ARRAY(run->work, uint32_t, run->dag.count)};
  FT_OOM_IF(!out->group || !out->workload || !out->unique || !out->at, error);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t primitive[FT_SET_SPREAD], members = ft_set_list(division->set[i], primitive);
    ft_group group;
    FT_TRY(ft_group_make(run->graph, primitive, members, run->result, &group, error));
    FT_TRY(ft_workload_make(&group, run->result, &out->workload[i], error));
    FT_TRY(
        ft_catalog_judge(&run->catalog, division->set[i], &out->unique[i], NULL, error));
    FT_ASSERT(out->unique[i] != FT_NONE);
    out->group[i] = out->workload[i].group;
    out->at[out->group[i].primitive[0]] = i;
  }
  return FT_OK;
}

static ft_status report_partition(ft_run *run, const char *strategy,
                                  const ft_division *division, ft_path_cost cost,
                                  ft_searched_partition *out, ft_error *error) {
  uint32_t count = division->count;
  listing list;
  FT_TRY(list_division(run, division, &list, error));
  *out = (ft_searched_partition){
      .strategy = strategy, .is_complete = cost.missing == 0, .additive_ns = INFINITY};
  ft_status status = ft_partition_make(run->graph, list.group, count, run->result,
                                       &out->partition, error);
  if (status == FT_INVALID_ARGUMENT && error) error->code = status = FT_INTERNAL;
  if (status != FT_OK)
    return ft_error_prefix(error, "strategy %s", out->strategy), status;
  if (out->is_complete) out->additive_ns = cost.ns;
  uint32_t *unique = FT_NEW_ARRAY(run->result, uint32_t, count);
  ft_workload *workload = FT_NEW_ARRAY(run->result, ft_workload, count);
  out->note = ft_arena_strdup(run->result, division->note);
  FT_OOM_IF(!unique || !workload || !out->note, error);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t from = list.at[out->partition.group[i].primitive[0]];
    unique[i] = list.unique[from];
    workload[i] = list.workload[from];
  }
  out->unique = unique;
  out->workload = workload;
  return FT_OK;
}

// ---- the runners-up ------------------------------------------------------------

static bool is_contender(const ft_run *run, const ft_path *path) {
  uint64_t key = ft_division_key(path->set, path->set_count);
  for (uint32_t i = 0; i < FT_STRATEGY_COUNT; i++) {
    const ft_division *best = &run->contender[i].best;
    if (ft_strategies[i].is_tuned && ft_division_key(best->set, best->count) == key)
      return true;
  }
  return false;
}

static ft_status report_alternatives(ft_run *run, ft_search_result *out,
                                     ft_error *error) {
  const ft_catalog *catalog = &run->catalog;
  ft_path path[FT_ALTERNATIVES + FT_STRATEGY_COUNT];
  uint32_t count;
  double *cost_ns = FT_NEW_ARRAY(run->work, double, catalog->group_count);
  out->alternative = FT_NEW_ARRAY(run->result, ft_searched_partition, FT_ALTERNATIVES);
  FT_OOM_IF(!cost_ns || !out->alternative, error);
  for (size_t i = 0; i < catalog->group_count; i++)
    cost_ns[i] = catalog->group[i].cost_ns;
  ft_priced_lattice priced = {&run->lattice, run->land.group_of_set, cost_ns};
  FT_TRY(ft_kbest_solve(&priced, FT_ALTERNATIVES + FT_STRATEGY_COUNT, run->work, path,
                        &count, error));
  for (uint32_t i = 0; i < count && out->alternative_count < FT_ALTERNATIVES; i++) {
    if (path[i].cost.missing || is_contender(run, &path[i])) continue;
    ft_division division = {path[i].set_count, path[i].set, ""};
    FT_TRY(report_partition(run, ft_strategies[FT_STRATEGY_ideals].name, &division,
                            path[i].cost, &out->alternative[out->alternative_count++],
                            error));
  }
  return FT_OK;
}

// ---- the certificate -----------------------------------------------------------

ft_status ft_run_bound(ft_run *run, ft_arena *arena, double *out_ns, ft_error *error) {
  const ft_catalog *catalog = &run->catalog;
  double *bound_ns = FT_NEW_ARRAY(arena, double, catalog->group_count);
  FT_OOM_IF(!bound_ns, error);
  for (size_t i = 0; i < catalog->group_count; i++)
    bound_ns[i] = ft_catalog_bound_ns(&catalog->group[i]);
  ft_priced_lattice priced = {&run->lattice, run->land.group_of_set, bound_ns};
  ft_path path;
  FT_TRY(ft_path_solve(&priced, arena, &path, error));
  *out_ns = path.cost.missing ? INFINITY : path.cost.ns;
  return FT_OK;
}

static ft_status report_bound(ft_run *run, ft_search_result *out, ft_error *error) {
  double additive_ns = out->partition[FT_STRATEGY_ideals].additive_ns;
  FT_TRY(ft_run_bound(run, run->work, &out->bound_ns, error));
  // Another strategy's groups may lie outside window and span, and win.
  if (out->bound_ns > additive_ns) out->bound_ns = additive_ns;
  if (!isfinite(additive_ns)) {
    out->gap = 1;
  } else if (additive_ns > 0) {
    out->gap = (additive_ns - out->bound_ns) / additive_ns;
  }
  return FT_OK;
}

static bool is_saturated(const ft_run *run, const ft_division *division) {
  for (uint32_t i = 0; i < division->count; i++) {
    uint32_t count = ft_set_count(division->set[i]);
    if (count == run->dag.count) continue;
    if (count >= run->land.window) return true;
    if (count > 1 && ft_set_spread(division->set[i]) >= run->land.span) return true;
  }
  return false;
}

ft_status ft_run_report(ft_run *run, ft_search_result *out, ft_error *error) {
  const ft_division *best = &run->contender[FT_STRATEGY_ideals].best;
  *out = (ft_search_result){.partition_count = FT_STRATEGY_COUNT,
                            .window_saturated = is_saturated(run, best),
                            .window = run->land.window,
                            .span = run->land.span,
                            .is_cut = run->lattice.is_cut,
                            .legal_groups = run->catalog.legal_sets,
                            .ideals = run->lattice.ideals.count,
                            .rounds = run->rounds,
                            .contradictions = run->catalog.contradictions,
                            .stop_reason = run->stop_reason};
  for (uint32_t i = 0; i < run->lattice.step_count; i++)
    out->transitions += run->land.group_of_set[run->lattice.step[i].set] != FT_NONE;
  FT_TRY(report_groups(run, out, error));
  out->partition = FT_NEW_ARRAY(run->result, ft_searched_partition, FT_STRATEGY_COUNT);
  FT_OOM_IF(!out->partition, error);
  for (uint32_t i = 0; i < FT_STRATEGY_COUNT; i++)
    FT_TRY(report_partition(run, ft_strategies[i].name, &run->contender[i].best,
                            run->contender[i].cost, &out->partition[i], error));
  FT_TRY(report_alternatives(run, out, error));
  FT_TRY(report_bound(run, out, error));
  // Last: it may judge sets that are not in the result.
  return ft_refusals_explain(&run->land, best, run->result, &out->refusal,
                             &out->refusal_count, error);
}

const ft_searched_partition *ft_search_find(const ft_search_result *result,
                                            const char *strategy) {
  for (uint32_t i = 0; i < result->partition_count; i++)
    if (strcmp(result->partition[i].strategy, strategy) == 0)
      return &result->partition[i];
  return NULL;
}
