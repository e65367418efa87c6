// search - divides a graph into groups by measurement.
//
// Lazily (LazySP): only groups on the most promising partitions are measured. Unmeasured
// ones count with the predictor's bound; once the partition with the least promise is
// measured, and its schedules spent, no other can beat it: the gap is 0, though most
// groups were never measured. search/promise.h says what a group promises and how many
// schedules it gets. With a predictor that knows floors of candidates, the gap also holds
// for schedules that were not tried. Same graph, options and answers give the same
// result; only a wall budget lets time decide anything.
//
// Adding a strategy: one file (strategy_NAME.c) and one line in search/strategies.def.
#ifndef FT_SEARCH_SEARCH_H
#define FT_SEARCH_SEARCH_H

#include "graph/evaluator.h"
#include "graph/partition.h"
#include "search/constraints.h"

typedef struct ft_search_progress {
  const char *phase;  // "groups" once, then "measure" after each batch
  uint32_t groups, unique, measured, trials, candidates;
  double best_additive_ns;  // of the best complete partition so far; 0 = none yet
  uint64_t elapsed_ns, limit_ns;
} ft_search_progress;

typedef struct ft_search_options {
  uint32_t window;      // most primitives in one group; 0: 16
  uint32_t span;        // positions they may reach over; 0, or more than 64: 64
  uint64_t limit_ns;    // wall budget, from the call on; 0: none
  uint32_t max_trials;  // 0: none
  uint64_t seed;        // nothing is drawn yet: every seed gives the same answer
  uint32_t batch;       // candidates handed to the runner at a time; 0: 32
  const ft_allocator *allocator;  // for what dies with the search; NULL: the system's
  // After measuring, the groups of the best partitions, and those that would be on the
  // answer at the low end of their interval, are measured once more with fresh samples
  // (not counted as trials), until every one was: the last fifth of |limit_ns| is kept
  // for it. When that is over, only the answer's own groups still are, for a sixteenth of
  // it; those that are left then keep their first time.
  bool confirm;
  // Bounds of groups that were not measured yet, and floors of their candidates; NULL: 0
  // for all. Borrowed.
  const ft_predictor *predictor;
  const ft_constraint_spec *constraints;  // NULL: none. Borrowed.
  double until_gap;  // stop once the gap is at most this (0.02 = 2 %); 0: do not
  // Ask for every candidate of every group, promising or not: for runners that answer at
  // once, and to know what laziness missed.
  bool is_exhaustive;
  void (*progress)(void *ctx, const ft_search_progress *progress);
  void *progress_ctx;
} ft_search_options;

// A unique workload that the search met.
typedef struct ft_searched_group {
  ft_workload workload;  // canonical; its group is the first instance
  uint32_t instances;
  bool is_measured;    // at least one candidate ended OK
  ft_candidate best;   // valid when is_measured
  ft_trial trial;      // of best; else the last failure, PENDING when untried
  double cost_ns;      // best median, not confirmed; infinite when nothing works
  uint32_t trials;     // candidates measured
  uint32_t space;      // candidates in the space; 0 while none was asked for
  double roofline_ns;  // the predictor's bound at the end; 0: none known
} ft_searched_group;

typedef struct ft_searched_partition {
  const char *strategy;  // name from strategies.def
  bool is_complete;      // every group has a finite cost
  ft_partition partition;
  const uint32_t *unique;       // [group_count] index into ft_search_result.group
  const ft_workload *workload;  // [group_count] canonical, of this very instance
  double additive_ns;           // sum of the groups' costs; infinite when not complete
  const char *note;  // what people should know: an operator cut in two; "" else
} ft_searched_partition;

enum { FT_ALTERNATIVES = 8 };

// Why two neighbours do not share a kernel in the "ideals" partition. Rules: the first
// words of the builder's reason, or
//   keep, no-fuse, subgraph, fuse  a constraint (search/constraints.h)
//   window, span  they would be too many, or too far apart
//   cycle         something lies between them
//   slower        measured: the detail has the times
//   fails         every kernel for both failed
//   unmeasured    the budget ended first
typedef struct ft_refusal {
  uint32_t producer, consumer;  // primitives
  const char *rule, *detail;
} ft_refusal;

typedef struct ft_search_result {
  uint32_t group_count;
  ft_searched_group *group;
  uint32_t measured_count;   // groups for which a candidate ended OK
  uint32_t partition_count;  // one per line of strategies.def
  ft_searched_partition *partition;
  // The next best after the "ideals" partition, best first: at most FT_ALTERNATIVES, each
  // complete, no two equal up to the order of their groups, none equal to a partition of
  // a tuned strategy (ideals, unfused, horizontal-vertical). strategy: "ideals".
  uint32_t alternative_count;
  ft_searched_partition *alternative;
  uint32_t refusal_count;
  const ft_refusal *refusal;
  double bound_ns, gap;  // of the "ideals" partition; see docs/glossary.md
  // The "ideals" partition has a group as large as the window or the span, and not the
  // whole graph: a larger one might do better.
  bool window_saturated;
  uint32_t window;  // used: the default when none was asked for
  uint32_t span;    // used: less than asked for on very wide graphs
  bool is_cut;      // some sets were left out (search/lattice.h says when)
  uint32_t legal_groups, ideals, transitions, trials;
  uint32_t rounds;          // batches handed to the runner, confirmations left out
  uint32_t contradictions;  // trials that were faster than their bound
  const char *stop_reason;  // "complete", "gap", "time", "trials", "interrupted"
} ft_search_result;

// Result in |arena|. Errors: INVALID_ARGUMENT when a primitive has no tactic at all (the
// text lists them, as far as it holds), and when the constraints name what is not there
// or leave nothing legal; what the runner returns; FT_INTERRUPTED: *out is filled as far
// as known. When the budget ends early, unmeasured groups cost infinity, but the groups
// of the unfused, primitive and greedy partitions are measured first, and those of
// unfused get their first look whatever the time (not whatever |max_trials|). A group
// counts as measured, for bound_ns, once a schedule of it worked or all have failed;
// until then with the predictor's bound. A trial that the runner leaves PENDING has no
// answer: its candidate stays untried. bound_ns and gap of an incomplete "ideals"
// partition: the gap is 1.
FT_MUST_CHECK ft_status ft_search_run(const ft_graph *graph, const ft_target *target,
                                      const ft_builder *builder, const ft_runner *runner,
                                      const ft_search_options *options, ft_arena *arena,
                                      ft_search_result *out, ft_error *error);

// The partition of |strategy| in |result|, or NULL.
const ft_searched_partition *ft_search_find(const ft_search_result *result,
                                            const char *strategy);

#endif
