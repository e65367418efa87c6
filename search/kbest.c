#include "search/kbest.h"

#include <string.h>

// One way to an ideal: by |set| from the |rank|-th way to the ideal |from|.
typedef struct way {
  ft_path_cost cost;
  uint64_t key;
  uint32_t from, set;
  uint32_t rank;
} way;

// The ways to each ideal, cheapest first: way[ideal * k .. + count[ideal]).
typedef struct solver {
  const ft_priced_lattice *priced;
  uint32_t k;
  way *way;
  uint8_t *count;
  uint64_t *key_of_set;  // [sets]
} solver;

// Keys are summed, so the hash (FNV, nearly linear) is scrambled first: else
// {a} + {b, c} and {a, b} + {c} meet far too often. Source: splitmix64.
static uint64_t key_of(ft_set set) {
  uint64_t x = ft_set_hash(set);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

uint64_t ft_division_key(const ft_set *set, uint32_t count) {
  uint64_t key = 0;
  for (uint32_t i = 0; i < count; i++) key += key_of(set[i]);
  return key;
}

// Places |new| among the ways to |ideal| unless k are cheaper or the partition is there.
static void offer(solver *s, uint32_t ideal, const way *new) {
  way *list = &s->way[(size_t)ideal * s->k];
  uint32_t count = s->count[ideal];
  for (uint32_t i = 0; i < count; i++)
    if (list[i].key == new->key) return;
  uint32_t at = count;
  while (at && ft_path_is_less(new->cost, list[at - 1].cost)) at--;
  if (at == s->k) return;
  uint32_t moved = (count < s->k ? count : s->k - 1) - at;
  memmove(&list[at + 1], &list[at], moved * sizeof *list);
  list[at] = *new;
  if (count < s->k) s->count[ideal]++;
}

static bool is_hopeless(const solver *s, uint32_t ideal, ft_path_cost cost) {
  if (s->count[ideal] < s->k) return false;
  return !ft_path_is_less(cost, s->way[(size_t)ideal * s->k + s->k - 1].cost);
}

static void take_step(solver *s, uint32_t from, const ft_step *step) {
  uint32_t group = s->priced->group_of_set[step->set];
  if (group == FT_NONE) return;
  const way *list = &s->way[(size_t)from * s->k];
  for (uint32_t rank = 0; rank < s->count[from]; rank++) {
    way new = {.cost = ft_path_add(list[rank].cost, s->priced->cost_ns[group]),
               .key = list[rank].key + s->key_of_set[step->set],
               .from = from,
               .set = step->set,
               .rank = rank};
    if (is_hopeless(s, step->to, new.cost)) return;  // the rest costs more
    offer(s, step->to, &new);
  }
}

static ft_status trace(const solver *s, uint32_t rank, ft_arena *arena, ft_path *out,
                       ft_error *error) {
  const ft_lattice *lattice = s->priced->lattice;
  uint32_t ideal = lattice->ideals.count - 1;
  const way *w = &s->way[(size_t)ideal * s->k + rank];
  uint32_t left = w->cost.groups;
  ft_set *set = FT_NEW_ARRAY(arena, ft_set, left);
  FT_OOM_IF(!set, error);
  *out = (ft_path){w->cost, left, set};
  for (; left; w = &s->way[(size_t)w->from * s->k + w->rank])
    set[--left] = lattice->set[w->set];
  return FT_OK;
}

ft_status ft_kbest_solve(const ft_priced_lattice *priced, uint32_t k, ft_arena *arena,
                         ft_path *out_path, uint32_t *out_count, ft_error *error) {
  FT_ASSERT(k >= 1 && k <= FT_KBEST_MOST);
  const ft_lattice *lattice = priced->lattice;
  uint32_t ideals = lattice->ideals.count;
  solver s = {.priced = priced,
              .k = k,
              .way = FT_NEW_ARRAY(arena, way, (size_t)ideals * k),
              .count = FT_NEW_ARRAY(arena, uint8_t, ideals),
              .key_of_set = FT_NEW_ARRAY(arena, uint64_t, lattice->set_count)};
  FT_OOM_IF(!s.way || !s.count || !s.key_of_set, error);
  for (uint32_t i = 0; i < lattice->set_count; i++)
    s.key_of_set[i] = key_of(lattice->set[i]);
  s.count[0] = 1;  // nothing, for nothing
  for (uint32_t i = 0; i < ideals; i++)
    for (uint32_t at = lattice->step_at[i]; at < lattice->step_at[i + 1]; at++)
      take_step(&s, i, &lattice->step[at]);
  *out_count = s.count[ideals - 1];
  for (uint32_t rank = 0; rank < *out_count; rank++)
    FT_TRY(trace(&s, rank, arena, &out_path[rank], error));
  return FT_OK;
}
