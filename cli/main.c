#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/version.h"

typedef struct verb {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *arguments, *text;
} verb;

static const verb verbs[] = {
#define FT_VERB(name, function, arguments, text) {name, function, arguments, text},
#include "cli/verbs.def"
#undef FT_VERB
};

static void print_help(FILE *to) {
  fputs(
      "fusetune - measured operator fusion: which operators share a kernel, and how\n\n"
      "usage: fusetune VERB [options]   (fusetune VERB --help says more)\n\n",
      to);
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
    if (verbs[i].text)
      fprintf(to, "  %-10s %-11s %s\n", verbs[i].name, verbs[i].arguments, verbs[i].text);
  fputs(
      "\n  --version prints every field of the key that a stored plan is valid for\n"
      "exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 refused input, 130 "
      "interrupted\n",
      to);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    print_help(stderr);
    return FT_EXIT_USAGE;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
      strcmp(argv[1], "help") == 0) {
    print_help(stdout);
    return FT_EXIT_OK;
  }
  if (strcmp(argv[1], "--version") == 0) return ft_cli_print_version();
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
    if (strcmp(argv[1], verbs[i].name) == 0) return verbs[i].run(argc - 1, argv + 1);
  fprintf(stderr, "fusetune: no verb '%s'\n\n", argv[1]);
  print_help(stderr);
  return FT_EXIT_USAGE;
}
