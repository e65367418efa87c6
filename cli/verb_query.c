#include <stdio.h>

#include "cli/cli.h"

static int query(ft_cli_context *c) {
  ft_answer answer;
  ft_error error;
  if (ft_session_query(&c->session, &c->model, c->arena, &answer, &error) != FT_OK)
    return ft_cli_fail(&c->options, &c->model, &error);
  if (c->options.json) return ft_cli_print_json(ft_answer_json(&answer));
  ft_cli_print_answer(&answer);
  return FT_EXIT_OK;
}

int ft_verb_query(int argc, char **argv) {
  ft_cli_context c = {0};
  int code = ft_cli_parse(
      "query", "dim input " FT_CONSTRAINTS " target threads allow store cache json", true,
      argc, argv, &c.options);
  if (code >= 0) return code;
  code = ft_cli_open(&c);
  if (code < 0) code = query(&c);
  ft_cli_close(&c);
  return code;
}
