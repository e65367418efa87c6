#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "daemon/export.h"
#include "daemon/export_plan.h"

static int bad_format(const char *text) {
  fprintf(stderr, "fusetune: bad value for --format: expected jsonl or csv, got '%s'\n",
          text);
  return FT_EXIT_USAGE;
}

static ft_status write_all(ft_cli_context *c, const ft_export_options *options,
                           uint64_t *out_count, ft_error *error) {
  ft_output output;
  ft_status status = ft_output_open(c->options.output, c->arena, &output, error);
  if (status == FT_OK)
    status = ft_export_trials(c->session.store, options, &output, out_count, error);
  if (status == FT_OK) return ft_output_commit(&output, error);
  ft_output_abort(&output);
  return status;
}

static int export(ft_cli_context *c, ft_export_kind kind) {
  const ft_cli_options *o = &c->options;
  ft_export_options options = {
      .kind = kind,
      .samples = o->samples,
      .filter = {.since_ns = o->since_ns, .top_k = o->top_k, .graph = c->model.graph},
      .stop = ft_cli_stop_flag()};
  uint64_t count = 0;
  ft_error error;
  // A reader that went away is an error to report, not a signal to die of.
  signal(SIGPIPE, SIG_IGN);
  if (write_all(c, &options, &count, &error) != FT_OK)
    return ft_cli_fail(o, &c->model, &error);
  if (o->output && o->json)
    return ft_cli_print_json(
        json_pack("{s:s, s:I}", "output", o->output, "trials", (json_int_t)count));
  fprintf(stderr, "%llu trials%s%s\n", (unsigned long long)count, o->output ? " in " : "",
          o->output ? o->output : "");
  return FT_EXIT_OK;
}

static int export_plan(ft_cli_context *c) {
  const ft_cli_options *o = &c->options;
  uint32_t files;
  ft_error error;
  if (ft_export_plan(&c->session, &c->model, o->plan, c->arena, &files, &error) != FT_OK)
    return ft_cli_fail(o, &c->model, &error);
  if (o->json)
    return ft_cli_print_json(
        json_pack("{s:s, s:I}", "plan", o->plan, "files", (json_int_t)files));
  fprintf(stderr, "%u files in %s\n", files, o->plan);
  return FT_EXIT_OK;
}

// What only one of the two exports knows.
static const char *misplaced(const ft_cli_options *o) {
  if (!o->plan) return o->target ? "--target is for --plan" : NULL;
  if (!o->model) return "--plan needs --model";
  if (o->format || o->output || o->since_ns || o->top_k || o->samples)
    return "--plan takes only --model, --dim, --input, --target, --store and --json";
  return NULL;
}

int ft_verb_export(int argc, char **argv) {
  ft_cli_context c = {0};
  int code = ft_cli_parse("export",
                          "format output since top-k model dim input samples plan target "
                          "threads allow store cache json",
                          false, argc, argv, &c.options);
  if (code >= 0) return code;
  const char *format = c.options.format ? c.options.format : "jsonl";
  bool is_csv = strcmp(format, "csv") == 0;
  if (!is_csv && strcmp(format, "jsonl") != 0) return bad_format(format);
  const char *wrong = misplaced(&c.options);
  if (wrong) {
    fprintf(stderr, "fusetune: export: %s\n", wrong);
    return FT_EXIT_USAGE;
  }
  code = c.options.plan ? ft_cli_open(&c) : ft_cli_open_store(&c);
  if (code < 0 && c.options.plan)
    code = export_plan(&c);
  else if (code < 0)
    code = export(&c, is_csv ? FT_EXPORT_CSV : FT_EXPORT_JSONL);
  ft_cli_close(&c);
  return code;
}
