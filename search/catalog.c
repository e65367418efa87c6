#include "search/catalog.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A unique workload: legal (a group) or not (a reason).
typedef struct verdict {
  ft_workload workload;  // only hash and encoding are kept for illegal ones
  uint32_t group;
  const char *reason;
} verdict;

typedef struct judged {
  ft_set set;
  uint32_t verdict;
} judged;

struct ft_catalog_table {
  judged *judged;
  size_t judged_count, judged_capacity;
  uint32_t *set_slot, set_mask;
  verdict *verdict;
  size_t verdict_count, verdict_capacity;
  uint32_t *hash_slot, hash_mask;
};
typedef struct ft_catalog_table table;

ft_status ft_catalog_create(const ft_graph *graph, const ft_target *target,
                            const ft_builder *builder, ft_arena *result, ft_arena *work,
                            ft_arena *scratch, ft_catalog *out, ft_error *error) {
  *out = (ft_catalog){.graph = graph,
                      .target = target,
                      .builder = builder,
                      .result = result,
                      .work = work,
                      .scratch = scratch,
                      .table = FT_NEW(work, table)};
  FT_OOM_IF(!out->table, error);
  return FT_OK;
}

// ---- two tables of indices -----------------------------------------------------

static uint32_t find_set(const table *t, ft_set set) {
  uint32_t at = (uint32_t)ft_set_hash(set) & t->set_mask;
  while (t->set_slot[at] != FT_NONE && !ft_set_equal(t->judged[t->set_slot[at]].set, set))
    at = (at + 1) & t->set_mask;
  return at;
}

static uint32_t hash_start(const ft_hash *hash) {
  uint32_t word;
  memcpy(&word, hash->byte, sizeof word);
  return word;
}

static uint32_t find_workload(const table *t, const ft_workload *workload) {
  uint32_t at = hash_start(&workload->hash) & t->hash_mask;
  for (; t->hash_slot[at] != FT_NONE; at = (at + 1) & t->hash_mask) {
    const ft_workload *other = &t->verdict[t->hash_slot[at]].workload;
    if (!ft_hash_equal(&other->hash, &workload->hash)) continue;
    FT_ASSERT(ft_workload_equal(other, workload));  // or SHA-256 is broken
    break;
  }
  return at;
}

static uint32_t *free_slots(ft_arena *arena, uint32_t size) {
  uint32_t *slot = FT_NEW_ARRAY(arena, uint32_t, size);
  if (slot) memset(slot, 0xff, size * sizeof *slot);
  return slot;
}

static ft_status make_room(ft_catalog *c, ft_error *error) {
  table *t = c->table;
  if (!t->set_slot || t->judged_count * 2 > t->set_mask) {
    uint32_t size = t->set_slot ? (t->set_mask + 1) * 2 : 256;
    t->set_slot = free_slots(c->work, size);
    FT_OOM_IF(!t->set_slot, error);
    t->set_mask = size - 1;
    for (uint32_t i = 0; i < t->judged_count; i++)
      t->set_slot[find_set(t, t->judged[i].set)] = i;
  }
  if (!t->hash_slot || t->verdict_count * 2 > t->hash_mask) {
    uint32_t size = t->hash_slot ? (t->hash_mask + 1) * 2 : 256;
    t->hash_slot = free_slots(c->work, size);
    FT_OOM_IF(!t->hash_slot, error);
    t->hash_mask = size - 1;
    for (uint32_t i = 0; i < t->verdict_count; i++)
      if (t->verdict[i].workload.encoding)
        t->hash_slot[find_workload(t, &t->verdict[i].workload)] = i;
  }
  return FT_OK;
}

// ---- judging -------------------------------------------------------------------

static ft_status make_workload(const ft_graph *graph, ft_set set, ft_arena *arena,
                               ft_workload *out, ft_error *error) {
  uint32_t primitive[FT_SET_SPREAD];
  uint32_t count = ft_set_list(set, primitive);
  ft_group group;
  FT_TRY(ft_group_make(graph, primitive, count, arena, &group, error));
  return ft_workload_make(&group, arena, out, error);
}

// Nonsense from a predictor is no bound.
static double ask_bound(const ft_catalog *c, const ft_workload *workload) {
  if (!c->predictor) return 0;
  double ns = c->predictor->bound_ns(c->predictor->self, workload);
  return isfinite(ns) && ns > 0 ? ns : 0;
}

