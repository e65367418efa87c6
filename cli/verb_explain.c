#include <stdio.h>

#include "cli/cli.h"

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
  const ft_graph *g = c->model.graph;
  printf("%s: %u operators of %u left after folding, %u primitives\n", c->options.model,
         g->live_operators, g->operator_count, g->primitive_count);
  for (uint32_t i = 0; i < g->operator_count; i++) {
    const ft_operator *op = &g->operator_[i];
    printf("  %-18s '%s'%s\n", op->type, op->name, op->count ? "" : "   folded away");
    for (uint32_t k = 0; k < op->count; k++) {
      const ft_primitive *p = &g->primitive[op->first + k];
      printf("    %-4u %-12s -> %s %s\n", op->first + k, ft_op_describe(p->op)->name,
             ft_dtype_text(g->value[p->output].dtype),
             ft_shape_text(&g->value[p->output].shape, c->arena));
    }
  }
  return FT_EXIT_OK;
}

int ft_verb_explain(int argc, char **argv) {
  ft_cli_context c = {0};
  int code = ft_cli_parse("explain", "dim input graph store cache json", true, argc, argv,
                          &c.options);
  if (code >= 0) return code;
  code = ft_cli_open(&c);
  if (code < 0) code = c.options.graph ? explain_graph(&c) : explain_plan(&c);
  ft_cli_close(&c);
  return code;
}
