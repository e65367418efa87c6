#include "search/path.h"

#include <math.h>

typedef struct node {
  ft_path_cost cost;
  uint32_t from;  // ideal before, FT_NONE: not reached
  uint32_t set;
} node;

ft_path_cost ft_path_add(ft_path_cost a, double cost_ns) {
  bool is_finite = isfinite(cost_ns);
  return (ft_path_cost){.missing = a.missing + !is_finite,
                        .ns = a.ns + (is_finite ? cost_ns : 0),
                        .groups = a.groups + 1};
}

// Steps lead to higher indices: one sweep settles each ideal before it is left.
static void relax(const ft_priced_lattice *priced, node *at) {
  const ft_lattice *lattice = priced->lattice;
  for (uint32_t i = 0; i < lattice->ideals.count; i++) {
    if (i && at[i].from == FT_NONE) continue;
    for (uint32_t s = lattice->step_at[i]; s < lattice->step_at[i + 1]; s++) {
      const ft_step *step = &lattice->step[s];
      uint32_t group = priced->group_of_set[step->set];
      if (group == FT_NONE) continue;
      ft_path_cost cost = ft_path_add(at[i].cost, priced->cost_ns[group]);
      node *to = &at[step->to];
      if (to->from != FT_NONE && !ft_path_is_less(cost, to->cost)) continue;
      *to = (node){cost, i, step->set};
    }
  }
}

ft_status ft_path_solve(const ft_priced_lattice *priced, ft_arena *arena, ft_path *out,
                        ft_error *error) {
  uint32_t count = priced->lattice->ideals.count;
  node *at = FT_NEW_ARRAY(arena, node, count);
  FT_OOM_IF(!at, error);
  for (uint32_t i = 0; i < count; i++) at[i].from = FT_NONE;
  relax(priced, at);
  FT_ASSERT(count == 1 || at[count - 1].from != FT_NONE);
  ft_path_cost cost = at[count - 1].cost;
  ft_set *set = FT_NEW_ARRAY(arena, ft_set, cost.groups);
  FT_OOM_IF(!set, error);
  uint32_t left = cost.groups;
  for (uint32_t i = count - 1; i; i = at[i].from)
    set[--left] = priced->lattice->set[at[i].set];
  FT_ASSERT(left == 0);
  *out = (ft_path){cost, cost.groups, set};
  return FT_OK;
}

static void sweep_forwards(const ft_priced_lattice *priced, double *reach) {
  const ft_lattice *lattice = priced->lattice;
  for (uint32_t i = 0; i < lattice->ideals.count; i++)
    for (uint32_t s = lattice->step_at[i]; s < lattice->step_at[i + 1]; s++) {
      const ft_step *step = &lattice->step[s];
      uint32_t group = priced->group_of_set[step->set];
      if (group == FT_NONE) continue;
      double ns = reach[i] + priced->cost_ns[group];
      if (ns < reach[step->to]) reach[step->to] = ns;
    }
}

// |rest| becomes the way to the end; each step's sum is offered to its group.
static void sweep_backwards(const ft_priced_lattice *priced, const double *reach,
                            double *rest, double *out_ns) {
  const ft_lattice *lattice = priced->lattice;
  for (uint32_t i = lattice->ideals.count; i-- > 0;)
    for (uint32_t s = lattice->step_at[i]; s < lattice->step_at[i + 1]; s++) {
      const ft_step *step = &lattice->step[s];
      uint32_t group = priced->group_of_set[step->set];
      if (group == FT_NONE) continue;
      double ns = priced->cost_ns[group] + rest[step->to];
      if (ns < rest[i]) rest[i] = ns;
      if (reach[i] + ns < out_ns[group]) out_ns[group] = reach[i] + ns;
    }
}

ft_status ft_path_through(const ft_priced_lattice *priced, uint32_t group_count,
                          ft_arena *arena, double *out_ns, ft_error *error) {
  uint32_t count = priced->lattice->ideals.count;
  double *reach = FT_NEW_ARRAY(arena, double, count);
  double *rest = FT_NEW_ARRAY(arena, double, count);
  FT_OOM_IF(!reach || !rest, error);
  for (uint32_t i = 0; i < count; i++) reach[i] = rest[i] = INFINITY;
  for (uint32_t i = 0; i < group_count; i++) out_ns[i] = INFINITY;
  reach[0] = rest[count - 1] = 0;
  sweep_forwards(priced, reach);
  sweep_backwards(priced, reach, rest, out_ns);
  return FT_OK;
}