static ft_status add_group(ft_catalog *c, ft_set set, const char *const *tactic,
                           uint32_t tactics, ft_error *error) {
  ft_workload *workload = FT_NEW(c->result, ft_workload);
  FT_OOM_IF(!workload, error);
  FT_TRY(make_workload(c->graph, set, c->result, workload, error));
  FT_OOM_IF(FT_GROW(c->work, &c->group, c->group_count, &c->group_capacity), error);
  ft_catalog_group *group = &c->group[c->group_count++];
  *group = (ft_catalog_group){.workload = workload,
                              .primitives = ft_set_count(set),
                              .bound_ns = ask_bound(c, workload),
                              .tactic_count = tactics,
                              .trial.outcome = FT_OUTCOME_PENDING,
                              .cost_ns = INFINITY};
  memcpy(group->tactic, tactic, tactics * sizeof *tactic);
  return FT_OK;
}

static ft_status ask(ft_catalog *c, ft_set set, const ft_workload *workload, verdict *out,
                     ft_error *error) {
  const char *tactic[FT_CATALOG_TACTICS], *reason = NULL;
  uint32_t tactics = c->builder->match(c->builder->self, workload, c->scratch, tactic,
                                       FT_CATALOG_TACTICS, &reason);
  if (tactics > FT_CATALOG_TACTICS) tactics = FT_CATALOG_TACTICS;
  *out = (verdict){.group = FT_NONE, .reason = ""};
  if (tactics) {
    FT_TRY(add_group(c, set, tactic, tactics, error));
    out->group = (uint32_t)c->group_count - 1;
    out->workload = *c->group[out->group].workload;
    return FT_OK;
  }
  out->workload =
      (ft_workload){.hash = workload->hash, .encoding_bytes = workload->encoding_bytes};
  out->workload.encoding =
      ft_arena_memdup(c->work, workload->encoding, workload->encoding_bytes);
  out->reason = ft_arena_strdup(c->result, reason ? reason : "no tactic takes it");
  FT_OOM_IF(!out->workload.encoding || !out->reason, error);
  return FT_OK;
}

// A set that breaks a constraint has a verdict of its own: its workload may be legal
// elsewhere.
static ft_status refuse(ft_catalog *c, const char *reason, uint32_t *out_verdict,
                        ft_error *error) {
  table *t = c->table;
  FT_OOM_IF(FT_GROW(c->work, &t->verdict, t->verdict_count, &t->verdict_capacity), error);
  const char *copy = ft_arena_strdup(c->result, reason);
  FT_OOM_IF(!copy, error);
  t->verdict[t->verdict_count] = (verdict){.group = FT_NONE, .reason = copy};
  *out_verdict = (uint32_t)t->verdict_count++;
  return FT_OK;
}

static ft_status judge(ft_catalog *c, ft_set set, uint32_t *out_verdict,
                       ft_error *error) {
  table *t = c->table;
  const char *broken = ft_constraints_refuse(c->constraints, set);
  if (broken) return refuse(c, broken, out_verdict, error);
  ft_workload workload;
  ft_arena_reset(c->scratch);
  FT_TRY(make_workload(c->graph, set, c->scratch, &workload, error));
  uint32_t at = find_workload(t, &workload);
  if (t->hash_slot[at] == FT_NONE) {
    FT_OOM_IF(FT_GROW(c->work, &t->verdict, t->verdict_count, &t->verdict_capacity),
              error);
    FT_TRY(ask(c, set, &workload, &t->verdict[t->verdict_count], error));
    t->hash_slot[at] = (uint32_t)t->verdict_count++;
  }
  *out_verdict = t->hash_slot[at];
  uint32_t group = t->verdict[*out_verdict].group;
  if (group == FT_NONE) return FT_OK;
  c->legal_sets++;
  c->group[group].instances++;
  return FT_OK;
}

ft_status ft_catalog_judge(ft_catalog *c, ft_set set, uint32_t *out_group,
                           const char **out_reason, ft_error *error) {
  table *t = c->table;
  FT_TRY(make_room(c, error));
  uint32_t at = find_set(t, set);
  if (t->set_slot[at] == FT_NONE) {
    uint32_t found;
    FT_TRY(judge(c, set, &found, error));
    FT_OOM_IF(FT_GROW(c->work, &t->judged, t->judged_count, &t->judged_capacity), error);
    t->judged[t->judged_count] = (judged){set, found};
    t->set_slot[at] = (uint32_t)t->judged_count++;
  }
  const verdict *v = &t->verdict[t->judged[t->set_slot[at]].verdict];
  *out_group = v->group;
  if (out_reason) *out_reason = v->reason;
  return FT_OK;
}

// ---- candidates and trials -----------------------------------------------------

typedef struct space {
  ft_schedule *schedule;
  uint32_t count;
} space;

