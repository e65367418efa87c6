#include "codegen/ptxas_log.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 30 };  // a number beyond this is not believed

// A line of the log: not terminated.
typedef struct line {
  const char *text;
  size_t length;
} line;

static const char *find(line l, const char *what) {
  size_t n = strlen(what);
  for (size_t i = 0; i + n <= l.length; i++)
    if (!memcmp(l.text + i, what, n)) return l.text + i;
  return NULL;
}

// The number that ends right before |at|, which is in |l|; -1: none.
static int64_t number_before(line l, const char *at) {
  const char *digit = at;
  while (digit > l.text && digit[-1] >= '0' && digit[-1] <= '9') digit--;
  int64_t number = 0;
  for (const char *d = digit; d < at; d++) {
    number = number * 10 + (*d - '0');
    if (number > MOST) return -1;
  }
  return digit == at ? -1 : number;
}

static int64_t number_at(line l, const char *unit) {
  const char *at = find(l, unit);
  return at ? number_before(l, at) : -1;
}

// True when |l| has |before| and right after it |name| and a quote, or its end.
static bool names(line l, const char *before, const char *name) {
  const char *at = find(l, before);
  if (!at) return false;
  at += strlen(before);
  size_t left = (size_t)(l.text + l.length - at), n = strlen(name);
  return left >= n && !memcmp(at, name, n) && (left == n || at[n] == '\'');
}

static void add(int64_t *to, int64_t number) {
  if (number < 0) return;
  *to = *to < 0 ? number : *to + number;
}

static void read_entry_line(line l, ft_static_facts *out) {
  if (find(l, " bytes stack frame")) {
    add(&out->stack_bytes, number_at(l, " bytes stack frame"));
    add(&out->spill_store_bytes, number_at(l, " bytes spill stores"));
    add(&out->spill_load_bytes, number_at(l, " bytes spill loads"));
  }
  if (!find(l, "Used ") || !find(l, " registers")) return;
  out->registers = number_at(l, " registers");
  int64_t shared = number_at(l, " bytes smem");
  out->shared_bytes = shared < 0 ? 0 : shared;
}

static line next_line(const char **at) {
  size_t length = strcspn(*at, "\n");
  line l = {*at, length};
  *at += length + ((*at)[length] == '\n');
  return l;
}

static const ft_static_facts unknown = {.registers = -1,
                                        .spill_store_bytes = -1,
                                        .spill_load_bytes = -1,
                                        .stack_bytes = -1,
                                        .shared_bytes = -1,
                                        .max_threads = -1,
                                        .occupancy = -1};

bool ft_ptxas_log_read(const char *log, const char *name, ft_static_facts *out) {
  *out = unknown;
  bool is_ours = false;
  while (*log) {
    line l = next_line(&log);
    if (find(l, "Compiling entry function '"))
      is_ours = names(l, "Compiling entry function '", name);
    else if (is_ours)
      read_entry_line(l, out);
  }
  // A kernel that was refused after its spills were counted has no registers.
  if (out->registers < 0) *out = unknown;
  return out->registers >= 0;
}
