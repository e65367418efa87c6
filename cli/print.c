#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

const char *ft_cli_time_text(double ns, char out[24]) {
  static const struct {
    double ns;
    const char *unit;
  } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
  size_t i = 0;
  while (i < 3 && ns < units[i].ns) i++;
  snprintf(out, 24, "%.*f %s", ns / units[i].ns < 100 ? 2 : 0, ns / units[i].ns,
           units[i].unit);
  return out;
}

static void print_time_row(const char *name, const ft_time *time, const ft_time *served) {
  char median[24], low[24], high[24];
  if (time->samples == 0) {
    printf("  %-10s not measured\n", name);
    return;
  }
  printf("  %-10s %10s   [%s, %s]   %u samples", name,
         ft_cli_time_text((double)time->median_ns, median),
         ft_cli_time_text((double)time->low_ns, low),
         ft_cli_time_text((double)time->high_ns, high), time->samples);
  if (served->median_ns > 0 && time != served)
    printf("   %.2fx", (double)time->median_ns / (double)served->median_ns);
  putchar('\n');
}

static void print_knobs(const ft_schedule *schedule) {
  for (uint32_t i = 0; i < schedule->count; i++) {
    const ft_knob *k = &schedule->knob[i];
    if (k->text)
      printf(" %s=%s", k->name, k->text);
    else
      printf(" %s=%lld", k->name, (long long)k->value);
  }
}

static void print_primitive(const ft_graph *graph, uint32_t id) {
  const ft_primitive *p = &graph->primitive[id];
  const ft_operator *op = &graph->operator_[p->op_index];
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  const char *shape = arena ? ft_shape_text(&graph->value[p->output].shape, arena) : "?";
  printf("      %-4u %-12s %-16s %s '%s'\n", id, ft_op_describe(p->op)->name, shape,
         op->type, op->name);
  ft_arena_destroy(arena);
}

static void print_trial(const ft_group_trial *trial) {
  if (trial->id == 0) return;
  char source[FT_HASH_TEXT + 1];
  ft_hash_text(&trial->source, source);
  printf("    trial %lld", (long long)trial->id);
  if (!ft_hash_is_zero(&trial->source)) printf(", source %.19s", source);
  printf("   (fusetune repro %lld)\n", (long long)trial->id);
}

// What the compiler says of a GPU's kernel.
static void print_resources(const ft_plan_group *g) {
  const ft_static_facts *f = &g->facts;
  if (g->launch.block_threads == 0) return;
  long long spilled = (f->spill_store_bytes > 0 ? f->spill_store_bytes : 0) +
                      (f->spill_load_bytes > 0 ? f->spill_load_bytes : 0);
  printf(
      "    %u blocks of %u threads, %lld registers, %lld bytes spilled, %lld bytes "
      "shared, occupancy %.0f %%\n",
      g->grid, g->launch.block_threads, (long long)f->registers, spilled,
      (long long)f->shared_bytes, 100 * f->occupancy);
}

static void print_group_time(const ft_plan_group *g) {
  char median[24], low[24], high[24];
  double ns = (double)g->time.median_ns;
  if (g->time.samples > 0) {
    printf("\n    time %s [%s, %s], %u samples", ft_cli_time_text(ns, median),
           ft_cli_time_text((double)g->time.low_ns, low),
           ft_cli_time_text((double)g->time.high_ns, high), g->time.samples);
  } else {
    ns = g->predicted_ns;
    printf("\n    predicted %s, never run", ft_cli_time_text(ns, median));
  }
  printf("; moves %.2f MB",
         (double)(g->workload.read_bytes + g->workload.write_bytes) * 1e-6);
  if (g->roofline_ns > 0 && ns > 0)
    printf("; %.0f %% of roofline", 100 * g->roofline_ns / ns);
  putchar('\n');
}

void ft_cli_print_groups(const ft_answer *answer) {
  const ft_plan *plan = answer->plan;
  for (uint32_t i = 0; i < plan->group_count; i++) {
    const ft_plan_group *g = &plan->group[i];
    printf("\n  kernel %u  tactic %s ", i, g->tactic);
    print_knobs(&g->schedule);
    print_group_time(g);
    print_resources(g);
    print_trial(&answer->trial[i]);
    for (uint32_t k = 0; k < g->workload.group.primitive_count; k++)
      print_primitive(answer->graph, g->workload.group.primitive[k]);
  }
}

static void print_refusal(const ft_graph *graph, const ft_refusal_record *r) {
  if (r->producer >= graph->primitive_count || r->consumer >= graph->primitive_count)
    return;  // the store is not above suspicion
  const ft_primitive *p = &graph->primitive[r->producer],
                     *c = &graph->primitive[r->consumer];
  printf("  %u %s '%s' -> %u %s '%s': ", r->producer, ft_op_describe(p->op)->name,
         graph->operator_[p->op_index].name, r->consumer, ft_op_describe(c->op)->name,
         graph->operator_[c->op_index].name);
  bool says_rule = strncmp(r->detail, r->rule, strlen(r->rule)) == 0;
  printf("%s%s%s\n", says_rule ? "" : r->rule, says_rule ? "" : ": ", r->detail);
}

void ft_cli_print_refusals(const ft_answer *answer) {
  if (answer->refusal_count == 0) return;
  printf("\nnot fused:\n");
  for (uint32_t i = 0; i < answer->refusal_count; i++)
    print_refusal(answer->graph, &answer->refusal[i]);
}

