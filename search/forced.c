#include "search/forced.h"

#include <math.h>

#include "search/path.h"

// Joining one primitive more weighs more than any number of kernels.
static const double JOINED = 1e6;

bool ft_forced_is_needed(const ft_landscape *land) {
  return ft_constraints_classes(land->catalog->constraints) > 0;
}

// ---- can it be done ------------------------------------------------------------

static bool holds_class(const ft_landscape *land, uint32_t class, ft_set set) {
  uint32_t count;
  const uint32_t *member =
      ft_constraints_class(land->catalog->constraints, class, &count);
  for (uint32_t i = 0; i < count; i++)
    if (!ft_set_has(set, member[i])) return false;
  return true;
}

static bool has_group(const ft_landscape *land, uint32_t class) {
  for (uint32_t i = 0; i < land->lattice->set_count; i++)
    if (land->group_of_set[i] != FT_NONE &&
        holds_class(land, class, land->lattice->set[i]))
      return true;
  return false;
}

// The members and all that lies on a way between two of them.
static ft_status close_class(const ft_landscape *land, uint32_t class, ft_arena *arena,
                             bool **out, uint32_t *out_count, ft_error *error) {
  const ft_dag *dag = land->dag;
  uint32_t members, count = 0;
  const uint32_t *member =
      ft_constraints_class(land->catalog->constraints, class, &members);
  bool *after = FT_NEW_ARRAY(arena, bool, dag->count);
  bool *before = FT_NEW_ARRAY(arena, bool, dag->count);
  FT_OOM_IF(!after || !before, error);
  for (uint32_t i = 0; i < members; i++) after[member[i]] = before[member[i]] = true;
  for (uint32_t v = 0; v < dag->count; v++)
    for (uint32_t k = dag->producer_at[v]; k < dag->producer_at[v + 1]; k++)
      after[v] |= after[dag->producer[k]];
  for (uint32_t v = dag->count; v-- > 0;)
    for (uint32_t k = dag->consumer_at[v]; k < dag->consumer_at[v + 1]; k++)
      before[v] |= before[dag->consumer[k]];
  for (uint32_t v = 0; v < dag->count; v++) {
    after[v] &= before[v];
    count += after[v];
  }
  *out = after;
  *out_count = count;
  return FT_OK;
}

static ft_status explain(const ft_landscape *land, uint32_t class, ft_arena *arena,
                         ft_error *error) {
  const char *text = ft_constraints_class_text(land->catalog->constraints, class);
  bool *member;
  uint32_t count, first = 0, last = 0, group;
  FT_TRY(close_class(land, class, arena, &member, &count, error));
  while (!member[first]) first++;
  for (uint32_t v = first; v < land->dag->count; v++)
    if (member[v]) last = v;
  if (count > land->window)
    FT_FAIL(error, FT_INVALID_ARGUMENT,
            "%s, but with all between them they are %u primitives, and the window is %u",
            text, count, land->window);
  if (last - first >= land->span)
    FT_FAIL(error, FT_INVALID_ARGUMENT,
            "%s, but they reach over %u primitives, and the span is %u", text,
            last - first + 1, land->span);
  ft_set set = {first, 0};
  for (uint32_t v = first; v <= last; v++)
    if (member[v]) set.bits |= 1ull << (v - first);
  const char *reason;
  FT_TRY(ft_catalog_judge(land->catalog, set, &group, &reason, error));
  if (group != FT_NONE) reason = "no group joins them, for they share no value";
  FT_FAIL(error, FT_INVALID_ARGUMENT, "%s, but: %s", text, reason);
}

static ft_status check_way(const ft_landscape *land, ft_arena *arena, ft_error *error) {
  const ft_lattice *lattice = land->lattice;
  bool *reached = FT_NEW_ARRAY(arena, bool, lattice->ideals.count);
  FT_OOM_IF(!reached, error);
  reached[0] = true;
  for (uint32_t i = 0; i < lattice->ideals.count; i++)
    for (uint32_t s = lattice->step_at[i]; s < lattice->step_at[i + 1]; s++)
      if (reached[i] && land->group_of_set[lattice->step[s].set] != FT_NONE)
        reached[lattice->step[s].to] = true;
  if (!reached[lattice->ideals.count - 1])
    FT_FAIL(error, FT_INVALID_ARGUMENT,
            "the constraints together leave no way to divide the graph");
  return FT_OK;
}

ft_status ft_forced_check(const ft_landscape *land, ft_arena *arena, ft_error *error) {
  for (uint32_t i = 0; i < ft_constraints_classes(land->catalog->constraints); i++)
    if (!has_group(land, i)) return explain(land, i, arena, error);
  return check_way(land, arena, error);
}

// ---- the baselines -------------------------------------------------------------

static double price(const ft_landscape *land, ft_set set, bool by_operator) {
  uint32_t member[FT_SET_SPREAD], count = ft_set_list(set, member);
  uint32_t first = land->graph->primitive[member[0]].op_index;
  bool is_alone = count == 1;
  for (uint32_t i = 1; by_operator && i < count; i++) {
    is_alone = land->graph->primitive[member[i]].op_index == first;
    if (!is_alone) break;
  }
  return is_alone ? 1 : JOINED * count;
}

ft_status ft_forced_divide(const ft_landscape *land, bool by_operator, ft_arena *arena,
                           ft_division *out, ft_error *error) {
  uint32_t sets = land->lattice->set_count;
  uint32_t *group = FT_NEW_ARRAY(arena, uint32_t, sets);
  double *cost = FT_NEW_ARRAY(arena, double, sets);
  FT_OOM_IF(!group || !cost, error);
  for (uint32_t i = 0; i < sets; i++) {
    uint32_t of = land->group_of_set[i];
    group[i] = of == FT_NONE ? FT_NONE : i;  // a price for each set, not each workload
    if (of == FT_NONE) continue;
    const ft_catalog_group *g = &land->catalog->group[of];
    bool is_dead = ft_catalog_is_spent(g) && !g->is_measured;
    cost[i] = is_dead ? INFINITY : price(land, land->lattice->set[i], by_operator);
  }
  ft_path path;
  ft_priced_lattice priced = {land->lattice, group, cost};
  FT_TRY(ft_path_solve(&priced, arena, &path, error));
  *out = (ft_division){path.set_count, path.set, ""};
  return FT_OK;
}