// One schedule of each tactic in turn, so that every tactic's default comes early.
static void interleave(const ft_catalog *c, const ft_catalog_group *group,
                       const space *of, ft_candidate *out) {
  uint32_t at = 0;
  for (uint32_t rank = 0; at < group->space; rank++)
    for (uint32_t i = 0; i < group->tactic_count; i++) {
      if (rank >= of[i].count) continue;
      out[at++] = (ft_candidate){.workload = group->workload,
                                 .target = c->target,
                                 .tactic = group->tactic[i],
                                 .schedule = of[i].schedule[rank]};
    }
}

// Schedules that a constraint forbids are not candidates.
static void drop_refused(const ft_catalog *c, const ft_catalog_group *group,
                         uint32_t tactic, space *of) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < of->count; i++) {
    ft_candidate candidate = {.workload = group->workload,
                              .target = c->target,
                              .tactic = group->tactic[tactic],
                              .schedule = of->schedule[i]};
    if (ft_constraints_admit(c->constraints, &candidate))
      of->schedule[kept++] = of->schedule[i];
  }
  of->count = kept;
}

// No candidate is faster than the first floor.
static double bound_of(const ft_catalog *c, const ft_catalog_group *group) {
  double least = group->floor_ns && isfinite(group->floor_ns[0]) ? group->floor_ns[0] : 0;
  return fmax(ask_bound(c, group->workload), least);
}

typedef struct floored {
  double ns;
  uint32_t place;
} floored;

// Of equals the one that promised more stays first.
static int by_floor(const void *a, const void *b) {
  const floored *x = a, *y = b;
  if (x->ns < y->ns || y->ns < x->ns) return x->ns < y->ns ? -1 : 1;
  return x->place < y->place ? -1 : x->place > y->place;
}

// Nonsense is no floor.
static double sane_floor(double ns) {
  return ns > 0 ? ns : 0;
}

// The order of the floors; |candidate| is rewritten.
static ft_status order_by_floor(ft_catalog *c, ft_catalog_group *group,
                                ft_candidate *candidate, ft_error *error) {
  uint32_t count = group->space;
  if (!c->predictor || !c->predictor->floors || !count) return FT_OK;
  ft_candidate *listed = ft_arena_memdup(c->scratch, candidate, count * sizeof *listed);
  double *ns = FT_NEW_ARRAY(c->work, double, count);
  floored *order = FT_NEW_ARRAY(c->scratch, floored, count);
  FT_OOM_IF(!listed || !ns || !order, error);
  FT_TRY(c->predictor->floors(c->predictor->self, listed, count, ns, error));
  for (uint32_t i = 0; i < count; i++) order[i] = (floored){sane_floor(ns[i]), i};
  qsort(order, count, sizeof *order, by_floor);
  for (uint32_t i = 0; i < count; i++) {
    candidate[i] = listed[order[i].place];
    ns[i] = order[i].ns;
  }
  group->floor_ns = ns;
  group->bound_ns = bound_of(c, group);
  return FT_OK;
}

ft_status ft_catalog_open(ft_catalog *c, uint32_t index, ft_error *error) {
  ft_catalog_group *group = &c->group[index];
  if (group->is_open) return FT_OK;
  ft_arena_reset(c->scratch);
  space of[FT_CATALOG_TACTICS] = {{0}};
  group->space = 0;
  for (uint32_t i = 0; i < group->tactic_count; i++) {
    FT_TRY(c->builder->space(c->builder->self, group->workload, group->tactic[i],
                             c->target, c->scratch, &of[i].schedule, &of[i].count,
                             error));
    drop_refused(c, group, i, &of[i]);
    group->space += of[i].count;
  }
  ft_candidate *candidate = FT_NEW_ARRAY(c->work, ft_candidate, group->space);
  group->of_candidate = FT_NEW_ARRAY(c->work, ft_trial, group->space);
  FT_OOM_IF(!candidate || !group->of_candidate, error);
  for (uint32_t i = 0; i < group->space; i++)
    group->of_candidate[i].outcome = FT_OUTCOME_PENDING;  // zero would be OK
  interleave(c, group, of, candidate);
  FT_TRY(order_by_floor(c, group, candidate, error));
  group->candidate = candidate;
  group->is_open = true;
  return FT_OK;
}

static ft_status keep_trial(const ft_trial *trial, ft_arena *arena, ft_trial *out,
                            ft_error *error) {
  uint32_t count = trial->sample_ns ? trial->sample_count : 0;
  ft_trial copy = *trial;
  copy.sample_count = count;
  copy.sample_ns = ft_arena_memdup(arena, trial->sample_ns, count * sizeof(uint64_t));
  copy.sample_flags = trial->sample_flags
                          ? ft_arena_memdup(arena, trial->sample_flags, count)
                          : ft_arena_alloc(arena, count);
  copy.worst = ft_arena_strdup(arena, trial->worst ? trial->worst : "");
  copy.error = ft_arena_strdup(arena, trial->error ? trial->error : "");
  copy.env = ft_arena_strdup(arena, trial->env ? trial->env : "");
  FT_OOM_IF(
      !copy.sample_ns || !copy.sample_flags || !copy.worst || !copy.error || !copy.env,
      error);
  *out = copy;
  return FT_OK;
}

