// plan - a partition with one candidate per group, its buffers, and the one JSON form
// of it (docs/plan_format.md, "fusetune-plan/1").
#ifndef FT_GRAPH_PLAN_H
#define FT_GRAPH_PLAN_H

#include <jansson.h>

#include "graph/candidate.h"
#include "graph/module.h"
#include "graph/partition.h"
#include "graph/program.h"
#include "graph/trial.h"

typedef enum ft_plan_buffer_role {
  FT_PLAN_INPUT,
  FT_PLAN_CONSTANT,
  FT_PLAN_OUTPUT,
  FT_PLAN_INTERMEDIATE,
} ft_plan_buffer_role;

typedef struct ft_plan_buffer {
  uint32_t value;  // root value of the graph
  ft_plan_buffer_role role;
  uint64_t bytes;
  uint64_t offset;  // intermediates: byte offset in the workspace, multiple of 64;
                    // UINT64_MAX otherwise
} ft_plan_buffer;

typedef struct ft_plan_group {
  ft_workload workload;
  const char *tactic;
  ft_schedule schedule;
  ft_hash body_hash, source_hash, binary_hash;  // zero = not built alone yet
  const char *entry;
  uint32_t grid, threads;
  uint64_t scratch_bytes, workspace_bytes;
  const uint32_t *argument;  // buffer ids, input_count + output_count of them
  uint32_t depend_count;
  const uint32_t *depend;    // positions of the groups it reads from, ascending
  ft_time time;
  double predicted_ns, roofline_ns;  // < 0 = none
  ft_static_facts facts;
} ft_plan_group;

typedef struct ft_plan_times {
  ft_time tuned, unfused, primitive, greedy;  // end to end; samples 0 = not measured
  double additive_ns, bound_ns, gap;
  uint64_t measured_at;  // unix ns
} ft_plan_times;

typedef struct ft_plan {
  const ft_graph *graph;
  const ft_target *target;
  const char *strategy;  // "ideals", "unfused", "primitive", "horizontal-vertical"
  uint32_t window, span;
  bool window_saturated;
  uint32_t buffer_count, group_count;
  ft_plan_buffer *buffer;
  ft_plan_group *group;  // in the partition's order
  uint64_t workspace_bytes;  // intermediates, liveness solved
  uint64_t peak_bytes;       // inputs + constants + outputs + workspace
  ft_plan_times times;
  ft_hash hash;  // of the content, see ft_plan_seal
} ft_plan;

// Lays out buffers (liveness by group position, first fit) and arguments for
// |partition|; group i of the plan has workload[i]. Candidates and times are the
// caller's to fill; then ft_plan_seal.
FT_MUST_CHECK ft_status ft_plan_make(const ft_partition *partition,
                                     const ft_workload *workload,
                                     const ft_target *target, ft_arena *arena,
                                     ft_plan *out, ft_error *error);
// Sets plan->hash: SHA-256 of the compact sorted JSON without plan_id, match, status,
// times, and each group's time, predicted_ns, roofline_ns, counters, counters_absent.
FT_MUST_CHECK ft_status ft_plan_seal(ft_plan *plan, ft_arena *arena, ft_error *error);
// The whole plan as JSON (new reference), NULL when out of memory. |match_level|
// "exact" ...
json_t *ft_plan_json(const ft_plan *plan, const char *match_level);
// Rebuilds a plan for |graph| on |target| from its JSON (as stored): partition, tactics,
// schedules, times; hash checked. REFUSED names the member that does not fit.
FT_MUST_CHECK ft_status ft_plan_parse(const char *json, const ft_graph *graph,
                                      const ft_target *target, ft_arena *arena,
                                      ft_plan *out, ft_error *error);
// A time as {"high_ns":..,"low_ns":..,"median_ns":..,"samples":..}, or {} when unknown.
json_t *ft_time_json(const ft_time *time);

// The program that runs |plan|: module[i] implements group i; input[i] is the graph's
// input i. Constants come from the graph. Buffer i of the program is buffer i of the
// plan.
FT_MUST_CHECK ft_status ft_plan_program(const ft_plan *plan, const char *name,
                                        const ft_module *module, const ft_tensor *input,
                                        ft_arena *arena, ft_program *out,
                                        ft_error *error);

#endif
