// soak - random groups and schedules against the reference, as many as asked for. Run by
// scripts/soak.sh.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/random/soak.h"

static const char usage[] =
    "usage: soak [--count N] [--seed N] [--minutes M] [--jobs N] [--one] [--case N]\n";

static bool number_of(const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  return *text && !*end && *out >= 0;
}

static bool whole_of(const char *text, uint64_t *out) {
  char *end;
  *out = strtoull(text, &end, 10);
  return *text && *text != '-' && !*end;
}

static bool read_options(int argc, char **argv, soak_options *o) {
  static const struct option names[] = {{"count", required_argument, NULL, 'n'},
                                        {"seed", required_argument, NULL, 's'},
                                        {"minutes", required_argument, NULL, 'm'},
                                        {"jobs", required_argument, NULL, 'j'},
                                        {"case", required_argument, NULL, 'c'},
                                        {"one", no_argument, NULL, '1'},
                                        {NULL, 0, NULL, 0}};
  uint64_t jobs = o->jobs;
  bool ok = true;
  for (int c; ok && (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
    if (c == 'n') ok = whole_of(optarg, &o->count);
    if (c == 's') ok = whole_of(optarg, &o->first);
    if (c == 'j') ok = whole_of(optarg, &jobs) && jobs > 0 && jobs <= 256;
    if (c == 'm') ok = number_of(optarg, &o->minutes);
    if (c == '1') o->both = false;
    if (c == '?') ok = false;
    if (c != 'c') continue;
    ok = whole_of(optarg, &o->first);
    o->count = 1;
    o->shrinks = true;
  }
  o->jobs = (uint32_t)jobs;
  return ok && optind == argc;
}

static void print(const soak_counts *c) {
  printf("%llu cases (%llu a part of their graph), %llu kernels, %llu failures\n",
         (unsigned long long)c->cases, (unsigned long long)c->parts,
         (unsigned long long)c->kernels, (unsigned long long)c->failures);
  printf("%llu elements compared, %.2f %% of them uncertain\n",
         (unsigned long long)c->elements,
         c->elements ? 100.0 * (double)c->uncertain / (double)c->elements : 0);
  for (int i = 0; i < SOAK_TACTICS && c->tactic[i].name[0]; i++)
    printf("  %-12s %llu kernels\n", c->tactic[i].name,
           (unsigned long long)c->tactic[i].kernels);
  for (uint64_t i = 0; i < c->failures && i < SOAK_NAMED; i++)
    printf("failed: scripts/soak.sh --case %llu\n", (unsigned long long)c->failed[i]);
}

int main(int argc, char **argv) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  soak_options options = {
      .first = 1, .count = 20000, .jobs = cores > 0 ? (uint32_t)cores : 1, .both = true};
  if (!read_options(argc, argv, &options)) {
    fputs(usage, stderr);
    return 2;
  }
  soak_counts counts = soak_run(&options);
  print(&counts);
  return counts.failures || !counts.cases ? 1 : 0;
}
