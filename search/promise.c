#include "search/promise.h"

#include <math.h>

// Schedules beyond the defaults before a median says something.
enum { MORE_LOOKS = 2 };
// Before that, the best schedule may take a quarter of the default; right after it, three
// quarters of the best so far; then in proportion less with each schedule tried.
static const double FIRST_GAIN = 0.75, NEXT_GAIN = 0.25;
// What is left to gain when a group is spent, as a share of the best partition.
static const double SETTLED = 0.005;
static const double HOPE = 0.8;

static uint32_t first_looks(const ft_catalog_group *group) {
  return group->tactic_count + MORE_LOOKS;
}

// Those that could take more than a settled share off the best partition; of partitions
// that are not known yet, the first looks.
static uint32_t floor_quota(const ft_catalog_group *group, double best_ns) {
  uint32_t quota = ft_catalog_worth(group), least = first_looks(group);
  if (!isfinite(best_ns)) return quota < least ? quota : least;
  double slack_ns = SETTLED * best_ns / (group->uses ? group->uses : 1);
  while (quota && group->floor_ns[quota - 1] >= group->cost_ns - slack_ns) quota--;
  return quota;
}

uint32_t ft_promise_quota(const ft_catalog_group *group, double best_ns) {
  uint32_t least = first_looks(group);
  if (!group->is_measured) return group->space;
  if (group->floor_ns) return floor_quota(group, best_ns);
  if (least >= group->space) return group->space;
  double uses = group->uses ? group->uses : 1;
  double share = isfinite(best_ns) ? uses * group->cost_ns / best_ns : 0;
  double quota = ceil(NEXT_GAIN * least * share / SETTLED);
  if (quota >= group->space) return group->space;
  return quota > least ? (uint32_t)quota : least;
}

bool ft_promise_is_spent(const ft_catalog_group *group, double best_ns) {
  return group->is_open && group->next >= ft_promise_quota(group, best_ns);
}

double ft_promise_gain_ns(const ft_catalog_group *group) {
  uint32_t looks = first_looks(group);
  if (group->floor_ns) {
    bool is_left = group->next < ft_catalog_worth(group);
    return is_left ? group->cost_ns - group->floor_ns[group->next] : 0;
  }
  if (group->next < looks) return group->cost_ns * FIRST_GAIN;
  return group->cost_ns * NEXT_GAIN * looks / group->next;
}

double ft_promise_ns(const ft_catalog_group *group, double best_ns, double guess_ns) {
  bool is_spent = ft_promise_is_spent(group, best_ns);
  if (!group->is_measured) return is_spent ? INFINITY : fmax(group->bound_ns, guess_ns);
  if (is_spent) return group->cost_ns;
  double hoped_ns = group->cost_ns - ft_promise_gain_ns(group);
  // A median may be below its bound by the little that is forgiven.
  return fmin(fmax(group->bound_ns, hoped_ns), group->cost_ns);
}

double ft_promise_pace(const ft_catalog *catalog) {
  double pace = INFINITY;
  for (size_t i = 0; i < catalog->group_count; i++) {
    const ft_catalog_group *group = &catalog->group[i];
    double bytes = ft_catalog_bytes(group);
    if (group->is_measured && bytes > 0) pace = fmin(pace, group->cost_ns / bytes);
  }
  return isfinite(pace) ? pace : 0;
}

static ft_status guess_one(ft_catalog *catalog, uint32_t index, double pace, double *out,
                           ft_error *error) {
  const uint32_t *part;
  FT_TRY(ft_catalog_parts(catalog, index, &part, error));
  const ft_catalog_group *group = &catalog->group[index];
  double ns = 0, bytes = 0;
  for (uint32_t i = 0; i < group->primitives; i++) {
    if (part[i] == FT_NONE) continue;
    const ft_catalog_group *single = &catalog->group[part[i]];
    ns += single->is_measured ? single->cost_ns : single->bound_ns;
    bytes += ft_catalog_bytes(single);
  }
  double least = ft_catalog_bytes(group) * pace;
  *out = HOPE * fmax(least, ns - (bytes - ft_catalog_bytes(group)) * pace);
  return FT_OK;
}

ft_status ft_promise_guess(ft_catalog *catalog, ft_arena *arena, double **out_ns,
                           ft_error *error) {
  double pace = ft_promise_pace(catalog);
  *out_ns = FT_NEW_ARRAY(arena, double, catalog->group_count);
  FT_OOM_IF(!*out_ns, error);
  for (uint32_t i = 0; i < catalog->group_count; i++)
    if (!catalog->group[i].is_measured)
      FT_TRY(guess_one(catalog, i, pace, &(*out_ns)[i], error));
  return FT_OK;
}
