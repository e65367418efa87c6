#include "daemon/revalidate.h"

#include <stdio.h>

#include "cli/cli.h"

static int revalidate(ft_cli_context *c) {
  ft_cli_meter meter = ft_cli_meter_start();
  ft_revalidate_options options = {.top = c->options.top,
                                   .tune = {.limit_ns = c->options.time_ns,
                                            .seed = c->options.seed,
                                            .progress = ft_cli_meter_update,
                                            .progress_ctx = &meter}};
  ft_revalidation result;
  ft_error error;
  ft_status status =
      ft_session_revalidate(&c->session, &c->model, &options, c->arena, &result, &error);
  ft_cli_meter_end(&meter);
  if (status != FT_OK) return ft_cli_fail(&c->options, &c->model, &error);
  if (c->options.json) return ft_cli_print_json(ft_revalidation_json(&result));
  printf("from target '%s', which differs in %s: at most %u candidates of each kernel\n",
         result.from.target, result.from.differs, result.top);
  ft_cli_print_answer(&result.answer);
  return FT_EXIT_OK;
}

int ft_verb_revalidate(int argc, char **argv) {
  ft_cli_context c = {0};
  int code = ft_cli_parse("revalidate",
                          "dim input time top " FT_CONSTRAINTS
                          " seed jobs threads allow store cache json",
                          true, argc, argv, &c.options);
  if (code >= 0) return code;
  code = ft_cli_open(&c);
  if (code < 0) code = revalidate(&c);
  ft_cli_close(&c);
  return code;
}
