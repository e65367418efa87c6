// One group per imported operator. An operator that no tactic takes whole (or whose
// kernels all failed) is cut into the fewest runs of its primitives that work, and the
// note says so.
#include "core/strbuf.h"
#include "search/forced.h"

// Runs of an operator's primitives [first, first + count).
typedef struct cutting {
  const ft_landscape *land;
  uint32_t first, count;
  uint32_t *fewest;  // [count + 1] runs that cover primitives from here to the end
  uint32_t *length;  // [count] of the first of them
} cutting;

static ft_status is_usable(const ft_landscape *land, uint32_t first, uint32_t count,
                           bool *out, ft_error *error) {
  *out = false;
  if (count > FT_SET_SPREAD) return FT_OK;
  uint64_t bits = count == 64 ? UINT64_MAX : (1ull << count) - 1;
  uint32_t group;
  FT_TRY(ft_catalog_judge(land->catalog, (ft_set){first, bits}, &group, NULL, error));
  if (group == FT_NONE) return FT_OK;
  const ft_catalog_group *known = &land->catalog->group[group];
  *out = known->is_measured || !ft_catalog_is_spent(known);
  return FT_OK;
}

// Backwards over the positions; of equals the longest first run wins.
static ft_status cut(cutting *c, ft_error *error) {
  c->fewest[c->count] = 0;
  for (uint32_t at = c->count; at-- > 0;) {
    c->fewest[at] = c->fewest[at + 1] + 1;
    c->length[at] = 1;
    for (uint32_t length = 2; length <= c->count - at; length++) {
      bool usable;
      FT_TRY(is_usable(c->land, c->first + at, length, &usable, error));
      if (!usable || c->fewest[at + length] + 1 > c->fewest[at]) continue;
      c->fewest[at] = c->fewest[at + length] + 1;
      c->length[at] = length;
    }
  }
  return FT_OK;
}

static ft_status cut_operator(const ft_landscape *land, const ft_operator *op,
                              ft_arena *arena, ft_set *set, uint32_t *count,
                              ft_error *error) {
  cutting c = {.land = land, .first = op->first, .count = op->count};
  c.fewest = FT_NEW_ARRAY(arena, uint32_t, (size_t)op->count + 1);
  c.length = FT_NEW_ARRAY(arena, uint32_t, op->count);
  FT_OOM_IF(!c.fewest || !c.length, error);
  bool usable;
  FT_TRY(is_usable(land, op->first, op->count, &usable, error));
  if (usable) {
    c.length[0] = op->count;
  } else {
    FT_TRY(cut(&c, error));
  }
  for (uint32_t at = 0; at < op->count; at += c.length[at]) {
    uint64_t bits = c.length[at] == 64 ? UINT64_MAX : (1ull << c.length[at]) - 1;
    set[(*count)++] = (ft_set){op->first + at, bits};
  }
  return FT_OK;
}

ft_status ft_strategy_unfused_divide(const ft_landscape *land, ft_arena *arena,
                                     ft_division *out, ft_error *error) {
  if (ft_forced_is_needed(land)) return ft_forced_divide(land, true, arena, out, error);
  ft_set *set = FT_NEW_ARRAY(arena, ft_set, land->dag->count);
  FT_OOM_IF(!set, error);
  ft_strbuf note = ft_strbuf_init(arena);
  uint32_t count = 0;
  for (uint32_t i = 0; i < land->graph->operator_count; i++) {
    const ft_operator *op = &land->graph->operator_[i];
    if (!op->count) continue;
    uint32_t before = count;
    FT_TRY(cut_operator(land, op, arena, set, &count, error));
    if (count - before > 1)
      ft_strbuf_printf(&note, "%s%s %s takes %u kernels", note.length ? ", " : "",
                       op->type, op->name, count - before);
  }
  FT_OOM_IF(note.failed, error);
  *out = (ft_division){count, set, note.length ? note.text : ""};
  return FT_OK;
}
