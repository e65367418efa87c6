#include "daemon/endtoend.h"

#include <math.h>
#include <string.h>

#include "core/file.h"
#include "core/log.h"
#include "daemon/ceilings.h"
#include "daemon/endtoend_private.h"

enum { SLICE = 8 };  // kernels built alone between two looks at the clock

// ---- partitions become plans ------------------------------------------------------

static ft_status fill_groups(const ft_session *s, ft_plan *plan,
                             const ft_searched_partition *partition,
                             const ft_search_result *search, ft_error *error) {
  for (uint32_t i = 0; i < plan->group_count; i++) {
    const ft_searched_group *g = &search->group[partition->unique[i]];
    if (!g->is_measured)
      FT_FAIL(error, FT_INTERNAL, "group %u of the %s plan was never measured", i,
              partition->strategy);
    plan->group[i].tactic = g->best.tactic;
    plan->group[i].schedule = g->best.schedule;
    plan->group[i].time = g->trial.time;
    plan->group[i].predicted_ns = ft_session_predicted_ns(s, &g->best);
    plan->group[i].roofline_ns = ft_session_bound_ns(s, &plan->group[i].workload);
  }
  return FT_OK;
}

static ft_status candidates_of(const ft_plan *plan, ft_arena *arena, ft_candidate **out,
                               ft_error *error) {
  *out = FT_NEW_ARRAY(arena, ft_candidate, plan->group_count);
  FT_OOM_IF(!*out, error);
  for (uint32_t i = 0; i < plan->group_count; i++)
    (*out)[i] = (ft_candidate){.workload = &plan->group[i].workload,
                               .target = plan->target,
                               .tactic = plan->group[i].tactic,
                               .schedule = plan->group[i].schedule};
  return FT_OK;
}

static ft_status hash_binary(const char *path, ft_arena *arena, ft_hash *out,
                             ft_error *error) {
  ft_bytes bytes;
  FT_TRY(ft_file_read(path, FT_PLAN_OBJECT_BYTES, arena, &bytes, error));
  *out = ft_hash_bytes(bytes.data, bytes.size);
  return FT_OK;
}

ft_status ft_plan_build(ft_session *s, ft_plan *plan, bool alone, ft_arena *arena,
                        const ft_module **out_module, ft_error *error) {
  ft_candidate *candidate;
  FT_TRY(candidates_of(plan, arena, &candidate, error));
  ft_module *module = FT_NEW_ARRAY(arena, ft_module, plan->group_count);
  FT_OOM_IF(!module, error);
  *out_module = module;
  if (plan->group_count == 0) return FT_OK;
  FT_TRY(s->builder.build(s->builder.self, candidate, plan->group_count, alone, arena,
                          module, error));
  for (uint32_t i = 0; i < plan->group_count; i++) {
    if (module[i].outcome != FT_OUTCOME_OK)
      FT_FAIL(error, FT_INTERNAL, "group %u (%s) built before, now: %s: %s", i,
              candidate[i].tactic, ft_outcome_text(module[i].outcome), module[i].log);
    ft_hash binary = {{0}};
    if (alone) FT_TRY(hash_binary(module[i].path, arena, &binary, error));
    ft_plan_group_build(&plan->group[i], &module[i], &binary);
  }
  return FT_OK;
}

// The plans of one search share most of their groups: each is built once.
typedef struct maker {
  ft_session *session;
  const ft_search_result *search;
  const ft_tensor *input;
  ft_arena *arena;
  ft_module *module;  // [search groups]
  bool *is_built;
} maker;

static ft_status build_new(maker *m, const ft_searched_partition *p, ft_error *error) {
  ft_arena *arena = m->arena;
  ft_candidate *candidate = FT_NEW_ARRAY(arena, ft_candidate, p->partition.group_count);
  uint32_t *of = FT_NEW_ARRAY(arena, uint32_t, p->partition.group_count), count = 0;
  FT_OOM_IF(!candidate || !of, error);
  for (uint32_t i = 0; i < p->partition.group_count; i++) {
    uint32_t unique = p->unique[i];
    if (m->is_built[unique]) continue;
    m->is_built[unique] = true;
    of[count] = unique;
    candidate[count] = m->search->group[unique].best;
    candidate[count++].workload = &m->search->group[unique].workload;
  }
  if (count == 0) return FT_OK;
  ft_module *module = FT_NEW_ARRAY(arena, ft_module, count);
  FT_OOM_IF(!module, error);
  const ft_builder *b = &m->session->builder;
  FT_TRY(b->build(b->self, candidate, count, false, arena, module, error));
  for (uint32_t i = 0; i < count; i++) {
    m->module[of[i]] = module[i];
    if (module[i].outcome != FT_OUTCOME_OK)
      FT_FAIL(error, FT_INTERNAL, "a kernel (%s) built before, now: %s: %s",
              candidate[i].tactic, ft_outcome_text(module[i].outcome), module[i].log);
  }
  return FT_OK;
}

