// run on a target without a device: its kernels in SIM.
#include <stdio.h>

#include "cli/cli.h"
#include "daemon/simulate.h"

static const char *unused_option(const ft_cli_options *o) {
  if (!o->verify) return "needs --verify: nothing runs there, SIM only checks kernels";
  if (o->file_count) return "takes no --input-file: kernels run on inputs of their own";
  if (o->range_count) return "takes no --input-range: kernels run on inputs of their own";
  if (o->outputs) return "takes no --outputs: kernels are not run one after the other";
  return NULL;
}

static bool is_right(const ft_simulated *k) {
  return !k->fault && k->comparison.max_ratio <= 1;
}

static json_t *kernel_json(const ft_simulated *k) {
  const ft_comparison *c = &k->comparison;
  json_t *error = json_real(c->max_abs_error), *ratio = json_real(c->max_ratio);
  return json_pack("{s:s, s:I, s:I, s:s?, s:b, s:o, s:o, s:I}", "name", k->name, "blocks",
                   (json_int_t)k->blocks, "of_blocks", (json_int_t)k->of_blocks, "fault",
                   k->fault, "right", (int)is_right(k), "max_abs_error",
                   error ? error : json_null(), "max_error_ratio",
                   ratio ? ratio : json_null(), "compared", (json_int_t)c->compared);
}

static json_t *simulation_json(const ft_cli_context *c, const ft_simulation *s) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < s->kernel_count; i++)
    json_array_append_new(list, kernel_json(&s->kernel[i]));
  return json_pack("{s:s, s:s, s:b, s:b, s:s, s:o}", "model", c->options.model, "target",
                   c->session.target.name, "tuned", (int)s->is_plan_stored, "verified",
                   (int)s->is_verified, "method", "sim", "kernels", list);
}

static void print_kernel(const ft_simulated *k) {
  printf("  %s\n    %lld of %lld blocks, ", k->name, (long long)k->blocks,
         (long long)k->of_blocks);
  if (k->fault)
    printf("FAULT: %s\n", k->fault);
  else
    printf("%lld elements compared, %.3g of the tolerance: %s\n",
           (long long)k->comparison.compared, k->comparison.max_ratio,
           is_right(k) ? "right" : "WRONG");
}

static void print_simulation(const ft_cli_context *c, const ft_simulation *s) {
  printf("%s on %s, %s, in SIM (checked, never timed): %s\n", c->options.model,
         c->session.target.name,
         s->is_plan_stored ? "the stored plan" : "unfused (no stored plan)",
         s->is_verified ? "verified" : "WRONG");
  for (uint32_t i = 0; i < s->kernel_count; i++) print_kernel(&s->kernel[i]);
}

int ft_cli_run_sim(ft_cli_context *c) {
  ft_error error;
  ft_simulation simulation;
  const char *unused = unused_option(&c->options);
  ft_status status = FT_OK;
  if (unused)
    status = ft_error_set(&error, FT_INVALID_ARGUMENT, "run on target %s %s",
                          c->session.target.name, unused);
  if (status == FT_OK)
    status = ft_session_simulate(&c->session, &c->model, c->options.seed, c->arena,
                                 &simulation, &error);
  if (status != FT_OK) return ft_cli_fail(&c->options, &c->model, &error);
  int code = simulation.is_verified ? FT_EXIT_OK : FT_EXIT_FAILED;
  if (!c->options.json) {
    print_simulation(c, &simulation);
    return code;
  }
  int printed = ft_cli_print_json(simulation_json(c, &simulation));
  return printed == FT_EXIT_OK ? code : printed;
}
