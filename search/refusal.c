#include "search/refusal.h"

#include <string.h>

#include "search/quotient.h"

typedef struct explainer {
  const ft_landscape *land;
  ft_arena *arena;
  ft_quotient apart;    // every primitive a part
  ft_quotient divided;  // the division
} explainer;

// Up to the colon, else the first word.
static const char *rule_of(const char *reason, ft_arena *arena) {
  size_t colon = strcspn(reason, ":"), word = strcspn(reason, " ");
  if (!reason[0]) return "refused";
  return ft_arena_strndup(arena, reason, reason[colon] ? colon : word);
}

static ft_status finish(ft_refusal *out, const char *rule, const char *detail,
                        ft_error *error) {
  FT_OOM_IF(!rule || !detail, error);
  out->rule = rule;
  out->detail = detail;
  return FT_OK;
}

// What follows from numbers of primitives alone; *out_joined is set when it fits.
static ft_status explain_size(const explainer *x, ft_set a, ft_set b, ft_set *out_joined,
                              ft_refusal *out, ft_error *error) {
  const ft_landscape *land = x->land;
  uint32_t first = a.first < b.first ? a.first : b.first;
  uint32_t last = ft_set_last(a) > ft_set_last(b) ? ft_set_last(a) : ft_set_last(b);
  uint32_t spread = last - first + 1, count = ft_set_count(a) + ft_set_count(b);
  if (count > land->window)
    return finish(out, "window",
                  ft_arena_printf(x->arena, "%u primitives together, the window is %u",
                                  count, land->window),
                  error);
  if (spread > land->span)
    return finish(
        out, "span",
        ft_arena_printf(x->arena, "they reach over %u primitives, the span is %u", spread,
                        land->span),
        error);
  bool fits = ft_set_join(a, b, out_joined);
  FT_ASSERT(fits);
  return FT_OK;
}

// Why |a| and |b|, parts of |q|, cannot be one kernel: fills *out and leaves
// *out_group FT_NONE; or *out_group is theirs.
static ft_status explain_pair(explainer *x, ft_quotient *q, uint32_t a, uint32_t b,
                              const char *prefix, uint32_t *out_group, ft_refusal *out,
                              ft_error *error) {
  ft_set joined = {0, 0};
  const char *reason;
  *out_group = FT_NONE;
  FT_TRY(explain_size(x, q->part[a], q->part[b], &joined, out, error));
  if (!joined.bits) return FT_OK;
  if (ft_quotient_has_detour(q, a, b) || ft_quotient_has_detour(q, b, a))
    return finish(
        out, "cycle",
        ft_arena_printf(x->arena, "%sanother kernel would have to run between", prefix),
        error);
  FT_TRY(ft_catalog_judge(x->land->catalog, joined, out_group, &reason, error));
  if (*out_group != FT_NONE) return FT_OK;
  return finish(out, rule_of(reason, x->arena),
                ft_arena_printf(x->arena, "%s%s", prefix, reason), error);
}

static ft_status group_of(explainer *x, uint32_t part, const ft_catalog_group **out,
                          ft_error *error) {
  uint32_t group;
  FT_TRY(ft_catalog_judge(x->land->catalog, x->divided.part[part], &group, NULL, error));
  FT_ASSERT(group != FT_NONE);
  *out = &x->land->catalog->group[group];
  return FT_OK;
}

// The two kernels could be one: say what is known of its time.
static ft_status explain_cost(explainer *x, uint32_t a, uint32_t b, uint32_t both,
                              ft_refusal *out, ft_error *error) {
  const ft_catalog_group *one, *other, *joined;
  FT_TRY(group_of(x, a, &one, error));
  FT_TRY(group_of(x, b, &other, error));
  joined = &x->land->catalog->group[both];
  if (joined->is_measured)
    return finish(
        out, "slower",
        ft_arena_printf(x->arena, "one kernel takes %.0f ns, two %.0f + %.0f ns",
                        joined->cost_ns, one->cost_ns, other->cost_ns),
        error);
  if (ft_catalog_is_spent(joined))
    return finish(
        out, "fails",
        ft_arena_printf(x->arena, "no kernel for both worked: %s%s%s",
                        joined->tried ? ft_outcome_text(joined->trial.outcome)
                                      : "there is none to try",
                        joined->trial.error && joined->trial.error[0] ? ", " : "",
                        joined->trial.error ? joined->trial.error : ""),
        error);
  return finish(out, "unmeasured",
                ft_arena_strdup(x->arena, "the budget ended before one kernel for both"),
                error);
}

static ft_status explain_edge(explainer *x, uint32_t producer, uint32_t consumer,
                              ft_refusal *out, ft_error *error) {
  uint32_t a = x->divided.owner[producer], b = x->divided.owner[consumer], group;
  *out = (ft_refusal){.producer = producer, .consumer = consumer};
  // The two primitives alone, unless something between them must come along: then only
  // their groups can tell.
  if (!ft_quotient_has_detour(&x->apart, producer, consumer)) {
    FT_TRY(explain_pair(x, &x->apart, producer, consumer, "", &group, out, error));
    if (group == FT_NONE) return FT_OK;
  }
  FT_TRY(explain_pair(x, &x->divided, a, b, "with their groups: ", &group, out, error));
  if (group == FT_NONE) return FT_OK;
  return explain_cost(x, a, b, group, out, error);
}

ft_status ft_refusals_explain(const ft_landscape *land, const ft_division *division,
                              ft_arena *arena, const ft_refusal **out,
                              uint32_t *out_count, ft_error *error) {
  const ft_dag *dag = land->dag;
  explainer x = {.land = land, .arena = arena};
  FT_TRY(ft_quotient_make(dag, arena, &x.apart, error));
  FT_TRY(ft_quotient_make(dag, arena, &x.divided, error));
  for (uint32_t i = 0; i < division->count; i++)
    ft_quotient_gather(&x.divided, division->set[i]);
  ft_refusal *list = FT_NEW_ARRAY(arena, ft_refusal, dag->consumer_at[dag->count]);
  FT_OOM_IF(!list, error);
  uint32_t count = 0;
  for (uint32_t v = 0; v < dag->count; v++)
    for (uint32_t k = dag->consumer_at[v]; k < dag->consumer_at[v + 1]; k++)
      if (x.divided.owner[v] != x.divided.owner[dag->consumer[k]])
        FT_TRY(explain_edge(&x, v, dag->consumer[k], &list[count++], error));
  *out = list;
  *out_count = count;
  return FT_OK;
}