static ft_status take_modules(maker *m, const ft_searched_partition *p, ft_plan *plan,
                              const ft_module **out, ft_error *error) {
  FT_TRY(build_new(m, p, error));
  ft_module *module = FT_NEW_ARRAY(m->arena, ft_module, plan->group_count);
  FT_OOM_IF(!module, error);
  for (uint32_t i = 0; i < plan->group_count; i++) {
    static const ft_hash none = {{0}};
    module[i] = m->module[p->unique[i]];
    ft_plan_group_build(&plan->group[i], &module[i], &none);
  }
  *out = module;
  return FT_OK;
}

static void fill_plan(const ft_search_result *search,
                      const ft_searched_partition *partition, ft_plan *plan) {
  plan->strategy = partition->strategy;
  plan->window = search->window;
  plan->span = search->span;
  plan->window_saturated = search->window_saturated;
  plan->times.additive_ns = partition->additive_ns;
  plan->times.bound_ns = fmin(search->bound_ns, partition->additive_ns);
  plan->times.gap =
      partition->additive_ns > 0
          ? (partition->additive_ns - plan->times.bound_ns) / partition->additive_ns
          : 0;
}

static ft_status contender_make(maker *m, const ft_searched_partition *partition,
                                const char *name, ft_contender *out, ft_error *error) {
  ft_plan *plan = &out->plan;
  FT_TRY(ft_plan_make(&partition->partition, partition->workload, &m->session->target,
                      m->arena, plan, error));
  fill_plan(m->search, partition, plan);
  FT_TRY(fill_groups(m->session, plan, partition, m->search, error));
  FT_TRY(take_modules(m, partition, plan, &out->module, error));
  FT_TRY(ft_plan_seal(plan, m->arena, error));
  FT_TRY(
      ft_plan_program(plan, name, out->module, m->input, m->arena, &out->program, error));
  out->is_present = true;
  return FT_OK;
}

// ---- what fits ------------------------------------------------------------------------

// A checked run (about twice a timed one), one before the rounds, and as many rounds as a
// sign test needs; before each the caches are displaced.
static double needed_ns(double additive_ns) {
  return (FT_CONTEST_FEWEST + 1) * (additive_ns + FT_FLUSH_NS) + 2 * additive_ns;
}

typedef struct room {
  double left_ns;
  bool is_full;  // then nothing that matters less is taken either
} room;

// Takes the contender's time out of what is left; false: |absence| says why not.
static ft_status fits(room *r, uint32_t kind, double additive_ns, ft_arena *arena,
                      ft_contender *out, bool *out_fits, ft_error *error) {
  double need = needed_ns(additive_ns);
  *out_fits = kind == FT_PLAN_UNFUSED || kind == FT_PLAN_TUNED ||
              (!r->is_full && need <= r->left_ns);
  r->left_ns -= *out_fits ? need : 0;
  if (*out_fits) return FT_OK;
  r->is_full = true;
  out->absence = ft_arena_printf(
      arena, "left out: %d rounds of it take about %.1f s, %.1f s of the budget are left",
      FT_CONTEST_FEWEST, need * 1e-9, r->left_ns > 0 ? r->left_ns * 1e-9 : 0);
  FT_OOM_IF(!out->absence, error);
  return FT_OK;
}

static ft_status make_searched(maker *m, room *r, uint32_t kind,
                               const ft_searched_partition *p, ft_contender *out,
                               ft_error *error) {
  if (!p || !p->is_complete) {
    out->absence =
        p ? "a group of it was not measured" : "the strategy gave no partition";
    return FT_OK;
  }
  bool is_taken;
  FT_TRY(fits(r, kind, p->additive_ns, m->arena, out, &is_taken, error));
  if (!is_taken) return FT_OK;
  return contender_make(m, p, ft_plan_kind_text((ft_plan_kind)kind), out, error);
}

double ft_plan_additive_ns(const ft_plan *plan) {
  double sum = 0;
  for (uint32_t i = 0; i < plan->group_count; i++)
    sum += (double)plan->group[i].time.median_ns;
  return sum;
}

// What is served now. That it does not fit this version any more, or does not build, is
// no reason to fail.
static ft_status make_incumbent(maker *m, room *r, const ft_graph *graph,
                                ft_contender *out, ft_error *error) {
  ft_session *s = m->session;
  ft_served_plan stored;
  ft_error why = {0};
  FT_TRY(ft_store_incumbent(s->store, graph, &s->target, m->arena, &stored, error));
  out->absence = "nothing was served before";
  if (!stored.id) return FT_OK;
  out->plan_id = stored.id;
  out->role = stored.role;
  bool is_taken = true;
  ft_status status =
      ft_plan_parse(stored.body, graph, &s->target, m->arena, &out->plan, &why);
  if (status == FT_OK)
    status = fits(r, FT_PLAN_INCUMBENT, ft_plan_additive_ns(&out->plan), m->arena, out,
                  &is_taken, &why);
  if (status == FT_OK && !is_taken) return FT_OK;
  if (status == FT_OK)
    status = ft_plan_build(s, &out->plan, false, m->arena, &out->module, &why);
  if (status == FT_OK) status = ft_plan_seal(&out->plan, m->arena, &why);
  if (status == FT_OK)
    status = ft_plan_program(&out->plan, "incumbent", out->module, m->input, m->arena,
                             &out->program, &why);
  if (status == FT_INTERRUPTED || status == FT_OUT_OF_MEMORY) {
    *error = why;
    return status;
  }
  out->is_present = status == FT_OK;
  if (status == FT_OK) return FT_OK;
  out->absence = ft_arena_strdup(m->arena, why.text);
  FT_OOM_IF(!out->absence, error);
  ft_log(FT_LOG_WARN, "the served plan is out: %s", out->absence);
  return FT_OK;
}

