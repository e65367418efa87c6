#include "search/tuning.h"

#include <math.h>
#include <stdlib.h>

#include "core/clock.h"
#include "search/kbest.h"
#include "search/promise.h"

// A trial is stopped early when it is clearly above this much of the group's best.
static const double BEATEN = 1.15;
enum {
  SLICE = 4,  // schedules of one group in a row
  PATHS = 8,
  OPENED = 32,  // groups whose floors are asked for in one go
};

typedef enum rank_class { NEW, TUNED, NEARBY, CLASSES } rank_class;

typedef struct turn {
  uint32_t group;
  double key;  // smaller first
} turn;

typedef struct picker {
  const ft_landscape *land;
  const ft_tuning_hints *hints;
  ft_arena *arena;
  turn *turn[CLASSES];
  uint32_t turns[CLASSES];
  bool *seen;          // [groups]
  double *promise_ns;  // [groups]
  uint32_t room, *out_count;
  ft_pick *out;
} picker;

static int by_key(const void *a, const void *b) {
  const turn *x = a, *y = b;
  if (x->key < y->key || y->key < x->key) return x->key < y->key ? -1 : 1;
  return x->group < y->group ? -1 : x->group > y->group;
}

static void add_turn(picker *p, rank_class class, uint32_t group, double key) {
  p->seen[group] = true;
  p->turn[class][p->turns[class]++] = (turn){group, key};
}

// Nothing of it was handed out, and there may be something.
static bool is_new(const ft_catalog_group *group) {
  return group->next == 0 && !(group->is_open && group->space == 0);
}

// ---- handing out ---------------------------------------------------------------

static ft_status deal_one(picker *p, uint32_t index, uint32_t most, ft_error *error) {
  ft_catalog *catalog = p->land->catalog;
  FT_TRY(ft_catalog_open(catalog, index, error));
  ft_catalog_group *group = &catalog->group[index];
  uint32_t quota =
      p->hints->is_exhaustive ? group->space : ft_promise_quota(group, p->hints->best_ns);
  for (; most && *p->out_count < p->room && group->next < quota; most--)
    p->out[(*p->out_count)++] = (ft_pick){index, group->next++};
  return FT_OK;
}

// Around once, |slice| candidates to each, no more than |room| in all.
static ft_status deal_class(picker *p, rank_class class, uint32_t slice, uint32_t room,
                            ft_error *error) {
  uint32_t before = *p->out_count, limit = before + room;
  for (uint32_t i = 0; i < p->turns[class] && *p->out_count < limit; i++) {
    uint32_t left = limit - *p->out_count;
    FT_TRY(deal_one(p, p->turn[class][i].group, slice < left ? slice : left, error));
  }
  return FT_OK;
}

// Around until the room is used, or nobody takes any.
static ft_status deal_all(picker *p, rank_class class, ft_error *error) {
  for (uint32_t before = UINT32_MAX;
       before != *p->out_count && *p->out_count < p->room;) {
    before = *p->out_count;
    FT_TRY(deal_class(p, class, SLICE, p->room, error));
  }
  return FT_OK;
}

// ---- baselines -----------------------------------------------------------------

static void list_baselines(picker *p) {
  const ft_catalog *catalog = p->land->catalog;
  for (uint32_t i = 0; i < catalog->group_count; i++)
    if (p->hints->rank[i] != UINT8_MAX && is_new(&catalog->group[i]))
      add_turn(p, NEW, i, p->hints->rank[i] - (double)UINT8_MAX);
}

// ---- promising paths -----------------------------------------------------------

static void price(picker *p, const double *guess_ns) {
  const ft_catalog *catalog = p->land->catalog;
  for (size_t i = 0; i < catalog->group_count; i++)
    p->promise_ns[i] =
        ft_promise_ns(&catalog->group[i], p->hints->best_ns, guess_ns ? guess_ns[i] : 0);
}

