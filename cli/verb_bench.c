#include <stdio.h>

#include "cli/cli.h"
#include "daemon/bench.h"

// One line per plan: its median with interval, and how often slower than the served one
// it was in the same round.
static void print_side(const ft_bench_result *r, ft_plan_kind kind, const ft_time *time) {
  const ft_bench_side *side = &r->side[kind];
  const ft_paired_ratio *ratio = &side->ratio;
  char median[24], low[24], high[24];
  printf("  %-10s ", ft_plan_kind_text(kind));
  if (!side->is_present) {
    printf("not run: %s\n", side->absence);
    return;
  }
  printf("%10s   [%s, %s]   %u samples",
         ft_cli_time_text((double)time->median_ns, median),
         ft_cli_time_text((double)time->low_ns, low),
         ft_cli_time_text((double)time->high_ns, high), time->samples);
  if (kind == r->served)
    printf("   served\n");
  else if (side->is_served_plan)
    printf("   the served plan\n");
  else
    printf("   %.3fx [%.3f, %.3f]  p = %.2g\n", ratio->median, ratio->low, ratio->high,
           ratio->sign_p);
}

static void print_bench(const ft_bench_result *r) {
  const ft_plan *plan = r->answer.plan;
  const ft_plan_times *t = &plan->times;
  char id[FT_HASH_TEXT + 1];
  ft_hash_text(&plan->hash, id);
  printf("%s on %s: %u rounds, interleaved, cold caches\n", r->answer.model,
         plan->target->name, r->rounds);
  const ft_time *own[FT_PLAN_KINDS] = {&r->tuned_time, &t->unfused, &t->primitive,
                                       &t->greedy};
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++)
    print_side(r, (ft_plan_kind)kind, own[kind]);
  printf("  plan       %.19s; ratios are over it, paired by round, with 95 %% interval\n",
         id);
}

static int bench(ft_cli_context *c) {
  ft_bench_options options = {.limit_ns = c->options.time_ns,
                              .rounds = c->options.rounds,
                              .seed = c->options.seed};
  ft_bench_result result;
  ft_error error;
  if (ft_session_bench(&c->session, &c->model, &options, c->arena, &result, &error) !=
      FT_OK)
    return ft_cli_fail(&c->options, &c->model, &error);
  if (c->options.json) return ft_cli_print_json(ft_bench_json(&result));
  print_bench(&result);
  return FT_EXIT_OK;
}

int ft_verb_bench(int argc, char **argv) {
  ft_cli_context c = {0};
  int code = ft_cli_parse(
      "bench", "dim input time rounds seed jobs threads allow store cache json", true,
      argc, argv, &c.options);
  if (code >= 0) return code;
  code = ft_cli_open(&c);
  if (code < 0) code = bench(&c);
  ft_cli_close(&c);
  return code;
}
