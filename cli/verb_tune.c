#include <stdio.h>

#include "cli/cli.h"

static int tune(ft_cli_context *c) {
  ft_cli_meter meter = ft_cli_meter_start();
  ft_tune_options options = {.limit_ns = c->options.time_ns,
                             .max_trials = c->options.trials,
                             .window = c->options.window,
                             .span = c->options.span,
                             .seed = c->options.seed,
                             .until_gap = c->options.until_gap,
                             .progress = ft_cli_meter_update,
                             .progress_ctx = &meter};
  ft_answer answer;
  ft_error error;
  ft_status status =
      c->options.from_store
          ? ft_session_replay(&c->session, &c->model, &options, c->arena, &answer, &error)
          : ft_session_tune(&c->session, &c->model, &options, c->arena, &answer, &error);
  ft_cli_meter_end(&meter);
  if (status != FT_OK) return ft_cli_fail(&c->options, &c->model, &error);
  if (c->options.json) return ft_cli_print_json(ft_answer_json(&answer));
  ft_cli_print_answer(&answer);
  return FT_EXIT_OK;
}

int ft_verb_tune(int argc, char **argv) {
  ft_cli_context c = {0};
  int code = ft_cli_parse(
      "tune",
      "dim input time trials until-gap from-store window span " FT_CONSTRAINTS
      " seed jobs target threads allow store cache json",
      true, argc, argv, &c.options);
  if (code >= 0) return code;
  code = ft_cli_open(&c);
  if (code < 0) code = tune(&c);
  ft_cli_close(&c);
  return code;
}