static ft_status group_at(const picker *p, ft_set set, uint32_t *out, ft_error *error) {
  FT_TRY(ft_catalog_judge(p->land->catalog, set, out, NULL, error));
  FT_ASSERT(*out != FT_NONE);
  return FT_OK;
}

// What is used more often on the best path than before deserves more schedules.
static ft_status count_uses(picker *p, const ft_path *path, ft_error *error) {
  ft_catalog *catalog = p->land->catalog;
  uint32_t *uses = FT_NEW_ARRAY(p->arena, uint32_t, catalog->group_count);
  FT_OOM_IF(!uses, error);
  for (uint32_t i = 0; i < path->set_count; i++) {
    uint32_t group;
    FT_TRY(group_at(p, path->set[i], &group, error));
    if (++uses[group] > catalog->group[group].uses)
      catalog->group[group].uses = uses[group];
  }
  return FT_OK;
}

static double gain_key(const ft_catalog_group *group) {
  if (!group->is_measured) return -INFINITY;
  return -ft_promise_gain_ns(group) * (group->uses ? group->uses : 1);
}

// *out_has_work: a group on it is not spent, listed before or not.
static ft_status list_path(picker *p, const ft_path *path, uint32_t rank,
                           bool *out_has_work, ft_error *error) {
  const ft_catalog *catalog = p->land->catalog;
  *out_has_work = false;
  for (uint32_t i = 0; i < path->set_count; i++) {
    uint32_t group;
    FT_TRY(group_at(p, path->set[i], &group, error));
    const ft_catalog_group *g = &catalog->group[group];
    if (ft_promise_is_spent(g, p->hints->best_ns)) continue;
    *out_has_work = true;
    if (p->seen[group]) continue;
    if (is_new(g))
      add_turn(p, NEW, group, rank);
    else
      add_turn(p, rank == 0 ? TUNED : NEARBY, group, gain_key(g));
  }
  return FT_OK;
}

// Floors cost less than kernels: where the predictor has some, the best path must stand
// them before anything on it is built.
static ft_status open_best_path(picker *p, const double *guess_ns, ft_error *error) {
  ft_catalog *catalog = p->land->catalog;
  if (!catalog->predictor || !catalog->predictor->floors) return FT_OK;
  ft_priced_lattice priced = {p->land->lattice, p->land->group_of_set, p->promise_ns};
  for (uint32_t opened = 0, before = 1; opened != before && opened < OPENED;) {
    before = opened;
    ft_path path;
    price(p, guess_ns);
    FT_TRY(ft_path_solve(&priced, p->arena, &path, error));
    for (uint32_t i = 0; i < path.set_count; i++) {
      uint32_t group;
      FT_TRY(group_at(p, path.set[i], &group, error));
      if (catalog->group[group].is_open) continue;
      FT_TRY(ft_catalog_open(catalog, group, error));
      opened++;
    }
  }
  return FT_OK;
}

// *out_has_work: the best path under |guess_ns| is not spent.
static ft_status list_paths(picker *p, const double *guess_ns, bool *out_has_work,
                            ft_error *error) {
  ft_path path[PATHS];
  uint32_t count;
  FT_TRY(open_best_path(p, guess_ns, error));
  price(p, guess_ns);
  ft_priced_lattice priced = {p->land->lattice, p->land->group_of_set, p->promise_ns};
  FT_TRY(ft_kbest_solve(&priced, PATHS, p->arena, path, &count, error));
  FT_TRY(count_uses(p, &path[0], error));
  FT_TRY(list_path(p, &path[0], 0, out_has_work, error));
  bool ignored;
  // A path that promises no more than the best partition has cannot win.
  for (uint32_t i = 1; i < count && *out_has_work; i++)
    if (!path[i].cost.missing && path[i].cost.ns < p->hints->best_ns)
      FT_TRY(list_path(p, &path[i], i, &ignored, error));
  return FT_OK;
}