static bool is_predicted(const ft_answer *a) {
  return strcmp(ft_plan_status(a->plan), "predicted") == 0;
}

static void print_outcomes(const ft_answer *a) {
  if (is_predicted(a))
    printf("  built      %u candidates:", a->trials);
  else
    printf("  trials     %u asked for, %u run now:", a->trials, a->new_trials);
  for (int i = 0; i < FT_OUTCOME_COUNT; i++)
    if (a->failed[i]) printf(" %s %u", ft_outcome_text((ft_outcome)i), a->failed[i]);
  printf("; search ended: %s\n", a->search->stop_reason);
}

static void print_served(const ft_answer *a) {
  if (a->served == FT_PLAN_UNFUSED)
    printf("  served     unfused: nothing beat it by more than 1 %% with p < 0.01\n");
  else
    printf("  served     %s, against unfused p = %.2g (paired sign test)\n",
           ft_plan_kind_text(a->served), a->sign_p);
  const ft_comparison_report *r = &a->comparison;
  if (r->has_incumbent && a->served == FT_PLAN_INCUMBENT)
    printf(
        "             the stored plan stays: the fastest other took %.3f of its time, p "
        "= "
        "%.2g\n",
        r->incumbent_ratio, r->incumbent_p);
}

static void print_comparison(const ft_comparison_report *r) {
  uint32_t distinct = 0, left = 0;
  for (uint32_t i = 0; i < r->plan_count; i++) {
    const ft_compared *c = &r->plan[i];
    if (c->absence) continue;
    distinct += c->same_as == c->kind;
    left += c->has_left && c->same_as == c->kind;
  }
  printf(
      "  compared   %u plans in %u rounds, %u clearly beaten on the way; ended by %s\n",
      distinct, r->rounds, left, r->ended);
  if (r->is_open)
    printf(
        "             too few rounds to be sure of a faster one: give it more --time\n");
  uint32_t others = 0;
  for (uint32_t i = 0; i < r->plan_count; i++) {
    const ft_compared *c = &r->plan[i];
    if (!c->absence) continue;
    if (c->kind > FT_PLAN_KBEST && r->plan[i - 1].absence)
      others++;  // for the same reason, mostly
    else
      printf("             without %s: %s\n", ft_plan_kind_text(c->kind), c->absence);
  }
  if (others) printf("             and %u more of the next best\n", others);
  if (!r->is_alone)
    printf("             the budget ended before the kernels' own objects were built\n");
}

static void print_groups_measured(const ft_answer *a) {
  const ft_search_result *s = a->search;
  double share = s->group_count ? 100.0 * s->measured_count / s->group_count : 0;
  printf("  groups     %u legal, %u unique, %u %s (%.0f %%), in %u rounds\n",
         s->legal_groups, s->group_count, s->measured_count,
         is_predicted(a) ? "predicted" : "measured", share, s->rounds);
}

static void print_times(const ft_plan_times *t) {
  print_time_row("tuned", &t->tuned, &t->tuned);
  print_time_row("unfused", &t->unfused, &t->tuned);
  print_time_row("greedy", &t->greedy, &t->tuned);
  print_time_row("primitive", &t->primitive, &t->tuned);
}

// Sums of predictions, of all that this run made.
static void print_predictions(const ft_answer *a) {
  static const ft_plan_kind kinds[] = {FT_PLAN_TUNED, FT_PLAN_UNFUSED, FT_PLAN_GREEDY,
                                       FT_PLAN_PRIMITIVE};
  char text[24];
  printf("  predicted  for %s (%s) with %s; built, never run: only a measurement tells\n",
         a->plan->target->device, a->plan->target->name, a->plan->target->toolkit);
  for (int i = 0; a->is_tuned && i < 4; i++) {
    double ns = a->predicted_ns[kinds[i]], served = a->plan->times.additive_ns;
    if (ns > 0 && served > 0)
      printf("  %-10s %10s   predicted   %.2fx\n", ft_plan_kind_text(kinds[i]),
             ft_cli_time_text(ns, text), ns / served);
  }
}

void ft_cli_print_answer(const ft_answer *a) {
  const ft_plan *p = a->plan;
  const ft_plan_times *t = &p->times;
  char id[FT_HASH_TEXT + 1], additive[24], bound[24];
  ft_hash_text(&p->hash, id);
  printf("%s on %s: %u operators -> %u kernels (%u primitives)\n", a->model,
         p->target->name, a->graph->live_operators, p->group_count,
         a->graph->primitive_count);
  printf("  plan       %.19s  (%s match, strategy %s)\n", id, a->match, p->strategy);
  if (is_predicted(a))
    print_predictions(a);
  else
    print_times(t);
  printf("  additive   %10s   bound %s, gap %.1f %%%s\n",
         ft_cli_time_text(t->additive_ns, additive), ft_cli_time_text(t->bound_ns, bound),
         100 * t->gap, p->window_saturated ? "   (window saturated: try --window)" : "");
  if (!a->is_tuned) return;
  print_groups_measured(a);
  print_outcomes(a);
  if (is_predicted(a)) {
    printf("  served     %s, by prediction: nothing was compared end to end\n",
           ft_plan_kind_text(a->served));
    return;
  }
  if (a->is_replayed) {
    printf("  served     as before: nothing was measured, nothing is stored\n");
    return;
  }
  print_served(a);
  print_comparison(&a->comparison);
}
