// run - the state of one search, shared by search.c and report.c only.
#ifndef FT_SEARCH_RUN_H
#define FT_SEARCH_RUN_H

#include "search/budget.h"
#include "search/path.h"
#include "search/strategy.h"

// A strategy in the race: its first answer, its cheapest so far, its latest.
typedef struct ft_contender {
  ft_division first, best, latest;
  ft_path_cost cost;  // of best
} ft_contender;

typedef struct ft_run {
  const ft_graph *graph;
  const ft_target *target;
  const ft_builder *builder;
  const ft_runner *runner;
  ft_search_options options;  // defaults filled in
  ft_arena *result;           // the caller's
  ft_arena *work;             // lives as long as the search
  ft_arena *question;         // the catalog's scratch
  ft_arena *round;            // reset before each round of solving
  ft_dag dag;
  ft_lattice lattice;
  ft_catalog catalog;
  ft_landscape land;
  ft_contender contender[FT_STRATEGY_COUNT];
  ft_budget budget;
  uint32_t rounds;  // batches handed to the runner
  uint64_t looks;   // confirmations asked for
  const char *stop_reason;
} ft_run;

// The cost of |division| as known now.
FT_MUST_CHECK ft_status ft_run_price(ft_run *run, const ft_division *division,
                                     ft_path_cost *out, ft_error *error);
// The least additive time that any partition within window and span could have: measured
// groups at their medians, others at their bounds; infinite when one has no cost.
FT_MUST_CHECK ft_status ft_run_bound(ft_run *run, ft_arena *arena, double *out_ns,
                                     ft_error *error);
// Fills *out from the contenders, in run->result.
FT_MUST_CHECK ft_status ft_run_report(ft_run *run, ft_search_result *out,
                                      ft_error *error);

#endif
