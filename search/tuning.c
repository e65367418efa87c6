#include "search/tuning.h"

#include <math.h>
#include <stdlib.h>

#include "core/clock.h"
#include "search/path.h"

// A trial is stopped early when it is clearly above this much of the group's best.
static const double BEATEN = 1.15;
// Promise lost by each schedule tried: eight weigh as much as being 10 % off the path.
static const double WEAR = 0.0125;
enum { SLICE = 4 };  // schedules of one group in a row

typedef struct turn {
  uint32_t group;
  bool is_late;
  double key;  // smaller first
} turn;

bool ft_tuning_has_work(const ft_catalog *catalog) {
  for (size_t i = 0; i < catalog->group_count; i++)
    if (!catalog->group[i].is_open || catalog->group[i].next < catalog->group[i].space)
      return true;
  return false;
}

static int by_key(const void *a, const void *b) {
  const turn *x = a, *y = b;
  if (x->is_late != y->is_late) return x->is_late ? 1 : -1;
  if (x->key < y->key || x->key > y->key) return x->key < y->key ? -1 : 1;
  return x->group < y->group ? -1 : x->group > y->group;
}

// ---- the first round -----------------------------------------------------------

// Traffic of the primitives one by one, less that of the group.
static ft_status bytes_saved(ft_catalog *catalog, uint32_t index, double *out,
                             ft_error *error) {
  const ft_workload *workload = catalog->group[index].workload;
  double bytes = -(double)workload->read_bytes - (double)workload->write_bytes;
  for (uint32_t i = 0; i < workload->group.primitive_count; i++) {
    ft_set one = {workload->group.primitive[i], 1};
    uint32_t single;
    FT_TRY(ft_catalog_judge(catalog, one, &single, NULL, error));
    if (single == FT_NONE) continue;
    const ft_workload *part = catalog->group[single].workload;
    bytes += (double)part->read_bytes + (double)part->write_bytes;
  }
  *out = bytes;
  return FT_OK;
}

// Baselines in their order, then the others by what they save.
static ft_status list_defaults(ft_catalog *catalog, const uint8_t *rank, turn *out,
                               uint32_t *out_count, ft_error *error) {
  for (uint32_t i = 0; i < catalog->group_count; i++) {
    if (catalog->group[i].next || ft_catalog_is_spent(&catalog->group[i])) continue;
    turn *t = &out[(*out_count)++];
    *t = (turn){i, rank[i] == UINT8_MAX, rank[i]};
    if (!t->is_late) continue;
    FT_TRY(bytes_saved(catalog, i, &t->key, error));
    t->key *= -(double)catalog->group[i].instances;
  }
  return FT_OK;
}

// ---- later rounds --------------------------------------------------------------

static ft_status price_optimistically(const ft_landscape *land, ft_arena *arena,
                                      double *out_through, ft_error *error) {
  const ft_catalog *catalog = land->catalog;
  double *cost_ns = FT_NEW_ARRAY(arena, double, catalog->group_count);
  FT_OOM_IF(!cost_ns, error);
  for (size_t i = 0; i < catalog->group_count; i++)
    cost_ns[i] = ft_catalog_bound_ns(&catalog->group[i]);
  ft_priced_lattice priced = {land->lattice, land->group_of_set, cost_ns};
  return ft_path_through(&priced, (uint32_t)catalog->group_count, arena, out_through,
                         error);
}

static double promise(const ft_catalog_group *group, bool is_on_path, double through_ns,
                      double best_ns) {
  double slack = is_on_path || through_ns <= best_ns ? 0 : through_ns - best_ns;
  double share = slack > 0 ? slack / (group->is_measured ? group->cost_ns : best_ns) : 0;
  return share + WEAR * group->tried;
}

static ft_status list_by_promise(const ft_landscape *land, const ft_tuning_hints *hints,
                                 ft_arena *arena, turn *out, uint32_t *out_count,
                                 ft_error *error) {
  const ft_catalog *catalog = land->catalog;
  double *through = FT_NEW_ARRAY(arena, double, catalog->group_count);
  FT_OOM_IF(!through, error);
  FT_TRY(price_optimistically(land, arena, through, error));
  for (uint32_t i = 0; i < catalog->group_count; i++) {
    const ft_catalog_group *group = &catalog->group[i];
    if (group->next == group->space) continue;
    double key = promise(group, hints->is_on_path[i], through[i], hints->best_ns);
    out[(*out_count)++] = (turn){i, false, key};
  }
  return FT_OK;
}