static ft_status make_one(maker *m, room *r, uint32_t kind, const ft_graph *graph,
                          ft_contender *out, ft_error *error) {
  const ft_search_result *search = m->search;
  if (kind == FT_PLAN_INCUMBENT) return make_incumbent(m, r, graph, out, error);
  const ft_searched_partition *p = NULL;
  if (kind < FT_PLAN_KINDS)
    p = ft_search_find(search, ft_plan_kind_strategy((ft_plan_kind)kind));
  else if (kind - FT_PLAN_KBEST < search->alternative_count)
    p = &search->alternative[kind - FT_PLAN_KBEST];
  return make_searched(m, r, kind, p, out, error);
}

static void find_twins(ft_contender *contender, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    contender[i].same_as = i;
    for (uint32_t k = 0; k < i && contender[i].is_present; k++)
      if (contender[k].is_present && contender[k].same_as == k &&
          ft_hash_equal(&contender[k].plan.hash, &contender[i].plan.hash))
        contender[i].same_as = k;
  }
}

ft_status ft_contenders_make(ft_session *s, const ft_graph *graph,
                             const ft_search_result *search, const ft_tensor *input,
                             const ft_deadlines *deadlines, ft_arena *arena,
                             ft_contender out[FT_CONTENDERS], ft_error *error) {
  maker m = {.session = s, .search = search, .input = input, .arena = arena};
  m.module = FT_NEW_ARRAY(arena, ft_module, search->group_count);
  m.is_built = FT_NEW_ARRAY(arena, bool, search->group_count);
  FT_OOM_IF(!m.module || !m.is_built, error);
  room r = {.left_ns = (double)ft_left_ns(deadlines->budget_ns)};
  memset(out, 0, FT_CONTENDERS * sizeof *out);
  for (uint32_t place = 0; place < FT_CONTENDERS; place++)
    FT_TRY(make_one(&m, &r, ft_contender_at(place), graph, &out[ft_contender_at(place)],
                    error));
  find_twins(out, FT_CONTENDERS);
  return FT_OK;
}

// ---- as it is stored ------------------------------------------------------------------

// Objects that are there already cost nothing; what is missing is built slice by slice,
// as long as another one fits.
static ft_status build_slices(ft_session *s, const ft_plan *plan, uint64_t grace_ns,
                              ft_arena *arena, bool *out_all, ft_error *error) {
  ft_candidate *candidate;
  ft_module *module = FT_NEW_ARRAY(arena, ft_module, SLICE);
  FT_OOM_IF(!module, error);
  FT_TRY(candidates_of(plan, arena, &candidate, error));
  uint64_t took_ns = 0;
  *out_all = false;
  for (uint32_t i = 0; i < plan->group_count; i += SLICE) {
    uint32_t count = plan->group_count - i < SLICE ? plan->group_count - i : SLICE;
    if (ft_left_ns(grace_ns) <= took_ns) return FT_OK;
    uint64_t start = ft_clock_ns();
    FT_TRY(s->builder.build(s->builder.self, candidate + i, count, true, arena, module,
                            error));
    took_ns = ft_clock_ns() - start;
  }
  *out_all = true;
  return FT_OK;
}

ft_status ft_contenders_finish(ft_session *s, uint32_t served,
                               const ft_deadlines *deadlines, ft_arena *arena,
                               ft_contender contender[FT_CONTENDERS], bool *out_is_alone,
                               ft_error *error) {
  ft_contender *winner = &contender[served];
  FT_TRY(build_slices(s, &winner->plan, deadlines->grace_ns, arena, out_is_alone, error));
  if (!*out_is_alone) return FT_OK;
  FT_TRY(ft_plan_build(s, &winner->plan, true, arena, &winner->module, error));
  FT_TRY(ft_plan_seal(&winner->plan, arena, error));
  for (uint32_t i = 0; i < FT_CONTENDERS; i++) {
    ft_contender *c = &contender[i];
    if (c->is_present && c != winner && c->same_as == winner->same_as) {
      c->plan = winner->plan;
      c->module = winner->module;
    }
  }
  return FT_OK;
}