// Partitions that must be tuned as well as the answer: without it a baseline is none.
static void list_tuned(picker *p) {
  ft_catalog *catalog = p->land->catalog;
  for (uint32_t i = 0; i < catalog->group_count; i++) {
    ft_catalog_group *group = &catalog->group[i];
    if (!p->hints->uses[i]) continue;
    if (p->hints->uses[i] > group->uses) group->uses = p->hints->uses[i];
    if (!p->seen[i] && !is_new(group) && !ft_promise_is_spent(group, p->hints->best_ns))
      add_turn(p, TUNED, i, gain_key(group));
  }
}

static ft_status list_promising(picker *p, ft_error *error) {
  double *guess_ns;
  bool has_work;
  list_tuned(p);
  FT_TRY(ft_promise_guess(p->land->catalog, p->arena, &guess_ns, error));
  FT_TRY(list_paths(p, guess_ns, &has_work, error));
  if (has_work) return FT_OK;
  return list_paths(p, NULL, &has_work, error);
}

static void list_everything(picker *p) {
  const ft_catalog *catalog = p->land->catalog;
  for (uint32_t i = 0; i < catalog->group_count; i++)
    if (!catalog->group[i].is_open || catalog->group[i].next < catalog->group[i].space)
      add_turn(p, TUNED, i, 0);
}

// ---- picking -------------------------------------------------------------------

static ft_status prepare(picker *p, ft_error *error) {
  size_t groups = p->land->catalog->group_count;
  p->seen = FT_NEW_ARRAY(p->arena, bool, groups);
  p->promise_ns = FT_NEW_ARRAY(p->arena, double, groups);
  FT_OOM_IF(!p->seen || !p->promise_ns, error);
  for (int i = 0; i < CLASSES; i++) {
    p->turn[i] = FT_NEW_ARRAY(p->arena, turn, groups);
    FT_OOM_IF(!p->turn[i], error);
  }
  return FT_OK;
}

static uint32_t sort_turns(picker *p) {
  uint32_t turns = 0;
  for (int i = 0; i < CLASSES; i++) {
    if (p->turns[i]) qsort(p->turn[i], p->turns[i], sizeof *p->turn[i], by_key);
    turns += p->turns[i];
  }
  return turns;
}

static ft_status deal(picker *p, ft_error *error) {
  FT_TRY(deal_class(p, TUNED, SLICE, p->room / 4, error));
  FT_TRY(deal_class(p, NEW, 1, p->room, error));
  FT_TRY(deal_all(p, TUNED, error));
  return deal_all(p, NEARBY, error);
}

ft_status ft_tuning_pick(const ft_landscape *land, const ft_tuning_hints *hints,
                         uint32_t room, ft_arena *arena, ft_pick *out,
                         uint32_t *out_count, bool *out_is_done, ft_error *error) {
  picker p = {.land = land,
              .hints = hints,
              .arena = arena,
              .room = room,
              .out_count = out_count,
              .out = out};
  *out_count = 0;
  FT_TRY(prepare(&p, error));
  list_baselines(&p);
  if (hints->is_exhaustive)
    list_everything(&p);
  else if (p.turns[NEW] == 0 || (p.turns[NEW] < room && isfinite(hints->best_ns)))
    FT_TRY(list_promising(&p, error));
  *out_is_done = sort_turns(&p) == 0;
  return deal(&p, error);
}

// ---- measuring -----------------------------------------------------------------

static ft_status record_all(ft_catalog *catalog, const ft_pick *pick, uint32_t count,
                            const ft_trial *trial, bool is_interrupted, ft_error *error) {
  for (uint32_t i = 0; i < count; i++) {
    bool is_pending = trial[i].outcome == FT_OUTCOME_PENDING;
    if (is_interrupted && (is_pending || trial[i].outcome == FT_OUTCOME_INTERRUPTED))
      continue;
    if (is_pending)
      ft_catalog_skip(catalog, pick[i].group);
    else
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
