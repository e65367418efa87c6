// One group per primitive: what fission alone would run.
#include "search/forced.h"

ft_status ft_strategy_primitive_divide(const ft_landscape *land, ft_arena *arena,
                                       ft_division *out, ft_error *error) {
  if (ft_forced_is_needed(land)) return ft_forced_divide(land, false, arena, out, error);
  uint32_t count = land->dag->count;
  ft_set *set = FT_NEW_ARRAY(arena, ft_set, count);
  FT_OOM_IF(!set, error);
  for (uint32_t i = 0; i < count; i++) set[i] = (ft_set){i, 1};
  *out = (ft_division){count, set, ""};
  return FT_OK;
}
