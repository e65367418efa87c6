#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const char *hint_of(const ft_model *model, const ft_error *error) {
  if (model && model->report.unbound_count > 0)
    return "bind the dims, for example --dim NAME=8, or all of them with --dim '*=8'";
  switch (error->code) {
    case FT_NOT_FOUND:
      if (strstr(error->text, "fusetune revalidate"))
        return "fusetune revalidate MODEL.onnx, or fusetune tune MODEL.onnx to search "
               "anew";
      return strstr(error->text, "trial ") || strstr(error->text, "source ")
                 ? "fusetune explain MODEL.onnx and fusetune export name trials"
                 : "fusetune tune MODEL.onnx makes a plan";
    case FT_UNSUPPORTED:
      return "README.md, Limits, lists what is imported";
    case FT_CORRUPT:
      return "keep the file, and start a new store with --store FILE";
    case FT_UNAVAILABLE:
      if (strstr(error->text, "NVRTC")) return "every other target works without it";
      return "fusetune doctor says what is missing";
    case FT_INTERRUPTED:
      return "the same command goes on where this one stopped";
    default:
      return "";
  }
}

static json_t *unsupported_json(const ft_model *model) {
  json_t *list = json_array();
  for (uint32_t i = 0; model && i < model->report.unsupported_count; i++) {
    const ft_unsupported *u = &model->report.unsupported[i];
    json_array_append_new(
        list,
        json_pack("{s:s%, s:s%, s:I, s:s%, s:s%}", "op", u->op, strlen(u->op), "domain",
                  u->domain, strlen(u->domain), "opset", (json_int_t)u->opset, "node",
                  u->node, strlen(u->node), "reason", u->reason, strlen(u->reason)));
  }
  return list;
}

static void print_text(const ft_model *model, const ft_error *error, const char *hint) {
  fprintf(stderr, "fusetune: %s: %s\n", ft_status_text(error->code), error->text);
  for (uint32_t i = 0; model && i < model->report.unsupported_count; i++) {
    const ft_unsupported *u = &model->report.unsupported[i];
    fprintf(stderr, "  %s%s%s (opset %lld) at node '%s': %s\n", u->domain,
            *u->domain ? "." : "", u->op, (long long)u->opset, u->node, u->reason);
  }
  if (*hint) fprintf(stderr, "hint: %s\n", hint);
}

int ft_cli_fail(const ft_cli_options *options, const ft_model *model,
                const ft_error *error) {
  const char *hint = hint_of(model, error);
  if (!options->json) {
    print_text(model, error, hint);
    return ft_cli_exit_code(error->code);
  }
  // The text may hold bytes of a hostile file: replace what is not UTF-8.
  json_t *message = json_string(error->text);
  if (!message) message = json_string("(the message holds bytes that are not UTF-8)");
  ft_cli_print_json(json_pack("{s:{s:s, s:o, s:s, s:o}}", "error", "code",
                              ft_status_text(error->code), "message", message, "hint",
                              hint, "unsupported", unsupported_json(model)));
  return ft_cli_exit_code(error->code);
}

int ft_cli_print_json(json_t *object) {
  if (!object || json_dumpf(object, stdout, JSON_SORT_KEYS | JSON_COMPACT) != 0) {
    fprintf(stderr, "fusetune: out of memory while printing\n");
    json_decref(object);
    return FT_EXIT_FAILED;
  }
  putchar('\n');
  json_decref(object);
  return FT_EXIT_OK;
}
