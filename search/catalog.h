// catalog - what is known of each group: may it be a kernel, and what does it cost.
//
// A set of primitives is judged once (memoised by the set), and its workload once
// (memoised by the encoding: identical layers cost one question, one measurement).
// Single thread.
#ifndef FT_SEARCH_CATALOG_H
#define FT_SEARCH_CATALOG_H

#include "graph/evaluator.h"
#include "search/constraints.h"
#include "search/search.h"
#include "search/set.h"

enum { FT_CATALOG_TACTICS = 8 };

// A legal unique workload and its candidates.
typedef struct ft_catalog_group {
  const ft_workload *workload;  // stable address, in the result's arena
  uint32_t instances;           // sets judged so far that have this workload
  uint32_t primitives;
  const uint32_t *part;  // [primitives] groups of its primitives alone; NULL: not asked
  double bound_ns;       // what the predictor says no kernel can beat; 0: nothing known
  uint32_t uses;         // most instances on one promising path so far
  uint32_t tactic_count;
  const char *tactic[FT_CATALOG_TACTICS];
  bool is_open;                   // the candidates are listed
  uint32_t space;                 // how many
  const ft_candidate *candidate;  // [space] in order of promise
  const double *floor_ns;         // [space] ascending, of each; NULL: none known
  ft_trial *of_candidate;         // [space] its latest; PENDING: none yet
  uint32_t next;                  // the first that many were handed out
  uint32_t tried;                 // trials recorded
  uint32_t skipped;               // handed out, but the runner has no answer
  bool is_measured;               // one ended OK
  uint32_t best;                  // candidate, when measured
  ft_trial trial;                 // of best; else the last failure, or PENDING
  double cost_ns;                 // median of best; infinite
  bool is_confirmed;              // trial is a confirmation
} ft_catalog_group;

typedef struct ft_catalog {
  const ft_graph *graph;
  const ft_target *target;
  const ft_builder *builder;
  const ft_predictor *predictor;      // NULL after create: no bounds
  const ft_constraints *constraints;  // NULL after create: none
  uint32_t contradictions;            // trials that were faster than their bound
  ft_arena *result;                   // outlives the search
  ft_arena *work;                     // dies with it
  ft_arena *scratch;                  // reset by each question
  size_t group_count, group_capacity;
  ft_catalog_group *group;
  uint32_t legal_sets;  // distinct sets judged legal
  struct ft_catalog_table *table;
} ft_catalog;

FT_MUST_CHECK ft_status ft_catalog_create(const ft_graph *graph, const ft_target *target,
                                          const ft_builder *builder, ft_arena *result,
                                          ft_arena *work, ft_arena *scratch,
                                          ft_catalog *out, ft_error *error);

// *out_group is the group of |set|, or FT_NONE; then *out_reason (may be NULL) says why
// no tactic takes it, or which constraint it breaks. Says nothing about cycles. Errors:
// OUT_OF_MEMORY, and what ft_group_make and ft_workload_make return.
FT_MUST_CHECK ft_status ft_catalog_judge(ft_catalog *catalog, ft_set set,
                                         uint32_t *out_group, const char **out_reason,
                                         ft_error *error);

// Lists the group's candidates: the tactics' schedules in turn, defaults first; where the
// predictor knows floors, by these, and the least of them raises the group's bound.
// Errors: what builder->space and predictor->floors return. Nothing when they are listed
// already.
FT_MUST_CHECK ft_status ft_catalog_open(ft_catalog *catalog, uint32_t group,
                                        ft_error *error);

// Takes the trial of |candidate| (copied), which was handed out. Only an OK one with a
// median can become the best: strictly faster, so that of equals the first stays. One
// that is clearly faster than the group's bound is told to the predictor, and all bounds
// are asked for again. Errors: OUT_OF_MEMORY, and what predictor->contradict returns.
FT_MUST_CHECK ft_status ft_catalog_record(ft_catalog *catalog, uint32_t group,
                                          uint32_t candidate, const ft_trial *trial,
                                          ft_error *error);

// The runner has no answer for a candidate that was handed out: it was not tried, and is
// not handed out again.
void ft_catalog_skip(ft_catalog *catalog, uint32_t group);

// Takes a second, longer look at the group's best candidate: it replaces the first, and
// the best is chosen anew. Contradicts as ft_catalog_record does.
FT_MUST_CHECK ft_status ft_catalog_confirm(ft_catalog *catalog, uint32_t group,
                                           const ft_trial *trial, ft_error *error);

// out_part[group's primitives]: the group of each primitive alone, FT_NONE when it has
// none. Lives as long as the catalog.
FT_MUST_CHECK ft_status ft_catalog_parts(ft_catalog *catalog, uint32_t group,
                                         const uint32_t **out_part, ft_error *error);

// What the group reads and writes.
static inline double ft_catalog_bytes(const ft_catalog_group *group) {
  return (double)group->workload->read_bytes + (double)group->workload->write_bytes;
}

// How many candidates may still become the best, those tried included: those whose floor
// is below what the best one costs; all where no floors are known.
uint32_t ft_catalog_worth(const ft_catalog_group *group);
// Every candidate was tried (an empty space too), so an infinite cost is final.
bool ft_catalog_is_spent(const ft_catalog_group *group);
// Cost with which no true cost can be lower, for the schedules tried: the median, or the
// predictor's bound while nothing worked yet and candidates are left. Where floors are
// known, for all schedules: the next one's, while it may still become the best.
double ft_catalog_bound_ns(const ft_catalog_group *group);

#endif
