#include <stdio.h>

#include "cli/cli.h"

static json_t *run_json(const ft_cli_context *c, const ft_run_result *r) {
  json_t *outputs = json_array();
  for (uint32_t i = 0; i < r->output_count; i++) {
    const ft_verified_output *o = &r->output[i];
    json_t *shape = json_array();
    for (int k = 0; k < o->shape.rank; k++)
      json_array_append_new(shape, json_integer((json_int_t)o->shape.dim[k]));
    // JSON has no infinity: null says "not a number of the kind JSON can hold".
    json_t *ratio = json_real(o->comparison.max_ratio);
    json_t *error = json_real(o->comparison.max_abs_error);
    json_array_append_new(
        outputs, json_pack("{s:s, s:o, s:o, s:o, s:I}", "name", o->name, "shape", shape,
                           "max_abs_error", error ? error : json_null(),
                           "max_error_ratio", ratio ? ratio : json_null(), "compared",
                           (json_int_t)o->comparison.compared));
  }
  return json_pack("{s:s, s:b, s:b, s:s, s:s, s:o}", "model", c->options.model,
                   "verified", (int)r->is_verified, "tuned", (int)r->is_plan_tuned,
                   "outcome", ft_outcome_text(r->outcome), "failure", r->failure,
                   "outputs", outputs);
}

static void print_run(const ft_run_result *r) {
  printf("ran %s: %s%s%s\n",
         r->is_plan_tuned ? "the stored plan" : "unfused (no stored plan)",
         ft_outcome_text(r->outcome), *r->failure ? ": " : "", r->failure);
  for (uint32_t i = 0; i < r->output_count; i++) {
    const ft_verified_output *o = &r->output[i];
    printf(
        "  output '%s': %lld elements, max abs error %.3g, %.3g of the tolerance: %s\n",
        o->name, (long long)o->comparison.compared, o->comparison.max_abs_error,
        o->comparison.max_ratio, o->comparison.max_ratio <= 1 ? "right" : "WRONG");
  }
}

static int run(ft_cli_context *c) {
  ft_run_result result;
  ft_error error;
  if (ft_session_verify(&c->session, &c->model, c->options.seed, c->arena, &result,
                        &error) != FT_OK)
    return ft_cli_fail(&c->options, &c->model, &error);
  int code =
      result.outcome == FT_OUTCOME_OK && result.is_verified ? FT_EXIT_OK : FT_EXIT_FAILED;
  if (!c->options.json) {
    print_run(&result);
    return code;
  }
  int printed = ft_cli_print_json(run_json(c, &result));
  return printed == FT_EXIT_OK ? code : printed;
}

int ft_verb_run(int argc, char **argv) {
  ft_cli_context c = {0};
  int code = ft_cli_parse("run", "verify dim input seed store cache json", true, argc,
                          argv, &c.options);
  if (code >= 0) return code;
  if (!c.options.verify) {
    fprintf(stderr,
            "fusetune: run needs --verify: there is nothing else it does so far\n");
    return FT_EXIT_USAGE;
  }
  code = ft_cli_open(&c);
  if (code < 0) code = run(&c);
  ft_cli_close(&c);
  return code;
}
