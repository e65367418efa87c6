// Answers as JSON: what `--json` prints for tune, query and explain.
#include <string.h>

#include "daemon/session.h"

static json_t *refusals_json(const ft_answer *a) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < a->refusal_count; i++) {
    const ft_refusal_record *r = &a->refusal[i];
    json_array_append_new(
        list,
        json_pack("{s:I, s:I, s:s, s:s}", "producer", (json_int_t)r->producer, "consumer",
                  (json_int_t)r->consumer, "rule", r->rule, "detail", r->detail));
  }
  return list;
}

static json_t *outcomes_json(const ft_answer *a) {
  json_t *o = json_object();
  for (int i = 0; i < FT_OUTCOME_COUNT; i++)
    if (a->failed[i])
      json_object_set_new(o, ft_outcome_text((ft_outcome)i), json_integer(a->failed[i]));
  return o;
}

static json_t *compared_json(const ft_compared *c) {
  char id[FT_HASH_TEXT + 1];
  ft_hash_text(&c->plan, id);
  const char *role = ft_plan_kind_text(c->kind);
  if (c->absence)
    return json_pack("{s:s, s:s%}", "role", role, "absent", c->absence,
                     strlen(c->absence));
  json_t *o = json_pack("{s:s, s:s, s:o, s:f, s:b}", "role", role, "plan_id", id, "time",
                        ft_time_json(&c->time), "additive_ns", c->additive_ns, "left",
                        (int)c->has_left);
  if (o && c->same_as != c->kind)
    json_object_set_new(o, "same_as", json_string(ft_plan_kind_text(c->same_as)));
  return o;
}

static json_t *comparison_json(const ft_comparison_report *r) {
  json_t *plans = json_array(), *incumbent = json_null();
  for (uint32_t i = 0; i < r->plan_count; i++)
    json_array_append_new(plans, compared_json(&r->plan[i]));
  if (r->has_incumbent)
    incumbent = json_pack("{s:f, s:f}", "p", r->incumbent_p, "ratio", r->incumbent_ratio);
  return json_pack("{s:I, s:s, s:b, s:o, s:o, s:b}", "rounds", (json_int_t)r->rounds,
                   "ended", r->ended, "open", (int)r->is_open, "plans", plans,
                   "incumbent", incumbent, "binaries", (int)r->is_alone);
}

static json_t *predicted_json(const ft_answer *a) {
  json_t *o = json_object();
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++)
    json_object_set_new(
        o, ft_plan_kind_text((ft_plan_kind)kind),
        a->predicted_ns[kind] > 0 ? json_real(a->predicted_ns[kind]) : json_null());
  return o;
}

static bool is_predicted(const ft_answer *a) {
  return strcmp(ft_plan_status(a->plan), "predicted") == 0;
}

static void add_tuning(json_t *o, const ft_answer *a) {
  json_object_set_new(o, "trials", json_integer(a->trials));
  json_object_set_new(o, "new_trials", json_integer(a->new_trials));
  json_object_set_new(o, "outcomes", outcomes_json(a));
  if (is_predicted(a)) {
    json_object_set_new(o, "served", json_string(ft_plan_kind_text(a->served)));
    json_object_set_new(o, "predicted_ns", predicted_json(a));
  } else if (!a->is_replayed) {
    json_object_set_new(o, "served", json_string(ft_plan_kind_text(a->served)));
    json_object_set_new(o, "sign_test_p", json_real(a->sign_p));
    json_object_set_new(o, "comparison", comparison_json(&a->comparison));
  }
  json_object_set_new(o, "stop_reason", json_string(a->search->stop_reason));
  json_object_set_new(o, "legal_groups", json_integer(a->search->legal_groups));
  json_object_set_new(o, "groups_unique", json_integer(a->search->group_count));
  json_object_set_new(o, "groups_measured", json_integer(a->search->measured_count));
  json_object_set_new(o, "rounds", json_integer(a->search->rounds));
  json_object_set_new(o, "bound_contradictions", json_integer(a->search->contradictions));
  json_object_set_new(o, "ideals", json_integer(a->search->ideals));
}

static json_t *times_json(const ft_plan_times *t) {
  return json_pack("{s:o, s:o, s:o, s:o, s:f, s:f, s:f}", "tuned",
                   ft_time_json(&t->tuned), "unfused", ft_time_json(&t->unfused),
                   "primitive", ft_time_json(&t->primitive), "greedy",
                   ft_time_json(&t->greedy), "additive_ns", t->additive_ns, "bound_ns",
                   t->bound_ns, "gap", t->gap);
}

json_t *ft_answer_json(const ft_answer *a) {
  const ft_plan *p = a->plan;
  char id[FT_HASH_TEXT + 1];
  ft_hash_text(&p->hash, id);
  json_t *groups = json_array();
  for (uint32_t i = 0; i < p->group_count; i++) {
    json_t *group = ft_plan_group_json(p, i);
    json_object_set_new(group, "trial",
                        a->trial[i].id ? json_integer(a->trial[i].id) : json_null());
    json_array_append_new(groups, group);
  }
  json_t *o = json_pack(
      "{s:s, s:s, s:s, s:s, s:[], s:s, s:s, s:I, s:I, s:I, s:i, s:b, s:I, s:o}", "model",
      a->model, "target", p->target->name, "status", ft_plan_status(p), "match", a->match,
      "differs", "plan_id", id, "strategy", p->strategy, "operators",
      (json_int_t)a->graph->live_operators, "kernels", (json_int_t)p->group_count,
      "primitives", (json_int_t)a->graph->primitive_count, "window", (int)p->window,
      "window_saturated", (int)p->window_saturated, "peak_bytes",
      (json_int_t)p->peak_bytes, "groups", groups);
  if (!o) return NULL;
  json_t *times = times_json(&p->times);
  json_object_update(o, times);
  json_decref(times);
  if (!a->is_tuned) json_object_set_new(o, "refusals", refusals_json(a));
  if (a->is_tuned) add_tuning(o, a);
  return o;
}
