#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/clock.h"

ft_cli_meter ft_cli_meter_start(void) {
  return (ft_cli_meter){.is_terminal = isatty(STDERR_FILENO) == 1};
}

// Remaining seconds: the budget's, or what the pace so far suggests if that is less.
static double eta_s(const ft_search_progress *p) {
  double budget = p->limit_ns > p->elapsed_ns ? (double)(p->limit_ns - p->elapsed_ns) : 0;
  double pace = p->trials > 0 && p->candidates > p->trials
                    ? (double)p->elapsed_ns / p->trials * (p->candidates - p->trials)
                    : budget;
  return (p->limit_ns && pace > budget ? budget : pace) * 1e-9;
}

void ft_cli_meter_update(void *self, const ft_search_progress *p) {
  ft_cli_meter *m = self;
  uint64_t now = ft_clock_ns(), pause = m->is_terminal ? 100000000u : 2000000000u;
  bool is_new_phase = strcmp(m->last_phase, p->phase) != 0;
  if (!is_new_phase && now - m->last_ns < pause) return;
  m->last_ns = now;
  snprintf(m->last_phase, sizeof m->last_phase, "%s", p->phase);
  char best[24] = "-";
  if (p->best_additive_ns > 0) ft_cli_time_text(p->best_additive_ns, best);
  fprintf(stderr, "%s%-8s groups %u/%u, candidates %u/%u, best %s, %.0f s left%s",
          m->is_terminal ? "\r\033[K" : "", p->phase, p->measured, p->unique, p->trials,
          p->candidates, best, eta_s(p), m->is_terminal ? "" : "\n");
  fflush(stderr);
}

void ft_cli_meter_end(ft_cli_meter *m) {
  if (m->is_terminal) fputs("\r\033[K", stderr);
}
