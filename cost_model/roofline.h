// roofline - a predictor (graph/evaluator.h) from measured ceilings: what a workload must
// at least take, and about how long it will.
//
//   bound = launch + max(read / R, write / W, (read + write) / B, products / P, all / F)
//
// over the compulsory work (cost_model/work.h), with the target's ceilings 2 % better
// than the best ever measured: a launch; R, W, B bytes per second read, written, moved in
// any mix; P and F operations per second of fused multiply-adds, and of any mix.
//
//  1. A rate holds for a size: of the sizes measured, the two largest that are not above
//     the work's and all larger ones count, and the best of these is taken. Rates fall
//     with size, as less of it survives in a cache, so none at the work's own size is
//     above it; two, so that a disturbance while one was measured does no harm.
//  2. A bound falls with every contradiction and rises with none.
//  3. After a contradiction the bound of its workload is at most the trial's median.
//
// Sources: the valid lower bound of docs/decisions.md; Williams et al., CACM 52(4), 2009.
#ifndef FT_COST_MODEL_ROOFLINE_H
#define FT_COST_MODEL_ROOFLINE_H

#include "graph/ceiling.h"
#include "graph/evaluator.h"

typedef struct ft_roofline ft_roofline;

// A trial that was faster than its bound, and what became of it.
typedef struct ft_roofline_alarm {
  const ft_candidate *candidate;
  const ft_trial *trial;
  double bound_ns;
  // The ceiling that gave way: the first to be raised, else the one that bound.
  ft_ceiling_kind kind;
  uint64_t bytes;
  double before, after;
  bool is_remeasured;  // ceilings were measured anew
  bool is_explained;   // and that alone brought the bound down to the median
} ft_roofline_alarm;

typedef struct ft_roofline_hooks {
  void *self;
  // Measures the ceilings anew into |out| (room for FT_CEILINGS_MOST); 0 rows: not now.
  // NULL: never. An error other than INTERRUPTED is as good as no rows.
  ft_status (*remeasure)(void *self, ft_ceiling *out, uint32_t *out_count,
                         ft_error *error);
  // Keeps the evidence, and |ceiling| as they are now. NULL: nowhere.
  ft_status (*keep)(void *self, const ft_roofline_alarm *alarm, const ft_ceiling *ceiling,
                    uint32_t count, ft_error *error);
} ft_roofline_hooks;

// |ceiling| is copied; rows of one kind and size after the first, and rows with a value
// that is not finite and positive, are left out. |hooks| (copied) may be NULL.
// Thread-compatible.
FT_MUST_CHECK ft_status ft_roofline_create(const ft_ceiling *ceiling, uint32_t count,
                                           const ft_roofline_hooks *hooks,
                                           const ft_allocator *allocator,
                                           ft_roofline **out, ft_error *error);
void ft_roofline_destroy(ft_roofline *roofline);  // NULL is fine

// predict: the work as the workload states it (read_bytes, write_bytes, flops) at the
// ceilings, over what its class of kernel typically reaches of them.
// bound_ns: 0 also for a workload that moves nothing.
// contradict: nothing when the bound is not above the median (any more). Else measures
// the ceilings anew (when the median is below 97 % of the bound: less is noise), raises
// the one that still binds, keeps the evidence and logs a line. INVALID_ARGUMENT: a trial
// that is not OK.
ft_predictor ft_roofline_predictor(ft_roofline *roofline);

// As they are now: the best of each, contradictions included.
const ft_ceiling *ft_roofline_ceilings(const ft_roofline *roofline, uint32_t *out_count);

#endif
