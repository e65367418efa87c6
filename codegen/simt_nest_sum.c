// In which precision a reduction adds up. f64 costs where a GPU has few units for it, and
// a thread's share of a row is short: f32 is enough when no chain of additions is longer
// than the comparison forgives, worst case: |chain| roundings of at most sum |terms|
// each, against FT_TOLERANCE_ULPS * max(1, sqrt(n) / 4) of them.
#include <math.h>

#include "codegen/simt_nest_plan.h"
#include "graph/interpreter.h"

static int64_t forgiven(int64_t terms) {
  return (int64_t)(FT_TOLERANCE_ULPS * fmax(1, sqrt((double)terms) / 4));
}

// Longest chain in one accumulator: the last steps all go to the first one.
static int64_t thread_chain(const ft_simt_plan *p) {
  if (p->accumulators == 1) return p->share;
  return p->share / p->accumulators + p->accumulators;
}

static int64_t doublings(uint32_t threads) {
  int64_t count = 0;
  while (threads >> (count + 1)) count++;
  return count;
}

// Additions from the accumulators to the result.
static int64_t meeting_chain(const ft_simt_plan *p) {
  uint32_t warp = p->walkers < FT_SIMT_WARP ? p->walkers : FT_SIMT_WARP;
  int64_t threads = doublings(p->walkers);
  if (ft_simt_plan_is_row(p)) threads = doublings(warp) + p->walkers / warp - 1;
  int64_t lanes = ft_simt_plan_varies(p, p->ir->reduced) ? p->lanes - 1 : 0;
  int64_t all = p->accumulators - 1 + lanes + threads;
  if (p->parts == 1) return all;
  return all + (p->parts + p->walkers - 1) / p->walkers + threads;
}

// Turns that fill an accumulator, and the last steps of a row that follow.
static int64_t chunk_turns(const ft_simt_plan *p, int64_t limit) {
  int64_t turns = p->accumulators == 1 ? limit : limit - p->accumulators;
  return turns < 1 ? 1 : turns;
}

ft_simt_sum ft_simt_plan_sum(const ft_simt_plan *p, uint32_t node) {
  const ft_node *n = &p->ir->node[node];
  ft_dtype math = ft_kir_math_dtype(n->dtype);
  ft_simt_sum sum = {math, math, 0};
  if (math != FT_F32) return sum;
  // Products overflow on the way where the result does not; those of f16 not in f32.
  if (n->op == FT_OP_REDUCE_PROD && n->dtype != FT_F16)
    return (ft_simt_sum){FT_F64, FT_F64, 0};
  if (n->op != FT_OP_REDUCE_SUM) return sum;
  int64_t limit = forgiven(ft_group_ir_points(p->ir, p->ir->reduced));
  int64_t chain = thread_chain(p);
  if (chain + meeting_chain(p) <= limit) return sum;
  sum.meet = FT_F64;
  if (chain <= limit) return sum;
  if (p->choice.buffer == FT_SIMT_REGISTERS)
    sum.part = FT_F64;
  else
    sum.chunk = chunk_turns(p, limit);
  return sum;
}
