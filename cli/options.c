#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

typedef enum kind {
  DIM,
  INPUT,
  INPUT_FILE,
  INPUT_RANGE,
  TIME,
  COUNT,
  NUMBER,
  TEXT,
  SHARE,
  BYTES,
  KEEP,
  NO_FUSE,
  FUSE,
  BETWEEN,
  FLAG
} kind;

typedef struct option_info {
  const char *name;
  int letter;
  const char *argument;
  size_t offset;
  kind kind;
  const char *help;
} option_info;

static const option_info infos[] = {
#define FT_OPTION(name, letter, argument, where, kind, help) \
  {name, letter, argument, offsetof(ft_cli_options, where), kind, help},
#include "cli/options.def"
#undef FT_OPTION
};
enum { INFO_COUNT = sizeof infos / sizeof *infos, HELP = 'h', FIRST_LONG = 256 };

static bool accepts_option(const char *accepts, const char *name) {
  size_t length = strlen(name);
  for (const char *p = accepts; (p = strstr(p, name)); p += length)
    if ((p == accepts || p[-1] == ' ') && (p[length] == ' ' || p[length] == '\0'))
      return true;
  return false;
}

// ---- the kinds -----------------------------------------------------------------------

static bool read_number(const char *text, uint64_t *out, const char **end) {
  char *stop;
  if (*text < '0' || *text > '9') return false;
  errno = 0;
  unsigned long long value = strtoull(text, &stop, 10);
  *out = value;
  *end = stop;
  return errno == 0;
}

static bool parse_number(void *where, const char *text) {
  const char *end;
  return read_number(text, where, &end) && *end == '\0';
}

static bool parse_count(void *where, const char *text) {
  uint64_t value;
  if (!parse_number(&value, text) || value == 0 || value > UINT32_MAX) return false;
  *(uint32_t *)where = (uint32_t)value;
  return true;
}

static bool parse_time(void *where, const char *text) {
  static const struct {
    const char *suffix;
    double ns;
  } units[] = {{"ms", 1e6},   {"s", 1e9},    {"m", 60e9},
               {"min", 60e9}, {"h", 3600e9}, {"", 1e9}};
  char *end;
  double value = strtod(text, &end);
  if (end == text || !(value > 0)) return false;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (strcmp(end, units[i].suffix) == 0 && value * units[i].ns < 1e18) {
      *(uint64_t *)where = (uint64_t)(value * units[i].ns);
      return true;
    }
  return false;
}

// The name before the last '=' and what follows it; the name is cut off in place.
static const char *split_name(char *text) {
  char *equals = strrchr(text, '=');
  if (!equals || equals == text) return NULL;
  *equals = '\0';
  return equals + 1;
}

static bool parse_dim(ft_cli_options *out, char *text) {
  if (out->dim_count == FT_MAX_DIM_OPTIONS) return false;
  const char *number = split_name(text);
  uint64_t value;
  if (!number || !parse_number(&value, number) || value > INT64_MAX) return false;
  out->dim[out->dim_count++] = (ft_dim_binding){.name = text, .value = (int64_t)value};
  return true;
}

static bool parse_input(ft_cli_options *out, char *text) {
  if (out->input_count == FT_MAX_DIM_OPTIONS) return false;
  const char *p = split_name(text);
  if (!p) return false;
  ft_input_shape input = {.name = text};
  while (*p) {
    uint64_t value;
    if (input.shape.rank == FT_MAX_RANK || !read_number(p, &value, &p) ||
        value > INT64_MAX)
      return false;
    input.shape.dim[input.shape.rank++] = (int64_t)value;
    if (*p == 'x' || *p == ',') {
      p++;
      if (!*p) return false;
    } else if (*p) {
      return false;
    }
  }
  out->input[out->input_count++] = input;
  return true;
}

// The path may hold a '=' of its own, so the name ends at the first one.
static bool parse_file(ft_cli_options *out, char *text) {
  char *equals = strchr(text, '=');
  if (out->file_count == FT_MAX_DIM_OPTIONS || !equals || equals == text || !equals[1])
    return false;
  *equals = '\0';
  out->file[out->file_count++] = (ft_cli_file){.name = text, .path = equals + 1};
  return true;
}

static bool parse_range(ft_cli_options *out, char *text) {
  if (out->range_count == FT_MAX_DIM_OPTIONS) return false;
  const char *numbers = split_name(text);
  if (!numbers) return false;
  char *end;
  ft_input_range range = {.name = text, .low = strtod(numbers, &end)};
  if (end == numbers || *end != ':') return false;
  const char *high = end + 1;
  range.high = strtod(high, &end);
  if (end == high || *end || !(range.low < range.high)) return false;
  out->range[out->range_count++] = range;
  return true;
}

// "2%" or "0.02": above 0 and below 1.
static bool parse_share(void *where, const char *text) {
  char *end;
  double value = strtod(text, &end);
  if (end == text) return false;
  if (*end == '%') value /= 100, end++;
  if (*end || !(value > 0 && value < 1)) return false;
  *(double *)where = value;
  return true;
}

static bool parse_bytes(void *where, const char *text) {
  static const char units[] = "KMG";
  const char *end;
  uint64_t value;
  if (!read_number(text, &value, &end) || value == 0) return false;
  const char *unit = *end ? strchr(units, *end) : NULL;
  if (*end && (!unit || end[1])) return false;
  uint32_t shift = unit ? 10 * (uint32_t)(unit - units + 1) : 0;
  if (value > UINT64_MAX >> shift) return false;
  *(uint64_t *)where = value << shift;
  return true;
}

