// The shortest path over order ideals: the best of all partitions within window and
// span, for the costs known. Unmeasured groups count as missing, so they are used only
// where nothing else is known.
#include "search/path.h"
#include "search/strategy.h"

static double *list_costs(const ft_catalog *catalog, ft_arena *arena) {
  double *cost_ns = FT_NEW_ARRAY(arena, double, catalog->group_count);
  for (size_t i = 0; cost_ns && i < catalog->group_count; i++)
    cost_ns[i] = catalog->group[i].cost_ns;
  return cost_ns;
}

ft_status ft_strategy_ideals_divide(const ft_landscape *land, ft_arena *arena,
                                    ft_division *out, ft_error *error) {
  double *cost_ns = list_costs(land->catalog, arena);
  FT_OOM_IF(!cost_ns, error);
  ft_path path;
  ft_priced_lattice priced = {land->lattice, land->group_of_set, cost_ns};
  FT_TRY(ft_path_solve(&priced, arena, &path, error));
  *out = (ft_division){path.set_count, path.set, ""};
  return FT_OK;
}