// ---- picking -------------------------------------------------------------------

static uint32_t deal(ft_catalog_group *group, uint32_t index, uint32_t most,
                     ft_pick *out) {
  uint32_t dealt = 0;
  while (dealt < most && group->next < group->space)
    out[dealt++] = (ft_pick){index, group->next++};
  return dealt;
}

static ft_status deal_round(ft_catalog *catalog, const turn *order, uint32_t turns,
                            uint32_t slice, uint32_t room, ft_pick *out,
                            uint32_t *out_count, ft_error *error) {
  for (uint32_t i = 0; i < turns && *out_count < room; i++) {
    FT_TRY(ft_catalog_open(catalog, order[i].group, error));
    uint32_t most = slice < room - *out_count ? slice : room - *out_count;
    *out_count +=
        deal(&catalog->group[order[i].group], order[i].group, most, out + *out_count);
  }
  return FT_OK;
}

ft_status ft_tuning_pick(const ft_landscape *land, const ft_tuning_hints *hints,
                         uint32_t room, ft_arena *arena, ft_pick *out,
                         uint32_t *out_count, ft_error *error) {
  ft_catalog *catalog = land->catalog;
  turn *order = FT_NEW_ARRAY(arena, turn, catalog->group_count);
  FT_OOM_IF(!order, error);
  uint32_t turns = 0;
  *out_count = 0;
  FT_TRY(list_defaults(catalog, hints->rank, order, &turns, error));
  bool is_first_round = turns > 0;
  if (!is_first_round) FT_TRY(list_by_promise(land, hints, arena, order, &turns, error));
  if (turns) qsort(order, turns, sizeof *order, by_key);
  if (is_first_round)
    return deal_round(catalog, order, turns, 1, room, out, out_count, error);
  for (uint32_t before = UINT32_MAX; before != *out_count && *out_count < room;) {
    before = *out_count;
    FT_TRY(deal_round(catalog, order, turns, SLICE, room, out, out_count, error));
  }
  return FT_OK;
}

// ---- measuring -----------------------------------------------------------------

static ft_status record_all(ft_catalog *catalog, const ft_pick *pick, uint32_t count,
                            const ft_trial *trial, bool is_interrupted, ft_error *error) {
  for (uint32_t i = 0; i < count; i++) {
    bool is_nobodys = trial[i].outcome == FT_OUTCOME_INTERRUPTED ||
                      trial[i].outcome == FT_OUTCOME_PENDING;
    if (is_interrupted && is_nobodys) continue;
    FT_TRY(
        ft_catalog_record(catalog, pick[i].group, pick[i].candidate, &trial[i], error));
  }
  return FT_OK;
}

ft_status ft_tuning_measure(ft_catalog *catalog, const ft_runner *runner,
                            const ft_pick *pick, uint32_t count, ft_arena *arena,
                            ft_budget *budget, ft_error *error) {
  ft_measure_request *request = FT_NEW_ARRAY(arena, ft_measure_request, count);
  ft_trial *trial = FT_NEW_ARRAY(arena, ft_trial, count);
  FT_OOM_IF(!request || !trial, error);
  for (uint32_t i = 0; i < count; i++) {
    const ft_catalog_group *group = &catalog->group[pick[i].group];
    request[i].candidate = &group->candidate[pick[i].candidate];
    if (group->is_measured)
      request[i].beaten_ns = (uint64_t)ceil(group->cost_ns * BEATEN);
    trial[i].outcome = FT_OUTCOME_PENDING;  // zero would be OK
  }
  uint64_t start = ft_clock_ns();
  ft_status status = runner->measure(runner->self, request, count, arena, trial, error);
  ft_budget_spend(budget, count, ft_clock_ns() - start);
  if (status != FT_OK && status != FT_INTERRUPTED) return status;
  FT_TRY(record_all(catalog, pick, count, trial, status == FT_INTERRUPTED, error));
  return status;
}