// The names left and right of |mark|, which is cut out in place.
static bool parse_pair(char *text, char mark, ft_name_pair *out) {
  char *at = strchr(text, mark);
  if (!at || at == text || !at[1]) return false;
  *at = '\0';
  *out = (ft_name_pair){text, at + 1};
  return true;
}

static bool parse_pairs(char *text, ft_name_pair *list, uint32_t *count) {
  return *count < FT_MAX_CONSTRAINTS && parse_pair(text, ',', &list[*count]) && ++*count;
}

static bool parse_keep(ft_constraint_spec *out, const char *text) {
  if (out->keep_count == FT_MAX_CONSTRAINTS || !*text) return false;
  out->keep[out->keep_count++] = text;
  return true;
}

static bool apply(const option_info *info, char *text, ft_cli_options *out) {
  void *where = (char *)out + info->offset;
  switch (info->kind) {
    case DIM:
      return parse_dim(out, text);
    case INPUT:
      return parse_input(out, text);
    case INPUT_FILE:
      return parse_file(out, text);
    case INPUT_RANGE:
      return parse_range(out, text);
    case TIME:
      return parse_time(where, text);
    case COUNT:
      return parse_count(where, text);
    case NUMBER:
      return parse_number(where, text);
    case TEXT:
      *(const char **)where = text;
      return *text != '\0';
    case SHARE:
      return parse_share(where, text);
    case BYTES:
      return parse_bytes(where, text);
    case KEEP:
      return parse_keep(&out->constraints, text);
    case NO_FUSE:
      return parse_pairs(text, out->constraints.no_fuse, &out->constraints.no_fuse_count);
    case FUSE:
      return parse_pairs(text, out->constraints.fuse, &out->constraints.fuse_count);
    case BETWEEN:
      return parse_pair(text, ':', where);
    case FLAG:
      *(bool *)where = true;
      return true;
  }
  return false;
}

// ---- help
// ------------------------------------------------------------------------------

static const char *verb_arguments(const char *verb, const char **text) {
#define FT_VERB(name, function, arguments, help) \
  if (strcmp(verb, name) == 0) {                 \
    *text = help;                                \
    return arguments;                            \
  }
#include "cli/verbs.def"
#undef FT_VERB
  *text = "";
  return "";
}

static void print_usage(FILE *to, const char *verb, const char *accepts) {
  const char *text, *arguments = verb_arguments(verb, &text);
  fprintf(to, "usage: fusetune %s [options]%s%s\n  %s\n\noptions:\n", verb,
          *arguments ? " " : "", arguments, text);
  for (size_t i = 0; i < INFO_COUNT; i++) {
    if (!accepts_option(accepts, infos[i].name)) continue;
    char left[64];
    snprintf(left, sizeof left, "--%s%s%s", infos[i].name, infos[i].argument ? " " : "",
             infos[i].argument ? infos[i].argument : "");
    if (infos[i].letter)
      fprintf(to, "  -%c, %-24s %s\n", infos[i].letter, left, infos[i].help);
    else
      fprintf(to, "      %-24s %s\n", left, infos[i].help);
  }
  fprintf(to, "  -h, %-24s this text\n", "--help");
}

// ---- parsing -------------------------------------------------------------------------

static void fill_getopt(const char *accepts, struct option *list, char *letters) {
  size_t count = 0, used = 0;
  for (size_t i = 0; i < INFO_COUNT; i++) {
    if (!accepts_option(accepts, infos[i].name)) continue;
    list[count++] = (struct option){infos[i].name, infos[i].argument != NULL, NULL,
                                    FIRST_LONG + (int)i};
    if (infos[i].letter) letters[used++] = (char)infos[i].letter;
    if (infos[i].letter && infos[i].argument) letters[used++] = ':';
  }
  list[count++] = (struct option){"help", 0, NULL, HELP};
  list[count] = (struct option){0};
  letters[used++] = HELP;
  letters[used] = '\0';
}

static const option_info *find_option(int code) {
  if (code >= FIRST_LONG) return &infos[code - FIRST_LONG];
  for (size_t i = 0; i < INFO_COUNT; i++)
    if (infos[i].letter == code) return &infos[i];
  return NULL;
}

static int usage_error(const char *verb, const char *accepts) {
  print_usage(stderr, verb, accepts);
  return FT_EXIT_USAGE;
}

int ft_cli_parse(const char *verb, const char *accepts, bool needs_model, int argc,
                 char **argv, ft_cli_options *out) {
  memset(out, 0, sizeof *out);
  struct option list[INFO_COUNT + 2];
  char letters[3 * INFO_COUNT + 4];
  fill_getopt(accepts, list, letters);
  optind = 1;
  int code;
  while ((code = getopt_long(argc, argv, letters, list, NULL)) != -1) {
    if (code == HELP) {
      print_usage(stdout, verb, accepts);
      return FT_EXIT_OK;
    }
    const option_info *info = code == '?' ? NULL : find_option(code);
    if (!info) return usage_error(verb, accepts);
    if (!apply(info, optarg, out)) {
      fprintf(stderr, "fusetune: bad value for --%s: expected %s\n", info->name,
              info->argument);
      return FT_EXIT_USAGE;
    }
  }
  int left = argc - optind;
  if (left != (needs_model ? 1 : 0)) {
    fprintf(stderr, "fusetune: %s takes %s, got %d arguments\n", verb,
            needs_model ? "one model" : "no arguments", left);
    return usage_error(verb, accepts);
  }
  out->model = needs_model ? argv[optind] : NULL;
  return -1;
}
