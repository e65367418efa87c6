#include "cli/cli.h"
#include "cli/inspect.h"

static int explain_plan(ft_cli_context *c) {
  ft_answer answer;
  ft_error error;
  if (ft_session_query(&c->session, &c->model, c->arena, &answer, &error) != FT_OK)
    return ft_cli_fail(&c->options, &c->model, &error);
  if (c->options.json) return ft_cli_print_json(ft_answer_json(&answer));
  ft_cli_print_answer(&answer);
  ft_cli_print_groups(&answer);
  ft_cli_print_refusals(&answer);
  return FT_EXIT_OK;
}

static int explain_graph(ft_cli_context *c) {
  ft_inspection inspection;
  ft_error error;
  if (ft_inspect_graph(c->model.graph, c->arena, &inspection, &error) != FT_OK)
    return ft_cli_fail(&c->options, &c->model, &error);
  if (c->options.json)
    return ft_cli_print_json(ft_inspection_json(&inspection, c->options.model));
  ft_inspection_print(&inspection, c->options.model, c->arena);
  return FT_EXIT_OK;
}

int ft_verb_explain(int argc, char **argv) {
  ft_cli_context c = {0};
  int code = ft_cli_parse("explain",
                          "dim input graph " FT_CONSTRAINTS
                          " target threads allow store cache json",
                          true, argc, argv, &c.options);
  if (code >= 0) return code;
  code = ft_cli_open(&c);
  if (code < 0) code = c.options.graph ? explain_graph(&c) : explain_plan(&c);
  ft_cli_close(&c);
  return code;
}
