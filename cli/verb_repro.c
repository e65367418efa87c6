#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "daemon/repro.h"

static json_t *repro_json(const ft_repro_result *r) {
  json_t *files = json_array();
  for (uint32_t i = 0; i < r->file_count; i++)
    json_array_append_new(files, json_string(r->file[i]));
  return json_pack("{s:I, s:s, s:s, s:s, s:b, s:I, s:I, s:o}", "trial",
                   (json_int_t)r->trial.row.trial_id, "outcome", r->trial.row.outcome,
                   "folder", r->folder, "command", r->command, "emitted",
                   (int)r->is_emitted, "drawn_constants", (json_int_t)r->drawn_constants,
                   "checked", (json_int_t)r->checked, "files", files);
}

static void print_repro(const ft_repro_result *r) {
  const ft_trial_row *row = &r->trial.row;
  char median[24];
  printf("trial %lld: %s, tactic %s, schedule %s\n", (long long)row->trial_id,
         row->outcome, row->tactic, row->schedule);
  if (row->time.median_ns)
    printf("  time       %s\n", ft_cli_time_text((double)row->time.median_ns, median));
  if (*row->error) printf("  error      %.300s\n", row->error);
  if (*row->worst) printf("  worst      %s\n", row->worst);
  if (r->is_emitted) printf("  source     not in the store: emitted anew\n");
  if (r->drawn_constants)
    printf(
        "  inputs     %u were constants of the model, and are drawn: --model MODEL takes "
        "their bytes\n",
        r->drawn_constants);
  const char *quote = strpbrk(r->folder, " ()&;$*") ? "'" : "";
  printf("  compared   %llu elements\n\ncd %s%s%s && %s\n",
         (unsigned long long)r->checked, quote, r->folder, quote, r->command);
}

static int repro(ft_cli_context *c) {
  ft_repro_options options = {.trial = c->options.argument,
                              .folder = c->options.folder,
                              .file_count = c->options.file_count,
                              .file = c->file,
                              .model = c->model.graph};
  ft_repro_result result;
  ft_error error;
  if (ft_session_repro(&c->session, &options, c->arena, &result, &error) != FT_OK)
    return ft_cli_fail(&c->options, &c->model, &error);
  if (c->options.json) return ft_cli_print_json(repro_json(&result));
  print_repro(&result);
  return FT_EXIT_OK;
}

int ft_verb_repro(int argc, char **argv) {
  ft_cli_context c = {0};
  int code = ft_cli_parse("repro", "folder input-file model dim input store cache json",
                          true, argc, argv, &c.options);
  if (code >= 0) return code;
  code = ft_cli_open(&c);
  if (code < 0) code = repro(&c);
  ft_cli_close(&c);
  return code;
}