static bool is_usable(const ft_trial *trial) {
  return trial->outcome == FT_OUTCOME_OK && ft_trial_ns(trial) > 0;
}

// The fastest of the candidates that worked; of equals the first.
static void choose_best(ft_catalog_group *group) {
  group->is_measured = false;
  group->cost_ns = INFINITY;
  for (uint32_t i = 0; i < group->next; i++) {
    const ft_trial *t = &group->of_candidate[i];
    if (!is_usable(t) || ft_trial_ns(t) >= group->cost_ns) continue;
    group->is_measured = true;
    group->best = i;
    group->cost_ns = ft_trial_ns(t);
  }
  if (group->is_measured) group->trial = group->of_candidate[group->best];
  group->is_confirmed = group->is_measured && group->trial.is_confirmation;
}

// Medians scatter: a little below the bound is no contradiction. Nor is a prediction.
static const double FORGIVEN = 0.97;

static ft_status contradict(ft_catalog *c, ft_catalog_group *group,
                            const ft_candidate *candidate, const ft_trial *trial,
                            ft_error *error) {
  double median_ns = (double)trial->time.median_ns;
  if (!is_usable(trial) || median_ns == 0 || median_ns >= FORGIVEN * group->bound_ns)
    return FT_OK;
  c->contradictions++;
  FT_TRY(c->predictor->contradict(c->predictor->self, candidate, trial, group->bound_ns,
                                  error));
  for (size_t i = 0; i < c->group_count; i++)
    c->group[i].bound_ns = bound_of(c, &c->group[i]);
  return FT_OK;
}

ft_status ft_catalog_record(ft_catalog *c, uint32_t index, uint32_t candidate,
                            const ft_trial *trial, ft_error *error) {
  ft_catalog_group *group = &c->group[index];
  FT_ASSERT(candidate < group->next && group->tried + group->skipped < group->next);
  group->tried++;
  FT_TRY(keep_trial(trial, c->result, &group->of_candidate[candidate], error));
  if (is_usable(trial))
    choose_best(group);
  else if (!group->is_measured)
    group->trial = group->of_candidate[candidate];
  return contradict(c, group, &group->candidate[candidate],
                    &group->of_candidate[candidate], error);
}

void ft_catalog_skip(ft_catalog *c, uint32_t index) {
  ft_catalog_group *group = &c->group[index];
  FT_ASSERT(group->tried + group->skipped < group->next);
  group->skipped++;
}

ft_status ft_catalog_confirm(ft_catalog *c, uint32_t index, const ft_trial *trial,
                             ft_error *error) {
  ft_catalog_group *group = &c->group[index];
  FT_ASSERT(group->is_measured);
  ft_trial *kept = &group->of_candidate[group->best];
  FT_TRY(keep_trial(trial, c->result, kept, error));
  kept->is_confirmation = true;
  group->trial = *kept;
  const ft_candidate *candidate = &group->candidate[group->best];
  choose_best(group);
  return contradict(c, group, candidate, kept, error);
}

ft_status ft_catalog_parts(ft_catalog *c, uint32_t index, const uint32_t **out_part,
                           ft_error *error) {
  if (!c->group[index].part) {
    const ft_group *members = &c->group[index].workload->group;
    uint32_t count = members->primitive_count;
    uint32_t *part = FT_NEW_ARRAY(c->work, uint32_t, count);
    FT_OOM_IF(!part, error);
    for (uint32_t i = 0; i < count; i++)
      FT_TRY(
          ft_catalog_judge(c, (ft_set){members->primitive[i], 1}, &part[i], NULL, error));
    c->group[index].part = part;
  }
  *out_part = c->group[index].part;
  return FT_OK;
}

uint32_t ft_catalog_worth(const ft_catalog_group *group) {
  uint32_t worth = group->space;
  if (!group->floor_ns || !group->is_measured) return worth;
  while (worth && group->floor_ns[worth - 1] >= group->cost_ns) worth--;
  return worth;
}

bool ft_catalog_is_spent(const ft_catalog_group *group) {
  return group->is_open && group->tried == group->space;
}

double ft_catalog_bound_ns(const ft_catalog_group *group) {
  if (group->is_measured && group->floor_ns && group->next < ft_catalog_worth(group))
    return group->floor_ns[group->next];
  bool is_known = group->is_measured || ft_catalog_is_spent(group);
  return is_known ? group->cost_ns : group->bound_ns;
}
