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
  const char *entry;                            // NULL = not built alone yet
  const char *link;                             // library that it calls; NULL = none
  uint32_t grid, threads;                       // 0 = not built yet
  ft_gpu_launch launch;                         // of a GPU's kernel
  uint64_t scratch_bytes, workspace_bytes;
  uint32_t scalar_count;
  const int64_t *scalar;
  const uint32_t *argument;  // buffer ids, input_count + output_count of them
  uint32_t depend_count;
  const uint32_t *depend;  // positions of the groups it reads from, ascending
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
  ft_plan_buffer *buffer;        // inputs (graph order), constants (value order), outputs
                                 // (graph order), intermediates (value order)
  const uint32_t *input_buffer;  // [graph inputs] buffer ids
  const uint32_t *output_buffer;  // [graph outputs] buffer ids; an output that is a view,
                                  // an input or a constant has its root's buffer
  ft_plan_group *group;           // in the partition's order
  uint64_t workspace_bytes;       // intermediates, liveness solved
  uint64_t peak_bytes;            // inputs + constants + outputs + workspace
  ft_plan_times times;
  ft_hash hash;  // of the content, see ft_plan_seal
} ft_plan;

// Lays out buffers (liveness by group position, first fit) and arguments for
// |partition|; group i of the plan has workload[i] (of that very group). Candidates and
// times are the caller's to fill (ft_plan_group_build does the kernel's part); then
// ft_plan_seal. INVALID_ARGUMENT: a workload of another group; REFUSED: the buffers
// together take more than 2^62 bytes.
FT_MUST_CHECK ft_status ft_plan_make(const ft_partition *partition,
                                     const ft_workload *workload, const ft_target *target,
                                     ft_arena *arena, ft_plan *out, ft_error *error);
// What |module| (built alone) says of the kernel: hashes, entry, launch, scalars, facts.
// |binary_hash| is of the shared object's bytes. Strings and scalars are borrowed.
void ft_plan_group_build(ft_plan_group *group, const ft_module *module,
                         const ft_hash *binary_hash);

// Sets plan->hash: SHA-256 of the compact sorted JSON without what another model of the
// same graph, or another measurement, may change (docs/plan_format.md lists the members).
// INVALID_ARGUMENT: a time or prediction that is not finite, or negative where it may not
// be; a group without tactic.
FT_MUST_CHECK ft_status ft_plan_seal(ft_plan *plan, ft_arena *arena, ft_error *error);
// "measured" when every group has a time, else "predicted". Static storage.
const char *ft_plan_status(const ft_plan *plan);
// The whole sealed plan as JSON (new reference), NULL when out of memory. |match_level|
// "exact" ... Hashes the constants' bytes: as slow as reading them.
json_t *ft_plan_json(const ft_plan *plan, const char *match_level);
// The same as canonical text (sorted keys, compact), in |arena|: what is stored.
FT_MUST_CHECK ft_status ft_plan_text(const ft_plan *plan, const char *match_level,
                                     ft_arena *arena, const char **out, ft_error *error);
// Rebuilds a plan for |graph| on |target| from its JSON (as stored). Nothing in it is
// believed that can be computed: groups are made again from their primitives' ids, their
// workloads' hashes compared, buffers laid out anew, and every member that the plan of
// this graph must have is compared; last, plan_id with the hash of the content. Unknown
// members are ignored. REFUSED names the member that does not fit
// ("groups[1].arguments[0]: is 7, must be 3"). All strings are in |arena|.
FT_MUST_CHECK ft_status ft_plan_parse(const char *json, const ft_graph *graph,
                                      const ft_target *target, ft_arena *arena,
                                      ft_plan *out, ft_error *error);

// One member of the plan's "groups" (new reference), NULL when out of memory.
json_t *ft_plan_group_json(const ft_plan *plan, uint32_t index);
// A time as {"high_ns":..,"low_ns":..,"median_ns":..,"samples":..}, or {} when unknown.
json_t *ft_time_json(const ft_time *time);
// Canonical text (sorted keys, compact) of |json| in |arena|; NULL when out of memory.
// Borrows |json|, which may be NULL (gives NULL).
const char *ft_json_text(const json_t *json, ft_arena *arena);

// The program that runs |plan|: module[i] implements group i; input[i] is the graph's
// input i. Constants come from the graph. Buffer i of the program is buffer i of the
// plan. A graph output that is an input or a constant has no output buffer in it: take
// the bytes from there (plan->output_buffer says which). Input keys are ft_content_key.
FT_MUST_CHECK ft_status ft_plan_program(const ft_plan *plan, const char *name,
                                        const ft_module *module, const ft_tensor *input,
                                        ft_arena *arena, ft_program *out,
                                        ft_error *error);
// A 64-bit hash of the bytes, for ft_program_buffer.key: equal bytes, equal key. Reads
// 8 bytes per step; not for hostile data.
uint64_t ft_content_key(const void *data, uint64_t bytes);

#endif
