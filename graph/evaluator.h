// evaluator - the three things search can ask. search/ sees codegen, measure, the store
// and the cost model only through these tables, so it runs on fakes.
#ifndef FT_GRAPH_EVALUATOR_H
#define FT_GRAPH_EVALUATOR_H

#include "graph/candidate.h"
#include "graph/module.h"
#include "graph/trial.h"

// ---- builder: what can implement a group, and its kernels -------------------------
typedef struct ft_builder {
  void *self;

  // Which tactics accept |workload|: names (static) in *out (room for |room|), best
  // guess first; returns how many. 0: no kernel can be made; *reason (static or in
  // |arena|) then names the rule ("reduces axes 0 and 2 of 3"). This is legality: a
  // group is legal when this is > 0. Pure; cheap (well under a millisecond).
  uint32_t (*match)(void *self, const ft_workload *workload, ft_arena *arena,
                    const char **out, uint32_t room, const char **reason);

  // Every schedule of |tactic| worth trying, default first, then in order of promise.
  // All of them pass |check|.
  ft_status (*space)(void *self, const ft_workload *workload, const char *tactic,
                     const ft_target *target, ft_arena *arena, ft_schedule **out,
                     uint32_t *out_count, ft_error *error);

  // NULL when the schedule can work, else the reason. What check accepts compiles.
  const char *(*check)(void *self, const ft_candidate *candidate, ft_arena *arena);

  // The kernel's source (banner included) in |arena|. Equal candidates give equal bytes.
  ft_status (*emit)(void *self, const ft_candidate *candidate, ft_arena *arena,
                    const char **out_source, ft_hash *out_body_hash, ft_error *error);

  // Builds all, in parallel, cached by body hash, compiler and flags. A kernel that
  // fails is an outcome in out[i]; an error is our own fault (no compiler, disk full).
  // Strings in |arena|. |alone| builds each in its own shared object (for plans).
  ft_status (*build)(void *self, const ft_candidate *candidate, uint32_t count,
                     bool alone, ft_arena *arena, ft_module *out, ft_error *error);
} ft_builder;

// ---- runner: what a candidate really costs ------------------------------------------
typedef struct ft_measure_request {
  const ft_candidate *candidate;
  uint64_t beaten_ns;  // stop early when clearly above this; 0 = never
  // Fresh samples, and more of them: the time that plans are judged by. A first time is
  // taken from few samples, and the best of many such is lucky.
  bool is_confirmation;
} ft_measure_request;

typedef struct ft_runner {
  void *self;
  // Measures each (builds, checks the output, times). out[i] in |arena|. A bad candidate
  // is an outcome. Errors are our own faults, and FT_INTERRUPTED (what was measured
  // before is in |out|, the rest has outcome INTERRUPTED). Implementations may answer
  // from a store instead of running.
  ft_status (*measure)(void *self, const ft_measure_request *request, uint32_t count,
                       ft_arena *arena, ft_trial *out, ft_error *error);
} ft_runner;

// ---- predictor: what a candidate may cost ---------------------------------------------
typedef struct ft_predictor {
  void *self;

  // Predicted ns of each, finite and > 0.
  ft_status (*predict)(void *self, const ft_candidate *candidate, uint32_t count,
                       double *out_ns, ft_error *error);

  // A time that no kernel for |workload| can beat on this target (cold caches, launch
  // included), by ceilings measured on it; 0: none known. Pure between two
  // contradictions; a few microseconds.
  double (*bound_ns)(void *self, const ft_workload *workload);

  // |trial| of |candidate| worked, and is faster than |bound_ns| said possible: either
  // its time is wrong or a ceiling was. Keeps the evidence and raises the ceiling, so
  // that from now on bound_ns of its workload is at most its median; bounds of others
  // may fall too, none rises.
  ft_status (*contradict)(void *self, const ft_candidate *candidate,
                          const ft_trial *trial, double bound_ns, ft_error *error);

  // NULL, or: what each candidate will not beat, by what is known of it before it is
  // built; infinite: it has no kernel. Of one workload; some milliseconds for each. For
  // targets where a trial is a prediction too: a candidate whose floor is no lower than
  // the group's best need not be built.
  ft_status (*floors)(void *self, const ft_candidate *candidate, uint32_t count,
                      double *out_ns, ft_error *error);
} ft_predictor;

#endif
